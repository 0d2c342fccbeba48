//! Objects, a cloud and a cluster for tests.

mod cloud;
mod log;
mod state;
mod world;

use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use serde_json::{Value, json};

pub(crate) use cloud::FakeCloud;
pub(crate) use log::Logged;
pub(crate) use state::{node_objects, pod_object, pool_object, state, state_of};
pub(crate) use world::{NODE_CLASS, NODE_POOL, Operated};

/// Puts one value over another, as a merge patch does but for nulls.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// A pool of simulated nodes, with changes.
pub(crate) fn pool(name: &str, change: &Value) -> NodePool {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut pool = json!({
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "generation": 1, "resourceVersion": "1"},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}},
    });
    merge(&mut pool, change);
    serde_json::from_value(pool).expect("the pool is well-formed")
}

/// The claim of a simulated node, with changes.
pub(crate) fn claim(name: &str, change: &Value) -> NodeClaim {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut claim = json!({
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "generation": 1, "resourceVersion": "1"},
        "spec": {"requirements": [], "nodeClassRef": class},
    });
    merge(&mut claim, change);
    serde_json::from_value(claim).expect("the claim is well-formed")
}
