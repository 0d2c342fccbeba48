//! Which nodes take a pod.

use serde_json::json;

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
            "three: 0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: \
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
