//! Deleting objects: grace, finalizers, and what is left for later.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::body::DeleteOptions;
use crate::chores::{self, CUSTOM_CLEANUP};
use crate::refusal::Refusal;
use crate::resources::Resource;
use crate::state::State;
use crate::store::{Key, Object};
use crate::time;
use crate::write::{deleted_status, is_finished};

/// The finalizer that waits for dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that parts dependents from their owner.
pub(crate) const ORPHAN: &str = "orphan";
/// Namespaces that every cluster needs.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

/// What is left of the object.
pub(crate) enum Deleted {
    /// It waits: this is its state.
    Waits(Value),
    /// It is gone: this was its state.
    Gone(Value),
}

/// Deletes one object and returns what the client is told.
pub(crate) fn delete(
    state: &mut State,
    resource: &Arc<Resource>,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Value, Refusal> {
    let old = state
        .store
        .get(resource.collection, key)
        .cloned()
        .ok_or_else(|| Refusal::not_found(resource.target(), &key.name))?;
    match start(state, resource, &old, options)? {
        Deleted::Waits(object) => Ok(object),
        Deleted::Gone(object) if returns_object(resource) => Ok(object),
        Deleted::Gone(_) => Ok(deleted_status(resource, &old)),
    }
}

/// Kinds whose deletion answers with the object even when it is gone at once.
fn returns_object(resource: &Resource) -> bool {
    resource.custom.is_none()
        && matches!(
            (resource.group.as_str(), resource.plural.as_str()),
            (
                "",
                "pods"
                    | "podtemplates"
                    | "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "resourcequotas"
                    | "services"
                    | "serviceaccounts"
            ) | ("resource.k8s.io", _)
                | (
                    "storage.k8s.io",
                    "csidrivers"
                        | "csinodes"
                        | "storageclasses"
                        | "volumeattachments"
                        | "volumeattributesclasses"
                )
        )
}

/// Begins or ends a deletion.
pub(crate) fn start(
    state: &mut State,
    resource: &Arc<Resource>,
    old: &Arc<Object>,
    options: &DeleteOptions,
) -> Result<Deleted, Refusal> {
    check_preconditions(resource, old, options)?;
    let mut object = old.value(resource);
    if resource.is("", "Namespace") && PROTECTED.contains(&&*old.key.name) {
        return Err(Refusal::forbidden(
            resource.target(),
            &old.key.name,
            "this namespace may not be deleted",
        ));
    }
    let grace = grace_period(resource, &object, options);
    let mut before = object.clone();
    if resource.is("", "Pod") && !shorten(state, &mut object, grace) {
        return Ok(Deleted::Waits(object));
    }
    if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        if !old.deleting {
            keep_until_empty(&mut object, &state.now());
        }
    } else {
        set_propagation(resource, &mut object, options);
        if grace == 0 || old.deleting {
            mark(state, &mut object, grace);
        }
    }
    if resource.is("", "Namespace") {
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("deletionGracePeriodSeconds"));
    }
    if resource.is("", "Namespace") {
        object["status"]["phase"] = Value::from("Terminating");
    }
    if is_finished(&object) {
        let mut shown = before.clone();
        if resource.is("", "Pod") {
            // A pod's deletion is noted before it is done, even when both happen at once.
            shown = object;
            if !options.dry_run && !old.deleting {
                state.put(resource, &mut shown);
            }
            before.clone_from(&shown);
        }
        if !options.dry_run {
            state.remove(resource, &mut before);
            shown["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        }
        return Ok(Deleted::Gone(shown));
    }
    if object != before && !options.dry_run {
        state.put(resource, &mut object);
    }
    Ok(Deleted::Waits(object))
}

fn check_preconditions(resource: &Resource, old: &Object, options: &DeleteOptions) -> Result<(), Refusal> {
    let uid =
        options.uid.as_deref().filter(|uid| **uid != *old.uid).map(|uid| ("UID", uid, old.uid.to_string()));
    let revision = old.revision.to_string();
    let version = options.resource_version.as_deref().filter(|version| **version != *revision);
    let Some((what, stated, is)) =
        uid.or(version.map(|version| ("ResourceVersion", version, revision.clone())))
    else {
        return Ok(());
    };
    // Kinds that are deleted in their own way say it in their own way.
    if resource.is("", "Namespace") || resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        let why =
            format!("Precondition failed: {what} in precondition: {stated}, {what} in object meta: {is}");
        return Err(Refusal::conflict(resource.target(), &old.key.name, &why));
    }
    let end = if what == "UID" { "deleted and then recreated" } else { "modified" };
    let why = format!(
        "the {what} in the precondition ({stated}) does not match the {what} in record ({is}). The object might \
         have been {end}"
    );
    Err(Refusal::conflict(resource.kind_target(), &old.key.name, &why))
}

