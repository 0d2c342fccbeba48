//! Strategic merge patches: merge patches that know which lists have keys.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::refusal::Refusal;
use crate::schema::{Field, Node, PatchRules, Schema};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER_PREFIX: &str = "$setElementOrder/";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

/// Applies a strategic merge patch.
pub fn strategic_merge_patch(object: &mut Value, patch: &Value, schema: &Schema) -> Result<(), Refusal> {
    let Value::Object(patch) = patch else {
        return Err(Refusal::bad_request("invalid JSON document"));
    };
    let mut fields = match object.take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let outcome = merge_map(&mut fields, patch.clone(), Some(schema.node()));
    *object = Value::Object(fields);
    outcome
}

/// What is known about a field.
struct Place<'a> {
    node: Option<&'a Node>,
    rules: PatchRules,
}

fn place<'a>(node: Option<&'a Node>, name: &str) -> Place<'a> {
    match node.and_then(|node| node.field(name)) {
        Some(field) => Place { node: Some(field.node()), rules: field.patch.clone() },
        None => Place { node: None, rules: PatchRules::default() },
    }
}

fn merge_map(
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    node: Option<&Node>,
) -> Result<(), Refusal> {
    if let Some(directive) = patch.get(DIRECTIVE).cloned() {
        match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                *object = patch;
            }
            Some("delete") => object.clear(),
            _ => return Err(bad_directive(&directive, &Value::Object(patch))),
        }
        return Ok(());
    }
    retain_keys(object, &mut patch)?;
    set_orders(object, &mut patch, node)?;
    for (key, value) in patch {
        let delete_list = key.strip_prefix(DELETE_PREFIX);
        let name = delete_list.unwrap_or(&key);
        if value.is_null() {
            object.remove(name);
            continue;
        }
        match (object.get_mut(name), value) {
            (Some(Value::Object(fields)), Value::Object(patch)) => {
                let place = place(node, name);
                if place.rules.replace {
                    *fields = patch;
                } else {
                    merge_map(fields, patch, place.node)?;
                }
            }
            (Some(Value::Array(items)), Value::Array(patch)) => {
                let place = place(node, name);
                if delete_list.is_some() {
                    items.retain(|item| !patch.contains(item));
                } else {
                    merge_list(items, patch, &place)?;
                }
            }
            // A list from which something is to be deleted and that is not there.
            _ if delete_list.is_some() => {}
            (_, value) => match without_directives(value) {
                Some(value) => {
                    object.insert(name.to_owned(), value);
                }
                None => {
                    object.remove(name);
                }
            },
        }
    }
    Ok(())
}

/// Keeps only the listed fields.
fn retain_keys(object: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), Refusal> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || Refusal::bad_request("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(bad)?;
    let listed = |name: &str| keys.iter().any(|key| key == name);
    let is_directive = |name: &str| name.starts_with(DELETE_PREFIX) || name.starts_with(ORDER_PREFIX);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !listed(name)) {
        return Err(bad());
    }
    object.retain(|name, _| listed(name));
    Ok(())
}

/// Merges the lists whose order the patch gives, and orders them.
fn set_orders(
    object: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    node: Option<&Node>,
) -> Result<(), Refusal> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ORDER_PREFIX)).cloned().collect();
    for directive in directives {
        let Some(name) = directive.strip_prefix(ORDER_PREFIX).map(str::to_owned) else { continue };
        let bad = || Refusal::bad_request("invalid patch format of setElementOrder list");
        let Some(Value::Array(order)) = patch.remove(&directive) else { return Err(bad()) };
        let changes = match patch.remove(&name) {
            None => None,
            Some(Value::Array(changes)) => Some(changes),
            Some(_) => return Err(bad()),
        };
        let place = place(node, &name);
        check_order(changes.as_deref().unwrap_or_default(), &order, &place.rules.merge_key)?;
        let before = match object.get(&name) {
            None => None,
            Some(Value::Array(items)) => Some(items.clone()),
            Some(_) => return Err(bad()),
        };
        let merged = match (before.clone(), changes) {
            (None, None) => continue,
            (Some(items), None) => items,
            (None, Some(changes)) => {
                let changes = without_directives(Value::Array(changes));
                changes.and_then(|changes| changes.as_array().cloned()).unwrap_or_default()
            }
            (Some(mut items), Some(changes)) => {
                merge_list(&mut items, changes, &place)?;
                items
            }
        };
        let ordered =
            in_order(merged, &order, before.as_deref().unwrap_or_default(), &place.rules.merge_key)?;
        object.insert(name, Value::Array(ordered));
    }
    Ok(())
}

/// Entries of a patch must come in the order that the patch itself gives.
fn check_order(changes: &[Value], order: &[Value], key: &str) -> Result<(), Refusal> {
    let mut rest = order.iter();
    for change in changes.iter().filter(|change| change.get(DIRECTIVE).is_none()) {
        if order.is_empty() || !rest.any(|entry| same(entry, change, key)) {
            if order.is_empty() {
                return Ok(());
            }
            return Err(failure(format!(
                "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                go_map(&Value::from(changes)),
                go_map(&Value::from(order))
            )));
        }
    }
    Ok(())
}

