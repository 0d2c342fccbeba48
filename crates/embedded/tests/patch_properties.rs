//! Properties of patches and field owners that hold for all objects.

use embedded::patch::{Manager, apply, merge_patch, strategic_merge_patch, track_update};
use embedded::schema::Schema;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn schema() -> Schema {
    let item = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
    });
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "whole": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "additionalProperties": {"type": "integer"},
                    },
                    "list": {"type": "array", "items": {"type": "integer"}},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": item,
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            },
        },
    });
    Schema::compile(&schema, "").expect("the schema is structural")
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Names that differ, as sets and keys demand.
fn names() -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(vec!["a", "b", "c", "d"], 1..4)
        .prop_shuffle()
        .prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

fn part(name: String) -> impl Strategy<Value = Value> {
    (prop::option::of(0..3i64), prop::option::of(names())).prop_map(move |(size, tags)| {
        let mut part = json!({"name": name});
        if let Some(size) = size {
            part["size"] = json!(size);
        }
        if let Some(tags) = tags {
            part["tags"] = json!(tags);
        }
        part
    })
}

/// An object as somebody applies it; nothing in it is empty.
fn any_object() -> impl Strategy<Value = Value> {
    let numbers = || prop::collection::btree_map("[a-c]", 0..3i64, 1..3);
    let parts = names().prop_flat_map(|names| names.into_iter().map(part).collect::<Vec<_>>());
    (
        prop::option::of("[a-b]"),
        prop::option::of(names()),
        prop::option::of(numbers()),
        prop::option::of(numbers()),
        prop::option::of(prop::collection::vec(0..3i64, 1..3)),
        prop::option::of(parts),
        prop::option::of(numbers()),
        prop::option::of(prop::collection::btree_map("[x-z]", "[a-b]", 1..3)),
    )
        .prop_map(|(text, set, map, whole, list, parts, free, labels)| {
            let fields = [
                ("text", json!(text)),
                ("set", json!(set)),
                ("map", json!(map)),
                ("whole", json!(whole)),
                ("list", json!(list)),
                ("parts", json!(parts)),
                ("free", json!(free)),
            ];
            let spec: Map<String, Value> = fields
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            let mut object = base();
            if !spec.is_empty() {
                object["spec"] = Value::Object(spec);
            }
            if let Some(labels) = labels {
                object["metadata"]["labels"] = json!(labels);
            }
            object
        })
}

fn base() -> Value {
    json!({"apiVersion": "test/v1", "kind": "Test", "metadata": {"name": "a"}})
}

fn manager<'a>(name: &'a str, now: &'a str) -> Manager<'a> {
    Manager { name, subresource: "", api_version: "test/v1", now, reset: &[] }
}

fn applied(live: Option<&Value>, object: &Value, name: &str) -> Value {
    let now = "2024-01-01T00:00:00Z";
    apply(live, object, &manager(name, now), true, &schema()).expect("a forced apply has no conflicts")
}

fn without_managed_fields(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// All paths of an entry, as texts.
fn paths(fields: &Value, prefix: &str) -> Vec<String> {
    let mut found = vec![];
    for (step, below) in fields.as_object().into_iter().flatten() {
        let path = format!("{prefix}/{step}");
        let is_leaf = below.as_object().is_some_and(Map::is_empty);
        if is_leaf {
            found.push(if step == "." { prefix.to_owned() } else { path });
        } else {
            found.extend(paths(below, &path));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_merge_patch_applied_twice_changes_nothing_more(object in any_json(), patch in any_json()) {
        let mut once = object;
        merge_patch(&mut once, &patch);
        let mut twice = once.clone();
        merge_patch(&mut twice, &patch);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_strategic_merge_patch_without_merge_keys_is_a_merge_patch(object in any_object(), patch in any_object()) {
        // Custom resources have no merge keys.
        let (mut one, mut other) = (object.clone(), object);
        merge_patch(&mut one, &patch);
        strategic_merge_patch(&mut other, &patch, &schema()).expect("there are no directives");
        prop_assert_eq!(one, other);
    }

    #[test]
    fn applying_the_same_twice_changes_nothing(object in any_object(), other in any_object()) {
        let live = applied(None, &other, "other");
        let once = applied(Some(&live), &object, "me");
        let now = "2030-01-01T00:00:00Z";
        let twice = apply(Some(&once), &object, &manager("me", now), false, &schema())
            .expect("nobody took a field since");
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn what_is_applied_is_there(object in any_object(), other in any_object()) {
        let live = applied(None, &other, "other");
        let result = applied(Some(&live), &object, "me");
        for pointer in ["/spec/text", "/spec/whole", "/spec/list"] {
            if let Some(value) = object.pointer(pointer) {
                prop_assert_eq!(result.pointer(pointer), Some(value));
            }
        }
    }

    #[test]
    fn withdrawing_all_fields_restores_the_object(object in any_object(), other in any_object()) {
        let before = applied(None, &other, "other");
        // Without conflicts nothing of the other's is overwritten.
        let now = "2024-01-01T00:00:01Z";
        if let Ok(both) = apply(Some(&before), &object, &manager("me", now), false, &schema()) {
            let after = applied(Some(&both), &base(), "me");
            let empty = |object: &Value| {
                let mut object = without_managed_fields(object);
                // What only held the withdrawn fields may stay behind, empty.
                for (parent, name) in [("/metadata", "labels"), ("", "spec")] {
                    if let Some(fields) = object.pointer_mut(parent).and_then(Value::as_object_mut)
                        && fields.get(name).is_some_and(|value| value.as_object().is_some_and(Map::is_empty))
                    {
                        fields.remove(name);
                    }
                }
                sorted_lists(object)
            };
            prop_assert_eq!(empty(&before), empty(&after));
        }
    }

    #[test]
    fn updates_leave_no_field_with_two_owners(objects in prop::collection::vec(any_object(), 2..5)) {
        let schema = schema();
        let mut live: Option<Value> = None;
        for (index, object) in objects.iter().enumerate() {
            let mut new = object.clone();
            let name = format!("m{}", index % 3);
            track_update(live.as_ref(), &mut new, &manager(&name, "2024-01-01T00:00:00Z"), &schema);
            live = Some(new);
        }
        let live = live.expect("there is at least one object");
        let mut all: Vec<String> = vec![];
        for entry in live["metadata"]["managedFields"].as_array().into_iter().flatten() {
            all.extend(paths(&entry["fieldsV1"], ""));
        }
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), all.len(), "{:?}", all);
    }

    #[test]
    fn an_update_that_changes_nothing_leaves_owners_alone(object in any_object()) {
        let schema = schema();
        let mut created = object;
        track_update(None, &mut created, &manager("m1", "2024-01-01T00:00:00Z"), &schema);
        let mut again = created.clone();
        track_update(Some(&created), &mut again, &manager("m2", "2030-01-01T00:00:00Z"), &schema);
        prop_assert_eq!(created, again);
    }
}

/// Withdrawn entries may have moved those between which they stood.
fn sorted_lists(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, sorted_lists(value))).collect()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.into_iter().map(sorted_lists).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        other => other,
    }
}
