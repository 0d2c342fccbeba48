//! Rules on the metadata of any object.

use serde_json::Value;

use super::get::Get;
use super::names::{check, dns_label, dns_subdomain, label_value, path_segment, qualified_name};
use super::{Context, shape};
use crate::field_error::FieldError;

const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// How a kind's names have to look; `prefix` is set for `generateName`, which gets more letters behind it.
fn name_rules(group: &str, kind: &str, name: &str, prefix: bool) -> Vec<String> {
    let segment = matches!(
        (group, kind),
        ("", "Event")
            | ("policy", "PodDisruptionBudget")
            | ("rbac.authorization.k8s.io" | "events.k8s.io", _)
    );
    if segment {
        return match (prefix, name) {
            // A prefix may still become something else.
            (true, "." | "..") => Vec::new(),
            _ => path_segment(name),
        };
    }
    let label = matches!((group, kind), ("", "Namespace" | "Service") | ("apps", "StatefulSet"));
    let masked = match name.strip_suffix('-') {
        // The last letter goes with the dash, as in the API server; that only matters for messages on length.
        Some(rest) if prefix && !rest.is_empty() => {
            let mut rest = rest.to_owned();
            rest.pop();
            rest + "a"
        }
        _ => name.to_owned(),
    };
    if label { dns_label(&masked) } else { dns_subdomain(&masked) }
}

/// Rules on the metadata of a new object.
pub(super) fn validate(
    context: &Context<'_>,
    object: &Value,
    namespaced: bool,
    built_in: bool,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let metadata = object.at("metadata");
    let rules = |name: &str, prefix: bool| {
        if built_in {
            name_rules(context.group, context.kind, name, prefix)
        } else {
            name_rules("", "", name, prefix)
        }
    };
    let generate_name = metadata.text("generateName");
    if !generate_name.is_empty() {
        check(&mut errors, "metadata.generateName", generate_name, |name| rules(name, true));
    }
    let name = metadata.text("name");
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        check(&mut errors, "metadata.name", name, |name| rules(name, false));
    }
    let namespace = metadata.text("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required("metadata.namespace", "")),
        (true, false) => check(&mut errors, "metadata.namespace", namespace, dns_label),
        (false, false) => {
            errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
        }
        (false, true) => {}
    }
    if metadata.number("generation").is_some_and(|generation| generation < 0) {
        let generation = metadata.at("generation");
        errors.push(FieldError::invalid(
            "metadata.generation",
            generation,
            "must be greater than or equal to 0",
        ));
    }
    common(metadata, &mut errors);
    finalizers(metadata, &mut errors);
    if built_in && context.group != "apiextensions.k8s.io" {
        known_finalizers(metadata, &mut errors);
    }
    errors
}

/// Rules that hold for new and changed metadata alike.
fn common(metadata: &Value, errors: &mut Vec<FieldError>) {
    labels(metadata, "labels", "metadata.labels", errors);
    annotations(metadata, "metadata.annotations", errors);
    owner_references(metadata, errors);
}

/// Keys and values of the labels at `key`.
pub(crate) fn labels(holder: &Value, key: &str, field: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in holder.entries(key) {
        check(errors, field, key, qualified_name);
        check(errors, field, value.as_str().unwrap_or_default(), label_value);
    }
}

/// Keys and the total size of annotations.
pub(crate) fn annotations(metadata: &Value, field: &str, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in metadata.entries("annotations") {
        // Case does not matter here.
        check(errors, field, key, |key| qualified_name(&key.to_lowercase()));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MOST_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(field, MOST_ANNOTATION_BYTES));
    }
}

fn owner_references(metadata: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for reference in metadata.list("ownerReferences") {
        let version = reference.text("apiVersion");
        if version.rsplit('/').next().unwrap_or_default().is_empty() {
            let value = Value::from(version);
            errors.push(FieldError::invalid(
                format!("{FIELD}.apiVersion"),
                &value,
                "version must not be empty",
            ));
        }
        for key in ["kind", "name", "uid"] {
            if reference.text(key).is_empty() {
                errors.push(FieldError::invalid(
                    format!("{FIELD}.{key}"),
                    &Value::from(""),
                    "must not be empty",
                ));
            }
        }
        if version == "v1" && reference.text("kind") == "Event" {
            errors.push(FieldError::invalid(
                FIELD,
                reference,
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if reference.flag("controller") {
            let name = format!("{}/{}", reference.text("kind"), reference.text("name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for \
                         {first} and {name}"
                    );
                    let all = metadata.list("ownerReferences").iter();
                    let all: Vec<String> =
                        all.map(|reference| shape::written("meta.OwnerReference", reference)).collect();
                    let mut error = FieldError::invalid(FIELD, reference, detail);
                    error.shown = Some(format!("[{}]", all.join(",")));
                    errors.push(error);
                }
            }
        }
    }
}

fn finalizers(metadata: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "metadata.finalizers";
    let finalizers: Vec<&str> = metadata.list("finalizers").iter().filter_map(Value::as_str).collect();
    for finalizer in &finalizers {
        check(errors, FIELD, finalizer, qualified_name);
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(FIELD, metadata.at("finalizers"), detail));
    }
}

/// On Kubernetes' own objects a finalizer without a domain is one of its own.
fn known_finalizers(metadata: &Value, errors: &mut Vec<FieldError>) {
    for (index, finalizer) in metadata.list("finalizers").iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(format!("metadata.finalizers[{index}]"), finalizer, detail));
        }
    }
}

/// Rules on changed metadata.
pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (metadata, before) = (object.at("metadata"), old.at("metadata"));
    if before.has("deletionTimestamp") {
        let mut extra: Vec<&str> = metadata
            .list("finalizers")
            .iter()
            .filter(|finalizer| !before.list("finalizers").contains(finalizer))
            .filter_map(Value::as_str)
            .collect();
        extra.sort_unstable();
        extra.dedup();
        if !extra.is_empty() {
            let list: Vec<String> = extra.iter().map(|one| format!("{one:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers \
                 []string{{{}}}",
                list.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
    if metadata.text("resourceVersion").is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid("metadata.resourceVersion", &Value::from(""), detail));
    }
    let generation = |metadata: &Value| metadata.number("generation").unwrap_or_default();
    if generation(metadata) < generation(before) {
        let value = Value::from(generation(metadata));
        errors.push(FieldError::invalid("metadata.generation", &value, "must not be decremented"));
    }
    for key in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        if metadata.at(key) != before.at(key) {
            immutable(metadata, before, key, &format!("metadata.{key}"), &mut errors);
        }
    }
    common(metadata, &mut errors);
    let group = object.text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    if group != "apiextensions.k8s.io" && shape::is_built_in(group, object.text("kind")) {
        known_finalizers(metadata, &mut errors);
    }
    errors
}

/// The field may not change. Missing and empty values are the same.
pub(crate) fn immutable(new: &Value, old: &Value, key: &str, field: &str, errors: &mut Vec<FieldError>) {
    let (new, old) = (new.at(key), old.at(key));
    let same = new == old || (super::get::is_empty(new) && super::get::is_empty(old));
    if !same {
        let shown = if new.is_null() && old.is_string() && !key.contains("imestamp") {
            &Value::from("")
        } else {
            new
        };
        errors.push(FieldError::invalid(field, shown, "field is immutable"));
    }
}
