//! Rules on changed statuses.

use serde_json::Value;

use super::get::Get;
use super::rules::not_negative;
use super::{Context, node, pod};
use crate::field_error::FieldError;

/// Rules on a changed status, metadata aside.
pub(super) fn validate_update(context: &Context<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (context.group, context.kind) {
        ("", "Pod") => return pod::validate_status_update(object, old),
        ("", "Node") => return node::validate_update(object, old),
        ("", "Service") => {
            let used = !object.list("status.loadBalancer.ingress").is_empty();
            if used && object.text("spec.type") != "LoadBalancer" {
                let detail = "may only be used when `spec.type` is 'LoadBalancer'";
                errors.push(FieldError::forbidden("status.loadBalancer.ingress", detail));
            }
        }
        ("", "Namespace") => namespace(&mut errors, object),
        ("apps", "Deployment") => {
            counts(
                &mut errors,
                object,
                &[
                    "observedGeneration",
                    "replicas",
                    "updatedReplicas",
                    "readyReplicas",
                    "availableReplicas",
                    "unavailableReplicas",
                    "terminatingReplicas",
                    "collisionCount",
                ],
            );
            bounded(
                &mut errors,
                object,
                &["updatedReplicas", "readyReplicas", "availableReplicas"],
                "readyReplicas",
            );
        }
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            counts(
                &mut errors,
                object,
                &[
                    "replicas",
                    "fullyLabeledReplicas",
                    "readyReplicas",
                    "availableReplicas",
                    "observedGeneration",
                ],
            );
            bounded(
                &mut errors,
                object,
                &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
                "readyReplicas",
            );
        }
        ("apps", "StatefulSet") => {
            counts(
                &mut errors,
                object,
                &[
                    "replicas",
                    "readyReplicas",
                    "currentReplicas",
                    "updatedReplicas",
                    "availableReplicas",
                    "observedGeneration",
                    "collisionCount",
                ],
            );
            bounded(
                &mut errors,
                object,
                &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
                "status.readyReplicas",
            );
        }
        ("apps", "DaemonSet") => counts(
            &mut errors,
            object,
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
            ],
        ),
        ("policy", "PodDisruptionBudget") => counts(
            &mut errors,
            object,
            &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"],
        ),
        _ => {}
    }
    errors
}

fn namespace(errors: &mut Vec<FieldError>, object: &Value) {
    let (expected, when) = if object.has("metadata.deletionTimestamp") {
        ("Terminating", "is not empty")
    } else {
        ("Active", "is empty")
    };
    let phase = object.at("status.phase");
    if phase != expected {
        let detail = format!("may only be '{expected}' if `deletionTimestamp` {when}");
        errors.push(FieldError::invalid("status.Phase", phase, detail));
    }
}

fn counts(errors: &mut Vec<FieldError>, object: &Value, keys: &[&str]) {
    for key in keys {
        not_negative(errors, format!("status.{key}"), object.at("status").at(key));
    }
}

/// No count of replicas is above their number, and no more are available than ready.
fn bounded(errors: &mut Vec<FieldError>, object: &Value, keys: &[&str], ready: &str) {
    let count = |key: &str| object.at("status").number(key).unwrap_or_default();
    for key in keys {
        if count(key) > count("replicas") {
            let value = Value::from(count(key));
            let detail = "cannot be greater than status.replicas";
            errors.push(FieldError::invalid(format!("status.{key}"), &value, detail));
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let value = Value::from(count("availableReplicas"));
        let detail = format!("cannot be greater than {ready}");
        errors.push(FieldError::invalid("status.availableReplicas", &value, detail));
    }
}
