//! Liveness: a claim that does not become a node in time is given up.

use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::{LAUNCHED, REGISTERED};
use api::names::values;
use api::nodeclaim::NodeClaim;
use jiff::Timestamp;

use super::launch::age;

/// How long the node may take to join the cluster.
const REGISTRATION_TIMEOUT: Duration = Duration::from_mins(15);

/// What is to be done about a claim that is not a node yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    /// It is a node.
    Alive,
    /// It has some time left.
    Waiting(Duration),
    /// It is given up, for a reason that metrics show.
    GivenUp(&'static str),
}

/// Whether a claim has had its time.
pub(super) fn decide(claim: &NodeClaim, launch_timeout: Duration, now: Timestamp) -> Liveness {
    if claim.is_true(REGISTERED) {
        return Liveness::Alive;
    }
    // Until they change, conditions are as old as the claim.
    let created = claim.metadata.creation_timestamp.as_ref().map_or(now, |created| created.0);
    let since = |type_| claim.condition(type_).map_or(created, |condition| condition.last_transition_time.0);
    let left_to_register = REGISTRATION_TIMEOUT.saturating_sub(age(since(REGISTERED), now));
    if !claim.is_true(LAUNCHED) {
        let left_to_launch = launch_timeout.saturating_sub(age(since(LAUNCHED), now));
        if left_to_launch.is_zero() {
            return Liveness::GivenUp(values::LAUNCH_TIMEOUT);
        }
        return Liveness::Waiting(left_to_launch.min(left_to_register));
    }
    if left_to_register.is_zero() {
        return Liveness::GivenUp(values::REGISTRATION_TIMEOUT);
    }
    Liveness::Waiting(left_to_register)
}

#[cfg(test)]
mod tests {
    use api::conditions::Conditions;
    use api::shared::ConditionStatus;
    use cluster::state::LAUNCH_TIMEOUT;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn claim(launched_at: Option<i64>) -> NodeClaim {
        let mut claim = NodeClaim::default();
        claim.metadata.creation_timestamp = Some(Time(at(0)));
        if let Some(second) = launched_at {
            Conditions::of(&mut claim, at(second)).set_true(LAUNCHED);
        }
        claim
    }

    #[track_caller]
    fn check(claim: &NodeClaim, second: i64, expected: &Liveness) {
        assert_eq!(decide(claim, LAUNCH_TIMEOUT.unsigned_abs(), at(second)), *expected, "at {second}");
    }

    #[test]
    fn a_launch_has_five_minutes() {
        let claim = claim(None);
        check(&claim, 0, &Liveness::Waiting(Duration::from_mins(5)));
        check(&claim, 299, &Liveness::Waiting(Duration::from_secs(1)));
        check(&claim, 300, &Liveness::GivenUp("launch_timeout"));
        check(&claim, 3600, &Liveness::GivenUp("launch_timeout"));
    }

    #[test]
    fn a_launch_can_be_given_another_time() {
        let claim = claim(None);
        assert_eq!(
            decide(&claim, Duration::from_mins(10), at(300)),
            Liveness::Waiting(Duration::from_mins(5))
        );
        assert_eq!(decide(&claim, Duration::from_mins(10), at(600)), Liveness::GivenUp("launch_timeout"));
    }

    #[test]
    fn a_node_has_fifteen_minutes_from_the_creation_of_its_claim() {
        let claim = claim(Some(60));
        check(&claim, 60, &Liveness::Waiting(Duration::from_mins(14)));
        check(&claim, 899, &Liveness::Waiting(Duration::from_secs(1)));
        check(&claim, 900, &Liveness::GivenUp("registration_timeout"));
    }

    #[test]
    fn time_counts_from_the_last_transition_of_the_condition() {
        let mut claim = claim(Some(60));
        let mut conditions = Conditions::of(&mut claim, at(100));
        conditions.set(REGISTERED, ConditionStatus::False, "MultipleNodesFound", "");
        check(&claim, 999, &Liveness::Waiting(Duration::from_secs(1)));
        check(&claim, 1000, &Liveness::GivenUp("registration_timeout"));
    }

    #[test]
    fn a_registered_claim_is_left_alone() {
        let mut claim = claim(Some(60));
        Conditions::of(&mut claim, at(100)).set_true(REGISTERED);
        check(&claim, 1_000_000, &Liveness::Alive);
    }
}
