//! 16.13 and 16.14: which node is chosen first, and that every node is looked at.

use super::*;

fn budget(nodes: &str) -> Value {
    let mut pool = on_demand();
    merge(&mut pool, &json!({"spec": {"disruption": {"budgets": [{"nodes": nodes}]}}}));
    pool
}

#[test]
fn what_saves_most_for_its_cost_comes_first() {
    let world = |dear: &[&str]| {
        let world = World::new(sizes(), &budget("1")).foreign("large", "100");
        world.node("n1", "s-2", OD, &["100m"]).node("n2", "s-8", OD, dear)
    };
    assert_eq!(world(&["100m"]).single(), ["delete n2"]);
    // 8 for ten pods and the node is less than 2 for one.
    assert_eq!(world(&["100m"; 10]).single(), ["delete n1"]);
}

#[test]
fn of_equal_prices_the_pods_that_matter_least_decide_and_then_the_name() {
    let world = |costs: [&str; 2]| {
        let mut world = World::new(sizes(), &budget("1")).foreign("large", "100");
        for (name, cost) in ["n1", "n2"].into_iter().zip(costs) {
            let change =
                json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}});
            world = world.node(name, "s-2", OD, &[]).with(pod(&format!("{name}-0"), name, "100m", &change));
        }
        world
    };
    assert_eq!(world(["1000000", "0"]).single(), ["delete n2"]);
    assert_eq!(world(["-1000000", "0"]).single(), ["delete n1"]);
    assert_eq!(world(["0", "0"]).single(), ["delete n1"]);
}

#[test]
fn every_node_of_every_pool_is_looked_at_each_time() {
    let mut world = World::new(sizes(), &budget("0")).foreign("large", "3");
    for pool in ["q0", "q1", "q2"] {
        world = world.pool(pool, &budget("1"));
        for number in 0..20 {
            let name = format!("{pool}-{number}");
            world = world.node_of(pool, &name, ("s-1", OD), &["1"], &json!({}), &json!({}));
        }
    }
    let decision = world.decide(Consolidation::Single);
    // One of each pool, although those of the first come first and each one's pods take room.
    assert_eq!(done(&decision), ["delete q0-0", "delete q1-0", "delete q2-0"]);
}

#[test]
fn what_is_decided_in_one_pass_is_possible_together() {
    // There is room for the pods of two nodes; the third one would need it for itself.
    let nodes = ["n1", "n2", "n3", "n4"];
    let world = World::on_demand(vec![usual("s-4", 4, 4.0)]).foreign("other", "4");
    let world = nodes.into_iter().fold(world, |world, name| world.node(name, "s-4", OD, &["2"]));
    assert_eq!(world.single(), ["delete n1", "delete n3"], "the others take their pods");
    let full = World::on_demand(vec![usual("s-4", 4, 4.0)]).foreign("other", "4");
    let full = nodes.into_iter().fold(full, |world, name| world.node(name, "s-4", OD, &["4"]));
    assert_eq!(full.single(), ["delete n1"]);
}

#[test]
fn many_nodes_are_looked_at_by_several_at_once_with_the_same_result() {
    let world = (0..70).fold(World::on_demand(sizes()), |world, number| {
        world.node(&format!("n{number:02}"), "s-8", OD, &["8"])
    });
    let kept = world.kept();
    assert_eq!(kept.len(), 140);
    assert_eq!(kept[138..], twice("n69", "Can't replace with a cheaper node"));
}
