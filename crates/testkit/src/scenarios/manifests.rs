//! The objects that scenarios are made of.

use serde_json::{Value, json};

/// A pool with the requirements given as YAML list items, and its NodeClass.
pub fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                ],
                "expireAfter": "Never",
            }},
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"},
        },
    })
}

/// The NodeClass of all pools.
pub fn node_class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}})
}

/// A Deployment whose pods ask for some processor.
pub fn deployment(name: &str, replicas: usize, cpu: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(cpu)},
        },
    })
}

/// What a pod asks for.
pub fn pod_spec(cpu: &str) -> Value {
    json!({
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "main", "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
        }],
    })
}

/// The same object with something changed; maps are merged, everything else is replaced.
pub fn with(mut object: Value, change: &Value) -> Value {
    merge(&mut object, change);
    object
}

/// A Deployment with something changed in the spec of its pods.
pub fn deployment_with(name: &str, replicas: usize, cpu: &str, spec: &Value) -> Value {
    with(deployment(name, replicas, cpu), &json!({"spec": {"template": {"spec": spec}}}))
}

fn merge(object: &mut Value, change: &Value) {
    match (object, change) {
        (Value::Object(object), Value::Object(change)) => {
            for (key, value) in change {
                merge(object.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (object, change) => *object = change.clone(),
    }
}

/// All objects as one manifest.
pub fn manifest(objects: &[Value]) -> String {
    // JSON is YAML.
    objects.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}
