//! How many processors the subscription may still use, so that nothing is asked for that would be refused.
//!
//! ```text
//!   usages, every ten minutes ──► left of a family ──► minus what launches since then have taken
//! ```
//!
//! A launch takes its processors when it is decided, not when Azure counts them: those that are decided together see
//! each other. A machine that we deleted gives them back when it is gone. What Azure says when it refuses a machine counts at once. Whatever is not known is no obstacle.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::names::values::capacity_type;
use jiff::Timestamp;

use crate::arm::types::sku::Usage;
use crate::sku::Catalogue;
use crate::unavailable::Asked;

/// When usages that could not be read again are too old to be believed.
const BELIEVED: Duration = Duration::from_mins(15);

/// All processors of a region that are paid by use.
const ALL_CORES: &str = "cores";
/// All processors of a region on the spot market.
const SPOT_CORES: &str = "lowPriorityCores";

/// The subscription allows no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quota {quota} is used up: {needed} vCPUs are needed, {left} of {limit} are left")]
pub struct Shortage {
    /// What is counted, such as `standardDSv3Family`.
    pub quota: String,
    /// How many processors a machine has.
    pub needed: i64,
    /// How many can still be used.
    pub left: i64,
    /// How many there may be.
    pub limit: i64,
}

/// How many processors may be used, and are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowance {
    limit: i64,
    used: i64,
}

/// What a launch has taken that Azure may not have counted.
#[derive(Clone, Debug)]
struct Taken {
    quotas: Vec<String>,
    vcpus: i64,
    since: Timestamp,
    /// When Azure agreed: what it says later includes this.
    accepted: Option<Timestamp>,
}

/// What a machine gave back that is gone, and that usages may still include.
#[derive(Clone, Debug)]
struct Returned {
    quotas: Vec<String>,
    vcpus: i64,
    /// When it was gone: what Azure says later does not include it.
    since: Timestamp,
}

/// How many processors the subscription may still use in a region.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    allowances: BTreeMap<String, Allowance>,
    read_at: Option<Timestamp>,
    launches: BTreeMap<String, Taken>,
    /// What machines gave back that are gone.
    returned: Vec<Returned>,
    /// What launches have taken and machines have not given back, by quota.
    taken: BTreeMap<String, i64>,
    /// How many processors the machines of each quota have: only what decides about one of them is a change.
    sizes: BTreeMap<String, BTreeSet<i64>>,
    sequence: u64,
}

impl Quota {
    /// Changes whenever the answer for some size does. Before sizes are known, whenever any number does.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Learns which sizes there are.
    pub fn learn_sizes(&mut self, catalogue: &Catalogue) {
        self.sizes.clear();
        for sku in catalogue.skus() {
            for quota in [sku.family.as_str(), ALL_CORES, SPOT_CORES] {
                self.sizes.entry(quota.to_owned()).or_default().insert(sku.vcpus);
            }
        }
        self.sequence += 1;
    }

    /// Takes over usages that were asked for at `asked`. They include launches that were accepted before.
    pub fn read(&mut self, usages: &[Usage], asked: Timestamp) {
        let allowance = |usage: &Usage| {
            let name = usage.name.as_ref()?.value.clone()?;
            Some((name, Allowance { limit: usage.limit?, used: usage.current_value? }))
        };
        let allowances = usages.iter().filter_map(allowance).collect();
        self.changing(|quota| {
            quota.allowances = allowances;
            quota.read_at = Some(asked);
            let too_old = asked.saturating_sub(BELIEVED).unwrap_or(Timestamp::MIN);
            quota.launches.retain(|_, taken| {
                taken.since > too_old && taken.accepted.is_none_or(|accepted| accepted > asked)
            });
            quota.returned.retain(|returned| returned.since > asked);
            quota.count();
        });
    }

    /// Notes that usages could not be read. What is known is believed for a while.
    pub fn unread(&mut self, now: Timestamp) {
        let too_old = now.saturating_sub(BELIEVED).unwrap_or(Timestamp::MIN);
        if self.read_at.is_none_or(|read| read < too_old) {
            self.changing(|quota| {
                quota.allowances.clear();
                quota.returned.clear();
                quota.count();
            });
        }
    }

    /// Whether a machine of a family with some processors may be started.
    pub fn check(&self, asked: &Asked<'_>) -> Result<(), Shortage> {
        let needed = asked.vcpus;
        for quota in quotas(asked) {
            if let Some((left, limit)) = self.left(quota)
                && needed > left
            {
                return Err(Shortage { quota: quota.to_owned(), needed, left: left.max(0), limit });
            }
        }
        Ok(())
    }

