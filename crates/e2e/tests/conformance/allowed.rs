//! Known differences, each with its reason; `docs/embedded.md` explains them.

use std::path::Path;

use anyhow::Result;
use regex::Regex;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Which sequences, as a pattern for their names.
    sequences: String,
    /// Where in the answer, as a pattern.
    path: String,
    /// What both say, as a pattern; anything if absent.
    #[serde(default)]
    values: String,
    /// Why it may differ.
    #[expect(dead_code, reason = "for the reader of the file")]
    why: String,
}

struct Entry {
    sequences: Regex,
    path: Regex,
    values: Regex,
    text: String,
    used: bool,
}

/// The list of known differences.
pub(crate) struct Allowed(Vec<Entry>);

impl Allowed {
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let written: Vec<Written> = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
        let whole = |pattern: &str| Regex::new(&format!("^(?s:{pattern})$"));
        let entry = |one: Written| {
            Ok(Entry {
                sequences: whole(&one.sequences)?,
                path: whole(&one.path)?,
                values: whole(if one.values.is_empty() { ".*" } else { &one.values })?,
                text: format!("{} at {}", one.sequences, one.path),
                used: false,
            })
        };
        Ok(Self(written.into_iter().map(entry).collect::<Result<_>>()?))
    }

    /// Whether a difference is known.
    pub(crate) fn allows(&mut self, sequence: &str, step: usize, path: &str, values: &str) -> bool {
        let place = format!("#{step} {path}");
        let found = self.0.iter_mut().find(|entry| {
            entry.sequences.is_match(sequence)
                && (entry.path.is_match(path) || entry.path.is_match(&place))
                && entry.values.is_match(values)
        });
        if let Some(entry) = found {
            entry.used = true;
            return true;
        }
        false
    }

    /// Entries for which there was no difference.
    pub(crate) fn unneeded(&self) -> Vec<String> {
        self.0.iter().filter(|entry| !entry.used).map(|entry| entry.text.clone()).collect()
    }
}
