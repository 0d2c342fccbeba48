//! The OpenAPI v2 document: kubectl checks lists with it, and older programs read nothing else.
//!
//! It says what the documents of version 3 say, in one, without what version 2 has no words for.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::gnostic;
use crate::answer::{Answer, Content};
use crate::request::Form;
use crate::resources::Registry;
use crate::schema::library::Library;

/// The content type of the document in protobuf; clients also ask for it with an `@` before the version.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`.
pub(crate) fn answer(registry: &Registry, form: Form) -> Answer {
    let document = document(registry);
    if form != Form::Protobuf {
        return Answer::json(StatusCode::OK, &document);
    }
    let content = Content::Typed(PROTOBUF, Bytes::from(gnostic::encode(&document)));
    Answer { code: StatusCode::OK, content, warnings: Vec::new() }
}

fn document(registry: &Registry) -> Value {
    let library = Library::built_in().definitions();
    let (mut definitions, mut paths) = (Map::new(), Map::new());
    for (group, versions) in registry.groups() {
        for version in versions {
            super::describe(registry.in_version(group, version), &library, &mut definitions, &mut paths);
        }
    }
    for (name, definition) in &mut definitions {
        simplify(definition);
        // What is a number or a text is told as a text, which anything may be written as.
        if name.ends_with(".Quantity") || name.ends_with(".IntOrString") {
            definition["type"] = Value::from("string");
        }
    }
    for path in paths.values_mut().filter_map(Value::as_object_mut) {
        path.values_mut().for_each(operation);
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "definitions": definitions,
    })
}

/// Turns a schema of version 3 into one of version 2.
fn simplify(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    // A reference with a description is the only member of a list there.
    if let Some(reference) = map.get("allOf").and_then(|all| all.get(0)?.get("$ref")).cloned() {
        map.remove("allOf");
        map.insert("$ref".to_owned(), reference);
    }
    if let Some(Value::String(reference)) = map.get_mut("$ref") {
        *reference = reference.replacen(super::REF, "#/definitions/", 1);
    }
    let is = |key: &str| map.get(key) == Some(&Value::Bool(true));
    // Clients refuse null and unknown fields where there is a type, so there is none.
    if is("nullable") || is("x-kubernetes-preserve-unknown-fields") {
        for key in ["type", "items", "properties", "additionalProperties"] {
            map.remove(key);
        }
    }
    if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        map.remove("type");
    }
    for key in ["nullable", "oneOf", "anyOf", "not", "allOf"] {
        map.remove(key);
    }
    for key in ["items", "additionalProperties"] {
        map.get_mut(key).map(simplify);
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
}

/// Turns an operation of version 3 into one of version 2.
fn operation(operation: &mut Value) {
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        let schema = parameter["schema"].take();
        if let (Some(parameter), Value::Object(schema)) = (parameter.as_object_mut(), schema) {
            parameter.remove("schema");
            parameter.extend(schema);
        }
    }
    for response in operation["responses"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        let mut schema = response["content"]["application/json"]["schema"].take();
        simplify(&mut schema);
        *response = json!({"description": response["description"], "schema": schema});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_say_in_version_2_what_it_has_words_for() {
        for (three, two) in [
            (
                json!({"allOf": [{"$ref": "#/components/schemas/a.B"}], "description": "d", "default": {}}),
                json!({"$ref": "#/definitions/a.B", "description": "d", "default": {}}),
            ),
            (
                json!({"type": "array", "items": {"type": "string", "nullable": true}}),
                json!({"type": "array", "items": {}}),
            ),
            (
                json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}],
                    "x-kubernetes-int-or-string": true, "pattern": "^a"}}}),
                json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true, "pattern": "^a"}}}),
            ),
            (
                json!({"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": true}),
                json!({"x-kubernetes-preserve-unknown-fields": true}),
            ),
            (
                json!({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/a.B"}}),
                json!({"type": "object", "additionalProperties": {"$ref": "#/definitions/a.B"}}),
            ),
        ] {
            let mut schema = three.clone();
            simplify(&mut schema);
            assert_eq!(schema, two, "{three}");
        }
    }
}
