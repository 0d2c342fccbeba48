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
fn where_a_budget_is_why_nothing_happens_there_is_another_look_soon() {
    for (pools_, allowed) in [(1, "0"), (10, "0%")] {
        let world = pools(pools_, 3, allowed);
        for method in [Consolidation::Multi, Consolidation::Single] {
            let decision = world.decide(method);
            assert!(decision.commands.is_empty() && !decision.nothing, "{method:?}");
        }
    }
    // Where nothing could be done anyway there is not.
    let world = World::on_demand(sizes()).node("n1", "s-4", OD, &["4"]).node("n2", "s-4", OD, &["4"]);
    for method in [Consolidation::Multi, Consolidation::Single] {
        let decision = world.decide(method);
        assert!(decision.commands.is_empty() && decision.nothing, "{method:?}");
    }
}

#[test]
fn nodes_whose_pods_share_a_budget_do_not_drain_at_the_same_time() {
    let shared = json!({"spec": {"selector": {"matchLabels": {"on": null, "app": "a"}}}});
    let mut budget = pod_budget("n1", 2, &shared);
    budget["spec"]["selector"]["matchLabels"].as_object_mut().unwrap().remove("on");
    let world = pools(1, 5, "100%").with(budget);
    assert_eq!(gone(&world.decide(Consolidation::Multi)), 2);
}

#[test]
fn a_budget_that_allows_two_is_not_why_nothing_happens() {
    // Spot nodes cannot be replaced, and all are full.
    let full = |allowed: &str| {
        let world = World::new(sizes(), &budget(allowed));
        ["n1", "n2", "n3"].iter().fold(world, |world, name| world.node(name, "s-4", SPOT, &["4"]))
    };
    let idle = |allowed: &str| full(allowed).decide(Consolidation::Multi).nothing;
    assert_eq!([idle("0"), idle("1"), idle("2"), idle("3")], [false, false, true, true]);
}
