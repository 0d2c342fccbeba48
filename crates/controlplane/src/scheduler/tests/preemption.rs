//! Making room for more important pods.

use serde_json::{Value, json};

use super::support::{World, key, merge, parse};

fn of_priority(priority: i32, patch: Value) -> Value {
    let mut pod = json!({"spec": {"priority": priority}});
    merge(&mut pod, &patch);
    pod
}

/// A pod of one priority on a node, running since some second.
fn running(world: &mut World, name: &str, node: &str, cpu: &str, (priority, since): (i32, u32)) {
    let started = json!({"spec": {"nodeName": node}, "metadata": {"labels": {"app": name}},
        "status": {"startTime": format!("2026-01-01T00:00:{since:02}Z")}});
    world.cpu(name, cpu, of_priority(priority, started));
}

#[test]
fn less_important_pods_go_and_the_pod_waits_for_their_place() {
    let mut world = World::default();
    world.node("a", json!({}));
    running(&mut world, "low", "a", "3", (1, 0));
    world.cpu("high", "2", of_priority(2, json!({})));
    assert_eq!(world.decisions(), ["high: 0/1 nodes are available: 1 Insufficient cpu. for a: low"]);
    assert_eq!(world.decisions(), [""; 0]);
    // Others of its priority do not take what was cleared for it.
    world.delete("low").cpu("late", "3", of_priority(2, json!({})));
    let decisions = world.decisions();
    assert_eq!(decisions[0], "high -> a");
    assert!(decisions[1].starts_with("late: 0/1 nodes are available: 1 Insufficient cpu."), "{decisions:?}");
}

#[test]
fn a_promised_place_is_kept_from_pods_that_are_not_more_important() {
    let mut world = World::default();
    world.node("a", json!({}));
    running(&mut world, "low", "a", "1", (1, 0));
    let promised = json!({"status": {"nominatedNodeName": "a"}});
    world.cpu("high", "4", of_priority(5, promised));
    world.decisions();
    world.cpu("same", "3", of_priority(5, json!({})));
    assert!(world.decisions()[0].starts_with("same: 0/1 nodes are available: 1 Insufficient cpu."));
    world.cpu("higher", "3", of_priority(6, json!({})));
    assert_eq!(world.decisions(), ["higher -> a"]);
}

#[test]
fn pods_of_the_same_priority_and_polite_pods_send_nobody_away() {
    let mut world = World::default();
    world.node("a", json!({}));
    running(&mut world, "low", "a", "3", (1, 0));
    world.cpu("same", "2", of_priority(1, json!({})));
    assert_eq!(
        world.decisions(),
        ["same: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
          preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."]
    );
    world.cpu("polite", "2", of_priority(2, json!({"spec": {"preemptionPolicy": "Never"}})));
    assert_eq!(
        world.decisions(),
        ["polite: 0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, \
          preemption: not eligible due to preemptionPolicy=Never."]
    );
}

#[test]
fn preemption_is_not_tried_where_it_cannot_help() {
    let mut world = World::default();
    world
        .node("a", json!({"spec": {"unschedulable": true}}))
        .node("b", json!({"status": {"allocatable": {"cpu": "1"}}}));
    running(&mut world, "low", "b", "1", (1, 0));
    world.cpu("high", "2", of_priority(2, json!({})));
    assert_eq!(
        world.decisions(),
        ["high: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. \
          no new claims to deallocate, preemption: 0/2 nodes are available: \
          2 Preemption is not helpful for scheduling."]
    );
}

#[test]
fn only_as_many_go_as_have_to_and_the_more_important_stay() {
    let mut world = World::default();
    world.node("a", json!({}));
    running(&mut world, "middle", "a", "1", (2, 0));
    running(&mut world, "old", "a", "1", (1, 0));
    running(&mut world, "new", "a", "1", (1, 9));
    world.cpu("high", "2", of_priority(9, json!({})));
    assert_eq!(world.decisions(), ["high: 0/1 nodes are available: 1 Insufficient cpu. for a: new"]);
}

/// Which of two nodes is cleared, given the pods on each with priority and start.
fn cleared(first: &[(i32, u32)], second: &[(i32, u32)], budget_for: Option<&str>) -> String {
    let mut world = World::default();
    world.node("a", json!({})).node("b", json!({}));
    for (node, pods) in [("a", first), ("b", second)] {
        for (index, pod) in pods.iter().enumerate() {
            let cpu = format!("{}m", 4000 / pods.len());
            running(&mut world, &format!("{node}{index}"), node, &cpu, *pod);
        }
    }
    if let Some(app) = budget_for {
        let budget = json!({"metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}}, "status": {"disruptionsAllowed": 0,
            "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
        world.scheduler.observe_budget(&key("budget"), Some(parse(budget)));
    }
    world.cpu("high", "4", of_priority(100, json!({})));
    let decision = world.decisions().remove(0);
    decision.split(" for ").nth(1).unwrap_or_default().to_owned()
}

#[test]
fn the_node_whose_pods_matter_least_is_cleared() {
    assert_eq!(cleared(&[(1, 0)], &[(1, 0)], None), "a: a0");
    assert_eq!(cleared(&[(2, 0)], &[(1, 0)], None), "b: b0");
    assert_eq!(cleared(&[(2, 0), (2, 0)], &[(2, 0), (1, 0)], None), "b: b0 b1");
    assert_eq!(cleared(&[(-1, 0), (-1, 0)], &[(-1, 0)], None), "b: b0");
    assert_eq!(cleared(&[(1, 5)], &[(1, 6)], None), "b: b0");
    assert_eq!(cleared(&[(1, 0)], &[(2, 0)], Some("a0")), "b: b0");
}

#[test]
fn a_pod_that_waits_for_its_victims_sends_nobody_else_away() {
    let mut world = World::default();
    world.node("a", json!({})).node("b", json!({}));
    running(&mut world, "low", "a", "3", (1, 0));
    running(&mut world, "lower", "b", "3", (2, 0));
    world.cpu("high", "2", of_priority(9, json!({})));
    assert_eq!(world.decisions().len(), 1);
    let leaving = json!({"spec": {"nodeName": "a"}, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}});
    world.cpu("low", "3", of_priority(1, leaving));
    assert_eq!(
        world.decisions(),
        ["high: 0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, \
          preemption: not eligible due to a terminating pod on the nominated node. for a: "]
    );
}

#[test]
fn a_more_important_pod_takes_over_a_promised_node() {
    let mut world = World::default();
    world.node("a", json!({}));
    running(&mut world, "low", "a", "4", (1, 0));
    world.cpu("high", "4", of_priority(5, json!({})));
    assert_eq!(world.decisions().len(), 1);
    world.cpu("higher", "4", of_priority(6, json!({})));
    let decisions = world.decisions();
    assert_eq!(decisions[0], "high: 0/1 nodes are available: 1 Insufficient cpu.");
    assert_eq!(decisions[1], "higher: 0/1 nodes are available: 1 Insufficient cpu. for a: low");
}
