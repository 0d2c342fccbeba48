//! Which of several nodes is chosen.

use serde_json::{Value, json};

use super::support::{World, merge};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Where the pod goes with node `a` and a changed node `b`; equal nodes would give `a`.
fn choice(b: Value, prepare: impl Fn(&mut World), pod: Value) -> String {
    let mut world = World::default();
    let zone = |name: &str| json!({"metadata": {"labels": {"zone": name}}});
    let mut second = zone("y");
    merge(&mut second, &b);
    world.node("a", zone("x")).node("b", second);
    prepare(&mut world);
    world.pod("pod", pod);
    world.decisions().remove(0)
}

#[test]
fn more_room_is_better() {
    assert_eq!(choice(json!({}), |_| {}, json!({})), "pod -> a");
    let bigger = json!({"status": {"allocatable": {"cpu": "8", "memory": "16Gi"}}});
    assert_eq!(choice(bigger, |_| {}, json!({})), "pod -> b");
}

#[test]
fn preferred_node_affinity_decides() {
    let term = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]});
    let pod =
        json!({"spec": {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}}});
    assert_eq!(choice(json!({}), |_| {}, pod), "pod -> b");
}

#[test]
fn a_taint_that_asks_politely_is_avoided_unless_tolerated() {
    let taint = json!({"spec": {"taints": [{"key": "rest", "effect": "PreferNoSchedule"}]}});
    let big = json!({"status": {"allocatable": {"cpu": "8", "memory": "16Gi"}}});
    let mut both = taint;
    merge(&mut both, &big);
    assert_eq!(choice(both.clone(), |_| {}, json!({})), "pod -> a");
    let tolerant = json!({"spec": {"tolerations": [{"key": "rest", "operator": "Exists"}]}});
    assert_eq!(choice(both, |_| {}, tolerant), "pod -> b");
}

fn web(world: &mut World, node: &str) {
    world.placed("one", node, json!({"metadata": {"labels": {"app": "web"}}}));
}

#[test]
fn preferred_pod_affinity_pulls_and_anti_affinity_pushes() {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}});
    let near = |kind: &str| json!({"spec": {"affinity": {kind: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}}});
    assert_eq!(choice(json!({}), |world| web(world, "b"), near("podAffinity")), "pod -> b");
    let roomy = json!({"status": {"allocatable": {"cpu": "40", "memory": "80Gi"}}});
    assert_eq!(choice(roomy.clone(), |world| web(world, "b"), json!({})), "pod -> b");
    assert_eq!(choice(roomy.clone(), |_| {}, near("podAntiAffinity")), "pod -> b");
    assert_eq!(choice(roomy, |world| web(world, "b"), near("podAntiAffinity")), "pod -> a");
}

#[test]
fn placed_pods_pull_those_they_prefer() {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}});
    let prepare = |world: &mut World| {
        let affinity = json!({"podAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}});
        world.placed("one", "b", json!({"spec": {"affinity": affinity}}));
    };
    assert_eq!(choice(json!({}), prepare, json!({"metadata": {"labels": {"app": "web"}}})), "pod -> b");
    assert_eq!(choice(json!({}), prepare, json!({})), "pod -> a");
}

#[test]
fn a_soft_spread_prefers_the_emptier_domain() {
    let constraint = json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let pod =
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": constraint}});
    let roomy = json!({"status": {"allocatable": {"cpu": "40", "memory": "80Gi"}}});
    assert_eq!(choice(roomy.clone(), |world| web(world, "b"), json!({})), "pod -> b");
    assert_eq!(choice(roomy.clone(), |_| {}, pod.clone()), "pod -> b");
    assert_eq!(choice(roomy, |world| web(world, "b"), pod), "pod -> a");
}
