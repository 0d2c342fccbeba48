//! Decisions about Jobs.

use super::*;
use crate::testing::{World, at};

fn job(extra: &str) -> String {
    format!(
        "
        apiVersion: batch/v1
        kind: Job
        metadata: {{name: j, namespace: x, uid: j}}
        spec:
          {extra}
          template:
            metadata: {{labels: {{job: j}}}}
            spec: {{restartPolicy: Never, containers: [{{name: main}}]}}
        "
    )
}

fn key() -> Key {
    Key::new("x", "j")
}

fn step(world: &mut World, now: i64) -> Vec<String> {
    let outcome = decide(&world.cache, &key(), at(now));
    world.perform(&outcome, at(now));
    world.say(&outcome).into_iter().filter(|line| line.contains(" Pod ") || line.contains("delete")).collect()
}

fn settle(world: &mut World, now: i64) {
    for _ in 0..5 {
        step(world, now);
    }
}

fn end(world: &mut World, phase: &str, number: usize) {
    let pods: Vec<_> = world.cache.pods.values().filter(|pod| is_active(pod)).take(number).cloned().collect();
    for pod in pods {
        let mut outcome = Outcome::default();
        outcome.patch_status(Kind::Pod, &pod.metadata, json!({"status": {"phase": phase}}));
        world.perform(&outcome, at(0));
    }
}

fn status(world: &World) -> JobStatus {
    world.cache.jobs.get(&key()).unwrap().status.clone().unwrap()
}

fn conditions(world: &World) -> Vec<String> {
    status(world).conditions.into_iter().flatten().map(|condition| condition.type_).collect()
}

#[test]
fn every_success_is_counted_once_and_the_last_completes_the_job() {
    let mut world = World::of(&[&job("{completions: 3, parallelism: 2}")
        .replace("{completions: 3, parallelism: 2}", "completions: 3\n          parallelism: 2")]);
    assert_eq!(step(&mut world, 0).len(), 2);
    end(&mut world, "Succeeded", 2);
    settle(&mut world, 0);
    assert_eq!((status(&world).succeeded, status(&world).active), (Some(2), Some(1)));
    end(&mut world, "Succeeded", 1);
    settle(&mut world, 0);
    assert_eq!(status(&world).succeeded, Some(3));
    assert_eq!(conditions(&world), ["SuccessCriteriaMet", "Complete"]);
    let held =
        world.cache.pods.values().filter(|pod| has_finalizer(&pod.metadata, names::JOB_TRACKING)).count();
    assert_eq!(held, 0, "counted pods are not held");
}

#[test]
fn too_many_failures_end_the_job() {
    let mut world = World::of(&[&job("backoffLimit: 1")]);
    step(&mut world, 0);
    end(&mut world, "Failed", 1);
    settle(&mut world, 0);
    assert_eq!((status(&world).failed, status(&world).active), (Some(1), Some(1)));
    end(&mut world, "Failed", 1);
    settle(&mut world, 0);
    assert_eq!(status(&world).failed, Some(2));
    assert_eq!(conditions(&world), ["FailureTarget", "Failed"]);
}

#[test]
fn a_deadline_ends_the_job_and_its_pods() {
    let mut world = World::of(&[&job("activeDeadlineSeconds: 30")]);
    step(&mut world, 0);
    assert_eq!(decide(&world.cache, &key(), at(10)).again, Some(at(30)));
    let lines = step(&mut world, 30);
    assert!(lines[0].starts_with("delete Pod"), "{lines:?}");
    settle(&mut world, 30);
    assert_eq!(conditions(&world), ["FailureTarget", "Failed"]);
}

#[test]
fn a_finished_job_goes_after_its_time() {
    let mut world = World::of(&[&job("ttlSecondsAfterFinished: 60")]);
    step(&mut world, 0);
    end(&mut world, "Succeeded", 1);
    settle(&mut world, 0);
    assert_eq!(decide(&world.cache, &key(), at(10)).again, Some(at(60)));
    assert_eq!(step(&mut world, 60), ["delete Job x/j"]);
}

#[test]
fn indexes_are_given_out_once() {
    let mut world =
        World::of(&[&job("completions: 3\n          parallelism: 3\n          completionMode: Indexed")]);
    step(&mut world, 0);
    let mut all: Vec<_> = world.cache.pods.values().filter_map(|pod| indexes::index_of(pod)).collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2]);
    end(&mut world, "Failed", 1);
    settle(&mut world, 100);
    end(&mut world, "Succeeded", 3);
    settle(&mut world, 100);
    assert_eq!(status(&world).completed_indexes.as_deref(), Some("0-2"));
    assert_eq!(conditions(&world), ["SuccessCriteriaMet", "Complete"]);
}

#[test]
fn a_suspended_job_has_no_pods_until_it_is_resumed() {
    let mut world = World::of(&[&job("suspend: true")]);
    assert!(step(&mut world, 0).is_empty());
    assert_eq!(conditions(&world), ["Suspended"]);
    let mut outcome = Outcome::default();
    outcome.patch(
        Kind::Job,
        &world.cache.jobs.get(&key()).unwrap().metadata.clone(),
        json!({"spec": {"suspend": false}}),
    );
    world.perform(&outcome, at(0));
    assert_eq!(step(&mut world, 0).len(), 1);
}
