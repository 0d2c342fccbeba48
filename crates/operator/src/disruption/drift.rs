//! Replaces nodes that are no longer what their pool asks for.

use std::collections::BTreeSet;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::DRIFTED;
use api::names::labels;
use api::names::values::{NO_RESERVED_CAPACITY, capacity_type};
use api::nodeclaim::NodeClaim;
use api::nodepool::DisruptionReason;
use cluster::state::State;
use jiff::Timestamp;

use super::budget::Budgets;
use super::candidate::Candidate;
use super::command::{Command, Kind};
use super::decision::Decision;
use super::oracle::Oracle;
use super::scene::{Ask, Scene, Simulated};
use super::stay::Stay;
use super::{Class, Method, Reason};
use crate::text::sentence;

/// Replaces nodes that are no longer what their pool asks for, those that drifted first before the others.
#[derive(Debug)]
pub(super) struct Drift;

impl Method for Drift {
    fn reason(&self) -> Reason {
        Reason(DisruptionReason::Drifted)
    }

    fn class(&self) -> Class {
        Class::Eventual
    }

    fn consolidation_type(&self) -> &'static str {
        ""
    }

    fn patience(&self) -> Duration {
        Duration::ZERO
    }

    fn concerns(&self, claim: &NodeClaim) -> bool {
        claim.is_true(DRIFTED)
    }

    fn accepts(&self, _: &State, candidate: &Candidate) -> Result<(), Option<Stay>> {
        let is_ours = candidate.pool.spec.replicas.is_none() && candidate.claim.is_true(DRIFTED);
        if is_ours { Ok(()) } else { Err(None) }
    }

    /// Nodes that nothing relies on go at once, as far as budgets allow. Of the others one is replaced, because the
    /// next one relies on what this one leaves.
    fn decide(&self, scene: &Scene, mut candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision {
        let mut oracle = None;
        let keeping_room = if scene.has_buffers() && candidates.iter().any(|it| it.pods.is_empty()) {
            oracle.insert(scene.oracle()).keeping_room()
        } else {
            BTreeSet::new()
        };
        let is_needed = |it: &Candidate| !it.pods.is_empty() || keeping_room.contains(&*it.provider_id);
        candidates.sort_by(|a, b| (is_needed(a), order(a)).cmp(&(is_needed(b), order(b))));
        let mut decision = Decision { nothing: true, ..Decision::default() };
        for candidate in candidates {
            let Some(budget) = budgets.get_mut(candidate.pool_name()).filter(|budget| budget.left() > 0)
            else {
                decision.keep(&candidate, Stay::held(&candidate, budgets, self.reason()));
                continue;
            };
            if !is_needed(&candidate) {
                budget.take();
                decision.commands.push(Command::delete(self, vec![candidate], scene.now));
                continue;
            }
            if !decision.commands.is_empty() {
                break;
            }
            match place(oracle.get_or_insert_with(|| scene.oracle()), &candidate) {
                Ok((simulated, kind)) => {
                    if let Some(why) = scene.refusal(&simulated.launches) {
                        // That may be over at any time.
                        decision.nothing = false;
                        decision.keep(&candidate, Stay::Blocked(sentence(&why)));
                        continue;
                    }
                    budget.take();
                    let command = Command::after(self, vec![candidate], simulated, scene.now);
                    decision.commands.push(Command { kind, ..command });
                    break;
                }
                Err(simulated) => {
                    decision.keep(&candidate, Stay::Blocked(sentence(&simulated.summary())));
                }
            }
        }
        decision
    }
}

/// Nodes that drifted first come first; names decide among equals.
fn order(candidate: &Candidate) -> (Timestamp, &str) {
    let since = candidate.claim.condition(DRIFTED).map(|condition| condition.last_transition_time.0);
    (since.unwrap_or(Timestamp::MAX), candidate.name())
}

/// Where the pods of a node go, and in which order; or what is wrong.
fn place(oracle: &mut Oracle<'_>, candidate: &Candidate) -> Result<(Simulated, Kind), Simulated> {
    let goes_first = oracle.scene().settings().gates.terminate_first_drift;
    let going_first = |oracle: &mut Oracle<'_>, ask: &Ask| {
        goes_first.then(|| with_its_own_reservation(oracle, candidate, ask)).flatten()
    };
    // Pods that object have only so much time. Nothing is launched for them before; but there must be something that
    // they can have then, be it what their node leaves.
    if candidate.blocked.is_some() {
        let ask = Ask { blocked_pods: true, ..Ask::default() };
        let all = oracle.without(&[candidate], &ask);
        if !all.is_complete() && going_first(oracle, &ask).is_none() {
            return Err(all);
        }
    }
    let simulated = oracle.without(&[candidate], &Ask::default());
    if simulated.is_complete() {
        return Ok((simulated, Kind::Usual));
    }
    match going_first(oracle, &Ask::default()) {
        Some(own) => {
            Ok((Simulated { launches: Vec::new(), ..own }, Kind::TerminateFirst(NO_RESERVED_CAPACITY)))
        }
        None => Err(simulated),
    }
}

/// The reservation that a node holds.
pub(super) fn reservation<'c>(scene: &Scene, candidate: &'c Candidate) -> Option<&'c str> {
    let key = scene.sets().reservation_id()?;
    let is_reserved = candidate.label(labels::CAPACITY_TYPE) == capacity_type::RESERVED;
    Some(candidate.label(key)).filter(|id| is_reserved && !id.is_empty())
}

/// What would happen if a node gave its reservation back before anything is launched; nothing if it holds none, or
/// if that does not help.
pub(super) fn with_its_own_reservation(
    oracle: &mut Oracle<'_>,
    candidate: &Candidate,
    ask: &Ask,
) -> Option<Simulated> {
    let credit = Some(reservation(oracle.scene(), candidate)?.into());
    let simulated = oracle.without(&[candidate], &Ask { credit, ..ask.clone() });
    simulated.is_complete().then_some(simulated)
}
