//! Kinds that make pods: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob, ReplicationController.

use serde_json::{Map, Value, json};

use super::get::{Get, child, is_empty, set_empty, set_missing};

mod validate;

pub(super) use validate::{validate, validate_update};

/// Fills in one struct; `name` is its Go type.
pub(super) fn fill(name: &str, map: &mut Map<String, Value>) {
    match name {
        "apps.DeploymentSpec" => deployment(map),
        "apps.ReplicaSetSpec" => set_missing(map, "replicas", 1),
        "apps.DaemonSetSpec" => daemon_set(map),
        "apps.StatefulSetSpec" => stateful_set(map),
        "batch.Job" => {
            job_labels(map);
            if let Some(spec) = child(map, "spec") {
                job(spec);
            }
        }
        "batch.CronJobSpec" => {
            set_empty(map, "concurrencyPolicy", "Allow");
            set_missing(map, "suspend", false);
            set_missing(map, "successfulJobsHistoryLimit", 3);
            set_missing(map, "failedJobsHistoryLimit", 1);
        }
        "batch.PodFailurePolicyOnPodConditionsPattern" => set_empty(map, "status", "True"),
        _ => {}
    }
}

fn deployment(map: &mut Map<String, Value>) {
    set_missing(map, "replicas", 1);
    set_missing(map, "revisionHistoryLimit", 10);
    set_missing(map, "progressDeadlineSeconds", 600);
    rolling_update(map, "strategy", &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
}

fn daemon_set(map: &mut Map<String, Value>) {
    set_missing(map, "revisionHistoryLimit", 10);
    rolling_update(map, "updateStrategy", &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
}

fn rolling_update(map: &mut Map<String, Value>, key: &str, defaults: &[(&str, Value)]) {
    let Some(strategy) = child(map, key) else { return };
    set_empty(strategy, "type", "RollingUpdate");
    if strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate")
        && let Some(rolling) = child(strategy, "rollingUpdate")
    {
        for (key, value) in defaults {
            set_missing(rolling, key, value.clone());
        }
    }
}

fn stateful_set(map: &mut Map<String, Value>) {
    set_missing(map, "replicas", 1);
    set_missing(map, "revisionHistoryLimit", 10);
    set_empty(map, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = child(map, "updateStrategy") {
        if strategy.get("type").is_none_or(is_empty) {
            strategy.insert("type".to_owned(), json!("RollingUpdate"));
            set_missing(strategy, "rollingUpdate", json!({}));
        }
        let rolling = strategy.get("type").and_then(Value::as_str) == Some("RollingUpdate");
        if let Some(update) =
            strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut).filter(|_| rolling)
        {
            set_missing(update, "partition", 0);
        }
    }
    if let Some(policy) = child(map, "persistentVolumeClaimRetentionPolicy") {
        set_empty(policy, "whenDeleted", "Retain");
        set_empty(policy, "whenScaled", "Retain");
    }
    // Claims in a list carry their kind there.
    for claim in map.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(claim) = claim.as_object_mut() {
            set_empty(claim, "apiVersion", "v1");
            set_empty(claim, "kind", "PersistentVolumeClaim");
        }
    }
}

/// A job without labels has those of its template, once these are complete.
fn job_labels(map: &mut Map<String, Value>) {
    let complete = map.get("spec").is_some_and(|spec| {
        spec.flag("manualSelector") || spec.at("template.metadata.labels").get(CONTROLLER_UID).is_some()
    });
    if !complete {
        return;
    }
    let labels = map.get("spec").map(|spec| spec.at("template.metadata.labels").clone()).unwrap_or_default();
    if !is_empty(&labels)
        && let Some(metadata) = child(map, "metadata")
    {
        set_empty(metadata, "labels", labels);
    }
}

/// Templates of cron jobs are only filled in when a job is made of them.
fn job(map: &mut Map<String, Value>) {
    let given = |map: &Map<String, Value>, key: &str| map.get(key).is_some_and(|value| !value.is_null());
    if !given(map, "completions") && !given(map, "parallelism") {
        set_missing(map, "completions", 1);
    }
    set_missing(map, "parallelism", 1);
    let limit = if given(map, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    set_missing(map, "backoffLimit", limit);
    set_missing(map, "completionMode", "NonIndexed");
    set_missing(map, "suspend", false);
    let policy = if given(map, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set_missing(map, "podReplacementPolicy", policy);
    set_missing(map, "manualSelector", false);
}

/// Labels and selector by which a job finds its pods, unless it brings its own.
pub(super) fn generate_job_selector(job: &mut Value) {
    if job.flag("spec.manualSelector") {
        return;
    }
    let (name, uid) = (job.at("metadata.name").clone(), job.at("metadata.uid").clone());
    let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let labels = child(spec, "template").and_then(|template| child(template, "metadata"));
    if let Some(labels) = labels.and_then(|metadata| child(metadata, "labels")) {
        for (key, value) in [
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            (CONTROLLER_UID, &uid),
        ] {
            set_missing(labels, key, value.clone());
        }
    }
    if let Some(labels) = child(spec, "selector").and_then(|selector| child(selector, "matchLabels")) {
        set_missing(labels, CONTROLLER_UID, uid);
    }
}

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
