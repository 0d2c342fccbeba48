//! Decisions about leases.

use super::*;
use crate::testing::{World, at};

fn step(world: &mut World, now: i64) -> (Vec<String>, Option<Timestamp>) {
    let outcome = decide(&world.cache, &Key::cluster("n1"), &KubeletOptions::default(), at(now));
    world.perform(&outcome, at(now));
    (world.say(&outcome), outcome.again)
}

#[test]
fn a_lease_is_made_when_the_node_is_up_and_renewed_every_ten_seconds() {
    let mut world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}}"]);
    assert_eq!(step(&mut world, 0), (vec![], Some(at(1))));
    assert_eq!(step(&mut world, 1), (vec!["create Lease kube-node-lease/n1".to_owned()], Some(at(11))));
    assert_eq!(step(&mut world, 5), (vec![], Some(at(11))));
    assert_eq!(step(&mut world, 11), (vec!["patch Lease kube-node-lease/n1".to_owned()], Some(at(21))));
    assert_eq!(world.cache.signs("n1").unwrap().alive, at(11));
}

#[test]
fn a_silent_node_renews_nothing() {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: n1, annotations: {simulate.karpenter.sh/fail: silent}}}";
    assert_eq!(step(&mut World::of(&[node]), 100), (vec![], None));
}
