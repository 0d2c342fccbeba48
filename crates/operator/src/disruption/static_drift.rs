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
use super::stay::Stay;
use super::{Class, Method, Reason};
use crate::provisioner::outcome::NewClaim;
use crate::static_capacity::node_limit;

/// What users are told whose pool has no room for a replacement.
pub(super) const AT_LIMIT: &str = "static NodePool is at its node limit and cannot stage a replacement";
/// What users are told whose reservations are used up.
pub(super) const RESERVATIONS_FULL: &str =
    "static NodePool's capacity reservations are full and cannot stage a replacement";
/// Why nodes of a pool stay that has too many.
pub(super) const OVER_SCALED: &str =
    "static NodePool has more nodes than spec.replicas asks for, so that some go anyway";
/// Why nodes stay that nothing can take the place of.
pub(super) const NO_TEMPLATE: &str = "template of the NodePool cannot be understood, as its conditions say";

/// Why it is not known whether the reservations of a pool are used up.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unknown {
    /// Nobody knows what the pool can choose from.
    #[error("the instance types of the NodePool are not known")]
    Types,
    /// Nobody knows what the pool asks for.
    #[error("the template of the NodePool cannot be understood: {0}")]
    Template(#[from] cluster::reason::Reason),
}

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

    fn accepts(&self, _: &State, candidate: &Candidate) -> Result<(), Option<Stay>> {
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
            let held = Stay::Budget(self.reason(), Box::new(budget.clone()));
            let over_scaled = is_over_scaled(scene.state(), &candidates[0].pool);
            if wanted == 0 || over_scaled {
                let why = if over_scaled { Stay::Silent(OVER_SCALED.to_owned()) } else { held };
                for candidate in &candidates {
                    decision.keep(candidate, why.clone());
                }
                continue;
            }
            let before = decision.commands.len();
            self.decide_pool(scene, candidates, wanted, &held, &mut decision);
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
        held: &Stay,
        decision: &mut Decision,
    ) {
        let pool = Arc::clone(&candidates[0].pool);
        let goes_first = scene.settings().gates.terminate_first_drift;
        let checked = if goes_first { full_reservations(scene, &pool) } else { Ok(None) };
        let offered = match checked {
            Ok(offered) => offered,
            Err(error) => {
                let name = pool.metadata.name.as_deref();
                let message = "skipping static nodepool, failed checking capacity reservations";
                return tracing::error!(NodePool = name, error = %error, "{message}");
            }
        };
        if let Some(offered) = offered {
            let holds = |it: &Candidate| reservation(scene, it).is_some_and(|id| offered.contains(id));
            candidates.sort_by_key(|it| !holds(it));
            for (place, candidate) in candidates.into_iter().enumerate() {
                if place >= wanted {
                    decision.keep(&candidate, held.clone());
                } else if holds(&candidate) && can_come_back(scene, &pool) {
                    decision.commands.push(self.first(scene, candidate, NO_RESERVED_CAPACITY));
                } else {
                    decision.keep(&candidate, Stay::Blocked(RESERVATIONS_FULL.to_owned()));
                }
            }
            return;
        }
        let room = room(scene.state(), &pool);
        if room == 0 {
            for (place, candidate) in candidates.into_iter().enumerate() {
                if place >= wanted {
                    decision.keep(&candidate, held.clone());
                } else if goes_first && can_come_back(scene, &pool) {
                    decision.commands.push(self.first(scene, candidate, STATIC_AT_LIMIT));
                } else {
                    decision.keep(&candidate, Stay::Blocked(AT_LIMIT.to_owned()));
                }
            }
            return;
        }
        for (place, candidate) in candidates.into_iter().enumerate() {
            if place >= wanted {
                decision.keep(&candidate, held.clone());
            } else if place >= room {
                decision.keep(&candidate, Stay::Silent(AT_LIMIT.to_owned()));
            } else {
                match one_for_one(self, scene, candidate.clone()) {
                    Some(command) => decision.commands.push(command),
                    None => decision.keep(&candidate, Stay::Silent(NO_TEMPLATE.to_owned())),
                }
            }
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
    let launch = Launch::new(new, Arc::from([]), scene);
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
pub(super) fn can_come_back(scene: &Scene, pool: &NodePool) -> bool {
    let is_looked_after = scene.settings().gates.static_capacity;
    is_looked_after && pool.is_true(READY) && pool.metadata.deletion_timestamp.is_none()
}

/// The reservations that a pool depends on, if all of them are used up and it can have nothing else. Fails if that
/// cannot be found out.
pub(super) fn full_reservations<'s>(
    scene: &'s Scene,
    pool: &NodePool,
) -> Result<Option<BTreeSet<&'s str>>, Unknown> {
    let Some(key) = scene.sets().reservation_id() else { return Ok(None) };
    let types = scene.types().get(pool.metadata.name.as_deref().unwrap_or_default()).ok_or(Unknown::Types)?;
    let template = bare_node_claim(pool, scene.sets())?.spec.requirements;
    let mut wanted = Wanted::new(&template, scene.sets())?;
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
                return Ok(None);
            }
            offered.extend(offering.value(key).filter(|_| offering.available));
        }
    }
    // A template that nothing on offer fits is no matter of reservations.
    Ok(is_any.then_some(offered))
}
