//! Which nodes take a pod.

use serde_json::{Value, json};

use super::support::World;

#[test]
fn a_pod_goes_to_the_emptiest_node_and_counts_there_at_once() {
    let mut world = World::default();
    world.node("a", json!({})).node("b", json!({}));
    world.cpu("one", "2", json!({})).cpu("two", "2", json!({})).cpu("three", "3", json!({}));
    assert_eq!(
        world.decisions(),
        [
            "one -> a",
            "two -> b",
            "three: 0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: \
             2 No preemption victims found for incoming pod.",
        ]
    );
    assert_eq!(world.decisions(), [""; 0]);
    world.delete("one");
    assert_eq!(world.decisions(), ["three -> a"]);
}

#[test]
fn without_nodes_the_message_says_so() {
    let mut world = World::default();
    world.pod("one", json!({}));
    assert_eq!(world.decisions(), ["one: no nodes available to schedule pods"]);
}

/// A node for each pair, the pod, and where the pod could go.
fn places(nodes: &[(&str, Value)], pod: Value) -> Vec<String> {
    let mut world = World::default();
    for (name, patch) in nodes {
        world.node(name, patch.clone());
    }
    world.pod("pod", pod).feasible("pod")
}

#[test]
fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
    let nodes = [("a", json!({"spec": {"unschedulable": true}}))];
    assert_eq!(places(&nodes, json!({})), [""; 0]);
    let toleration = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
    assert_eq!(places(&nodes, json!({"spec": {"tolerations": toleration}})), ["a"]);
    let mut world = World::default();
    world.node("a", nodes[0].1.clone()).pod("pod", json!({}));
    assert_eq!(world.refusal(), "0/1 nodes are available: 1 node(s) were unschedulable.");
}

#[test]
fn a_taint_keeps_pods_off_unless_key_value_and_effect_are_tolerated() {
    let taint =
        |effect: &str| json!({"spec": {"taints": [{"key": "dedicated", "value": "x", "effect": effect}]}});
    let nodes = [
        ("execute", taint("NoExecute")),
        ("open", json!({})),
        ("prefer", taint("PreferNoSchedule")),
        ("schedule", taint("NoSchedule")),
    ];
    let with = |toleration: Value| places(&nodes, json!({"spec": {"tolerations": [toleration]}}));
    assert_eq!(places(&nodes, json!({})), ["open", "prefer"]);
    assert_eq!(with(json!({"key": "dedicated", "value": "x"})), ["execute", "open", "prefer", "schedule"]);
    assert_eq!(with(json!({"key": "dedicated", "value": "y"})), ["open", "prefer"]);
    assert_eq!(with(json!({"key": "other", "operator": "Exists"})), ["open", "prefer"]);
    assert_eq!(with(json!({"operator": "Exists"})), ["execute", "open", "prefer", "schedule"]);
    assert_eq!(
        with(json!({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"})),
        ["open", "prefer", "schedule"]
    );
    let mut world = World::default();
    world.node("a", taint("NoExecute")).pod("pod", json!({}));
    assert_eq!(world.refusal(), "0/1 nodes are available: 1 node(s) had untolerated taint(s).");
}

fn labelled(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

fn requiring(terms: Value) -> Value {
    json!({"spec": {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}})
}

#[test]
fn every_operator_of_node_affinity_compares_as_documented() {
    let nodes = [
        ("five", labelled(json!({"disk": "ssd", "generation": "5"}))),
        ("none", json!({})),
        ("ten", labelled(json!({"disk": "hdd", "generation": "10"}))),
        ("word", labelled(json!({"generation": "new"}))),
    ];
    let expression = |key: &str, operator: &str, values: Value| {
        places(
            &nodes,
            requiring(json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])),
        )
    };
    assert_eq!(expression("disk", "In", json!(["ssd", "nvme"])), ["five"]);
    assert_eq!(expression("disk", "NotIn", json!(["ssd"])), ["none", "ten", "word"]);
    assert_eq!(expression("disk", "Exists", json!([])), ["five", "ten"]);
    assert_eq!(expression("disk", "DoesNotExist", json!([])), ["none", "word"]);
    assert_eq!(expression("generation", "Gt", json!(["5"])), ["ten"]);
    assert_eq!(expression("generation", "Lt", json!(["10"])), ["five"]);
}

#[test]
fn terms_are_alternatives_and_an_empty_term_matches_nothing() {
    let nodes =
        [("a", labelled(json!({"disk": "ssd"}))), ("b", labelled(json!({"disk": "hdd"}))), ("c", json!({}))];
    let disk =
        |value: &str| json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]});
    assert_eq!(places(&nodes, requiring(json!([disk("ssd"), disk("hdd")]))), ["a", "b"]);
    assert_eq!(places(&nodes, requiring(json!([{}]))), [""; 0]);
    let mut both = requiring(json!([disk("ssd"), disk("hdd")]));
    both["spec"]["nodeSelector"] = json!({"disk": "hdd"});
    assert_eq!(places(&nodes, both), ["b"]);
}

#[test]
fn a_pod_that_names_its_node_is_told_that_the_others_were_not_asked() {
    let named = |names: &[&str]| {
        let fields =
            names.iter().map(|name| json!({"key": "metadata.name", "operator": "In", "values": [name]}));
        requiring(json!([{"matchFields": fields.collect::<Vec<_>>()}]))
    };
    let nodes = [("a", json!({})), ("b", json!({})), ("c", json!({}))];
    assert_eq!(places(&nodes, named(&["b"])), ["b"]);
    let mut world = World::default();
    world.node("a", json!({"spec": {"unschedulable": true}})).node("b", json!({})).pod("pod", named(&["a"]));
    assert_eq!(
        world.refusal(),
        "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable."
    );
    let mut world = World::default();
    world.node("a", json!({})).node("b", json!({})).pod("pod", named(&["a", "b"]));
    assert_eq!(world.refusal(), "0/2 nodes are available: pod affinity terms conflict.");
}

#[test]
fn host_ports_collide_by_protocol_number_and_address() {
    let port = |port: i32, protocol: &str, address: &str| {
        json!({"spec": {"containers": [{"name": "main",
            "ports": [{"containerPort": 80, "hostPort": port, "protocol": protocol, "hostIP": address}]}]}})
    };
    let free = |wanted: Value, used: Value| {
        let mut world = World::default();
        world.node("a", json!({})).placed("used", "a", used).pod("pod", wanted);
        !world.feasible("pod").is_empty()
    };
    assert!(!free(port(80, "TCP", ""), port(80, "TCP", "")));
    assert!(!free(port(80, "TCP", "127.0.0.1"), port(80, "TCP", "")));
    assert!(!free(port(80, "TCP", "0.0.0.0"), port(80, "TCP", "127.0.0.1")));
    assert!(free(port(80, "TCP", "127.0.0.1"), port(80, "TCP", "10.0.0.1")));
    assert!(free(port(80, "UDP", ""), port(80, "TCP", "")));
    assert!(free(port(81, "TCP", ""), port(80, "TCP", "")));
    let mut world = World::default();
    world.node("a", json!({})).placed("used", "a", port(80, "TCP", "")).pod("pod", port(80, "TCP", ""));
    assert_eq!(
        world.refusal(),
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
    );
}
