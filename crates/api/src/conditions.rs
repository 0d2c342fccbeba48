//! Status conditions: one root, `Ready`, that follows from the conditions it depends on.
//!
//! ```text
//! dependent ─┐   all True and observed at this generation   → Ready=True
//! dependent ─┼─► any False and observed at this generation  → Ready=False   UnhealthyDependents
//! dependent ─┘   otherwise                                  → Ready=Unknown ReconcilingDependents
//! other          not looked at
//! ```
//!
//! [`Conditions`] is a view of an object's list that keeps the root right with every change.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;

use crate::aws::EC2NodeClass;
use crate::azure::AKSNodeClass;
use crate::capacitybuffer::CapacityBuffer;
use crate::kwok::KWOKNodeClass;
use crate::names::conditions::{self, READY as ROOT};
use crate::names::{messages, reasons};
use crate::nodeclaim::NodeClaim;
use crate::nodeoverlay::NodeOverlay;
use crate::nodepool::NodePool;
use crate::shared::{Condition, ConditionStatus};

/// The reason and message of a condition that nobody has looked at yet.
const AWAITING: (&str, &str) = (reasons::AWAITING_RECONCILIATION, messages::AWAITING_RECONCILIATION);

/// An object with status conditions.
pub trait HasConditions: Resource {
    /// What `Ready` depends on.
    const DEPENDENTS: &'static [&'static str];

    /// The conditions as they stand.
    fn conditions(&self) -> &[Condition];

    /// The conditions, to change them; an absent status is created.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;

    /// The condition of a type.
    fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions().iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of a type is there and true.
    fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }
}

macro_rules! has_conditions {
    ($($kind:ty: $dependents:expr,)*) => {$(
        impl HasConditions for $kind {
            const DEPENDENTS: &'static [&'static str] = $dependents;

            fn conditions(&self) -> &[Condition] {
                self.status.as_ref().map_or(&[], |status| &status.conditions)
            }

            fn conditions_mut(&mut self) -> &mut Vec<Condition> {
                &mut self.status.get_or_insert_default().conditions
            }
        }
    )*};
}

has_conditions! {
    NodePool: conditions::node_pool::DEPENDENTS,
    NodeClaim: conditions::node_claim::DEPENDENTS,
    NodeOverlay: conditions::node_overlay::DEPENDENTS,
    KWOKNodeClass: &[],
    EC2NodeClass: conditions::aws::DEPENDENTS,
    AKSNodeClass: conditions::azure::DEPENDENTS,
    // It has no `Ready`; see `set_plain`.
    CapacityBuffer: &[],
}

/// Sets a condition of an object that has no `Ready`, by Kubernetes' plain rule: the time changes with the
/// status, and the order stays. Returns whether anything changed.
pub fn set_plain<K: HasConditions>(
    object: &mut K,
    type_: &str,
    (status, reason, message): (ConditionStatus, &str, &str),
    now: Timestamp,
) -> bool {
    let observed_generation = object.meta().generation.unwrap_or_default();
    let list = object.conditions_mut();
    let old = list.iter_mut().find(|condition| condition.type_ == type_);
    let same = old.as_ref().filter(|old| old.status == status);
    let condition = Condition {
        type_: type_.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: same.map_or_else(|| whole_seconds(now), |old| old.last_transition_time.clone()),
        observed_generation,
    };
    match old {
        Some(old) if *old == condition => return false,
        Some(old) => *old = condition,
        None => list.push(condition),
    }
    true
}

/// A change that is not possible.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("condition {0} cannot be cleared: Ready depends on it")]
pub struct CannotClear(String);

/// The conditions of one object, changed at one point in time.
#[derive(Debug)]
pub struct Conditions<'a> {
    dependents: Vec<&'static str>,
    generation: i64,
    created: Time,
    deleting: bool,
    now: Time,
    list: &'a mut Vec<Condition>,
}

impl<'a> Conditions<'a> {
    /// The conditions of an object; those that `Ready` depends on are added where they are missing.
    pub fn of<K: HasConditions>(object: &'a mut K, now: Timestamp) -> Self {
        Self::with_dependents(object, K::DEPENDENTS.to_vec(), now)
    }

