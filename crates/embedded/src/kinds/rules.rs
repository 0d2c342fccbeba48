//! Small rules that many kinds share.

use serde_json::Value;

use super::get::Get;
use super::names::{check, label_value, percent, qualified_name, range_text};
use crate::field_error::FieldError;

/// The value must be one of a few; an empty one is missing.
pub(crate) fn one_of(errors: &mut Vec<FieldError>, field: String, value: &Value, accepted: &[&str]) {
    let text = value.as_str().unwrap_or_default();
    if text.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !accepted.contains(&text) {
        errors.push(FieldError::not_supported(field, value, accepted));
    }
}

/// The value must be one of a few; an empty one is not.
pub(crate) fn supported(errors: &mut Vec<FieldError>, field: String, value: &Value, accepted: &[&str]) {
    let text = value.as_str().unwrap_or_default();
    if !accepted.contains(&text) {
        errors.push(FieldError::not_supported(field, &Value::from(text), accepted));
    }
}

/// A text that has to be there.
pub(crate) fn needed(errors: &mut Vec<FieldError>, field: String, text: &str) -> bool {
    if text.is_empty() {
        errors.push(FieldError::required(field, ""));
    }
    !text.is_empty()
}

/// A number that may not be negative; a missing one is zero.
pub(crate) fn not_negative(errors: &mut Vec<FieldError>, field: String, value: &Value) {
    if value.as_i64().is_some_and(|number| number < 0) {
        errors.push(FieldError::invalid(field, value, "must be greater than or equal to 0"));
    }
}

/// A port's number.
pub(crate) fn port_number(errors: &mut Vec<FieldError>, field: String, number: i64) {
    if !(1..=65535).contains(&number) {
        errors.push(FieldError::invalid(field, &Value::from(number), range_text(1, 65535)));
    }
}

/// A count or a percentage.
pub(crate) fn count_or_percent(errors: &mut Vec<FieldError>, field: &str, value: &Value) {
    match value {
        Value::String(text) => check(errors, field, text, percent),
        Value::Number(_) => not_negative(errors, field.to_owned(), value),
        _ => {}
    }
}

/// A percentage above one hundred.
pub(crate) fn at_most_all(errors: &mut Vec<FieldError>, field: &str, value: &Value) {
    let number =
        value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<i64>().ok());
    if number.is_some_and(|number| number > 100) {
        errors.push(FieldError::invalid(field, value, "must not be greater than 100%"));
    }
}

/// A label selector.
pub(crate) fn label_selector(errors: &mut Vec<FieldError>, field: &str, selector: &Value) {
    super::metadata::labels(selector, "matchLabels", &format!("{field}.matchLabels"), errors);
    for (index, requirement) in selector.list("matchExpressions").iter().enumerate() {
        let field = format!("{field}.matchExpressions[{index}]");
        let values = requirement.list("values");
        match requirement.text("operator") {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                    errors.push(FieldError::required(format!("{field}.values"), detail));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    errors.push(FieldError::forbidden(format!("{field}.values"), detail));
                }
            }
            other => {
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid(format!("{field}.operator"), &Value::from(other), detail));
            }
        }
        check(errors, format!("{field}.key"), requirement.text("key"), qualified_name);
        for (index, value) in values.iter().enumerate() {
            let field = format!("{field}.values[{index}]");
            check(errors, field, value.as_str().unwrap_or_default(), label_value);
        }
    }
}

/// Whether a label selector selects these labels. An empty selector selects everything.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let all_labels = selector.entries("matchLabels").all(|(key, value)| labels.get(key) == Some(value));
    all_labels
        && selector.list("matchExpressions").iter().all(|requirement| {
            let value = labels.get(requirement.text("key"));
            let listed = value.is_some_and(|value| requirement.list("values").contains(value));
            match requirement.text("operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// A field that may not change, compared as it is written.
pub(crate) fn unchanged(errors: &mut Vec<FieldError>, field: &str, new: &Value, old: &Value) {
    if new != old {
        errors.push(FieldError::invalid(field, new, "field is immutable"));
    }
}

/// An address as fields from before its rules were strict take it.
pub(crate) fn ip_address(errors: &mut Vec<FieldError>, field: String, text: &str) {
    if text.parse::<std::net::IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(FieldError::invalid(field, &Value::from(text), detail));
    }
}

/// A mistake that shows a whole selector, its fields in the order of Go's type.
pub(crate) fn invalid_selector(field: &str, selector: &Value, detail: &str) -> FieldError {
    let mut error = FieldError::invalid(field, selector, detail);
    error.shown = Some(super::shape::written("meta.LabelSelector", selector));
    error
}
