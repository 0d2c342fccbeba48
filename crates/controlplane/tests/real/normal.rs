//! What users see of objects, without what differs from run to run: times, random names, hashes.

use std::collections::BTreeMap;

use serde_json::Value;

/// Fields that differ between any two runs.
const VOLATILE: [&str; 21] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "observedGeneration",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastHeartbeatTime",
    "startTime",
    "startedAt",
    "finishedAt",
    "completionTime",
    "podIP",
    "podIPs",
    "nodeName",
    "kubectl.kubernetes.io/last-applied-configuration",
    "hostIP",
    "hostIPs",
    // A label that the server copies from the node.
    "topology.kubernetes.io/zone",
];

/// The objects in a form that can be compared, in a fixed order.
pub(crate) fn normal(objects: &[Value]) -> Vec<Value> {
    let mut names = BTreeMap::new();
    for object in objects {
        hashes(object, &mut names);
    }
    let mut all: Vec<Value> = objects.iter().map(|object| clean(object, &names)).collect();
    all.sort_by_key(|object| {
        (object["kind"].to_string(), object["metadata"]["name"].to_string(), object.to_string())
    });
    all
}

/// Hashes by the image of the template that they stand for, and names by what made them.
fn hashes(object: &Value, names: &mut BTreeMap<String, String>) {
    let meta = &object["metadata"];
    let template = match object["kind"].as_str() {
        Some("ReplicaSet") => &object["spec"]["template"],
        Some("ControllerRevision") => &object["data"]["spec"]["template"],
        _ => return,
    };
    let image = template["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    let name = meta["name"].as_str().unwrap_or_default();
    if let Some((_, hash)) = name.rsplit_once('-') {
        names.insert(hash.to_owned(), format!("<hash of {image}>"));
    }
}

fn clean(value: &Value, names: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(fields) => {
            let generated = fields.get("generateName").and_then(Value::as_str);
            let numbered = fields
                .get("labels")
                .is_some_and(|labels| labels.get("statefulset.kubernetes.io/pod-name").is_some());
            let fields =
                fields.iter().filter(|(key, _)| !VOLATILE.contains(&key.as_str()) && !key.ends_with("-uid"));
            fields
                .map(|(key, value)| {
                    let value = match (key.as_str(), generated) {
                        ("name", Some(prefix)) if !numbered => Value::from(replace(prefix, names) + "*"),
                        ("conditions", _) => sorted(clean(value, names)),
                        _ => clean(value, names),
                    };
                    (key.clone(), value)
                })
                .filter(|(key, value)| {
                    key != "annotations" || *value != Value::Object(serde_json::Map::new())
                })
                .collect()
        }
        Value::Array(items) => items.iter().map(|item| clean(item, names)).collect(),
        Value::String(text) => Value::from(replace(text, names)),
        other => other.clone(),
    }
}

fn replace(text: &str, names: &BTreeMap<String, String>) -> String {
    names.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Array(mut items) => {
            items.sort_by_key(|item| item["type"].to_string());
            Value::Array(items)
        }
        other => other,
    }
}

/// Where two values differ, one line each.
pub(crate) fn differences(path: &str, ours: &Value, theirs: &Value, lines: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                differences(&format!("{path}.{key}"), a, b, lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{at}]"), a, b, lines);
            }
        }
        (ours, theirs) if ours != theirs => lines.push(format!("{path}: ours {ours}, theirs {theirs}")),
        _ => {}
    }
}
