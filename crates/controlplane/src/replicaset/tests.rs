//! Decisions about ReplicaSets.

use super::*;
use crate::testing::{World, at};

const SET: &str = "
    apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: web, namespace: x, uid: set, generation: 1}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: main, image: web}]}
";

fn pod(name: &str, extra: &str, spec: &str, status: &str) -> String {
    format!(
        "
        apiVersion: v1
        kind: Pod
        metadata:
          name: {name}
          namespace: x
          labels: {{app: web}}
          ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: set, controller: true}}]
          {extra}
        spec: {{containers: [{{name: main}}], {spec}}}
        status: {{{status}}}
        "
    )
}

const READY: &str =
    "phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: 1970-01-01T00:00:00Z}]";

fn key() -> Key {
    Key::new("x", "web")
}

#[test]
fn missing_pods_are_created_and_counted_once_they_are_there() {
    let mut world = World::of(&[SET]);
    let outcome = decide(&world.cache, &key(), at(0));
    assert_eq!(world.say(&outcome), ["create Pod x/", "create Pod x/", "patch ReplicaSet x/web status"]);
    world.perform(&outcome, at(0));
    let outcome = decide(&world.cache, &key(), at(0));
    assert_eq!(world.say(&outcome), ["patch ReplicaSet x/web status"]);
    world.perform(&outcome, at(0));
    assert_eq!(decide(&world.cache, &key(), at(0)), Outcome::default());
    let status = world.cache.replica_sets.get(&key()).unwrap().status.clone().unwrap();
    assert_eq!((status.replicas, status.ready_replicas), (2, None));
}

#[test]
fn pods_that_do_the_least_go_first() {
    let surplus = |pods: &[String]| {
        let mut world = World::of(&[&SET.replace("replicas: 2", "replicas: 1")]);
        for pod in pods {
            world.apply(pod, at(0));
        }
        let outcome = decide(&world.cache, &key(), at(0));
        world.say(&outcome).into_iter().filter(|line| line.starts_with("delete")).collect::<Vec<_>>()
    };
    let ready = |name: &str, extra: &str, node: &str| pod(name, extra, &format!("nodeName: {node}"), READY);
    let gone = ["delete Pod x/b"];
    assert_eq!(surplus(&[ready("a", "", "n1"), pod("b", "", "", "phase: Pending")]), gone, "not bound");
    assert_eq!(
        surplus(&[ready("a", "", "n1"), pod("b", "", "nodeName: m1", "phase: Running")]),
        gone,
        "not ready"
    );
    let costly = "annotations: {controller.kubernetes.io/pod-deletion-cost: '10'}";
    assert_eq!(surplus(&[ready("a", costly, "n1"), ready("b", "", "m1")]), gone, "cheaper to delete");
    let young = "creationTimestamp: 1970-01-01T00:01:00Z";
    assert_eq!(surplus(&[ready("a", "", "n1"), ready("b", young, "m1")]), gone, "younger");
    let crowd = [ready("a", "", "n1"), ready("b", "", "m1"), ready("c", "", "m1")];
    assert_eq!(surplus(&crowd), ["delete Pod x/b", "delete Pod x/c"], "crowded");
}

#[test]
fn a_pod_that_matches_is_adopted_and_one_that_does_not_is_let_go() {
    let mut world = World::of(&[SET]);
    world.apply("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: x, labels: {app: web}}, spec: {containers: []}}", at(0));
    world.apply(&pod("b", "", "", "").replace("app: web}", "app: other}"), at(0));
    let outcome = decide(&world.cache, &key(), at(0));
    assert_eq!(
        world.say(&outcome),
        ["patch Pod x/b", "patch Pod x/a", "create Pod x/", "patch ReplicaSet x/web status"]
    );
}

#[test]
fn pods_count_as_available_only_after_they_have_been_ready_for_long_enough() {
    let mut world = World::of(&[&SET.replace("replicas: 2", "replicas: 1\n      minReadySeconds: 30")]);
    world.apply(&pod("a", "", "nodeName: n1", READY), at(0));
    assert_eq!(decide(&world.cache, &key(), at(10)).again, Some(at(30)));
    let outcome = decide(&world.cache, &key(), at(30));
    world.perform(&outcome, at(30));
    let status = world.cache.replica_sets.get(&key()).unwrap().status.clone().unwrap();
    assert_eq!((status.ready_replicas, status.available_replicas), (Some(1), Some(1)));
}
