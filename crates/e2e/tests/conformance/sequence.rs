//! Sequences of requests: what is sent, with values from earlier answers.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

/// Requests that belong together, sent one after the other in a namespace of their own.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Sequence {
    pub(crate) name: String,
    /// Where it comes from: `written`, `generated`, or the client it was recorded from.
    #[serde(default)]
    pub(crate) source: String,
    pub(crate) steps: Vec<Step>,
}

/// One request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Method and path, such as `GET /api/v1/namespaces/$ns/pods`.
    #[serde(rename = "do")]
    pub(crate) what: String,
    /// The content type of the body, or its short name.
    #[serde(rename = "type", default)]
    pub(crate) content_type: String,
    /// What the client accepts, or its short name.
    #[serde(default)]
    pub(crate) accept: String,
    #[serde(default)]
    pub(crate) agent: String,
    #[serde(default)]
    pub(crate) body: Value,
    /// A body that is no JSON.
    #[serde(default)]
    pub(crate) raw: Option<String>,
    /// The bytes of a body that is no text, in hexadecimal digits.
    #[serde(default)]
    pub(crate) hex: Option<String>,
    /// The earlier answer that the body begins with; `body` is merged into it.
    #[serde(default)]
    pub(crate) from: String,
    /// The name under which later steps know the answer.
    #[serde(rename = "as", default)]
    pub(crate) name: String,
    /// Asks again until this holds.
    #[serde(default)]
    pub(crate) until: Option<Until>,
    /// Only the status is compared.
    #[serde(default)]
    pub(crate) only_status: bool,
    /// The bytes of a body that is too large to be written down.
    #[serde(default)]
    pub(crate) padding: usize,
    /// What the recording's server answered, to learn which names and versions correspond.
    #[serde(default)]
    pub(crate) recorded: Value,
}

/// What a step waits for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Until {
    #[serde(default)]
    pub(crate) status: Option<u16>,
    /// A path such as `status.phase`.
    #[serde(default)]
    pub(crate) field: String,
    #[serde(default)]
    pub(crate) is: Value,
}

impl Step {
    pub(crate) fn method(&self) -> &str {
        self.what.split_once(' ').map_or("GET", |(method, _)| method)
    }

    pub(crate) fn target(&self) -> &str {
        self.what.split_once(' ').map_or(self.what.as_str(), |(_, target)| target)
    }

    pub(crate) fn is_watch(&self) -> bool {
        let query = self.target().split_once('?').map_or("", |(_, query)| query);
        self.method() == "GET" && query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
    }

    /// The content type in full.
    pub(crate) fn content_type(&self) -> &str {
        match self.content_type.as_str() {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            "yaml" => "application/yaml",
            "" if self.method() == "PATCH" => "application/merge-patch+json",
            "" => "application/json",
            other => other,
        }
    }

    pub(crate) fn accept(&self) -> &str {
        match self.accept.as_str() {
            "" => "application/json",
            "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
            "metadata" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "metadata list" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            other => other,
        }
    }
}

/// The value at a path such as `metadata.labels.a` or `items.0.kind`.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|key| !key.is_empty()).fold(value, |value, key| match value {
        Value::Array(list) => key.parse().ok().and_then(|index: usize| list.get(index)).unwrap_or(&Value::Null),
        other => &other[key],
    })
}

/// What `$name` stands for in a sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, Value>);

impl Variables {
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Value> {
        self.0.get(name).with_context(|| format!("no earlier step is called {name}"))
    }

    /// The value of `$name.path`, and how long that is; unknown names stand for themselves.
    fn lookup(&self, text: &str) -> Option<(Value, usize)> {
        let end = text
            .char_indices()
            .skip(1)
            .find(|(_, one)| !(one.is_ascii_alphanumeric() || *one == '.'))
            .map_or(text.len(), |(index, _)| index);
        // A dot that ends a sentence or stands before a literal part belongs to the text.
        let whole = text[1..end].trim_end_matches('.');
        let (name, path) = whole.split_once('.').unwrap_or((whole, ""));
        let value = self.0.get(name)?;
        if matches!(value, Value::String(_)) {
            return Some((value.clone(), 1 + name.len()));
        }
        Some((at(value, path).clone(), 1 + whole.len()))
    }

    /// A text with all variables replaced.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('$') {
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            let (value, length) = match self.lookup(rest) {
                Some((Value::String(value), length)) => (value, length),
                Some((value, length)) => (value.to_string(), length),
                None => ("$".to_owned(), 1),
            };
            out.push_str(&value);
            rest = &rest[length..];
        }
        out.push_str(rest);
        out
    }

    /// A value with all variables replaced; a text that is one variable becomes its value of any type.
    pub(crate) fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match text.starts_with('$').then(|| self.lookup(text)).flatten() {
                Some((value, length)) if length == text.len() => value,
                _ => Value::from(self.text(text)),
            },
            Value::Array(list) => list.iter().map(|value| self.fill(value)).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| (self.text(key), self.fill(value))).collect()
            }
            other => other.clone(),
        }
    }
}

/// Puts the fields of `change` into `value`; null takes a field out.
pub(crate) fn merge(value: &mut Value, change: &Value) {
    let Some(change) = change.as_object() else {
        *value = change.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Some(map) = value.as_object_mut() else { return };
    for (key, change) in change {
        if change.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}
