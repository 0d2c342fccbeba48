//! Instances that EC2 finds broken, or has plans for.

use std::collections::{BTreeMap, BTreeSet};

use api::names::values;
use jiff::{SignedDuration, Timestamp};

use crate::port::{Filter, InstanceStatus, StatusCheck};

/// How long a check must have failed: it may pass again by itself.
const PATIENCE: SignedDuration = SignedDuration::from_secs(120);
/// Plans that end an instance.
const EVENTS: [&str; 5] =
    ["instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"];

/// What EC2 is asked: each of these alone, because filters hold together.
pub static FILTERS: std::sync::LazyLock<[Filter; 3]> = std::sync::LazyLock::new(|| {
    [
        Filter::new("instance-status.status", ["impaired"]),
        Filter::new("system-status.status", ["impaired"]),
        Filter::new("event.code", EVENTS),
    ]
});

/// What is wrong with an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// The instance is broken.
    InstanceStatus,
    /// The host is broken.
    SystemStatus,
    /// Something is planned.
    EventStatus,
}

impl Category {
    /// What metrics call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InstanceStatus => values::AWS_INSTANCE_STATUS,
            Self::SystemStatus => values::AWS_SYSTEM_STATUS,
            Self::EventStatus => values::AWS_EVENT_STATUS,
        }
    }

    /// Whether pods cannot be waited for, since the node does not answer them.
    pub const fn is_forceful(self) -> bool {
        matches!(self, Self::InstanceStatus | Self::SystemStatus)
    }
}

/// An instance that something is wrong with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The instance.
    pub instance: String,
    /// What is wrong.
    pub categories: BTreeSet<Category>,
}

/// The instances that something is wrong with, of all answers together. What EC2 did not filter is filtered
/// here.
pub fn problems(statuses: &[InstanceStatus], now: Timestamp) -> Vec<Problem> {
    let mut found: BTreeMap<&str, BTreeSet<Category>> = BTreeMap::new();
    for status in statuses {
        let categories = [
            (Category::InstanceStatus, status.instance.iter().any(|check| has_failed(check, now))),
            (Category::SystemStatus, status.system.iter().any(|check| has_failed(check, now))),
            (Category::EventStatus, status.events.iter().any(is_coming)),
        ];
        for (category, _) in categories.into_iter().filter(|(_, applies)| *applies) {
            found.entry(&status.id).or_default().insert(category);
        }
    }
    let problem = |(id, categories): (&str, _)| Problem { instance: id.to_owned(), categories };
    found.into_iter().map(problem).collect()
}

fn has_failed(check: &StatusCheck, now: Timestamp) -> bool {
    check.status == "failed"
        && check.impaired_since.is_some_and(|since| now.duration_since(since) >= PATIENCE)
}

/// Plans that were carried out or given up stay listed for a while, and say so.
fn is_coming(event: &crate::port::ScheduledEvent) -> bool {
    let is_over = ["[Completed]", "[Canceled]"].iter().any(|mark| event.description.starts_with(mark));
    EVENTS.contains(&event.code.as_str()) && !is_over
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::ScheduledEvent;

    const NOW: Timestamp = Timestamp::constant(10_000, 0);

    fn check(status: &str, seconds: i64) -> StatusCheck {
        let impaired_since = Some(Timestamp::constant(10_000 - seconds, 0));
        StatusCheck { name: "reachability".to_owned(), status: status.to_owned(), impaired_since }
    }

    fn categories(status: InstanceStatus) -> Vec<Category> {
        problems(&[status], NOW).into_iter().flat_map(|problem| problem.categories).collect()
    }

    #[test]
    fn a_check_counts_after_it_failed_for_two_minutes() {
        let of = |check| InstanceStatus { instance: vec![check], ..InstanceStatus::default() };
        assert_eq!(categories(of(check("failed", 120))), [Category::InstanceStatus]);
        for passing in [check("failed", 119), check("passed", 500), check("insufficient-data", 500)] {
            assert_eq!(categories(of(passing)), []);
        }
        let unknown = StatusCheck { impaired_since: None, ..check("failed", 500) };
        assert_eq!(categories(of(unknown)), []);
        let system = InstanceStatus { system: vec![check("failed", 300)], ..InstanceStatus::default() };
        assert_eq!(categories(system), [Category::SystemStatus]);
    }

    #[test]
    fn plans_count_at_once_unless_they_are_over() {
        let of = |code: &str, description: &str| InstanceStatus {
            events: vec![ScheduledEvent {
                code: code.to_owned(),
                description: description.to_owned(),
                not_before: None,
            }],
            ..InstanceStatus::default()
        };
        for code in EVENTS {
            assert_eq!(categories(of(code, "soon")), [Category::EventStatus]);
        }
        assert_eq!(categories(of("other", "soon")), []);
        assert_eq!(categories(of("instance-stop", "[Completed] done")), []);
    }

    #[test]
    fn answers_about_the_same_instance_are_one() {
        let id = || "i-1".to_owned();
        let first =
            InstanceStatus { id: id(), instance: vec![check("failed", 300)], ..InstanceStatus::default() };
        let second =
            InstanceStatus { id: id(), system: vec![check("failed", 300)], ..InstanceStatus::default() };
        let found = problems(&[first.clone(), second, first], NOW);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].categories, [Category::InstanceStatus, Category::SystemStatus].into());
        assert!(Category::InstanceStatus.is_forceful() && !Category::EventStatus.is_forceful());
    }
}
