//! Rules on kinds that make pods.

use serde_json::{Value, json};

use super::super::get::{Get, is_empty, take_over};
use super::super::names::{check, dns_label};
use super::super::rules::{
    at_most_all, count_or_percent, invalid_selector, label_selector, not_negative, one_of, selects, unchanged,
};
use super::super::{metadata, pod, storage};
use crate::field_error::FieldError;

/// Rules on a new object, metadata aside; nothing when the kind is another one.
pub(in crate::kinds) fn validate(kind: &str, object: &Value) -> Option<Vec<FieldError>> {
    let mut errors = Vec::new();
    let spec = object.at("spec");
    match kind {
        "Deployment" => deployment(&mut errors, spec),
        "ReplicaSet" => replica_set(&mut errors, spec),
        "DaemonSet" => daemon_set(&mut errors, spec),
        "StatefulSet" => stateful_set(&mut errors, spec, true),
        "ReplicationController" => replication_controller(&mut errors, spec),
        "Job" => {
            generated_selector(&mut errors, object);
            job_with_selector(&mut errors, spec);
        }
        "CronJob" => {
            cron_job(&mut errors, spec);
            let name = object.at("metadata.name");
            if name.as_str().is_some_and(|name| name.len() > 52) {
                errors.push(FieldError::invalid("metadata.name", name, "must be no more than 52 characters"));
            }
        }
        "PodTemplate" => pod::template(&mut errors, "template", object.at("template")),
        _ => return None,
    }
    Some(errors)
}

/// Rules on a changed object, metadata aside.
pub(in crate::kinds) fn validate_update(kind: &str, object: &Value, old: &Value) -> Option<Vec<FieldError>> {
    let mut errors = Vec::new();
    let (spec, before) = (object.at("spec"), old.at("spec"));
    let immutable = |errors: &mut Vec<FieldError>, key: &str| {
        if key == "selector" && spec.at(key) != before.at(key) {
            return errors.push(invalid_selector("spec.selector", spec.at(key), "field is immutable"));
        }
        unchanged(errors, &format!("spec.{key}"), spec.at(key), before.at(key));
    };
    match kind {
        "Deployment" => {
            deployment(&mut errors, spec);
            immutable(&mut errors, "selector");
        }
        "ReplicaSet" => {
            replica_set(&mut errors, spec);
            immutable(&mut errors, "selector");
        }
        "DaemonSet" => {
            immutable(&mut errors, "selector");
            daemon_set(&mut errors, spec);
        }
        "StatefulSet" => {
            stateful_set(&mut errors, spec, false);
            stateful_set_change(&mut errors, spec, before);
        }
        "ReplicationController" => replication_controller(&mut errors, spec),
        "Job" => {
            job_with_selector(&mut errors, spec);
            job_change(&mut errors, object, old);
        }
        "CronJob" => cron_job(&mut errors, spec),
        "PodTemplate" => pod::template(&mut errors, "template", object.at("template")),
        _ => return None,
    }
    Some(errors)
}

/// A selector that has to be there and select something.
fn needed_selector(errors: &mut Vec<FieldError>, spec: &Value, empty: &str) {
    let selector = spec.at("selector");
    if selector.is_null() {
        return errors.push(FieldError::required("spec.selector", ""));
    }
    label_selector(errors, "spec.selector", selector);
    if is_empty(selector.at("matchLabels")) && is_empty(selector.at("matchExpressions")) {
        errors.push(invalid_selector("spec.selector", selector, empty));
    }
}

fn template_labels(errors: &mut Vec<FieldError>, spec: &Value) {
    let (selector, labels) = (spec.at("selector"), spec.at("template.metadata.labels"));
    // No selector at all selects nothing.
    if selector.is_null() || !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
    }
}

