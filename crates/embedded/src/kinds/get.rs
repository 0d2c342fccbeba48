//! Reading and writing JSON objects without a ceremony at every step. A missing value reads as an empty one.

use serde_json::{Map, Value};

/// A value that is not there.
pub(crate) static NOTHING: Value = Value::Null;

/// A view of a value that may be missing.
pub(crate) trait Get {
    /// The value at a dotted path of plain names, null when missing.
    fn at(&self, path: &str) -> &Value;
    /// The text at a path, empty when missing.
    fn text(&self, path: &str) -> &str;
    /// The entries of the list at a path.
    fn list(&self, path: &str) -> &[Value];
    /// The entries of the map at a path.
    fn entries(&self, path: &str) -> impl Iterator<Item = (&str, &Value)>;
    /// Whether there is something at a path.
    fn has(&self, path: &str) -> bool;
    /// The whole number at a path.
    fn number(&self, path: &str) -> Option<i64>;
    /// Whether the flag at a path is set.
    fn flag(&self, path: &str) -> bool;
}

impl Get for Value {
    fn at(&self, path: &str) -> &Value {
        path.split('.').try_fold(self, |value, name| value.get(name)).unwrap_or(&NOTHING)
    }

    fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_default()
    }

    fn list(&self, path: &str) -> &[Value] {
        self.at(path).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn entries(&self, path: &str) -> impl Iterator<Item = (&str, &Value)> {
        self.at(path).as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    fn has(&self, path: &str) -> bool {
        !self.at(path).is_null()
    }

    fn number(&self, path: &str) -> Option<i64> {
        self.at(path).as_i64()
    }

    fn flag(&self, path: &str) -> bool {
        self.at(path).as_bool().unwrap_or_default()
    }
}

/// Whether a value is one that clients leave out.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Sets what is missing.
pub(crate) fn set_missing(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value.into());
    }
}

/// Sets what is missing or empty, for fields where the empty value means the default.
pub(crate) fn set_empty(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let empty = map.get(key).is_none_or(|value| is_empty(value) || value.as_i64() == Some(0));
    if empty {
        map.insert(key.to_owned(), value.into());
    }
}

/// The object at `key`, made when missing; nothing when something else is there.
pub(crate) fn child<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    let value = map.entry(key.to_owned()).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

/// Takes the value at `key` over from another object, or removes it when that has none.
pub(crate) fn take_over(object: &mut Value, from: &Value, key: &str) {
    if let Some(map) = object.as_object_mut()
        && map.get(key) != from.get(key)
    {
        match from.get(key) {
            Some(value) => {
                map.insert(key.to_owned(), value.clone());
            }
            None => {
                map.remove(key);
            }
        }
    }
}

/// Sets a field of what should be an object.
pub(crate) fn put(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value.into());
    }
}
