//! Everything the server knows, behind one lock: each request sees and changes it alone.

use std::collections::VecDeque;
use std::sync::Arc;

use clock::Clock;
use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

use crate::kinds;
use crate::quota;
use crate::resources::{Registry, Resource};
use crate::server::Options;
use crate::store::{CollectionId, Fields, Key, Object, Place, Recent, Store};
use crate::time;

/// What Kubernetes uses for random ends of names: no vowels, so that no words appear.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;

/// Work that follows from a change: owners that went, definitions that empty.
#[derive(Clone, Debug)]
pub(crate) enum Chore {
    /// An object went: what it owned may have to follow, and what it blocked may go.
    Gone { uid: Arc<str>, owners: Vec<Arc<str>>, collection: CollectionId },
    /// An object names owners that may not exist.
    CheckOwners(Place),
    /// An object waits for its dependents, or to be parted from them.
    Dependents(Place),
    /// A quota is new, or asks for something else.
    CountQuota(Place),
    /// An object uses less than before, or is gone, in a namespace with quotas.
    GiveBack { collection: CollectionId, before: Box<Value>, after: Option<Box<Value>> },
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) chores: VecDeque<Chore>,
    pub(crate) recent: Recent,
    pub(crate) taint_new_nodes: bool,
    keep_quotas: bool,
    random: Pcg64Mcg,
}

impl State {
    pub(crate) fn new(clock: Clock, options: &Options) -> Self {
        let mut store = Store::new(options.history);
        let registry = Registry::new(&mut store);
        let random = Pcg64Mcg::seed_from_u64(options.seed);
        Self {
            store,
            registry,
            clock,
            chores: VecDeque::new(),
            recent: Recent::default(),
            taint_new_nodes: options.taint_new_nodes,
            keep_quotas: options.keep_quotas,
            random,
        }
    }

    /// The time now, as objects carry it.
    pub(crate) fn now(&self) -> String {
        time::seconds(self.clock.now())
    }

    pub(crate) fn new_uid(&mut self) -> String {
        let bits: u128 = self.random.random();
        // Version 4, variant 1: a random UUID.
        let bits = (bits & !(0xf000 << 64) & !(0xc000 << 48)) | (0x4000 << 64) | (0x8000 << 48);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The random end of a generated name.
    pub(crate) fn suffix(&mut self) -> String {
        (0..SUFFIX_LENGTH)
            .map(|_| char::from(SUFFIX_ALPHABET[self.random.random_range(0..SUFFIX_ALPHABET.len())]))
            .collect()
    }

    pub(crate) fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.store.get(resource.collection, &Key::new(namespace, name)).cloned()
    }

    /// A stored object as JSON.
    pub(crate) fn value(&mut self, resource: &Resource, object: &Arc<Object>) -> Value {
        let Some(mut value) = self.recent.take(object) else { return object.value(resource) };
        // It may have been written as another version.
        resource.set_type(&mut value);
        value
    }

    /// An object of Kubernetes' own, as JSON.
    pub(crate) fn built_in(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.registry.get(group, "v1", plural)?;
        Some(self.get(&resource, namespace, name)?.value(&resource))
    }

    /// Stores a new version of an object, gives it its revision, and notes what follows from it.
    pub(crate) fn put(&mut self, resource: &Resource, value: &mut Value) -> Arc<Object> {
        let fields = selectable_fields(resource, value);
        let object = Object::new(value, self.store.next_revision(), fields);
        let place = (resource.collection, object.key.clone());
        // Owners that were looked at before have told everybody when they went.
        let known = self.store.get(resource.collection, &object.key).map(|old| &old.owners);
        if !object.owners.is_empty() && known != Some(&object.owners) {
            self.chores.push_back(Chore::CheckOwners(place.clone()));
        }
        if object.deleting {
            self.chores.push_back(Chore::Dependents(place.clone()));
        }
        if self.keep_quotas {
            self.note_usage(resource, &place, value);
        }
        let stored = self.store.put(resource.collection, object);
        if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.registry.define(value, &mut self.store);
        }
        stored
    }

    /// Notes what an object of a namespace with quotas no longer uses.
    fn note_usage(&mut self, resource: &Resource, place: &Place, value: &Value) {
        if resource.is("", "ResourceQuota") {
            self.chores.push_back(Chore::CountQuota(place.clone()));
            return;
        }
        let has_ended = || matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let may_shrink = resource.is("", "PersistentVolumeClaim")
            || resource.is("", "Service")
            || resource.is("", "Pod") && has_ended();
        if may_shrink
            && quota::has_any(self, &place.1.namespace)
            && let Some(old) = self.store.get(resource.collection, &place.1)
        {
            let before = Box::new(old.value(resource));
            let after = Some(Box::new(value.clone()));
            self.chores.push_back(Chore::GiveBack { collection: resource.collection, before, after });
        }
    }

    /// Removes an object, whose last state is `value`.
    pub(crate) fn remove(&mut self, resource: &Resource, value: &mut Value) {
        let fields = selectable_fields(resource, value);
        let object = Object::new(value, self.store.next_revision(), fields);
        self.chores.push_back(Chore::Gone {
            uid: object.uid.clone(),
            owners: object.owners.iter().map(|owner| owner.uid.clone()).collect(),
            collection: resource.collection,
        });
        if self.keep_quotas && quota::has_any(self, &object.key.namespace) {
            let before = Box::new(value.clone());
            self.chores.push_back(Chore::GiveBack { collection: resource.collection, before, after: None });
        }
        self.store.remove(resource.collection, object);
        if resource.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            self.registry.undefine(value);
        }
    }
}

/// The fields of a kind that field selectors may ask about, besides name and namespace.
pub(crate) fn selectable(resource: &Resource) -> &'static [&'static str] {
    if let Some(custom) = &resource.custom {
        return custom.selectable;
    }
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ("" | "events.k8s.io", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "Node") => &["spec.unschedulable"],
        ("", "Secret") => &["type"],
        ("", "Namespace") => &["status.phase"],
        ("", "ReplicationController") | ("apps", "ReplicaSet") => &["status.replicas"],
        ("batch", "Job") => &["status.successful"],
        ("resource.k8s.io", "ResourceSlice") => &["spec.nodeName", "spec.driver"],
        _ => &[],
    }
}

fn selectable_fields(resource: &Resource, value: &Value) -> Fields {
    let plain = |path: &str| {
        let found = path.split('.').try_fold(value, |value, key| value.get(key));
        found.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let read = |path: &'static str| {
        if resource.custom.is_some() || resource.kind == "ResourceSlice" {
            return plain(path);
        }
        kinds::field_value("", &resource.kind, value, path)
            .or_else(|| kinds::field_value(&resource.group, &resource.kind, value, path))
    };
    Fields::new(selectable(resource), |path| read(path).unwrap_or_default())
}
