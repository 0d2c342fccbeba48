//! What makes a CRD's schema structural, and what else a CRD's schema may not say.

use serde_json::{Map, Value};

use super::node::{Field, Node, Others};
use super::{pattern, prune, validate};
use crate::field_error::FieldError;

/// All mistakes of a schema, the structural ones sorted and first.
pub(super) fn mistakes(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = vec![];
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    // What CRDs may not use at all hides what else is wrong with the structure.
    if !uses_unsupported(schema) {
        let mut structural = vec![];
        invariants(schema, Level::Root, path, &mut structural);
        structural.sort_by_key(ToString::to_string);
        errors.extend(structural);
    }
    forbidden(schema, path, &mut errors);
    errors
}

const UNSUPPORTED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

fn uses_unsupported(schema: &Value) -> bool {
    let below = map(schema, "properties").into_iter().flat_map(Map::values);
    let below = below.chain(schema.get("items")).chain(schema.get("additionalProperties"));
    UNSUPPORTED.iter().any(|name| schema.get(name).is_some())
        || schema.get("items").is_some_and(Value::is_array)
        || below.into_iter().any(uses_unsupported)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

fn map<'a>(schema: &'a Value, name: &str) -> Option<&'a Map<String, Value>> {
    schema.get(name).and_then(Value::as_object)
}

fn list<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

fn invariants(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let type_name = text(schema, "type");
    let type_path = || format!("{path}.type");
    if type_name == "array" && schema.get("items").is_none() {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = schema.get("items") {
        invariants(items, Level::Item, &format!("{path}.items"), errors);
    }
    for (name, property) in map(schema, "properties").into_iter().flatten() {
        invariants(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let path = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(path.clone(), "must not be used at the root"));
        }
        if additional.is_object() {
            invariants(additional, Level::Field, &path, errors);
        }
    }
    if flag(schema, INT_OR_STRING) {
        for name in [PRESERVE, EMBEDDED].into_iter().filter(|name| flag(schema, name)) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{path}.{name}"), &Value::Bool(true), detail));
        }
    }
    junctors(schema, is_int_or_string(schema), path, errors);

    if flag(schema, EMBEDDED) && type_name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if type_name.is_empty() {
            FieldError::required(type_path(), detail)
        } else {
            FieldError::invalid(type_path(), &type_name.into(), detail)
        });
    } else if type_name.is_empty() && !flag(schema, INT_OR_STRING) && !flag(schema, PRESERVE) {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(type_path(), detail));
    }
    if flag(schema, EMBEDDED)
        && !flag(schema, PRESERVE)
        && map(schema, "properties").is_none_or(Map::is_empty)
    {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true \
                      without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), detail));
    }
    if level == Level::Root && !type_name.is_empty() && type_name != "object" {
        errors.push(FieldError::invalid(type_path(), &type_name.into(), "must be object at the root"));
    }
    metadata(schema, level, path, errors);
}

/// Every object has the same metadata, so a schema may only restrict names.
fn metadata(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let Some(properties) = map(schema, "properties") else { return };
    let is_object = level == Level::Root || flag(schema, EMBEDDED);
    for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(property) = properties.get(name) else { continue };
        let found = text(property, "type");
        if is_object && found != expected {
            let field = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(field, &found.into(), format!("must be {expected}")));
        }
    }
    let Some(metadata) = properties.get("metadata").filter(|_| level == Level::Root) else { return };
    let names = map(metadata, "properties");
    let only_names =
        names.is_none_or(|names| names.keys().all(|name| name == "name" || name == "generateName"));
    // Descriptions and the like are also more than nothing.
    let nothing_else = metadata.as_object().is_none_or(|metadata| {
        metadata.keys().all(|key| matches!(key.as_str(), "type" | "properties" | "default"))
    });
    if !only_names || !nothing_else {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), detail));
    }
}

/// The one use of types in alternatives: an integer or a text.
fn is_int_or_string(schema: &Value) -> bool {
    let types = |list: &[Value]| {
        let [one, other] = list else { return false };
        *one == serde_json::json!({"type": "integer"}) && *other == serde_json::json!({"type": "string"})
    };
    types(list(schema, "anyOf"))
        || list(schema, "allOf").first().is_some_and(|first| types(list(first, "anyOf")))
}

fn junctors(schema: &Value, int_or_string: bool, path: &str, errors: &mut Vec<FieldError>) {
    let skip_any = int_or_string && !list(schema, "anyOf").is_empty();
    let skip_first = int_or_string && !skip_any;
    if !skip_any {
        for (index, part) in list(schema, "anyOf").iter().enumerate() {
            nested(part, false, &format!("{path}.anyOf[{index}]"), errors);
        }
    }
    for (index, part) in list(schema, "allOf").iter().enumerate() {
        nested(part, skip_first && index == 0, &format!("{path}.allOf[{index}]"), errors);
    }
    for (index, part) in list(schema, "oneOf").iter().enumerate() {
        nested(part, false, &format!("{path}.oneOf[{index}]"), errors);
    }
    if let Some(part) = schema.get("not") {
        nested(part, false, &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = pattern::compile(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: error parsing regexp: {error}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), &pattern.into(), detail));
    }
}

