//! Buffers say what they ask for, and wake the provisioner.

mod cluster;

use ::cluster::state::{Kind, Seen};
use api::conditions::HasConditions;

use super::*;
use crate::testing::{merge, state};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn template(generation: i64) -> Value {
    json!({
        "kind": "PodTemplate", "metadata": {"name": "t", "namespace": "default", "generation": generation},
        "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}},
    })
}

fn buffer(change: &Value) -> Value {
    let mut buffer = json!({
        "kind": "CapacityBuffer",
        "metadata": {"name": "b", "namespace": "default", "uid": "u", "generation": 2, "resourceVersion": "7"},
        "spec": {"podTemplateRef": {"name": "t"}, "replicas": 3},
    });
    merge(&mut buffer, change);
    buffer
}

/// The buffer of a cluster with these objects, and what becomes of it.
fn decided(objects: &[Value]) -> (CapacityBuffer, CapacityBuffer) {
    let state = state(objects);
    let buffer = state.capacity_buffers.values().next().unwrap();
    ((**buffer).clone(), decide(buffer, resolve(&state, buffer), NOW))
}

fn ready(buffer: &CapacityBuffer) -> String {
    let condition = buffer.condition(READY_FOR_PROVISIONING).unwrap();
    format!("{} {}: {}", condition.status, condition.reason, condition.message)
}

#[test]
fn a_resolved_buffer_says_what_it_keeps_room_for() {
    let (before, after) = decided(&[template(1), buffer(&json!({}))]);
    assert_eq!(ready(&after), "True Resolved: Pod template resolved successfully");
    let status = after.status.as_ref().unwrap();
    assert_eq!((status.replicas, status.pod_template_generation), (Some(3), Some(1)));
    assert_eq!(status.pod_template_ref.as_ref().unwrap().name, "t");
    assert_eq!(status.provisioning_strategy.as_deref(), Some("buffer.x-k8s.io/active-capacity"));
    assert_eq!(status.conditions[0].observed_generation, 2);
    let patch = patch(&before, &after).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["status"]["replicas"], 3);
    // Nothing has changed since.
    assert_eq!(super::patch(&after, &after), None);
}

#[test]
fn the_strategy_is_repeated_whatever_it_is() {
    let (_, after) = decided(&[template(1), buffer(&json!({"spec": {"provisioningStrategy": "other"}}))]);
    assert_eq!(after.status.unwrap().provisioning_strategy.as_deref(), Some("other"));
}

#[test]
fn a_new_generation_of_the_template_is_told() {
    let (_, first) = decided(&[template(1), buffer(&json!({}))]);
    let status = json!({"status": serde_json::to_value(&first.status).unwrap()});
    let (before, after) = decided(&[template(2), buffer(&status)]);
    assert_eq!(before.status, first.status);
    assert_eq!(after.status.as_ref().unwrap().pod_template_generation, Some(2));
    assert_eq!(patch(&before, &after).unwrap()["status"]["podTemplateGeneration"], 2);
}

#[test]
fn a_buffer_without_its_template_says_so_and_keeps_what_it_said() {
    let status =
        json!({"status": {"replicas": 3, "podTemplateRef": {"name": "t"}, "podTemplateGeneration": 1}});
    let (_, after) = decided(&[buffer(&status)]);
    assert_eq!(ready(&after), "False PodTemplateNotFound: PodTemplate \"t\" not found");
    assert_eq!(after.status.unwrap().replicas, Some(3));
}

#[test]
fn every_way_to_fail_has_its_reason() {
    let scalable =
        |kind: &str| json!({"spec": {"podTemplateRef": null, "scalableRef": {"kind": kind, "name": "w"}}});
    let said = |change: &Value| ready(&decided(&[buffer(change)]).1);
    assert_eq!(said(&scalable("Deployment")), "False ScalableRefNotFound: Deployment.apps \"w\" not found");
    assert!(said(&scalable("Job")).starts_with("False ResolutionFailed: unsupported scalableRef"));
    let nothing = json!({"spec": {"podTemplateRef": null}});
    assert_eq!(said(&nothing), "False ResolutionFailed: Neither podTemplateRef nor scalableRef is set");
}

