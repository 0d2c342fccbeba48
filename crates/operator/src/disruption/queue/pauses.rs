//! What could not be replaced is left alone for a while: a pool, or a broken node.

use std::collections::BTreeMap;

use api::nodepool::DisruptionReason;
use jiff::{SignedDuration, Timestamp};

use crate::disruption::Reason;
use crate::disruption::candidate::Candidate;
use crate::disruption::command::Command;

/// How long something is left alone after a first failure; twice as long after each further one.
const FIRST: SignedDuration = SignedDuration::from_mins(1);
/// How long at most.
const LAST: SignedDuration = SignedDuration::from_mins(10);
/// After so long without another failure, the next one is a first one.
const FORGOTTEN: SignedDuration = SignedDuration::from_hours(1);

#[derive(Clone, Copy, Debug)]
struct Pause {
    wait: SignedDuration,
    until: Timestamp,
}

/// What is left alone, each for what failed.
#[derive(Debug, Default)]
pub(super) struct Pauses(BTreeMap<(Box<str>, &'static str), Pause>);

/// What is left alone if a candidate cannot be disrupted: its pool, because what does not come up for one node comes
/// up for no other, or that node alone where others may be in need.
fn subject(candidate: &Candidate, reason: Reason) -> Option<&str> {
    match reason.0 {
        DisruptionReason::Drifted | DisruptionReason::Underutilized => Some(candidate.pool_name()),
        DisruptionReason::Unhealthy => Some(&candidate.provider_id),
        // Nothing is launched for what is empty.
        DisruptionReason::Empty => None,
    }
}

impl Pauses {
    /// Nodes could not be disrupted. What is already paused is not paused for longer: several nodes that fail
    /// together are one failure.
    pub(super) fn failed(&mut self, command: &Command, now: Timestamp) {
        self.0.retain(|_, pause| now.duration_since(pause.until) < FORGOTTEN);
        // Where nothing was to be launched, nothing was spent.
        if command.replacements.is_empty() {
            return;
        }
        for subject in command.candidates.iter().filter_map(|it| subject(it, command.reason)) {
            self.pause(subject, command.reason, now);
        }
    }

    /// A node could not even be marked. Others can be.
    pub(super) fn unmarked(&mut self, candidate: &Candidate, reason: Reason, now: Timestamp) {
        self.pause(&candidate.provider_id, reason, now);
    }

    fn pause(&mut self, subject: &str, reason: Reason, now: Timestamp) {
        let known = self.0.get(&(subject.into(), reason.text()));
        if known.is_some_and(|pause| now < pause.until) {
            return;
        }
        let wait = known.map_or(FIRST, |pause| (pause.wait * 2).min(LAST));
        let until = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
        self.0.insert((subject.into(), reason.text()), Pause { wait, until });
    }

    /// Nodes were disrupted as they should be.
    pub(super) fn succeeded(&mut self, command: &Command) {
        // That others were only deleted says nothing about what comes up.
        if command.replacements.is_empty() {
            return;
        }
        for subject in command.candidates.iter().filter_map(|it| subject(it, command.reason)) {
            self.0.remove(&(subject.into(), command.reason.text()));
        }
    }

    /// Whether a node is left alone.
    pub(super) fn is_paused(&self, candidate: &Candidate, reason: Reason, now: Timestamp) -> bool {
        let subjects = [subject(candidate, reason), Some(&*candidate.provider_id)];
        subjects.into_iter().flatten().any(|subject| self.holds(subject, reason, now))
    }

    fn holds(&self, subject: &str, reason: Reason, now: Timestamp) -> bool {
        self.0.get(&(subject.into(), reason.text())).is_some_and(|pause| now < pause.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disruption::command::tests::{command, launch};

    const DRIFTED: Reason = Reason(DisruptionReason::Drifted);

    #[test]
    fn a_pool_is_left_alone_for_longer_each_time_and_ten_minutes_at_most() {
        let mut pauses = Pauses::default();
        let mut now = Timestamp::UNIX_EPOCH;
        for minutes in [1, 2, 4, 8, 10, 10] {
            pauses.pause("p", DRIFTED, now);
            // Several nodes that fail together are one failure.
            pauses.pause("p", DRIFTED, now);
            let wait = SignedDuration::from_mins(minutes);
            assert!(pauses.holds("p", DRIFTED, now + wait - SignedDuration::from_secs(1)));
            now += wait;
            assert!(!pauses.holds("p", DRIFTED, now), "{minutes}");
        }
    }

    #[test]
    fn where_nothing_is_launched_nothing_fails_or_succeeds() {
        let now = Timestamp::UNIX_EPOCH;
        let replaced = Command { reason: DRIFTED, ..command(1, vec![launch(&[], &[])]) };
        let deleted = Command { reason: DRIFTED, ..command(1, Vec::new()) };
        let mut pauses = Pauses::default();
        pauses.failed(&deleted, now);
        assert!(!pauses.holds("p", DRIFTED, now));
        pauses.failed(&replaced, now);
        pauses.succeeded(&deleted);
        assert!(pauses.holds("p", DRIFTED, now));
        pauses.succeeded(&replaced);
        assert!(!pauses.holds("p", DRIFTED, now));
    }

    #[test]
    fn other_pools_and_reasons_go_on() {
        let (mut pauses, now) = (Pauses::default(), Timestamp::UNIX_EPOCH);
        pauses.pause("p", DRIFTED, now);
        assert!(pauses.holds("p", DRIFTED, now));
        let unhealthy = Reason(DisruptionReason::Unhealthy);
        assert!(!pauses.holds("q", DRIFTED, now) && !pauses.holds("p", unhealthy, now));
    }
}