    /// As [`Conditions::of`], where what `Ready` depends on is a matter of settings.
    pub fn with_dependents<K: HasConditions>(
        object: &'a mut K,
        dependents: Vec<&'static str>,
        now: Timestamp,
    ) -> Self {
        let ObjectMeta { generation, creation_timestamp, deletion_timestamp, .. } = object.meta();
        let now = whole_seconds(now);
        let mut conditions = Self {
            dependents,
            generation: generation.unwrap_or_default(),
            created: creation_timestamp.clone().unwrap_or_else(|| now.clone()),
            deleting: deletion_timestamp.is_some(),
            now,
            list: object.conditions_mut(),
        };
        conditions.add_missing();
        conditions
    }

    /// The condition of a type.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.list.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of a type is there and true.
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// It holds, and there is nothing more to say. Returns whether anything changed.
    pub fn set_true(&mut self, type_: &str) -> bool {
        self.set(type_, ConditionStatus::True, type_, "")
    }

    /// It is not known, and nobody has looked yet. Returns whether anything changed.
    pub fn set_unknown(&mut self, type_: &str) -> bool {
        let (reason, message) = AWAITING;
        self.set(type_, ConditionStatus::Unknown, reason, message)
    }

    /// Sets a condition. Returns whether anything changed.
    pub fn set(&mut self, type_: &str, status: ConditionStatus, reason: &str, message: &str) -> bool {
        let time = if self.dependents.contains(&type_) { self.created.clone() } else { self.now.clone() };
        self.set_at(type_, status, reason, message, time)
    }

    /// Removes a condition that `Ready` does not depend on. Returns whether it was there.
    pub fn clear(&mut self, type_: &str) -> Result<bool, CannotClear> {
        if type_ == ROOT || self.dependents.contains(&type_) {
            return Err(CannotClear(type_.to_owned()));
        }
        let before = self.list.len();
        self.list.retain(|condition| condition.type_ != type_);
        let removed = self.list.len() < before;
        if removed {
            self.list.sort_by(|a, b| a.type_.cmp(&b.type_));
        }
        Ok(removed)
    }

    fn add_missing(&mut self) {
        let (reason, message) = AWAITING;
        for type_ in std::iter::once(ROOT).chain(self.dependents.clone()) {
            if self.get(type_).is_none() {
                let created = self.created.clone();
                self.set_at(type_, ConditionStatus::Unknown, reason, message, created);
            }
        }
    }

    /// Sets a condition whose transition time is `first_seen` if it was not there before.
    fn set_at(
        &mut self,
        type_: &str,
        status: ConditionStatus,
        reason: &str,
        message: &str,
        first_seen: Time,
    ) -> bool {
        let old = self.list.iter().position(|condition| condition.type_ == type_);
        let last_transition_time = match old.map(|index| &self.list[index]) {
            Some(old) if old.status == status => old.last_transition_time.clone(),
            Some(_) => self.now.clone(),
            None => first_seen,
        };
        let condition = Condition {
            type_: type_.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time,
            observed_generation: self.generation,
        };
        if let Some(index) = old {
            if self.list[index] == condition {
                return false;
            }
            self.list.remove(index);
        }
        self.list.push(condition);
        if self.deleting {
            // Nothing else will look at the object's new generation any more.
            self.list.iter_mut().for_each(|condition| condition.observed_generation = self.generation);
        }
        self.list.sort_by(|a, b| {
            (a.type_ == ROOT, a.last_transition_time.0).cmp(&(b.type_ == ROOT, b.last_transition_time.0))
        });
        if type_ != ROOT {
            self.update_root();
        }
        true
    }

