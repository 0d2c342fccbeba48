//! Decoding against what a kube-apiserver v1.36 answered; `vectors/decode.json` was recorded from one.

use embedded::refusal::Refusal;
use embedded::schema::{Library, Schema, decode_built_in, decode_custom};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Vectors {
    built_in: Vec<Case>,
    custom: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    body: Value,
    code: u16,
    /// The answer to a request that refuses unknown fields, if there were any.
    strict: Option<String>,
    message: Option<String>,
    stored: Option<Value>,
}

impl Case {
    fn check(&self, decode: impl Fn(&mut Value) -> Result<Vec<String>, Refusal>) -> Result<(), String> {
        let mut object = self.body.clone();
        match decode(&mut object) {
            Err(refusal) => {
                let found = (refusal.code.as_u16(), Some(refusal.message));
                let expected = (self.code, self.message.clone());
                if found == expected {
                    Ok(())
                } else {
                    Err(format!("  expected: {expected:?}\n  got: {found:?}"))
                }
            }
            Ok(_) if self.code == 400 => Err(format!("  expected: {:?}\n  got: accepted", self.message)),
            Ok(unknown) => {
                let strict = self.strict.as_ref().and_then(|text| text.split_once("strict decoding error: "));
                let expected: Vec<&str> = strict.map_or(vec![], |(_, fields)| fields.split(", ").collect());
                let found: Vec<String> =
                    unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
                if found != expected {
                    return Err(format!("  expected: {expected:?}\n  got: {found:?}"));
                }
                match &self.stored {
                    Some(stored) => is_part(&object, stored, "the object"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Whether all of `part` is in `whole`: defaults come later.
fn is_part(part: &Value, whole: &Value, place: &str) -> Result<(), String> {
    match (part, whole) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().try_for_each(|(name, value)| {
            // Written once and stored elsewhere, or not stored in this request.
            if matches!(name.as_str(), "stringData" | "deletionTimestamp") {
                return Ok(());
            }
            let whole = whole.get(name).unwrap_or(&Value::Null);
            is_part(value, whole, &format!("{place}.{name}"))
        }),
        (Value::Array(items), Value::Array(others)) if items.len() <= others.len() => items
            .iter()
            .zip(others)
            .enumerate()
            .try_for_each(|(index, (item, other))| is_part(item, other, &format!("{place}[{index}]"))),
        _ if part == whole => Ok(()),
        _ => Err(format!("  expected: {place} to be {whole}\n  got: {part}")),
    }
}

fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("vectors/decode.json")).expect("the vectors can be read")
}

#[test]
fn objects_of_kubernetes_own_types_are_decoded_as_by_a_real_server() {
    let check = |case: &Case| {
        let text = |name: &str| case.body[name].as_str().unwrap();
        let schema = Library::built_in().kind(text("apiVersion"), text("kind")).unwrap();
        case.check(|object| decode_built_in(&schema, object))
            .err()
            .map(|problem| format!("{}\n{problem}", case.body))
    };
    assert_none(&vectors().built_in.iter().filter_map(check).collect::<Vec<_>>());
}

#[test]
fn metadata_of_custom_resources_is_decoded_as_by_a_real_server() {
    let spec = json!({"type": "object", "properties": {"need": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let schema = Schema::compile(&schema, "spec.validation.openAPIV3Schema").unwrap();
    let check = |case: &Case| {
        case.check(|object| decode_custom(&schema, object))
            .err()
            .map(|problem| format!("{}\n{problem}", case.body))
    };
    assert_none(&vectors().custom.iter().filter_map(check).collect::<Vec<_>>());
}
