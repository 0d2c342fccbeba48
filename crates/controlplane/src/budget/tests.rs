//! Decisions about PodDisruptionBudgets.

use super::*;
use crate::testing::{World, at};

fn world(budget: &str, ready: usize, not_ready: usize) -> World {
    let mut world = World::of(&[
        "
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: x, uid: d}
        spec: {replicas: 5, selector: {}, template: {}}
        ",
        "
        apiVersion: apps/v1
        kind: ReplicaSet
        metadata:
          name: web-1
          namespace: x
          uid: r
          ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]
        spec: {replicas: 5, selector: {}}
        ",
    ]);
    world.apply(
        &format!(
            "
            apiVersion: policy/v1
            kind: PodDisruptionBudget
            metadata: {{name: b, namespace: x, generation: 1}}
            spec: {{selector: {{matchLabels: {{app: web}}}}, {budget}}}
            "
        ),
        at(0),
    );
    for number in 0..ready + not_ready {
        let state = if number < ready { "True" } else { "False" };
        world.apply(
            &format!(
                "
                apiVersion: v1
                kind: Pod
                metadata:
                  name: p{number}
                  namespace: x
                  labels: {{app: web}}
                  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r, controller: true}}]
                spec: {{containers: []}}
                status: {{phase: Running, conditions: [{{type: Ready, status: '{state}'}}]}}
                "
            ),
            at(0),
        );
    }
    world
}

#[track_caller]
fn check(budget: &str, ready: usize, not_ready: usize, expected: [i32; 4]) {
    let mut world = world(budget, ready, not_ready);
    let key = Key::new("x", "b");
    let outcome = decide(&world.cache, &key, at(0));
    world.perform(&outcome, at(0));
    let status = world.cache.budgets.get(&key).unwrap().status.clone().unwrap();
    let got =
        [status.disruptions_allowed, status.current_healthy, status.desired_healthy, status.expected_pods];
    assert_eq!(got, expected.map(Some), "allowed, healthy, desired, expected");
    assert_eq!(decide(&world.cache, &key, at(0)), Outcome::default());
}

#[test]
fn amounts_and_percentages_count_against_what_the_controllers_want() {
    check("minAvailable: 3", 5, 0, [2, 5, 3, 5]);
    check("minAvailable: 3", 3, 1, [0, 3, 3, 4]);
    check("minAvailable: 50%", 4, 0, [1, 4, 3, 5]);
    check("maxUnavailable: 1", 5, 0, [1, 5, 4, 5]);
    check("maxUnavailable: 1", 4, 1, [0, 4, 4, 5]);
    check("maxUnavailable: 30%", 5, 0, [2, 5, 3, 5]);
    check("maxUnavailable: 1", 0, 0, [0, 0, 0, 0]);
}

#[test]
fn an_eviction_under_way_counts_until_it_times_out() {
    let mut world = world("minAvailable: 3", 5, 0);
    let key = Key::new("x", "b");
    let mut evicted = Outcome::default();
    let meta = world.cache.budgets.get(&key).unwrap().metadata.clone();
    let body = serde_json::json!({"status": {"disruptedPods": {"p1": "1970-01-01T00:00:00Z"}}});
    evicted.patch_status(Kind::PodDisruptionBudget, &meta, body);
    world.perform(&evicted, at(0));
    let outcome = decide(&world.cache, &key, at(10));
    assert_eq!(outcome.again, Some(at(120)));
    world.perform(&outcome, at(10));
    let allowed =
        |world: &World| world.cache.budgets.get(&key).unwrap().status.as_ref().unwrap().disruptions_allowed;
    assert_eq!(allowed(&world), Some(1));
    let outcome = decide(&world.cache, &key, at(120));
    world.perform(&outcome, at(120));
    assert_eq!(allowed(&world), Some(2));
}

#[test]
fn pods_of_something_without_a_scale_may_not_be_disrupted() {
    let mut world = world("maxUnavailable: 1", 0, 0);
    world.apply(
        "
        apiVersion: v1
        kind: Pod
        metadata:
          name: p
          namespace: x
          labels: {app: web}
          ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: j, controller: true}]
        spec: {containers: []}
        ",
        at(0),
    );
    let key = Key::new("x", "b");
    let outcome = decide(&world.cache, &key, at(0));
    world.perform(&outcome, at(0));
    let status = world.cache.budgets.get(&key).unwrap().status.clone().unwrap();
    assert_eq!(status.disruptions_allowed, Some(0));
    assert_eq!(status.conditions.unwrap()[0].reason, "SyncFailed");
}
