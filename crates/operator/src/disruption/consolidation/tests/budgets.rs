//! 16.8: no more nodes go than budgets allow.

use super::*;

/// A change of a pool: so many nodes may go.
fn budget(nodes: &str) -> Value {
    json!({"spec": {"disruption": {"budgets": [{"nodes": nodes}]}}})
}

/// Pools of some nodes each, all of which could go, and what their budgets allow.
fn pools(count: usize, nodes: usize, allowed: &str) -> World {
    let mut world = World::new(sizes(), &budget("0")).foreign("large", "100");
    for pool in (0..count).map(|number| format!("p{number}")) {
        world = world.pool(&pool, &budget(allowed));
        for node in (0..nodes).map(|number| format!("{pool}-{number}")) {
            world = world.node_of(&pool, &node, ("s-1", SPOT), &["1"], &json!({}), &json!({}));
        }
    }
    world
}

fn gone(decision: &Decision) -> usize {
    decision.commands.iter().map(|command| command.candidates.len()).sum()
}

#[test]
fn as_many_nodes_go_as_budgets_allow() {
    for (pools_, nodes, allowed, expected) in [
        (1, 10, "3", 3),
        (1, 10, "100%", 10),
        (1, 10, "0", 0),
        (10, 3, "2", 20),
        (10, 3, "100%", 30),
        (10, 3, "0%", 0),
    ] {
        let world = pools(pools_, nodes, allowed);
        let multi = world.decide(Consolidation::Multi);
        assert_eq!(gone(&multi), expected, "{pools_} {allowed}");
        assert_eq!(multi.commands.len(), usize::from(expected > 0), "they go together");
        let single = world.decide(Consolidation::Single);
        assert_eq!((single.commands.len(), gone(&single)), (expected, expected), "{pools_} {allowed}");
    }
}

#[test]
fn where_a_budget_is_why_nothing_happens_there_is_another_look_when_it_changes() {
    // The loop compares what budgets allow with what they allowed.
    for (pools_, allowed) in [(1, "0"), (10, "0%")] {
        let world = pools(pools_, 3, allowed);
        for method in [Consolidation::Multi, Consolidation::Single] {
            let decision = world.decide(method);
            assert!(decision.commands.is_empty() && decision.nothing, "{method:?}");
        }
    }
    let world = World::on_demand(sizes()).node("n1", "s-4", OD, &["4"]).node("n2", "s-4", OD, &["4"]);
    for method in [Consolidation::Multi, Consolidation::Single] {
        let decision = world.decide(method);
        assert!(decision.commands.is_empty() && decision.nothing, "{method:?}");
    }
}

/// Five nodes that could go, with a pod each, of which a budget lets so many go.
fn sharing(allowed: i32) -> World {
    let shared = json!({"spec": {"selector": {"matchLabels": {"on": null, "app": "a"}}}});
    let mut budget = pod_budget("n1", allowed, &shared);
    budget["spec"]["selector"]["matchLabels"].as_object_mut().unwrap().remove("on");
    pools(1, 5, "100%").with(budget)
}

#[test]
fn nodes_whose_pods_share_a_budget_do_not_drain_at_the_same_time() {
    assert_eq!(gone(&sharing(2).decide(Consolidation::Multi)), 2);
    for allowed in [1, 2] {
        let single = sharing(allowed).decide(Consolidation::Single);
        assert_eq!(i32::try_from(gone(&single)), Ok(allowed));
    }
}

#[test]
fn what_is_on_its_way_out_has_its_part_of_a_budget_of_pods() {
    let mut world = sharing(1);
    world.leaving.push("kwok://p0-0");
    for method in [Consolidation::Multi, Consolidation::Single] {
        assert!(world.decide(method).commands.is_empty(), "{method:?}");
    }
    // The budget may allow more at any time.
    assert!(!world.decide(Consolidation::Single).nothing);
    let mut world = sharing(2);
    world.leaving.push("kwok://p0-0");
    assert_eq!(done(&world.decide(Consolidation::Single)), ["delete p0-1"]);
}

#[test]
fn a_node_with_more_pods_than_a_budget_lets_go_at_once_keeps_no_others() {
    let mut world = World::on_demand(sizes()).foreign("large", "100").with(pod_budget("n1", 1, &json!({})));
    world = world.node("n1", "s-8", OD, &[]).node("n2", "s-1", OD, &["1"]);
    // Somebody creates them again, so that one after the other can go.
    let owned = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}]}});
    for name in ["n1-0", "n1-1"] {
        world = world.with(pod(name, "n1", "1", &owned));
    }
    assert_eq!(world.single(), ["delete n1", "delete n2"]);
    // Nor does it keep others from going together, though it comes first.
    for name in ["n3", "n4"] {
        world = world.node(name, "s-1", OD, &["1"]);
    }
    assert_eq!(world.multi(), ["delete n2 n3 n4"]);
    let planned = world.decide(Consolidation::Multi).commands.remove(0);
    let unready = json!({"metadata": {"labels": {"on": "n1"}}});
    let late = world.with(pod("late-0", "n2", "0", &owned)).with(pod("late-1", "n2", "0", &unready));
    let late = late.with(pod_budget("n1", 0, &json!({})));
    assert_eq!(late.validate(Consolidation::Multi, &planned).unwrap().candidates.len(), 2);
}

#[test]
fn pods_that_a_budget_lets_go_anyway_do_not_count() {
    let always = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    for (policy, expected) in [(always, &["delete n1 n2"][..]), (json!({}), &[])] {
        let mut world = World::on_demand(sizes()).foreign("large", "100").with(pod_budget("n1", 0, &policy));
        world = world.node("n1", "s-8", OD, &[]).node("n2", "s-1", OD, &["1"]);
        world = world.with(pod("n1-0", "n1", "1", &unready));
        assert_eq!(world.multi(), expected);
    }
}

#[test]
fn a_budget_of_pods_that_shrinks_meanwhile_is_obeyed() {
    let planned = sharing(5).decide(Consolidation::Multi).commands.remove(0);
    assert_eq!(planned.candidates.len(), 5);
    for allowed in [1, 3] {
        let valid = sharing(allowed).validate(Consolidation::Multi, &planned).unwrap();
        assert_eq!(i32::try_from(valid.candidates.len()), Ok(allowed));
    }
}

#[test]
fn where_nothing_can_be_done_nobody_looks_again_whatever_budgets_allow() {
    // Spot nodes cannot be replaced, and all are full.
    let full = |allowed: &str| {
        let world = World::new(sizes(), &budget(allowed));
        ["n1", "n2", "n3"].iter().fold(world, |world, name| world.node(name, "s-4", SPOT, &["4"]))
    };
    for allowed in ["0", "1", "2", "3"] {
        assert!(full(allowed).decide(Consolidation::Multi).nothing, "{allowed}");
    }
}