    /// Takes the processors of a launch, if they may be used. A launch that is decided again takes them anew.
    pub fn take(&mut self, launch: &str, asked: &Asked<'_>, now: Timestamp) -> Result<(), Shortage> {
        self.give_back(launch);
        self.check(asked)?;
        let quotas: Vec<String> = quotas(asked).map(str::to_owned).collect();
        let taken = Taken { quotas: quotas.clone(), vcpus: asked.vcpus, since: now, accepted: None };
        self.changing_some(&quotas, |quota| {
            for name in &taken.quotas {
                *quota.taken.entry(name.clone()).or_default() += taken.vcpus;
            }
            quota.launches.insert(launch.to_owned(), taken);
        });
        Ok(())
    }

    /// Notes that Azure has agreed to a launch, and counts it itself from now on.
    pub fn accepted(&mut self, launch: &str, now: Timestamp) {
        if let Some(taken) = self.launches.get_mut(launch) {
            taken.accepted = Some(now);
        }
    }

    /// Gives back what a launch has taken that came to nothing.
    pub fn give_back(&mut self, launch: &str) {
        let Some(taken) = self.launches.remove(launch) else { return };
        self.changing_some(&taken.quotas, |quota| {
            for name in &taken.quotas {
                if let Some(sum) = quota.taken.get_mut(name) {
                    *sum -= taken.vcpus;
                }
            }
        });
    }

    /// Notes that the machine of a launch is gone, and uses nothing any more.
    pub fn deleted(&mut self, launch: &str, asked: &Asked<'_>, now: Timestamp) {
        // What a usage does not include yet is only given back.
        let not_counted = self.launches.get(launch).map(|taken| taken.quotas.clone()).unwrap_or_default();
        self.give_back(launch);
        let counted: Vec<String> =
            quotas(asked).map(str::to_owned).filter(|quota| !not_counted.contains(quota)).collect();
        if counted.is_empty() {
            return;
        }
        self.changing_some(&counted, |quota| {
            for name in &counted {
                *quota.taken.entry(name.clone()).or_default() -= asked.vcpus;
            }
            quota.returned.push(Returned { quotas: counted.clone(), vcpus: asked.vcpus, since: now });
        });
    }

    /// Takes over the numbers by which Azure refused a machine, until usages are read again: nothing else is asked for
    /// that would be refused by them. Azure has counted what it agreed to, so that this is not counted twice.
    pub fn refused(&mut self, asked: &Asked<'_>, text: &str) {
        let Some(name) = refused_quota(asked, text) else { return };
        let told = (number_after(text, "Current Limit: "), number_after(text, "Current Usage: "));
        let (Some(limit), Some(used)) = told else { return };
        // Whatever the numbers say, this machine was too large.
        let used = used.max(limit.saturating_sub(asked.vcpus).saturating_add(1));
        self.changing(|quota| {
            quota.allowances.insert(name.to_owned(), Allowance { limit, used });
            for taken in quota.launches.values_mut().filter(|taken| taken.accepted.is_some()) {
                taken.quotas.retain(|counted| counted != name);
            }
            for returned in &mut quota.returned {
                returned.quotas.retain(|counted| counted != name);
            }
            quota.count();
        });
    }

    /// How many processors can still be used, and how many there may be; none if that is not known.
    fn left(&self, quota: &str) -> Option<(i64, i64)> {
        let Allowance { limit, used } = *self.allowances.get(quota)?;
        let taken = self.taken.get(quota).copied().unwrap_or_default();
        Some((limit.saturating_sub(used).saturating_sub(taken).min(limit), limit))
    }

    /// Counts what launches have taken and machines have given back.
    fn count(&mut self) {
        self.taken.clear();
        for returned in &self.returned {
            for name in &returned.quotas {
                *self.taken.entry(name.clone()).or_default() -= returned.vcpus;
            }
        }
        for taken in self.launches.values() {
            for name in &taken.quotas {
                *self.taken.entry(name.clone()).or_default() += taken.vcpus;
            }
        }
    }

    /// What decisions see of a quota: how many of its sizes fit.
    fn answer(&self, quota: &str) -> Option<i64> {
        let (left, _) = self.left(quota)?;
        let Some(sizes) = self.sizes.get(quota) else { return Some(left) };
        i64::try_from(sizes.range(..=left).count()).ok()
    }

