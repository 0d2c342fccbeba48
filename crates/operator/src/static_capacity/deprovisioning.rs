//! Takes nodes from static NodePools that have more than they shall have.

use std::sync::Arc;

use api::names::controllers::STATIC_DEPROVISIONING;
use api::names::labels;
use api::nodeclaim::NodeClaim;
use cluster::costs::Costs;
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use runtime::Error;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};

use super::surplus::surplus;
use super::{is_static, replicas, resized};
use crate::Context;
use crate::managed::is_pool_managed;
use crate::retry::retry;
use crate::wiring::Wiring;

/// How many keys are looked at at the same time.
const WORKERS: usize = 10;

/// The claims that a pool has too many; nothing if it is not for this controller. Those that go, or wait for their
/// replacement, do not count.
pub(super) fn decide(state: &State, name: &str, costs: Costs, now: Timestamp) -> Option<Vec<Arc<NodeClaim>>> {
    let pool = state.node_pools.named(name).filter(|pool| is_pool_managed(pool, state.provider()))?;
    let wanted = replicas(pool)?;
    let active = state.pool_claims(name).active.len();
    let count = active.saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX));
    Some(if count == 0 { Vec::new() } else { surplus(state, name, count, costs, now) })
}

struct Deprovisioning(Context);

impl Reconcile for Deprovisioning {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async {
            let Self(context) = self;
            let costs = Costs { pod_deletion_cost: !context.settings.gates.pod_deletion_cost_management };
            let decided = decide(&context.cluster.read(), &key.name, costs, context.now());
            let Some(claims) = decided else { return Ok(Again::No) };
            let deleted = join_all(claims.iter().map(|claim| delete(context, key, claim))).await;
            let failed: Vec<String> =
                deleted.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
            if failed.is_empty() { Ok(Again::secs(60)) } else { Err(Error::Other(failed.join("; "))) }
        }
        .boxed()
    }
}

/// Deletes a claim. One that is gone is as it should be.
async fn delete(context: &Context, pool: &Key, claim: &NodeClaim) -> Result<(), Error> {
    match retry(|| context.api.delete(claim)).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            tracing::info!(NodePool = %pool, NodeClaim = name, "deleted nodeclaim, nodepool has more than its replicas");
            Ok(())
        }
    }
}

/// A pool concerns itself when it is new or wants another number of nodes, a claim its pool when it is new.
fn touch(change: &Change, state: &State, queue: &Queue) {
    if let Some(pool) = resized(change) {
        queue.add(pool.key());
    }
    if let Change { old: None, new: Some(Object::NodeClaim(claim)) } = change
        && let Some(pool) = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL))
        && is_static(state, pool)
    {
        queue.add(Key::cluster(pool));
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let wiring =
        Wiring { backoff: Backoff::millis(100, 60_000), ..Wiring::new(STATIC_DEPROVISIONING, WORKERS) };
    wiring.listening(context, Deprovisioning(context.clone()), touch)
}

#[cfg(test)]
mod tests;