#[test]
fn a_buffer_that_turns_to_a_workload_forgets_its_template() {
    let deployment = json!({
        "kind": "Deployment", "metadata": {"name": "w", "namespace": "default", "generation": 9},
        "spec": {"replicas": 4, "template": {"spec": {"containers": []}}},
    });
    let change = json!({
        "spec": {"podTemplateRef": null, "scalableRef": {"kind": "Deployment", "name": "w"}, "percentage": 50,
            "replicas": null},
        "status": {"replicas": 3, "podTemplateRef": {"name": "t"}, "podTemplateGeneration": 1},
    });
    let (before, after) = decided(&[deployment, buffer(&change)]);
    let patch = patch(&before, &after).unwrap();
    assert_eq!(
        (&patch["status"]["podTemplateRef"], &patch["status"]["podTemplateGeneration"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(patch["status"]["replicas"], 2);
}

#[test]
fn conditions_keep_their_time_while_their_status_stays() {
    let condition = |status: &str| {
        json!({"status": {"conditions": [{
            "type": READY_FOR_PROVISIONING, "status": status, "reason": "Old", "message": "old",
            "lastTransitionTime": "2026-01-05T09:00:00Z",
        }]}})
    };
    let since = |status: &str| {
        let (_, after) = decided(&[template(1), buffer(&condition(status))]);
        assert_eq!(after.conditions().len(), 1);
        after.conditions()[0].last_transition_time.0
    };
    assert_eq!(since("True"), "2026-01-05T09:00:00Z".parse().unwrap());
    assert_eq!(since("False"), NOW);
}

/// The keys to look at after a change, with buffers of several kinds.
fn touched(change: &Value) -> Vec<String> {
    let scalable = |name: &str, kind: &str, group: &str| {
        buffer(&json!({
            "metadata": {"name": name},
            "spec": {"podTemplateRef": null, "scalableRef": {"apiGroup": group, "kind": kind, "name": "w"}},
        }))
    };
    let mut state = state(&[
        buffer(&json!({"metadata": {"name": "of-template"}})),
        buffer(&json!({"metadata": {"name": "elsewhere", "namespace": "other"}})),
        buffer(&json!({"metadata": {"name": "of-another"}, "spec": {"podTemplateRef": {"name": "x"}}})),
        scalable("of-deployment", "Deployment", ""),
        scalable("of-deployment-too", "Deployment", "apps"),
        scalable("of-rollout", "Deployment", "argoproj.io"),
        scalable("of-set", "StatefulSet", "apps"),
        scalable("of-replicas", "ReplicaSet", ""),
    ]);
    let kind = *Kind::ALL.iter().find(|kind| change["kind"] == kind.name()).unwrap();
    let changes = state.observe(Seen::Applied(kind.decode(&change.to_string()).unwrap()));
    let keys = changes.iter().flat_map(|change| affected(change, &state));
    keys.map(|key| key.name.to_string()).collect()
}

#[test]
fn a_template_concerns_the_buffers_of_its_namespace_that_name_it() {
    assert_eq!(touched(&template(1)), ["of-template"]);
    let mut other = template(1);
    other["metadata"]["name"] = "y".into();
    assert!(touched(&other).is_empty());
    other["metadata"] = json!({"name": "t", "namespace": "nowhere"});
    assert!(touched(&other).is_empty());
    other["metadata"]["namespace"] = "other".into();
    assert_eq!(touched(&other), ["elsewhere"]);
}

#[test]
fn a_workload_concerns_the_buffers_that_name_it() {
    let of = |kind: &str| touched(&json!({"kind": kind, "metadata": {"name": "w", "namespace": "default"}}));
    assert_eq!(of("Deployment"), ["of-deployment", "of-deployment-too"]);
    assert_eq!(of("StatefulSet"), ["of-set"]);
    assert_eq!(of("ReplicaSet"), ["of-replicas"]);
    assert!(of("DaemonSet").is_empty());
}

#[test]
fn only_what_is_asked_for_is_news() {
    let object = |generation: i64, version: &str| {
        let object = json!({"metadata": {
            "name": "w", "namespace": "default", "uid": "u", "generation": generation, "resourceVersion": version,
        }});
        Kind::Deployment.decode(&object.to_string()).unwrap()
    };
    let change = |old: Option<Object>, new: Option<Object>| is_news(&Change { old, new });
    assert!(change(None, Some(object(1, "1"))));
    assert!(!change(Some(object(1, "1")), Some(object(1, "2"))));
    assert!(change(Some(object(1, "1")), Some(object(2, "2"))));
    assert!(change(Some(object(2, "2")), None));
}

#[test]
fn a_claim_is_launched_once() {
    let claim = |id: &str| {
        let claim = crate::testing::claim("c", &json!({"status": {"providerID": id}}));
        Some(Object::NodeClaim(Arc::new(claim)))
    };
    assert!(is_launched(&Change { old: claim(""), new: claim("kwok://c") }));
    assert!(!is_launched(&Change { old: claim("kwok://c"), new: claim("kwok://c") }));
    assert!(!is_launched(&Change { old: claim("kwok://c"), new: None }));
}