/// Pods of these kinds run for good.
fn runs_for_good(errors: &mut Vec<FieldError>, spec: &Value, kind: &str) {
    let policy = spec.at("template.spec.restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if spec.has("template.spec.activeDeadlineSeconds") {
        errors.push(FieldError::forbidden(
            "spec.template.spec.activeDeadlineSeconds",
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

fn template_of_replicas(errors: &mut Vec<FieldError>, spec: &Value) {
    template_labels(errors, spec);
    pod::template(errors, "spec.template", spec.at("template"));
    runs_for_good(errors, spec, "ReplicaSet");
}

fn deployment(errors: &mut Vec<FieldError>, spec: &Value) {
    not_negative(errors, "spec.replicas".to_owned(), spec.at("replicas"));
    needed_selector(errors, spec, "empty selector is invalid for deployment");
    template_of_replicas(errors, spec);
    strategy(errors, spec.at("strategy"));
    not_negative(errors, "spec.minReadySeconds".to_owned(), spec.at("minReadySeconds"));
    not_negative(errors, "spec.revisionHistoryLimit".to_owned(), spec.at("revisionHistoryLimit"));
    let deadline = spec.at("progressDeadlineSeconds");
    not_negative(errors, "spec.progressDeadlineSeconds".to_owned(), deadline);
    let ready = spec.number("minReadySeconds").unwrap_or_default();
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, detail));
    }
}

/// The number in a count or a percentage.
fn number_of(value: &Value) -> i64 {
    let text = value.as_str().map(|text| text.trim_end_matches('%'));
    value.as_i64().or_else(|| text.and_then(|text| text.parse().ok())).unwrap_or_default()
}

fn strategy(errors: &mut Vec<FieldError>, strategy: &Value) {
    const FIELD: &str = "spec.strategy.rollingUpdate";
    let rolling = strategy.at("rollingUpdate");
    match strategy.text("type") {
        "Recreate" => {
            if !rolling.is_null() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(FieldError::forbidden(FIELD, detail));
            }
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            count_or_percent(errors, &format!("{FIELD}.maxUnavailable"), unavailable);
            count_or_percent(errors, &format!("{FIELD}.maxSurge"), surge);
            if number_of(unavailable) == 0 && number_of(surge) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(format!("{FIELD}.maxUnavailable"), unavailable, detail));
            }
            at_most_all(errors, &format!("{FIELD}.maxUnavailable"), unavailable);
        }
        other => {
            let shown = json!({"Type": other, "RollingUpdate": rolling});
            errors.push(in_go_order(
                FieldError::not_supported("spec.strategy", &shown, &["Recreate", "RollingUpdate"]),
                other,
                rolling,
            ));
        }
    }
}

/// A strategy is shown as Go's own type, whose fields are not in the order of the alphabet.
fn in_go_order(mut error: FieldError, kind: &str, rolling: &Value) -> FieldError {
    error.shown = Some(format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", json!(kind)));
    error
}

fn replica_set(errors: &mut Vec<FieldError>, spec: &Value) {
    not_negative(errors, "spec.replicas".to_owned(), spec.at("replicas"));
    not_negative(errors, "spec.minReadySeconds".to_owned(), spec.at("minReadySeconds"));
    needed_selector(errors, spec, "empty selector is invalid for deployment");
    template_of_replicas(errors, spec);
}

fn replication_controller(errors: &mut Vec<FieldError>, spec: &Value) {
    not_negative(errors, "spec.replicas".to_owned(), spec.at("replicas"));
    not_negative(errors, "spec.minReadySeconds".to_owned(), spec.at("minReadySeconds"));
    if is_empty(spec.at("selector")) {
        errors.push(FieldError::required("spec.selector", ""));
    }
    if !spec.has("template") {
        return errors.push(FieldError::required("spec.template", ""));
    }
    let (selector, labels) =
        (json!({"matchLabels": spec.at("selector")}), spec.at("template.metadata.labels"));
    if !selects(&selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
    }
    pod::template(errors, "spec.template", spec.at("template"));
    runs_for_good(errors, spec, "ReplicationController");
}

fn daemon_set(errors: &mut Vec<FieldError>, spec: &Value) {
    const FIELD: &str = "spec.updateStrategy.rollingUpdate";
    let selector = spec.at("selector");
    label_selector(errors, "spec.selector", selector);
    let labels = spec.at("template.metadata.labels");
    if selector.is_null() || !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
    }
    if !selector.is_null()
        && is_empty(selector.at("matchLabels"))
        && is_empty(selector.at("matchExpressions"))
    {
        let detail = "empty selector is invalid for daemonset";
        errors.push(invalid_selector("spec.selector", selector, detail));
    }
    pod::template(errors, "spec.template", spec.at("template"));
    runs_for_good(errors, spec, "DaemonSet");
    not_negative(errors, "spec.minReadySeconds".to_owned(), spec.at("minReadySeconds"));
    let rolling = spec.at("updateStrategy.rollingUpdate");
    match spec.text("updateStrategy.type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            for (key, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
                count_or_percent(errors, &format!("{FIELD}.{key}"), value);
            }
            for (key, value) in [("maxUnavailable", unavailable), ("maxSurge", surge)] {
                at_most_all(errors, &format!("{FIELD}.{key}"), value);
            }
            match (number_of(unavailable) != 0, number_of(surge) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.push(FieldError::invalid(format!("{FIELD}.maxSurge"), surge, detail));
                }
                (false, false) => {
                    let detail = "cannot be 0 when maxSurge is 0";
                    errors.push(FieldError::required(format!("{FIELD}.maxUnavailable"), detail));
                }
                _ => {}
            }
        }
        other => {
            let accepted = ["RollingUpdate", "OnDelete"];
            let error = FieldError::not_supported("spec.updateStrategy", &Value::Null, &accepted);
            errors.push(in_go_order(error, other, rolling));
        }
    }
    not_negative(errors, "spec.revisionHistoryLimit".to_owned(), spec.at("revisionHistoryLimit"));
}