    fn changing(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.answers();
        change(self);
        if self.answers() != before {
            self.sequence += 1;
        }
    }

    fn answers(&self) -> BTreeMap<String, Option<i64>> {
        self.allowances.keys().map(|name| (name.clone(), self.answer(name))).collect()
    }

    fn changing_some(&mut self, quotas: &[String], change: impl FnOnce(&mut Self)) {
        let answers = |quota: &Self| quotas.iter().map(|name| quota.answer(name)).collect::<Vec<_>>();
        let before = answers(self);
        change(self);
        if answers(self) != before {
            self.sequence += 1;
        }
    }
}

/// What a machine counts against.
fn quotas<'a>(asked: &Asked<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let is_spot = asked.capacity_type == capacity_type::SPOT;
    let all = if is_spot { ["", SPOT_CORES] } else { [asked.family, ALL_CORES] };
    all.into_iter().filter(|quota| !quota.is_empty())
}

/// Which quota a refusal is about.
fn refused_quota<'a>(asked: &Asked<'a>, text: &str) -> Option<&'a str> {
    if text.contains("LowPriorityCores") {
        Some(SPOT_CORES)
    } else if text.contains("Family Cores quota") {
        Some(asked.family).filter(|family| !family.is_empty())
    } else {
        text.contains("Total Regional Cores quota").then_some(ALL_CORES)
    }
}

