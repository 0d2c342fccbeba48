//! One stored object: its bytes and what selectors and owners ask about.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::resources::Resource;

/// Most objects are smaller than this, so that their text is written without moving it.
const USUAL_SIZE: usize = 4096;

/// An object's namespace (empty for cluster-scoped ones) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// A reference to an owner, as far as garbage collection needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: Arc<str>,
    pub(crate) blocks_deletion: bool,
}

/// The values of a kind's selectable fields, in one piece: events have eleven, and most are short.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    names: &'static [&'static str],
    /// One after the other, each with [`Fields::END`] behind it.
    values: Box<str>,
}

impl Fields {
    /// What no value contains: names, phases and addresses are text that people read.
    const END: char = '\0';

    /// `value` gives the value of each of the fields.
    pub(crate) fn new(names: &'static [&'static str], value: impl Fn(&'static str) -> String) -> Self {
        let mut values = String::new();
        for name in names {
            values.extend(value(name).chars().filter(|one| *one != Self::END));
            values.push(Self::END);
        }
        Self { names, values: values.as_str().into() }
    }

    fn get(&self, path: &str) -> Option<&str> {
        let at = self.names.iter().position(|name| *name == path)?;
        self.values.split(Self::END).nth(at)
    }
}

/// One version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) key: Key,
    pub(crate) uid: Arc<str>,
    pub(crate) revision: u64,
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    pub(crate) fields: Fields,
    pub(crate) owners: Box<[Owner]>,
    pub(crate) deleting: bool,
    /// The object without `apiVersion` and `kind`: items of lists have none, and versions differ in nothing else.
    pub(crate) json: Box<str>,
}

impl Object {
    /// Makes the stored form of `value`, whose resource version is set to `revision`.
    ///
    /// `fields` are the selectable fields besides name and namespace.
    pub(crate) fn new(value: &mut Value, revision: u64, fields: Fields) -> Self {
        value["metadata"]["resourceVersion"] = Value::from(revision.to_string());
        let metadata = &value["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let labels = metadata["labels"].as_object().map(|labels| {
            labels
                .iter()
                .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
                .collect()
        });
        let owners = metadata["ownerReferences"].as_array().map(|owners| {
            owners
                .iter()
                .map(|owner| Owner {
                    uid: owner["uid"].as_str().unwrap_or_default().into(),
                    blocks_deletion: owner["blockOwnerDeletion"].as_bool().unwrap_or_default(),
                })
                .collect()
        });
        Self {
            key: Key::new(text("namespace"), text("name")),
            uid: text("uid").into(),
            revision,
            labels: labels.unwrap_or_default(),
            fields,
            owners: owners.unwrap_or_default(),
            deleting: !metadata["deletionTimestamp"].is_null(),
            json: bare_json(value),
        }
    }

    /// The whole object as bytes.
    pub(crate) fn bytes(&self, resource: &Resource) -> Bytes {
        let head = resource.type_head();
        let mut bytes = Vec::with_capacity(head.len() + self.json.len());
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(&self.json.as_bytes()[1..]);
        bytes.into()
    }

    /// The same object as of another revision.
    pub(crate) fn with_revision(&self, revision: u64) -> Self {
        let mut value = serde_json::from_str(&self.json).unwrap_or_default();
        Self::new(&mut value, revision, self.fields.clone())
    }

    /// The whole object as JSON.
    pub(crate) fn value(&self, resource: &Resource) -> Value {
        let mut value: Value = serde_json::from_str(&self.json).unwrap_or_default();
        resource.set_type(&mut value);
        value
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(name, _)| (**name).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// The value of a selectable field.
    pub(crate) fn field(&self, path: &str) -> Option<&str> {
        match path {
            "metadata.name" => Some(&self.key.name),
            "metadata.namespace" => Some(&self.key.namespace),
            _ => self.fields.get(path),
        }
    }
}

/// The object's bytes without what says its type.
fn bare_json(value: &Value) -> Box<str> {
    let mut out = Vec::with_capacity(USUAL_SIZE);
    out.push(b'{');
    for (key, value) in value.as_object().into_iter().flatten() {
        if key == "apiVersion" || key == "kind" {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        // JSON in memory can always be written.
        let _ = serde_json::to_writer(&mut out, key);
        out.push(b':');
        let _ = serde_json::to_writer(&mut out, value);
    }
    out.push(b'}');
    // JSON is text. It is copied because allocators do not take back less than half of a block.
    String::from_utf8(out).unwrap_or_default().as_str().into()
}

/// Objects in the order of lists.
pub(crate) type Objects = BTreeMap<Key, Arc<Object>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name() {
        let value = |name: &str| if name == "b" { String::new() } else { format!("the {name}") };
        let fields = Fields::new(&["a", "b", "c"], value);
        let found = ["a", "b", "c", "d"].map(|name| fields.get(name));
        assert_eq!(found, [Some("the a"), Some(""), Some("the c"), None]);
        assert_eq!(Fields::default().get("a"), None);
    }
}
