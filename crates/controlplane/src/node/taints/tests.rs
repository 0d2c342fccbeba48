//! Decisions about taints.

use super::*;
use crate::testing::{World, at};

#[track_caller]
fn check(spec: &str, conditions: &str, expected: &[(&str, &str)]) {
    let node = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: n1}}, spec: {spec}, status: {{conditions: {conditions}}}}}"
    );
    let mut world = World::of(&[&node]);
    let key = Key::cluster("n1");
    let outcome = decide(&world.cache, &key, at(0));
    world.perform(&outcome, at(0));
    let node = world.cache.nodes.get(&key).unwrap();
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints: Vec<_> = taints.map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect();
    assert_eq!(taints, expected);
    assert_eq!(decide(&world.cache, &key, at(0)), Outcome::default());
}

#[test]
fn taints_follow_conditions_and_others_stay() {
    let not_ready = [(names::NOT_READY, "NoSchedule"), (names::NOT_READY, "NoExecute")];
    check("{}", "[{type: Ready, status: 'False'}]", &not_ready);
    let unreachable = [(names::UNREACHABLE, "NoSchedule"), (names::UNREACHABLE, "NoExecute")];
    let was_not_ready = "{taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]}";
    check(was_not_ready, "[{type: Ready, status: Unknown}]", &unreachable);
    check(was_not_ready, "[{type: Ready, status: 'True'}]", &[]);
    let own = "{taints: [{key: dedicated, effect: NoExecute}], unschedulable: true}";
    check(
        own,
        "[{type: Ready, status: 'True'}]",
        &[("dedicated", "NoExecute"), (names::UNSCHEDULABLE, "NoSchedule")],
    );
    let pressure = "[{type: Ready, status: 'True'}, {type: MemoryPressure, status: 'True'}]";
    check("{}", pressure, &[(names::MEMORY_PRESSURE, "NoSchedule")]);
}

#[test]
fn a_node_that_has_not_reported_keeps_the_taint_it_came_with() {
    let came_with = "{taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}]}";
    check(came_with, "[]", &[(names::NOT_READY, "NoSchedule")]);
}
