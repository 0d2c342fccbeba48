//! Built-in kinds against what a real API server answered.
//!
//! `tests/kinds/*.yaml` hold requests: an object made from one in `bases.yaml`, and changes of what was stored.
//! `tests/kinds/*.answers.json` hold the answers of a kube-apiserver v1.36, recorded by `crates/e2e/tests/kinds.rs`.

use embedded::kinds::{self, Context};
use embedded::refusal::{Refusal, Target};
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";
const UID: &str = "00000000-0000-0000-0000-000000000000";

macro_rules! files {
    ($name:literal) => {
        (
            include_str!(concat!("kinds/", $name, ".yaml")),
            include_str!(concat!("kinds/", $name, ".answers.json")),
        )
    };
}

#[test]
fn pods_are_stored_and_refused_as_by_a_real_server() {
    play(files!("pods"));
}

#[test]
fn workloads_are_stored_and_refused_as_by_a_real_server() {
    play(files!("workloads"));
}

#[test]
fn other_kinds_are_stored_and_refused_as_by_a_real_server() {
    play(files!("others"));
}

#[test]
fn no_object_is_so_odd_that_the_rules_panic() {
    let bases: Value = serde_saphyr::from_str(include_str!("kinds/bases.yaml")).expect("bases are YAML");
    let odd =
        [json!(null), json!(1), json!("x"), json!([]), json!({}), json!([1, "é"]), json!({"a": [null]})];
    for base in bases.as_object().expect("bases by name").values() {
        let Value::Object(stored) = create(base.clone()) else { continue };
        let stored = stored.get("stored").unwrap_or(base);
        for pointer in pointers(stored) {
            for value in &odd {
                let mut object = stored.clone();
                if let Some(place) = object.pointer_mut(&pointer) {
                    *place = value.clone();
                }
                exercise(base, &object, stored);
                exercise(base, stored, &object);
            }
        }
    }
}

/// Where all values of an object are.
fn pointers(value: &Value) -> Vec<String> {
    let escaped = |key: &String| key.replace('~', "~0").replace('/', "~1");
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (escaped(key), value)).collect(),
        Value::Array(list) => {
            list.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    let below = |(key, value): (String, &Value)| {
        let below = pointers(value).into_iter().map(|rest| format!("/{key}{rest}")).collect::<Vec<_>>();
        std::iter::once(format!("/{key}")).chain(below).collect::<Vec<_>>()
    };
    children.into_iter().flat_map(below).collect()
}

fn exercise(base: &Value, object: &Value, old: &Value) {
    let context = context(base);
    let mut created = object.clone();
    kinds::default(&context, &mut created, None);
    kinds::prepare_create(&context, &mut created);
    kinds::validate_metadata(&context, &created, true, true);
    kinds::validate_create(&context, &created);
    let mut updated = object.clone();
    kinds::prepare_update(&context, &mut updated, old);
    kinds::validate_metadata_update(&updated, old);
    kinds::validate_update(&context, &updated, old);
    let mut status = object.clone();
    kinds::prepare_status_update(&context, &mut status, old);
    kinds::validate_status_update(&context, &status, old);
    kinds::field_value(context.group, context.kind, object, "status.phase");
    kinds::qos_class(object);
    let mut pod = object.clone();
    let _ = kinds::admit_priority(&mut pod, Some(old));
    let mut crd = object.clone();
    kinds::crd::established(&mut crd, NOW);
    let now = NOW.parse().expect("a time");
    embedded::table::cells(context.group, context.kind, object, now);
    embedded::table::custom_cells(&json!([{"jsonPath": ".spec[0]", "type": "string"}]), object, now);
}

fn play((requests, answers): (&str, &str)) {
    let bases: Value = serde_saphyr::from_str(include_str!("kinds/bases.yaml")).expect("bases are YAML");
    let requests: Vec<Value> = serde_saphyr::from_str(requests).expect("requests are YAML");
    let answers: Vec<Value> = serde_json::from_str(answers).expect("answers are JSON");
    assert_eq!(requests.len(), answers.len(), "record the answers anew");
    let mut problems = Vec::new();
    for (request, answer) in requests.iter().zip(&answers) {
        assert_eq!(request["case"], answer["case"], "record the answers anew");
        let base = request["of"].as_str().and_then(|name| bases.get(name)).expect("the base is known");
        let mut object = base.clone();
        embedded::patch::merge_patch(
            &mut object,
            &request["with"].as_object().map_or(json!({}), |_| request["with"].clone()),
        );
        let expected = answer["answers"].as_array().expect("there are answers");
        compare(&mut problems, request, 0, &create(object), &expected[0]);
        let mut stored = expected[0]["stored"].clone();
        if let Some(row) = expected.last().and_then(|answer| answer.get("row")) {
            let last = expected.iter().rfind(|answer| answer["stored"].is_object()).expect("it was stored");
            rows(&mut problems, request, &last["stored"], row);
        }
        let steps = request["then"].as_array().cloned().unwrap_or_default();
        for (index, (step, expected)) in steps.iter().zip(&expected[1..]).enumerate() {
            let (verb, patch) = step.as_object().and_then(|step| step.iter().next()).expect("a step");
            let mut changed = stored.clone();
            embedded::patch::merge_patch(&mut changed, patch);
            compare(&mut problems, request, index + 1, &change(verb, changed, &stored), expected);
            if expected["stored"].is_object() {
                stored = expected["stored"].clone();
            }
        }
    }
    assert!(problems.is_empty(), "{} differences:\n\n{}", problems.len(), problems.join("\n\n"));
}

