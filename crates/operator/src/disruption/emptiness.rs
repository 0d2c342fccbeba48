//! Removes nodes without pods.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::names::values::CONSOLIDATION_EMPTY;
use api::nodepool::DisruptionReason;
use cluster::state::{State, Watched as _};

use super::budget::{self, Budgets};
use super::candidate::{self, Candidate};
use super::command::Command;
use super::decision::{Cause, Decision, Invalid};
use super::scene::Scene;
use super::stay::Stay;
use super::{Class, Method, Reason};
use crate::text::some;

/// How long a node must stay empty before it goes.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many pods a log line names.
const SHOWN: usize = 5;

/// Warns of pods that count for nothing, so that their node is removed without a place for them elsewhere.
fn warn(candidate: &Candidate) {
    if candidate.pods.is_empty() {
        return;
    }
    let pods: Vec<String> = candidate.pods.iter().map(|pod| pod.key().to_string()).collect();
    let message = "removing a node as empty on which pods run that cost nothing to evict";
    tracing::warn!(Node = candidate.name(), pods = some(&pods, SHOWN), "{message}");
}

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

    fn accepts(&self, state: &State, candidate: &Candidate) -> Result<(), Option<Stay>> {
        let spec = &candidate.pool.spec;
        if spec.replicas.is_some() {
            return Err(Some(Stay::Static(Arc::clone(&candidate.pool))));
        }
        if spec.disruption.consolidate_after.duration().is_none() {
            let pool = candidate.pool_name();
            let why = format!("NodePool {pool:?} has consolidation disabled");
            return Err(Some(Stay::Unconsolidatable(why)));
        }
        if state.buffer_pods(&candidate.provider_id) > 0 {
            return Err(Some(Stay::Buffer));
        }
        if !candidate.is_empty() {
            return Err(None);
        }
        candidate.check_quiet().map_err(Some)
    }

    /// Those that save most first, as far as budgets allow, all of them together.
    fn decide(&self, scene: &Scene, mut candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision {
        candidate::by_savings(&mut candidates);
        let takes = |it: &Candidate| budgets.get_mut(it.pool_name()).is_some_and(budget::Budget::take);
        let (chosen, held_back): (Vec<_>, Vec<_>) = candidates.into_iter().partition(takes);
        let mut decision = Decision::default();
        for candidate in &held_back {
            decision.keep(candidate, Stay::held(candidate, budgets, self.reason()));
        }
        if chosen.is_empty() {
            decision.nothing = true;
        } else {
            decision.commands.push(Command::delete(self, chosen, scene.now));
        }
        decision
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
        left.iter().for_each(warn);
        Ok(Command { candidates: left, ..command })
    }
}