/// How long the object may take; only pods that run somewhere get time.
fn grace_period(resource: &Resource, object: &Value, options: &DeleteOptions) -> i64 {
    if !resource.is("", "Pod") {
        return 0;
    }
    let spec = &object["spec"];
    let unscheduled = spec["nodeName"].as_str().unwrap_or_default().is_empty();
    let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if unscheduled || ended {
        return 0;
    }
    let wanted = options.grace.or_else(|| spec["terminationGracePeriodSeconds"].as_i64());
    match wanted.unwrap_or(30) {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// Gives a pod its end; false when an earlier deletion already asks for as much.
fn shorten(state: &State, object: &mut Value, grace: i64) -> bool {
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    let left = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    if deleting && grace >= left && left != 0 {
        return false;
    }
    if grace > 0 {
        mark(state, object, grace);
    }
    true
}

/// Writes when the object is to be gone.
fn mark(state: &State, object: &mut Value, grace: i64) {
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    let now = state.clock.now();
    let end = now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(now);
    let metadata = &mut object["metadata"];
    if !deleting || grace > 0 {
        metadata["deletionTimestamp"] = Value::from(time::seconds(end));
    }
    metadata["deletionGracePeriodSeconds"] = Value::from(grace);
    if !deleting && let Some(generation) = metadata["generation"].as_i64() {
        metadata["generation"] = Value::from(generation + 1);
    }
}

/// Finalizers that carry out the propagation policy.
fn set_propagation(resource: &Resource, object: &mut Value, options: &DeleteOptions) {
    let metadata = &mut object["metadata"];
    let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    let decided = finalizers.iter().any(|finalizer| *finalizer == FOREGROUND || *finalizer == ORPHAN);
    // The oldest kinds leave their pods alone, as they did before there were policies.
    let orphans = resource.is("batch", "Job") || resource.is("", "ReplicationController");
    let wanted = match options.propagation.as_deref() {
        Some("Foreground") => Some(FOREGROUND),
        Some("Orphan") => Some(ORPHAN),
        Some("Background") => None,
        _ if orphans && !decided => Some(ORPHAN),
        _ => return,
    };
    finalizers.retain(|finalizer| *finalizer != FOREGROUND && *finalizer != ORPHAN);
    finalizers.extend(wanted.map(Value::from));
    if finalizers.is_empty() {
        metadata.as_object_mut().map(|metadata| metadata.remove("finalizers"));
    } else {
        metadata["finalizers"] = json!(finalizers);
    }
}

/// A definition stays until its objects are gone.
fn keep_until_empty(definition: &mut Value, now: &str) {
    let metadata = &mut definition["metadata"];
    metadata["deletionTimestamp"] = Value::from(now);
    let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|one| one == CUSTOM_CLEANUP) {
        finalizers.push(Value::from(CUSTOM_CLEANUP));
    }
    metadata["finalizers"] = json!(finalizers);
    chores::set_terminating(
        definition,
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        now,
    );
}
