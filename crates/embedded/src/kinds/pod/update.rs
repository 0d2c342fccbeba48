//! What may change in a pod.

use serde_json::{Value, json};

use super::super::get::{Get, take_over};
use super::super::names::range_text;
use super::scheduling::tolerations;
use super::validate::metadata_and_spec;
use crate::field_error::FieldError;

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                          `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only \
                          additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be \
                          set to 1 if it was previously negative)";

/// Rules on a changed pod, metadata aside.
pub(in crate::kinds) fn validate_update(pod: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    metadata_and_spec(pod, &mut errors);
    mirror_annotation(&mut errors, pod, old);
    let (new, before) = (pod.at("spec"), old.at("spec"));
    for list in ["containers", "initContainers"] {
        if new.list(list).len() != before.list(list).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(format!("spec.{list}"), detail));
            return errors;
        }
    }
    if !deadline(&mut errors, new, before) {
        return errors;
    }
    let kept = before.list("tolerations").iter().all(|old| {
        new.list("tolerations").iter().any(|toleration| {
            let mut same = old.clone();
            take_over(&mut same, toleration, "tolerationSeconds");
            same == *toleration
        })
    });
    if kept {
        tolerations(&mut errors, "spec.tolerations", new);
    } else {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", detail));
    }
    added_gates(&mut errors, new, before);
    let mut munged = with_changeable(new, before);
    if !before.list("schedulingGates").is_empty() {
        gated(&mut errors, &mut munged, before);
    }
    if munged != *before {
        errors.push(FieldError::forbidden("spec", format!("{CHANGEABLE}\n{}", difference(before, &munged))));
    }
    errors
}

/// The new spec with everything that may change as it was.
fn with_changeable(new: &Value, before: &Value) -> Value {
    let mut munged = new.clone();
    for list in ["containers", "initContainers"] {
        let old = before.list(list);
        for (container, old) in
            munged.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().zip(old)
        {
            take_over(container, old, "image");
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        take_over(&mut munged, before, key);
    }
    let grace = "terminationGracePeriodSeconds";
    if before.number(grace).is_some_and(|grace| grace < 0) && new.number(grace) == Some(1) {
        take_over(&mut munged, before, grace);
    }
    munged
}

fn mirror_annotation(errors: &mut Vec<FieldError>, pod: &Value, old: &Value) {
    const KEY: &str = "kubernetes.io/config.mirror";
    let (new, before) = (pod.at("metadata.annotations").get(KEY), old.at("metadata.annotations").get(KEY));
    let detail = match (before, new) {
        (Some(before), new) if new != Some(before) => "may not remove or update mirror pod annotation",
        (None, Some(_)) => "may not add mirror pod annotation",
        _ => return,
    };
    errors.push(FieldError::forbidden(format!("metadata.annotations[{KEY}]"), detail));
}

fn deadline(errors: &mut Vec<FieldError>, new: &Value, before: &Value) -> bool {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    let most = i64::from(i32::MAX);
    match (new.number("activeDeadlineSeconds"), before.number("activeDeadlineSeconds")) {
        (Some(seconds), _) if !(0..=most).contains(&seconds) => {
            errors.push(FieldError::invalid(FIELD, &json!(seconds), range_text(0, most)));
            false
        }
        (Some(seconds), Some(old)) if old < seconds => {
            let detail = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(FIELD, &json!(seconds), detail));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(FIELD, &Value::Null, detail));
            true
        }
        _ => true,
    }
}

fn added_gates(errors: &mut Vec<FieldError>, new: &Value, before: &Value) {
    for (index, gate) in new.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        if !before.list("schedulingGates").iter().any(|old| old.text("name") == name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(format!("spec.schedulingGates[{index}].name"), detail));
        }
    }
}

/// While it is gated, a pod's choice of nodes may become narrower.
fn gated(errors: &mut Vec<FieldError>, munged: &mut Value, before: &Value) {
    let selector = munged.at("nodeSelector");
    if before.entries("nodeSelector").any(|(key, value)| selector.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid("spec.nodeSelector", selector, detail));
    }
    take_over(munged, before, "nodeSelector");

    let (new_affinity, old_affinity) =
        (munged.at("affinity.nodeAffinity").clone(), before.at("affinity.nodeAffinity"));
    if new_affinity != *old_affinity {
        node_affinity(errors, &new_affinity, old_affinity);
        let mut affinity = munged.at("affinity").clone();
        if affinity.is_null() {
            affinity = json!({});
        }
        take_over(&mut affinity, before.at("affinity"), "nodeAffinity");
        if affinity == json!({}) && !before.has("affinity") {
            affinity = Value::Null;
        }
        if let Some(map) = munged.as_object_mut() {
            map.remove("affinity");
            if !affinity.is_null() {
                map.insert("affinity".to_owned(), affinity);
            }
        }
    }
}

fn node_affinity(errors: &mut Vec<FieldError>, new: &Value, old: &Value) {
    const TERMS: &str = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let (terms, before) = (new.list(TERMS), old.list(TERMS));
    let field = format!("spec.affinity.nodeAffinity.{TERMS}");
    if before.is_empty() {
        return;
    }
    if terms.len() != before.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let mut error = FieldError::invalid(field, new.at(TERMS), detail);
        error.shown = Some(shown_terms(terms));
        errors.push(error);
        return;
    }
    for (index, (term, old)) in terms.iter().zip(before).enumerate() {
        let lists = ["matchExpressions", "matchFields"];
        let empty = lists.iter().all(|list| old.list(list).is_empty());
        let only_added = lists.iter().all(|list| term.list(list).starts_with(old.list(list)));
        let grown = lists.iter().any(|list| !term.list(list).is_empty());
        if !only_added || (empty && grown) {
            let detail = "only additions are allowed (no mutations or deletions)";
            let mut error = FieldError::invalid(format!("{field}[{index}]"), term, detail);
            error.shown = Some(shown_term(term));
            errors.push(error);
        }
    }
}

/// Terms are shown with the names of Go's own type.
fn shown_terms(terms: &[Value]) -> String {
    let list: Vec<String> = terms.iter().map(shown_term).collect();
    if list.is_empty() { "null".to_owned() } else { format!("[{}]", list.join(",")) }
}

fn shown_term(term: &Value) -> String {
    let list = |key: &str| {
        let all: Vec<String> = term
            .list(key)
            .iter()
            .map(|one| {
                format!(
                    "{{\"Key\":{},\"Operator\":{},\"Values\":{}}}",
                    one.at("key"),
                    one.at("operator"),
                    one.at("values")
                )
            })
            .collect();
        if all.is_empty() { "null".to_owned() } else { format!("[{}]", all.join(",")) }
    };
    format!("{{\"MatchExpressions\":{},\"MatchFields\":{}}}", list("matchExpressions"), list("matchFields"))
}

/// The differing fields of two specs, one pair of lines each.
pub(crate) fn difference(old: &Value, new: &Value) -> String {
    let keys: std::collections::BTreeSet<&String> =
        [old, new].into_iter().filter_map(Value::as_object).flat_map(|map| map.keys()).collect();
    let mut lines = Vec::new();
    for key in keys {
        let (old, new) = (old.get(key), new.get(key));
        if old != new {
            lines.extend(old.map(|value| format!("- {key}: {value}\n")));
            lines.extend(new.map(|value| format!("+ {key}: {value}\n")));
        }
    }
    lines.concat()
}

/// Rules on the ephemeral containers of a changed pod, metadata aside.
pub(in crate::kinds) fn validate_ephemeral_containers_update(pod: &Value, old: &Value) -> Vec<FieldError> {
    const FIELD: &str = "spec.ephemeralContainers";
    let mut errors = Vec::new();
    metadata_and_spec(pod, &mut errors);
    for before in old.list(FIELD) {
        let name = before.text("name");
        match pod.list(FIELD).iter().find(|container| container.text("name") == name) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(FIELD, detail));
            }
            Some(container) if container != before => {
                let difference = difference(before, container);
                let detail =
                    format!("existing ephemeral containers {name:?} may not be changed\n{difference}");
                errors.push(FieldError::forbidden(FIELD, detail));
            }
            Some(_) => {}
        }
    }
    errors
}
