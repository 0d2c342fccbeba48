//! What stays of an object when it is changed.

use serde_json::Value;

use super::SERVER_FIELDS;
use crate::kinds::take_over;

/// What only the server writes stays as it is.
pub(super) fn keep_server_fields(before: &Value, object: &mut Value) {
    for field in ["apiVersion", "kind"] {
        take_over(object, before, field);
    }
    let metadata = &mut object["metadata"];
    for field in SERVER_FIELDS.iter().chain(&["resourceVersion", "generation"]) {
        take_over(metadata, &before["metadata"], field);
    }
    metadata.as_object_mut().map(|metadata| metadata.remove("selfLink"));
}

/// Puts back what a write of a custom object may not change, and counts the generation.
pub(super) fn prepare_custom_update(
    has_status: bool,
    writes_status: bool,
    before: &Value,
    object: &mut Value,
) {
    if writes_status {
        // Only the status changes.
        let status = object.get("status").cloned();
        *object = before.clone();
        match status {
            Some(status) => object["status"] = status,
            None => {
                object.as_object_mut().map(|map| map.remove("status"));
            }
        }
        return;
    }
    if has_status && let Some(map) = object.as_object_mut() {
        match before.get("status") {
            Some(status) => map.insert("status".to_owned(), status.clone()),
            None => map.remove("status"),
        };
    }
    let without = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.remove("metadata");
            if has_status {
                map.remove("status");
            }
        }
        value
    };
    if without(before) != without(object) {
        let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
        object["metadata"]["generation"] = Value::from(generation + 1);
    }
}