/// The object's line in a table. Ages are those of the day of the recording.
fn rows(problems: &mut Vec<String>, request: &Value, object: &Value, theirs: &Value) {
    let context = context(object);
    let now = NOW.parse().expect("a time");
    let mut ours = embedded::table::cells(context.group, context.kind, object, now);
    for cell in &mut ours {
        let is_age = |text: &str| {
            text.starts_with(|letter: char| letter.is_ascii_digit())
                && text.ends_with(|letter: char| "smhdy".contains(letter))
                && text.chars().all(|letter| letter.is_ascii_digit() || "smhdy".contains(letter))
        };
        if cell.as_str().is_some_and(is_age) {
            *cell = json!("AGE");
        }
    }
    if json!(ours) != *theirs {
        problems.push(format!("{} (row):\n- {}\n+ {theirs}", request["case"], json!(ours)));
    }
}

fn group(object: &Value) -> &str {
    object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group)
}

fn refused(context: &Context<'_>, object: &Value, errors: &[embedded::field_error::FieldError]) -> Value {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    // Events of both groups are refused as the older one.
    let group = if context.kind == "Event" { "" } else { context.group };
    let refusal = Refusal::invalid(group, context.kind, name, errors);
    json!({"code": refusal.code.as_u16(), "reason": refusal.reason, "message": refusal.message})
}

fn create(mut object: Value) -> Value {
    let copy = object.clone();
    let context = context(&copy);
    object["metadata"]["uid"] = json!(UID);
    object["metadata"]["creationTimestamp"] = json!(NOW);
    let own_account =
        ["serviceAccountName", "serviceAccount"].iter().any(|key| object["spec"].get(*key).is_some());
    kinds::default(&context, &mut object, None);
    if context.kind == "Pod"
        && let Err(why) = kinds::admit_priority(&mut object, None)
    {
        let refusal = Refusal::forbidden(Target { group: "", plural: "pods" }, "one", &why);
        return json!({"code": refusal.code.as_u16(), "reason": refusal.reason, "message": refusal.message});
    }
    kinds::prepare_create(&context, &mut object);
    let namespaced = object["metadata"].get("namespace").is_some();
    let mut errors = kinds::validate_metadata(&context, &object, namespaced, true);
    errors.extend(kinds::validate_create(&context, &object));
    if !errors.is_empty() {
        return refused(&context, &object, &errors);
    }
    // The recording server has no accounts.
    if context.kind == "Pod" && !own_account {
        for key in ["serviceAccountName", "serviceAccount"] {
            object["spec"].as_object_mut().expect("a pod has a spec").remove(key);
        }
    }
    json!({"stored": object})
}

fn change(verb: &str, mut object: Value, old: &Value) -> Value {
    if verb == "established" {
        kinds::crd::established(&mut object, NOW);
        return json!({"stored": object});
    }
    let copy = object.clone();
    let context = context(&copy);
    // The store's part.
    object["metadata"]["resourceVersion"] = json!("1");
    kinds::default(&context, &mut object, None);
    let mut errors;
    if verb == "status" {
        kinds::prepare_status_update(&context, &mut object, old);
        errors = kinds::validate_metadata_update(&object, old);
        errors.extend(kinds::validate_status_update(&context, &object, old));
    } else {
        kinds::prepare_update(&context, &mut object, old);
        errors = kinds::validate_metadata_update(&object, old);
        errors.extend(kinds::validate_update(&context, &object, old));
    }
    if !errors.is_empty() {
        return refused(&context, &object, &errors);
    }
    object["metadata"].as_object_mut().expect("objects have metadata").remove("resourceVersion");
    json!({"stored": object})
}

fn context(object: &Value) -> Context<'_> {
    Context {
        group: group(object),
        kind: object["kind"].as_str().unwrap_or_default(),
        namespace: object["metadata"]["namespace"].as_str().unwrap_or_default(),
        now: NOW,
    }
}

/// The parts of a message in some order: Go walks through maps as it likes. What differs in a changed object is
/// printed in another form.
fn parts(message: &Value) -> Vec<&str> {
    let message = message.as_str().unwrap_or_default();
    let message = message.split('\n').next().unwrap_or_default();
    let (_, message) = message.split_once("is invalid: ").unwrap_or(("", message));
    let message = message.strip_prefix('[').unwrap_or(message);
    let message = message.strip_suffix(']').unwrap_or(message);
    let mut parts: Vec<&str> = message.split(", ").collect();
    parts.sort_unstable();
    parts
}

fn compare(problems: &mut Vec<String>, request: &Value, step: usize, ours: &Value, theirs: &Value) {
    let same = match (ours.get("stored"), theirs.get("stored")) {
        (Some(ours), Some(theirs)) => ours == theirs,
        (None, None) => {
            ours["code"] == theirs["code"]
                && ours["reason"] == theirs["reason"]
                && parts(&ours["message"]) == parts(&theirs["message"])
        }
        _ => false,
    };
    if !same {
        let case = request["case"].as_str().unwrap_or_default();
        problems.push(format!("{case} ({step}):\n{}", difference("", ours, theirs).join("\n")));
    }
}

/// The lines in which two values differ, ours with `-`.
fn difference(path: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let part = |key: &String| {
                difference(
                    &format!("{path}.{key}"),
                    one.get(key).unwrap_or(&Value::Null),
                    other.get(key).unwrap_or(&Value::Null),
                )
            };
            let mut lines: Vec<String> = keys.into_iter().flat_map(part).collect();
            if lines.is_empty() && ours != theirs {
                lines.push(format!("{path}: null here and nothing there"));
            }
            lines
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .enumerate()
            .flat_map(|(index, (ours, theirs))| difference(&format!("{path}[{index}]"), ours, theirs))
            .collect(),
        _ if ours == theirs => Vec::new(),
        _ => vec![format!("- {path}: {ours}"), format!("+ {path}: {theirs}")],
    }
}
