//! Static NodePools: as many nodes as `spec.replicas` says, whatever pods need.
//!
//! ```text
//!   missing nodes ─► provisioning ─► reserve room under limits.nodes ─► bare-template NodeClaims
//!   surplus nodes ─► deprovisioning ─► those whose loss costs least ─► delete
//! ```
//!
//! Consolidation and emptiness leave these nodes alone; drift replaces them one for one.

mod deprovisioning;
pub(crate) mod provisioning;
mod surplus;
#[cfg(test)]
mod tests;

use api::names::resources::NODES;
use api::nodepool::NodePool;
use cluster::state::{Change, Object, State};
use runtime::controller::Controller;

use crate::Context;

/// The controllers of static NodePools, if there can be any.
pub fn controllers(context: &Context) -> Vec<Controller> {
    if !context.settings.gates.static_capacity {
        return Vec::new();
    }
    vec![provisioning::controller(context), deprovisioning::controller(context)]
}

/// How many nodes a static pool shall have; nothing for pools that follow pods, and for those on their way out.
fn replicas(pool: &NodePool) -> Option<u64> {
    let replicas = pool.spec.replicas.filter(|_| pool.metadata.deletion_timestamp.is_none())?;
    // The CRD refuses what is negative.
    Some(u64::try_from(replicas).unwrap_or_default())
}

/// How many nodes a pool may have; as many as anybody wants if it does not say.
pub(crate) fn node_limit(pool: &NodePool) -> Option<u64> {
    let limit = *pool.spec.limits.as_ref()?.get(NODES)?;
    // Half a node is none.
    Some(u64::try_from(limit.nanos().max(0) / 1_000_000_000).unwrap_or(u64::MAX))
}

/// Whether there is a static pool of this name.
fn is_static(state: &State, pool: &str) -> bool {
    state.node_pools.named(pool).is_some_and(|pool| pool.spec.replicas.is_some())
}

/// The static pool that is new, or that asks for another number of nodes than before.
fn resized(change: &Change) -> Option<&NodePool> {
    let Some(Object::NodePool(new)) = &change.new else { return None };
    new.spec.replicas?;
    match &change.old {
        Some(Object::NodePool(old)) if old.spec.replicas == new.spec.replicas => None,
        _ => Some(new),
    }
}
