//! 16.21: repair as older releases did it, behind a flag.

use std::time::Duration;

use api::names::metrics::{NODECLAIMS_DISRUPTED, NODECLAIMS_UNHEALTHY_DISRUPTED};
use cloud::{RepairAction, RepairPolicy};
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;

use crate::support::{FakeCloud, Operated};

const DEADLINE: &str = "karpenter.sh/nodeclaim-termination-timestamp";

fn start(gate: bool, legacy: bool) -> Operated {
    let mut settings = Settings { legacy_node_repair: legacy, ..Settings::default() };
    settings.gates.node_repair = gate;
    let cloud = FakeCloud::default();
    *cloud.policies.lock() = vec![RepairPolicy {
        condition: "KernelReady",
        status: "False",
        reason_pattern: "",
        toleration: Duration::from_mins(30),
        termination_grace_period: None,
        priority: 0,
        action: RepairAction::Replace,
    }];
    let mut world = Operated::with_settings(World::new(1), cloud, settings);
    world.add_node("a", &json!({}));
    world
}

/// The kernel of a node has a problem from now on.
fn break_node(world: &Operated, name: &str) {
    let path = format!("/api/v1/nodes/{name}");
    let mut conditions = world.node(name)["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(json!({"type": "KernelReady", "status": "False", "reason": "Oops",
        "lastTransitionTime": world.now().to_string()}));
    world.patch(&format!("{path}/status"), &json!({"status": {"conditions": conditions}}));
}

fn deadline(world: &Operated) -> Value {
    world.claim("a")["metadata"]["annotations"][DEADLINE].clone()
}

#[test]
fn a_broken_node_goes_at_once_whatever_protects_it() {
    let mut world = start(true, true);
    world.patch(
        "/api/v1/nodes/a",
        &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true",
            "karpenter.sh/do-not-repair": "true"}}}),
    );
    world.patch(
        "/apis/karpenter.sh/v1/nodepools/pool",
        &json!({"spec": {"disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]}}}),
    );
    world.add_pod("p", "a", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    world.pass(3);
    break_node(&world, "a");
    world.pass(29 * 60);
    assert!(world.claim("a")["metadata"]["deletionTimestamp"].is_null());
    assert!(deadline(&world).is_null());
    world.until("it is gone", 120, |world| world.is_claim_gone("a"));
    let labels = ["kernel_ready", "pool", "on-demand", "image-1", "graceful"];
    assert_eq!(world.metric(&NODECLAIMS_UNHEALTHY_DISRUPTED, &labels), 1);
    assert_eq!(world.metric(&NODECLAIMS_DISRUPTED, &["unhealthy", "pool", "on-demand", "", "graceful"]), 1);
}

#[test]
fn it_needs_both_the_gate_and_the_flag() {
    for (gate, legacy) in [(false, true), (false, false), (true, false)] {
        let mut world = start(gate, legacy);
        break_node(&world, "a");
        world.pass(45 * 60);
        assert!(!world.is_claim_gone("a"), "{gate} {legacy}");
    }
}

#[test]
fn a_deadline_in_the_future_is_brought_forward_and_one_in_the_past_is_kept() {
    for (known, kept) in [("2026-01-06T09:00:00Z", false), ("2026-01-05T08:00:00Z", true)] {
        let mut world = start(true, true);
        // It must not be gone before somebody has looked.
        world.patch(
            "/apis/karpenter.sh/v1/nodeclaims/a",
            &json!({"metadata": {"annotations": {DEADLINE: known},
                "finalizers": ["karpenter.sh/termination", "test/kept"]}}),
        );
        break_node(&world, "a");
        world.pass(31 * 60);
        assert_eq!(deadline(&world) == known, kept, "{known}");
    }
}

#[test]
fn a_broken_node_of_no_pool_is_told_of_the_whole_cluster() {
    let mut world = start(true, true);
    for name in ["b", "c"] {
        world.add_node(name, &json!({"metadata": {"labels": {"karpenter.sh/nodepool": ""}}}));
        break_node(&world, name);
    }
    world.pass(45 * 60);
    let told = world.events("NodeRepairBlocked");
    for name in ["b", "c"] {
        assert!(!world.is_claim_gone(name));
        let text = format!("{name}: more then 20% nodes are unhealthy in the cluster");
        assert!(told.contains(&text), "{told:?}");
    }
}

#[test]
fn too_many_broken_nodes_stop_it_and_every_object_says_so() {
    let mut world = start(true, true);
    for name in ["b", "c"] {
        world.add_node(name, &json!({}));
    }
    break_node(&world, "a");
    break_node(&world, "b");
    world.pass(45 * 60);
    assert!(!world.is_claim_gone("a") && !world.is_claim_gone("b"));
    let told = world.events("NodeRepairBlocked");
    for name in ["a", "b", "pool"] {
        let text = format!("{name}: more than 20% nodes are unhealthy in the nodepool");
        assert!(told.contains(&text), "{told:?}");
    }
    // One of them recovers: one of three is not too many.
    world.patch("/api/v1/nodes/b/status", &json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": world.now().to_string()}]}}));
    world.until("the other is repaired", 400, |world| world.is_claim_gone("a"));
}
