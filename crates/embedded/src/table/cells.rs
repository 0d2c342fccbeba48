//! The cells of kinds other than pods.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::batch::{cron_job, job};
use super::event::{Names, event};
use super::network::{endpoint_slice, endpoints, networking, service};
use super::storage::{claim, storage, volume};
use super::{age_at, workloads};
use crate::kinds::Get;

/// The cells of one object, one for each column.
pub(super) fn cells(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = json!(object.text("metadata.name"));
    let age = json!(age_at(object.at("metadata.creationTimestamp"), now));
    let named = |rest: Vec<Value>| {
        let mut cells = vec![name.clone()];
        cells.extend(rest);
        cells
    };
    let text = |path: &str| json!(object.text(path));
    let count = |path: &str| json!(object.number(path).unwrap_or_default());
    match (group, kind) {
        ("", "Node") => node(object, &age),
        ("", "Namespace") => named(vec![text("status.phase"), age]),
        ("", "ConfigMap") => {
            let keys = object.entries("data").count() + object.entries("binaryData").count();
            named(vec![json!(keys), age])
        }
        ("", "Secret") => named(vec![text("type"), json!(object.entries("data").count()), age]),
        ("", "ServiceAccount") | ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => {
            named(vec![age])
        }
        ("", "Service") => service(object, &age),
        ("", "Endpoints") => named(vec![json!(endpoints(object)), age]),
        ("", "Event") => event(object, now, &Names::OLD),
        ("events.k8s.io", "Event") => event(object, now, &Names::NEW),
        ("", "PersistentVolume") => volume(object, &age),
        ("", "PersistentVolumeClaim") => claim(object, &age),
        ("", "ResourceQuota") => {
            let (requests, limits) = quota(object);
            named(vec![json!(requests), json!(limits), age])
        }
        ("apps", _) | ("", "PodTemplate" | "ReplicationController") => workloads::cells(kind, object, &age),
        ("batch", "Job") => job(object, now, &age),
        ("batch", "CronJob") => cron_job(object, now, &age),
        ("policy", "PodDisruptionBudget") => {
            let bound = |path: &str| match object.at(path) {
                Value::Null => json!("N/A"),
                Value::String(text) => json!(text),
                number => json!(number.to_string()),
            };
            let allowed = count("status.disruptionsAllowed");
            named(vec![bound("spec.minAvailable"), bound("spec.maxUnavailable"), allowed, age])
        }
        ("coordination.k8s.io", "Lease") => named(vec![text("spec.holderIdentity"), age]),
        ("scheduling.k8s.io", "PriorityClass") => {
            named(vec![count("value"), json!(object.flag("globalDefault")), age, text("preemptionPolicy")])
        }
        ("node.k8s.io", "RuntimeClass") => named(vec![text("handler"), age]),
        ("storage.k8s.io", _) => storage(kind, object, &age),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object, &age),
        ("discovery.k8s.io", "EndpointSlice") => endpoint_slice(object, &age),
        ("networking.k8s.io", _) => networking(kind, object, &age),
        ("resource.k8s.io", "ResourceClaim") => named(vec![json!(claim_state(object)), age]),
        ("resource.k8s.io", "ResourceSlice") => {
            named(vec![text("spec.nodeName"), text("spec.driver"), text("spec.pool.name"), age])
        }
        _ => unknown(object),
    }
}

/// Kinds without cells of their own.
pub(super) fn unknown(object: &Value) -> Vec<Value> {
    vec![json!(object.text("metadata.name")), object.at("metadata.creationTimestamp").clone()]
}

pub(super) fn or(text: &str, other: &str) -> Value {
    Value::from(if text.is_empty() { other } else { text })
}

fn node(node: &Value, age: &Value) -> Vec<Value> {
    let condition =
        node.list("status.conditions").iter().rfind(|condition| condition.text("type") == "Ready");
    let mut status = match condition.map(|condition| condition.text("status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node.flag("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let roles: std::collections::BTreeSet<&str> = node
        .entries("metadata.labels")
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    let address = |kind: &str| {
        let address = node.list("status.addresses").iter().find(|address| address.text("type") == kind);
        or(address.map(|address| address.text("address")).unwrap_or_default(), "<none>")
    };
    let info = |key: &str| node.at("status.nodeInfo").text(key);
    let mut kernel = or(info("kernelVersion"), "<unknown>");
    if !info("architecture").is_empty() {
        kernel = json!(format!("{} ({})", kernel.as_str().unwrap_or_default(), info("architecture")));
    }
    vec![
        json!(node.text("metadata.name")),
        json!(status),
        or(&roles.join(","), "<none>"),
        age.clone(),
        json!(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        or(info("osImage"), "<unknown>"),
        kernel,
        or(info("containerRuntimeVersion"), "<unknown>"),
    ]
}

pub(super) fn containers(template: &Value) -> (Value, Value) {
    let list = |key: &str| {
        let all: Vec<&str> =
            template.list("spec.containers").iter().map(|container| container.text(key)).collect();
        json!(all.join(","))
    };
    (list("name"), list("image"))
}

/// Labels in one word.
pub(super) fn labels(labels: &Value) -> String {
    let all: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if all.is_empty() { "<none>".to_owned() } else { all.join(",") }
}

pub(super) fn selector(selector: &Value) -> String {
    let text = bare_selector(selector);
    if text.is_empty() { "<none>".to_owned() } else { text }
}

/// A selector as it is written in requests, in the order of its keys.
pub(super) fn bare_selector(selector: &Value) -> String {
    let mut all: Vec<(String, String)> = selector
        .entries("matchLabels")
        .map(|(key, value)| (key.to_owned(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in selector.list("matchExpressions") {
        let key = expression.text("key");
        let mut values: Vec<&str> = expression.list("values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression.text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        all.push((key.to_owned(), text));
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

fn quota(quota: &Value) -> (String, String) {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in quota.entries("status.hard") {
        let used = quota.at("status.used").get(name).and_then(Value::as_str).unwrap_or("0");
        let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
        if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    (requests.join(", "), limits.join(", "))
}

pub(super) fn is_default(object: &Value, keys: &[&str]) -> bool {
    keys.iter().any(|key| object.at("metadata.annotations").get(*key).is_some_and(|value| value == "true"))
}

fn binding(binding: &Value, age: &Value) -> Vec<Value> {
    let role = format!("{}/{}", binding.text("roleRef.kind"), binding.text("roleRef.name"));
    let subjects = |kind: &str| {
        let all: Vec<String> = binding
            .list("subjects")
            .iter()
            .filter(|subject| subject.text("kind") == kind)
            .map(|subject| match kind {
                "ServiceAccount" => format!("{}/{}", subject.text("namespace"), subject.text("name")),
                _ => subject.text("name").to_owned(),
            })
            .collect();
        json!(all.join(", "))
    };
    vec![
        json!(binding.text("metadata.name")),
        json!(role),
        age.clone(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn claim_state(claim: &Value) -> String {
    let deleted = claim.has("metadata.deletionTimestamp");
    let mut states = Vec::new();
    if deleted {
        states.push("deleted");
    }
    if claim.has("status.allocation") {
        states.push("allocated");
        if !claim.list("status.reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !deleted {
        states.push("pending");
    }
    states.join(",")
}
