//! Definitions of custom resources: their names, versions and conditions. Their schemas are checked elsewhere.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::get::{Get, child, set_empty, set_missing};
use super::names::{dns_1035_label, dns_subdomain};
use super::rules::{needed, one_of, unchanged};
use crate::field_error::FieldError;

/// Names that follow from others, and how versions are converted.
pub(super) fn fill(map: &mut Map<String, Value>) {
    let Some(spec) = child(map, "spec") else { return };
    set_missing(spec, "conversion", json!({"strategy": "None"}));
    let Some(names) = child(spec, "names") else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !kind.is_empty() {
        set_empty(names, "singular", kind.to_lowercase());
        set_empty(names, "listKind", format!("{kind}List"));
    }
}

/// Adds the storage version to the versions that objects were stored in.
pub(super) fn stored_versions(crd: &mut Value) {
    let storage = crd.list("spec.versions").iter().find(|version| version.flag("storage"));
    let Some(name) = storage.map(|version| version.at("name").clone()) else { return };
    let Some(status) = crd.as_object_mut().and_then(|map| child(map, "status")) else { return };
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    match stored {
        Value::Array(list) if list.contains(&name) => {}
        Value::Array(list) => list.push(name),
        other => *other = json!([name]),
    }
}

/// Accepts the definition's names and declares it ready to be served.
pub fn established(crd: &mut Value, now: &str) {
    let names = crd.at("spec.names").clone();
    stored_versions(crd);
    let Some(status) = crd.as_object_mut().and_then(|map| child(map, "status")) else { return };
    status.insert("acceptedNames".to_owned(), names);
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return };
    for (kind, reason, message) in [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ] {
        let condition = json!({
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": now,
        });
        match list.iter_mut().find(|condition| condition.text("type") == kind) {
            Some(known) if known.text("status") == "True" => {}
            Some(known) => *known = condition,
            None => list.push(condition),
        }
    }
}

fn joined(errors: &mut Vec<FieldError>, field: String, text: &str, wrong: &[String]) {
    if !wrong.is_empty() {
        errors.push(FieldError::invalid(field, &Value::from(text), wrong.join(",")));
    }
}

/// Rules on a new definition, metadata and schemas aside.
pub(super) fn validate(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    name(&mut errors, crd);
    spec(&mut errors, crd.at("spec"));
    kept_versions(&mut errors, crd);
    errors
}

/// Rules on a changed definition, metadata and schemas aside.
pub(super) fn validate_update(crd: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (new, before) = (crd.at("spec"), old.at("spec"));
    spec(&mut errors, new);
    let established = old
        .list("status.conditions")
        .iter()
        .any(|condition| condition.text("type") == "Established" && condition.text("status") == "True");
    if established {
        unchanged(&mut errors, "spec.scope", new.at("scope"), before.at("scope"));
        unchanged(&mut errors, "spec.names.kind", new.at("names.kind"), before.at("names.kind"));
    }
    unchanged(&mut errors, "spec.group", new.at("group"), before.at("group"));
    unchanged(&mut errors, "spec.names.plural", new.at("names.plural"), before.at("names.plural"));
    kept_versions(&mut errors, crd);
    errors
}

fn name(errors: &mut Vec<FieldError>, crd: &Value) {
    let expected = format!("{}.{}", crd.text("spec.names.plural"), crd.text("spec.group"));
    let name = crd.text("metadata.name");
    if !name.is_empty() && name != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group".to_owned();
        errors.push(FieldError::invalid("metadata.name", &Value::from(name), detail));
    }
}

fn spec(errors: &mut Vec<FieldError>, spec: &Value) {
    let group = spec.text("group");
    if needed(errors, "spec.group".to_owned(), group) {
        let wrong = dns_subdomain(group);
        if wrong.is_empty() && !group.contains('.') {
            let detail = "should be a domain with at least one dot";
            errors.push(FieldError::invalid("spec.group", &Value::from(group), detail));
        }
        joined(errors, "spec.group".to_owned(), group, &wrong);
    }
    one_of(errors, "spec.scope".to_owned(), spec.at("scope"), &["Cluster", "Namespaced"]);
    let versions = spec.list("versions");
    for (index, version) in versions.iter().enumerate() {
        if !version.has("schema.openAPIV3Schema") {
            errors.push(FieldError::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), ""));
        }
    }
    // What all versions have in common is looked at once, and said to be in the spec itself.
    let common = |key: &str| {
        versions
            .windows(2)
            .all(|pair| pair.first().map(|one| one.at(key)) == pair.last().map(|one| one.at(key)))
    };
    let common_columns = common("additionalPrinterColumns");
    for (index, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{index}]");
        self::version(errors, &field, version);
        if !common_columns {
            columns(errors, &field, version);
        }
    }
    let names: BTreeSet<&str> = versions.iter().map(|version| version.text("name")).collect();
    if names.len() != versions.len() {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid("spec.versions", spec.at("versions"), detail));
    }
    if versions.iter().filter(|version| version.flag("storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", spec.at("versions"), detail));
    }
    if let Some(first) = versions.first() {
        let name = first.text("name");
        joined(errors, "spec.version".to_owned(), name, &dns_1035_label(name));
    }
    self::names(errors, spec.at("names"));
    if common_columns && let Some(first) = versions.first() {
        columns(errors, "spec", first);
    }
    let strategy = spec.at("conversion.strategy");
    one_of(errors, "spec.conversion.strategy".to_owned(), strategy, &["None", "Webhook"]);
    if strategy == "Webhook" {
        if !spec.has("conversion.webhook.clientConfig") {
            let detail = "required when strategy is set to Webhook";
            errors.push(FieldError::required("spec.conversion.webhookClientConfig", detail));
        }
        if spec.list("conversion.webhook.conversionReviewVersions").is_empty() {
            errors.push(FieldError::required("spec.conversion.conversionReviewVersions", ""));
        }
    }
}