/// The number that follows something in a text.
fn number_after(text: &str, before: &str) -> Option<i64> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|each: char| !each.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON_DEMAND: &str = capacity_type::ON_DEMAND;
    const SPOT: &str = capacity_type::SPOT;
    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn ask<'a>(family: &'a str, vcpus: i64, capacity_type: &'a str) -> Asked<'a> {
        Asked { name: "any", family, vcpus, zone: "0", capacity_type }
    }

    fn usage(name: &str, current: Option<i64>, limit: Option<i64>) -> Usage {
        serde_json::from_value(
            serde_json::json!({"name": {"value": name}, "currentValue": current, "limit": limit}),
        )
        .unwrap()
    }

    fn of(rows: &[(&str, i64, i64)]) -> Quota {
        let mut quota = Quota::default();
        quota.read(&usages(rows), START);
        quota
    }

    fn usages(rows: &[(&str, i64, i64)]) -> Vec<Usage> {
        rows.iter().map(|(name, used, limit)| usage(name, Some(*used), Some(*limit))).collect()
    }

    fn after(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    // azure.md 25.3, quota
    #[test]
    fn larger_sizes_are_blocked_first_and_an_exact_fit_is_allowed() {
        let quota = of(&[("dsv3", 6, 10)]);
        assert!(quota.check(&ask("dsv3", 4, ON_DEMAND)).is_ok());
        let shortage = quota.check(&ask("dsv3", 8, ON_DEMAND)).unwrap_err();
        assert_eq!(shortage.to_string(), "the quota dsv3 is used up: 8 vCPUs are needed, 4 of 10 are left");
        assert!(quota.check(&ask("dsv3", 8, SPOT)).is_ok(), "a family's quota is not about spot");
    }

    // azure.md 25.3, quota
    #[test]
    fn what_is_not_known_is_no_obstacle() {
        let mut quota = Quota::default();
        assert!(quota.check(&ask("dsv3", 1000, ON_DEMAND)).is_ok(), "nothing was read");
        quota.read(&[usage("a", None, Some(0)), usage("b", Some(5), None), Usage::default()], START);
        for family in ["a", "b", "other", "", "DSV3"] {
            assert!(quota.check(&ask(family, 1000, ON_DEMAND)).is_ok(), "{family:?}");
        }
    }

    #[test]
    fn the_regions_own_quotas_count_too() {
        let quota = of(&[("dsv3", 0, 100), ("cores", 98, 100), ("lowPriorityCores", 3, 3)]);
        assert!(quota.check(&ask("dsv3", 2, ON_DEMAND)).is_ok());
        assert_eq!(quota.check(&ask("dsv3", 4, ON_DEMAND)).unwrap_err().quota, "cores");
        assert_eq!(quota.check(&ask("dsv3", 2, SPOT)).unwrap_err().quota, "lowPriorityCores");
        assert!(of(&[("dsv3", 0, 100)]).check(&ask("dsv3", 4, SPOT)).is_ok());
    }

    // azure.md 5.3
    #[test]
    fn the_sequence_changes_with_the_content_only() {
        let mut quota = of(&[("a", 1, 10)]);
        let first = quota.sequence();
        quota.read(&usages(&[("a", 1, 10)]), after(10));
        assert_eq!(quota.sequence(), first);
        quota.read(&usages(&[("a", 2, 10)]), after(20));
        assert_eq!(quota.sequence(), first + 1);
        quota.read(&usages(&[("a", 2, 10), ("b", 0, 1)]), after(30));
        assert_eq!(quota.sequence(), first + 2);
    }

    // azure.md 5.3
    #[test]
    fn old_usages_are_believed_for_a_quarter_of_an_hour() {
        let mut quota = of(&[("a", 10, 10)]);
        let first = quota.sequence();
        quota.unread(after(10));
        quota.unread(after(15));
        assert!(quota.check(&ask("a", 2, ON_DEMAND)).is_err());
        quota.unread(after(16));
        assert!(quota.check(&ask("a", 2, ON_DEMAND)).is_ok());
        assert_eq!(quota.sequence(), first + 1);
        quota.unread(after(30));
        assert_eq!(quota.sequence(), first + 1, "there was nothing to forget");
    }

    #[test]
    fn launches_that_are_decided_together_see_each_other() {
        let mut quota = of(&[("a", 0, 10)]);
        for launch in ["one", "two"] {
            assert!(quota.take(launch, &ask("a", 4, ON_DEMAND), after(1)).is_ok());
        }
        assert_eq!(quota.take("three", &ask("a", 4, ON_DEMAND), after(1)).unwrap_err().left, 2);
        assert!(quota.take("three", &ask("a", 2, ON_DEMAND), after(1)).is_ok());
        assert!(quota.take("two", &ask("a", 4, ON_DEMAND), after(1)).is_ok(), "it takes its own again");
        quota.give_back("one");
        quota.give_back("one");
        assert!(
            quota.check(&ask("a", 4, ON_DEMAND)).is_ok() && quota.check(&ask("a", 5, ON_DEMAND)).is_err()
        );
    }

    #[test]
    fn what_azure_has_counted_is_not_counted_twice() {
        let mut quota = of(&[("a", 0, 10)]);
        quota.take("one", &ask("a", 4, ON_DEMAND), after(1)).unwrap();
        quota.take("two", &ask("a", 4, ON_DEMAND), after(1)).unwrap();
        quota.accepted("one", after(2));
        // Asked before it was accepted: Azure does not know it yet.
        quota.read(&usages(&[("a", 0, 10)]), after(1));
        assert!(quota.check(&ask("a", 3, ON_DEMAND)).is_err());
        quota.read(&usages(&[("a", 4, 10)]), after(3));
        assert!(
            quota.check(&ask("a", 2, ON_DEMAND)).is_ok() && quota.check(&ask("a", 3, ON_DEMAND)).is_err()
        );
        // A launch that nobody has heard of again takes nothing for ever.
        quota.read(&usages(&[("a", 4, 10)]), after(17));
        assert!(quota.check(&ask("a", 6, ON_DEMAND)).is_ok());
    }

    #[test]
    fn a_machine_that_is_gone_leaves_room_before_usages_are_read_again() {
        let mut quota = of(&[("a", 8, 8), ("cores", 8, 100)]);
        assert_eq!(quota.check(&ask("a", 4, ON_DEMAND)).unwrap_err().left, 0);
        let before = quota.sequence();
        quota.deleted("old", &ask("a", 4, ON_DEMAND), after(2));
        assert!(quota.sequence() > before, "lists are made again");
        assert!(quota.check(&ask("a", 4, ON_DEMAND)).is_ok());
        assert_eq!(quota.check(&ask("a", 8, ON_DEMAND)).unwrap_err().left, 4);
        // Usages from before it was gone include it, those from later do not.
        quota.read(&usages(&[("a", 8, 8)]), after(1));
        assert!(quota.check(&ask("a", 4, ON_DEMAND)).is_ok());
        quota.read(&usages(&[("a", 4, 8)]), after(3));
        assert_eq!(quota.check(&ask("a", 8, ON_DEMAND)).unwrap_err().left, 4, "it is not given back twice");
    }

    #[test]
    fn a_machine_that_usages_never_included_gives_back_only_what_it_took() {
        let mut quota = of(&[("a", 0, 8)]);
        quota.take("one", &ask("a", 4, ON_DEMAND), after(1)).unwrap();
        quota.accepted("one", after(1));
        quota.deleted("one", &ask("a", 4, ON_DEMAND), after(2));
        assert!(quota.check(&ask("a", 8, ON_DEMAND)).is_ok());
        assert_eq!(quota.check(&ask("a", 9, ON_DEMAND)).unwrap_err().left, 8);
        // A refusal counts what is there now.
        quota.deleted("old", &ask("a", 4, ON_DEMAND), after(2));
        quota.refused(&ask("a", 8, ON_DEMAND), &refusal("a Family Cores", 8, 6));
        assert_eq!(quota.check(&ask("a", 8, ON_DEMAND)).unwrap_err().left, 2);
    }

    fn refusal(quota: &str, limit: i64, used: i64) -> String {
        format!(
            "Operation could not be completed as it results in exceeding approved {quota} quota. Additional details \
             - Location: l, Current Limit: {limit}, Current Usage: {used}, Additional Required: 8, (Minimum) New \
             Limit Required: 32."
        )
    }

    // azure.md 8.2 rows 1, 2, 8: what Azure says counts before usages are read again
    #[test]
    fn a_refusal_says_how_much_is_left() {
        let mut quota = of(&[("a", 0, 100), ("cores", 0, 100), ("lowPriorityCores", 0, 100)]);
        let before = quota.sequence();
        quota.refused(&ask("a", 8, ON_DEMAND), &refusal("a Family Cores", 24, 22));
        assert!(quota.sequence() > before, "lists are made again");
        assert_eq!(quota.check(&ask("a", 4, ON_DEMAND)).unwrap_err().left, 2);
        assert!(quota.check(&ask("a", 2, ON_DEMAND)).is_ok() && quota.check(&ask("b", 4, ON_DEMAND)).is_ok());
        quota.refused(&ask("b", 8, ON_DEMAND), &refusal("Total Regional Cores", 10, 9));
        assert_eq!(quota.check(&ask("b", 2, ON_DEMAND)).unwrap_err().quota, "cores");
        quota.refused(&ask("b", 8, SPOT), &refusal("LowPriorityCores", 3, 3));
        assert_eq!(quota.check(&ask("b", 1, SPOT)).unwrap_err().quota, "lowPriorityCores");
        // A family of which nobody knew anything.
        let mut unknown = Quota::default();
        unknown.refused(&ask("new", 8, ON_DEMAND), &refusal("new Family Cores", 0, 0));
        assert_eq!(unknown.check(&ask("new", 1, ON_DEMAND)).unwrap_err().limit, 0);
        quota.read(&usages(&[("a", 0, 100)]), after(1));
        assert!(quota.check(&ask("a", 64, ON_DEMAND)).is_ok(), "usages know better");
    }

    #[test]
    fn numbers_that_say_that_there_is_room_do_not_ask_for_the_same_again() {
        let mut quota = of(&[("a", 0, 100)]);
        quota.refused(&ask("a", 8, ON_DEMAND), &refusal("a Family Cores", 100, 0));
        assert!(
            quota.check(&ask("a", 8, ON_DEMAND)).is_err() && quota.check(&ask("a", 7, ON_DEMAND)).is_ok()
        );
    }

    #[test]
    fn a_refusal_without_numbers_or_of_another_kind_changes_nothing() {
        for text in ["exceeding approved a Family Cores quota", "Current Limit: 1, Current Usage: 1", ""] {
            let mut quota = of(&[("a", 0, 100)]);
            quota.refused(&ask("a", 8, ON_DEMAND), text);
            assert!(quota.check(&ask("a", 100, ON_DEMAND)).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_azure_counted_when_it_refused_is_not_counted_twice() {
        let mut quota = of(&[("a", 0, 100)]);
        quota.take("made", &ask("a", 8, ON_DEMAND), after(1)).unwrap();
        quota.accepted("made", after(1));
        quota.take("on its way", &ask("a", 2, ON_DEMAND), after(1)).unwrap();
        quota.refused(&ask("a", 8, ON_DEMAND), &refusal("a Family Cores", 14, 8));
        assert_eq!(quota.check(&ask("a", 8, ON_DEMAND)).unwrap_err().left, 4);
        quota.give_back("on its way");
        quota.give_back("made");
        assert_eq!(quota.check(&ask("a", 8, ON_DEMAND)).unwrap_err().left, 6);
    }
}
