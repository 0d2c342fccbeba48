//! Large clusters that no upstream benchmark has: many nodes, many pools, many pods that fit nowhere.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// 1,060 nodes of 20 pools; 170 pods that can be placed, and 2,000 identical ones that ask for what nobody has.
pub(crate) fn infeasible(path: &Path) -> Result<()> {
    let mut items = vec![node_class()];
    for pool in 0..20 {
        // 800 of the types: those that exist on x86.
        let arch = json!({"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]});
        items.push(node_pool(&format!("pool-{pool:02}"), &[arch], json!({"weight": 20 - pool})));
    }
    for number in 0..1060 {
        items.extend(node(
            number,
            &format!("pool-{:02}", number % 20),
            "m5.2xlarge",
            "8",
            "32Gi",
            "58",
            "us-east-1a",
        ));
        items.push(running(number, 0, "7", "28Gi"));
    }
    for number in 0..2000 {
        let requests = json!({"cpu": "4", "memory": "16Gi", "example.com/unobtainium": "1"});
        items.push(pending(&format!("stuck-{number:04}"), "stuck", &requests));
    }
    for number in 0..170 {
        let requests = json!({"cpu": format!("{}m", 500 + 50 * (number % 7)), "memory": "1Gi"});
        items.push(pending(&format!("fine-{number:03}"), "fine", &requests));
    }
    write(path, &items)
}

/// 5,000 empty nodes and 50,000 pods of 1,000 shapes that fit on them.
pub(crate) fn crowded(path: &Path) -> Result<()> {
    let mut items = vec![node_class(), node_pool("default", &[], json!({}))];
    for number in 0..5000 {
        let zone = format!("test-zone-{}", ["a", "b", "c", "d"][number % 4]);
        items.extend(node(number, "default", "s-16x-amd64-linux", "16", "64Gi", "256", &zone));
    }
    for number in 0..50_000 {
        let shape = number % 1000;
        let requests = json!({"cpu": format!("{}m", 100 + shape % 40 * 25), "memory": format!("{}Mi", 128 + shape / 40 * 64)});
        items.push(pending(&format!("pod-{number:05}"), &format!("app-{shape:03}"), &requests));
    }
    write(path, &items)
}

fn write(path: &Path, items: &[Value]) -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let text = serde_json::to_vec(&list).context("printing the cluster")?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn node_class() -> Value {
    json!({
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]},
    })
}

fn node_pool(name: &str, requirements: &[Value], extra: Value) -> Value {
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "uid": format!("pool-{name}")},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": requirements,
        }}},
    });
    if let (Some(spec), Value::Object(extra)) = (pool["spec"].as_object_mut(), extra) {
        spec.extend(extra);
    }
    pool
}

/// A node that is ready, and the claim it was made for.
fn node(
    number: usize,
    pool: &str,
    type_: &str,
    cpu: &str,
    memory: &str,
    pods: &str,
    zone: &str,
) -> [Value; 2] {
    let name = format!("node-{number:04}");
    let labels = json!({
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": type_,
        "topology.kubernetes.io/zone": zone,
        "karpenter.sh/capacity-type": "on-demand",
        "karpenter.sh/nodepool": pool,
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "karpenter.kwok.sh/kwoknodeclass": "default",
    });
    let resources = json!({"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "20Gi"});
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let provider_id = format!("kwok://{name}");
    [
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": name, "uid": format!("claim-{number}"), "labels": labels},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [],
            },
            "status": {
                "nodeName": name, "providerID": provider_id, "capacity": resources, "allocatable": resources,
                "conditions": [condition("Launched"), condition("Registered"), condition("Initialized"), condition("Ready")],
            },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": format!("node-{number}"), "labels": labels},
            "spec": {"providerID": provider_id},
            "status": {"capacity": resources, "allocatable": resources, "conditions": [condition("Ready")]},
        }),
    ]
}

fn running(node: usize, number: usize, cpu: &str, memory: &str) -> Value {
    let mut pod =
        pending(&format!("running-{node:04}-{number}"), "running", &json!({"cpu": cpu, "memory": memory}));
    pod["spec"]["nodeName"] = json!(format!("node-{node:04}"));
    pod["status"] = json!({"phase": "Running"});
    pod
}

fn pending(name: &str, app: &str, requests: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": app},
        },
        "spec": {"containers": [{"name": "main", "image": "pause", "resources": {"requests": requests}}]},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    })
}
