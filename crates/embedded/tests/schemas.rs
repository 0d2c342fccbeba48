//! Schemas of CRDs against what a kube-apiserver v1.36 answered; `vectors/schemas.json` was recorded from one.

use embedded::schema::Schema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    schema: Value,
    errors: Vec<Value>,
}

#[test]
fn schemas_are_refused_in_the_real_servers_words() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("vectors/schemas.json")).unwrap();
    let mut problems = vec![];
    for case in &cases {
        let errors =
            Schema::compile(&case.schema, "spec.validation.openAPIV3Schema").err().unwrap_or_default();
        let found = errors.iter().map(|error| {
            json!({"field": error.field, "reason": error.mistake.reason(), "message": error.body()})
                .to_string()
        });
        let mut found: Vec<_> = found.collect();
        let mut expected: Vec<_> = case.errors.iter().map(ToString::to_string).collect();
        // Siblings come in no particular order.
        found.sort();
        expected.sort();
        if found != expected {
            let (expected, found) = (expected.join("\n    "), found.join("\n    "));
            problems.push(format!("{}\n  expected:\n    {expected}\n  got:\n    {found}", case.schema));
        }
    }
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), cases.len(), problems.join("\n"));
}
