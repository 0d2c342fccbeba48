//! Random constraints of pods: where they may run and beside whom.

use serde_json::{Map, Value, json};

use super::catalogue::{CAPACITY_TYPE, ZONE};
use super::features::Feature::{
    Affinity, AntiAffinity, Namespaces, NodeSelectors, PreferredAffinity, PreferredAntiAffinity,
    PreferredNodeAffinity, RequiredNodeAffinity, SoftSpread, Spread, SpreadPolicies, Tolerations,
};
use super::world::{LEVEL, RACK, World};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// Gives a pod's spec its constraints. `app` is the pod's own label, `apps` are all there are.
pub(crate) fn add(world: &mut World, spec: &mut Value, app: &str, apps: &[String]) {
    if world.draws(NodeSelectors, 35) {
        spec["nodeSelector"] = node_selector(world);
    }
    let affinity = affinity(world, app, apps);
    if !affinity.is_empty() {
        spec["affinity"] = Value::Object(affinity);
    }
    if world.draws(Tolerations, 60) {
        spec["tolerations"] = (0..world.random.between(1, 2)).map(|_| toleration(world)).collect();
    }
    let spreads = spreads(world, app, apps);
    if !spreads.is_empty() {
        spec["topologySpreadConstraints"] = json!(spreads);
    }
}

/// Labels that nodes must have.
pub(crate) fn node_selector(world: &mut World) -> Value {
    let mut selector = Map::new();
    for _ in 0..*world.random.weighted(&[(80, 1), (20, 2)]) {
        let (key, values) = world.label();
        selector.insert(key.to_owned(), json!(world.random.pick(&values)));
    }
    Value::Object(selector)
}

/// A toleration of one of the taints that nodes may have.
pub(crate) fn toleration(world: &mut World) -> Value {
    match world.random.below(7) {
        0 => json!({"operator": "Exists"}),
        1 => json!({"key": "dedicated", "operator": "Equal", "value": "red"}),
        2 => json!({"key": "dedicated", "operator": "Equal", "value": "blue", "effect": "NoSchedule"}),
        3 => json!({"key": "dedicated", "operator": "Exists"}),
        4 => json!({"key": "flaky", "operator": "Exists"}),
        5 => json!({"key": LEVEL, "operator": "Exists"}),
        _ => json!({"operator": "Exists", "effect": *world.random.pick(&["NoSchedule", "PreferNoSchedule"])}),
    }
}

fn expression(world: &mut World) -> Value {
    if world.random.chance(15) {
        let key = *world.random.pick(&["karpenter.kwok.sh/instance-cpu", LEVEL]);
        let operator = *world.random.pick(&["Gt", "Lt"]);
        let bound = *world.random.pick(&["1", "3", "4", "8"]);
        return json!({"key": key, "operator": operator, "values": [bound]});
    }
    let (key, values) = world.label();
    match world.random.below(10) {
        0..=4 => {
            let count = world.random.between(1, values.len().min(3));
            json!({"key": key, "operator": "In", "values": world.random.some(&values, count)})
        }
        5..=7 => json!({"key": key, "operator": "NotIn", "values": world.random.some(&values, 1)}),
        8 => json!({"key": key, "operator": "Exists"}),
        _ => json!({"key": key, "operator": "DoesNotExist"}),
    }
}

/// Terms of which one must hold.
pub(crate) fn node_terms(world: &mut World) -> Value {
    let count = *world.random.weighted(&[(50, 1), (35, 2), (15, 3)]);
    let terms: Vec<Value> = (0..count).map(|_| node_term(world)).collect();
    json!(terms)
}

fn node_term(world: &mut World) -> Value {
    let count = *world.random.weighted(&[(75, 1), (25, 2)]);
    let expressions: Vec<Value> = (0..count).map(|_| expression(world)).collect();
    json!({"matchExpressions": expressions})
}

