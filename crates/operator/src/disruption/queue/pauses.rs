//! Pools whose nodes could not be replaced are left alone for a while.

use std::collections::BTreeMap;

use api::nodepool::DisruptionReason;
use jiff::{SignedDuration, Timestamp};

use crate::disruption::Reason;

/// How long a pool is left alone after a first failure; twice as long after each further one.
const FIRST: SignedDuration = SignedDuration::from_mins(1);
/// How long at most.
const LAST: SignedDuration = SignedDuration::from_mins(10);

#[derive(Clone, Copy, Debug)]
struct Pause {
    wait: SignedDuration,
    until: Timestamp,
}

/// Pools that are left alone, each for what failed.
#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeMap<(Box<str>, &'static str), Pause>);

impl Pauses {
    /// Nodes of a pool could not be disrupted. What is already paused is not paused for longer: several nodes that
    /// fail together are one failure.
    pub(super) fn failed(&mut self, pool: &str, reason: Reason, now: Timestamp) {
        // What costs or saves money has its own patience.
        if !matches!(reason.0, DisruptionReason::Drifted | DisruptionReason::Unhealthy) {
            return;
        }
        let known = self.0.get(&(pool.into(), reason.text()));
        if known.is_some_and(|pause| now < pause.until) {
            return;
        }
        let wait = known.map_or(FIRST, |pause| (pause.wait * 2).min(LAST));
        let until = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        self.0.insert((pool.into(), reason.text()), Pause { wait, until });
    }

    /// A node of a pool was disrupted as it should be.
    pub(super) fn succeeded(&mut self, pool: &str, reason: Reason) {
        self.0.remove(&(pool.into(), reason.text()));
    }

    /// Whether nodes of a pool are left alone.
    pub(super) fn is_paused(&self, pool: &str, reason: Reason, now: Timestamp) -> bool {
        self.0.get(&(pool.into(), reason.text())).is_some_and(|pause| now < pause.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIFTED: Reason = Reason(DisruptionReason::Drifted);

    #[test]
    fn a_pool_is_left_alone_for_longer_each_time_and_ten_minutes_at_most() {
        let mut pauses = Pauses::default();
        let mut now = Timestamp::UNIX_EPOCH;
        for minutes in [1, 2, 4, 8, 10, 10] {
            pauses.failed("p", DRIFTED, now);
            // Several nodes that fail together are one failure.
            pauses.failed("p", DRIFTED, now);
            let wait = SignedDuration::from_mins(minutes);
            assert!(pauses.is_paused("p", DRIFTED, now + wait - SignedDuration::from_secs(1)));
            now += wait;
            assert!(!pauses.is_paused("p", DRIFTED, now), "{minutes}");
        }
        pauses.succeeded("p", DRIFTED);
        pauses.failed("p", DRIFTED, now);
        assert!(!pauses.is_paused("p", DRIFTED, now + SignedDuration::from_mins(1)));
    }

    #[test]
    fn other_pools_and_reasons_go_on() {
        let (mut pauses, now) = (Pauses::default(), Timestamp::UNIX_EPOCH);
        let empty = Reason(DisruptionReason::Empty);
        pauses.failed("p", DRIFTED, now);
        pauses.failed("p", empty, now);
        assert!(pauses.is_paused("p", DRIFTED, now));
        assert!(!pauses.is_paused("q", DRIFTED, now) && !pauses.is_paused("p", empty, now));
    }
}
