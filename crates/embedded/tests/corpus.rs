//! The corpus of the CRDs' conformance tests, which a real API server judges, judged by our schemas.

#[path = "../../e2e/tests/crds/corpus.rs"]
mod corpus;

use anyhow::{Context as _, Result};
use api::provider::Provider;
use embedded::refusal::Refusal;
use embedded::schema::Schema;
use serde_json::{Value, json};

use crate::corpus::{Case, File, Verdict};

/// One served version of a CRD.
struct Version {
    full_name: String,
    kind: String,
    group: String,
    schema: Schema,
}

fn versions(provider: Provider) -> Result<Vec<Version>> {
    let mut versions = vec![];
    for crd in api::crds::documents(provider) {
        let crd = crd.document;
        let text =
            |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        for version in crd["spec"]["versions"].as_array().context("a CRD has versions")? {
            let path = "spec.validation.openAPIV3Schema";
            let schema = Schema::compile(&version["schema"]["openAPIV3Schema"], path)
                .map_err(|errors| anyhow::anyhow!("{}: {errors:?}", text("/metadata/name")))?;
            let name = version["name"].as_str().context("a version has a name")?;
            let group = text("/spec/group");
            let full_name = format!("{group}/{name}");
            versions.push(Version { full_name, kind: text("/spec/names/kind"), group, schema });
        }
    }
    Ok(versions)
}

impl Version {
    /// Takes an object in as the API server does; what is refused comes back as its message.
    fn store(&self, mut object: Value, old: Option<&Value>, is_status: bool) -> Result<Value, String> {
        if old.is_none()
            && let Some(object) = object.as_object_mut()
        {
            object.remove("status");
        }
        let unknown = self.schema.prune(&mut object);
        if !unknown.is_empty() {
            let fields: Vec<_> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
            return Err(format!("strict decoding error: {}", fields.join(", ")));
        }
        self.schema.apply_defaults(&mut object);
        let errors = if is_status {
            self.schema.validate_status(&object, old)
        } else {
            self.schema.validate(&object, old)
        };
        if errors.is_empty() {
            return Ok(object);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Err(Refusal::invalid(&self.group, &self.kind, name, &errors).message)
    }

    fn run(&self, file: &File, case: &Case) -> Result<(), String> {
        let mut object = case.object(file);
        object["apiVersion"] = json!(self.full_name);
        let outcome = if case.is_about_creation() {
            self.store(object, None, false)
        } else {
            let created =
                self.store(object, None, false).map_err(|message| format!("not created: {message}"))?;
            let mut changed = created.clone();
            let change = case.update.clone().unwrap_or_else(|| json!({"status": case.status}));
            corpus::merge(&mut changed, &change);
            self.store(changed, Some(&created), case.status.is_some())
        };
        match (case.verdict(), outcome) {
            (Verdict::Accepted, Ok(stored)) => {
                case.stored.as_ref().map_or(Ok(()), |expected| contains(&stored, expected, "the object"))
            }
            (Verdict::Refused(texts), Err(message)) => {
                match texts.iter().find(|text| !message.contains(*text)) {
                    Some(text) => Err(format!("  expected: {text}\n  got: {message}")),
                    None => Ok(()),
                }
            }
            (Verdict::Accepted, Err(message)) => Err(format!("  expected: accepted\n  got: {message}")),
            (Verdict::Refused(texts), Ok(_)) => Err(format!("  expected: {texts:?}\n  got: accepted")),
        }
    }
}

/// Whether all of `expected` is in `found`; null means that nothing is there.
fn contains(found: &Value, expected: &Value, place: &str) -> Result<(), String> {
    match (expected, found) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().try_for_each(|(key, value)| {
            contains(found.get(key).unwrap_or(&Value::Null), value, &format!("{place}.{key}"))
        }),
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => items
            .iter()
            .zip(others)
            .enumerate()
            .try_for_each(|(i, (item, other))| contains(other, item, &format!("{place}[{i}]"))),
        _ if expected == found => Ok(()),
        _ => Err(format!("  expected: {place} to be {expected}\n  got: {found}")),
    }
}

fn objects_are_judged_as_by_a_real_server(provider: Provider) {
    let versions = versions(provider).expect("the CRDs compile");
    let mut problems = vec![];
    let mut cases = 0;
    for file in corpus::load(provider).expect("the corpus can be read") {
        let of_file = |version: &&Version| {
            let group = file.object["apiVersion"].as_str().unwrap_or_default().split('/').next();
            group == Some(&version.group) && file.object["kind"] == version.kind
        };
        for version in versions.iter().filter(of_file) {
            for case in &file.cases {
                // A case with a version of its own is about that version only.
                let api_version = &case.object(&file)["apiVersion"];
                if *api_version != file.object["apiVersion"] && *api_version != version.full_name {
                    continue;
                }
                cases += 1;
                if let Err(problem) = version.run(&file, case) {
                    problems.push(format!("{} ({}): {}\n{problem}", file.name, version.full_name, case.name));
                }
            }
        }
    }
    assert!(cases > 100, "{cases} cases");
    assert!(problems.is_empty(), "{} of {cases}:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn the_simulations_objects_are_judged_as_by_a_real_server() {
    objects_are_judged_as_by_a_real_server(Provider::Kwok);
}

#[test]
fn aws_objects_are_judged_as_by_a_real_server() {
    objects_are_judged_as_by_a_real_server(Provider::Aws);
}

#[test]
fn azure_objects_are_judged_as_by_a_real_server() {
    objects_are_judged_as_by_a_real_server(Provider::Azure);
}
