//! What may be written into a pod's status.

use serde_json::Value;

use super::super::get::Get;
use super::super::names::{check, dns_subdomain, qualified_name};
use super::super::rules::{ip_address, unchanged};
use crate::field_error::FieldError;

/// Rules on a changed status, metadata aside.
pub(in crate::kinds) fn validate_status_update(pod: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (status, before) = (pod.at("status"), old.at("status"));
    for (index, condition) in status.list("conditions").iter().enumerate() {
        let kind = condition.text("type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            check(&mut errors, format!("status.conditions[{index}].Type"), kind, qualified_name);
        }
    }
    nominated_node(&mut errors, pod, old);
    unchanged(&mut errors, "status.qosClass", status.at("qosClass"), before.at("qosClass"));
    for list in ["containerStatuses", "initContainerStatuses"] {
        restarts(&mut errors, list, pod, old);
    }
    for (index, address) in status.list("podIPs").iter().enumerate() {
        ip_address(&mut errors, format!("status.podIPs[{index}]"), address.text("ip"));
    }
    for (index, address) in status.list("hostIPs").iter().enumerate() {
        ip_address(&mut errors, format!("status.hostIPs[{index}]"), address.text("ip"));
    }
    errors
}

fn nominated_node(errors: &mut Vec<FieldError>, pod: &Value, old: &Value) {
    const FIELD: &str = "status.nominatedNodeName";
    let (new, before) = (pod.text(FIELD), old.text(FIELD));
    if new == before || new.is_empty() {
        return;
    }
    check(errors, FIELD, new, dns_subdomain);
    if !old.text("spec.nodeName").is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(FIELD, detail));
    }
}

/// A container that ended for good may not run again.
fn restarts(errors: &mut Vec<FieldError>, list: &str, pod: &Value, old: &Value) {
    let specs = if list == "containerStatuses" { "containers" } else { "initContainers" };
    for (index, before) in old.at("status").list(list).iter().enumerate() {
        let Some(code) = before
            .number("state.terminated.exitCode")
            .or_else(|| before.has("state.terminated").then_some(0))
        else {
            continue;
        };
        let name = before.text("name");
        let Some(now) = pod.at("status").list(list).iter().find(|status| status.text("name") == name) else {
            continue;
        };
        let container = old.at("spec").list(specs).iter().find(|container| container.text("name") == name);
        let own_policy = container.map(|container| container.text("restartPolicy")).unwrap_or_default();
        let pod_policy = old.text("spec.restartPolicy");
        let policy = if own_policy.is_empty() { pod_policy } else { own_policy };
        // Init containers of pods that always restart do so only after a failure.
        let policy = if specs == "initContainers" && own_policy.is_empty() && policy == "Always" {
            "OnFailure"
        } else {
            policy
        };
        let may_restart = policy == "Always" || (policy == "OnFailure" && code != 0);
        if !now.has("state.terminated") && !may_restart {
            let detail = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(format!("status.{list}[{index}].state"), detail));
        }
    }
}
