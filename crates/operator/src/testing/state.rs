//! States of clusters for tests, without any cluster.

use api::provider::Provider;
use cluster::state::{Kind, Seen, State};
use serde_json::{Value, json};

use super::merge;

/// The state of a cluster with these objects, each with its `kind`.
pub(crate) fn state(objects: &[Value]) -> State {
    state_of(Provider::Kwok, objects)
}

/// As [`state`], of another cloud.
pub(crate) fn state_of(provider: Provider, objects: &[Value]) -> State {
    let mut state = State::awaiting(provider, &[]);
    for object in objects {
        let kind = Kind::ALL.iter().find(|kind| object["kind"] == kind.name());
        let kind = kind.unwrap_or_else(|| panic!("{} is no kind", object["kind"]));
        let object = kind.decode(&object.to_string()).expect("the object is well-formed");
        state.observe(Seen::Applied(object));
    }
    state
}

/// A pool of simulated nodes, with changes.
pub(crate) fn pool_object(name: &str, change: &Value) -> Value {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut pool = json!({
        "kind": "NodePool",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "generation": 1},
        "spec": {"template": {"spec": {"requirements": [], "nodeClassRef": class}}},
    });
    merge(&mut pool, change);
    pool
}

/// A node of a pool that is ready for pods, and its claim, each with changes.
pub(crate) fn node_objects(name: &str, pool: &str, of_node: &Value, of_claim: &Value) -> [Value; 2] {
    let labels = json!({
        "karpenter.sh/nodepool": pool, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "test-zone-a",
        "node.kubernetes.io/instance-type": "c-4x-amd64-linux",
    });
    let id = format!("kwok://{name}");
    let mut node = json!({
        "kind": "Node",
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "labels": labels},
        "spec": {"providerID": id},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "100"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "100"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let conditions = ["Launched", "Registered", "Initialized", "Consolidatable"].map(condition);
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut claim = json!({
        "kind": "NodeClaim",
        "metadata": {"name": format!("claim-{name}"), "uid": format!("uid-of-claim-{name}"), "labels": labels},
        "spec": {"requirements": [], "nodeClassRef": class},
        "status": {
            "providerID": id, "nodeName": name,
            "conditions": conditions,
        },
    });
    merge(&mut node, of_node);
    merge(&mut claim, of_claim);
    [node, claim]
}

/// A pod on a node, with changes.
pub(crate) fn pod_object(name: &str, node: &str, change: &Value) -> Value {
    let mut pod = json!({
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "labels": {"app": "a"}},
        "spec": {"nodeName": node, "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    });
    merge(&mut pod, change);
    pod
}
