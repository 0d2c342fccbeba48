//! Kubernetes objects with only what scheduling needs. Entry: [`Objects`].
//!
//! Everything else, `managedFields` above all, is skipped while decoding: it would be most of the time and
//! most of the memory.

pub mod collections;
pub mod others;
pub mod pod;
pub mod selector;

use std::borrow::Cow;

use api::aws::EC2NodeClass;
use api::azure::AKSNodeClass;
use api::capacitybuffer::CapacityBuffer;
use api::kwok::KWOKNodeClass;
use api::nodeclaim::NodeClaim;
use api::nodeoverlay::NodeOverlay;
use api::nodepool::NodePool;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer};

use collections::{Annotations, Labels, List, nullable};
pub use others::{
    CSINode, CronJob, DaemonSet, Deployment, Job, Namespace, Node, NodeClass, PersistentVolume,
    PersistentVolumeClaim, PodDisruptionBudget, PodTemplate, PodTemplateSpec, PriorityClass, ReplicaSet,
    ReplicationController, Service, StorageClass, Taint, VolumeAttachment,
};
pub use pod::Pod;

/// Name, namespace, labels and the like.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The name.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// The namespace as written; see [`Metadata::namespace`].
    #[serde(deserialize_with = "nullable")]
    pub namespace: Box<str>,
    /// What tells it from an object of the same name before or after.
    #[serde(deserialize_with = "nullable")]
    pub uid: Box<str>,
    /// Labels.
    pub labels: Labels,
    /// Annotations that matter.
    pub annotations: Annotations,
    /// What it belongs to.
    pub owner_references: List<OwnerReference>,
    /// What must be done before it may go.
    pub finalizers: List<Box<str>>,
    /// Orders the writes to it; zero in files.
    #[serde(deserialize_with = "version")]
    pub resource_version: u64,
    /// Counts the changes of what is asked for.
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    /// When it was created.
    pub creation_timestamp: Option<Time>,
    /// When it was or will be deleted; it is on its way out if set.
    pub deletion_timestamp: Option<Time>,
}

impl Metadata {
    /// The namespace, for kinds that have one: `default` in files that do not say.
    pub fn namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }

    /// Whether it is on its way out.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether one of its owners is of a kind.
    pub fn is_owned_by(&self, api_version: &str, kind: &str) -> bool {
        self.owner_references.iter().any(|owner| owner.is(api_version, kind))
    }

    /// Whether something must be done before it may go.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| &**finalizer == name)
    }

    /// The owner that manages it.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

/// Resource versions are numbers on every API server there is; another one would order nothing.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = Option::<Cow<'de, str>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()).unwrap_or_default())
}

/// What an object belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// The owner's API group and version.
    pub api_version: Box<str>,
    /// The owner's kind.
    pub kind: Box<str>,
    /// The owner's name.
    pub name: Box<str>,
    /// The owner's UID.
    #[serde(deserialize_with = "nullable")]
    pub uid: Box<str>,
    /// Whether the owner manages the object.
    #[serde(deserialize_with = "nullable")]
    pub controller: bool,
}

impl OwnerReference {
    /// Whether the owner is of a kind.
    pub fn is(&self, api_version: &str, kind: &str) -> bool {
        &*self.kind == kind && &*self.api_version == api_version
    }
}

/// What happens to pods that do not tolerate a taint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum Effect {
    /// Every effect, in a toleration that does not say.
    #[default]
    #[serde(rename = "")]
    Any,
    /// They are not scheduled.
    NoSchedule,
    /// They are not scheduled if there is another way.
    PreferNoSchedule,
    /// They are evicted.
    NoExecute,
}

/// Declares [`Objects`] with one list for each kind.
macro_rules! objects {
    ($($(#[$doc:meta])* $field:ident: $kind:ty,)*) => {
        /// The objects of a cluster by kind.
        #[derive(Clone, Debug, Default)]
        pub struct Objects {
            $($(#[$doc])* pub $field: Vec<$kind>,)*
        }

        impl Objects {
            /// Adds all objects of another cluster file.
            pub fn extend(&mut self, other: Self) {
                $(self.$field.extend(other.$field);)*
            }

            /// How many objects there are.
            pub fn len(&self) -> usize {
                0 $(+ self.$field.len())*
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

objects! {
    /// Pods.
    pods: Pod,
    /// Nodes.
    nodes: Node,
    /// DaemonSets.
    daemon_sets: DaemonSet,
    /// Namespaces.
    namespaces: Namespace,
    /// Volumes.
    persistent_volumes: PersistentVolume,
    /// Requests for volumes.
    persistent_volume_claims: PersistentVolumeClaim,
    /// How volumes are made.
    storage_classes: StorageClass,
    /// Drivers for volumes on nodes.
    csi_nodes: CSINode,
    /// How many pods may be missing.
    pod_disruption_budgets: PodDisruptionBudget,
    /// How important pods are.
    priority_classes: PriorityClass,
    /// Services.
    services: Service,
    /// ReplicaSets.
    replica_sets: ReplicaSet,
    /// StatefulSets.
    stateful_sets: ReplicaSet,
    /// ReplicationControllers.
    replication_controllers: ReplicationController,
    /// Deployments.
    deployments: Deployment,
    /// Jobs.
    jobs: Job,
    /// CronJobs.
    cron_jobs: CronJob,
    /// Shapes of pods.
    pod_templates: PodTemplate,
    /// Room that is kept for pods to come.
    capacity_buffers: CapacityBuffer,
    /// NodePools.
    node_pools: NodePool,
    /// NodeClaims.
    node_claims: NodeClaim,
    /// NodeOverlays.
    node_overlays: NodeOverlay,
    /// NodeClasses of simulated nodes.
    kwok_node_classes: KWOKNodeClass,
    /// NodeClasses of EC2.
    ec2_node_classes: EC2NodeClass,
    /// NodeClasses of AKS.
    aks_node_classes: AKSNodeClass,
}
