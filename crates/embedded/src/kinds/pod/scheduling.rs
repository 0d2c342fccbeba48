//! Rules on where a pod may go: affinities, spreading, tolerations.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::get::Get;
use super::super::names::{check, dns_label, dns_subdomain, label_value, qualified_name};
use super::super::rules::{label_selector, supported};
use crate::field_error::FieldError;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Rules on all affinities.
pub(super) fn affinity(errors: &mut Vec<FieldError>, field: &str, affinity: &Value) {
    let nodes = affinity.at("nodeAffinity");
    if nodes.has(REQUIRED) {
        node_selector(errors, &format!("{field}.nodeAffinity.{REQUIRED}"), nodes.at(REQUIRED));
    }
    for (index, term) in nodes.list(PREFERRED).iter().enumerate() {
        let field = format!("{field}.nodeAffinity.{PREFERRED}[{index}]");
        weight(errors, &field, term);
        // Preferences may hold values that are no label's; they match nothing.
        terms(errors, &format!("{field}.preference"), term.at("preference"), false);
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.at(side);
        for (index, term) in pods.list(REQUIRED).iter().enumerate() {
            pod_term(errors, &format!("{field}.{side}.{REQUIRED}[{index}]"), term);
        }
        for (index, term) in pods.list(PREFERRED).iter().enumerate() {
            let field = format!("{field}.{side}.{PREFERRED}[{index}]");
            weight(errors, &field, term);
            pod_term(errors, &format!("{field}.podAffinityTerm"), term.at("podAffinityTerm"));
        }
    }
}

fn weight(errors: &mut Vec<FieldError>, field: &str, term: &Value) {
    let weight = term.number("weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        let value = Value::from(weight);
        errors.push(FieldError::invalid(format!("{field}.weight"), &value, "must be in the range 1-100"));
    }
}

/// A selector of nodes, which has at least one term.
pub(crate) fn node_selector(errors: &mut Vec<FieldError>, field: &str, selector: &Value) {
    let field = format!("{field}.nodeSelectorTerms");
    let list = selector.list("nodeSelectorTerms");
    if list.is_empty() {
        errors.push(FieldError::required(field.clone(), "must have at least one node selector term"));
    }
    for (index, term) in list.iter().enumerate() {
        terms(errors, &format!("{field}[{index}]"), term, true);
    }
}

fn terms(errors: &mut Vec<FieldError>, field: &str, term: &Value, check_values: bool) {
    for (index, requirement) in term.list("matchExpressions").iter().enumerate() {
        let field = format!("{field}.matchExpressions[{index}]");
        node_requirement(errors, &field, requirement, check_values);
    }
    for (index, requirement) in term.list("matchFields").iter().enumerate() {
        node_field(errors, &format!("{field}.matchFields[{index}]"), requirement);
    }
}

fn node_requirement(errors: &mut Vec<FieldError>, field: &str, requirement: &Value, check_values: bool) {
    let values = requirement.list("values");
    let path = format!("{field}.values");
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if values.is_empty() {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(path.clone(), detail));
            }
        }
        "Exists" | "DoesNotExist" => {
            if !values.is_empty() {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(path.clone(), detail));
            }
        }
        "Gt" | "Lt" => {
            if values.len() != 1 {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(path.clone(), detail));
            }
        }
        other => bad_operator(errors, field, other),
    }
    check(errors, format!("{field}.key"), requirement.text("key"), qualified_name);
    if check_values {
        for (index, value) in values.iter().enumerate() {
            check(errors, format!("{path}[{index}]"), value.as_str().unwrap_or_default(), label_value);
        }
    }
}

fn bad_operator(errors: &mut Vec<FieldError>, field: &str, operator: &str) {
    let field = format!("{field}.operator");
    errors.push(FieldError::invalid(field, &Value::from(operator), "not a valid selector operator"));
}

fn node_field(errors: &mut Vec<FieldError>, field: &str, requirement: &Value) {
    let values = requirement.list("values");
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if values.len() != 1 {
                let detail =
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(format!("{field}.values"), detail));
            }
        }
        other => bad_operator(errors, field, other),
    }
    if requirement.text("key") == "metadata.name" {
        for (index, value) in values.iter().enumerate() {
            let field = format!("{field}.values[{index}]");
            check(errors, field, value.as_str().unwrap_or_default(), dns_subdomain);
        }
    } else {
        let key = Value::from(requirement.text("key"));
        errors.push(FieldError::invalid(format!("{field}.key"), &key, "not a valid field selector key"));
    }
}

fn pod_term(errors: &mut Vec<FieldError>, field: &str, term: &Value) {
    label_selector(errors, &format!("{field}.labelSelector"), term.at("labelSelector"));
    label_selector(errors, &format!("{field}.namespaceSelector"), term.at("namespaceSelector"));
    for name in term.list("namespaces").iter().filter_map(Value::as_str) {
        check(errors, format!("{field}.namespace"), name, dns_label);
    }
    label_keys(errors, field, term);
    if term.text("topologyKey").is_empty() {
        errors.push(FieldError::required(format!("{field}.topologyKey"), "can not be empty"));
    }
    check(errors, format!("{field}.topologyKey"), term.text("topologyKey"), qualified_name);
}

