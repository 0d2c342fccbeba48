//! What objects say, read from plain JSON.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The taint of nodes that are about to go.
const DISRUPTED: &str = "karpenter.sh/disrupted";
/// The annotation of pods and nodes that ask to be left alone.
const DO_NOT_DISRUPT: &str = "/metadata/annotations/karpenter.sh~1do-not-disrupt";

pub(crate) fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn time(value: &Value, path: &str) -> Option<Timestamp> {
    text(value, path).parse().ok()
}

pub(crate) fn name(value: &Value) -> String {
    match text(value, "/metadata/namespace") {
        "" => text(value, "/metadata/name").to_owned(),
        namespace => format!("{namespace}/{}", text(value, "/metadata/name")),
    }
}

pub(crate) fn pool_of(value: &Value) -> &str {
    text(value, "/metadata/labels/karpenter.sh~1nodepool")
}

pub(crate) fn condition<'v>(value: &'v Value, kind: &str) -> Option<&'v Value> {
    value["status"]["conditions"].as_array()?.iter().find(|it| it["type"] == kind)
}

pub(crate) fn is_true(value: &Value, kind: &str) -> bool {
    condition(value, kind).is_some_and(|it| it["status"] == "True")
}

pub(crate) fn is_leaving(value: &Value) -> bool {
    !value["metadata"]["deletionTimestamp"].is_null()
}

pub(crate) fn is_tainted(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.into_iter().any(|taint| taint["key"] == DISRUPTED)
}

/// Why a claim is given up; empty while it is not.
pub(crate) fn reason_of(claim: &Value) -> &str {
    let reason = condition(claim, "DisruptionReason").filter(|it| it["status"] == "True");
    reason.map_or("", |it| text(it, "/reason"))
}

/// How an object asks to be left alone.
pub(crate) fn protection(value: &Value) -> &str {
    text(value, DO_NOT_DISRUPT)
}

/// Whether a pod asks to be left alone: for ever, or for a time after its start.
pub(crate) fn is_protected(pod: &Value, at: Timestamp) -> bool {
    match protection(pod) {
        "true" => true,
        written => duration(written)
            .is_some_and(|time_| time(pod, "/status/startTime").is_none_or(|start| at < start + time_)),
    }
}

pub(crate) fn is_done(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

/// How many processors the instance of a claim really has, in thousandths; none before it is launched. What a claim
/// says of its capacity is what the code under test has written.
pub(crate) fn processors(claim: &Value) -> Option<i64> {
    let cores = text(claim, "/metadata/labels/karpenter.kwok.sh~1instance-cpu");
    cores.parse::<i64>().ok().map(|cores| cores * 1000)
}

/// An amount of processors, in thousandths.
pub(crate) fn milli(value: &Value) -> i64 {
    let written = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    match written.strip_suffix('m') {
        Some(milli) => milli.parse().unwrap_or(0),
        None => written.parse::<i64>().unwrap_or(0) * 1000,
    }
}

/// A duration of hours, minutes and seconds, such as `1h30m`.
pub(crate) fn duration(written: &str) -> Option<SignedDuration> {
    let (mut seconds, mut number) = (None, 0);
    for letter in written.chars() {
        let unit = match letter {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            digit => {
                number = number * 10 + i64::from(digit.to_digit(10)?);
                continue;
            }
        };
        seconds = Some(seconds.unwrap_or(0) + number * unit);
        number = 0;
    }
    seconds.map(SignedDuration::from_secs)
}
