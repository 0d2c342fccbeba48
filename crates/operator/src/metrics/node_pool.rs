//! What NodePools have, may have and cost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::names::controllers::METRICS_NODE_POOL;
use api::names::labels;
use api::names::metrics::{NODEPOOLS_COST, NODEPOOLS_COST_TRACKER_ERRORS, NODEPOOLS_LIMIT, NODEPOOLS_USAGE};
use api::nodeclaim::NodeClaim;
use api::shared::ResourceList;
use cluster::costs;
use cluster::instance_types::InstanceType;
use cluster::state::{Change, Key, Object, State, Watched};
use cluster::state_node::StateNode;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::Queue;

use super::{amount, resource_type};
use crate::Context;
use crate::managed::is_pool_managed;
use crate::wiring::Wiring;

/// How often a pool is looked at.
const INTERVAL: Duration = Duration::from_secs(10);

fn series(resources: Option<&ResourceList>, pool: &str) -> Vec<(Vec<String>, f64)> {
    let all = resources.into_iter().flatten();
    all.map(|(name, quantity)| (vec![resource_type(name), pool.to_owned()], amount(name, *quantity)))
        .collect()
}

/// What the claims of a pool cost per hour, and those of which nobody knows. Claims that are not told what they
/// are do not count.
fn cost<'a>(claims: &'a [Arc<NodeClaim>], types: &[InstanceType]) -> (f64, Vec<&'a str>) {
    let mut unknown = Vec::new();
    let mut total = 0.0;
    for claim in claims {
        let own = claim.metadata.labels.iter().flatten();
        let needed = [labels::INSTANCE_TYPE, labels::CAPACITY_TYPE, labels::ZONE, labels::NODEPOOL];
        if own.filter(|(key, value)| needed.contains(&key.as_str()) && !value.is_empty()).count()
            < needed.len()
        {
            continue;
        }
        let price = costs::price(&StateNode { claim: Some(claim), ..StateNode::default() }, types);
        if price > 0.0 {
            total += price;
        } else {
            unknown.push(claim.metadata.uid.as_deref().unwrap_or_default());
        }
    }
    (total, unknown)
}

struct Pools {
    context: Context,
    /// Claims whose cost could not be found out, which is counted once.
    unknown: Mutex<BTreeSet<Box<str>>>,
}

impl Reconcile for Pools {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let metrics = &self.context.metrics;
            let known = {
                let state = self.context.cluster.read();
                let pool = state.node_pools.get(key).filter(|pool| is_pool_managed(pool, state.provider()));
                pool.map(|pool| {
                    let claims: Vec<Arc<NodeClaim>> = state.claims_of_pool(&key.name).cloned().collect();
                    (Arc::clone(pool), claims)
                })
            };
            let Some((pool, claims)) = known else {
                for metric in [&NODEPOOLS_LIMIT, &NODEPOOLS_USAGE, &NODEPOOLS_COST] {
                    metrics.replace(metric, &key.name, []);
                }
                return Ok(Again::No);
            };
            let usage = pool.status.as_ref().and_then(|status| status.resources.as_ref());
            metrics.replace(&NODEPOOLS_LIMIT, &key.name, series(pool.spec.limits.as_ref(), &key.name));
            metrics.replace(&NODEPOOLS_USAGE, &key.name, series(usage, &key.name));
            let types = match self.context.cloud.instance_types(&pool).await {
                // Prices are about to be known.
                Err(error) if error.is_unevaluated() => return Ok(Again::secs(1)),
                types => types.unwrap_or_default(),
            };
            let (total, unknown) = cost(&claims, &types);
            for uid in unknown {
                if self.unknown.lock().insert(uid.into()) {
                    metrics.add(&NODEPOOLS_COST_TRACKER_ERRORS, &[&key.name], 1.0);
                }
            }
            metrics.replace(&NODEPOOLS_COST, &key.name, [(vec![key.name.to_string()], total)]);
            Ok(Again::After(INTERVAL))
        }
        .boxed()
    }
}

fn touch(change: &Change, _: &State, queue: &Queue) {
    if let Object::NodePool(pool) = change.object() {
        queue.add(pool.key());
    }
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let pools = Pools { context: context.clone(), unknown: Mutex::default() };
    Wiring::new(METRICS_NODE_POOL, 1).listening(context, pools, touch)
}

#[cfg(test)]
mod tests {
    use cluster::instance_types::kwok;
    use serde_json::json;

    use super::*;
    use crate::testing::claim;

    #[test]
    fn limits_and_usage_are_cores_and_bytes() {
        let list: ResourceList =
            serde_json::from_value(json!({"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": "1k"}))
                .unwrap();
        let shown: Vec<String> = series(Some(&list), "p")
            .iter()
            .map(|(labels, value)| format!("{}={value}", labels.join(",")))
            .collect();
        assert_eq!(shown, ["cpu,p=1.5", "ephemeral_storage,p=1000", "memory,p=1073741824"]);
        assert!(series(None, "p").is_empty());
    }

    #[test]
    fn claims_cost_what_their_offering_costs() {
        let types = kwok::built_in();
        let bought = |kind: &str| {
            let labels = json!({
                "node.kubernetes.io/instance-type": kind, "karpenter.sh/capacity-type": "spot",
                "topology.kubernetes.io/zone": "test-zone-a", "karpenter.sh/nodepool": "p",
            });
            Arc::new(claim("c", &json!({"metadata": {"labels": labels}})))
        };
        let starting = Arc::new(claim("c", &json!({"metadata": {"labels": {"karpenter.sh/nodepool": "p"}}})));
        let claims = [bought("c-1x-amd64-linux"), bought("c-1x-amd64-linux"), bought("unheard-of"), starting];
        let (total, unknown) = cost(&claims, &types);
        assert!((total - 2.0 * 0.019_003_238_553_6).abs() < 1e-9, "{total}");
        assert_eq!(unknown, ["uid-of-c"]);
    }
}
