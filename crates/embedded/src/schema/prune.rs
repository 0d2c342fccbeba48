//! Removing fields that a schema does not know.

use serde_json::Value;

use super::node::{Node, Others};

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes unknown fields and returns their paths, sorted.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    write_numbers_as_go(object);
    let mut found = Found::default();
    found.prune(object, Some(root));
    if let (Some(metadata), Some(value)) = (root.properties.get("metadata"), object.get_mut("metadata")) {
        found.path.push_str("metadata");
        found.prune(value, Some(metadata.node()));
    }
    found.unknown.sort();
    found.unknown
}

/// Appends a field's name to a path.
pub(super) fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// Appends a position to a path.
pub(super) fn push_index(path: &mut String, index: usize) {
    use std::fmt::Write as _;
    let _ = write!(path, "[{index}]");
}

/// Go writes `2.0` as `2`.
pub(super) fn write_numbers_as_go(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e18)
            {
                // Below 10^18 the conversion is exact.
                #[allow(clippy::cast_possible_truncation)]
                let whole = whole as i64;
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_numbers_as_go),
        Value::Object(fields) => fields.values_mut().for_each(write_numbers_as_go),
        _ => {}
    }
}

#[derive(Default)]
struct Found {
    path: String,
    unknown: Vec<String>,
}

impl Found {
    /// Without a schema nothing is known.
    fn prune(&mut self, value: &mut Value, node: Option<&Node>) {
        let length = self.path.len();
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                let own = node.is_some_and(|node| node.embedded) && META_FIELDS.contains(&name.as_str());
                if own {
                    return true;
                }
                push_name(&mut self.path, name);
                let known = self.prune_field(name, value, node);
                if !known {
                    self.unknown.push(self.path.clone());
                }
                self.path.truncate(length);
                known
            }),
            Value::Array(items) => {
                let item = node.and_then(|node| node.items.as_ref()).map(|field| field.node());
                // A kept list without a schema for its entries keeps them as they are.
                if item.is_none() && node.is_some_and(|node| node.preserve) {
                    return;
                }
                for (index, value) in items.iter_mut().enumerate() {
                    push_index(&mut self.path, index);
                    self.prune(value, item);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Prunes below a field and says whether the field itself is known.
    fn prune_field(&mut self, name: &str, value: &mut Value, node: Option<&Node>) -> bool {
        let Some(node) = node else { return false };
        if let Some(field) = node.field(name) {
            self.prune(value, Some(field.node()));
            return true;
        }
        match node.others {
            Others::None => node.preserve,
            // Nothing is known below `additionalProperties: true`.
            Others::Any => {
                self.prune(value, None);
                true
            }
            Others::Each(_) => true,
        }
    }
}
