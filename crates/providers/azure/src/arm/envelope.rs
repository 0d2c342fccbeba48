//! The forms in which services of Azure write what went wrong.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use super::error::Detail;

static XML_CODE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"<(?:\w+:)?[cC]ode>\s*(\w+)\s*</(?:\w+:)?[cC]ode>").ok());
static XML_MESSAGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)<(?:\w+:)?[mM]essage>\s*(.*?)\s*</(?:\w+:)?[mM]essage>").ok());

/// What a body says about a refusal.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// The machine-readable reason; empty if there is none.
    pub(super) code: String,
    /// The text with that of all details; empty if there is none.
    pub(super) message: String,
    /// The first level of details.
    pub(super) details: Vec<Detail>,
}

/// Reads JSON, as the resource manager, AKS or the directory write it, or XML.
pub(super) fn read(body: &[u8]) -> Option<Envelope> {
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        return of_json(&value);
    }
    let text = std::str::from_utf8(body).ok()?;
    let found = |pattern: &LazyLock<Option<Regex>>| {
        let captures = pattern.as_ref()?.captures(text)?;
        Some(captures.get(1)?.as_str().to_owned())
    };
    let code = found(&XML_CODE)?;
    Some(Envelope { code, message: found(&XML_MESSAGE).unwrap_or_default(), details: Vec::new() })
}

fn of_json(value: &Value) -> Option<Envelope> {
    let root = value.as_object()?;
    let error = match root.get("error").or_else(|| root.get("odata.error")) {
        Some(Value::Object(error)) => error,
        Some(Value::String(code)) => {
            let message = text(root, "error_description");
            return Some(Envelope { code: code.clone(), message, details: Vec::new() });
        }
        _ => root,
    };
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let details = details.filter_map(Value::as_object).map(detail).collect();
    let mut message = text(error, "message");
    append_parts(error, &mut message);
    Some(Envelope { code: text(error, "code"), message, details })
}

fn detail(object: &Map<String, Value>) -> Detail {
    Detail {
        code: text(object, "code"),
        message: text(object, "message"),
        target: Some(text(object, "target")).filter(|target| !target.is_empty()),
    }
}

/// A member as text; some services wrap it once more, to say in which language it is.
fn text(object: &Map<String, Value>, name: &str) -> String {
    match object.get(name) {
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Object(wrapped)) => wrapped.get("value").and_then(Value::as_str).unwrap_or("").to_owned(),
        Some(number @ Value::Number(_)) => number.to_string(),
        _ => String::new(),
    }
}

/// Adds what the parts of an error say and the text does not say yet.
fn append_parts(error: &Map<String, Value>, message: &mut String) {
    for part in error.get("details").and_then(Value::as_array).into_iter().flatten() {
        match part {
            Value::Object(part) => {
                append(&text(part, "code"), &text(part, "message"), message);
                append_parts(part, message);
            }
            Value::String(part) => append("", part, message),
            _ => {}
        }
    }
    if let Some(Value::Object(inner)) = error.get("innererror") {
        for name in ["message", "errordetail"] {
            append("", &text(inner, name), message);
        }
        append_parts(inner, message);
    }
    if let Some(more) = error.get("additionalInfo").filter(|more| !more.is_null()) {
        append("", &more.to_string(), message);
    }
}

fn append(code: &str, part: &str, message: &mut String) {
    if part.is_empty() || message.contains(part) {
        return;
    }
    let between = if message.is_empty() { "" } else { "; " };
    let colon = if code.is_empty() { "" } else { ": " };
    // Writing to a text cannot fail.
    let _ = write!(message, "{between}{code}{colon}{part}");
}