    fn update_root(&mut self) {
        let mut unhealthy: Vec<&Condition> = self
            .dependents
            .iter()
            .filter_map(|type_| self.get(type_))
            .filter(|condition| {
                condition.status != ConditionStatus::True || condition.observed_generation != self.generation
            })
            .collect();
        if unhealthy.is_empty() {
            self.set_true(ROOT);
            return;
        }
        unhealthy.sort_by_key(|condition| std::cmp::Reverse(condition.last_transition_time.0));
        let failed = unhealthy.iter().any(|condition| {
            condition.status == ConditionStatus::False && condition.observed_generation == self.generation
        });
        let message: Vec<String> =
            unhealthy.iter().map(|condition| format!("{}={}", condition.type_, condition.status)).collect();
        let (status, reason) = if failed {
            (ConditionStatus::False, reasons::UNHEALTHY_DEPENDENTS)
        } else {
            (ConditionStatus::Unknown, reasons::RECONCILING_DEPENDENTS)
        };
        self.set(ROOT, status, reason, &message.join(", "));
    }
}

/// The API server stores whole seconds, so anything finer would look like a change later.
fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).expect("a timestamp without its fraction is a timestamp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn claim() -> NodeClaim {
        let mut claim = NodeClaim::default();
        claim.metadata.generation = Some(1);
        claim.metadata.creation_timestamp = Some(Time(at(0)));
        claim
    }

    /// The list as `Type=Status Reason @second` in storage order.
    #[track_caller]
    fn check(claim: &NodeClaim, expected: &[&str]) {
        let lines: Vec<String> = claim
            .conditions()
            .iter()
            .map(|c| {
                let second = c.last_transition_time.0.as_second() - 1_000_000;
                format!("{}={} {} @{second}", c.type_, c.status, c.reason)
            })
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_ready_depends_on_is_there_from_the_start() {
        let mut claim = claim();
        Conditions::of(&mut claim, at(5));
        check(
            &claim,
            &[
                "Launched=Unknown AwaitingReconciliation @0",
                "Registered=Unknown AwaitingReconciliation @0",
                "Initialized=Unknown AwaitingReconciliation @0",
                "Ready=Unknown ReconcilingDependents @0",
            ],
        );
        assert_eq!(
            claim.condition("Ready").unwrap().message,
            "Launched=Unknown, Registered=Unknown, Initialized=Unknown"
        );
        assert_eq!(claim.condition("Launched").unwrap().message, "object is awaiting reconciliation");
    }

    #[test]
    fn a_kind_without_dependents_awaits_reconciliation() {
        let mut class = KWOKNodeClass::default();
        let conditions = Conditions::of(&mut class, at(5));
        let ready = conditions.get("Ready").unwrap();
        assert_eq!((ready.reason.as_str(), ready.message.as_str()), AWAITING);
    }

    #[test]
    fn ready_follows_when_everything_is_true() {
        let mut claim = claim();
        let mut conditions = Conditions::of(&mut claim, at(5));
        for type_ in ["Registered", "Launched"] {
            assert!(conditions.set_true(type_));
        }
        assert!(!conditions.is_true("Ready"));
        assert!(conditions.set_true("Initialized"));
        assert!(conditions.is_true("Ready"));
        check(
            &claim,
            &[
                "Registered=True Registered @5",
                "Launched=True Launched @5",
                "Initialized=True Initialized @5",
                "Ready=True Ready @5",
            ],
        );
    }

    #[test]
    fn one_failure_makes_ready_false_and_the_newest_is_named_first() {
        let mut claim = claim();
        Conditions::of(&mut claim, at(5)).set_true("Launched");
        Conditions::of(&mut claim, at(6)).set(
            "Registered",
            ConditionStatus::False,
            "MultipleNodesFound",
            "two",
        );
        check(
            &claim,
            &[
                "Initialized=Unknown AwaitingReconciliation @0",
                "Launched=True Launched @5",
                "Registered=False MultipleNodesFound @6",
                "Ready=False UnhealthyDependents @6",
            ],
        );
        assert_eq!(claim.condition("Ready").unwrap().message, "Registered=False, Initialized=Unknown");
    }

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let mut claim = claim();
        Conditions::of(&mut claim, at(5)).set("Drained", ConditionStatus::Unknown, "Draining", "Draining");
        let mut conditions = Conditions::of(&mut claim, at(9));
        assert!(!conditions.set("Drained", ConditionStatus::Unknown, "Draining", "Draining"));
        assert!(conditions.set("Drained", ConditionStatus::Unknown, "Draining", "two left"));
        assert_eq!(conditions.get("Drained").unwrap().last_transition_time, Time(at(5)));
        assert!(conditions.set_true("Drained"));
        assert_eq!(conditions.get("Drained").unwrap().last_transition_time, Time(at(9)));
    }

    #[test]
    fn a_condition_of_an_older_generation_does_not_count() {
        let mut claim = claim();
        let mut conditions = Conditions::of(&mut claim, at(5));
        for type_ in ["Launched", "Registered", "Initialized"] {
            conditions.set_true(type_);
        }
        claim.metadata.generation = Some(2);
        let mut conditions = Conditions::of(&mut claim, at(6));
        conditions.set_true("Launched");
        let ready = conditions.get("Ready").unwrap();
        assert_eq!(ready.status, ConditionStatus::Unknown);
        assert_eq!(ready.message, "Registered=True, Initialized=True");
        // A failure seen at an older generation may be mended by now.
        conditions.set("Registered", ConditionStatus::False, "Gone", "");
        claim.metadata.generation = Some(3);
        let mut conditions = Conditions::of(&mut claim, at(7));
        conditions.set_true("Launched");
        assert_eq!(conditions.get("Ready").unwrap().status, ConditionStatus::Unknown);
    }

    #[test]
    fn an_object_being_deleted_brings_every_condition_up_to_date() {
        let mut claim = claim();
        Conditions::of(&mut claim, at(5)).set_true("Launched");
        claim.metadata.generation = Some(2);
        claim.metadata.deletion_timestamp = Some(Time(at(6)));
        Conditions::of(&mut claim, at(7)).set_true("InstanceTerminating");
        assert!(claim.conditions().iter().all(|condition| condition.observed_generation == 2));
    }

    #[test]
    fn only_what_ready_does_not_depend_on_can_be_cleared() {
        let mut claim = claim();
        let mut conditions = Conditions::of(&mut claim, at(5));
        conditions.set_true("Drifted");
        assert_eq!(conditions.clear("Launched"), Err(CannotClear("Launched".to_owned())));
        assert_eq!(
            conditions.clear("Ready").unwrap_err().to_string(),
            "condition Ready cannot be cleared: Ready depends on it"
        );
        assert_eq!(conditions.clear("Drifted"), Ok(true));
        assert_eq!(conditions.clear("Drifted"), Ok(false));
        let types: Vec<&str> = claim.conditions().iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Initialized", "Launched", "Ready", "Registered"]);
    }

    #[test]
    fn plain_conditions_have_no_root_and_keep_their_order() {
        let mut buffer = CapacityBuffer::default();
        buffer.metadata.generation = Some(3);
        let (yes, no) = ((ConditionStatus::True, "A", "a"), (ConditionStatus::False, "B", "b"));
        assert!(set_plain(&mut buffer, "First", yes, at(1)));
        assert!(set_plain(&mut buffer, "Second", yes, at(2)));
        assert!(!set_plain(&mut buffer, "First", yes, at(3)));
        assert!(set_plain(&mut buffer, "First", (ConditionStatus::True, "A", "other"), at(4)));
        assert_eq!(buffer.condition("First").unwrap().last_transition_time.0, at(1));
        assert!(set_plain(&mut buffer, "First", no, at(5)));
        let first = buffer.condition("First").unwrap();
        assert_eq!((first.last_transition_time.0, first.observed_generation), (at(5), 3));
        let types: Vec<&str> = buffer.conditions().iter().map(|it| it.type_.as_str()).collect();
        assert_eq!(types, ["First", "Second"]);
    }

    #[test]
    fn set_unknown_says_that_nobody_has_looked() {
        let mut claim = claim();
        let mut conditions = Conditions::of(&mut claim, at(5));
        conditions.set_true("Launched");
        conditions.set_unknown("Launched");
        assert_eq!(conditions.get("Launched").unwrap().reason, "AwaitingReconciliation");
    }
}
