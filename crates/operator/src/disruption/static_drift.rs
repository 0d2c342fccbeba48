//! Replaces drifted nodes of pools with a fixed number of nodes, one for one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::READY;
use api::names::conditions::node_claim::DRIFTED;
use api::names::labels;
use api::names::values::{NO_RESERVED_CAPACITY, STATIC_AT_LIMIT, capacity_type};
use api::nodeclaim::NodeClaim;
use api::nodepool::{DisruptionReason, NodePool};
use cluster::instance_types::Wanted;
use cluster::payload::bare_node_claim;
use cluster::state::State;

use super::budget::{Budget, Budgets};
use super::candidate::Candidate;
use super::command::Command;
use super::decision::Decision;
use super::drift::reservation;
use super::launch::Launch;
use super::scene::{Scene, Simulated};
use super::{Class, Method, Reason};
use crate::provisioner::outcome::NewClaim;
use crate::static_capacity::node_limit;

/// What users are told whose pool has no room for a replacement.
pub(super) const AT_LIMIT: &str = "static NodePool is at its node limit and cannot stage a replacement";
/// What users are told whose reservations are used up.
pub(super) const RESERVATIONS_FULL: &str =
    "static NodePool's capacity reservations are full and cannot stage a replacement";

/// Replaces drifted nodes of pools with a fixed number of nodes, one for one.
#[derive(Debug)]
pub(super) struct StaticDrift;

impl Method for StaticDrift {
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

    fn accepts(&self, _: &State, candidate: &Candidate) -> Result<(), Option<String>> {
        let is_ours = candidate.pool.spec.replicas.is_some() && candidate.claim.is_true(DRIFTED);
        if is_ours { Ok(()) } else { Err(None) }
    }

    fn decide(&self, scene: &Scene, candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision {
        let mut by_pool = BTreeMap::<String, Vec<Candidate>>::new();
        for candidate in candidates {
            by_pool.entry(candidate.pool_name().to_owned()).or_default().push(candidate);
        }
        let mut decision = Decision::default();
        for (pool, candidates) in by_pool {
            let Some(budget) = budgets.get_mut(pool.as_str()) else { continue };
            let wanted = budget.left().min(candidates.len());
            if wanted == 0 || is_over_scaled(scene.state(), &candidates[0].pool) {
                continue;
            }
            let before = decision.commands.len();
            self.decide_pool(scene, candidates, wanted, &mut decision);
            take(budget, decision.commands.len() - before);
        }
        decision
    }
}

impl StaticDrift {
    /// Replaces at most so many nodes of one pool.
    fn decide_pool(
        &self,
        scene: &Scene,
        mut candidates: Vec<Candidate>,
        wanted: usize,
        decision: &mut Decision,
    ) {
        let pool = Arc::clone(&candidates[0].pool);
        let goes_first = scene.settings().gates.terminate_first_drift;
        let offered = goes_first.then(|| full_reservations(scene, &pool)).flatten();
        if let Some(offered) = offered {
            let holds = |it: &Candidate| reservation(scene, it).is_some_and(|id| offered.contains(id));
            candidates.sort_by_key(|it| !holds(it));
            for candidate in candidates.into_iter().take(wanted) {
                if holds(&candidate) && can_come_back(&pool) {
                    decision.commands.push(self.first(scene, candidate, NO_RESERVED_CAPACITY));
                } else {
                    decision.notices.extend(candidate.blocked_notices(RESERVATIONS_FULL));
                }
            }
            return;
        }
        let room = room(scene.state(), &pool);
        if room == 0 {
            for candidate in candidates.into_iter().take(wanted) {
                if goes_first && can_come_back(&pool) {
                    decision.commands.push(self.first(scene, candidate, STATIC_AT_LIMIT));
                } else {
                    decision.notices.extend(candidate.blocked_notices(AT_LIMIT));
                }
            }
            return;
        }
        for candidate in candidates.into_iter().take(wanted.min(room)) {
            decision.commands.extend(one_for_one(self, scene, candidate));
        }
    }

    fn first(&self, scene: &Scene, candidate: Candidate, why: &'static str) -> Command {
        Command::terminate_first(self, candidate, Simulated::default(), why, scene.now)
    }
}

fn take(budget: &mut Budget, count: usize) {
    for _ in 0..count {
        budget.take();
    }
}

/// Replaces a node by another one of its pool, whatever its pods ask for. A pool whose template cannot be understood,
/// which its conditions say, gets none.
pub(super) fn one_for_one(method: &dyn Method, scene: &Scene, candidate: Candidate) -> Option<Command> {
    let new = NewClaim::bare(Arc::clone(&candidate.pool), scene.sets()).ok()?;
    let launch = Launch::new(new, Arc::from([]), Arc::clone(scene.sets()));
    let simulated = Simulated { launches: vec![launch], ..Simulated::default() };
    Some(Command::after(method, vec![candidate], simulated, scene.now))
}

/// Whether a pool has more nodes than it should, so that some of them go anyway.
pub(super) fn is_over_scaled(state: &State, pool: &NodePool) -> bool {
    let claims = state.pool_claims(pool.metadata.name.as_deref().unwrap_or_default());
    let staying = claims.active.len() + claims.pending_disruption.len();
    i64::try_from(staying).unwrap_or(i64::MAX) > pool.spec.replicas.unwrap_or_default()
}

/// How many more nodes a pool may have, those included that are about to go.
pub(super) fn room(state: &State, pool: &NodePool) -> usize {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let Some(limit) = node_limit(pool) else { return usize::MAX };
    let taken = state.pool_claims(name).len() as u64 + state.reserved(name);
    usize::try_from(limit.saturating_sub(taken)).unwrap_or(usize::MAX)
}

/// Whether a pool gets another node for one that goes.
pub(super) fn can_come_back(pool: &NodePool) -> bool {
    pool.is_true(READY) && pool.metadata.deletion_timestamp.is_none()
}

/// The reservations that a pool depends on, if all of them are used up and it can have nothing else.
pub(super) fn full_reservations<'s>(scene: &'s Scene, pool: &NodePool) -> Option<BTreeSet<&'s str>> {
    let key = scene.sets().reservation_id()?;
    let types = scene.types().get(pool.metadata.name.as_deref().unwrap_or_default())?;
    let template = bare_node_claim(pool, scene.sets()).ok()?.spec.requirements;
    let mut wanted = Wanted::new(&template, scene.sets()).ok()?;
    let mut offered = BTreeSet::new();
    let mut is_any = false;
    for it in types.iter() {
        if !wanted.admits(&it.requirements) {
            continue;
        }
        for offering in &it.offerings {
            if !wanted.admits(&offering.requirements) {
                continue;
            }
            is_any = true;
            let is_reserved = offering.value(labels::CAPACITY_TYPE) == Some(capacity_type::RESERVED);
            if !is_reserved || offering.is_launchable() {
                return None;
            }
            offered.extend(offering.value(key).filter(|_| offering.available));
        }
    }
    // A template that nothing on offer fits is no matter of reservations.
    is_any.then_some(offered)
}
