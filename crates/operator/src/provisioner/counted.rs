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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{node_objects, pool_object, state};

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn what_was_launched_since_is_noticed_where_there_are_limits() {
        let limits = json!({"spec": {"limits": {"nodes": "2"}}});
        let mut objects = vec![pool_object("limited", &limits), pool_object("free", &json!({}))];
        for pool in ["limited", "free"] {
            objects.extend(node_objects(&format!("{pool}-1"), pool, &json!({}), &json!({})));
        }
        // One that is being launched has no size yet, so that nobody can have counted it.
        let [_, mut launching] = node_objects("limited-2", "limited", &json!({}), &json!({}));
        launching.as_object_mut().unwrap().remove("status");
        launching["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        let with = |more: &[serde_json::Value]| state(&[objects.as_slice(), more].concat());
        let check = |counted: &Counted, state: &State, own: &[&str]| {
            let own = own.iter().map(|name| (*name).into()).collect();
            ["limited", "free"].map(|pool| counted.check(state, pool, &own).is_ok())
        };
        let counted = Counted::new(&with(&[]), now());
        assert_eq!(check(&counted, &with(&[]), &[]), [true, true]);
        let grown = with(std::slice::from_ref(&launching));
        assert_eq!(check(&counted, &grown, &[]), [false, true]);
        assert_eq!(check(&counted, &grown, &["claim-limited-2"]), [true, true]);
        assert_eq!(check(&Counted::new(&grown, now()), &grown, &[]), [false, true]);
        let other = node_objects("free-2", "free", &json!({}), &json!({}));
        assert_eq!(check(&counted, &with(&other), &[]), [true, true]);
    }
}
