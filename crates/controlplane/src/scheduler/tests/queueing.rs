//! Who is tried when, and what is written.

use serde_json::json;

use super::support::{World, key, parse};
use crate::scheduler::{Decision, Reason};

#[test]
fn more_important_pods_come_first_and_then_older_ones() {
    let mut world = World::default();
    world.node("a", json!({}));
    let created =
        |second: u32| json!({"metadata": {"creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")}});
    world.pod("young", created(9)).pod("old", created(1)).pod("middle", created(5));
    let mut important = created(20);
    important["spec"] = json!({"priority": 1});
    world.pod("important", important);
    assert_eq!(world.decisions(), ["important -> a", "old -> a", "middle -> a", "young -> a"]);
}

#[test]
fn pods_of_other_schedulers_and_pods_that_are_leaving_are_left_alone() {
    let mut world = World::default();
    world.node("a", json!({}));
    world.pod("other", json!({"spec": {"schedulerName": "other"}}));
    world.pod("leaving", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(world.decisions(), [""; 0]);
    world.pod("ours", json!({"spec": {"schedulerName": "default-scheduler"}}));
    assert_eq!(world.decisions(), ["ours -> a"]);
}

#[test]
fn a_gated_pod_is_told_so_once_and_tried_when_the_gate_opens() {
    let mut world = World::default();
    world.node("a", json!({}));
    world.pod("pod", json!({"spec": {"schedulingGates": [{"name": "wait"}]}}));
    let decisions = world.all();
    let [Decision::Unschedulable { reason, message, .. }] = &decisions[..] else { panic!("{decisions:?}") };
    assert_eq!(*reason, Reason::SchedulingGated);
    assert_eq!(message, "Scheduling is blocked due to non-empty scheduling gates");
    world.pod("pod", json!({"spec": {"schedulingGates": [{"name": "wait"}]}}));
    assert_eq!(world.decisions(), [""; 0]);
    world.pod("pod", json!({}));
    assert_eq!(world.decisions(), ["pod -> a"]);
}

#[test]
fn a_condition_that_is_there_already_is_not_written_again() {
    let mut world = World::default();
    world.node("a", json!({"spec": {"unschedulable": true}})).pod("pod", json!({}));
    let message = match &world.all()[..] {
        [Decision::Unschedulable { message, .. }] => message.clone(),
        other => panic!("{other:?}"),
    };
    let condition =
        json!({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}});
    let mut world = World::default();
    world.node("a", json!({"spec": {"unschedulable": true}})).pod("pod", condition);
    assert_eq!(world.decisions(), [""; 0]);
}

#[test]
fn equal_pods_that_fit_nowhere_are_all_told_and_tried_again_together() {
    let mut world = World::default();
    world.node("a", json!({"spec": {"unschedulable": true}}));
    world.pod("one", json!({})).pod("two", json!({})).pod("three", json!({}));
    assert_eq!(world.decisions().len(), 3);
    world.node("b", json!({"status": {"allocatable": {"pods": "2"}}}));
    let decisions = world.decisions();
    assert_eq!(decisions[..2], ["one -> b", "two -> b"]);
    assert!(
        decisions[2]
            .starts_with("three: 0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable.")
    );
}

#[test]
fn a_pod_says_what_is_in_its_way_when_a_taint_no_longer_is() {
    let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let mut world = World::default();
    world.node("a", json!({"spec": {"taints": [not_ready]}})).cpu("pod", "8", json!({}));
    assert_eq!(world.refusal(), "0/1 nodes are available: 1 node(s) had untolerated taint(s).");
    world.node("a", json!({}));
    assert_eq!(world.refusal(), "0/1 nodes are available: 1 Insufficient cpu.");
}

#[test]
fn a_node_that_cannot_help_and_a_heartbeat_wake_nobody() {
    let mut world = World::default();
    world.node("a", json!({"status": {"allocatable": {"cpu": "1"}}})).cpu("pod", "2", json!({}));
    assert_eq!(world.decisions().len(), 1);
    world.node("b", json!({"status": {"allocatable": {"cpu": "1"}}}));
    assert_eq!(world.decisions(), [""; 0]);
    world.node("a", json!({"status": {"allocatable": {"cpu": "1"}, "phase": "Running"}}));
    assert_eq!(world.decisions(), [""; 0]);
    world.node("a", json!({"status": {"allocatable": {"cpu": "2"}}}));
    assert_eq!(world.decisions(), ["pod -> a"]);
}

