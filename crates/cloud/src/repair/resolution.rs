//! What is to be done about a node at a time.

use std::cmp::Reverse;
use std::time::Duration;

use cluster::objects::Node;
use cluster::objects::others::NodeCondition;
use jiff::Timestamp;

use super::Policy;
use crate::provider::{RepairAction, RepairPolicy};

/// After so many minutes a broken node is one priority more urgent.
const MINUTES_PER_RANK: f64 = 30.0;

/// A policy that a node falls under because of one of its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Match<'a> {
    /// The policy.
    pub policy: &'a RepairPolicy,
    /// The type of the condition.
    pub condition: &'a str,
    /// The status of the condition.
    pub status: &'a str,
    /// The reason of the condition.
    pub reason: &'a str,
    /// Whether no pattern fits the reason, so that the policy for all else counts.
    pub is_fallback: bool,
    /// When something is done about it.
    pub eligible_at: Timestamp,
    rank: u32,
}

impl<'a> Match<'a> {
    pub(super) fn new(
        node: &'a Node,
        condition: &'a NodeCondition,
        policy: &'a Policy,
        is_fallback: bool,
    ) -> Self {
        // A node cannot have been broken before it was there.
        let since = condition.last_transition_time.as_ref().max(node.metadata.creation_timestamp.as_ref());
        let since = since.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        Self {
            policy: &policy.rule,
            condition: &condition.kind,
            status: &condition.status,
            reason: &condition.reason,
            is_fallback,
            eligible_at: after(since, policy.rule.toleration),
            rank: policy.rank,
        }
    }

    /// When something is done about it, if nothing is done about conditions that are older than a time.
    fn due(&self, not_before: Option<Timestamp>) -> Timestamp {
        let earliest = not_before.map(|time| after(time, self.policy.toleration));
        earliest.map_or(self.eligible_at, |earliest| earliest.max(self.eligible_at))
    }
}

fn after(time: Timestamp, wait: Duration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// How long a node may be drained because of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// How long.
    pub within: Duration,
    /// The condition whose policy says so.
    pub condition: Box<str>,
}

/// What is to be done about a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// What is done.
    pub action: RepairAction,
    /// The type of the condition that it is done for.
    pub condition: Box<str>,
    /// The status of that condition.
    pub status: Box<str>,
    /// The reason of that condition.
    pub reason: Box<str>,
    /// The pattern of the policy that decides.
    pub pattern: &'static str,
    /// Whether that is the policy for all else.
    pub is_fallback: bool,
    /// Since when it may be done.
    pub eligible_at: Timestamp,
    /// How long the node may be drained, if a policy says so.
    pub bound: Option<Bound>,
    /// How urgent it is.
    pub score: f64,
}

/// What is to be done about a node at a time, if anything. Nothing is done about conditions that have not lasted
/// as long as they are tolerated since `not_before`.
pub fn resolve(matches: &[Match<'_>], not_before: Option<Timestamp>, now: Timestamp) -> Option<Resolution> {
    let due = matches.iter().map(|it| (it, it.due(not_before))).filter(|(_, due)| *due <= now);
    // The last of equals counts, so the first of the conditions comes last.
    let due: Vec<(&Match<'_>, Timestamp)> = due.rev().collect();
    let (decides, eligible_at) = due.iter().max_by_key(|(it, due)| {
        (it.policy.action, it.policy.priority, Reverse(*due), Reverse(it.condition))
    })?;
    let bounds = due.iter().filter_map(|(it, due)| Some((it.policy.termination_grace_period?, *due, it)));
    let bound = bounds.min_by_key(|(within, due, it)| (*within, *due, it.condition));
    let score = due.iter().map(|(it, due)| {
        f64::from(it.rank) + now.duration_since(*due).as_secs_f64() / 60.0 / MINUTES_PER_RANK
    });
    Some(Resolution {
        action: decides.policy.action,
        condition: decides.condition.into(),
        status: decides.status.into(),
        reason: decides.reason.into(),
        pattern: decides.policy.reason_pattern,
        is_fallback: decides.is_fallback,
        eligible_at: *eligible_at,
        bound: bound.map(|(within, _, it)| Bound { within, condition: it.condition.into() }),
        score: score.fold(0.0, f64::max),
    })
}
