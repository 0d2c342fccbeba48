//! One line of the log.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::Level;
use tracing::field::{Field, Visit};

/// Fields whose values are names of objects; they become objects themselves.
const OBJECTS: [&str; 8] =
    ["NodeClaim", "Node", "NodePool", "Pod", "DaemonSet", "CapacityBuffer", "EC2NodeClass", "AKSNodeClass"];
/// Of controllers' spans: the kind of what is reconciled.
const KIND: &str = "controllerKind";
/// Of controllers' spans: what is reconciled.
const KEY: &str = "key";
const ERROR: &str = "error";
const MESSAGE: &str = "message";

/// What a line begins with.
pub(super) struct Start<'a> {
    pub(super) level: Level,
    pub(super) time: Timestamp,
    pub(super) caller: Option<String>,
    pub(super) message: &'a str,
    pub(super) commit: Option<&'a str>,
}

/// What a line or a span says besides.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) message: String,
    fields: Vec<(&'static str, Value)>,
}

impl Fields {
    /// Adds fields; of two with one name, the later counts.
    pub(super) fn extend(&mut self, other: &Self) {
        for (name, value) in &other.fields {
            self.put(name, value.clone());
        }
    }

    fn put(&mut self, name: &'static str, value: Value) {
        match self.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name, value)),
        }
    }

    fn says(&self, name: &str, text: &str) -> bool {
        self.fields.iter().any(|(known, value)| *known == name && value == text)
    }

    /// The value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn text(&mut self, name: &'static str, text: &str) {
        let (namespace, object) = text.split_once('/').unwrap_or(("", text));
        match name {
            MESSAGE => text.clone_into(&mut self.message),
            KEY => {
                if let Some(kind) = OBJECTS.iter().find(|kind| self.says(KIND, kind)) {
                    self.text(kind, text);
                }
                self.put("namespace", namespace.into());
                self.put("name", object.into());
            }
            name if OBJECTS.contains(&name) && !text.is_empty() => {
                let named = if namespace.is_empty() {
                    json!({"name": object})
                } else {
                    json!({"name": object, "namespace": namespace})
                };
                self.put(name, named);
            }
            name => self.put(name, text.into()),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value.into());
    }
}

/// A value as people write it; an object by its namespace and name.
pub(super) fn plain(value: &Value) -> String {
    match (value, value["namespace"].as_str(), value["name"].as_str()) {
        (_, Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        (_, None, Some(name)) => name.to_owned(),
        (Value::String(text), ..) => text.clone(),
        _ => value.to_string(),
    }
}

/// The line, with its end.
pub(super) fn write(start: &Start<'_>, fields: &Fields) -> String {
    let level = match start.level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARN",
        Level::INFO => "INFO",
        _ => "DEBUG",
    };
    let mut line = format!(r#"{{"level":"{level}","time":"{:.3}","logger":"controller""#, start.time);
    let mut put = |name: &str, value: &Value| {
        // Writing to a text cannot fail.
        let _ = write!(line, ",{}:{value}", Value::from(name));
    };
    if let Some(caller) = &start.caller {
        put("caller", &caller.as_str().into());
    }
    put(MESSAGE, &start.message.into());
    if let Some(commit) = start.commit {
        put("commit", &commit.into());
    }
    for (name, value) in fields.fields.iter().filter(|(name, _)| *name != ERROR) {
        put(name, value);
    }
    for (name, value) in fields.fields.iter().filter(|(name, _)| *name == ERROR) {
        put(name, value);
    }
    line + "}\n"
}

/// The place in the source: the last folder, the file and the line.
pub(super) fn caller(file: Option<&str>, line: Option<u32>) -> String {
    let file = file.unwrap_or("unknown");
    let start = file.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    format!("{}:{}", &file[start..], line.unwrap_or_default())
}
