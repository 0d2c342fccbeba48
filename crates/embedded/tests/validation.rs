//! Validation against what a kube-apiserver v1.36 answered; `vectors/validation.json` was recorded from one.

use embedded::refusal::Refusal;
use embedded::schema::Schema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Vectors {
    schema: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    spec: Value,
    code: u16,
    /// The answer to a request that refuses unknown fields, if there were any.
    strict: Option<String>,
    message: Option<String>,
    causes: Option<Value>,
    stored: Option<Value>,
}

fn check(schema: &Schema, case: &Case) -> Result<(), String> {
    let expect = |what: &str, expected: &Value, found: &Value| {
        if expected == found {
            Ok(())
        } else {
            Err(format!("{what}\n  expected: {expected}\n  got: {found}"))
        }
    };
    let mut object = json!({
        "apiVersion": "schema.test/v1",
        "kind": "Thing",
        "metadata": {"name": "a"},
        "spec": case.spec,
    });
    let unknown = schema.prune(&mut object);
    let strict = (!unknown.is_empty()).then(|| {
        let fields: Vec<_> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        let fields = fields.join(", ");
        format!("Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: {fields}")
    });
    expect("unknown fields", &json!(case.strict), &json!(strict))?;
    schema.apply_defaults(&mut object);
    let errors = schema.validate(&object, None);
    if errors.is_empty() {
        expect("code", &json!(case.code), &json!(201))?;
        return expect("stored", &json!(case.stored), object.get("spec").unwrap_or(&Value::Null));
    }
    let refusal = Refusal::invalid("schema.test", "Thing", "a", &errors);
    expect("code", &json!(case.code), &json!(refusal.code.as_u16()))?;
    expect("message", &json!(case.message), &json!(refusal.message))?;
    expect("causes", &json!(case.causes), &refusal.status()["details"]["causes"])
}

#[test]
fn objects_are_refused_in_the_real_servers_words() {
    let vectors: Vectors = serde_json::from_str(include_str!("vectors/validation.json")).unwrap();
    let schema = Schema::compile(&vectors.schema, "spec.validation.openAPIV3Schema").unwrap();
    let problems: Vec<String> = vectors
        .cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.spec, check(&schema, case).err()?)))
        .collect();
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), vectors.cases.len(), problems.join("\n"));
}
