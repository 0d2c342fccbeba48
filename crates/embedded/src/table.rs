//! Tables, as `kubectl get` prints them.

mod batch;
mod cells;
mod event;
mod network;
mod path;
mod pod;
mod storage;
mod workloads;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::kinds::Get;

/// A column's head.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name, as in `Ready`.
    pub name: String,
    /// The type: `string`, `integer`, `date` and so on.
    pub kind: String,
    /// The format; `name` marks the column that identifies the object.
    pub format: String,
    /// What the column says, for people.
    pub description: String,
    /// 0 for columns that are always shown.
    pub priority: i32,
}

impl Column {
    /// The column as a Table has it.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }
}

type Head = (String, String, String, String, i32);

/// The heads of each kind, by `group/Kind`, as a kube-apiserver sent them.
static COLUMNS: LazyLock<BTreeMap<String, Vec<Head>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/columns.json")).unwrap_or_default());

fn heads(group: &str, kind: &str) -> Vec<Column> {
    let heads = COLUMNS.get(&format!("{group}/{kind}")).cloned().unwrap_or_default();
    let column =
        |(name, kind, format, description, priority)| Column { name, kind, format, description, priority };
    heads.into_iter().map(column).collect()
}

/// Columns of a built-in kind; kinds without their own have a name and a date.
pub fn columns(group: &str, kind: &str) -> Vec<Column> {
    let known = heads(group, kind);
    // Definitions of custom resources are printed as kinds without columns of their own are.
    if known.is_empty() { heads("apiextensions.k8s.io", "CustomResourceDefinition") } else { known }
}

/// The cells of one object, one for each column.
pub fn cells(group: &str, kind: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    if (group, kind) == ("", "Pod") {
        pod::cells(object, now)
    } else {
        cells::cells(group, kind, object, now)
    }
}

/// What `kubectl` calls the outcome of a finished pod, in the Conditions of its row.
pub fn row_conditions(group: &str, kind: &str, object: &Value) -> Value {
    let (reason, message) = match (group, kind, object.text("status.phase")) {
        ("", "Pod", "Succeeded") => ("Succeeded", "The pod has completed successfully."),
        ("", "Pod", "Failed") => ("Failed", "The pod failed."),
        _ => return Value::Null,
    };
    json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}])
}

/// The printer columns of a custom resource; without any there is its age.
fn printer_columns(printer_columns: &Value) -> Vec<Value> {
    let given = printer_columns.as_array().cloned().unwrap_or_default();
    if given.is_empty() {
        let description = heads("apiextensions.k8s.io", "CustomResourceDefinition")
            .into_iter()
            .nth(1)
            .map(|column| column.description)
            .unwrap_or_default();
        let path = ".metadata.creationTimestamp";
        return vec![json!({"name": "Age", "type": "date", "description": description, "jsonPath": path})];
    }
    given
}

/// Columns of a custom resource from its `additionalPrinterColumns`.
pub fn custom_columns(columns: &Value) -> Vec<Column> {
    let mut heads: Vec<Column> =
        heads("apiextensions.k8s.io", "CustomResourceDefinition").into_iter().take(1).collect();
    for column in printer_columns(columns) {
        let description = column.text("description");
        let path = column.text("jsonPath");
        heads.push(Column {
            name: column.text("name").to_owned(),
            kind: column.text("type").to_owned(),
            format: column.text("format").to_owned(),
            description: if description.is_empty() {
                format!("Custom resource definition column (in JSONPath format): {path}")
            } else {
                description.to_owned()
            },
            priority: column
                .number("priority")
                .and_then(|priority| i32::try_from(priority).ok())
                .unwrap_or_default(),
        });
    }
    heads
}

/// The cells of a custom resource; what is missing is null.
pub fn custom_cells(columns: &Value, object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![object.at("metadata.name").clone()];
    for column in printer_columns(columns) {
        let found = path::first(object, column.text("jsonPath"));
        cells.push(found.map(|value| custom_cell(column.text("type"), value, now)).unwrap_or_default());
    }
    cells
}

#[expect(clippy::cast_possible_truncation, reason = "as the API server does")]
fn custom_cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::Null) => Value::from("<nil>"),
        ("integer", Value::Number(number)) => {
            number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)).into()
        }
        ("string", Value::String(_)) | ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => {
            value.clone()
        }
        ("string", other) => Value::from(other.to_string()),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(since) => Value::from(age(since, now)),
            Err(_) => Value::from("<invalid>"),
        },
        _ => Value::Null,
    }
}

/// How long ago something was, as kubectl writes it.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    duration(now.duration_since(since))
}

/// The age of what happened at `time`, unknown when it has no time.
fn age_at(time: &Value, now: Timestamp) -> String {
    let since = time.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    since.map_or_else(|| "<unknown>".to_owned(), |since| age(since, now))
}

/// A span of time in at most two units, and in one where the smaller hardly matters.
fn duration(span: SignedDuration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 24 * 8 => two(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests;
