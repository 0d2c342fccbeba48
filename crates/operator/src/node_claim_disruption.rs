//! Marks NodeClaims that may be disrupted: those that have been quiet for long enough, and those that are no
//! longer what they should be.

mod drift;
pub(crate) mod quiet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::Conditions;
use api::names::conditions::node_claim::{CONSOLIDATABLE, DRIFTED};
use api::names::controllers::NODE_CLAIM_DISRUPTION;
use api::names::labels;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::Queue;

use crate::managed::is_claim_managed;
use crate::wiring::Wiring;
use crate::{Context, status};
use drift::Drift;
use quiet::Quiet;

/// The claim with its new conditions, and when it is to be looked at again.
///
/// Without a verdict on drift that condition stays as it is.
fn decide(claim: &NodeClaim, pool: &NodePool, drift: Option<&Drift>, now: Timestamp) -> (NodeClaim, Again) {
    let mut after = claim.clone();
    let mut again = Again::No;
    let mut conditions = Conditions::of(&mut after, now);
    match drift {
        Some(Drift::NotLaunched) => {
            let _ = conditions.clear(DRIFTED);
        }
        Some(Drift::No) => {
            let _ = conditions.clear(DRIFTED);
            again = Again::After(drift::INTERVAL);
        }
        Some(Drift::Yes(reason)) => {
            conditions.set(DRIFTED, api::shared::ConditionStatus::True, reason, reason);
            again = Again::After(drift::INTERVAL);
        }
        None => {}
    }
    // Static pools are never consolidated.
    if pool.spec.replicas.is_none() {
        match quiet::quiet(claim, pool, now) {
            Quiet::Yes => {
                conditions.set_true(CONSOLIDATABLE);
            }
            Quiet::No => {
                let _ = conditions.clear(CONSOLIDATABLE);
            }
            Quiet::In(wait) => {
                let _ = conditions.clear(CONSOLIDATABLE);
                again = again.or_sooner(Again::After(wait));
            }
        }
    }
    (after, again)
}

struct Disruption {
    context: Context,
    /// When the instance type of a claim was last found on offer, by the claim's UID.
    offered: Arc<Mutex<BTreeMap<Box<str>, Timestamp>>>,
}

impl Reconcile for Disruption {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let context = &self.context;
            let Some((claim, pool)) = find(&context.cluster.read(), key) else { return Ok(Again::No) };
            let drift = drift::drift(context, &self.offered, &claim, &pool).await;
            let (after, again) = decide(&claim, &pool, drift.as_ref().ok(), context.now());
            if let Some(change) = status::conditions(&*claim, &after) {
                match context.api.patch_status::<NodeClaim>(key, &change).await {
                    Err(error) if error.is_not_found() => return Ok(Again::No),
                    patched => drop(patched?),
                }
            }
            match drift {
                // The instance is gone, which others take care of.
                Err(error) if error.is_not_found() => Ok(again),
                drift => drift.map(|_| again).map_err(Into::into),
            }
        }
        .boxed()
    }
}

/// A claim that this controller is for, and its pool.
fn find(state: &State, key: &Key) -> Option<(Arc<NodeClaim>, Arc<NodePool>)> {
    let claim = state.node_claims.get(key)?;
    if !is_claim_managed(claim, state.provider()) || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let pool = state.node_pools.named(claim.metadata.labels.as_ref()?.get(labels::NODEPOOL)?)?;
    Some((Arc::clone(claim), Arc::clone(pool)))
}

/// A claim concerns itself, a pool or NodeClass the claims that were made from it.
fn touch(change: &Change, state: &State, queue: &Queue) {
    match (&change.old, &change.new) {
        (_, Some(Object::NodeClaim(claim))) => queue.add(claim.key()),
        (old, Some(Object::NodePool(pool))) => {
            let is_same = matches!(old, Some(Object::NodePool(old))
                if old.metadata.generation == pool.metadata.generation
                    && old.metadata.annotations == pool.metadata.annotations);
            if !is_same {
                let name = pool.metadata.name.as_deref().unwrap_or_default();
                state.claims_of_pool(name).for_each(|claim| queue.add(claim.key()));
            }
        }
        (_, Some(Object::NodeClass(class))) => {
            let refers = |claim: &NodeClaim| *claim.spec.node_class_ref.name == *class.metadata.name;
            for claim in state.node_claims.values().filter(|claim| refers(claim)) {
                queue.add(claim.key());
            }
        }
        _ => {}
    }
}

/// The controller.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let workers = context.settings.workers(10, 1000);
    let offered: Arc<Mutex<BTreeMap<Box<str>, Timestamp>>> = Arc::default();
    let remembered = Arc::clone(&offered);
    let disruption = Disruption { context: context.clone(), offered };
    let controller = Wiring::new(NODE_CLAIM_DISRUPTION, workers).listening(
        context,
        disruption,
        move |change, state, queue| {
            touch(change, state, queue);
            if let Change { old: Some(Object::NodeClaim(claim)), new: None } = change {
                remembered.lock().remove(claim.metadata.uid.as_deref().unwrap_or_default());
            }
        },
    );
    vec![controller]
}
