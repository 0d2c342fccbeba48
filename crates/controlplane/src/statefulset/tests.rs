//! Decisions about StatefulSets.

use super::*;
use crate::testing::{World, at};

fn set(image: &str, extra: &str) -> String {
    format!(
        "
        apiVersion: apps/v1
        kind: StatefulSet
        metadata: {{name: db, namespace: x, uid: s, generation: 1}}
        spec:
          replicas: 3
          serviceName: db
          {extra}
          selector: {{matchLabels: {{app: db}}}}
          template:
            metadata: {{labels: {{app: db}}}}
            spec: {{containers: [{{name: main, image: {image}}}]}}
          volumeClaimTemplates:
          - metadata: {{name: data}}
            spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
        "
    )
}

fn key() -> Key {
    Key::new("x", "db")
}

/// One decision, carried out; the writes that are not about the status or revisions.
fn step(world: &mut World) -> Vec<String> {
    let outcome = decide(&world.cache, &key(), at(0));
    world.perform(&outcome, at(0));
    let lines = world.say(&outcome).into_iter();
    lines.filter(|line| line.contains(" Pod ") || line.contains("Claim")).collect()
}

/// Makes every pod run and be ready.
fn start_pods(world: &mut World) {
    let pods: Vec<_> = world.cache.pods.values().cloned().collect();
    for pod in pods {
        let mut outcome = Outcome::default();
        let body = serde_json::json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"},
        ]}});
        outcome.patch_status(Kind::Pod, &pod.metadata, body);
        world.perform(&outcome, at(0));
    }
}

#[test]
fn pods_start_one_after_the_other_with_their_claims() {
    let mut world = World::of(&[&set("one", "")]);
    assert_eq!(step(&mut world), ["create PersistentVolumeClaim x/data-db-0", "create Pod x/db-0"]);
    assert!(step(&mut world).is_empty(), "db-0 is not ready yet");
    start_pods(&mut world);
    assert_eq!(step(&mut world), ["create PersistentVolumeClaim x/data-db-1", "create Pod x/db-1"]);
    let pod = world.cache.pods.find("x", "db-1").unwrap();
    assert_eq!(label(&pod.metadata, names::POD_INDEX), Some("1"));
    assert_eq!(crate::cache::claims_of(pod), [Key::new("x", "data-db-1")]);
}

#[test]
fn parallel_pods_start_together() {
    let mut world = World::of(&[&set("one", "podManagementPolicy: Parallel")]);
    let pods: Vec<_> = step(&mut world).into_iter().filter(|line| line.contains(" Pod ")).collect();
    assert_eq!(pods, ["create Pod x/db-0", "create Pod x/db-1", "create Pod x/db-2"]);
}

fn running(extra: &str) -> World {
    let mut world = World::of(&[&set("one", extra)]);
    for _ in 0..5 {
        step(&mut world);
        start_pods(&mut world);
    }
    assert!(step(&mut world).is_empty());
    world
}

#[test]
fn a_new_template_replaces_pods_from_the_last_one_down() {
    let mut world = running("");
    world.apply(&set("two", ""), at(0));
    let mut all = Vec::new();
    for _ in 0..10 {
        all.extend(step(&mut world));
        start_pods(&mut world);
    }
    let order: Vec<String> = [2, 1, 0]
        .iter()
        .flat_map(|at| [format!("delete Pod x/db-{at}"), format!("create Pod x/db-{at}")])
        .collect();
    assert_eq!(all, order);
    let status = world.cache.stateful_sets.get(&key()).unwrap().status.clone().unwrap();
    assert_eq!(status.current_revision, status.update_revision);
    assert_eq!((status.updated_replicas, status.current_replicas), (Some(3), Some(3)));
}

#[test]
fn a_partition_holds_back_the_pods_below_it() {
    let extra = "updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}";
    let mut world = running(extra);
    world.apply(&set("two", extra), at(0));
    let mut all = Vec::new();
    for _ in 0..5 {
        all.extend(step(&mut world));
        start_pods(&mut world);
    }
    assert_eq!(all, ["delete Pod x/db-2", "create Pod x/db-2"]);
    let mut deletion = Outcome::default();
    deletion.delete(Kind::Pod, &world.cache.pods.find("x", "db-0").unwrap().metadata.clone(), None);
    world.perform(&deletion, at(0));
    step(&mut world);
    let image =
        world.cache.pods.find("x", "db-0").unwrap().spec.as_ref().unwrap().containers[0].image.clone();
    assert_eq!(image.as_deref(), Some("one"), "it comes back as it was");
}

#[test]
fn scaling_down_removes_the_last_pods_first() {
    let mut world = running("");
    world.apply(&set("one", "").replace("replicas: 3", "replicas: 1"), at(0));
    assert_eq!(step(&mut world), ["delete Pod x/db-2"]);
    assert_eq!(step(&mut world), ["delete Pod x/db-1"]);
    assert!(step(&mut world).is_empty());
}
