//! Rules on kinds with few of them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::Context;
use super::get::Get;
use super::names::{check, config_key, dns_subdomain, qualified_name};
use super::rules::{at_most_all, count_or_percent, label_selector, needed, not_negative, one_of, unchanged};
use crate::field_error::FieldError;

const MOST_BYTES: usize = 1024 * 1024;

/// Rules on a new object, metadata aside.
pub(super) fn validate(context: &Context<'_>, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (context.group, context.kind) {
        ("", "ConfigMap") => config_map(&mut errors, object),
        ("", "Secret") => secret(&mut errors, object),
        ("", "Namespace") => {
            for finalizer in object.list("spec.finalizers").iter().filter_map(Value::as_str) {
                check(&mut errors, "spec.finalizers", finalizer, qualified_name);
                if !finalizer.contains('/') && finalizer != "kubernetes" {
                    let detail = "name is neither a standard finalizer name nor is it fully qualified";
                    errors.push(FieldError::invalid("spec.finalizers", &Value::from(finalizer), detail));
                }
            }
        }
        ("" | "events.k8s.io", "Event") => event(&mut errors, context, object),
        ("policy", "PodDisruptionBudget") => budget(&mut errors, object.at("spec")),
        ("scheduling.k8s.io", "PriorityClass") => priority_class(&mut errors, object),
        ("coordination.k8s.io", "Lease") => lease(&mut errors, object.at("spec")),
        ("discovery.k8s.io", "EndpointSlice") => {
            let accepted = ["FQDN", "IPv4", "IPv6"];
            one_of(&mut errors, "addressType".to_owned(), object.at("addressType"), &accepted);
        }
        ("node.k8s.io", "RuntimeClass") => {
            check(&mut errors, "handler", object.text("handler"), super::names::dns_label);
        }
        _ => {}
    }
    errors
}

/// Rules on a changed object, metadata aside.
pub(super) fn validate_update(context: &Context<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (context.group, context.kind) {
        ("", "Namespace") => {}
        ("", "ConfigMap") => {
            frozen(&mut errors, object, old, &["data", "binaryData"]);
            config_map(&mut errors, object);
        }
        ("", "Secret") => {
            unchanged(&mut errors, "type", object.at("type"), old.at("type"));
            frozen(&mut errors, object, old, &["data"]);
            secret(&mut errors, object);
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            if object.number("value").unwrap_or_default() != old.number("value").unwrap_or_default() {
                errors.push(FieldError::forbidden("value", "may not be changed in an update."));
            }
            let policy = "preemptionPolicy";
            unchanged(&mut errors, policy, object.at(policy), old.at(policy));
        }
        ("node.k8s.io", "RuntimeClass") => {
            unchanged(&mut errors, "handler", object.at("handler"), old.at("handler"));
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            errors = validate(context, object);
            unchanged(&mut errors, "addressType", object.at("addressType"), old.at("addressType"));
        }
        ("events.k8s.io", "Event") => {
            errors = validate(context, object);
            errors.retain(|error| error.field != "series.count");
            for (key, field) in [
                ("regarding", "involvedObject"),
                ("reason", "reason"),
                ("note", "message"),
                ("type", "type"),
                ("eventTime", "eventTime"),
                ("action", "action"),
                ("related", "related"),
                ("reportingController", "reportingController"),
                ("reportingInstance", "reportingInstance"),
            ] {
                unchanged(&mut errors, field, object.at(key), old.at(key));
            }
        }
        _ => errors = validate(context, object),
    }
    errors
}

/// What says that it never changes, does not.
fn frozen(errors: &mut Vec<FieldError>, object: &Value, old: &Value, keys: &[&str]) {
    const DETAIL: &str = "field is immutable when `immutable` is set";
    if !old.flag("immutable") {
        return;
    }
    if !object.flag("immutable") {
        errors.push(FieldError::forbidden("immutable", DETAIL));
    }
    for key in keys {
        if object.at(key) != old.at(key) {
            errors.push(FieldError::forbidden(*key, DETAIL));
        }
    }
}

fn config_map(errors: &mut Vec<FieldError>, object: &Value) {
    let mut size = 0;
    for (key, value) in object.entries("data") {
        check(errors, format!("data[{key}]"), key, config_key);
        if object.at("binaryData").get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(format!("data[{key}]"), &Value::from(key), detail));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    for (key, value) in object.entries("binaryData") {
        check(errors, format!("binaryData[{key}]"), key, config_key);
        size += value.as_str().map_or(0, decoded_len);
    }
    if size > MOST_BYTES {
        errors.push(FieldError::too_long("", MOST_BYTES));
    }
}

fn secret(errors: &mut Vec<FieldError>, object: &Value) {
    let data = object.at("data");
    let mut size = 0;
    for (key, value) in object.entries("data") {
        check(errors, format!("data[{key}]"), key, config_key);
        size += value.as_str().map_or(0, decoded_len);
    }
    if size > MOST_BYTES {
        errors.push(FieldError::too_long("data", MOST_BYTES));
    }
    let mut need = |key: &str| {
        if data.get(key).is_none() {
            errors.push(FieldError::required(format!("data[{key}]"), ""));
        }
    };
    match object.text("type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if object.at("metadata.annotations").get(key).is_none_or(super::get::is_empty) {
                errors.push(FieldError::required(format!("metadata.annotations[{key}]"), ""));
            }
        }
        "kubernetes.io/dockercfg" => need(".dockercfg"),
        "kubernetes.io/dockerconfigjson" => need(".dockerconfigjson"),
        "kubernetes.io/basic-auth" if data.get("username").or(data.get("password")).is_none() => {
            need("username");
            need("password");
        }
        "kubernetes.io/ssh-auth" => need("ssh-privatekey"),
        "kubernetes.io/tls" => {
            need("tls.crt");
            need("tls.key");
        }
        _ => {}
    }
}

