//! Tells in a NodePool's status what its nodes have.

use std::time::Duration;

use api::names::controllers::NODE_POOL_COUNTER;
use api::names::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, NODES, PODS};
use api::nodepool::NodePool;
use api::shared::ResourceList;
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::Queue;
use serde_json::{Value, json};
use units::{Format, Quantity, Resources};

use crate::Context;
use crate::managed::is_pool_managed;
use crate::wiring::Wiring;

/// How often what a pool has is counted.
const INTERVAL: Duration = Duration::from_secs(5);
/// What a pool always tells of.
const BASE: [&str; 5] = [CPU, MEMORY, PODS, EPHEMERAL_STORAGE, NODES];

/// The change of a pool's status that tells what its nodes have, if it does not tell already.
fn decide(pool: &NodePool, usage: &Resources) -> Option<Value> {
    let zero = Quantity::from_units(0, Format::DecimalSi);
    let mut resources: ResourceList = BASE.iter().map(|name| ((*name).to_owned(), zero)).collect();
    resources.extend(usage.iter().map(|(name, amount)| (name.as_str().to_owned(), *amount)));
    let nodes = usage.amount(NODES).value();
    let known = pool.status.as_ref();
    let told = known.and_then(|status| status.resources.as_ref());
    if told == Some(&resources) && known.is_some_and(|status| status.nodes == nodes) {
        return None;
    }
    let mut change = json!(resources);
    // A merge patch keeps what it does not mention.
    for gone in told.into_iter().flatten().map(|(name, _)| name).filter(|name| !resources.contains_key(*name))
    {
        change[gone] = Value::Null;
    }
    Some(json!({"status": {"resources": change, "nodes": nodes}}))
}

struct Counter(Context);

impl Reconcile for Counter {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let change = {
                let state = context.cluster.read();
                let Some(pool) = state.node_pools.get(key) else { return Ok(Again::No) };
                if !is_pool_managed(pool, context.provider()) {
                    return Ok(Again::No);
                }
                if !state.is_synced(context.now()) {
                    return Ok(Again::secs(1));
                }
                decide(pool, &state.pool_resources(&key.name))
            };
            if let Some(change) = change {
                match context.api.patch_status::<NodePool>(key, &change).await {
                    Err(error) if error.is_not_found() => return Ok(Again::No),
                    patched => drop(patched?),
                }
            }
            Ok(Again::After(INTERVAL))
        }
        .boxed()
    }
}

/// A pool is counted for the first time when it appears; afterwards it asks for itself.
fn touch(change: &Change, _: &State, queue: &Queue) {
    if let Change { old: None, new: Some(Object::NodePool(pool)) } = change {
        queue.add(pool.key());
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let workers = context.settings.workers(10, 1000);
    Wiring::new(NODE_POOL_COUNTER, workers).listening(context, Counter(context.clone()), touch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pool;

    fn usage(amounts: &[(&str, &str)]) -> Resources {
        amounts.iter().map(|(name, amount)| (*name, amount.parse().unwrap())).collect()
    }

    /// The pool after the change.
    fn told(change: &Value) -> NodePool {
        pool("p", change)
    }

    #[test]
    fn a_pool_without_nodes_has_zeros() {
        let change = decide(&pool("p", &json!({})), &usage(&[])).unwrap();
        let zeros = json!({"cpu": "0", "memory": "0", "pods": "0", "ephemeral-storage": "0", "nodes": "0"});
        assert_eq!(change, json!({"status": {"resources": zeros, "nodes": 0}}));
        assert_eq!(decide(&told(&change), &usage(&[])), None);
    }

    #[test]
    fn what_nodes_have_is_told_once_and_forgotten_with_them() {
        let both = usage(&[("cpu", "8"), ("memory", "2Gi"), ("nodes", "2"), ("example.com/gpu", "1")]);
        let change = decide(&pool("p", &json!({})), &both).unwrap();
        assert_eq!(change["status"]["nodes"], 2);
        assert_eq!(change["status"]["resources"]["cpu"], "8");
        let pool = told(&change);
        assert_eq!(decide(&pool, &both), None);
        let less = decide(&pool, &usage(&[("cpu", "4"), ("nodes", "1")])).unwrap();
        assert_eq!(less["status"]["resources"]["cpu"], "4");
        assert_eq!(less["status"]["resources"]["example.com/gpu"], Value::Null);
    }
}
