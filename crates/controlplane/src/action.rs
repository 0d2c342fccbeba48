//! What controllers decide to do; the executor does it.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::object::{Key, Kind, uid};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A write to an object.
    Write(Write),
    /// An event for people to read; nothing depends on it.
    Note(Note),
    /// Deletes what is left in a terminating namespace, and lets go of the namespace when nothing is.
    EmptyNamespace(String),
}

/// A write to an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The kind of the object.
    pub kind: Kind,
    /// Where it is; the name is empty if the server makes it.
    pub key: Key,
    /// What to do.
    pub verb: Verb,
}

/// What to do with an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    /// Create it.
    Create(Arc<Value>),
    /// Change it with a merge patch.
    Patch {
        /// The patch.
        body: Value,
        /// The part of the object that is patched, `status` for example.
        subresource: Option<&'static str>,
    },
    /// Delete it, if it still is the object with this uid.
    Delete {
        /// Which one.
        uid: String,
        /// How long it may take to stop; the object says if this does not.
        grace: Option<u32>,
    },
    /// Bind a pod to a node.
    Bind {
        /// Which pod.
        uid: String,
        /// To which node.
        node: String,
    },
}

/// An event for people to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The kind of what it is about.
    pub kind: Kind,
    /// Where that is.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// Who says it.
    pub component: &'static str,
    /// `Normal` or `Warning`.
    pub severity: &'static str,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// What a controller decided: what to do now, and when to look again even if nothing changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What to do now.
    pub actions: Vec<Action>,
    /// When to look again.
    pub again: Option<Timestamp>,
}

impl Outcome {
    /// Looks again at `when` at the latest.
    pub fn look_again(&mut self, when: Timestamp) {
        self.again = Some(self.again.map_or(when, |at| at.min(when)));
    }

    pub(crate) fn create(&mut self, kind: Kind, namespace: &str, body: &Arc<Value>) {
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        self.write(kind, Key::new(namespace, name), Verb::Create(Arc::clone(body)));
    }

    pub(crate) fn patch(&mut self, kind: Kind, meta: &ObjectMeta, body: Value) {
        self.write(kind, Key::of(meta), Verb::Patch { body, subresource: None });
    }

    pub(crate) fn patch_status(&mut self, kind: Kind, meta: &ObjectMeta, body: Value) {
        self.write(kind, Key::of(meta), Verb::Patch { body, subresource: Some("status") });
    }

    /// Patches the status to what it should be, if it is not; says whether it did.
    pub(crate) fn status<S: Serialize>(&mut self, kind: Kind, meta: &ObjectMeta, old: &S, new: &S) -> bool {
        let (Ok(old), Ok(new)) = (serde_json::to_value(old), serde_json::to_value(new)) else { return false };
        let Some(patch) = difference(&old, &new) else { return false };
        self.patch_status(kind, meta, json!({ "status": patch }));
        true
    }

    pub(crate) fn delete(&mut self, kind: Kind, meta: &ObjectMeta, grace: Option<u32>) {
        self.write(kind, Key::of(meta), Verb::Delete { uid: uid(meta).to_owned(), grace });
    }

    pub(crate) fn write(&mut self, kind: Kind, key: Key, verb: Verb) {
        self.actions.push(Action::Write(Write { kind, key, verb }));
    }

    pub(crate) fn note(
        &mut self,
        about: (Kind, &ObjectMeta),
        component: &'static str,
        reason: &'static str,
        message: String,
    ) {
        // That a claim finds no volume is normal for kube-controller-manager.
        let warns = reason.starts_with("Failed") && reason != "FailedBinding"
            || reason.ends_with("Failed")
            || reason.ends_with("Exceeded")
            || reason == "BackOff";
        let severity = if warns { "Warning" } else { "Normal" };
        self.actions.push(Action::Note(Note {
            kind: about.0,
            key: Key::of(about.1),
            uid: uid(about.1).to_owned(),
            component,
            severity,
            reason,
            message,
        }));
    }
}

/// The merge patch that turns `old` into `new`; nothing if they are equal.
pub(crate) fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            None => {
                patch.insert(key.clone(), value.clone());
            }
            Some(before) => {
                if let Some(change) = difference(before, value) {
                    patch.insert(key.clone(), change);
                }
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_only_what_changes() {
        let old = json!({"replicas": 3, "ready": 2, "conditions": [1], "nested": {"a": 1, "b": 2}});
        let new = json!({"replicas": 3, "ready": 3, "conditions": [2], "nested": {"a": 1, "b": 3}});
        assert_eq!(difference(&old, &new), Some(json!({"ready": 3, "conditions": [2], "nested": {"b": 3}})));
        assert_eq!(
            difference(&old, &json!({"replicas": 3, "conditions": [1], "nested": {"a": 1, "b": 2}})),
            Some(json!({"ready": null}))
        );
        assert_eq!(difference(&new, &new), None);
    }
}