/// Both groups' events are one kind; the newer group asks for more.
fn event(errors: &mut Vec<FieldError>, context: &Context<'_>, event: &Value) {
    let new_group = context.group == "events.k8s.io";
    let about = if new_group { "regarding" } else { "involvedObject" };
    let controller = if new_group { "reportingController" } else { "reportingComponent" };
    let other = event.at(about).text("namespace");
    let namespace = event.text("metadata.namespace");
    let mismatch = || {
        let detail = "does not match event.namespace";
        FieldError::invalid("involvedObject.namespace", &Value::from(other), detail)
    };
    if event.has("eventTime") {
        if other.is_empty() && !matches!(namespace, "default" | "kube-system") {
            errors.push(mismatch());
        }
        needed(errors, controller.to_owned(), event.text(controller));
        check(errors, controller, event.text(controller), qualified_name);
        needed(errors, "reportingInstance".to_owned(), event.text("reportingInstance"));
        at_most(errors, event, "reportingInstance", "reportingInstance", 128);
        needed(errors, "action".to_owned(), event.text("action"));
        at_most(errors, event, "action", "action", 128);
        needed(errors, "reason".to_owned(), event.text("reason"));
        at_most(errors, event, "reason", "reason", 128);
        at_most(errors, event, if new_group { "note" } else { "message" }, "message", 1024);
    } else if other.is_empty() {
        if !matches!(namespace, "" | "default") {
            errors.push(mismatch());
        }
    } else if other != namespace {
        errors.push(mismatch());
    }
    check(errors, "namespace", namespace, dns_subdomain);
    if new_group {
        new_event(errors, event);
    }
}

fn at_most(errors: &mut Vec<FieldError>, event: &Value, key: &str, field: &str, most: usize) {
    if event.text(key).len() > most {
        let detail = format!("can have at most {most} characters");
        errors.push(FieldError::invalid(field, &Value::from(""), detail));
    }
}

fn new_event(errors: &mut Vec<FieldError>, event: &Value) {
    let empty = Value::from("");
    if event.has("series") {
        if event.number("series.count").unwrap_or_default() < 2 {
            errors.push(FieldError::invalid("series.count", &empty, "should be at least 2"));
        }
        if !event.has("series.lastObservedTime") {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
    }
    if !event.has("eventTime") {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = event.text("type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", &empty, format!("has invalid value: {kind}")));
    }
    for (key, field) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ] {
        if event.has(key) {
            errors.push(FieldError::invalid(field, &empty, "needs to be unset"));
        }
    }
}

fn budget(errors: &mut Vec<FieldError>, spec: &Value) {
    if spec.has("minAvailable") && spec.has("maxUnavailable") {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let mut error = FieldError::invalid("spec", spec, detail);
        // Shown with the names of Go's own type.
        error.shown = Some(format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec.at("minAvailable"),
            spec.at("selector"),
            spec.at("maxUnavailable"),
            spec.at("unhealthyPodEvictionPolicy")
        ));
        errors.push(error);
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let field = format!("spec.{key}");
        count_or_percent(errors, &field, spec.at(key));
        at_most_all(errors, &field, spec.at(key));
    }
    label_selector(errors, "spec.selector", spec.at("selector"));
    let policy = spec.at("unhealthyPodEvictionPolicy");
    if !policy.is_null() && !matches!(policy.as_str(), Some("AlwaysAllow" | "IfHealthyBudget")) {
        let accepted = ["AlwaysAllow", "IfHealthyBudget"];
        errors.push(FieldError::not_supported("spec.unhealthyPodEvictionPolicy", policy, &accepted));
    }
}

fn priority_class(errors: &mut Vec<FieldError>, class: &Value) {
    const HIGHEST: i64 = 1_000_000_000;
    let (name, value) = (class.text("metadata.name"), class.number("value").unwrap_or_default());
    if name.starts_with("system-") {
        let known = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
        let wrong = match known.iter().find(|(known, _)| *known == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, right)) if *right != value => {
                Some(format!("value of {name} PriorityClass must be {right}"))
            }
            Some(_) if class.flag("globalDefault") => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {wrong}"
            );
            errors.push(FieldError::forbidden("metadata.name", detail));
        }
    } else if value > HIGHEST {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(FieldError::forbidden("value", detail));
    }
    if class.has("preemptionPolicy") {
        let accepted = ["PreemptLowerPriority", "Never"];
        one_of(errors, "preemptionPolicy".to_owned(), class.at("preemptionPolicy"), &accepted);
    }
}

fn lease(errors: &mut Vec<FieldError>, spec: &Value) {
    let duration = spec.at("leaseDurationSeconds");
    if duration.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.push(FieldError::invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"));
    }
    not_negative(errors, "spec.leaseTransitions".to_owned(), spec.at("leaseTransitions"));
    if !spec.text("preferredHolder").is_empty() && spec.text("strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden("spec.preferredHolder", detail));
    }
}

/// How many bytes a text in base64 stands for.
fn decoded_len(text: &str) -> usize {
    BASE64_STANDARD.decode(text).map_or(0, |bytes| bytes.len())
}
