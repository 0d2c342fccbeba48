//! Disruption budgets: how many nodes of a pool may be disrupted now. Entries: [`limit`], [`allowed_disruptions`].

use jiff::Timestamp;
use units::{BudgetNodes, BudgetNodesError, CronError, DurationError, GoDuration, Schedule, Window};

use crate::nodepool::{Budget, DisruptionReason};

/// What a budget allows that does not apply: any number of nodes.
pub const UNLIMITED: i32 = i32::MAX;

/// Why a budget cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// The number of nodes.
    #[error("nodes: {0}")]
    Nodes(#[source] BudgetNodesError),
    /// When the budget begins to apply.
    #[error("schedule: {0}")]
    Schedule(#[source] CronError),
    /// How long the budget applies.
    #[error("duration: {0}")]
    Duration(#[source] DurationError),
    /// There is a duration, but nothing that begins.
    #[error("schedule: it is missing although duration is {duration:?}; expected both or neither")]
    NoSchedule {
        /// The duration.
        duration: String,
    },
}

/// A budget of a pool that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.disruption.budgets[{index}].{error}")]
pub struct WrongBudget {
    /// Where it is in the pool's list.
    pub index: usize,
    /// Which of its fields, and why.
    #[source]
    pub error: BudgetError,
}

/// The budgets of a pool that cannot be read.
pub fn wrong_budgets(budgets: &[Budget]) -> Vec<WrongBudget> {
    let wrong = budgets.iter().enumerate().filter_map(|(index, budget)| {
        let error = ParsedBudget::try_from(budget).err()?;
        Some(WrongBudget { index, error })
    });
    wrong.collect()
}

/// A budget whose texts have been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedBudget {
    /// How many nodes may be disrupted.
    pub nodes: BudgetNodes,
    /// When the budget applies; always when absent.
    pub window: Option<Window>,
    /// Which kinds of disruption the budget is for; all when absent, none when empty.
    pub reasons: Option<Vec<DisruptionReason>>,
}

impl TryFrom<&Budget> for ParsedBudget {
    type Error = BudgetError;

    fn try_from(budget: &Budget) -> Result<Self, BudgetError> {
        let nodes = budget.nodes.parse().map_err(BudgetError::Nodes)?;
        let schedule =
            budget.schedule.as_deref().map(Schedule::parse).transpose().map_err(BudgetError::Schedule)?;
        let duration =
            budget.duration.as_deref().map(str::parse).transpose().map_err(BudgetError::Duration)?;
        let window = match (schedule, duration) {
            (Some(schedule), duration) => {
                // Admission demands a duration with a schedule. Without one the window never opens.
                Some(Window { schedule, duration: duration.unwrap_or(GoDuration::ZERO) })
            }
            (None, None) => None,
            (None, Some(_)) => {
                return Err(BudgetError::NoSchedule {
                    duration: budget.duration.clone().unwrap_or_default(),
                });
            }
        };
        Ok(Self { nodes, window, reasons: budget.reasons.clone() })
    }
}

impl ParsedBudget {
    /// Whether the budget is for the reason. An empty list, unlike an absent one, is for no reason.
    pub fn concerns(&self, reason: DisruptionReason) -> bool {
        self.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason))
    }

    /// How many of `nodes` the budget allows to be disrupted at `now`.
    pub fn allowed(&self, nodes: usize, now: Timestamp) -> i32 {
        let is_active = self.window.as_ref().is_none_or(|window| window.is_active(now));
        if is_active { self.nodes.resolve(nodes) } else { UNLIMITED }
    }
}

/// How many nodes may be disrupted, and what says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How many at the same time.
    pub allowed: i32,
    /// Who says so.
    pub by: By,
}

/// Which of the budgets of a pool counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// None of them: any number of nodes may go.
    Nothing,
    /// The strictest, by its place in the list.
    Budget(usize),
    /// One that cannot be read, by its place in the list, and why.
    Unreadable(usize, BudgetError),
}

/// How many of `nodes` may be disrupted for `reason` at `now`: what the strictest budget for it allows.
///
/// A budget that cannot be read allows nothing, even if it is for another reason: nobody knows what it was to
/// protect.
pub fn limit(budgets: &[Budget], reason: DisruptionReason, nodes: usize, now: Timestamp) -> Limit {
    let mut limit = Limit { allowed: UNLIMITED, by: By::Nothing };
    for (place, budget) in budgets.iter().enumerate() {
        match ParsedBudget::try_from(budget) {
            Ok(budget) => {
                let allowed = if budget.concerns(reason) { budget.allowed(nodes, now) } else { UNLIMITED };
                if allowed < limit.allowed {
                    limit = Limit { allowed, by: By::Budget(place) };
                }
            }
            Err(error) => return Limit { allowed: 0, by: By::Unreadable(place, error) },
        }
    }
    limit
}

