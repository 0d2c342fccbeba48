//! Random nodes that exist, with the NodeClaims of those that Karpenter made.

use serde_json::{Value, json};

use super::catalogue::{CAPACITY_TYPE, GPU, Type, ZONE};
use super::features::Feature::{DeletingNodes, Nodes, TaintedNodes, UninitializedNodes, UnmanagedNodes};
use super::pools::{self, Pool};
use super::world::{Bound, World};

/// How far a node of a pool has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The instance exists, but no Node yet.
    Launched,
    /// The Node exists, and Karpenter has not seen it.
    Unregistered,
    /// The Node starts.
    Registered,
    Initialized,
}

/// Makes up to fifteen nodes.
pub(crate) fn generate(world: &mut World) {
    if !world.has(Nodes) {
        return;
    }
    let count = *world.random.weighted(&[(50, 3), (30, 6), (20, 15)]);
    for number in 0..world.random.between(1, count) {
        let type_ = world.random.pick(&world.types).clone();
        if type_.offerings.is_empty() {
            continue;
        }
        if world.draws(UnmanagedNodes, 35) {
            unmanaged(world, number, &type_);
        } else {
            managed(world, number, &type_);
        }
    }
}

fn labels(world: &mut World, name: &str, type_: &Type) -> (Value, String) {
    let (zone, capacity_type, _) = world.random.pick(&type_.offerings).clone();
    let labels = json!({"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": type_.name,
        "kubernetes.io/arch": type_.architecture, "kubernetes.io/os": type_.os, (ZONE): zone,
        (CAPACITY_TYPE): capacity_type});
    (labels, zone)
}

fn resources(type_: &Type) -> (Value, Value) {
    let mut capacity = type_.resources();
    if capacity.get("pods").is_none() {
        capacity["pods"] = json!("110");
    }
    let mut allocatable = capacity.clone();
    allocatable["cpu"] = json!(format!("{}m", type_.cpu * 1000 - 100));
    allocatable["memory"] = json!(format!("{}Mi", free_mi(type_)));
    (capacity, allocatable)
}

fn free_mi(type_: &Type) -> usize {
    type_.memory_gi * 1024 - 10 - type_.huge_pages_mi
}

fn bound(name: &str, zone: String, type_: &Type) -> Bound {
    Bound {
        name: name.to_owned(),
        zone,
        free_milli: type_.cpu * 1000 - 100,
        free_mi: free_mi(type_),
        free_pods: type_.pods.unwrap_or(110),
    }
}

fn unmanaged(world: &mut World, number: usize, type_: &Type) {
    let name = format!("own-{number}");
    let (mut labels, zone) = labels(world, &name, type_);
    if world.random.chance(20) {
        // Somebody's own machine may have hardly any labels.
        labels = json!({"kubernetes.io/hostname": name});
    }
    let (capacity, allocatable) = resources(type_);
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "spec": {},
        "status": {"capacity": capacity, "allocatable": allocatable, "conditions": [World::condition("Ready", true)]}});
    node["metadata"] = world.metadata(None, &name);
    node["metadata"]["labels"] = labels;
    if world.random.chance(50) {
        node["spec"]["providerID"] = json!(format!("own://{name}"));
    }
    if world.draws(TaintedNodes, 35) {
        node["spec"]["taints"] = json!([pools::taint(world)]);
    }
    if world.draws(DeletingNodes, 20) {
        world.delete(&mut node);
    }
    world.items.push(node);
    world.nodes.push(bound(&name, zone, type_));
}

