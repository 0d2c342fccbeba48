//! Fields that Go writes even when they are empty, because their structures are part of others.

use serde_json::{Map, Value};

use super::node::{Field, Node, Others};

/// Adds the empty fields that Go would write.
pub(crate) fn fill(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if !node.go_type.is_empty() {
                for (name, field) in &node.properties {
                    if !fields.contains_key(&**name)
                        && let Some(zero) = zero(field)
                    {
                        fields.insert(name.to_string(), zero);
                    }
                }
            }
            for (name, value) in fields.iter_mut() {
                if let Some(field) = node.field(name) {
                    fill(field.node(), value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(field) = &node.items {
                for item in items {
                    fill(field.node(), item);
                }
            }
        }
        _ => {}
    }
}

/// An object with nothing but the fields that Go writes even when they are empty.
pub(crate) fn empty(node: &Node) -> Map<String, Value> {
    let mut fields = Map::new();
    if node.go_type.is_empty() || !matches!(node.others, Others::None) {
        return fields;
    }
    for (name, field) in &node.properties {
        let value = zero(field).or_else(|| field.is_required_list().then_some(Value::Null));
        if let Some(value) = value {
            fields.insert(name.to_string(), value);
        }
    }
    fields
}

fn zero(field: &Field) -> Option<Value> {
    match field.default.as_ref()? {
        Value::Object(default) if default.is_empty() => Some(Value::Object(empty(field.node()))),
        Value::String(text) if text.is_empty() => Some(Value::String(String::new())),
        Value::Number(number) if number.as_i64() == Some(0) => Some(Value::Number(number.clone())),
        Value::Bool(false) => Some(Value::Bool(false)),
        _ => None,
    }
}