fn stateful_set(errors: &mut Vec<FieldError>, spec: &Value, is_new: bool) {
    let policy = spec.at("podManagementPolicy");
    if !matches!(policy.as_str(), Some("OrderedReady" | "Parallel")) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid("spec.podManagementPolicy", policy, detail));
    }
    let rolling = spec.at("updateStrategy.rollingUpdate");
    match spec.text("updateStrategy.type") {
        "RollingUpdate" => {
            const FIELD: &str = "spec.updateStrategy.rollingUpdate";
            not_negative(errors, format!("{FIELD}.partition"), rolling.at("partition"));
        }
        "OnDelete" => {
            if !rolling.is_null() {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                let mut error = FieldError::invalid("spec.updateStrategy.rollingUpdate", rolling, detail);
                error.shown = Some(format!(
                    "{{\"Partition\":{},\"MaxUnavailable\":{}}}",
                    rolling.number("partition").unwrap_or_default(),
                    rolling.at("maxUnavailable")
                ));
                errors.push(error);
            }
        }
        other => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let error = FieldError::invalid("spec.updateStrategy", &Value::Null, detail);
            errors.push(in_go_order(error, other, rolling));
        }
    }
    for key in ["whenDeleted", "whenScaled"] {
        let field = format!("spec.persistentVolumeClaimRetentionPolicy.{key}");
        let value = spec.at("persistentVolumeClaimRetentionPolicy").at(key);
        one_of(errors, field, value, &["Retain", "Delete"]);
    }
    if is_new {
        for (index, claim) in spec.list("volumeClaimTemplates").iter().enumerate() {
            storage::claim_spec(
                errors,
                &format!("spec.volumeClaimTemplates[{index}].spec"),
                claim.at("spec"),
            );
        }
    }
    not_negative(errors, "spec.replicas".to_owned(), spec.at("replicas"));
    not_negative(errors, "spec.minReadySeconds".to_owned(), spec.at("minReadySeconds"));
    not_negative(errors, "spec.ordinals.start".to_owned(), spec.at("ordinals.start"));
    if is_new && !spec.text("serviceName").is_empty() {
        check(errors, "spec.serviceName", spec.text("serviceName"), dns_label);
    }
    needed_selector(errors, spec, "empty selector is invalid for statefulset");
    template_labels(errors, spec);
    let template = with_claims(spec);
    pod::template(errors, "spec.template", &template);
    // The API server looks at these twice.
    metadata::labels(template.at("metadata"), "labels", "spec.template.labels", errors);
    metadata::annotations(template.at("metadata"), "spec.template.annotations", errors);
    runs_for_good(errors, spec, "StatefulSet");
}

/// The template as pods will have it: with the claims among its volumes.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec.at("template").clone();
    let claims = spec.list("volumeClaimTemplates");
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    pod.remove("subdomain");
    pod.remove("hostname");
    if claims.is_empty() {
        return template;
    }
    let names: Vec<&Value> = claims.iter().map(|claim| claim.at("metadata.name")).collect();
    let mut volumes: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    volumes.extend(own.into_iter().filter(|volume| !names.contains(&volume.at("name"))));
    pod.insert("volumes".to_owned(), Value::Array(volumes));
    template
}

fn stateful_set_change(errors: &mut Vec<FieldError>, spec: &Value, before: &Value) {
    let mut same = spec.clone();
    for key in [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ] {
        take_over(&mut same, before, key);
    }
    if same != *before {
        errors.push(FieldError::forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        ));
    }
}

fn generated_selector(errors: &mut Vec<FieldError>, job: &Value) {
    let spec = job.at("spec");
    if spec.flag("manualSelector") || !spec.has("selector") {
        return;
    }
    let (uid, name) = (job.at("metadata.uid"), job.at("metadata.name"));
    let labels = spec.at("template.metadata.labels");
    for (key, value) in [
        ("controller-uid", uid),
        ("job-name", name),
        (super::CONTROLLER_UID, uid),
        ("batch.kubernetes.io/job-name", name),
    ] {
        let field = format!("spec.template.metadata.labels[{key}]");
        let text = value.as_str().unwrap_or_default();
        match labels.get(key) {
            Some(found) if found == value => {}
            Some(_) => {
                errors.push(FieldError::invalid(field, labels, format!("must be '{text}'")));
            }
            None => errors.push(FieldError::required(field, format!("must be '{text}'"))),
        }
    }
    let expected = json!({
        "controller-uid": uid,
        "job-name": name,
        super::CONTROLLER_UID: uid,
        "batch.kubernetes.io/job-name": name,
    });
    if !selects(spec.at("selector"), &expected) {
        let detail = "`selector` not auto-generated";
        errors.push(invalid_selector("spec.selector", spec.at("selector"), detail));
    }
}

