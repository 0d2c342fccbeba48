//! JSON patches (RFC 6902) and merge patches (RFC 7386).

use http::StatusCode;
use serde_json::{Map, Value};

use crate::refusal::{Details, Refusal};

/// Applies a JSON patch; if one of its operations fails nothing changes.
///
/// It is as lenient as the API server: `replace` also sets a field that is not there, and negative positions
/// count from the end.
pub fn json_patch(object: &mut Value, patch: &Value) -> Result<(), Refusal> {
    let Value::Array(operations) = patch else {
        let found = match patch {
            Value::Object(_) => "object",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
            _ => return Ok(()),
        };
        return Err(Refusal::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
        )));
    };
    let mut patched = object.clone();
    for operation in operations {
        run(&mut patched, operation).ok_or_else(rejected)?;
    }
    *object = patched;
    Ok(())
}

/// What is wrong with a patch is not said.
fn rejected() -> Refusal {
    let message = "the server rejected our request due to an error in our request";
    let mut refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
    refusal.details = Some(Box::<Details>::default());
    refusal
}

/// Carries out one operation; nothing when it cannot be done.
fn run(object: &mut Value, operation: &Value) -> Option<()> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let value = || operation.get("value").cloned().unwrap_or_default();
    let path = text("path")?;
    match text("op")? {
        "add" => add(object, path, value()),
        "remove" => take(object, path).map(drop),
        "replace" if path.is_empty() => {
            *object = value();
            (object.is_object() || object.is_array()).then_some(())
        }
        "replace" => {
            let (parent, key) = parent(object, path)?;
            match parent {
                Value::Object(fields) => {
                    fields.insert(key, value());
                }
                Value::Array(items) => {
                    let index = index(&key, items.len()).filter(|index| *index < items.len())?;
                    items[index] = value();
                }
                _ => return None,
            }
            Some(())
        }
        "move" => {
            let moved = take(object, text("from")?)?;
            add(object, path, moved)
        }
        "copy" => {
            let copied = get(object, text("from")?)?;
            add(object, path, copied)
        }
        "test" if path.is_empty() => (*object == value()).then_some(()),
        "test" => (get(object, path)? == value()).then_some(()),
        _ => None,
    }
}

/// The value that holds the last part of a path, and that part.
fn parent<'a>(object: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (above, key) = path.rsplit_once('/')?;
    let mut place = object;
    for part in above.split('/').skip(1) {
        let part = unescaped(part);
        place = match place {
            Value::Object(fields) => fields.get_mut(&part)?,
            Value::Array(items) => {
                let index = index(&part, items.len())?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    (place.is_object() || place.is_array()).then(|| (place, unescaped(key)))
}

fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// A position in a list of `length`; it may be the end.
fn index(text: &str, length: usize) -> Option<usize> {
    let number: i64 = text.parse().ok()?;
    match usize::try_from(number) {
        Ok(index) => (index <= length).then_some(index),
        Err(_) => length.checked_sub(usize::try_from(number.unsigned_abs()).ok()?),
    }
}

fn get(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = parent(object, path)?;
    match parent {
        // A field that is not there is null.
        Value::Object(fields) => Some(fields.get(&key).cloned().unwrap_or_default()),
        Value::Array(items) => items.get(index(&key, items.len())?).cloned(),
        _ => None,
    }
}

fn take(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = parent(object, path)?;
    match parent {
        Value::Object(fields) => fields.remove(&key),
        Value::Array(items) => {
            let index = index(&key, items.len()).filter(|index| *index < items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, key) = parent(object, path)?;
    match parent {
        Value::Object(fields) => {
            fields.insert(key, value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => {
            // Negative positions count from behind the new entry.
            let place =
                if key.starts_with('-') { index(&key, items.len() + 1)? } else { index(&key, items.len())? };
            items.insert(place, value);
        }
        _ => return None,
    }
    Some(())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{json_patch, merge_patch};

    #[test]
    fn operations_change_lists_and_objects() {
        let mut object = json!({"list": [1, 2, 3], "map": {"a/b": 1}});
        let patch = json!([
            {"op": "add", "path": "/list/1", "value": 9},
            {"op": "add", "path": "/list/-", "value": 4},
            {"op": "remove", "path": "/list/0"},
            {"op": "replace", "path": "/list/-1", "value": 5},
            {"op": "replace", "path": "/map/a~1b", "value": 2},
            {"op": "move", "from": "/map/a~1b", "path": "/moved"},
            {"op": "copy", "from": "/list/0", "path": "/map/c"},
            {"op": "test", "path": "/map", "value": {"c": 9}},
            {"op": "test", "path": "/nothing", "value": null},
        ]);
        json_patch(&mut object, &patch).unwrap();
        assert_eq!(object, json!({"list": [9, 2, 3, 5], "map": {"c": 9}, "moved": 2}));
    }

    #[test]
    fn a_patch_that_fails_changes_nothing() {
        for operation in [
            json!({"op": "test", "path": "/a", "value": 2}),
            json!({"op": "remove", "path": "/b"}),
            json!({"op": "add", "path": "/b/c", "value": 1}),
            json!({"op": "add", "path": "/list/5", "value": 1}),
            json!({"op": "replace", "path": "/list/1", "value": 1}),
            json!({"op": "remove", "path": "/list/-3"}),
            json!({"op": "unknown", "path": "/a"}),
            json!({"path": "/a"}),
            json!(3),
        ] {
            let before = json!({"a": 1, "list": [1]});
            let mut object = before.clone();
            let patch = json!([{"op": "add", "path": "/c", "value": 1}, operation]);
            let refusal = json_patch(&mut object, &patch).unwrap_err();
            assert_eq!(refusal.code.as_u16(), 422, "{patch}");
            assert_eq!(object, before);
        }
    }

    #[test]
    fn a_merge_patch_merges_objects_removes_nulls_and_replaces_the_rest() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "list": [1, 2], "text": "x"});
        merge_patch(
            &mut object,
            &json!({"a": {"b": null, "d": {"e": null, "f": 3}}, "list": [], "text": {"g": 1}}),
        );
        assert_eq!(object, json!({"a": {"c": 2, "d": {"f": 3}}, "list": [], "text": {"g": 1}}));
    }
}