/// As [`limit`], only the number.
pub fn allowed_disruptions(
    budgets: &[Budget],
    reason: DisruptionReason,
    nodes: usize,
    now: Timestamp,
) -> i32 {
    limit(budgets, reason, nodes, now).allowed
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2000-06-15T12:30:30Z";

    fn budget(nodes: &str, schedule: Option<&str>, duration: Option<&str>) -> Budget {
        Budget {
            reasons: None,
            nodes: nodes.to_owned(),
            schedule: schedule.map(ToOwned::to_owned),
            duration: duration.map(ToOwned::to_owned),
        }
    }

    fn for_reasons(nodes: &str, reasons: &[DisruptionReason]) -> Budget {
        Budget { reasons: Some(reasons.to_vec()), ..budget(nodes, None, None) }
    }

    #[track_caller]
    fn check(budgets: &[Budget], reason: DisruptionReason, nodes: usize, allowed: i32) {
        let now = NOW.parse().unwrap();
        assert_eq!(allowed_disruptions(budgets, reason, nodes, now), allowed, "{budgets:?}");
    }

    #[test]
    fn a_budget_applies_from_each_hit_of_its_schedule() {
        for (now, schedule, duration, active) in [
            (NOW, "* * * * *", "1h", true),
            (NOW, "@yearly", "1h", false),
            ("2024-01-07T00:00:00Z", "@daily", "48h", true),
            ("2024-01-07T00:00:00Z", "30 6 * * SUN", "6h", false),
            // The hit itself is part of the window, its end is not.
            ("2024-01-07T06:30:00Z", "30 6 * * SUN", "6h", true),
            ("2024-01-07T12:29:59Z", "30 6 * * SUN", "6h", true),
            ("2024-01-07T12:30:00Z", "30 6 * * SUN", "6h", false),
        ] {
            let budgets = [budget("3", Some(schedule), Some(duration))];
            let allowed = allowed_disruptions(&budgets, DisruptionReason::Empty, 10, now.parse().unwrap());
            assert_eq!(allowed, if active { 3 } else { UNLIMITED }, "{schedule} {duration} at {now}");
        }
    }

    #[test]
    fn no_budget_is_no_limit() {
        check(&[], DisruptionReason::Drifted, 10, UNLIMITED);
    }

    #[test]
    fn the_strictest_budget_wins_and_percentages_round_up() {
        let budgets = [budget("10%", None, None), budget("4", None, None), budget("100%", None, None)];
        check(&budgets, DisruptionReason::Empty, 11, 2);
        check(&budgets, DisruptionReason::Empty, 1, 1);
        check(&budgets, DisruptionReason::Empty, 0, 0);
        check(&budgets, DisruptionReason::Empty, 100, 4);
    }

    #[test]
    fn a_budget_concerns_its_reasons_only() {
        let budgets = [
            for_reasons("1", &[DisruptionReason::Drifted, DisruptionReason::Unhealthy]),
            budget("5", None, None),
        ];
        check(&budgets, DisruptionReason::Drifted, 10, 1);
        check(&budgets, DisruptionReason::Unhealthy, 10, 1);
        check(&budgets, DisruptionReason::Empty, 10, 5);
    }

    const REASONS: [DisruptionReason; 4] = [
        DisruptionReason::Underutilized,
        DisruptionReason::Empty,
        DisruptionReason::Drifted,
        DisruptionReason::Unhealthy,
    ];

    #[test]
    fn every_reason_has_what_the_strictest_active_budget_for_it_allows() {
        let inactive = |nodes: &str| budget(nodes, Some("@yearly"), Some("1h"));
        let allowed = |budgets: &[Budget]| {
            REASONS.map(|reason| allowed_disruptions(budgets, reason, 100, NOW.parse().unwrap()))
        };
        // One that is active for all of them and allows nothing.
        let empty = for_reasons("7", &[DisruptionReason::Empty]);
        assert_eq!(allowed(&[budget("0", None, None), empty.clone(), inactive("3")]), [0; 4]);
        assert_eq!(allowed(&[inactive("0"), inactive("3")]), [UNLIMITED; 4]);
        // Those that are not active do not count, whatever they are for.
        let idle = Budget { reasons: Some(vec![DisruptionReason::Empty]), ..inactive("1") };
        assert_eq!(allowed(&[idle, budget("10", None, None)]), [10; 4]);
        let drifted = for_reasons("4", &[DisruptionReason::Drifted]);
        let others = for_reasons("5%", &[DisruptionReason::Empty, DisruptionReason::Underutilized]);
        assert_eq!(allowed(&[drifted, others, budget("10", None, None)]), [5, 5, 4, 10]);
    }

    #[test]
    fn schedules_are_compared_in_utc_wherever_the_clock_is() {
        let budgets = [budget("3", Some("30 6 * * *"), Some("1h"))];
        for (now, active) in [
            ("2024-01-07T06:45:00Z", true),
            ("2024-01-07T09:45:00+03:00", true),
            ("2024-01-07T06:45:00+03:00", false),
            ("2024-01-06T22:45:00-08:00", true),
        ] {
            let allowed = allowed_disruptions(&budgets, DisruptionReason::Empty, 10, now.parse().unwrap());
            assert_eq!(allowed == 3, active, "{now}");
        }
    }

    #[test]
    fn it_is_known_which_budget_counts() {
        let by = |budgets: &[Budget]| limit(budgets, DisruptionReason::Empty, 10, NOW.parse().unwrap()).by;
        assert_eq!(by(&[]), By::Nothing);
        assert_eq!(by(&[budget("0", Some("@yearly"), Some("1h"))]), By::Nothing);
        assert_eq!(
            by(&[for_reasons("0", &[DisruptionReason::Drifted]), budget("5", None, None)]),
            By::Budget(1)
        );
        assert_eq!(by(&[budget("5", None, None), budget("20%", None, None)]), By::Budget(1));
        let wrong = budget("1", Some("@dailyX"), Some("1h"));
        let error = ParsedBudget::try_from(&wrong).unwrap_err();
        assert_eq!(by(&[budget("0", None, None), wrong]), By::Unreadable(1, error));
    }

    #[test]
    fn an_empty_list_of_reasons_concerns_nothing() {
        check(&[for_reasons("0", &[])], DisruptionReason::Empty, 10, UNLIMITED);
    }

    #[test]
    fn a_budget_that_cannot_be_read_stops_everything() {
        for bad in [
            budget("ten", None, None),
            budget("1000a%", None, None),
            budget("1", Some("@dailyX"), Some("1h")),
            budget("1", Some("* * * * * *"), Some("1h")),
            budget("1", Some("0 0 * * tue-mon"), Some("1h")),
            budget("1", Some("@daily"), Some("long")),
            budget("1", None, Some("1h")),
        ] {
            let bad = Budget { reasons: Some(vec![DisruptionReason::Drifted]), ..bad };
            check(&[budget("5", None, None), bad], DisruptionReason::Empty, 10, 0);
        }
    }

    #[test]
    fn a_schedule_without_a_duration_never_applies() {
        check(&[budget("1", Some("* * * * *"), None)], DisruptionReason::Empty, 10, UNLIMITED);
    }

    #[test]
    fn errors_name_the_field_the_value_and_what_is_accepted() {
        for (bad, parts) in [
            (budget("ten", None, None), [".nodes: ", "\"ten\"", "expected"]),
            (budget("1", Some("@dailyX"), Some("1h")), [".schedule: ", "\"@dailyX\"", "expected"]),
            (budget("1", Some("@daily"), Some("long")), [".duration: ", "\"long\"", "expected"]),
            (budget("1", None, Some("1h")), [".schedule: ", "\"1h\"", "expected"]),
            (budget("1", Some("@every long"), Some("1h")), [".schedule: ", "\"@every long\"", "expected"]),
            (
                budget("1", Some("0 0 * * tue-mon"), Some("1h")),
                [".schedule: ", "\"tue-mon\"", "ascending range"],
            ),
        ] {
            let wrong = wrong_budgets(&[budget("1", None, None), bad]);
            assert_eq!(wrong.len(), 1);
            let message = wrong[0].to_string();
            assert!(message.starts_with("spec.disruption.budgets[1]."), "{message}");
            for part in parts {
                assert!(message.contains(part), "{message}");
            }
        }
    }
}
