//! Patches and managed fields against what a kube-apiserver v1.36 answered; `vectors/patches.json` was recorded
//! from one.

use embedded::patch::{Manager, apply, json_patch, merge_patch, strategic_merge_patch, track_update};
use embedded::refusal::Refusal;
use embedded::schema::{Library, Schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize)]
struct Vectors {
    thing: Value,
    sessions: Vec<Session>,
}

#[derive(Deserialize)]
struct Session {
    name: String,
    /// `thing` or apiVersion and kind of a type of Kubernetes' own.
    schema: Value,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(rename = "do")]
    verb: String,
    manager: String,
    subresource: String,
    force: bool,
    body: Value,
    before: Option<Value>,
    code: u16,
    result: Option<Value>,
    message: Option<String>,
    reason: Option<String>,
    details: Option<Value>,
}

impl Step {
    /// The API server itself sets these after the patch.
    fn without_server_fields(mut object: Value) -> Value {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for name in ["resourceVersion", "generation", "uid", "creationTimestamp"] {
                metadata.remove(name);
            }
        }
        object
    }

    /// The moment of the request, from the latest entry.
    fn now(&self) -> String {
        let entries = self.result.as_ref().and_then(|result| result.pointer("/metadata/managedFields"));
        let times = entries.and_then(Value::as_array).into_iter().flatten();
        times.filter_map(|entry| entry["time"].as_str()).max().unwrap_or("2024-01-01T00:00:00Z").to_owned()
    }

    fn run(&self, schema: &Schema) -> Result<Value, Refusal> {
        let now = self.now();
        let mut api_version = self.body["apiVersion"].as_str();
        if let Some(before) = &self.before {
            api_version = before["apiVersion"].as_str();
        }
        let manager = Manager {
            name: &self.manager,
            subresource: &self.subresource,
            api_version: api_version.unwrap_or_default(),
            now: &now,
            reset: if self.subresource == "status" { &["spec"] } else { &["status"] },
        };
        let mut object = self.before.clone().unwrap_or_default();
        match self.verb.as_str() {
            "create" => {
                // Defaults are not ours to fill in here.
                object = self.result.clone().unwrap_or_default();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
            }
            "update" => object = self.body.clone(),
            "merge" => merge_patch(&mut object, &self.body),
            "json" => json_patch(&mut object, &self.body)?,
            "strategic" => strategic_merge_patch(&mut object, &self.body, schema)?,
            "apply" => return apply(self.before.as_ref(), &self.body, &manager, self.force, schema),
            other => panic!("{other}"),
        }
        if self.subresource == "status" && self.before.is_some() {
            // Of a status patch only the status counts.
            let mut whole = self.before.clone().unwrap_or_default();
            whole["status"] = object["status"].take();
            object = whole;
        }
        if let Some(expected) = &self.result {
            default(&mut object, expected, schema);
        }
        track_update(self.before.as_ref(), &mut object, &manager, schema);
        Ok(object)
    }

    fn check(&self, schema: &Schema) -> Result<(), String> {
        let found = self.run(schema);
        match (&self.result, found) {
            (Some(expected), Ok(found)) => {
                let (expected, mut found) =
                    (Self::without_server_fields(expected.clone()), Self::without_server_fields(found));
                // What defaulting adds is not ours.
                let managed = |object: &Value| object["metadata"]["managedFields"].clone();
                if managed(&expected) != managed(&found) {
                    return Err(difference("managedFields", &managed(&expected), &managed(&found)));
                }
                default(&mut found, &expected, schema);
                if expected == found { Ok(()) } else { Err(difference("object", &expected, &found)) }
            }
            (None, Err(refusal)) => {
                let status = refusal.status();
                let expected = json!({"code": self.code, "message": self.message, "reason": self.reason});
                let found = json!({
                    "code": status["code"],
                    "message": status["message"],
                    "reason": status.get("reason"),
                });
                if expected != found {
                    return Err(difference("refusal", &expected, &found));
                }
                let sorted = |details: Option<&Value>| {
                    let mut causes: Vec<String> = details
                        .and_then(|details| details["causes"].as_array())
                        .into_iter()
                        .flatten()
                        .map(ToString::to_string)
                        .collect();
                    causes.sort();
                    json!(causes)
                };
                let (expected, found) = (sorted(self.details.as_ref()), sorted(status.get("details")));
                if expected == found { Ok(()) } else { Err(difference("causes", &expected, &found)) }
            }
            (Some(_), Err(refusal)) => Err(format!("  refused: {}", refusal.message)),
            // What is wrong with the patched object is found out later.
            (None, Ok(_)) if self.code == 404 || self.code == 415 => Ok(()),
            (None, Ok(_)) => match &self.message {
                Some(message) if message.contains("is invalid") => Ok(()),
                message => Err(format!("  expected: {message:?}\n  got: accepted")),
            },
        }
    }
}

fn difference(what: &str, expected: &Value, found: &Value) -> String {
    format!("  {what}\n  expected: {expected}\n  got:      {found}")
}

/// Fills in defaults; those of Kubernetes' own types are not in their schemas and are taken from the answer.
fn default(object: &mut Value, expected: &Value, schema: &Schema) {
    if expected["apiVersion"] == "schema.test/v1" {
        schema.prune(object);
        schema.apply_defaults(object);
    } else {
        add_defaults(object, expected);
    }
}

/// Adds what only defaulting can have added: fields of objects that a patch made.
fn add_defaults(found: &mut Value, expected: &Value) {
    const DEFAULTS: [&str; 9] = [
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "resources",
        "protocol",
        "type",
        "allocatable",
        "lastHeartbeatTime",
        "lastTransitionTime",
    ];
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let missing: Map<String, Value> = expected
                .iter()
                .filter(|(name, _)| DEFAULTS.contains(&name.as_str()) && !found.contains_key(*name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            found.extend(missing);
            for (name, value) in found.iter_mut() {
                if let Some(expected) = expected.get(name) {
                    add_defaults(value, expected);
                }
            }
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.iter_mut().zip(expected).for_each(|(found, expected)| add_defaults(found, expected));
        }
        _ => {}
    }
}

#[test]
fn patches_and_managed_fields_are_as_on_a_real_server() {
    let vectors: Vectors = serde_json::from_str(include_str!("vectors/patches.json")).unwrap();
    let thing = Schema::compile(&vectors.thing, "spec.validation.openAPIV3Schema").unwrap();
    let mut problems = vec![];
    let mut steps = 0;
    for session in &vectors.sessions {
        let schema = match session.schema.as_object() {
            None => thing.clone(),
            Some(kind) => {
                let text = |name: &str| kind[name].as_str().unwrap();
                Library::built_in().kind(text("apiVersion"), text("kind")).unwrap()
            }
        };
        for (index, step) in session.steps.iter().enumerate() {
            steps += 1;
            if let Err(problem) = step.check(&schema) {
                problems.push(format!(
                    "{} step {index} ({} by {}): {}\n{problem}",
                    session.name, step.verb, step.manager, step.body
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{} of {steps}:\n{}", problems.len(), problems.join("\n"));
}