/// Below alternatives a schema only checks values and says nothing about structure.
fn nested(schema: &Value, int_or_string: bool, path: &str, errors: &mut Vec<FieldError>) {
    junctors(schema, int_or_string, path, errors);
    if let Some(items) = schema.get("items") {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, property) in map(schema, "properties").into_iter().flatten() {
        let path = format!("{path}.properties[{name}]");
        nested(property, false, &path, errors);
        if name == "metadata" {
            errors.push(FieldError::forbidden(path, "must not be specified in a nested context"));
        }
    }
    let mut must = |name: &str, state: &str, set: bool| {
        if set {
            errors.push(FieldError::forbidden(
                format!("{path}.{name}"),
                format!("must be {state} to be structural"),
            ));
        }
    };
    must("type", "empty", !text(schema, "type").is_empty());
    must("additionalProperties", "undefined", schema.get("additionalProperties").is_some());
    must("default", "undefined", schema.get("default").is_some());
    must("title", "empty", !text(schema, "title").is_empty());
    must("description", "empty", !text(schema, "description").is_empty());
    must("nullable", "false", flag(schema, "nullable"));
    must(PRESERVE, "false", flag(schema, PRESERVE));
    must(EMBEDDED, "false", flag(schema, EMBEDDED));
    must(INT_OR_STRING, "false", flag(schema, INT_OR_STRING));
    must("x-kubernetes-list-map-keys", "empty", !list(schema, "x-kubernetes-list-map-keys").is_empty());
    must("x-kubernetes-list-type", "undefined", schema.get("x-kubernetes-list-type").is_some());
    must("x-kubernetes-map-type", "undefined", schema.get("x-kubernetes-map-type").is_some());
    must("x-kubernetes-validations", "empty", !list(schema, "x-kubernetes-validations").is_empty());
}

/// What JSON Schema knows and CRDs may not use, and lists whose keys do not fit.
fn forbidden(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), detail));
    }
    for name in UNSUPPORTED {
        if schema.get(name).is_some() {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), format!("{name} is not supported")));
        }
    }
    if schema.get("additionalProperties").is_some_and(|additional| *additional != Value::Bool(false))
        && map(schema, "properties").is_some_and(|properties| !properties.is_empty())
    {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), detail));
    }
    let type_name = text(schema, "type");
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    if !type_name.is_empty() && !TYPES.contains(&type_name) {
        errors.push(FieldError::not_supported(format!("{path}.type"), &type_name.into(), &TYPES));
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|additional| additional.is_object()) {
        forbidden(additional, &format!("{path}.additionalProperties"), errors);
    }
    for (name, property) in map(schema, "properties").into_iter().flatten() {
        forbidden(property, &format!("{path}.properties[{name}]"), errors);
    }
    match schema.get("items") {
        Some(Value::Array(_)) => {
            let detail = "items must be a schema object and not an array";
            errors.push(FieldError::forbidden(format!("{path}.items"), detail));
        }
        Some(items) => forbidden(items, &format!("{path}.items"), errors),
        None => {}
    }
    map_type(schema, path, errors);
    list_keys(schema, path, errors);
    rule_texts(schema, path, errors);
}

fn map_type(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let map_type = text(schema, "x-kubernetes-map-type");
    let type_name = text(schema, "type");
    if !map_type.is_empty() && type_name != "object" {
        let detail = "must be object if x-kubernetes-map-type is specified";
        errors.push(if type_name.is_empty() {
            FieldError::required(format!("{path}.type"), detail)
        } else {
            FieldError::invalid(format!("{path}.type"), &type_name.into(), detail)
        });
    }
    if !matches!(map_type, "" | "atomic" | "granular") {
        let field = format!("{path}.x-kubernetes-map-type");
        errors.push(FieldError::not_supported(field, &map_type.into(), &["atomic", "granular"]));
    }
}

