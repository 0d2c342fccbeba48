//! What a way to disrupt nodes has to say.

use std::time::Duration;

use api::nodeclaim::NodeClaim;
use api::nodepool::DisruptionReason;
use cluster::state::State;
use jiff::Timestamp;

use super::budget::Budgets;
use super::candidate::Candidate;
use super::command::Command;
use super::decision::{Decision, Invalid, Notice};
use super::scene::Scene;
use super::stay::Stay;

/// Why nodes are disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) DisruptionReason);

impl Reason {
    /// As conditions and events write it.
    pub(crate) const fn text(self) -> &'static str {
        match self.0 {
            DisruptionReason::Underutilized => "Underutilized",
            DisruptionReason::Empty => "Empty",
            DisruptionReason::Drifted => "Drifted",
            DisruptionReason::Unhealthy => "Unhealthy",
        }
    }

    /// As metrics write it.
    pub(crate) const fn lower(self) -> &'static str {
        use api::names::values::{DRIFTED, EMPTY, UNDERUTILIZED, UNHEALTHY};
        match self.0 {
            DisruptionReason::Underutilized => UNDERUTILIZED,
            DisruptionReason::Empty => EMPTY,
            DisruptionReason::Drifted => DRIFTED,
            DisruptionReason::Unhealthy => UNHEALTHY,
        }
    }
}

/// What can keep a node from being disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Its pods can.
    Graceful,
    /// Its pods can, unless the node has a grace period.
    Eventual,
    /// Neither its pods, which the method looks at, nor protection from disruption, nor that it is not
    /// initialised.
    Repair,
}

/// One way to disrupt nodes. It decides without a clock and without writing anything, so it can be asked about any
/// state, also one that was read from a file.
pub(crate) trait Method: Send + Sync {
    /// Why nodes are disrupted.
    fn reason(&self) -> Reason;

    /// What can keep a node from being disrupted.
    fn class(&self) -> Class;

    /// How metrics tell kinds of consolidation apart; empty for anything else.
    fn consolidation_type(&self) -> &'static str;

    /// How long what was decided must hold before it is done.
    fn patience(&self) -> Duration;

    /// Whether what it has decided about nodes of a pool must come to rest before it decides about others of it.
    fn settles(&self) -> bool {
        false
    }

    /// Whether a node with a claim like this can be accepted at all, so that nobody need look at its pods otherwise.
    fn concerns(&self, _claim: &NodeClaim) -> bool {
        true
    }

    /// Whether the method could do something about a candidate; why not, unless it is none of its business.
    fn accepts(&self, state: &State, candidate: &Candidate) -> Result<(), Option<Stay>>;

    /// What users are told besides, of nodes that are no candidates.
    fn notices(&self, _state: &State, _now: Timestamp) -> Vec<Notice> {
        Vec::new()
    }

    /// What is to be done about candidates that were accepted. What it decides it takes from the budgets. Where it
    /// decides nothing, it says of every candidate why it stays.
    ///
    /// Several commands must be possible together; who has only looked at one leaves the others for the next
    /// time, which comes at once.
    fn decide(&self, scene: &Scene, candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision;

    /// What of it is still to be done after a while, given what is a candidate then and what budgets allow then.
    /// Methods without patience are not asked.
    fn validate(
        &self,
        _scene: &Scene,
        command: Command,
        _candidates: Vec<Candidate>,
        _budgets: &mut Budgets,
    ) -> Result<Command, Invalid> {
        Ok(command)
    }
}