fn version(errors: &mut Vec<FieldError>, field: &str, version: &Value) {
    let name = version.text("name");
    joined(errors, format!("{field}.name"), name, &dns_1035_label(name));
    if !version.flag("deprecated") && version.has("deprecationWarning") {
        let detail = "can only be set for deprecated versions";
        let warning = version.at("deprecationWarning");
        errors.push(FieldError::invalid(format!("{field}.deprecationWarning"), warning, detail));
    }
}

fn columns(errors: &mut Vec<FieldError>, field: &str, version: &Value) {
    for (index, column) in version.list("additionalPrinterColumns").iter().enumerate() {
        self::column(errors, &format!("{field}.additionalPrinterColumns[{index}]"), column);
    }
}

fn column(errors: &mut Vec<FieldError>, field: &str, column: &Value) {
    needed(errors, format!("{field}.name"), column.text("name"));
    let kinds = ["boolean", "date", "integer", "number", "string"];
    let kind = column.text("type");
    if kind.is_empty() {
        let detail = format!("must be one of {}", kinds.join(","));
        errors.push(FieldError::required(format!("{field}.type"), detail));
    } else if !kinds.contains(&kind) {
        let detail = format!("must be one of {}", kinds.join(","));
        errors.push(FieldError::invalid(format!("{field}.type"), column.at("type"), detail));
    }
    let formats = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let format = column.text("format");
    if !format.is_empty() && !formats.contains(&format) {
        let detail = format!("must be one of {}", formats.join(","));
        errors.push(FieldError::invalid(format!("{field}.format"), column.at("format"), detail));
    }
    let path = column.text("jsonPath");
    if path.is_empty() {
        errors.push(FieldError::required(format!("{field}.JSONPath"), ""));
    } else if !path.starts_with('.') {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(format!("{field}.JSONPath"), column.at("jsonPath"), detail));
    }
}

fn names(errors: &mut Vec<FieldError>, names: &Value) {
    for key in ["plural", "singular", "kind", "listKind"] {
        needed(errors, format!("spec.names.{key}"), names.text(key));
    }
    let label = |errors: &mut Vec<FieldError>, field: String, text: &str| {
        joined(errors, field, text, &dns_1035_label(text));
    };
    for key in ["plural", "singular"] {
        let text = names.text(key);
        if !text.is_empty() {
            label(errors, format!("spec.names.{key}"), text);
        }
    }
    for key in ["kind", "listKind"] {
        let text = names.text(key);
        if !text.is_empty() {
            let wrong = dns_1035_label(&text.to_lowercase());
            if !wrong.is_empty() {
                let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                errors.push(FieldError::invalid(format!("spec.names.{key}"), &Value::from(text), detail));
            }
        }
    }
    for (index, short) in names.list("shortNames").iter().filter_map(Value::as_str).enumerate() {
        label(errors, format!("spec.names.shortNames[{index}]"), short);
    }
    let (kind, list) = (names.text("kind"), names.text("listKind"));
    if !kind.is_empty() && kind == list {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &Value::from(list), detail));
    }
    for (index, category) in names.list("categories").iter().filter_map(Value::as_str).enumerate() {
        label(errors, format!("spec.names.categories[{index}]"), category);
    }
}

/// Versions that objects were stored in must stay.
fn kept_versions(errors: &mut Vec<FieldError>, crd: &Value) {
    const FIELD: &str = "status.storedVersions";
    let stored = crd.list(FIELD);
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        return errors.push(FieldError::invalid(FIELD, crd.at(FIELD), detail));
    }
    let versions = crd.list("spec.versions");
    for version in versions {
        if version.flag("storage") && !stored.contains(version.at("name")) {
            let detail = format!("must have the storage version {}", version.text("name"));
            errors.push(FieldError::invalid(FIELD, crd.at(FIELD), detail));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version.at("name") == name) {
            let text = name.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {text} and removes \
                 {text} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{FIELD}[{index}]"), name, detail));
        }
    }
}
