//! What the sequences cover: verb × resource × patch type × status.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use crate::sequence::{Sequence, Step};

/// Set to write the file anew instead of comparing with it.
const WRITE: &str = "CONFORMANCE_WRITE";

/// One line for each combination.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeSet<String>);

impl Coverage {
    pub(crate) fn add(&mut self, sequence: &Sequence, codes: &[u16]) {
        for (step, code) in sequence.steps.iter().zip(codes) {
            let (verb, resource) = verb_and_resource(step);
            self.0.insert(format!("{verb} {resource} {} {code}", patch_type(step)));
        }
    }

    /// A few sums for people.
    pub(crate) fn summary(&self) -> String {
        let column = |index: usize| -> BTreeSet<&str> {
            self.0.iter().filter_map(|line| line.split(' ').nth(index)).collect()
        };
        format!(
            "{} combinations of {} verbs, {} resources, {} patch types, {} statuses",
            self.0.len(),
            column(0).len(),
            column(1).len(),
            column(2).len() - 1,
            column(3).len(),
        )
    }

    /// Writes the file, or fails when it lists something that is no longer covered.
    pub(crate) fn check(&self, file: &Path) -> Result<()> {
        if std::env::var_os(WRITE).is_some() {
            let lines: Vec<&str> = self.0.iter().map(String::as_str).collect();
            std::fs::write(file, format!("{}\n", lines.join("\n")))?;
            return Ok(());
        }
        let text = std::fs::read_to_string(file)?;
        let lost: Vec<&str> = text.lines().filter(|line| !self.0.contains(*line)).collect();
        if !lost.is_empty() {
            bail!("no longer covered (set {WRITE}=1 if that is right):\n{}", lost.join("\n"));
        }
        Ok(())
    }
}

fn patch_type(step: &Step) -> &str {
    if step.method() != "PATCH" {
        return "-";
    }
    match step.content_type().split(';').next().unwrap_or_default() {
        "application/json-patch+json" => "json",
        "application/merge-patch+json" => "merge",
        "application/strategic-merge-patch+json" => "strategic",
        "application/apply-patch+yaml" => "apply",
        _ => "other",
    }
}

/// What the request does to what.
fn verb_and_resource(step: &Step) -> (&'static str, String) {
    let path = step.target().split('?').next().unwrap_or_default();
    let words: Vec<&str> = path.split('/').filter(|word| !word.is_empty()).collect();
    let (version, rest) = match words.as_slice() {
        ["api", version, rest @ ..] => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return ("raw", format!("/{}", words.first().unwrap_or(&""))),
    };
    let (resource, name, sub) = match rest {
        ["namespaces", _, sub @ ("status" | "finalize")] => ("namespaces", true, Some(*sub)),
        ["namespaces", _, plural, _, sub, ..] => (*plural, true, Some(*sub)),
        ["namespaces", _, plural, _] => (*plural, true, None),
        ["namespaces", _, plural] => (*plural, false, None),
        [plural, _, sub, ..] => (*plural, true, Some(*sub)),
        [plural, _] => (*plural, true, None),
        [plural] => (*plural, false, None),
        [] => return ("raw", version),
    };
    let verb = match (step.method(), name) {
        ("GET", _) if step.is_watch() => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "other",
    };
    let sub = sub.map(|sub| format!("/{sub}")).unwrap_or_default();
    (verb, format!("{version}/{resource}{sub}"))
}
