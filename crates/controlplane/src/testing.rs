//! A cluster from a few lines of YAML, and decisions in words.

use jiff::Timestamp;
use serde_json::Value;

use crate::action::{Action, Outcome, Verb};
use crate::cache::{Cache, Seen};
use crate::object::{Key, Kind, Object};

/// A moment, in seconds since the beginning of a test.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

pub(crate) struct World {
    pub(crate) cache: Cache,
    version: u64,
}

impl World {
    /// The objects of these documents, all seen at the beginning.
    pub(crate) fn of(documents: &[&str]) -> Self {
        let mut world = Self { cache: Cache::default(), version: 0 };
        for document in documents {
            world.apply(document, at(0));
        }
        world
    }

    pub(crate) fn apply(&mut self, document: &str, now: Timestamp) -> &mut Self {
        for document in document.split("\n---\n") {
            let value: Value = serde_saphyr::from_str(document).expect("YAML");
            self.apply_value(self.with_status(value), now);
        }
        self
    }

    /// A document that says nothing of the status leaves it as it is.
    fn with_status(&self, mut value: Value) -> Value {
        let meta = &value["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
        let key = Key::new(&text("namespace"), &text("name"));
        if let Some(known) = self.cache.object(kind(&value), &key).filter(|_| value["status"].is_null()) {
            value["status"] = to_value(&known)["status"].clone();
        }
        value
    }

    pub(crate) fn apply_value(&mut self, mut value: Value, now: Timestamp) {
        self.version += 1;
        let kind = kind(&value);
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let meta = &mut value["metadata"];
        meta["resourceVersion"] = self.version.to_string().into();
        if meta["uid"].is_null() {
            meta["uid"] = format!("{}-{name}", kind.name()).into();
        }
        if meta["creationTimestamp"].is_null() {
            meta["creationTimestamp"] = now.to_string().into();
        }
        let object = kind.parse(&value.to_string()).expect("object");
        self.cache.observe(Seen::Applied(object), now);
    }

    /// Does what was decided, as a server would; deletions take effect at once.
    pub(crate) fn perform(&mut self, outcome: &Outcome, now: Timestamp) {
        for action in &outcome.actions {
            let Action::Write(write) = action else { continue };
            match &write.verb {
                Verb::Create(body) => {
                    let mut body = Value::clone(body);
                    if body["metadata"]["name"].is_null() {
                        let prefix = body["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
                        body["metadata"]["name"] = format!("{prefix}{}", self.version).into();
                    }
                    body["metadata"]["generation"] = 1.into();
                    self.apply_value(body, now);
                }
                Verb::Patch { body, .. } => {
                    let Some(object) = self.cache.object(write.kind, &write.key) else { continue };
                    let mut value = to_value(&object);
                    merge(&mut value, body);
                    self.apply_value(value, now);
                }
                Verb::Delete { .. } => {
                    if let Some(object) = self.cache.object(write.kind, &write.key) {
                        self.cache.observe(Seen::Deleted(object), now);
                    }
                }
                Verb::Bind { .. } => {}
            }
        }
    }

    /// The writes of an outcome in words.
    #[expect(clippy::unused_self, reason = "reads better at the use site")]
    pub(crate) fn say(&self, outcome: &Outcome) -> Vec<String> {
        outcome.actions.iter().filter_map(say).collect()
    }
}

fn say(action: &Action) -> Option<String> {
    let write = match action {
        Action::Write(write) => write,
        Action::Note(_) => return None,
        Action::EmptyNamespace(name) => return Some(format!("empty {name}")),
    };
    let kind = write.kind.name();
    let place = if write.key.namespace.is_empty() {
        write.key.name.clone()
    } else {
        format!("{}/{}", write.key.namespace, write.key.name)
    };
    Some(match &write.verb {
        Verb::Create(_) => format!("create {kind} {place}"),
        Verb::Patch { subresource: None, .. } => format!("patch {kind} {place}"),
        Verb::Patch { subresource: Some(part), .. } => format!("patch {kind} {place} {part}"),
        Verb::Delete { grace: None, .. } => format!("delete {kind} {place}"),
        Verb::Delete { grace: Some(grace), .. } => format!("delete {kind} {place} in {grace}s"),
        Verb::Bind { node, .. } => format!("bind {place} to {node}"),
    })
}

fn kind(value: &Value) -> Kind {
    let name = value["kind"].as_str().unwrap_or_default();
    *Kind::ALL.iter().find(|kind| kind.name() == name).expect("a watched kind")
}

fn to_value(object: &Object) -> Value {
    let mut value = match object {
        Object::Namespace(o) => serde_json::to_value(&**o),
        Object::Node(o) => serde_json::to_value(&**o),
        Object::Lease(o) => serde_json::to_value(&**o),
        Object::Pod(o) => serde_json::to_value(&**o),
        Object::Deployment(o) => serde_json::to_value(&**o),
        Object::ReplicaSet(o) => serde_json::to_value(&**o),
        Object::StatefulSet(o) => serde_json::to_value(&**o),
        Object::DaemonSet(o) => serde_json::to_value(&**o),
        Object::ControllerRevision(o) => serde_json::to_value(&**o),
        Object::Job(o) => serde_json::to_value(&**o),
        Object::PodDisruptionBudget(o) => serde_json::to_value(&**o),
        Object::CSINode(o) => serde_json::to_value(&**o),
        Object::StorageClass(o) => serde_json::to_value(&**o),
        Object::PersistentVolume(o) => serde_json::to_value(&**o),
        Object::PersistentVolumeClaim(o) => serde_json::to_value(&**o),
        Object::ServiceAccount(o) => serde_json::to_value(&**o),
        Object::ResourceClaim(o) => serde_json::to_value(&**o),
        Object::ConfigMap(o) => serde_json::to_value(&**o),
    }
    .expect("JSON");
    value["kind"] = object.kind().name().into();
    value
}

/// A merge patch, as RFC 7386 has it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().expect("an object").remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}
