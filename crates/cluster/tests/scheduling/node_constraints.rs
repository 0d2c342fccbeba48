//! What pools and pods ask of the labels and taints of nodes.

use serde_json::{Value, json};

use crate::objects::{Pod, Pool, pod, pool};
use crate::world::World;

/// A pool that gives its nodes a label, written in both ways.
fn labelling(name: &str, value: &str) -> [Pool; 2] {
    [pool("default").label(name, value), pool("default").requires(&format!("{name} In {value}"))]
}

/// A pod that wants a label, written in both ways.
fn wanting(name: &str, value: &str) -> [Pod; 2] {
    [pod("a").selects(&format!("{name}={value}")), pod("a").requires(&format!("{name} In {value}"))]
}

/// The value that the only new node has for a label.
#[track_caller]
fn check(pool: &Pool, pod: Pod, name: &str, value: Option<&str>) {
    let node = World::new().add(pool.clone()).add(pod).only_node();
    assert_eq!(node.label(name), value, "{node:#?}");
}

#[track_caller]
fn check_pending(pool: &Pool, pod: Pod, text: &str) {
    World::new().add(pool.clone()).add(pod).round().expect_pending("a", text).expect_nodes(0);
}

#[track_caller]
fn check_ignored(pool: &Pool, pod: Pod, text: &str) {
    World::new().add(pool.clone()).add(pod).round().expect_ignored("a", text).expect_nodes(0);
}

/// 27.2-01
#[test]
fn a_node_has_the_labels_of_its_pool() {
    for pool in labelling("team", "a") {
        check(&pool, pod("a"), "team", Some("a"));
    }
    // Labels of the template are on the claim itself, even those that the cloud will set.
    let node = World::new().add(pool("default").label("arch", "amd64")).add(pod("a")).only_node();
    assert_eq!(node.claim["metadata"]["labels"]["kubernetes.io/arch"], "amd64");
}

/// 27.2-02
#[test]
fn a_pod_does_not_get_a_label_that_its_pool_has_another_value_for() {
    let text = "incompatible requirements, key team, team In [b] not in team In [a]";
    for pool in labelling("team", "a") {
        check_pending(&pool, pod("a").selects("team=b"), text);
    }
}

/// 27.2-03
#[test]
fn a_pod_does_not_get_a_label_that_nobody_defines() {
    let text = "incompatible requirements, label \"team\" does not have known values";
    for pod in wanting("team", "a") {
        check_pending(&pool("default"), pod, text);
    }
}

/// 27.2-04
#[test]
fn a_pod_that_accepts_several_labels_gets_the_one_of_the_pool() {
    for pool in labelling("team", "a") {
        check(&pool, pod("a").requires("team In a b"), "team", Some("a"));
        check_pending(&pool, pod("a").requires("team In b"), "team In [b] not in team In [a]");
    }
}

/// 27.2-05
#[test]
fn a_pool_limits_the_zones_of_its_nodes() {
    for pool in labelling("zone", "z2") {
        check(&pool, pod("a"), "zone", Some("z2"));
    }
    for pod in wanting("zone", "z2") {
        check(&pool("default").requires("zone In z1 z2"), pod, "zone", Some("z2"));
    }
}

/// 27.2-06
#[test]
fn no_pod_can_choose_a_new_node_by_host_name() {
    for pool in labelling("team", "a") {
        for pod in wanting("hostname", "red") {
            check_ignored(&pool, pod, "using label kubernetes.io/hostname is not allowed");
        }
    }
}

/// 27.2-07
#[test]
fn a_zone_that_the_pool_does_not_have_is_not_to_be_had() {
    for pod in wanting("zone", "nowhere") {
        check_pending(&pool("default"), pod, "no instance type met the scheduling requirements");
    }
    for pool in labelling("zone", "z1") {
        for pod in wanting("zone", "z2") {
            check_pending(&pool, pod, "zone In [z2] not in topology.kubernetes.io/zone In [z1]");
        }
    }
}

/// 27.2-08
#[test]
fn a_pod_can_name_zones_or_exclude_them() {
    for pool in [pool("default"), pool("default").requires("zone In z1 z2 z3")] {
        check(&pool, pod("a").requires("zone In z3"), "zone", Some("z3"));
        check(&pool, pod("a").requires("zone NotIn z1 z2 nowhere"), "zone", Some("z3"));
        check_pending(&pool, pod("a").requires("zone NotIn z1 z2 z3 nowhere"), "zone");
    }
}

