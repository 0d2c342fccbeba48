//! What field selectors can ask about.

use serde_json::Value;

use super::get::Get;

/// A field's value as selectors compare it; nothing when the kind does not know the field.
pub(super) fn value(group: &str, kind: &str, object: &Value, path: &str) -> Option<String> {
    let text = |path: &str| Some(shown(object.at(path)));
    match (group, kind, path) {
        ("", "Pod", "spec.host") => text("spec.nodeName"),
        ("", "Pod", "status.podIPs") => {
            let addresses: Vec<&str> =
                object.list("status.podIPs").iter().map(|address| address.text("ip")).collect();
            Some(addresses.join(","))
        }
        ("", "Pod", "spec.hostNetwork") | ("", "Node", "spec.unschedulable") => {
            Some(object.flag(path).to_string())
        }
        ("", "ReplicationController", "status.replicas") | ("apps", "ReplicaSet", "status.replicas") => {
            Some(object.number(path).unwrap_or_default().to_string())
        }
        ("batch", "Job", "status.successful") => {
            Some(object.number("status.succeeded").unwrap_or_default().to_string())
        }
        (
            "",
            "Pod",
            "spec.nodeName"
            | "spec.restartPolicy"
            | "spec.schedulerName"
            | "spec.serviceAccountName"
            | "status.phase"
            | "status.podIP"
            | "status.nominatedNodeName",
        )
        | ("", "Namespace", "status.phase")
        | ("", "Secret", "type")
        | ("", "Service", "spec.clusterIP" | "spec.type")
        | ("resource.k8s.io", "ResourceSlice", "spec.nodeName" | "spec.driver") => text(path),
        ("" | "events.k8s.io", "Event", path) => event(group, object, path),
        _ => None,
    }
}

/// Events of both groups are the same objects under other names.
fn event(group: &str, object: &Value, path: &str) -> Option<String> {
    let new = group == "events.k8s.io";
    let (prefix, reporter) =
        if new { ("regarding.", "reportingController") } else { ("involvedObject.", "reportingComponent") };
    let source = if new { "deprecatedSource.component" } else { "source.component" };
    let known = match path {
        "reason" | "type" => true,
        _ if path == reporter => true,
        "source" if !new => {
            let component = object.text(source);
            let shown = if component.is_empty() { object.text(reporter) } else { component };
            return Some(shown.to_owned());
        }
        _ => path.strip_prefix(prefix).is_some_and(|field| {
            ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"]
                .contains(&field)
        }),
    };
    known.then(|| shown(object.at(path)))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Why a field cannot be asked about, for the refusal as a bad request.
pub(super) fn refusal(group: &str, kind: &str, path: &str) -> String {
    match (group, kind) {
        ("batch", "Job") => format!("field label {path:?} not supported for Job"),
        ("resource.k8s.io", "ResourceSlice") => {
            format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {path}")
        }
        ("", "Pod" | "Node" | "ReplicationController" | "Event" | "Namespace" | "Secret" | "Service")
        | ("events.k8s.io", "Event") => format!("field label not supported: {path}"),
        _ => {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    }
}