fn job_with_selector(errors: &mut Vec<FieldError>, spec: &Value) {
    job(errors, "spec", spec);
    let (selector, labels) = (spec.at("selector"), spec.at("template.metadata.labels"));
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else {
        label_selector(errors, "spec.selector", selector);
    }
    if selector.is_null() || !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, detail));
    }
}

fn job(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        not_negative(errors, format!("{field}.{key}"), spec.at(key));
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(format!("{field}.backoffLimitPerIndex"), detail));
    }
    let mode = spec.text("completionMode");
    if spec.has("completionMode") && !matches!(mode, "NonIndexed" | "Indexed") {
        let accepted = ["NonIndexed", "Indexed"];
        let field = format!("{field}.completionMode");
        errors.push(FieldError::not_supported(field, spec.at("completionMode"), &accepted));
    }
    if mode == "Indexed" && !spec.has("completions") {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required(format!("{field}.completions"), detail));
    }
    if mode == "NonIndexed" || mode.is_empty() {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if spec.has(key) {
                let detail = "requires indexed completion mode";
                errors.push(FieldError::invalid(format!("{field}.{key}"), spec.at(key), detail));
            }
        }
    }
    let policy = spec.at("podReplacementPolicy");
    if !policy.is_null() {
        let accepted: &[&str] =
            if spec.has("podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        if !accepted.contains(&policy.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(format!("{field}.podReplacementPolicy"), policy, accepted));
        }
    }
    pod::template(errors, &format!("{field}.template"), spec.at("template"));
    let (path, policy) =
        (format!("{field}.template.spec.restartPolicy"), spec.at("template.spec.restartPolicy"));
    match policy.as_str().unwrap_or_default() {
        "Always" | "" => {
            errors.push(FieldError::required(path, "valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" if spec.has("podFailurePolicy") => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(path, policy, detail));
        }
        "OnFailure" | "Never" => {}
        _ => errors.push(FieldError::not_supported(path, policy, &["OnFailure", "Never"])),
    }
}

fn job_change(errors: &mut Vec<FieldError>, job: &Value, old: &Value) {
    let (spec, before) = (job.at("spec"), old.at("spec"));
    if spec.text("completionMode") != "Indexed" {
        unchanged(errors, "spec.completions", spec.at("completions"), before.at("completions"));
    } else if spec.at("completions") != before.at("completions")
        && spec.has("completions")
        && spec.at("completions") != spec.at("parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid("spec.completions", spec.at("completions"), detail));
    }
    unchanged(errors, "spec.selector", spec.at("selector"), before.at("selector"));
    let mut template = spec.at("template").clone();
    // A job that was suspended before it ever ran may still be told where to run and with how much.
    if before.flag("suspend") && !old.has("status.startTime") {
        take_over(&mut template, before.at("template"), "metadata");
        if let Some(pod) = template.get_mut("spec") {
            for key in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
                take_over(pod, before.at("template.spec"), key);
            }
            for list in ["containers", "initContainers"] {
                let old = before.at("template.spec").list(list).to_vec();
                let new = pod.get_mut(list).and_then(Value::as_array_mut);
                for (container, old) in new.into_iter().flatten().zip(&old) {
                    take_over(container, old, "resources");
                }
            }
        }
    }
    if template != *before.at("template") {
        // The whole template is shown there as Go's own type; nobody can read that.
        let error = FieldError::invalid("spec.template", spec.at("template"), "field is immutable");
        errors.push(error);
    }
    for key in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        unchanged(errors, &format!("spec.{key}"), spec.at(key), before.at(key));
    }
}

fn cron_job(errors: &mut Vec<FieldError>, spec: &Value) {
    let schedule = spec.at("schedule");
    match schedule.as_str().unwrap_or_default() {
        "" => errors.push(FieldError::required("spec.schedule", "")),
        text if text.contains("TZ") => {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid("spec.schedule", schedule, detail));
        }
        text => {
            let fields = text.split_whitespace().count();
            if !text.starts_with('@') && fields != 5 {
                let detail = format!(
                    "expected exactly 5 fields, found {fields}: [{}]",
                    text.split_whitespace().collect::<Vec<_>>().join(" ")
                );
                errors.push(FieldError::invalid("spec.schedule", schedule, detail));
            }
        }
    }
    not_negative(errors, "spec.startingDeadlineSeconds".to_owned(), spec.at("startingDeadlineSeconds"));
    let accepted = ["Allow", "Forbid", "Replace"];
    one_of(errors, "spec.concurrencyPolicy".to_owned(), spec.at("concurrencyPolicy"), &accepted);
    job(errors, "spec.jobTemplate.spec", spec.at("jobTemplate.spec"));
    for key in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(errors, format!("spec.{key}"), spec.at(key));
    }
}
