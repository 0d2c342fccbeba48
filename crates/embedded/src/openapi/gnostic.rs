//! OpenAPI v2 in protobuf: the messages of gnostic's `openapi.v2`, in which Go clients read the document.

use serde_json::{Map, Value};

use crate::protobuf::Message;

/// The document as a message.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.message(2, &info);
    let mut paths = Message::default();
    for (name, path) in entries(&document["paths"]) {
        paths.message(2, &named(name, &path_item(path)));
    }
    message.message(8, &paths);
    message.message(9, &schemas(&document["definitions"]));
    message.finish()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// An entry of a map.
fn named(name: &str, value: &Message) -> Message {
    let mut entry = Message::default();
    entry.bytes(1, name.as_bytes());
    entry.message(2, value);
    entry
}

/// Any value, as YAML, of which JSON is a part.
fn any(value: &Value) -> Message {
    let mut any = Message::default();
    any.bytes(2, value.to_string().as_bytes());
    any
}

/// What begins with `x-`.
fn extensions(of: &Value, number: u64, message: &mut Message) {
    for (name, value) in entries(of).filter(|(name, _)| name.starts_with("x-")) {
        message.message(number, &named(name, &any(value)));
    }
}

/// Schemas by name.
fn schemas(value: &Value) -> Message {
    let mut message = Message::default();
    for (name, value) in entries(value) {
        message.message(1, &named(name, &schema(value)));
    }
    message
}

fn schema(value: &Value) -> Message {
    let mut message = Message::default();
    for (number, key) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        message.text(number, &value[key]);
    }
    if let Some(default) = value.get("default") {
        message.message(5, &any(default));
    }
    for (number, key) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        message.double(number, &value[key]);
    }
    for (number, key) in
        [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems"), (27, "readOnly")]
    {
        message.flag(number, &value[key]);
    }
    for (number, key) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        message.integer(number, &value[key]);
    }
    for name in items(&value["required"]) {
        message.text(19, name);
    }
    for value in items(&value["enum"]) {
        message.message(20, &any(value));
    }
    if let Some(additional) = value.get("additionalProperties") {
        let mut item = Message::default();
        match additional {
            Value::Bool(_) => item.flag(2, additional),
            _ => item.message(1, &schema(additional)),
        }
        message.message(21, &item);
    }
    if value["type"].is_string() {
        let mut kind = Message::default();
        kind.text(1, &value["type"]);
        message.message(22, &kind);
    }
    if let Some(of) = value.get("items") {
        let mut item = Message::default();
        item.message(1, &schema(of));
        message.message(23, &item);
    }
    if let Some(properties) = value.get("properties") {
        message.message(25, &schemas(properties));
    }
    extensions(value, 31, &mut message);
    message
}

fn path_item(value: &Value) -> Message {
    let mut message = Message::default();
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if let Some(value) = value.get(method) {
            message.message(number, &operation(value));
        }
    }
    message
}

fn operation(value: &Value) -> Message {
    let mut message = Message::default();
    for value in items(&value["parameters"]) {
        // A parameter, not in the body, but in the query.
        let mut query = Message::default();
        for (number, key) in [(2, "in"), (3, "description"), (4, "name"), (6, "type")] {
            query.text(number, &value[key]);
        }
        query.flag(20, &value["uniqueItems"]);
        message.message(8, &wrapped(1, &wrapped(2, &wrapped(3, &query))));
    }
    let mut responses = Message::default();
    for (code, value) in entries(&value["responses"]) {
        let mut response = Message::default();
        response.text(1, &value["description"]);
        response.message(2, &wrapped(1, &schema(&value["schema"])));
        responses.message(1, &named(code, &wrapped(1, &response)));
    }
    message.message(9, &responses);
    extensions(value, 13, &mut message);
    message
}

fn wrapped(number: u64, inner: &Message) -> Message {
    let mut message = Message::default();
    message.message(number, inner);
    message
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protobuf::{Wire, wires};

    /// What is at a path of field numbers, each the last of its message.
    fn at<'a>(bytes: &'a [u8], path: &[u64]) -> Option<&'a [u8]> {
        let Some((first, rest)) = path.split_first() else { return Some(bytes) };
        let fields = wires(bytes).expect("it is a message");
        let found = fields.into_iter().rev().find_map(|(number, wire)| match wire {
            Wire::Bytes(bytes) if number == *first => Some(bytes),
            _ => None,
        });
        at(found?, rest)
    }

    #[track_caller]
    fn check(document: &Value, path: &[u64], text: &str) {
        let bytes = encode(document);
        assert_eq!(at(&bytes, path).map(String::from_utf8_lossy), Some(text.into()), "{path:?}");
    }

    #[test]
    fn every_part_is_at_the_number_that_clients_look_at() {
        let document = json!({
            "swagger": "2.0",
            "definitions": {"a.B": {
                "type": "object", "description": "says", "required": ["one"],
                "properties": {"one": {"$ref": "#/definitions/a.C"}},
                "additionalProperties": {"type": "string", "enum": ["x"]},
                "x-kubernetes-group-version-kind": [{"group": "a", "kind": "B", "version": "v1"}],
            }},
            "paths": {"/apis/a": {"patch": {
                "parameters": [{"name": "dryRun", "in": "query", "type": "string"}],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/a.B"}}},
                "x-kubernetes-action": "patch",
            }}},
        });
        let definition = [9, 1, 2];
        check(&document, &[1], "2.0");
        check(&document, &[9, 1, 1], "a.B");
        check(&document, &[&definition[..], &[4]].concat(), "says");
        check(&document, &[&definition[..], &[22, 1]].concat(), "object");
        check(&document, &[&definition[..], &[19]].concat(), "one");
        check(&document, &[&definition[..], &[25, 1, 1]].concat(), "one");
        check(&document, &[&definition[..], &[25, 1, 2, 1]].concat(), "#/definitions/a.C");
        check(&document, &[&definition[..], &[21, 1, 20, 2]].concat(), "\"x\"");
        check(&document, &[&definition[..], &[31, 1]].concat(), "x-kubernetes-group-version-kind");
        check(
            &document,
            &[&definition[..], &[31, 2, 2]].concat(),
            r#"[{"group":"a","kind":"B","version":"v1"}]"#,
        );
        check(&document, &[8, 2, 1], "/apis/a");
        check(&document, &[8, 2, 2, 8, 8, 1, 2, 3, 4], "dryRun");
        check(&document, &[8, 2, 2, 8, 9, 1, 1], "200");
        check(&document, &[8, 2, 2, 8, 9, 1, 2, 1, 2, 1, 1], "#/definitions/a.B");
        check(&document, &[8, 2, 2, 8, 13, 1], "x-kubernetes-action");
    }
}
