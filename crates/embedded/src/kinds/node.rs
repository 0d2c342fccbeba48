//! Rules on nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::get::Get;
use super::names::{check, label_value, qualified_name};
use super::pod;
use crate::field_error::{FieldError, Mistake};

/// Rules on a new node, metadata aside.
pub(super) fn validate(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    taints(&mut errors, node.list("spec.taints"));
    resources(&mut errors, node);
    let ranges = node.list("spec.podCIDRs");
    for (index, range) in ranges.iter().enumerate() {
        cidr(&mut errors, format!("spec.podCIDRs[{index}]"), range);
    }
    if ranges.len() > 1 {
        let six = ranges.iter().filter(|range| range.as_str().is_some_and(|text| text.contains(':'))).count();
        if ranges.len() > 2 || six != 1 {
            let detail = "may specify no more than one CIDR for each IP family";
            errors.push(FieldError::invalid("spec.podCIDRs", node.at("spec.podCIDRs"), detail));
        }
    }
    errors
}

/// Rules on a changed node or its changed status, metadata aside.
pub(super) fn validate_update(node: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    resources(&mut errors, node);
    let mut addresses = Vec::new();
    for (index, address) in node.list("status.addresses").iter().enumerate() {
        if addresses.contains(&address) {
            let mut error = FieldError::duplicate(format!("status.addresses[{index}]"), address);
            // Shown with the names of Go's own type.
            error.shown =
                Some(format!("{{\"Type\":{},\"Address\":{}}}", address.at("type"), address.at("address")));
            errors.push(error);
        }
        addresses.push(address);
    }
    let before = old.list("spec.podCIDRs");
    let detail = "node updates may not change podCIDR except from \"\" to valid";
    if !before.is_empty() {
        let now = node.list("spec.podCIDRs");
        let changes = if now.len() == before.len() {
            now.iter().zip(before).filter(|(a, b)| a != b).count()
        } else {
            1
        };
        for _ in 0..changes {
            errors.push(FieldError::forbidden("spec.podCIDRs", detail));
        }
    }
    let provider = old.text("spec.providerID");
    if !provider.is_empty() && node.text("spec.providerID") != provider {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden("spec.providerID", detail));
    }
    taints(&mut errors, node.list("spec.taints"));
    errors
}

/// The API server says that taints are in the metadata.
fn taints(errors: &mut Vec<FieldError>, taints: &[Value]) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let field = format!("metadata.taints[{index}]");
        check(errors, format!("{field}.key"), taint.text("key"), qualified_name);
        let wrong = label_value(taint.text("value"));
        if !wrong.is_empty() {
            let value = Value::from(taint.text("value"));
            errors.push(FieldError::invalid(format!("{field}.value"), &value, wrong.join(";")));
        }
        pod::taint_effect(errors, format!("{field}.effect"), taint.at("effect"));
        if !seen.insert((taint.text("effect"), taint.text("key"))) {
            errors.push(FieldError {
                mistake: Mistake::Duplicate,
                field,
                shown: Some(format!(
                    "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
                    taint.at("key"),
                    Value::from(taint.text("value")),
                    taint.at("effect"),
                    taint.at("timeAdded")
                )),
                detail: "taints must be unique by key and effect pair".to_owned(),
            });
        }
    }
}

fn resources(errors: &mut Vec<FieldError>, node: &Value) {
    for list in ["capacity", "allocatable"] {
        for (name, value) in node.at("status").entries(list) {
            pod::resource_amount(errors, &format!("status.{list}.{name}"), name, value);
        }
    }
}

fn cidr(errors: &mut Vec<FieldError>, field: String, range: &Value) {
    let text = range.as_str().unwrap_or_default();
    let good = text.split_once('/').is_some_and(|(address, bits)| {
        let most = match address.parse::<std::net::IpAddr>() {
            Ok(std::net::IpAddr::V4(_)) => 32,
            Ok(std::net::IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    });
    if !good {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.push(FieldError::invalid(field, range, detail));
    }
}