fn same(one: &Value, other: &Value, key: &str) -> bool {
    if key.is_empty() { one == other } else { one.get(key).is_some() && one.get(key) == other.get(key) }
}

fn merge_list(items: &mut Vec<Value>, patch: Vec<Value>, place: &Place<'_>) -> Result<(), Refusal> {
    if !place.rules.merge {
        *items = patch;
        return Ok(());
    }
    if items.is_empty() && patch.is_empty() {
        return Ok(());
    }
    let before = items.clone();
    let key = &*place.rules.merge_key;
    if !items.iter().chain(&patch).any(Value::is_object) {
        for value in &patch {
            if !items.contains(value) {
                items.push(value.clone());
            }
        }
        *items = in_order(std::mem::take(items), &patch, &before, "")?;
        return Ok(());
    }
    if key.is_empty() {
        return Err(failure("cannot merge lists without merge key"));
    }
    let (mut before, patch) = special_entries(before, patch, key)?;
    let item = place.node.and_then(|node| node.items.as_deref()).map(Field::node);
    let mut merged = before.clone();
    for entry in patch.iter().cloned() {
        let Some(value) = entry.get(key).cloned() else { return Err(no_merge_key(&entry, key)) };
        let found = merged.iter_mut().find(|item| item.get(key) == Some(&value));
        match (found, entry) {
            (Some(Value::Object(fields)), Value::Object(patch)) => merge_map(fields, patch, item)?,
            (_, entry) => merged.extend(without_directives(entry)),
        }
    }
    let order = in_order(merged, &patch, &before, key)?;
    before.clear();
    *items = order;
    Ok(())
}

/// Carries out the entries that delete or replace; what is left is the list and the entries to merge.
fn special_entries(
    mut items: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let mut rest = vec![];
    let mut replace = false;
    for entry in patch {
        match entry.get(DIRECTIVE).map(|directive| (directive.as_str(), directive.clone())) {
            None => rest.push(entry),
            Some((Some("delete"), _)) => {
                let Some(value) = entry.get(key) else { return Err(no_merge_key(&entry, key)) };
                items.retain(|item| item.get(key) != Some(value));
            }
            Some((Some("replace"), _)) => replace = true,
            Some((Some("merge"), _)) => {
                return Err(failure("merging lists cannot yet be specified in the patch"));
            }
            Some((_, directive)) => return Err(bad_directive(&directive, &entry)),
        }
    }
    Ok(if replace { (rest, vec![]) } else { (items, rest) })
}

/// Orders a merged list: entries of the patch as the patch has them, the others where they were.
fn in_order(merged: Vec<Value>, order: &[Value], before: &[Value], key: &str) -> Result<Vec<Value>, Refusal> {
    if !key.is_empty()
        && let Some(entry) = merged.iter().chain(order).find(|entry| entry.get(key).is_none())
    {
        return Err(no_merge_key(entry, key));
    }
    let index = |list: &[Value], value: &Value| list.iter().position(|other| same(other, value, key));
    let (mut from_patch, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| index(order, item).is_some());
    from_patch.sort_by_key(|item| index(order, item));
    others.sort_by_key(|item| index(before, item));
    let mut out = Vec::with_capacity(from_patch.len() + others.len());
    let (mut from_patch, mut others) = (from_patch.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(other), Some(patched)) = (others.peek(), from_patch.peek()) {
        let other_first = match (index(before, other), index(before, patched)) {
            (Some(other), Some(patched)) => other < patched,
            _ => false,
        };
        out.extend(if other_first { others.next() } else { from_patch.next() });
    }
    out.extend(from_patch);
    out.extend(others);
    Ok(out)
}

/// A value that replaces another: without nulls and directives, or nothing when it is itself one.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            if fields.get(DIRECTIVE).is_some_and(|directive| directive == "delete") {
                return None;
            }
            let is_directive = |name: &str| {
                name == DIRECTIVE
                    || name == RETAIN_KEYS
                    || name.starts_with(ORDER_PREFIX)
                    || name.starts_with(DELETE_PREFIX)
            };
            let kept = fields.into_iter().filter(|(name, value)| !is_directive(name) && !value.is_null());
            let kept = kept.filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

/// Mistakes that the API server takes for its own.
fn failure(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

fn bad_directive(directive: &Value, patch: &Value) -> Refusal {
    let shown = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    failure(format!("unknown patch type: {shown} in map: {}", go_map(patch)))
}

fn no_merge_key(entry: &Value, key: &str) -> Refusal {
    failure(format!("map: {} does not contain declared merge key: {key}", go_map(entry)))
}

/// A value as Go prints maps by default.
fn go_map(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, value)| format!("{name}:{}", go_map(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go_map).collect::<Vec<_>>().join(" "))
        }
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
