//! What the API server adds to pods: requests, tolerations, priorities, conditions and quality of service.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use units::Quantity;

use super::Context;
use super::get::{Get, child, is_empty, put, set_empty, set_missing};

mod containers;
mod handlers;
mod requests;
mod scheduling;
mod security;
mod status;
mod update;
mod validate;
mod volumes;

pub(super) use requests::resource_amount;
pub(super) use scheduling::{node_selector, taint_effect};
pub(super) use status::validate_status_update;
pub(super) use update::difference;
pub(super) use update::{validate_ephemeral_containers_update, validate_update};
pub(super) use validate::template;
pub(super) use validate::validate_create;

/// How long a pod stays on a node that is gone, in seconds.
const DEFAULT_TOLERATION_SECONDS: i64 = 300;

/// Amounts of the resources that decide about quality of service.
fn quality_amounts<'a>(lists: impl Iterator<Item = &'a Value>) -> BTreeMap<&'a str, i128> {
    let mut sum = BTreeMap::new();
    for (name, value) in lists.filter_map(Value::as_object).flatten() {
        let nanos = value.as_str().and_then(|text| text.parse::<Quantity>().ok()).map_or(0, Quantity::nanos);
        if matches!(name.as_str(), "cpu" | "memory") && nanos > 0 {
            *sum.entry(name.as_str()).or_default() += nanos;
        }
    }
    sum
}

/// QoS class of a pod.
pub(super) fn qos_class(pod: &Value) -> &'static str {
    let holders: Vec<&Value> = if pod.has("spec.resources") {
        vec![pod.at("spec.resources")]
    } else {
        let containers = pod.list("spec.containers").iter().chain(pod.list("spec.initContainers"));
        containers.map(|container| container.at("resources")).collect()
    };
    let requests = quality_amounts(holders.iter().map(|resources| resources.at("requests")));
    let limits = quality_amounts(holders.iter().map(|resources| resources.at("limits")));
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let all_limited =
        holders.iter().all(|resources| quality_amounts(std::iter::once(resources.at("limits"))).len() == 2);
    if all_limited && requests == limits { "Guaranteed" } else { "Burstable" }
}

/// Requests of the pod as a whole that follow from its limits.
pub(super) fn fill_pod_level_resources(spec: &mut Map<String, Value>) {
    let limits = spec.get("resources").map(|resources| resources.at("limits").clone()).unwrap_or_default();
    if is_empty(&limits) {
        return;
    }
    let of_containers = requests::of_containers(spec);
    let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) else { return };
    let Some(requests) = child(resources, "requests") else { return };
    let supported = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    for (name, amount) in of_containers {
        if supported(&name) && !name.starts_with("hugepages-") {
            requests.entry(name).or_insert(amount);
        }
    }
    for (name, limit) in limits.as_object().into_iter().flatten() {
        if supported(name) {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
}

/// Tolerations of nodes that just went away, unless the pod has its own.
pub(super) fn tolerate_lost_nodes(pod: &mut Value) {
    let Some(spec) = pod.as_object_mut().and_then(|map| child(map, "spec")) else { return };
    let tolerations = spec.entry("tolerations").or_insert(Value::Null);
    let tolerated = |list: &Value, key: &str| {
        list.as_array().into_iter().flatten().any(|one| {
            let this_key = one.text("key") == key || one.text("key").is_empty();
            this_key && matches!(one.text("effect"), "NoExecute" | "")
        })
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !tolerated(tolerations, key) {
            let toleration = json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": DEFAULT_TOLERATION_SECONDS,
            });
            match tolerations {
                Value::Array(list) => list.push(toleration),
                Value::Null => *tolerations = json!([toleration]),
                _ => {}
            }
        }
    }
}

