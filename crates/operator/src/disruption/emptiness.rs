//! Removes nodes without pods.

use std::collections::BTreeSet;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::CONSOLIDATABLE;
use api::names::values::CONSOLIDATION_EMPTY;
use api::nodepool::DisruptionReason;
use cluster::state::State;

use super::budget::{self, Budgets};
use super::candidate::{self, Candidate};
use super::command::Command;
use super::decision::{Cause, Decision, Invalid};
use super::scene::Scene;
use super::{Class, Method, Reason};

/// How long a node must stay empty before it goes.
const PATIENCE: Duration = Duration::from_secs(15);

/// Removes nodes without pods.
#[derive(Debug)]
pub(super) struct Emptiness;

impl Method for Emptiness {
    fn reason(&self) -> Reason {
        Reason(DisruptionReason::Empty)
    }

    fn class(&self) -> Class {
        Class::Graceful
    }

    fn consolidation_type(&self) -> &'static str {
        CONSOLIDATION_EMPTY
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn accepts(&self, state: &State, candidate: &Candidate) -> Result<(), Option<String>> {
        let spec = &candidate.pool.spec;
        if spec.replicas.is_some() {
            return Err(None);
        }
        if spec.disruption.consolidate_after.duration().is_none() {
            let pool = candidate.pool_name();
            return Err(Some(format!("NodePool {pool:?} has consolidation disabled")));
        }
        if state.buffer_pods(&candidate.provider_id) > 0 {
            return Err(Some(format!("Node {:?} has buffer pods", candidate.name())));
        }
        let goes = candidate.is_empty() && candidate.claim.is_true(CONSOLIDATABLE);
        if goes { Ok(()) } else { Err(None) }
    }

    /// Those that save most first, as far as budgets allow, all of them together.
    fn decide(&self, scene: &Scene, mut candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision {
        candidate::by_savings(&mut candidates);
        let takes = |it: &Candidate| budgets.get_mut(it.pool_name()).is_some_and(budget::Budget::take);
        let (chosen, held_back): (Vec<_>, Vec<_>) = candidates.into_iter().partition(takes);
        if chosen.is_empty() {
            // A budget may allow more at any time.
            return Decision { nothing: held_back.is_empty(), ..Decision::default() };
        }
        Decision { commands: vec![Command::delete(self, chosen, scene.now)], ..Decision::default() }
    }

    /// Those that are still candidates, as far as budgets allow.
    fn validate(
        &self,
        _: &Scene,
        command: Command,
        candidates: Vec<Candidate>,
        budgets: &mut Budgets,
    ) -> Result<Command, Invalid> {
        let names: BTreeSet<&str> = command.candidates.iter().map(Candidate::name).collect();
        let mut left: Vec<Candidate> =
            candidates.into_iter().filter(|it| names.contains(it.name())).collect();
        if left.is_empty() {
            let wrong = format!("validating candidates, {} candidates are no longer valid", names.len());
            return Err(Invalid::new(Cause::Churn, wrong));
        }
        left.retain(|it| budgets.get_mut(it.pool_name()).is_some_and(budget::Budget::take));
        if left.is_empty() {
            let wrong = "validating candidates, a budget no longer allows the disruption";
            return Err(Invalid::new(Cause::Budget, wrong));
        }
        Ok(Command { candidates: left, ..command })
    }
}
