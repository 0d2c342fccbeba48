//! Decisions about Deployments.

use super::*;
use crate::testing::{World, at};

fn deployment(image: &str, extra: &str) -> String {
    format!(
        "
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: web, namespace: x, uid: d, generation: 1}}
        spec:
          replicas: 4
          {extra}
          selector: {{matchLabels: {{app: web}}}}
          template:
            metadata: {{labels: {{app: web}}}}
            spec: {{containers: [{{name: main, image: {image}}}]}}
        "
    )
}

fn key() -> Key {
    Key::new("x", "web")
}

/// Lets the deployment and its sets act until nothing changes; every pod is available at once if `healthy`.
fn settle(world: &mut World, healthy: bool) -> Vec<String> {
    let mut said = Vec::new();
    for _ in 0..50 {
        let outcome = decide(&world.cache, &key(), at(0));
        let lines = world.say(&outcome);
        let quiet = lines.is_empty();
        said.extend(lines.into_iter().filter(|line| !line.ends_with("status")));
        world.perform(&outcome, at(0));
        let sets: Vec<_> = world.cache.replica_sets.values().cloned().collect();
        let mut changed = false;
        for set in sets {
            let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
            let new = set.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key("new"));
            let available = if healthy || !new { replicas } else { 0 };
            let status = json!({"status": {"replicas": replicas, "availableReplicas": available, "readyReplicas": available, "observedGeneration": 1}});
            let current = set.status.as_ref().map(|status| (status.replicas, status.available_replicas));
            if current != Some((replicas, Some(available))) {
                changed = true;
                let mut patch = Outcome::default();
                patch.patch_status(Kind::ReplicaSet, &set.metadata, status);
                world.perform(&patch, at(0));
            }
        }
        if quiet && !changed {
            return said;
        }
    }
    panic!("it never ends: {said:?}");
}

fn sizes(world: &World) -> Vec<i32> {
    let mut sets: Vec<_> = world.cache.replica_sets.values().collect();
    sets.sort_by_key(|set| annotation(&set.metadata, names::REVISION).map(str::to_owned));
    sets.iter().map(|set| set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0)).collect()
}

#[test]
fn a_new_deployment_gets_one_set_with_all_replicas() {
    let mut world = World::of(&[&deployment("one", "")]);
    settle(&mut world, true);
    assert_eq!(sizes(&world), [4]);
    let set = world.cache.replica_sets.values().next().unwrap();
    let hash = crate::object::label(&set.metadata, names::POD_TEMPLATE_HASH).unwrap();
    assert_eq!(set.metadata.name.as_deref(), Some(format!("web-{hash}").as_str()));
    let status = world.cache.deployments.get(&key()).unwrap().status.clone().unwrap();
    let reasons: Vec<_> =
        status.conditions.iter().flatten().filter_map(|condition| condition.reason.clone()).collect();
    assert_eq!(reasons, ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]);
    assert_eq!((status.updated_replicas, status.unavailable_replicas), (Some(4), None));
}

#[test]
fn a_new_template_moves_all_replicas_to_a_new_set_and_a_rollback_moves_them_back() {
    let mut world = World::of(&[&deployment("one", "")]);
    settle(&mut world, true);
    world.apply(&deployment("two", ""), at(0));
    settle(&mut world, true);
    assert_eq!(sizes(&world), [0, 4]);
    world.apply(&deployment("one", ""), at(0));
    settle(&mut world, true);
    assert_eq!(sizes(&world), [0, 4]);
    let revisions: Vec<_> = world
        .cache
        .replica_sets
        .values()
        .filter_map(|set| annotation(&set.metadata, names::REVISION))
        .collect();
    assert_eq!(revisions.len(), 2);
    assert!(revisions.contains(&"3") && revisions.contains(&"2"), "{revisions:?}");
}

#[test]
fn a_rollout_that_does_not_become_available_stops_within_its_bounds() {
    let mut world = World::of(&[&deployment("one", "")]);
    settle(&mut world, true);
    let broken = deployment("two", "").replace("labels: {app: web}", "labels: {app: web, new: 'yes'}");
    world.apply(&broken, at(0));
    settle(&mut world, false);
    assert_eq!(sizes(&world), [3, 2], "a quarter may be missing and a quarter may be too many");
}

#[test]
fn scaling_in_the_middle_of_a_rollout_gives_every_set_its_share() {
    let mut world = World::of(&[&deployment("one", "")]);
    settle(&mut world, true);
    let broken = deployment("two", "").replace("labels: {app: web}", "labels: {app: web, new: 'yes'}");
    world.apply(&broken, at(0));
    settle(&mut world, false);
    world.apply(&broken.replace("replicas: 4", "replicas: 8"), at(0));
    settle(&mut world, false);
    assert_eq!(sizes(&world), [6, 4]);
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut world = World::of(&[&deployment("one", "")]);
    settle(&mut world, true);
    world.apply(&deployment("two", "paused: true").replace("replicas: 4", "replicas: 6"), at(0));
    settle(&mut world, true);
    assert_eq!(sizes(&world), [6]);
}

#[test]
fn old_sets_beyond_the_limit_are_deleted() {
    let mut world = World::of(&[&deployment("one", "revisionHistoryLimit: 1")]);
    for image in ["one", "two", "three", "four"] {
        world.apply(&deployment(image, "revisionHistoryLimit: 1"), at(0));
        settle(&mut world, true);
    }
    assert_eq!(sizes(&world), [0, 4]);
}

#[test]
fn recreating_waits_for_the_old_pods() {
    let extra = "strategy: {type: Recreate}";
    let mut world = World::of(&[&deployment("one", extra)]);
    settle(&mut world, true);
    let set = world.cache.replica_sets.values().next().unwrap().metadata.clone();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "x", "ownerReferences": [template::owner_reference(Kind::ReplicaSet, &set)]},
        "spec": {"containers": []}, "status": {"phase": "Running"},
    });
    world.apply_value(pod, at(0));
    world.apply(&deployment("two", extra), at(0));
    settle(&mut world, true);
    assert_eq!(sizes(&world), [0]);
    let mut delete = Outcome::default();
    delete.delete(Kind::Pod, &world.cache.pods.values().next().unwrap().metadata.clone(), None);
    world.perform(&delete, at(0));
    settle(&mut world, true);
    assert_eq!(sizes(&world), [0, 4]);
}

#[test]
fn a_rollout_without_progress_is_reported_after_its_deadline() {
    let mut world = World::of(&[&deployment("one", "progressDeadlineSeconds: 60")
        .replace("{app: web}}\n            spec", "{app: web, new: 'yes'}}\n            spec")]);
    settle(&mut world, false);
    assert_eq!(decide(&world.cache, &key(), at(10)).again, Some(at(60)));
    let outcome = decide(&world.cache, &key(), at(60));
    world.perform(&outcome, at(60));
    let status = world.cache.deployments.get(&key()).unwrap().status.clone().unwrap();
    let progressing =
        status.conditions.iter().flatten().find(|condition| condition.type_ == "Progressing").unwrap();
    assert_eq!(progressing.reason.as_deref(), Some("ProgressDeadlineExceeded"));
}