/// What admission and the pod's own strategy set on creation.
pub(super) fn prepare_create(context: &Context<'_>, pod: &mut Value) {
    let qos = qos_class(pod);
    let mut status = json!({"phase": "Pending", "qosClass": qos});
    if !pod.list("spec.schedulingGates").is_empty() {
        let conditions = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": context.now,
        }]);
        put(&mut status, "conditions", conditions);
    }
    put(pod, "status", status);
    merge_label_keys(pod);
    if let Some(spec) = pod.as_object_mut().and_then(|map| child(map, "spec")) {
        set_missing(spec, "priority", 0);
        set_missing(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
}

/// Keys whose values come from the pod's own labels become expressions of the selector.
fn merge_label_keys(pod: &mut Value) {
    let labels = pod.at("metadata.labels").clone();
    let Some(spec) = pod.get_mut("spec") else { return };
    for constraint in
        spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut).into_iter().flatten()
    {
        merge(constraint, &labels);
    }
    let Some(affinity) = spec.get_mut("affinity") else { return };
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(side) = affinity.get_mut(side) else { continue };
        for (list, weighted) in [
            ("preferredDuringSchedulingIgnoredDuringExecution", true),
            ("requiredDuringSchedulingIgnoredDuringExecution", false),
        ] {
            for term in side.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                let term = if weighted { term.get_mut("podAffinityTerm") } else { Some(term) };
                if let Some(term) = term {
                    merge(term, &labels);
                }
            }
        }
    }
}

fn merge(term: &mut Value, labels: &Value) {
    let mut added = Vec::new();
    for (list, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.list(list).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                added.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut)
        && !added.is_empty()
    {
        let expressions = selector.entry("matchExpressions").or_insert(Value::Null);
        match expressions {
            Value::Array(list) => list.extend(added),
            _ => *expressions = Value::Array(added),
        }
    }
}

/// A pod's priority and preemption policy from its class; the message says why it is refused.
///
/// `class` is the class the pod names or, when it names none, the cluster's default, if there is one.
pub(super) fn admit_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let named = pod.text("spec.priorityClassName").to_owned();
    if !named.is_empty() && class.is_none() {
        return Err(format!("no PriorityClass with name {named} was found"));
    }
    let name = class.map(|class| class.text("metadata.name").to_owned()).unwrap_or_default();
    let value = class.and_then(|class| class.number("value")).unwrap_or_default();
    let policy = class.map(|class| class.text("preemptionPolicy")).filter(|policy| !policy.is_empty());
    let policy = policy.unwrap_or("PreemptLowerPriority");
    if let Some(given) = pod.number("spec.priority")
        && given != value
    {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {value} from the given PriorityClass name"
        ));
    }
    let given = pod.text("spec.preemptionPolicy");
    if !given.is_empty() && given != policy {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ));
    }
    if let Some(spec) = pod.as_object_mut().and_then(|map| child(map, "spec")) {
        if !name.is_empty() {
            set_empty(spec, "priorityClassName", name);
        }
        spec.insert("priority".to_owned(), json!(value));
        spec.insert("preemptionPolicy".to_owned(), json!(policy));
    }
    Ok(())
}

/// Priorities that clients leave out stay.
pub(super) fn prepare_update(pod: &mut Value, old: &Value) {
    let Some(spec) = pod.as_object_mut().and_then(|map| child(map, "spec")) else { return };
    for key in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.at("spec").get(key) {
            set_missing(spec, key, value.clone());
        }
    }
}

/// What a new status does not say about quality and generations stays as it was.
pub(super) fn prepare_status_update(pod: &mut Value, old: &Value) {
    let Some(status) = pod.as_object_mut().and_then(|map| child(map, "status")) else { return };
    for key in ["qosClass", "observedGeneration"] {
        if let Some(value) = old.at("status").get(key) {
            set_empty(status, key, value.clone());
        }
    }
    let mut before: Vec<&Value> = old.list("status.conditions").iter().collect();
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let same = before.iter().position(|old| old.at("type") == condition.at("type"));
        let generation = same.map(|index| before.remove(index).at("observedGeneration").clone());
        if let (Some(condition), Some(generation)) = (condition.as_object_mut(), generation)
            && !generation.is_null()
        {
            set_empty(condition, "observedGeneration", generation);
        }
    }
}