fn list_keys(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const KEYS: &str = "x-kubernetes-list-map-keys";
    let list_type = text(schema, "x-kubernetes-list-type");
    let keys = list(schema, KEYS);
    if !list_type.is_empty() && text(schema, "type") != "array" {
        let detail = "must be array if x-kubernetes-list-type is specified";
        let found = text(schema, "type");
        errors.push(if found.is_empty() {
            FieldError::required(format!("{path}.type"), detail)
        } else {
            FieldError::invalid(format!("{path}.type"), &found.into(), detail)
        });
    }
    if list_type == "set"
        && let Some(items) = schema.get("items")
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let inner = text(items, "x-kubernetes-list-type");
        let needs_atomic =
            |found: &str, type_name: &str| text(items, "type") == type_name && found != "atomic";
        // A list in a set is compared as a whole, and so is an object.
        if needs_atomic(inner, "array") && !inner.is_empty() {
            let field = format!("{path}.items.x-kubernetes-list-type");
            errors.push(FieldError::invalid(field, &inner.into(), detail));
        }
        let inner = text(items, "x-kubernetes-map-type");
        if needs_atomic(inner, "object") {
            let field = format!("{path}.items.x-kubernetes-map-type");
            errors.push(FieldError::invalid(field, &Value::Null, detail));
        }
    }
    if !matches!(list_type, "" | "atomic" | "set" | "map") {
        let field = format!("{path}.x-kubernetes-list-type");
        errors.push(FieldError::not_supported(field, &list_type.into(), &["atomic", "set", "map"]));
    }
    if !keys.is_empty() && list_type != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        let field = format!("{path}.x-kubernetes-list-type");
        errors.push(if list_type.is_empty() {
            FieldError::required(field, detail)
        } else {
            FieldError::invalid(field, &list_type.into(), detail)
        });
    }
    if list_type != "map" {
        return;
    }
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{path}.{KEYS}"), detail));
    }
    let Some(items) = schema.get("items") else { return };
    if text(items, "type") != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.items.type"), &text(items, "type").into(), detail));
        return;
    }
    let properties = map(items, "properties");
    let required = list(items, "required");
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(property) = properties.and_then(|properties| properties.get(key)) else {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(format!("{path}.{KEYS}"), &keys.into(), detail));
            continue;
        };
        if property.get("default").is_none() && !required.iter().any(|name| name == key) {
            let field = format!("{path}.items.properties[{key}].default");
            let detail = "this property is in x-kubernetes-list-map-keys, \
                          so it must have a default or be a required property";
            errors.push(FieldError::required(field, detail));
        }
    }
}

fn rule_texts(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, rule) in list(schema, "x-kubernetes-validations").iter().enumerate() {
        let field = |name: &str| format!("{path}.x-kubernetes-validations[{index}].{name}");
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if expression.is_empty() {
            errors.push(FieldError::required(field("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(
                field("message"),
                &message.into(),
                "must be non-empty if specified",
            ));
        } else if message.trim().contains('\n') {
            errors.push(FieldError::invalid(
                field("message"),
                &message.into(),
                "must not contain line breaks",
            ));
        } else if expression.contains('\n') && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(field("message"), detail));
        }
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if let Some(reason) =
            rule.get("reason").filter(|reason| !REASONS.iter().any(|known| *reason == known))
        {
            errors.push(FieldError::not_supported(field("reason"), reason, &REASONS));
        }
        let place = text(rule, "fieldPath");
        if !place.is_empty() && !leads_somewhere(schema, place) {
            errors.push(FieldError::invalid(field("fieldPath"), &place.into(), "must be a valid path"));
        }
    }
}

/// Whether a path such as `.a.b['c']` names a field of the schema.
fn leads_somewhere(schema: &Value, path: &str) -> bool {
    let mut place = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(inner) = rest.strip_prefix("['") {
            let Some(found) = inner.split_once("']") else { return false };
            found
        } else if let Some(inner) = rest.strip_prefix('.') {
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            inner.split_at(end)
        } else {
            return false;
        };
        let next = map(place, "properties")
            .map_or_else(|| place.get("additionalProperties"), |properties| properties.get(name));
        let Some(next) = next else { return false };
        (place, rest) = (next, after);
    }
    true
}

/// Defaults that their own schema refuses.
pub(super) fn default_mistakes(root: &Node, path: &str) -> Vec<FieldError> {
    let mut errors = vec![];
    defaults_below(root, path, &mut errors);
    errors
}

fn defaults_below(node: &Node, path: &str, errors: &mut Vec<FieldError>) {
    let mut check = |field: &Field, path: String| {
        let Some(below) = field.own_node() else { return };
        if let Some(default) = &field.default {
            check_default(below, default, &format!("{path}.default"), errors);
        }
        defaults_below(below, &path, errors);
    };
    if let Others::Each(field) = &node.others {
        check(field, format!("{path}.additionalProperties"));
    }
    if let Some(field) = &node.items {
        check(field, format!("{path}.items"));
    }
    for (name, field) in &node.properties {
        check(field, format!("{path}.properties[{name}]"));
    }
}

fn check_default(node: &Node, default: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut value = default.clone();
    if !prune::prune(node, &mut value).is_empty() {
        errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
        return;
    }
    for mut error in validate::validate_part(node, &value) {
        error.field = match error.field.as_str() {
            "<nil>" => path.to_owned(),
            field => format!("{path}.{field}"),
        };
        errors.push(error);
    }
}