/// Keys whose values come from the pod's own labels; they are in the selector already when this is asked.
fn label_keys(errors: &mut Vec<FieldError>, field: &str, term: &Value) {
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = term.list(list);
        if !keys.is_empty() && !term.has("labelSelector") {
            let detail = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(format!("{field}.{list}"), detail));
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            check(
                errors,
                format!("{field}.{list}[{index}]"),
                key.as_str().unwrap_or_default(),
                qualified_name,
            );
        }
    }
    let keys: Vec<&str> = term.list("matchLabelKeys").iter().filter_map(Value::as_str).collect();
    let mut seen: BTreeSet<&str> = term.entries("labelSelector.matchLabels").map(|(key, _)| key).collect();
    for expression in term.list("labelSelector.matchExpressions") {
        let key = expression.text("key");
        if !seen.insert(key)
            && let Some(index) = keys.iter().rposition(|one| *one == key)
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(format!("{field}[{index}]"), &Value::from(key), detail));
        }
    }
    for (index, key) in keys.iter().enumerate() {
        if term.list("mismatchLabelKeys").iter().any(|other| other == key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            let field = format!("{field}.matchLabelKeys[{index}]");
            errors.push(FieldError::invalid(field, &Value::from(*key), detail));
        }
    }
}

/// Rules on spreading.
pub(super) fn spread(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    let constraints = spec.list("topologySpreadConstraints");
    for (index, constraint) in constraints.iter().enumerate() {
        let field = format!("{field}[{index}]");
        positive(errors, format!("{field}.maxSkew"), constraint.number("maxSkew").unwrap_or_default());
        let (key, action) = (constraint.text("topologyKey"), constraint.text("whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(format!("{field}.topologyKey"), "can not be empty"));
        }
        let accepted = ["DoNotSchedule", "ScheduleAnyway"];
        supported(
            errors,
            format!("{field}.whenUnsatisfiable"),
            constraint.at("whenUnsatisfiable"),
            &accepted,
        );
        let rest = constraints.get(index + 1..).unwrap_or_default();
        if rest
            .iter()
            .any(|other| other.text("topologyKey") == key && other.text("whenUnsatisfiable") == action)
        {
            errors.push(FieldError::duplicate(
                format!("{field}.{{topologyKey, whenUnsatisfiable}}"),
                &Value::from(format!("{{{key}, {action}}}")),
            ));
        }
        if let Some(domains) = constraint.number("minDomains") {
            let field = format!("{field}.minDomains");
            positive(errors, field.clone(), domains);
            if action != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(field, &Value::from(domains), detail));
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if constraint.has(policy) {
                supported(errors, format!("{field}.{policy}"), constraint.at(policy), &["Honor", "Ignore"]);
            }
        }
        label_keys(errors, &field, constraint);
        label_selector(errors, &format!("{field}.labelSelector"), constraint.at("labelSelector"));
    }
}

fn positive(errors: &mut Vec<FieldError>, field: String, number: i64) {
    if number <= 0 {
        errors.push(FieldError::invalid(field, &Value::from(number), "must be greater than zero"));
    }
}

/// The effect of a taint.
pub(crate) fn taint_effect(errors: &mut Vec<FieldError>, field: String, effect: &Value) {
    super::super::rules::one_of(errors, field, effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
}

/// Rules on tolerations.
pub(super) fn tolerations(errors: &mut Vec<FieldError>, field: &str, spec: &Value) {
    for (index, toleration) in spec.list("tolerations").iter().enumerate() {
        let field = format!("{field}[{index}]");
        let (key, operator) = (toleration.text("key"), toleration.text("operator"));
        let (value, effect) = (toleration.text("value"), toleration.text("effect"));
        let invalid = |field: String, value: &str, detail: &str| {
            FieldError::invalid(field, &Value::from(value), detail)
        };
        if !key.is_empty() {
            check(errors, format!("{field}.key"), key, qualified_name);
        }
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(invalid(format!("{field}.operator"), operator, detail));
        }
        if toleration.has("tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(invalid(format!("{field}.effect"), effect, detail));
        }
        match operator {
            "Equal" | "" => {
                let wrong = label_value(value);
                if !wrong.is_empty() {
                    errors.push(invalid(format!("{field}.operator"), value, &wrong.join(";")));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(invalid(format!("{field}.operator"), value, detail));
                }
            }
            other => {
                // Comparing ones exist behind a gate, and are in the list only when they are what was asked for.
                let accepted = ["Equal", "Exists", "Lt", "Gt"];
                let accepted = if matches!(other, "Lt" | "Gt") { &accepted[..] } else { &accepted[..2] };
                let value = toleration.at("operator");
                errors.push(FieldError::not_supported(format!("{field}.operator"), value, accepted));
            }
        }
        if !effect.is_empty() {
            taint_effect(errors, format!("{field}.effect"), toleration.at("effect"));
        }
    }
}
