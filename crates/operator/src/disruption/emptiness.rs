//! Removes nodes without pods.

use std::collections::BTreeSet;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::CONSOLIDATABLE;
use api::names::metrics::DISRUPTION_FAILED_VALIDATIONS;
use api::names::values::CONSOLIDATION_EMPTY;
use api::nodepool::DisruptionReason;
use cluster::state::{Consolidated, State};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::Error;

use super::budget::{self, Budgets};
use super::candidate::{self, Candidate};
use super::command::Command;
use super::{Class, Invalid, Method, Pass, Reason};

const REASON: Reason = Reason(DisruptionReason::Empty);
/// How long a node must stay empty before it goes.
const PATIENCE: Duration = Duration::from_secs(15);

/// Removes nodes without pods.
#[derive(Debug, Default)]
pub(super) struct Emptiness {
    /// What the cluster was like when nothing was found.
    nothing_at: Mutex<Option<Consolidated>>,
}

/// Nodes to be removed.
#[derive(Debug, Default)]
struct Chosen {
    nodes: Vec<Candidate>,
    /// How many would be removed if a budget allowed it.
    held_back: usize,
}

/// Those that save most first, as far as budgets allow.
fn choose(mut candidates: Vec<Candidate>, budgets: &mut Budgets) -> Chosen {
    candidate::by_savings(&mut candidates);
    let mut chosen = Chosen::default();
    for candidate in candidates {
        if budgets.get_mut(candidate.pool_name()).is_some_and(budget::Budget::take) {
            chosen.nodes.push(candidate);
        } else {
            chosen.held_back += 1;
        }
    }
    chosen
}

/// What is left of some nodes after a while.
#[derive(Debug)]
struct Left {
    nodes: Vec<Candidate>,
    failed: usize,
    why: &'static str,
}

/// Those of `before` that are still candidates, as far as budgets allow.
fn still(before: &[Candidate], now: Vec<Candidate>, budgets: &mut Budgets) -> Left {
    let names: BTreeSet<&str> = before.iter().map(Candidate::name).collect();
    let mut left: Vec<Candidate> = now.into_iter().filter(|it| names.contains(it.name())).collect();
    if left.is_empty() {
        let why = "candidates are no longer valid";
        return Left { nodes: left, failed: before.len(), why };
    }
    let count = left.len();
    left.retain(|it| budgets.get_mut(it.pool_name()).is_some_and(budget::Budget::take));
    Left { failed: count - left.len(), nodes: left, why: "a budget no longer allows the disruption" }
}

impl Method for Emptiness {
    fn reason(&self) -> Reason {
        REASON
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

    fn compute<'a>(
        &'a self,
        pass: Pass<'a>,
        candidates: Vec<Candidate>,
        mut budgets: Budgets,
    ) -> BoxFuture<'a, Result<Vec<Command>, Error>> {
        async move {
            let seen = {
                let state = pass.context.cluster.read();
                let last = *self.nothing_at.lock();
                if last.is_some_and(|last| state.is_consolidated(last, pass.now)) {
                    return Ok(Vec::new());
                }
                state.consolidated_at(pass.now)
            };
            let chosen = choose(candidates, &mut budgets);
            if chosen.nodes.is_empty() {
                // A budget may allow more at any time.
                *self.nothing_at.lock() = (chosen.held_back == 0).then_some(seen);
                return Ok(Vec::new());
            }
            Ok(vec![Command::delete(REASON, CONSOLIDATION_EMPTY, chosen.nodes, pass.now)])
        }
        .boxed()
    }

    fn validate<'a>(
        &'a self,
        pass: Pass<'a>,
        command: Command,
    ) -> BoxFuture<'a, Result<Result<Command, Invalid>, Error>> {
        async move {
            let (now, mut budgets) = {
                let state = pass.context.cluster.read();
                let found = candidate::find(&state, pass.search).candidates.into_iter();
                let now: Vec<Candidate> = found.filter(|it| self.accepts(&state, it).is_ok()).collect();
                (now, budget::budgets(&state, REASON.0, pass.now))
            };
            let left = still(&command.candidates, now, &mut budgets);
            #[expect(clippy::cast_precision_loss, reason = "nobody has that many nodes")]
            let failed = left.failed as f64;
            if left.failed > 0 {
                pass.context.metrics.add(&DISRUPTION_FAILED_VALIDATIONS, &[CONSOLIDATION_EMPTY], failed);
            }
            Ok(if left.nodes.is_empty() {
                Err(Invalid(left.why.to_owned()))
            } else {
                Ok(Command { candidates: left.nodes, ..command })
            })
        }
        .boxed()
    }
}
