//! JSON patches (RFC 6902) and merge patches (RFC 7386).

use http::StatusCode;
use json_patch::Patch;
use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// Applies a JSON patch; if one of its operations fails nothing changes.
pub fn json_patch(object: &mut Value, patch: &Value) -> Result<(), Refusal> {
    let patch: Patch = serde_json::from_value(patch.clone())
        .map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))?;
    json_patch::patch(object, &patch)
        .map_err(|error| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", error.to_string()))
}

/// Applies a merge patch: objects are merged, null removes, anything else replaces.
pub fn merge_patch(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge_patch(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
