//! Random DaemonSets, with pods on some of the nodes.

use serde_json::{Value, json};

use super::constraints;
use super::features::Feature::{DaemonConstraints, Daemons, HostPorts};
use super::world::World;

/// Makes up to three DaemonSets.
pub(crate) fn generate(world: &mut World) {
    if !world.has(Daemons) {
        return;
    }
    for number in 0..world.random.between(1, 3) {
        let name = format!("agent-{number}");
        let spec = template(world);
        let mut set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": {
            "selector": {"matchLabels": {"agent": name}},
            "template": {"metadata": {"labels": {"agent": name}}, "spec": spec}}});
        set["metadata"] = world.metadata(Some("default"), &name);
        world.items.push(set);
        if world.random.chance(60) {
            for node in world.nodes.clone() {
                if world.random.chance(70) {
                    let pod = pod(world, &name, &spec, &node.name);
                    world.items.push(pod);
                }
            }
        }
    }
}

fn template(world: &mut World) -> Value {
    let milli = *world.random.pick(&[50, 100, 300, 900]);
    let mut resources = json!({"requests": {"cpu": format!("{milli}m"), "memory": "64Mi"}});
    if world.random.chance(20) {
        // What is limited and not requested is requested by the API server, but not in the template.
        resources = json!({"limits": {"cpu": format!("{milli}m"), "memory": "64Mi"}});
    }
    let mut container = json!({"name": "agent", "image": "agent", "resources": resources});
    if world.draws(HostPorts, 30) {
        container["ports"] = json!([{"containerPort": 9090, "hostPort": 9090, "protocol": "TCP"}]);
    }
    let mut spec = json!({"containers": [container]});
    if world.draws(DaemonConstraints, 35) {
        spec["nodeSelector"] = constraints::node_selector(world);
    }
    if world.draws(DaemonConstraints, 35) {
        let terms = constraints::node_terms(world);
        spec["affinity"] = json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    }
    if world.random.chance(50) {
        let toleration = constraints::toleration(world);
        spec["tolerations"] = json!([toleration]);
    }
    spec
}

/// The pod that the controller of DaemonSets makes for a node.
fn pod(world: &mut World, set: &str, spec: &Value, node: &str) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": {"phase": "Running",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [World::condition("PodScheduled", true), World::condition("Ready", true)]}});
    pod["metadata"] = world.metadata(Some("default"), &format!("{set}-{node}"));
    pod["metadata"]["labels"] = json!({"agent": set});
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set,
        "uid": format!("default/{set}"), "controller": true, "blockOwnerDeletion": true}]);
    let container = &mut pod["spec"]["containers"][0]["resources"];
    if container.get("requests").is_none() {
        container["requests"] = container["limits"].clone();
    }
    pod["spec"]["nodeName"] = json!(node);
    let here = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
    let required =
        &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    match required["nodeSelectorTerms"].as_array_mut() {
        Some(terms) => terms.iter_mut().for_each(|term| term["matchFields"] = here.clone()),
        None => required["nodeSelectorTerms"] = json!([{"matchFields": here}]),
    }
    pod["spec"]["tolerations"] = match pod["spec"]["tolerations"].take() {
        Value::Array(mut tolerations) => {
            tolerations.push(
                json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}),
            );
            Value::Array(tolerations)
        }
        _ => json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]),
    };
    pod
}
