//! Decisions about DaemonSets.

use super::*;
use crate::testing::{World, at};

fn set(image: &str) -> String {
    format!(
        "
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {{name: agent, namespace: x, uid: s, generation: 1}}
        spec:
          selector: {{matchLabels: {{app: agent}}}}
          updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: 1}}}}
          template:
            metadata: {{labels: {{app: agent}}}}
            spec:
              nodeSelector: {{os: linux}}
              containers: [{{name: main, image: {image}}}]
        "
    )
}

fn node(name: &str, taints: &str, labels: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {labels}}}, spec: {{taints: {taints}}}}}"
    )
}

fn key() -> Key {
    Key::new("x", "agent")
}

fn step(world: &mut World) -> Vec<String> {
    let outcome = decide(&world.cache, &key(), at(0));
    world.perform(&outcome, at(0));
    world.say(&outcome).into_iter().filter(|line| line.contains(" Pod ")).collect()
}

fn start_pods(world: &mut World) {
    let pods: Vec<_> = world.cache.pods.values().cloned().collect();
    for pod in pods {
        let mut outcome = Outcome::default();
        let node = target(&pod).unwrap_or_default().to_owned();
        let body = json!({"spec": {"nodeName": node}, "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"},
        ]}});
        outcome.patch_status(Kind::Pod, &pod.metadata, body);
        world.perform(&outcome, at(0));
    }
}

fn world() -> World {
    World::of(&[
        &set("one"),
        &node("n1", "[]", "{os: linux}"),
        &node("n2", "[{key: node.kubernetes.io/not-ready, effect: NoExecute}]", "{os: linux}"),
        &node("n3", "[{key: dedicated, effect: NoSchedule}]", "{os: linux}"),
        &node("n4", "[]", "{os: other}"),
    ])
}

#[test]
fn nodes_that_fit_get_one_pod_each_and_unready_ones_too() {
    let mut world = world();
    assert_eq!(step(&mut world).len(), 2);
    let targets: Vec<_> = world.cache.pods.values().filter_map(|pod| target(pod)).collect();
    assert_eq!(targets, ["n1", "n2"]);
    start_pods(&mut world);
    assert!(step(&mut world).is_empty());
    let status = world.cache.daemon_sets.get(&key()).unwrap().status.clone().unwrap();
    assert_eq!(
        (status.desired_number_scheduled, status.number_ready, status.number_unavailable),
        (2, 2, None)
    );
}

#[test]
fn a_taint_that_is_not_tolerated_drives_pods_away_only_if_it_executes() {
    let mut world = world();
    step(&mut world);
    start_pods(&mut world);
    step(&mut world);
    world.apply(&node("n1", "[{key: a, effect: NoSchedule}]", "{os: linux}"), at(0));
    assert!(step(&mut world).is_empty());
    world.apply(&node("n1", "[{key: a, effect: NoExecute}]", "{os: linux}"), at(0));
    assert_eq!(step(&mut world).len(), 1);
}

#[test]
fn a_new_template_replaces_one_pod_at_a_time() {
    let mut world = world();
    step(&mut world);
    start_pods(&mut world);
    world.apply(&set("two"), at(0));
    for _ in 0..2 {
        assert_eq!(step(&mut world).len(), 1, "one pod goes");
        assert_eq!(step(&mut world).len(), 1, "its successor comes");
        assert!(step(&mut world).is_empty(), "and is waited for");
        start_pods(&mut world);
    }
    assert!(step(&mut world).is_empty());
    let status = world.cache.daemon_sets.get(&key()).unwrap().status.clone().unwrap();
    assert_eq!(status.updated_number_scheduled, Some(2));
}