fn managed(world: &mut World, number: usize, type_: &Type) {
    let pool = world.random.pick(&world.pools).clone();
    let name = format!("{}-{number}", pool.name);
    let (mut labels, zone) = labels(world, &name, type_);
    labels["karpenter.sh/nodepool"] = json!(pool.name);
    labels["karpenter.kwok.sh/kwoknodeclass"] = json!("default");
    labels["karpenter.kwok.sh/instance-family"] = json!(type_.name.split('-').next().unwrap_or(type_.family));
    labels["karpenter.kwok.sh/instance-size"] = json!(type_.cpu.to_string());
    labels["karpenter.kwok.sh/instance-cpu"] = json!(type_.cpu.to_string());
    labels["karpenter.kwok.sh/instance-memory"] = json!(format!("{}Gi", type_.memory_gi));
    for (key, value) in &pool.labels {
        labels[key] = json!(value);
    }
    let stage = if world.draws(UninitializedNodes, 50) {
        *world.random.pick(&[Stage::Launched, Stage::Unregistered, Stage::Registered, Stage::Registered])
    } else {
        Stage::Initialized
    };
    let mut claim = claim(world, &name, &labels, &pool, type_, stage);
    if world.draws(DeletingNodes, 30) {
        world.delete(&mut claim);
    }
    world.items.push(claim);
    if stage != Stage::Launched {
        let node = node(world, &name, labels, &pool, type_, stage);
        world.items.push(node);
        world.nodes.push(bound(&name, zone, type_));
    }
}

fn claim(world: &mut World, name: &str, labels: &Value, pool: &Pool, type_: &Type, stage: Stage) -> Value {
    let (capacity, allocatable) = resources(type_);
    let requirements: Vec<Value> = [ZONE, CAPACITY_TYPE, "node.kubernetes.io/instance-type"]
        .iter()
        .map(|&key| json!({"key": key, "operator": "In", "values": [labels[key]]}))
        .collect();
    let mut claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": requirements, "taints": pool.taints, "startupTaints": pool.startup_taints,
            "expireAfter": "Never"},
        "status": {"providerID": format!("kwok://{name}"), "capacity": capacity, "allocatable": allocatable,
            "conditions": [World::condition("Launched", true),
                World::condition("Registered", matches!(stage, Stage::Registered | Stage::Initialized)),
                World::condition("Initialized", stage == Stage::Initialized)]}});
    if stage != Stage::Launched {
        claim["status"]["nodeName"] = json!(name);
    }
    claim["metadata"] = world.metadata(None, name);
    claim["metadata"]["labels"] = labels.clone();
    claim
}

fn node(world: &mut World, name: &str, mut labels: Value, pool: &Pool, type_: &Type, stage: Stage) -> Value {
    let (mut capacity, mut allocatable) = resources(type_);
    let mut taints = Vec::new();
    match stage {
        Stage::Launched => {}
        Stage::Unregistered => {
            // The kubelet knows nothing of what Karpenter will add.
            labels = json!({"kubernetes.io/hostname": name, "karpenter.sh/nodepool": pool.name,
                "node.kubernetes.io/instance-type": type_.name});
            taints.push(json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"}));
            taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
        }
        Stage::Registered => {
            labels["karpenter.sh/registered"] = json!("true");
            taints.extend(pool.taints.iter().cloned());
            taints.extend(pool.startup_taints.iter().cloned());
            taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
            // The driver has not announced its devices yet.
            if type_.gpus > 0 {
                capacity[GPU] = json!("0");
                allocatable[GPU] = json!("0");
            }
        }
        Stage::Initialized => {
            labels["karpenter.sh/registered"] = json!("true");
            labels["karpenter.sh/initialized"] = json!("true");
            taints.extend(pool.taints.iter().cloned());
        }
    }
    if world.draws(TaintedNodes, 30) {
        taints.push(pools::taint(world));
    }
    let mut node = json!({"apiVersion": "v1", "kind": "Node",
        "spec": {"providerID": format!("kwok://{name}"), "taints": taints},
        "status": {"capacity": capacity, "allocatable": allocatable,
            "conditions": [World::condition("Ready", stage == Stage::Initialized)]}});
    node["metadata"] = world.metadata(None, name);
    node["metadata"]["labels"] = labels;
    node
}
