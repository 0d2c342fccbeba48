//! Decisions about silent nodes.

use super::*;
use crate::testing::{World, at};

const NODE: &str = "
    apiVersion: v1
    kind: Node
    metadata: {name: n1}
    status: {conditions: [{type: Ready, status: 'True', lastHeartbeatTime: 1970-01-01T00:00:00Z}]}
";

fn lease(seconds: i64) -> String {
    format!(
        "{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: n1, namespace: kube-node-lease}},
          spec: {{renewTime: '{}'}}}}",
        at(seconds)
    )
}

#[test]
fn a_node_is_lost_when_its_lease_is_not_renewed_for_long() {
    let mut world = World::of(&[NODE]);
    let key = Key::cluster("n1");
    world.apply(&lease(30), at(30));
    assert_eq!(decide(&world.cache, &key, at(40)).again, Some(at(70)));
    let outcome = decide(&world.cache, &key, at(70));
    assert_eq!(world.say(&outcome), ["patch Node n1 status"]);
    world.perform(&outcome, at(70));
    assert_eq!(ready_status(world.cache.nodes.get(&key).unwrap()), Some("Unknown"));
    assert_eq!(decide(&world.cache, &key, at(70)), Outcome::default());
}

#[test]
fn a_node_that_never_reported_gets_a_minute() {
    let world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}}"]);
    let key = Key::cluster("n1");
    assert_eq!(decide(&world.cache, &key, at(40)).again, Some(at(60)));
    assert_eq!(world.say(&decide(&world.cache, &key, at(60))), ["patch Node n1 status"]);
}

#[test]
fn pods_of_a_node_that_is_not_ready_are_not_ready() {
    let mut world = World::of(&[&NODE.replace("'True'", "'False'")]);
    world.apply(
        "
        apiVersion: v1
        kind: Pod
        metadata: {name: p, namespace: x}
        spec: {nodeName: n1, containers: []}
        status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}
        ",
        at(0),
    );
    let outcome = decide(&world.cache, &Key::cluster("n1"), at(0));
    assert_eq!(world.say(&outcome), ["patch Pod x/p status"]);
}
