//! Decisions about pods on simulated nodes.

use super::*;
use crate::testing::{World, at};

const NODE: &str = "
    apiVersion: v1
    kind: Node
    metadata: {name: n1}
    status: {conditions: [{type: Ready, status: 'True'}]}
";

fn pod(annotations: &str, spec: &str) -> String {
    format!(
        "
        apiVersion: v1
        kind: Pod
        metadata: {{name: p, namespace: x, annotations: {annotations}}}
        spec: {{nodeName: n1, containers: [{{name: main, image: web}}], {spec}}}
        status: {{phase: Pending}}
        "
    )
}

fn key() -> Key {
    Key::new("x", "p")
}

fn step(world: &mut World, now: i64) -> Option<Timestamp> {
    let options = KubeletOptions { image_pull: Duration::from_secs(4), ..KubeletOptions::default() };
    let outcome = decide(&world.cache, &key(), &options, at(now));
    world.perform(&outcome, at(now));
    outcome.again
}

fn shows(world: &World) -> String {
    let Some(pod) = world.cache.pods.get(&key()) else { return "gone".to_owned() };
    let ready = if crate::pod::is_ready(pod) { " ready" } else { "" };
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let waiting = statuses.and_then(|all| all.first()?.state.as_ref()?.waiting.as_ref()?.reason.clone());
    format!("{}{ready} {}", phase(pod), waiting.unwrap_or_default()).trim().to_owned()
}

#[test]
fn a_pod_runs_when_its_image_is_there() {
    let mut world = World::of(&[NODE, &pod("{}", "")]);
    assert_eq!(step(&mut world, 0), Some(at(5)));
    assert_eq!(shows(&world), "Pending ContainerCreating");
    step(&mut world, 5);
    assert_eq!(shows(&world), "Running ready");
    let status = world.cache.pods.get(&key()).unwrap().status.clone().unwrap();
    assert_eq!(status.pod_ip.as_deref(), Some("10.0.0.1"));
    assert_eq!(step(&mut world, 6), None);
}

#[test]
fn init_containers_take_their_time() {
    let inits = "initContainers: [{name: a}, {name: b}, {name: side, restartPolicy: Always}]";
    let mut world = World::of(&[NODE, &pod("{}", inits)]);
    assert_eq!(step(&mut world, 0), Some(at(7)));
    step(&mut world, 7);
    assert_eq!(shows(&world), "Running ready");
}

#[test]
fn a_pod_fails_on_request() {
    let mut world = World::of(&[NODE, &pod("{simulate.karpenter.sh/fail: image-pull}", "")]);
    step(&mut world, 60);
    assert_eq!(shows(&world), "Pending ImagePullBackOff");
    let mut world = World::of(&[NODE, &pod("{simulate.karpenter.sh/fail: crash}", "")]);
    step(&mut world, 60);
    assert_eq!(shows(&world), "Running CrashLoopBackOff");
    let mut world = World::of(&[NODE, &pod("{simulate.karpenter.sh/fail: crash}", "restartPolicy: Never")]);
    step(&mut world, 60);
    assert_eq!(shows(&world), "Failed");
}

#[test]
fn a_pod_that_says_when_it_ends_ends_then() {
    let mut world =
        World::of(&[NODE, &pod("{simulate.karpenter.sh/complete-after: 1m}", "restartPolicy: Never")]);
    step(&mut world, 5);
    assert_eq!(step(&mut world, 5), Some(at(65)));
    step(&mut world, 65);
    assert_eq!(shows(&world), "Succeeded");
}

#[test]
fn readiness_can_come_later() {
    let mut world = World::of(&[NODE, &pod("{simulate.karpenter.sh/ready-after: 10s}", "")]);
    assert_eq!(step(&mut world, 5), Some(at(15)));
    assert_eq!(shows(&world), "Running");
    step(&mut world, 15);
    assert_eq!(shows(&world), "Running ready");
}

#[test]
fn a_pod_waits_for_its_claims() {
    let mut world =
        World::of(&[NODE, &pod("{}", "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]")]);
    step(&mut world, 60);
    assert_eq!(shows(&world), "Pending ContainerCreating");
    world.apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: x}, status: {phase: Bound}}", at(60));
    step(&mut world, 60);
    assert_eq!(shows(&world), "Running ready");
}

#[test]
fn a_deleted_pod_stops_within_its_grace_period() {
    let delete = |world: &mut World, annotations: serde_json::Value| {
        let meta = world.cache.pods.get(&key()).unwrap().metadata.clone();
        let mut outcome = Outcome::default();
        let body = json!({"metadata": {
            "deletionTimestamp": at(130).to_string(), "deletionGracePeriodSeconds": 30, "annotations": annotations,
        }});
        outcome.patch(Kind::Pod, &meta, body);
        world.perform(&outcome, at(100));
    };
    for (annotations, stopped) in [
        (json!({}), 101),
        (json!({simulate::STOP_AFTER: "20s"}), 120),
        (json!({simulate::STOP_AFTER: "1h"}), 130),
    ] {
        let mut world = World::of(&[NODE, &pod("{}", "")]);
        step(&mut world, 5);
        delete(&mut world, annotations);
        assert_eq!(step(&mut world, 100), Some(at(stopped)));
        assert_eq!(shows(&world), "Running ready");
        step(&mut world, stopped);
        assert_eq!(shows(&world), "gone");
    }
}
