//! Filling in what an object leaves out.

use serde_json::Value;

use super::node::{Field, Node, Others};

/// Drops nulls where none may be, then fills in defaults.
pub(super) fn apply(root: &Node, object: &mut Value) {
    drop_nulls(root, object);
    fill(root, object);
}

/// Removes nulls that are not allowed and have no default to take their place.
fn drop_nulls(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(field) = node.field(name) else { return true };
            if value.is_null() && !field.node().nullable && field.default.is_none() {
                return false;
            }
            drop_nulls(field.node(), value);
            true
        }),
        Value::Array(items) => {
            if let Some(field) = &node.items {
                for value in items {
                    drop_nulls(field.node(), value);
                }
            }
        }
        _ => {}
    }
}

fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in &node.properties {
                let Some(default) = &field.default else { continue };
                if fields.get(&**name).is_none_or(|value| is_misplaced_null(field, value)) {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(field) = node.properties.get(name.as_str()) {
                    fill(field.node(), value);
                } else if let Others::Each(field) = &node.others {
                    fill_entry(field, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(field) = &node.items {
                for value in items {
                    fill_entry(field, value);
                }
            }
        }
        _ => {}
    }
}

fn fill_entry(field: &Field, value: &mut Value) {
    if is_misplaced_null(field, value)
        && let Some(default) = &field.default
    {
        *value = default.clone();
    }
    fill(field.node(), value);
}

fn is_misplaced_null(field: &Field, value: &Value) -> bool {
    value.is_null() && !field.node().nullable
}
