//! What a plan has counted of NodePools with limits, to be compared before anything is created.
//!
//! The provisioner and disruption decide side by side: what one of them launches after the other has looked may be
//! just what a limit allowed once.

use std::collections::BTreeSet;
use std::sync::Arc;

use cluster::state::State;
use jiff::Timestamp;
use runtime::Error;

/// The claims of NodePools with limits that were launched when a plan was made. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<BTreeSet<Box<str>>>);

/// A claim as messages name it.
fn name(claim: &api::nodeclaim::NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

impl Counted {
    /// What a plan counts that is made now. What is being launched has no size yet.
    pub(crate) fn new(state: &State, now: Timestamp) -> Self {
        let limited = state.node_pools.values().filter(|pool| pool.spec.limits.is_some());
        let claims = limited.flat_map(|pool| {
            state
                .claims_of_pool(pool.metadata.name.as_deref().unwrap_or_default())
                .map(|claim| name(claim).into())
        });
        let mut counted: BTreeSet<Box<str>> = claims.collect();
        for claim in state.sync(now).launching {
            counted.remove(name(claim));
        }
        Self(Arc::new(counted))
    }

    /// Fails if somebody else has launched nodes for a NodePool with limits since. `own` are claims that were planned
    /// together.
    pub(crate) fn check(&self, state: &State, pool: &str, own: &BTreeSet<Box<str>>) -> Result<(), Error> {
        if state.node_pools.named(pool).is_none_or(|pool| pool.spec.limits.is_none()) {
            return Ok(());
        }
        let mut claims = state.claims_of_pool(pool).map(|claim| name(claim));
        match claims.find(|name| !self.0.contains(*name) && !own.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(Error::Other(format!(
                "limits must be looked at again, another node is being launched (NodeClaim={name})"
            ))),
        }
    }
}
