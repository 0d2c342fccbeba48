//! The subresources of pods: binding and eviction.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::body::DeleteOptions;
use crate::delete;
use crate::refusal::{Cause, Details, Refusal, Target};
use crate::resources::Resource;
use crate::selector::{self, Selection};
use crate::state::State;
use crate::store::{Key, Object};

const PODS: Target<'static> = Target { group: "", plural: "pods" };

/// The answer to a request that did what it should.
pub(crate) fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// Puts a pod on a node.
pub(crate) fn bind(
    state: &mut State,
    resource: &Arc<Resource>,
    key: &Key,
    binding: &Value,
) -> Result<Value, Refusal> {
    let not_found = || Refusal::not_found(PODS, &key.name);
    let mut pod = state.store.get(resource.collection, key).ok_or_else(not_found)?.value(resource);
    let name = &*key.name;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    let target_kind = binding["target"]["kind"].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(target_kind, "" | "Node") {
        errors.push(crate::field_error::FieldError::not_supported(
            "target.kind",
            &Value::from(target_kind),
            &["Node", "<empty>"],
        ));
    }
    if node.is_empty() {
        errors.push(crate::field_error::FieldError::required("target.name", ""));
    }
    if !errors.is_empty() {
        // The real server does not wrap these.
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let message = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    let uid = binding["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && pod["metadata"]["uid"] != uid {
        let is = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {is}");
        return Err(Refusal::conflict(Target { group: "", plural: "pods/binding" }, name, &why));
    }
    let conflict = |why: &str| Refusal::conflict(Target { group: "", plural: "pods/binding" }, name, why);
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Err(conflict(&format!("pod {name} is being deleted, cannot be assigned to a host")));
    }
    let bound = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if !bound.is_empty() {
        return Err(conflict(&format!("pod {name} is already assigned to node \"{bound}\"")));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return Err(conflict(&format!("pod {name} has non-empty .spec.schedulingGates")));
    }
    pod["spec"]["nodeName"] = Value::from(node);
    for (key, value) in binding["metadata"]["annotations"].as_object().into_iter().flatten() {
        pod["metadata"]["annotations"][key] = value.clone();
    }
    let now = state.now();
    set_scheduled(&mut pod, &now);
    if let Some(status) = pod["status"].as_object_mut() {
        status.remove("nominatedNodeName");
    }
    state.put(resource, &mut pod);
    Ok(success())
}

fn set_scheduled(pod: &mut Value, now: &str) {
    if !pod["status"].is_object() {
        pod["status"] = Value::Object(Map::new());
    }
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "PodScheduled");
    conditions.push(json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    }));
    pod["status"]["conditions"] = Value::from(conditions);
}

/// Deletes a pod if the budgets that select it allow it.
pub(crate) fn evict(
    state: &mut State,
    resource: &Arc<Resource>,
    key: &Key,
    eviction: &Value,
    dry_run: bool,
) -> Result<Value, Refusal> {
    let old = state
        .store
        .get(resource.collection, key)
        .cloned()
        .ok_or_else(|| Refusal::not_found(PODS, &key.name))?;
    let stated = eviction["metadata"]["name"].as_str().unwrap_or_default();
    if !stated.is_empty() && stated != &*key.name {
        return Err(Refusal::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::from_json(&eviction["deleteOptions"]);
    options.dry_run |= dry_run;
    let pod = old.value(resource);
    if !needs_no_budget(&pod) {
        take_from_budget(state, key, &pod, options.dry_run)?;
    }
    let old = if options.dry_run { old } else { mark_evicted(state, resource, pod) };
    delete::start(state, resource, &old, &options)?;
    Ok(success())
}

/// Notes on the pod why it goes, for the controllers that replace it.
fn mark_evicted(state: &mut State, resource: &Arc<Resource>, mut pod: Value) -> Arc<Object> {
    let now = state.now();
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "DisruptionTarget");
    conditions.push(json!({
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    }));
    pod["status"]["conditions"] = Value::from(conditions);
    state.put(resource, &mut pod)
}

/// Pods that have ended, never started, or are going anyway cost nothing.
fn needs_no_budget(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"))
        || !pod["metadata"]["deletionTimestamp"].is_null()
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn take_from_budget(state: &mut State, key: &Key, pod: &Value, dry_run: bool) -> Result<(), Refusal> {
    let Some(budgets) = state.registry.get("policy", "v1", "poddisruptionbudgets") else { return Ok(()) };
    let selection = Selection { namespace: Some(key.namespace.clone()), ..Selection::default() };
    let labels = &pod["metadata"]["labels"];
    let selects = |budget: &Value| {
        selector::from_label_selector(&budget["spec"]["selector"])
            .is_some_and(|tests| tests.iter().all(|test| test.matches(labels[test.key()].as_str())))
    };
    let mut matching: Vec<Value> = state
        .store
        .collection(budgets.collection)
        .objects()
        .values()
        .filter(|object| selection.matches(object))
        .map(|object| object.value(&budgets))
        .filter(selects)
        .collect();
    let Some(mut budget) = matching.pop() else { return Ok(()) };
    if !matching.is_empty() {
        return Err(Refusal::internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    if !is_ready(pod) && unready_may_go(&budget) {
        return Ok(());
    }
    check_budget(&budget)?;
    if dry_run {
        return Ok(());
    }
    let now = state.now();
    let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or_default();
    budget["status"]["disruptionsAllowed"] = Value::from(allowed - 1);
    // Until the controller has seen the deletion, the pod counts as disrupted.
    budget["status"]["disruptedPods"][&*key.name] = Value::from(now);
    state.put(&budgets, &mut budget);
    Ok(())
}

/// Whether a pod that is not ready may go without counting.
fn unready_may_go(budget: &Value) -> bool {
    let status = &budget["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    match budget["spec"]["unhealthyPodEvictionPolicy"].as_str() {
        Some("AlwaysAllow") => true,
        _ => number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0,
    }
}

fn check_budget(budget: &Value) -> Result<(), Refusal> {
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    let status = &budget["status"];
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let refuse = |message: &str, cause: String, retry: Option<u32>| {
        let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        refusal.details = Some(Box::new(Details {
            causes: vec![Cause {
                reason: "DisruptionBudget".to_owned(),
                message: cause,
                field: String::new(),
            }],
            retry_after_seconds: retry,
            ..Details::default()
        }));
        Err(refusal)
    };
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    if number(&status["observedGeneration"]) < number(&budget["metadata"]["generation"]) {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return refuse(message, cause, Some(10));
    }
    let allowed = number(&status["disruptionsAllowed"]);
    if allowed < 0 {
        return Err(Refusal::forbidden(
            Target { group: "policy", plural: "poddisruptionbudgets" },
            name,
            "pdb disruptions allowed is negative",
        ));
    }
    if allowed == 0 {
        let cause = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number(&status["desiredHealthy"]),
            number(&status["currentHealthy"])
        );
        return refuse(message, cause, None);
    }
    Ok(())
}
