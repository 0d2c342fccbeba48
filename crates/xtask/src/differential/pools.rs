//! Random NodePools.

use serde_json::{Value, json};

use super::catalogue::{CAPACITY_TYPE, GPU, ZONE};
use super::features::Feature::{
    Limits, MinValues, NodeLimits, PoolLabels, PoolRequirements, PoolTaints, SoftTaints, StartupTaints,
    StaticPools, UnreadyPools, Weights,
};
use super::world::{LEVEL, RACK, TEAM, World};

/// A pool, as far as nodes take something from it.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) taints: Vec<Value>,
    pub(crate) startup_taints: Vec<Value>,
}

/// Makes one to four pools and their node class.
pub(crate) fn generate(world: &mut World) {
    let mut class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass"});
    class["metadata"] = world.metadata(None, "default");
    world.items.push(class);
    let count = *world.random.weighted(&[(45, 1), (30, 2), (15, 3), (10, 4)]);
    // Names are not in the order of weights.
    let names = ["general", "batch", "special", "edge"];
    for name in &names[..count] {
        let pool = draw(world, name);
        world.items.push(pool);
    }
}

/// A taint that some pods tolerate.
pub(crate) fn taint(world: &mut World) -> Value {
    let soft = world.draws(SoftTaints, 40);
    let effect = if soft {
        "PreferNoSchedule"
    } else {
        *world.random.pick(&["NoSchedule", "NoSchedule", "NoExecute"])
    };
    match world.random.below(4) {
        0 => json!({"key": "dedicated", "value": "red", "effect": effect}),
        1 => json!({"key": "dedicated", "value": "blue", "effect": effect}),
        2 => json!({"key": LEVEL, "value": "5", "effect": effect}),
        _ => json!({"key": "flaky", "effect": effect}),
    }
}

fn draw(world: &mut World, name: &str) -> Value {
    let mut pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool"});
    pool["metadata"] = world.metadata(None, name);
    let mut template = json!({"metadata": {}, "spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "expireAfter": "Never"}});
    let mut known =
        Pool { name: name.to_owned(), labels: Vec::new(), taints: Vec::new(), startup_taints: Vec::new() };
    if world.draws(PoolLabels, 70) {
        for key in [TEAM, RACK, LEVEL] {
            if world.random.chance(45) {
                let values = world.values(key);
                known.labels.push((key.to_owned(), world.random.pick(&values).clone()));
            }
        }
        template["metadata"]["labels"] =
            known.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect::<Value>();
    }
    if world.draws(PoolTaints, 50) {
        known.taints.push(taint(world));
        template["spec"]["taints"] = json!(known.taints);
    }
    if world.draws(StartupTaints, 50) {
        known.startup_taints.push(json!({"key": "example.com/starting", "effect": "NoSchedule"}));
        template["spec"]["startupTaints"] = json!(known.startup_taints);
    }
    let requirements = requirements(world, &mut known);
    template["spec"]["requirements"] = json!(requirements);
    pool["spec"] = json!({"template": template, "disruption": {"consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "10%"}]}});
    // Nearly all clusters have a pool that can be used.
    let spare = if world.pools.is_empty() { 4 } else { 25 };
    if world.draws(StaticPools, spare) {
        pool["spec"]["replicas"] = json!(world.random.between(0, 3));
    } else {
        if world.draws(Weights, 70) {
            pool["spec"]["weight"] = json!(*world.random.pick(&[1, 10, 10, 50, 100]));
        }
        let limits = limits(world);
        if !limits.is_null() {
            pool["spec"]["limits"] = limits;
        }
    }
    let ready = !world.draws(UnreadyPools, spare);
    pool["status"] = json!({"conditions": [World::condition("ValidationSucceeded", true),
        World::condition("NodeClassReady", ready), World::condition("Ready", ready)]});
    if world.draws(UnreadyPools, spare / 2) {
        world.delete(&mut pool);
    }
    world.pools.push(known);
    pool
}

fn limits(world: &mut World) -> Value {
    let mut limits = Value::Null;
    if world.draws(Limits, 60) {
        limits["cpu"] = json!(world.random.between(2, 60).to_string());
        if world.random.chance(40) {
            limits["memory"] = json!(format!("{}Gi", world.random.between(4, 200)));
        }
        if world.random.chance(15) {
            limits[GPU] = json!(world.random.between(0, 6).to_string());
        }
    }
    if world.draws(NodeLimits, 50) {
        limits["nodes"] = json!(world.random.between(0, 8).to_string());
    }
    limits
}

fn requirements(world: &mut World, known: &mut Pool) -> Vec<Value> {
    let mut requirements = Vec::new();
    if world.has(PoolRequirements) {
        for _ in 0..world.random.between(0, 3) {
            let requirement = requirement(world);
            // Nodes of the pool have one of the values.
            if let ("In", Some(value)) =
                (requirement["operator"].as_str().unwrap_or_default(), requirement["values"].get(0))
            {
                let key = requirement["key"].as_str().unwrap_or_default();
                if [TEAM, RACK, LEVEL].contains(&key) && known.labels.iter().all(|(label, _)| label != key) {
                    known.labels.push((key.to_owned(), value.as_str().unwrap_or_default().to_owned()));
                }
            }
            requirements.push(requirement);
        }
    }
    if world.draws(MinValues, 70) {
        requirements.push(min_values(world));
    }
    requirements
}

fn requirement(world: &mut World) -> Value {
    if world.random.chance(20) {
        let key = *world.random.pick(&["karpenter.kwok.sh/instance-cpu", LEVEL]);
        let operator = *world.random.pick(&["Gt", "Lt", "Gte", "Lte"]);
        let bound = *world.random.pick(&["1", "2", "4", "8"]);
        return json!({"key": key, "operator": operator, "values": [bound]});
    }
    let (key, values) = world.label();
    match world.random.below(10) {
        0..=5 => {
            let count = world.random.between(1, values.len().min(6));
            json!({"key": key, "operator": "In", "values": world.random.some(&values, count)})
        }
        6..=7 => json!({"key": key, "operator": "NotIn", "values": world.random.some(&values, 1)}),
        8 => json!({"key": key, "operator": "Exists"}),
        // Without a zone or a type there would be no nodes at all.
        _ => json!({"key": *world.random.pick(&[TEAM, RACK]), "operator": "DoesNotExist"}),
    }
}

fn min_values(world: &mut World) -> Value {
    let key = *world.random.weighted(&[
        (40, "node.kubernetes.io/instance-type"),
        (25, "karpenter.kwok.sh/instance-family"),
        (15, "karpenter.kwok.sh/instance-cpu"),
        (10, ZONE),
        (10, CAPACITY_TYPE),
    ]);
    let values = world.values(key);
    if world.random.chance(50) {
        let most = values.len().min(4);
        return json!({"key": key, "operator": "Exists", "minValues": world.random.between(1, most)});
    }
    let count = world.random.between(1, values.len());
    let chosen = world.random.some(&values, count);
    let fewest = world.random.between(1, chosen.len().min(5));
    json!({"key": key, "operator": "In", "values": chosen, "minValues": fewest})
}