/// 27.2-09
#[test]
fn numbers_can_be_bounded() {
    for (condition, cpus) in
        [("Gt 8", "16"), ("Lt 4", "2"), ("Lt 8", "2"), ("Gte 16", "16"), ("Lte 2", "2"), ("Lte 3", "2")]
    {
        let condition = format!("cpus {condition}");
        check(&pool("default").requires(&condition), pod("a"), "cpus", Some(cpus));
        // Pods have no Gte and Lte in the API.
        if !condition.contains("te ") {
            check(&pool("default"), pod("a").requires(&condition), "cpus", Some(cpus));
        }
    }
    check_pending(&pool("default"), pod("a").requires("cpus Gt 16"), "no instance type met");
    check(&pool("default").requires("cpus Gte 4"), pod("a").requires("cpus Lt 16"), "cpus", Some("4"));
}

/// 27.2-10
#[test]
fn a_wish_for_a_zone_counts_if_it_can_be_had() {
    for pool in [pool("default"), pool("default").requires("zone In z1 z2 z3")] {
        let all = || pod("a").requires("zone In z1 z2 z3 nowhere");
        check(&pool, all().prefers(1, "zone In z2 nowhere"), "zone", Some("z2"));
        let node = World::new().add(pool.clone()).add(all().prefers(1, "zone In nowhere")).only_node();
        assert!(node.values("zone").len() >= 3, "{:?}", node.values("zone"));
    }
}

/// 27.2-11
#[test]
fn a_wish_to_avoid_zones_counts_if_one_is_left() {
    for pool in [pool("default"), pool("default").requires("zone In z1 z2 z3")] {
        let all = || pod("a").requires("zone In z1 z2 z3 nowhere");
        check(&pool, all().prefers(1, "zone NotIn z1 z3"), "zone", Some("z2"));
        World::new().add(pool.clone()).add(all().prefers(1, "zone NotIn z1 z2 z3")).only_node();
    }
}

/// 27.2-12
#[test]
fn selector_requirement_and_wish_hold_together() {
    for pool in [pool("default"), pool("default").requires("zone In z1 z2 z3")] {
        let pod = || pod("a").selects("zone=z3").requires("zone In z1 z2 z3").prefers(1, "zone In z1 z2 z3");
        check(&pool, pod(), "zone", Some("z3"));
        let pod = pod()
            .selects("type=arm")
            .requires("type In default arm")
            .prefers(1, "zone In nowhere")
            .prefers(2, "type In arm,zone In z3");
        check(&pool, pod.clone(), "zone", Some("z3"));
        check(&pool, pod, "type", Some("arm"));
    }
}

/// 27.2-13
#[test]
fn a_pod_that_asks_for_a_restricted_label_is_ignored_with_the_reason() {
    for name in ["hostname", "karpenter.sh/x", "sub.karpenter.sh/x"] {
        for pod in wanting(name, "y") {
            check_ignored(&pool("default"), pod, "is not allowed as it might interfere");
        }
    }
}

/// 27.2-14
#[test]
fn pools_may_label_nodes_in_domains_of_kubernetes() {
    for name in
        ["kubernetes.io/x", "k8s.io/x", "sub.kubernetes.io/x", "node.kubernetes.io/x", "kops.k8s.io/x"]
    {
        for pool in labelling(name, "y") {
            check(&pool, pod("a"), name, Some("y"));
            check(&pool, pod("a").selects(&format!("{name}=y")), name, Some("y"));
        }
    }
}

/// 27.2-15
#[test]
fn pods_can_choose_by_every_label_of_a_type() {
    for (name, value) in
        [("zone", "z1"), ("type", "default"), ("arch", "amd64"), ("os", "linux"), ("capacity", "spot")]
    {
        for pod in wanting(name, value) {
            check(&pool("default"), pod, name, Some(value));
        }
    }
}

