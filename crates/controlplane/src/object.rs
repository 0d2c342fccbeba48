//! The kinds of objects that are watched, and what is kept of them.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, Namespace, Node, PersistentVolume, PersistentVolumeClaim, ServiceAccount,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use serde_json::Error as JsonError;

use crate::cache::Store;
pub use crate::lease::Lease;
use crate::names;
pub use crate::pod::Pod;

/// Where an object is: its namespace, empty for cluster-wide kinds, and its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object in a namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of a cluster-wide object.
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }

    /// The key of an object.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

/// What to forget of an object before it is kept: what no controller looks at.
pub(crate) trait Prune {
    fn prune(&mut self) {}
}

macro_rules! kinds {
    ($($kind:ident, $field:ident, $path:literal, $plural:literal, $namespaced:literal;)*) => {
        /// A kind of object that is watched.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind { $(#[doc = concat!("`", stringify!($kind), "`")] $kind),* }

        impl Kind {
            /// Every kind, in the order of declaration.
            pub const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// The path of the collection of all objects of this kind in a namespace.
            pub(crate) fn url(self, namespace: &str) -> String {
                let (path, plural, namespaced) = match self { $(Kind::$kind => ($path, $plural, $namespaced)),* };
                if namespaced && !namespace.is_empty() {
                    format!("{path}/namespaces/{namespace}/{plural}")
                } else {
                    format!("{path}/{plural}")
                }
            }

            /// The API version as objects name it.
            pub fn api_version(self) -> String {
                match self { $(Kind::$kind => <$kind as Resource>::api_version(&()).into_owned()),* }
            }

            /// The name as objects write it.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$kind => stringify!($kind)),* }
            }

            pub(crate) fn parse(self, text: &str) -> Result<Object, JsonError> {
                Ok(match self { $(Kind::$kind => Object::from(serde_json::from_str::<$kind>(text)?)),* })
            }
        }

        /// An object of any watched kind.
        #[derive(Clone, Debug)]
        pub enum Object { $(#[doc = concat!("`", stringify!($kind), "`")] $kind(Arc<$kind>)),* }

        impl Object {
            /// The kind of this object.
            pub const fn kind(&self) -> Kind {
                match self { $(Object::$kind(_) => Kind::$kind),* }
            }

            /// The metadata of this object.
            pub fn meta(&self) -> &ObjectMeta {
                match self { $(Object::$kind(object) => object.meta()),* }
            }

            /// The same object with `change` made to its metadata.
            pub(crate) fn with_meta(&self, change: impl FnOnce(&mut ObjectMeta)) -> Object {
                match self {
                    $(Object::$kind(object) => {
                        let mut object = $kind::clone(object);
                        change(object.meta_mut());
                        Object::$kind(Arc::new(object))
                    })*
                }
            }
        }

        $(impl From<$kind> for Object {
            fn from(mut object: $kind) -> Self {
                prune_meta(object.meta_mut());
                object.prune();
                Object::$kind(Arc::new(object))
            }
        })*

        /// The objects of every kind.
        #[derive(Default, Debug)]
        pub struct Stores { $(#[doc = concat!("All of kind `", stringify!($kind), "`.")] pub $field: Store<$kind>),* }

        impl Stores {
            pub(crate) fn insert(&mut self, key: Key, object: &Object) -> Option<Object> {
                match object {
                    $(Object::$kind(object) => self.$field.insert(key, Arc::clone(object)).map(Object::$kind)),*
                }
            }

            pub(crate) fn remove(&mut self, kind: Kind, key: &Key) -> Option<Object> {
                match kind { $(Kind::$kind => self.$field.remove(key).map(Object::$kind)),* }
            }

            pub(crate) fn object(&self, kind: Kind, key: &Key) -> Option<Object> {
                match kind { $(Kind::$kind => self.$field.get(key).cloned().map(Object::$kind)),* }
            }

            pub(crate) fn keys(&self, kind: Kind) -> Vec<Key> {
                match kind { $(Kind::$kind => self.$field.keys().cloned().collect()),* }
            }
        }
    };
}

kinds! {
    Namespace, namespaces, "/api/v1", "namespaces", false;
    Node, nodes, "/api/v1", "nodes", false;
    Lease, leases, "/apis/coordination.k8s.io/v1", "leases", true;
    Pod, pods, "/api/v1", "pods", true;
    Deployment, deployments, "/apis/apps/v1", "deployments", true;
    ReplicaSet, replica_sets, "/apis/apps/v1", "replicasets", true;
    StatefulSet, stateful_sets, "/apis/apps/v1", "statefulsets", true;
    DaemonSet, daemon_sets, "/apis/apps/v1", "daemonsets", true;
    ControllerRevision, revisions, "/apis/apps/v1", "controllerrevisions", true;
    Job, jobs, "/apis/batch/v1", "jobs", true;
    PodDisruptionBudget, budgets, "/apis/policy/v1", "poddisruptionbudgets", true;
    CSINode, csi_nodes, "/apis/storage.k8s.io/v1", "csinodes", false;
    StorageClass, storage_classes, "/apis/storage.k8s.io/v1", "storageclasses", false;
    PersistentVolume, volumes, "/api/v1", "persistentvolumes", false;
    PersistentVolumeClaim, claims, "/api/v1", "persistentvolumeclaims", true;
    ResourceClaim, resource_claims, "/apis/resource.k8s.io/v1", "resourceclaims", true;
    ServiceAccount, service_accounts, "/api/v1", "serviceaccounts", true;
    ConfigMap, config_maps, "/api/v1", "configmaps", true;
}

impl Object {
    /// Where this object is.
    pub fn key(&self) -> Key {
        Key::of(self.meta())
    }
}

fn prune_meta(meta: &mut ObjectMeta) {
    meta.managed_fields = None;
    meta.self_link = None;
    fit(meta.owner_references.as_mut());
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(names::LAST_APPLIED);
    }
}

/// Gives back the room that a list was read with and does not need, which for a few large entries is most of it.
fn fit<T>(list: Option<&mut Vec<T>>) {
    if let Some(list) = list.filter(|list| list.len() < list.capacity()) {
        // It is moved because allocators do not take back less than half of a block.
        let mut fitting = Vec::with_capacity(list.len());
        fitting.append(list);
        *list = fitting;
    }
}

impl Prune for Pod {
    fn prune(&mut self) {
        if let Some(status) = &mut self.status {
            fit(status.conditions.as_mut());
            fit(status.container_statuses.as_mut());
            fit(status.init_container_statuses.as_mut());
            fit(status.host_ips.as_mut());
            fit(status.pod_ips.as_mut());
        }
        if let Some(spec) = &mut self.spec {
            fit(Some(&mut spec.containers));
            fit(spec.init_containers.as_mut());
            fit(spec.volumes.as_mut());
            fit(spec.tolerations.as_mut());
        }
    }
}

impl Prune for ConfigMap {
    /// Only its existence matters.
    fn prune(&mut self) {
        self.data = None;
        self.binary_data = None;
    }
}

impl Prune for Node {
    fn prune(&mut self) {
        if let Some(status) = &mut self.status {
            status.images = None;
        }
    }
}

impl Prune for Namespace {}
impl Prune for Lease {}
impl Prune for Deployment {}
impl Prune for ReplicaSet {}
impl Prune for StatefulSet {}
impl Prune for DaemonSet {}
impl Prune for ControllerRevision {}
impl Prune for Job {}
impl Prune for PodDisruptionBudget {}
impl Prune for CSINode {}
impl Prune for StorageClass {}
impl Prune for PersistentVolume {}
impl Prune for PersistentVolumeClaim {}
impl Prune for ResourceClaim {}
impl Prune for ServiceAccount {}

/// The resource version as the number that orders writes; zero when there is none.
pub(crate) fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The owner that controls an object.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether the object `uid` controls the one with this metadata.
pub(crate) fn controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller(meta).is_some_and(|owner| owner.uid == uid)
}

/// Whether a finalizer holds the object.
pub(crate) fn has_finalizer(meta: &ObjectMeta, name: &str) -> bool {
    meta.finalizers.iter().flatten().any(|finalizer| finalizer == name)
}

/// The value of a label.
pub(crate) fn label<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(name).map(String::as_str)
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The uid of an object, empty if it has none yet.
pub(crate) fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}
