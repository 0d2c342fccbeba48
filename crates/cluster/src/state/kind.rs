//! The kinds of objects that are watched, where they are found, and the objects themselves.

use std::fmt;
use std::sync::Arc;

use api::capacitybuffer::CapacityBuffer;
use api::nodeclaim::NodeClaim;
use api::nodeoverlay::NodeOverlay;
use api::nodepool::NodePool;
use api::provider::Provider;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::store::Store;
use crate::objects::{
    CSINode, DaemonSet, Deployment, Metadata, Namespace, Node, NodeClass, PersistentVolume,
    PersistentVolumeClaim, Pod, PodDisruptionBudget, PodTemplate, PriorityClass, ReplicaSet,
    ReplicationController, Service, StorageClass, VolumeAttachment,
};

/// Where an object is: its namespace, empty for cluster-wide kinds, and its name.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for cluster-wide kinds.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
}

impl Key {
    /// The key of an object in a namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a cluster-wide object.
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What all objects say about themselves.
pub trait Meta {
    /// Where it is.
    fn key(&self) -> Key;
    /// What tells it from an object of the same name before or after; empty when unknown.
    fn uid(&self) -> &str;
    /// What orders the writes to it; zero when unknown.
    fn version(&self) -> u64;
    /// Since when it is on its way out.
    fn deleting_since(&self) -> Option<Timestamp>;
    /// Whether it is on its way out.
    fn is_deleting(&self) -> bool {
        self.deleting_since().is_some()
    }
    /// Notes that it is on its way out.
    fn set_deleting(&mut self, since: Timestamp);
    /// Forgets what nobody looks at.
    fn prune(&mut self) {}
}

impl Meta for Metadata {
    fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.resource_version
    }

    fn deleting_since(&self) -> Option<Timestamp> {
        self.deletion_timestamp.as_ref().map(|time| time.0)
    }

    fn set_deleting(&mut self, since: Timestamp) {
        self.deletion_timestamp = Some(Time(since));
    }
}

impl Meta for ObjectMeta {
    fn key(&self) -> Key {
        Key::new(self.namespace.as_deref().unwrap_or_default(), self.name.as_deref().unwrap_or_default())
    }

    fn uid(&self) -> &str {
        self.uid.as_deref().unwrap_or_default()
    }

    fn version(&self) -> u64 {
        self.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn deleting_since(&self) -> Option<Timestamp> {
        self.deletion_timestamp.as_ref().map(|time| time.0)
    }

    fn set_deleting(&mut self, since: Timestamp) {
        self.deletion_timestamp = Some(Time(since));
    }

    fn prune(&mut self) {
        self.managed_fields = None;
    }
}

/// A kind of object that is watched.
pub trait Watched: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static {
    /// The kind.
    const KIND: Kind;

    /// What the object says about itself.
    fn meta(&self) -> &dyn Meta;

    /// What the object says about itself, to change it.
    fn meta_mut(&mut self) -> &mut dyn Meta;

    /// The object as one of any kind.
    fn wrap(self: Arc<Self>) -> Object;

    /// The objects of this kind.
    fn store(stores: &Stores) -> &Store<Self>;

    /// Where the object is.
    fn key(&self) -> Key {
        self.meta().key()
    }
}

macro_rules! kinds {
    ($($kind:ident: $type:ty, $field:ident, $group:literal, $version:literal, $plural:literal, $namespaced:literal;)*) => {
        /// A kind of object that is watched.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $(#[doc = concat!("`", stringify!($kind), "`")] $kind),* }

        impl Kind {
            /// Every kind, in the order in which they are listed at the start.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The name as objects write it; that of a NodeClass depends on the cloud.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind)),* }
            }

            const fn place(self) -> (&'static str, &'static str, &'static str, bool) {
                match self { $(Self::$kind => ($group, $version, $plural, $namespaced)),* }
            }

            /// Decodes an object of this kind.
            pub fn decode(self, json: &str) -> Result<Object, serde_json::Error> {
                Ok(match self { $(Self::$kind => {
                    let mut object: $type = serde_json::from_str(json)?;
                    object.meta_mut().prune();
                    Object::$kind(Arc::new(object))
                })* })
            }

            /// Which field keeps an object of this kind from being decoded, and why; nothing if it can be.
            pub fn why_not(self, json: &str) -> Option<String> {
                // As files are read: code that tells paths is large, and there is only this kind of it.
                let tree: serde_json::Value = serde_json::from_str(json).ok()?;
                match self { $(Self::$kind => {
                    let error = serde_path_to_error::deserialize::<_, $type>(&tree).err()?;
                    Some(format!("{}: {}", error.path(), error.inner()))
                })* }
            }
        }

        /// An object of any watched kind.
        #[derive(Clone, Debug)]
        pub enum Object { $(#[doc = concat!("`", stringify!($kind), "`")] $kind(Arc<$type>)),* }

        impl Object {
            /// The kind of this object.
            pub const fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind),* }
            }

            /// What the object says about itself.
            pub fn meta(&self) -> &dyn Meta {
                match self { $(Self::$kind(object) => &object.metadata),* }
            }

            /// The same object, on its way out.
            #[must_use]
            pub(super) fn deleting(&self, since: Timestamp) -> Self {
                match self {
                    $(Self::$kind(object) => {
                        let mut object = <$type>::clone(object);
                        object.metadata.set_deleting(since);
                        Self::$kind(Arc::new(object))
                    })*
                }
            }
        }

