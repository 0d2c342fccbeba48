//! Decisions about garbage.

use super::*;
use crate::cache::Seen;
use crate::testing::{World, at};

const OWNER: &str = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: x, uid: r}, spec: {selector: {}}}";
const POD: &str = "
    apiVersion: v1
    kind: Pod
    metadata:
      name: p
      namespace: x
      ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true, blockOwnerDeletion: true}]
    spec: {containers: []}
";

fn key() -> Key {
    Key::new("x", "p")
}

#[test]
fn what_is_owned_goes_when_its_owner_is_seen_to_go() {
    let mut world = World::of(&[OWNER, POD]);
    assert_eq!(decide(&world.cache, Kind::Pod, &key(), at(0)), Outcome::default());
    let owner = world.cache.object(Kind::ReplicaSet, &Key::new("x", "r")).unwrap();
    world.cache.observe(Seen::Deleted(owner), at(0));
    let outcome = decide(&world.cache, Kind::Pod, &key(), at(0));
    assert_eq!(world.say(&outcome), ["delete Pod x/p"]);
}

#[test]
fn an_owner_that_was_never_seen_is_waited_for() {
    let world = World::of(&[POD]);
    assert_eq!(decide(&world.cache, Kind::Pod, &key(), at(0)).again, Some(at(30)));
    let outcome = decide(&world.cache, Kind::Pod, &key(), at(30));
    assert_eq!(world.say(&outcome), ["delete Pod x/p"]);
}

#[test]
fn one_owner_is_enough_to_stay() {
    let two = POD.replace(
        "ownerReferences: [",
        "ownerReferences: [{apiVersion: v1, kind: Node, name: n1, uid: gone}, ",
    );
    let world = World::of(&[OWNER, &two]);
    assert!(decide(&world.cache, Kind::Pod, &key(), at(60)).actions.is_empty());
}

#[test]
fn foreground_deletion_takes_the_dependents_first() {
    let dying = OWNER.replace(
        "uid: r}",
        "uid: r, deletionTimestamp: 1970-01-01T00:00:00Z, finalizers: [foregroundDeletion]}",
    );
    let mut world = World::of(&[&dying, POD]);
    let owner = Key::new("x", "r");
    let outcome = decide(&world.cache, Kind::ReplicaSet, &owner, at(0));
    assert_eq!(world.say(&outcome), ["delete Pod x/p"]);
    world.perform(&outcome, at(0));
    let outcome = decide(&world.cache, Kind::ReplicaSet, &owner, at(0));
    assert_eq!(world.say(&outcome), ["patch ReplicaSet x/r"]);
}

#[test]
fn orphans_lose_their_owner_and_stay() {
    let dying =
        OWNER.replace("uid: r}", "uid: r, deletionTimestamp: 1970-01-01T00:00:00Z, finalizers: [orphan]}");
    let mut world = World::of(&[&dying, POD]);
    let owner = Key::new("x", "r");
    let outcome = decide(&world.cache, Kind::ReplicaSet, &owner, at(0));
    assert_eq!(world.say(&outcome), ["patch Pod x/p"]);
    world.perform(&outcome, at(0));
    let outcome = decide(&world.cache, Kind::ReplicaSet, &owner, at(0));
    assert_eq!(world.say(&outcome), ["patch ReplicaSet x/r"]);
}