#[test]
fn the_first_node_changes_what_every_pod_is_told() {
    let mut world = World::default();
    world.pod("one", json!({})).pod("two", json!({}));
    assert_eq!(world.decisions().len(), 2);
    world.node("a", json!({"spec": {"unschedulable": true}}));
    assert_eq!(world.decisions().len(), 2);
}

#[test]
fn a_binding_that_failed_gives_the_place_back_and_is_tried_again() {
    let mut world = World::default();
    world.node("a", json!({"status": {"allocatable": {"pods": "1"}}})).pod("pod", json!({}));
    assert_eq!(world.decisions(), ["pod -> a"]);
    // Seen once more before the binding is there.
    world.pod("pod", json!({}));
    assert_eq!(world.decisions(), [""; 0]);
    world.scheduler.failed(&key("pod"));
    assert_eq!(world.decisions(), ["pod -> a"]);
    world.placed("pod", "a", json!({}));
    world.scheduler.failed(&key("pod"));
    assert_eq!(world.decisions(), [""; 0]);
}

#[test]
fn a_pod_made_anew_under_its_name_is_another_pod() {
    let mut world = World::default();
    world.node("a", json!({"status": {"allocatable": {"pods": "1"}}})).placed("pod", "a", json!({}));
    world.pod("pod", json!({"metadata": {"uid": "second"}}));
    assert_eq!(world.decisions(), ["pod -> a"]);
}

#[test]
fn a_pod_that_was_waited_for_wakes_those_that_want_it_near() {
    let mut world = World::default();
    let node = json!({"metadata": {"labels": {"zone": "x"}}});
    world.node("a", node);
    let term = json!([{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]);
    world.pod("pod", json!({"spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}}));
    assert_eq!(world.decisions().len(), 1);
    world.placed("one", "a", json!({"metadata": {"labels": {"app": "web"}}}));
    assert_eq!(world.decisions(), ["pod -> a"]);
}

#[test]
fn pods_on_nodes_that_are_gone_do_not_count() {
    let mut world = World::default();
    let node = json!({"metadata": {"labels": {"zone": "x"}}});
    world.node("a", node.clone()).node("b", node).placed(
        "one",
        "b",
        json!({"metadata": {"labels": {"app": "web"}}}),
    );
    let term = json!([{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}]);
    let far = json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}}});
    world.pod("pod", far);
    assert_eq!(world.feasible("pod"), [""; 0]);
    world.scheduler.observe_node("b", None);
    assert_eq!(world.decisions(), ["pod -> a"]);
}

#[test]
fn the_same_objects_in_another_order_give_the_same_places() {
    let run = |order: &[usize]| {
        let mut world = World::default();
        for index in order {
            world.node(&format!("node-{index}"), json!({}));
        }
        for index in 0..12 {
            world.cpu(&format!("pod-{index}"), "1", json!({}));
        }
        world.decisions()
    };
    assert_eq!(run(&[0, 1, 2, 3]), run(&[3, 1, 0, 2]));
}

#[test]
fn thousands_of_pods_are_placed_without_asking_every_pod_about_every_other() {
    let mut world = World::default();
    for index in 0..100 {
        let labels = json!({"zone": format!("z{}", index % 3)});
        let allocatable = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
        world.node(
            &format!("node-{index}"),
            json!({"metadata": {"labels": labels}, "status": {"allocatable": allocatable}}),
        );
    }
    let spread = json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]);
    for index in 0..1000 {
        let pod = json!({"metadata": {"name": format!("pod-{index}"), "namespace": "default", "labels": {"app": "web"},
            "uid": index.to_string()}, "spec": {"topologySpreadConstraints": spread,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}});
        world.scheduler.observe_pod(&key(&format!("pod-{index}")), Some(parse(pod)));
    }
    let places = world.all().into_iter().filter(|decision| matches!(decision, Decision::Bind { .. })).count();
    assert_eq!(places, 1000);
}
