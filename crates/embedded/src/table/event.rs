//! What an event's line says.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age_at;
use crate::kinds::Get;

/// What the two groups call the same fields of an event.
pub(super) struct Names {
    first: &'static str,
    last: &'static str,
    count: &'static str,
    object: &'static str,
    source: &'static str,
    controller: &'static str,
    message: &'static str,
}

impl Names {
    pub(super) const OLD: Self = Self {
        first: "firstTimestamp",
        last: "lastTimestamp",
        count: "count",
        object: "involvedObject",
        source: "source",
        controller: "reportingComponent",
        message: "message",
    };
    pub(super) const NEW: Self = Self {
        first: "deprecatedFirstTimestamp",
        last: "deprecatedLastTimestamp",
        count: "deprecatedCount",
        object: "regarding",
        source: "deprecatedSource",
        controller: "reportingController",
        message: "note",
    };
}

pub(super) fn event(event: &Value, now: Timestamp, names: &Names) -> Vec<Value> {
    let at = |path: &str| age_at(event.at(path), now);
    let first = if event.has(names.first) { at(names.first) } else { at("eventTime") };
    let mut last = if event.has(names.last) { at(names.last) } else { first.clone() };
    let mut count = event.number(names.count).filter(|count| *count != 0).unwrap_or(1);
    if event.has("series") {
        last = at("series.lastObservedTime");
        count = event.number("series.count").unwrap_or_default();
    }
    let about = event.at(names.object);
    let kind = about.text("kind").to_lowercase();
    let target = match about.text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let first_of = |one: &str, other: &str| if one.is_empty() { other.to_owned() } else { one.to_owned() };
    let source = event.at(names.source);
    let component = first_of(source.text("component"), event.text(names.controller));
    let instance = first_of(source.text("host"), event.text("reportingInstance"));
    let source = if instance.is_empty() { component } else { format!("{component}, {instance}") };
    vec![
        json!(last),
        json!(event.text("type")),
        json!(event.text("reason")),
        json!(target),
        json!(about.text("fieldPath")),
        json!(source),
        json!(event.text(names.message).trim()),
        json!(first),
        json!(count),
        json!(event.text("metadata.name")),
    ]
}
