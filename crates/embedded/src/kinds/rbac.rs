//! Rules on roles and their bindings.

use serde_json::Value;

use super::get::Get;
use super::names::{check, dns_subdomain, path_segment};
use super::rules::{label_selector, needed, supported};
use crate::field_error::FieldError;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Rules on a new object, metadata aside.
pub(super) fn validate(kind: &str, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match kind {
        "Role" => rules(&mut errors, object, true),
        "ClusterRole" => {
            rules(&mut errors, object, false);
            aggregation(&mut errors, object);
        }
        "RoleBinding" => binding(&mut errors, object, true),
        "ClusterRoleBinding" => binding(&mut errors, object, false),
        _ => {}
    }
    errors
}

/// Rules on a changed object, metadata aside.
pub(super) fn validate_update(kind: &str, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = validate(kind, object);
    if object.at("roleRef") != old.at("roleRef") {
        let reference = object.at("roleRef");
        let mut error = FieldError::invalid("roleRef", reference, "cannot change roleRef");
        // Shown with the names of Go's own type.
        error.shown = Some(format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            reference.at("apiGroup"),
            reference.at("kind"),
            reference.at("name")
        ));
        errors.push(error);
    }
    errors
}

fn rules(errors: &mut Vec<FieldError>, role: &Value, namespaced: bool) {
    for (index, rule) in role.list("rules").iter().enumerate() {
        let field = format!("rules[{index}]");
        if rule.list("verbs").is_empty() {
            let detail = "verbs must contain at least one value";
            errors.push(FieldError::required(format!("{field}.verbs"), detail));
        }
        let urls = rule.at("nonResourceURLs");
        if !rule.list("nonResourceURLs").is_empty() {
            let field = format!("{field}.nonResourceURLs");
            if namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(field.clone(), urls, detail));
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|key| !rule.list(key).is_empty()) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(field, urls, detail));
            }
            continue;
        }
        if rule.list("apiGroups").is_empty() {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(format!("{field}.apiGroups"), detail));
        }
        if rule.list("resources").is_empty() {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(format!("{field}.resources"), detail));
        }
    }
}

fn aggregation(errors: &mut Vec<FieldError>, role: &Value) {
    const FIELD: &str = "aggregationRule.clusterRoleSelectors";
    if !role.has("aggregationRule") {
        return;
    }
    let selectors = role.list(FIELD);
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(FIELD, detail));
    }
    for (index, selector) in selectors.iter().enumerate() {
        label_selector(errors, &format!("{FIELD}[{index}]"), selector);
    }
}

fn binding(errors: &mut Vec<FieldError>, binding: &Value, namespaced: bool) {
    supported(errors, "roleRef.apiGroup".to_owned(), binding.at("roleRef.apiGroup"), &[GROUP]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    supported(errors, "roleRef.kind".to_owned(), binding.at("roleRef.kind"), kinds);
    let name = binding.text("roleRef.name");
    if needed(errors, "roleRef.name".to_owned(), name) {
        check(errors, "roleRef.name", name, path_segment);
    }
    for (index, subject) in binding.list("subjects").iter().enumerate() {
        let field = format!("subjects[{index}]");
        let name = subject.text("name");
        needed(errors, format!("{field}.name"), name);
        match subject.text("kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    check(errors, format!("{field}.name"), name, dns_subdomain);
                }
                supported(errors, format!("{field}.apiGroup"), subject.at("apiGroup"), &[""]);
                if !namespaced {
                    needed(errors, format!("{field}.namespace"), subject.text("namespace"));
                }
            }
            "User" | "Group" => {
                supported(errors, format!("{field}.apiGroup"), subject.at("apiGroup"), &[GROUP]);
            }
            _ => {
                let accepted = ["ServiceAccount", "User", "Group"];
                supported(errors, format!("{field}.kind"), subject.at("kind"), &accepted);
            }
        }
    }
}
