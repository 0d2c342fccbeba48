//! The scale subresource: how many replicas, whatever the kind calls them.

use serde_json::{Map, Value, json};

use crate::refusal::Refusal;
use crate::resources::Resource;

/// Where a kind keeps what a Scale shows.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn paths(resource: &Resource) -> Option<Paths> {
    let split = |path: &str| -> Vec<String> {
        path.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    match &resource.custom {
        Some(custom) => custom.scale.as_ref().map(|scale| Paths {
            spec: split(&scale.spec_replicas),
            status: split(&scale.status_replicas),
            selector: scale.label_selector.as_deref().map(split),
        }),
        None => {
            Some(Paths { spec: split("spec.replicas"), status: split("status.replicas"), selector: None })
        }
    }
}

fn read<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| value.get(key))
}

/// The Scale of an object.
pub(crate) fn of(resource: &Resource, object: &Value) -> Result<Value, Refusal> {
    let paths = paths(resource).ok_or_else(Refusal::no_such_path)?;
    let metadata = &object["metadata"];
    let mut shown = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            shown.insert(field.to_owned(), value.clone());
        }
    }
    let replicas = |path: &[String]| read(object, path).and_then(Value::as_i64).unwrap_or_default();
    let mut spec = Map::new();
    if replicas(&paths.spec) != 0 {
        spec.insert("replicas".to_owned(), replicas(&paths.spec).into());
    }
    let mut status = json!({"replicas": replicas(&paths.status)});
    let selector = match (&paths.selector, &resource.custom) {
        (Some(path), _) => read(object, path).and_then(Value::as_str).map(str::to_owned),
        (None, None) => Some(selector_text(&object["spec"]["selector"])),
        (None, Some(_)) => None,
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status["selector"] = Value::from(selector);
    }
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": status,
    }))
}

/// Writes the replicas of a Scale into an object.
pub(crate) fn apply(resource: &Resource, object: &mut Value, scale: &Value) -> Result<(), Refusal> {
    let paths = paths(resource).ok_or_else(Refusal::no_such_path)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let stated = &scale["spec"]["replicas"];
    let replicas = stated.as_i64().unwrap_or_default();
    if replicas < 0 {
        let error = crate::field_error::FieldError::invalid(
            "spec.replicas",
            stated,
            "must be greater than or equal to 0",
        );
        return Err(Refusal::invalid("autoscaling", "Scale", name, &[error]));
    }
    let mut target = object;
    for key in &paths.spec {
        if !target[key].is_object() && key != &paths.spec[paths.spec.len() - 1] {
            target[key] = Value::Object(Map::new());
        }
        target = &mut target[key];
    }
    *target = Value::from(replicas);
    Ok(())
}

/// A label selector as text, as a Scale's status shows it.
fn selector_text(selector: &Value) -> String {
    let mut terms = Vec::new();
    let labels = selector.get("matchLabels").unwrap_or(selector);
    if selector.get("matchExpressions").is_none() || selector.get("matchLabels").is_some() {
        for (key, value) in labels.as_object().into_iter().flatten() {
            terms.push(format!("{key}={}", value.as_str().unwrap_or_default()));
        }
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        terms.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.sort();
    terms.join(",")
}