/// 27.2-16
#[test]
fn pools_that_are_not_ready_or_going_away_get_no_nodes() {
    let not_ready = json!({"status": {"conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    for (fields, reason) in [(not_ready, "not ready"), (deleting, "being deleted")] {
        let unusable = pool("gone").with(fields);
        let outcome = World::new().add(unusable.clone()).add(pod("a")).round();
        outcome.expect_pending("a", "nodepool requirements filtered out all available instance types");
        assert_eq!(outcome.ignored, [format!("NodePool gone: {reason}")]);
        let node = World::new().add(unusable.weight(100)).add(pool("other")).add(pod("a")).only_node();
        assert_eq!(node.pool, "other");
    }
}

/// 27.2-17
#[test]
fn a_label_that_nobody_defines_is_absent() {
    for condition in ["team In a", "team Exists"] {
        check_pending(
            &pool("default"),
            pod("a").requires(condition),
            "label \"team\" does not have known values",
        );
    }
    check(&pool("default"), pod("a").requires("team DoesNotExist"), "team", None);
    // The claim gets some value that is not excluded, as every label of the user's own does.
    check(&pool("default"), pod("a").requires("team NotIn a"), "team", Some("0"));
}

/// 27.2-18
#[test]
fn every_operator_is_held_against_the_label_of_a_pool() {
    for pool in labelling("team", "a") {
        for condition in ["team In a", "team Exists", "team NotIn b"] {
            check(&pool, pod("a").requires(condition), "team", Some("a"));
        }
        for condition in ["team NotIn a", "team DoesNotExist", "team In b"] {
            check_pending(&pool, pod("a").requires(condition), "not in team In [a]");
        }
    }
}

/// 27.2-19
#[test]
fn pods_share_a_node_if_their_labels_agree() {
    for name in ["team", "zone"] {
        let (one, other) = if name == "zone" { ("z1", "z2") } else { ("a", "b") };
        let world = World::new().add(pool("default").requires(&format!("{name} In {one} {other}")));
        let first = pod("first").requires(&format!("{name} In {one}"));
        let node = world.clone().add(first.clone()).add(pod("b").requires(&format!("{name} NotIn {other}")));
        let node = node.only_node();
        assert_eq!((node.label(name), node.pods.len()), (Some(one), 2));
        let outcome = world.add(first).add(pod("b").requires(&format!("{name} In {other}"))).round();
        outcome.expect_nodes(2);
        assert_eq!(outcome.new_node("first").label(name), Some(one));
        assert_eq!(outcome.new_node("b").label(name), Some(other));
    }
}

/// 27.2-20
#[test]
fn a_weaker_condition_does_not_widen_a_stronger_one() {
    for pool in [pool("default"), pool("default").requires("zone In z1 z2 z3")] {
        let orders = [["zone In nowhere", "zone Exists"], ["zone Exists", "zone In nowhere"]];
        for [first, second] in orders {
            check_pending(&pool, pod("a").requires(first).requires(second), "zone");
        }
    }
}

/// 27.2-21
#[test]
fn pods_can_choose_their_pool_by_name_or_label() {
    let world =
        World::new().add(pool("one").label("team", "a")).add(pool("two").label("team", "b").weight(9));
    for (name, value) in [("pool", "one"), ("team", "a")] {
        for pod in wanting(name, value) {
            assert_eq!(world.clone().add(pod).only_node().pool, "one");
        }
    }
    assert_eq!(world.clone().add(pod("a")).only_node().pool, "two");
    // Every pool says why not, in the order in which they are tried.
    let text = "key team, team In [c] not in team In [b]; incompatible requirements, key team, team In [c] not in team In [a]";
    world.clone().add(pod("a").selects("team=c")).round().expect_pending("a", text);
    for name in ["pool", "zone", "type", "arch", "os", "capacity", "team"] {
        for pod in wanting(name, "unknown") {
            world.clone().add(pod).round().expect_unplaced("a").expect_nodes(0);
        }
    }
}

/// 27.2-22
#[test]
fn a_tainted_pool_takes_only_pods_that_tolerate_it() {
    let world = World::new().add(pool("default").taint("gpu=yes:NoSchedule"));
    let tolerating = |toleration: Value| world.clone().add(pod("a").tolerates(toleration));
    for toleration in [
        json!({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}),
        json!({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}),
        json!({"key": "gpu", "value": "yes"}),
        json!({"key": "gpu", "operator": "Exists"}),
        json!({"operator": "Exists"}),
    ] {
        let node = tolerating(toleration).only_node();
        assert_eq!(
            node.claim["spec"]["taints"],
            json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
        );
    }
    let text = "did not tolerate taint (taint=gpu=yes:NoSchedule)";
    world.clone().add(pod("a")).round().expect_pending("a", text);
    for toleration in [
        json!({"key": "cpu", "operator": "Exists"}),
        json!({"key": "gpu", "operator": "Equal", "effect": "NoSchedule"}),
        json!({"key": "gpu", "operator": "Equal", "value": "no"}),
        json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}),
    ] {
        tolerating(toleration).round().expect_pending("a", text);
    }
}

/// 27.2-23
#[test]
fn startup_taints_need_no_toleration_and_tolerations_make_no_taints() {
    let node = World::new().add(pool("default").startup_taint("boot:NoSchedule")).add(pod("a")).only_node();
    assert_eq!(node.claim["spec"]["startupTaints"], json!([{"key": "boot", "effect": "NoSchedule"}]));
    let tolerant = pod("a").tolerates(json!({"key": "gpu", "operator": "Equal", "value": "yes"}));
    let node = World::with_pool().add(tolerant.tolerates(json!({"operator": "Exists"}))).only_node();
    assert_eq!(node.claim["spec"]["taints"], Value::Null);
}
