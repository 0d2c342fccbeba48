//! Which nodes a spread looks at: those whose taints the pod tolerates, those that it accepts, or all.

use serde_json::{Value, json};

use crate::objects::{Pod, need, spread, with};
use crate::spread::web;
use crate::spread_counting::counts;
use crate::world::World;

const SLOT: &str = "example.com/slot";

/// A spread over slots that looks at taints or at the pod's own rules, or does not.
fn rule(policy: &str, value: &str) -> Value {
    with(spread(SLOT, 1, "web"), json!({policy: value}))
}

fn tainted(key: &str) -> Value {
    json!([{"key": key, "effect": "NoSchedule"}])
}

/// A cluster whose pool has one slot, and two full nodes in other slots.
fn with_nodes_elsewhere(node: &Value) -> World {
    let mut world = World::new();
    world.pool_requires("default", json!([need(SLOT, "In", &["ours"])]));
    for name in ["b", "c"] {
        world.node(name, json!({SLOT: name}));
        world.change("Node", name, json!({"status": {"allocatable": {"pods": "0"}}}));
        world.change("Node", name, node.clone());
    }
    world
}

/// 27.15-12
#[test]
fn domains_of_tainted_nodes_count_unless_taints_are_looked_at() {
    for (policy, placed) in [("Ignore", 1), ("Honor", 5)] {
        let mut world = with_nodes_elsewhere(&json!({"spec": {"taints": tainted("theirs")}}));
        world.pods(5, "web", &web(rule("nodeTaintsPolicy", policy)));
        world.provision().expect_placed(placed);
        assert_eq!(world.skew(SLOT, "web"), [placed]);
    }
    // Taints are not looked at unless a pod says so.
    let mut world = with_nodes_elsewhere(&json!({"spec": {"taints": tainted("theirs")}}));
    world.pods(5, "web", &web(spread(SLOT, 1, "web")));
    world.plan().expect_placed(1);
}

/// 27.15-12
#[test]
fn domains_of_tainted_pools_count_unless_taints_are_looked_at() {
    for (policy, placed) in [("Ignore", 1), ("Honor", 2)] {
        let mut world = World::new();
        world.pool_requires("default", json!([need(SLOT, "In", &["ours"])]));
        let spec = json!({"taints": tainted("theirs"), "requirements": [need(SLOT, "In", &["theirs"])]});
        world.pool("tainted", json!({"template": {"spec": spec}}));
        world.pods(2, "web", &web(rule("nodeTaintsPolicy", policy)));
        world.plan().expect_placed(placed);
    }
}

/// 27.15-12
#[test]
fn pools_that_exclude_each_others_pods_can_share_a_domain() {
    let mut world = World::empty();
    world.types = World::new().types;
    let pool = |taint: &str, slots: &[&str]| json!({"template": {"spec": {"taints": tainted(taint), "requirements": [need(SLOT, "In", slots)]}}});
    world.pool("one", pool("one", &["a", "shared"]));
    world.pool("two", pool("two", &["shared", "b"]));
    // Pods see the domains and count the nodes of the pool whose taint they tolerate.
    world.pods(2, "one", &web(rule("nodeTaintsPolicy", "Honor")).tolerate("one"));
    world.pods(4, "two", &web(rule("nodeTaintsPolicy", "Honor")).tolerate("two"));
    world.provision().expect_all_placed();
    assert_eq!(world.domains(SLOT, "web"), counts(&[("a", 1), ("b", 2), ("shared", 3)]));
}

/// 27.15-13
#[test]
fn domains_of_nodes_that_the_pod_does_not_accept_count_unless_its_rules_are_looked_at() {
    for (policy, placed) in [(Some("Ignore"), 1), (Some("Honor"), 5), (None, 5)] {
        let mut world = with_nodes_elsewhere(&json!({"metadata": {"labels": {"team": "theirs"}}}));
        let labels = json!({"template": {"metadata": {"labels": {"team": "ours"}}}});
        world.change("NodePool", "default", json!({"spec": labels}));
        let rule = with(spread(SLOT, 1, "web"), json!({"nodeAffinityPolicy": policy}));
        world.pods(5, "web", &web(rule).on("team", "ours"));
        world.plan().expect_placed(placed);
    }
    let mut world = with_nodes_elsewhere(&json!({"metadata": {"labels": {"team": "theirs"}}}));
    world.pods(5, "web", &Pod::of("web").spread(spread(SLOT, 1, "web")));
    world.plan().expect_placed(1);
}