        $(impl Watched for $type {
            const KIND: Kind = Kind::$kind;

            fn meta(&self) -> &dyn Meta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut dyn Meta {
                &mut self.metadata
            }

            fn wrap(self: Arc<Self>) -> Object {
                Object::$kind(self)
            }

            fn store(stores: &Stores) -> &Store<Self> {
                &stores.$field
            }
        })*

        /// The objects of every kind.
        #[derive(Clone, Default, Debug)]
        pub struct Stores { $(#[doc = concat!("All of kind `", stringify!($kind), "`.")] pub $field: Store<$type>),* }

        impl Stores {
            pub(super) fn insert(&mut self, object: &Object) -> Option<Object> {
                match object {
                    $(Object::$kind(object) => self.$field.insert(object.key(), Arc::clone(object)).map(Object::$kind)),*
                }
            }

            pub(super) fn remove(&mut self, kind: Kind, key: &Key) -> Option<Object> {
                match kind { $(Kind::$kind => self.$field.remove(key).map(Object::$kind)),* }
            }

            /// The object of a kind at a key.
            pub fn object(&self, kind: Kind, key: &Key) -> Option<Object> {
                match kind { $(Kind::$kind => self.$field.get(key).cloned().map(Object::$kind)),* }
            }

            pub(super) fn keys(&self, kind: Kind) -> Vec<Key> {
                match kind { $(Kind::$kind => self.$field.keys().cloned().collect()),* }
            }
        }
    };
}

/// StatefulSets look like ReplicaSets, but are a kind of their own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct StatefulSet(pub ReplicaSet);

impl std::ops::Deref for StatefulSet {
    type Target = ReplicaSet;

    fn deref(&self) -> &ReplicaSet {
        &self.0
    }
}

impl std::ops::DerefMut for StatefulSet {
    fn deref_mut(&mut self) -> &mut ReplicaSet {
        &mut self.0
    }
}

// What others refer to comes first, so that a list of pods finds its nodes.
kinds! {
    Namespace: Namespace, namespaces, "", "v1", "namespaces", false;
    PriorityClass: PriorityClass, priority_classes, "scheduling.k8s.io", "v1", "priorityclasses", false;
    StorageClass: StorageClass, storage_classes, "storage.k8s.io", "v1", "storageclasses", false;
    PersistentVolume: PersistentVolume, persistent_volumes, "", "v1", "persistentvolumes", false;
    PersistentVolumeClaim: PersistentVolumeClaim, persistent_volume_claims, "", "v1", "persistentvolumeclaims", true;
    NodeClass: NodeClass, node_classes, "", "", "", false;
    NodePool: NodePool, node_pools, "karpenter.sh", "v1", "nodepools", false;
    NodeClaim: NodeClaim, node_claims, "karpenter.sh", "v1", "nodeclaims", false;
    NodeOverlay: NodeOverlay, node_overlays, "karpenter.sh", "v1alpha1", "nodeoverlays", false;
    Node: Node, nodes, "", "v1", "nodes", false;
    CSINode: CSINode, csi_nodes, "storage.k8s.io", "v1", "csinodes", false;
    VolumeAttachment: VolumeAttachment, volume_attachments, "storage.k8s.io", "v1", "volumeattachments", false;
    PodDisruptionBudget: PodDisruptionBudget, pod_disruption_budgets, "policy", "v1", "poddisruptionbudgets", true;
    Service: Service, services, "", "v1", "services", true;
    ReplicaSet: ReplicaSet, replica_sets, "apps", "v1", "replicasets", true;
    StatefulSet: StatefulSet, stateful_sets, "apps", "v1", "statefulsets", true;
    ReplicationController: ReplicationController, replication_controllers, "", "v1", "replicationcontrollers", true;
    DaemonSet: DaemonSet, daemon_sets, "apps", "v1", "daemonsets", true;
    Deployment: Deployment, deployments, "apps", "v1", "deployments", true;
    PodTemplate: PodTemplate, pod_templates, "", "v1", "podtemplates", true;
    CapacityBuffer: CapacityBuffer, capacity_buffers, "autoscaling.x-k8s.io", "v1beta1", "capacitybuffers", true;
    Pod: Pod, pods, "", "v1", "pods", true;
}

impl Kind {
    /// Kinds that are watched only where capacity buffers are.
    pub const OF_BUFFERS: &[Self] = &[Self::Deployment, Self::PodTemplate, Self::CapacityBuffer];

    /// Whether a cluster may do without it. Where the API server does not serve any other kind, something is wrong,
    /// and nothing is decided before it does.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::NodeOverlay | Self::CapacityBuffer)
    }

    /// The group, version and plural name under which the API serves it.
    pub fn resource(self, provider: Provider) -> (&'static str, &'static str, &'static str) {
        if self == Self::NodeClass {
            let class = provider.node_class();
            return (class.group, class.version, class.plural);
        }
        let (group, version, plural, _) = self.place();
        (group, version, plural)
    }

    /// Group and version as objects write them.
    pub fn api_version(self, provider: Provider) -> String {
        let (group, version, _) = self.resource(provider);
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
    }

    /// The path of its objects in a namespace, or in all when it is empty.
    pub fn path(self, provider: Provider, namespace: &str) -> String {
        let (group, version, plural) = self.resource(provider);
        let root =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if self.place().3 && !namespace.is_empty() {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }
}

impl Object {
    /// Where this object is.
    pub fn key(&self) -> Key {
        self.meta().key()
    }
}
