//! Who may have the lease.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::LEASE;

/// What a lease says.
pub(super) type Spec = LeaseSpec;

/// What to do about the lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Somebody else has it.
    Wait,
    /// There is none; this should be it.
    Create(Box<LeaseSpec>),
    /// It is ours, or may become ours; this should be it.
    Update(Box<LeaseSpec>),
}

/// Decides about the lease, which has looked the same since `since`, for the candidate `identity`.
pub fn decide(identity: &str, lease: Option<&Lease>, since: Timestamp, now: Timestamp) -> Action {
    let seconds = i32::try_from(LEASE.as_secs()).unwrap_or(i32::MAX);
    let fresh = Spec {
        holder_identity: Some(identity.to_owned()),
        lease_duration_seconds: Some(seconds),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(0),
        ..Spec::default()
    };
    let Some(lease) = lease else { return Action::Create(Box::new(fresh)) };
    let old = lease.spec.clone().unwrap_or_default();
    if holder(&old) == identity {
        return Action::Update(Box::new(Spec {
            acquire_time: old.acquire_time,
            lease_transitions: old.lease_transitions,
            ..fresh
        }));
    }
    if !holder(&old).is_empty() && now.duration_since(since).unsigned_abs() < duration(&old) {
        return Action::Wait;
    }
    let transitions = old.lease_transitions.unwrap_or_default().saturating_add(1);
    Action::Update(Box::new(Spec { lease_transitions: Some(transitions), ..fresh }))
}

/// The lease given back, if it is ours.
pub(super) fn released(identity: &str, lease: &Lease, now: Timestamp) -> Option<Box<Spec>> {
    let old = lease.spec.as_ref().filter(|old| holder(old) == identity)?;
    Some(Box::new(Spec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: old.lease_transitions,
        ..Spec::default()
    }))
}

/// Whether nobody has the lease.
pub(super) fn is_free(lease: &Lease) -> bool {
    lease.spec.as_ref().is_none_or(|spec| holder(spec).is_empty())
}

fn holder(spec: &Spec) -> &str {
    spec.holder_identity.as_deref().unwrap_or_default()
}

fn duration(spec: &Spec) -> Duration {
    let seconds = spec.lease_duration_seconds.unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn lease(holder: &str, duration: i32) -> Lease {
        let spec = Spec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(duration),
            acquire_time: Some(MicroTime(at(1))),
            // From a clock that is a day ahead.
            renew_time: Some(MicroTime(at(86_400))),
            lease_transitions: Some(3),
            ..Spec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    /// What is done about the lease in a few words.
    fn done(lease: Option<&Lease>, since: i64, now: i64) -> String {
        let say = |what: &str, spec: &Spec| {
            let second = |time: &Option<MicroTime>| time.as_ref().map_or(0, |time| time.0.as_second());
            let (acquired, renewed) = (second(&spec.acquire_time), second(&spec.renew_time));
            let transitions = spec.lease_transitions.unwrap_or_default();
            format!("{what} {} {acquired} {renewed} {transitions}", holder(spec))
        };
        match decide("me", lease, at(since), at(now)) {
            Action::Wait => "wait".to_owned(),
            Action::Create(spec) => say("create", &spec),
            Action::Update(spec) => say("update", &spec),
        }
    }

    #[test]
    fn a_lease_that_does_not_exist_is_created() {
        assert_eq!(done(None, 0, 100), "create me 100 100 0");
    }

    #[test]
    fn our_lease_is_renewed_whatever_its_age() {
        assert_eq!(done(Some(&lease("me", 15)), 10, 12), "update me 1 12 3");
        assert_eq!(done(Some(&lease("me", 15)), 10, 1000), "update me 1 1000 3");
    }

    #[test]
    fn the_lease_of_another_is_ours_when_it_has_not_changed_for_its_duration() {
        assert_eq!(done(Some(&lease("other", 15)), 100, 114), "wait");
        assert_eq!(done(Some(&lease("other", 15)), 100, 115), "update me 115 115 4");
        assert_eq!(done(Some(&lease("other", 60)), 100, 115), "wait");
    }

    #[test]
    fn a_released_or_empty_lease_is_ours_at_once() {
        assert_eq!(done(Some(&lease("", 15)), 100, 100), "update me 100 100 4");
        assert_eq!(done(Some(&Lease::default()), 100, 100), "update me 100 100 1");
        assert!(is_free(&lease("", 1)) && is_free(&Lease::default()) && !is_free(&lease("other", 1)));
    }

    #[test]
    fn only_our_own_lease_is_released() {
        let spec = released("me", &lease("me", 15), at(50)).unwrap();
        assert_eq!(
            (holder(&spec), spec.lease_duration_seconds, spec.lease_transitions),
            ("", Some(1), Some(3))
        );
        assert_eq!(released("me", &lease("other", 15), at(50)), None);
    }
}
