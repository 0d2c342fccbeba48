//! Recorded sequences: what was random when they were recorded is replaced by what it is now.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::sequence::Sequence;

/// Which value of now stands for which value of the recording.
#[derive(Debug, Default)]
pub(crate) struct Correspondence {
    /// Versions of objects.
    versions: BTreeMap<String, String>,
    /// Versions of lists.
    lists: BTreeMap<String, String>,
    /// UIDs, generated names, continue tokens: long enough to be replaced inside of texts.
    texts: BTreeMap<String, String>,
}

impl Correspondence {
    /// Compares an answer with the one of the recording.
    pub(crate) fn learn(&mut self, recorded: &Value, live: &Value) {
        self.walk(recorded, live, "");
    }

    fn walk(&mut self, recorded: &Value, live: &Value, key: &str) {
        match (recorded, live) {
            (Value::Object(left), Value::Object(right)) => {
                for (key, left) in left {
                    if let Some(right) = right.get(key) {
                        self.walk(left, right, key);
                    }
                }
                self.learn_list(recorded, live);
            }
            (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
                for (left, right) in left.iter().zip(right) {
                    self.walk(left, right, key);
                }
            }
            (Value::String(left), Value::String(right)) if left != right => match key {
                "resourceVersion" => {
                    self.versions.insert(left.clone(), right.clone());
                }
                "uid" | "name" | "continue" if !left.is_empty() => {
                    self.texts.insert(left.clone(), right.clone());
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn learn_list(&mut self, recorded: &Value, live: &Value) {
        let version = |list: &Value| {
            (list["items"].is_array() || list["rows"].is_array())
                .then(|| list["metadata"]["resourceVersion"].as_str().map(str::to_owned))
                .flatten()
        };
        if let (Some(left), Some(right)) = (version(recorded), version(live)) {
            self.lists.insert(left, right);
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (from, to) in &self.texts {
            if text.contains(from.as_str()) {
                text = text.replace(from.as_str(), to);
            }
        }
        text
    }

    /// A body with the values of now.
    pub(crate) fn body(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.text(&text)),
            Value::Array(list) => list.into_iter().map(|value| self.body(value)).collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, value)| {
                    let version = (key == "resourceVersion")
                        .then(|| value.as_str().and_then(|text| self.versions.get(text)))
                        .flatten();
                    let value = version.map_or_else(|| self.body(value.clone()), |now| Value::from(now.as_str()));
                    (key, value)
                })
                .collect(),
            other => other,
        }
    }

    /// A path and query with the values of now.
    pub(crate) fn target(&self, target: &str) -> String {
        let target = self.text(target);
        let Some((path, query)) = target.split_once('?') else { return target };
        let pairs = query.split('&').map(|pair| match pair.strip_prefix("resourceVersion=") {
            Some(version) => {
                let now = self.lists.get(version).or_else(|| self.versions.get(version));
                format!("resourceVersion={}", now.map_or(version, String::as_str))
            }
            None => pair.to_owned(),
        });
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    }
}

/// All recordings: files of JSON lines, one sequence per line.
pub(crate) fn recordings(directory: &Path) -> Result<Vec<Sequence>> {
    let mut sequences = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(sequences) };
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "gz")) {
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(file)?).read_to_string(&mut text)?;
        for line in text.lines() {
            let sequence = serde_json::from_str(line);
            sequences.push(sequence.with_context(|| file.display().to_string())?);
        }
    }
    Ok(sequences)
}
