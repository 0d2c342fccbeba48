//! The corpus: files of objects with the verdict that the specification gives them.
//!
//! A file is about one kind. It begins with a valid object; every case is this object with the case's JSON merge
//! patch (RFC 7386) applied, then created, and then perhaps changed by `update` or given a `status`.
//!
//! Long values are not written out: `{$repeat: 3, of: ab}` stands for `ababab`, and likewise joins lists and
//! mappings, in whose keys `{n}` is the number of the copy.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use api::provider::Provider;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The cases about one kind of one provider.
pub(crate) struct File {
    /// `<provider>/<plural>.yaml`.
    pub(crate) name: String,
    pub(crate) object: Value,
    pub(crate) cases: Vec<Case>,
}

/// One object or one change, and what the API server must say about it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What is shown, as a sentence.
    pub(crate) name: String,
    /// What distinguishes the object from the file's object.
    #[serde(default)]
    pub(crate) patch: Option<Value>,
    /// What changes after the object was created.
    #[serde(default)]
    pub(crate) update: Option<Value>,
    /// What is reported after the object was created.
    #[serde(default)]
    pub(crate) status: Option<Value>,
    /// Texts that the API server's message must all contain.
    #[serde(default)]
    refused: Option<Vec<String>>,
    #[serde(default)]
    accepted: bool,
    /// What the stored object must contain at least.
    #[serde(default)]
    pub(crate) stored: Option<Value>,
}

/// What the specification says about a case.
pub(crate) enum Verdict<'a> {
    Accepted,
    Refused(&'a [String]),
}

impl Case {
    pub(crate) fn verdict(&self) -> Verdict<'_> {
        self.refused.as_deref().map_or(Verdict::Accepted, Verdict::Refused)
    }

    /// Whether the object itself is judged, and not a later change.
    pub(crate) fn is_about_creation(&self) -> bool {
        self.update.is_none() && self.status.is_none()
    }

    /// The object that is created.
    pub(crate) fn object(&self, file: &File) -> Value {
        let mut object = file.object.clone();
        if let Some(patch) = &self.patch {
            merge(&mut object, patch);
        }
        object
    }

    fn check(&self) -> Result<()> {
        ensure!(
            self.refused.is_some() != self.accepted,
            "needs exactly one of `refused` and `accepted: true`"
        );
        ensure!(self.refused.as_ref().is_none_or(|texts| !texts.is_empty()), "`refused` needs a text");
        ensure!(self.update.is_none() || self.status.is_none(), "has both `update` and `status`");
        ensure!(self.accepted || self.stored.is_none(), "a refused object is not stored");
        Ok(())
    }
}

/// The files of one provider, by name.
pub(crate) fn load(provider: Provider) -> Result<Vec<File>> {
    // The embedded API server's tests read it too, from their own crate's folder.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/tests/corpus").join(provider.as_str());
    let mut paths = vec![];
    for entry in fs::read_dir(&folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let stem = path.file_name().and_then(|name| name.to_str()).context("an odd file name")?;
            let name = format!("{provider}/{stem}");
            parse(&fs::read_to_string(path)?, &name).with_context(|| name.clone())
        })
        .collect()
}

fn parse(text: &str, name: &str) -> Result<File> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Document {
        object: Value,
        cases: Vec<Case>,
    }
    // As in Kubernetes' own YAML, `y` and `on` are texts.
    let options = serde_saphyr::options! { strict_booleans: true };
    let mut document: Document = serde_saphyr::from_str_with_options(text, options)?;
    for case in &mut document.cases {
        case.check().with_context(|| case.name.clone())?;
        let values = [&mut case.patch, &mut case.update, &mut case.status, &mut case.stored];
        values.into_iter().flatten().try_for_each(expand)?;
    }
    let mut names: Vec<_> = document.cases.iter().map(|case| &case.name).collect();
    names.sort();
    for pair in names.windows(2) {
        ensure!(pair[0] != pair[1], "two cases are named `{}`", pair[0]);
    }
    Ok(File { name: name.to_owned(), object: document.object, cases: document.cases })
}

/// RFC 7386: objects are merged, null removes, anything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let target = target.as_object_mut().expect("just made an object");
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Writes out every `{$repeat: n, of: …}`.
fn expand(value: &mut Value) -> Result<()> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(expand)?,
        Value::Object(fields) => {
            fields.values_mut().try_for_each(expand)?;
            if let Some(count) = fields.get("$repeat") {
                let count = count.as_u64().context("`$repeat` is not a number")?;
                let of = fields.get("of").context("`$repeat` without `of`")?;
                *value = repeat(of, count)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn repeat(of: &Value, count: u64) -> Result<Value> {
    Ok(match of {
        Value::String(text) => Value::String((0..count).map(|_| text.as_str()).collect()),
        Value::Array(items) => (0..count).flat_map(|_| items.clone()).collect(),
        Value::Object(fields) => (0..count)
            .flat_map(|n| fields.iter().map(move |(key, value)| (key.replace("{n}", &n.to_string()), value)))
            .map(|(key, value)| (key, value.clone()))
            .collect(),
        other => anyhow::bail!("`{other}` cannot be repeated"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{expand, merge, parse};

    #[test]
    fn a_merge_patch_merges_objects_removes_nulls_and_replaces_the_rest() {
        let mut object = json!({"a": {"b": 1, "c": 2}, "list": [1, 2], "text": "x"});
        merge(
            &mut object,
            &json!({"a": {"b": null, "d": {"e": null, "f": 3}}, "list": [], "text": {"g": 1}}),
        );
        assert_eq!(object, json!({"a": {"c": 2, "d": {"f": 3}}, "list": [], "text": {"g": 1}}));
    }

    #[test]
    fn repeated_values_are_written_out() {
        let mut value = json!({
            "text": {"$repeat": 3, "of": "ab"},
            "list": {"$repeat": 2, "of": [{"key": {"$repeat": 2, "of": "x"}}]},
            "map": {"$repeat": 2, "of": {"key-{n}": "v"}},
        });
        expand(&mut value).unwrap();
        let list = json!([{"key": "xx"}, {"key": "xx"}]);
        assert_eq!(value, json!({"text": "ababab", "list": list, "map": {"key-0": "v", "key-1": "v"}}));
    }

    #[test]
    fn a_case_says_either_refused_or_accepted() {
        for case in ["name: a", "name: a, accepted: true, refused: [x]", "name: a, refused: []"] {
            let text = format!("object: {{}}\ncases: [{{{case}}}]");
            assert!(parse(&text, "file").is_err(), "{case}");
        }
    }
}
