//! Keeps the hash of NodePools, by which NodeClaims are known to have drifted.
//!
//! Where a pool was stamped by another version of the hash, its claims are stamped anew first: otherwise every
//! one of them would look drifted, or none.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::HasConditions;
use api::hash::{NODE_POOL_HASH_VERSION, Restamp, Stamp, node_pool_hash, restamp};
use api::names::annotations::{NODEPOOL_HASH, NODEPOOL_HASH_VERSION};
use api::names::conditions::node_claim::DRIFTED;
use api::names::controllers::NODE_POOL_HASH;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use cluster::state::{Key, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use serde_json::{Value, json};

use crate::Context;
use crate::managed::{is_claim_managed, is_pool_managed};
use crate::wiring::Wiring;

/// Annotations to be written.
#[derive(Debug, Default, PartialEq)]
struct Stamps {
    claims: Vec<(Key, Value)>,
    pool: Option<Value>,
}

fn decide<'a>(
    pool: &NodePool,
    claims: impl Iterator<Item = &'a Arc<NodeClaim>>,
    provider: Provider,
) -> Stamps {
    let hash = node_pool_hash(pool);
    let new = Stamp { hash: &hash, version: NODE_POOL_HASH_VERSION };
    let old = stamp(pool.metadata.annotations.as_ref());
    let mut stamps = Stamps::default();
    if old == Some(new) {
        return stamps;
    }
    if old.is_none_or(|old| old.version != new.version) {
        for claim in claims.filter(|claim| is_claim_managed(claim, provider)) {
            let known = stamp(claim.metadata.annotations.as_ref());
            let change = match restamp(old, new, known, claim.condition(DRIFTED).is_some()) {
                Restamp::Nothing => continue,
                Restamp::Both(new) => json!({NODEPOOL_HASH: new.hash, NODEPOOL_HASH_VERSION: new.version}),
                Restamp::VersionOnly(version) => json!({NODEPOOL_HASH_VERSION: version}),
            };
            stamps.claims.push((claim.key(), json!({"metadata": {"annotations": change}})));
        }
    }
    let both = json!({NODEPOOL_HASH: new.hash, NODEPOOL_HASH_VERSION: new.version});
    stamps.pool = Some(json!({"metadata": {"annotations": both}}));
    stamps
}

/// What the annotations of a pool or claim say; nothing if one of them is missing.
pub(crate) fn stamp(annotations: Option<&BTreeMap<String, String>>) -> Option<Stamp<'_>> {
    let annotation = |key: &str| annotations.and_then(|all| all.get(key)).filter(|text| !text.is_empty());
    Some(Stamp { hash: annotation(NODEPOOL_HASH)?, version: annotation(NODEPOOL_HASH_VERSION)? })
}

struct Hash(Context);

impl Reconcile for Hash {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let stamps = {
                let state = context.cluster.read();
                let Some(pool) = state.node_pools.get(key) else { return Ok(Again::No) };
                if !is_pool_managed(pool, context.provider()) {
                    return Ok(Again::No);
                }
                decide(pool, state.claims_of_pool(&key.name), context.provider())
            };
            for (claim, change) in &stamps.claims {
                match context.api.patch::<NodeClaim>(claim, change).await {
                    Err(error) if error.is_not_found() => {}
                    patched => drop(patched?),
                }
            }
            if let Some(change) = &stamps.pool {
                match context.api.patch::<NodePool>(key, change).await {
                    Err(error) if error.is_not_found() => {}
                    patched => drop(patched?),
                }
            }
            Ok(Again::No)
        }
        .boxed()
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let workers = context.settings.workers(10, 1000);
    Wiring::new(NODE_POOL_HASH, workers).listening(context, Hash(context.clone()), super::touch_pool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{claim, pool};

    fn stamped(hash: &str, version: &str) -> Value {
        json!({"metadata": {"annotations": {NODEPOOL_HASH: hash, NODEPOOL_HASH_VERSION: version}}})
    }

    fn claims(all: &[Value]) -> Vec<Arc<NodeClaim>> {
        let named = all.iter().enumerate().map(|(number, change)| claim(&format!("c{number}"), change));
        named.map(Arc::new).collect()
    }

    #[track_caller]
    fn check(pool: &NodePool, all: &[Value], expected: &[Value], on_pool: bool) {
        let all = claims(all);
        let stamps = decide(pool, all.iter(), Provider::Kwok);
        let written: Vec<&Value> = stamps.claims.iter().map(|(_, change)| change).collect();
        assert_eq!(written, expected.iter().collect::<Vec<_>>());
        let stamped = on_pool.then(|| stamped(&node_pool_hash(pool), "v3"));
        assert_eq!(stamps.pool, stamped);
    }

    #[test]
    fn a_pool_gets_its_hash_once() {
        let new = pool("p", &json!({}));
        check(&new, &[], &[], true);
        check(&pool("p", &stamped(&node_pool_hash(&new), "v3")), &[], &[], false);
    }

    #[test]
    fn a_changed_template_changes_the_hash_of_the_pool_only() {
        let old = pool("p", &stamped("1", "v3"));
        check(&old, &[stamped("1", "v3")], &[], true);
        let labels = json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
        assert_ne!(node_pool_hash(&pool("p", &labels)), node_pool_hash(&old));
    }

    #[test]
    fn what_does_not_matter_to_nodes_leaves_the_hash_alone() {
        let hash = node_pool_hash(&pool("p", &json!({})));
        for change in [
            json!({"spec": {"weight": 3}}),
            json!({"spec": {"limits": {"cpu": "1"}}}),
            json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}),
        ] {
            assert_eq!(node_pool_hash(&pool("p", &change)), hash, "{change}");
        }
    }

    #[test]
    fn claims_of_another_version_are_stamped_with_the_pool() {
        let old = pool("p", &stamped("1", "v2"));
        let hash = node_pool_hash(&old);
        let drifted = json!({
            "metadata": {"annotations": {NODEPOOL_HASH: "1", NODEPOOL_HASH_VERSION: "v2"}},
            "status": {"conditions": [{"type": "Drifted", "status": "False", "reason": "a", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        });
        let foreign = json!({"spec": {"nodeClassRef": {"group": "a.b", "kind": "Other"}}});
        check(
            &old,
            &[stamped("1", "v2"), stamped("2", "v3"), drifted, foreign, json!({})],
            &[
                stamped(&hash, "v3"),
                json!({"metadata": {"annotations": {NODEPOOL_HASH_VERSION: "v3"}}}),
                stamped(&hash, "v3"),
            ],
            true,
        );
    }
}