fn affinity(world: &mut World, app: &str, apps: &[String]) -> Map<String, Value> {
    let mut affinity = Map::new();
    let mut node = Map::new();
    if world.draws(RequiredNodeAffinity, 40) {
        let terms = node_terms(world);
        node.insert(
            "requiredDuringSchedulingIgnoredDuringExecution".to_owned(),
            json!({"nodeSelectorTerms": terms}),
        );
    }
    if world.draws(PreferredNodeAffinity, 50) {
        let terms: Vec<Value> = (0..world.random.between(1, 3))
            .map(|_| json!({"weight": world.random.between(1, 100), "preference": node_term(world)}))
            .collect();
        node.insert("preferredDuringSchedulingIgnoredDuringExecution".to_owned(), json!(terms));
    }
    if !node.is_empty() {
        affinity.insert("nodeAffinity".to_owned(), Value::Object(node));
    }
    for (kind, required, preferred) in [
        ("podAffinity", Affinity, PreferredAffinity),
        ("podAntiAffinity", AntiAffinity, PreferredAntiAffinity),
    ] {
        let mut terms = Map::new();
        if world.draws(required, 40) {
            let count = *world.random.weighted(&[(85, 1), (15, 2)]);
            let list: Vec<Value> = (0..count).map(|_| pod_term(world, app, apps)).collect();
            terms.insert("requiredDuringSchedulingIgnoredDuringExecution".to_owned(), json!(list));
        }
        if world.draws(preferred, 40) {
            let list: Vec<Value> = (0..world.random.between(1, 2))
                .map(|_| json!({"weight": world.random.between(1, 100), "podAffinityTerm": pod_term(world, app, apps)}))
                .collect();
            terms.insert("preferredDuringSchedulingIgnoredDuringExecution".to_owned(), json!(list));
        }
        if !terms.is_empty() {
            affinity.insert(kind.to_owned(), Value::Object(terms));
        }
    }
    affinity
}

fn topology_key(world: &mut World) -> &'static str {
    const KEYS: &[(usize, &str)] =
        &[(45, ZONE), (38, HOSTNAME), (7, CAPACITY_TYPE), (7, RACK), (3, "kubernetes.io/arch")];
    let key: &&str = world.random.weighted(KEYS);
    key
}

fn selector(world: &mut World, app: &str, apps: &[String]) -> Value {
    match world.random.below(20) {
        0..=12 => json!({"matchLabels": {"app": app}}),
        13..=15 => json!({"matchLabels": {"app": world.random.pick(apps)}}),
        16 => {
            let chosen = world.random.some(apps, 2);
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": chosen}]})
        }
        17 => json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]}),
        18 => json!({"matchLabels": {"tier": *world.random.pick(&["front", "back"])}}),
        _ => json!({}),
    }
}

fn pod_term(world: &mut World, app: &str, apps: &[String]) -> Value {
    let mut term = json!({"topologyKey": topology_key(world), "labelSelector": selector(world, app, apps)});
    if world.has(Namespaces) {
        match world.random.below(6) {
            0 => {
                let namespaces = world.namespaces.clone();
                term["namespaces"] = json!(world.random.some(&namespaces, 2));
            }
            1 => term["namespaceSelector"] = json!({"matchLabels": {"env": "prod"}}),
            2 => term["namespaceSelector"] = json!({}),
            _ => {}
        }
    }
    term
}

fn spreads(world: &mut World, app: &str, apps: &[String]) -> Vec<Value> {
    let mut constraints: Vec<Value> = Vec::new();
    for (feature, mode) in [(Spread, "DoNotSchedule"), (SoftSpread, "ScheduleAnyway")] {
        if !world.draws(feature, 45) {
            continue;
        }
        for _ in 0..*world.random.weighted(&[(75, 1), (25, 2)]) {
            let constraint = spread(world, mode, app, apps);
            // An API server accepts each key once.
            let same = |known: &Value| {
                known["topologyKey"] == constraint["topologyKey"]
                    && known["whenUnsatisfiable"] == constraint["whenUnsatisfiable"]
            };
            if !constraints.iter().any(same) {
                constraints.push(constraint);
            }
        }
    }
    constraints
}

fn spread(world: &mut World, mode: &str, app: &str, apps: &[String]) -> Value {
    let max_skew = *world.random.weighted(&[(70, 1), (20, 2), (10, 3)]);
    let mut constraint =
        json!({"maxSkew": max_skew, "topologyKey": topology_key(world), "whenUnsatisfiable": mode});
    if !world.random.chance(3) {
        constraint["labelSelector"] = selector(world, app, apps);
    }
    if world.has(SpreadPolicies) {
        if mode == "DoNotSchedule" && world.random.chance(30) {
            constraint["minDomains"] = json!(world.random.between(1, 4));
        }
        if world.random.chance(40) {
            constraint["nodeAffinityPolicy"] = json!(*world.random.pick(&["Honor", "Ignore"]));
        }
        if world.random.chance(40) {
            constraint["nodeTaintsPolicy"] = json!(*world.random.pick(&["Honor", "Ignore"]));
        }
        if world.random.chance(20) && constraint.get("labelSelector").is_some() {
            constraint["matchLabelKeys"] = json!(["pod-template-hash"]);
        }
    }
    constraint
}
