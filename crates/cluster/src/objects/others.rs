//! Kinds other than pods, as far as scheduling looks at them.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;

use super::collections::{Labels, List, nullable};
use super::pod::{PodSpec, Present, ResourceList};
use super::selector::{LabelSelector, NodeSelector};
use super::{Effect, Metadata};

/// Declares a kind that has a spec and perhaps a status.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            /// Name, namespace, labels and the like.
            pub metadata: Metadata,
            $($(#[$field_doc])* #[serde(deserialize_with = "nullable")] pub $field: $type,)*
        }
    };
}

/// Declares a part of a kind.
macro_rules! part {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$field_doc])* #[serde(deserialize_with = "nullable")] pub $field: $type,)*
        }
    };
}

kind! {
    /// A node.
    Node {
        /// What it shall be.
        spec: NodeSpec,
        /// What it is.
        status: NodeStatus,
    }
}

/// What a node shall be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// The instance behind it.
    #[serde(rename = "providerID", deserialize_with = "nullable")]
    pub provider_id: Box<str>,
    /// What keeps pods away.
    pub taints: List<Taint>,
}

part! {
    /// What a node is.
    NodeStatus {
        /// All it has.
        capacity: ResourceList,
        /// What pods may use.
        allocatable: ResourceList,
    }
}

part! {
    /// Keeps pods away from a node unless they tolerate it.
    Taint {
        /// The key.
        key: Box<str>,
        /// The value.
        value: Box<str>,
        /// What happens to pods that do not tolerate it.
        effect: Effect,
    }
}

kind! {
    /// The drivers for volumes on a node.
    CSINode {
        /// The drivers.
        spec: CSINodeSpec,
    }
}

part! {
    /// The drivers for volumes on a node.
    CSINodeSpec {
        /// The drivers.
        drivers: List<CSINodeDriver>,
    }
}

part! {
    /// A driver for volumes on a node.
    CSINodeDriver {
        /// Its name.
        name: Box<str>,
        /// How many volumes it can attach; any number when absent.
        allocatable: Option<VolumeCount>,
    }
}

part! {
    /// A number of volumes.
    VolumeCount {
        /// The number; any when absent.
        count: Option<i32>,
    }
}

kind! {
    /// A pod for every node.
    DaemonSet {
        /// What the pods are like.
        spec: DaemonSetSpec,
    }
}

part! {
    /// What the pods of a DaemonSet are like.
    DaemonSetSpec {
        /// The shape of the pods.
        template: PodTemplate,
    }
}

part! {
    /// The shape of pods.
    PodTemplate {
        /// What they ask for.
        spec: PodSpec,
    }
}

kind! {
    /// A namespace, of which only the labels matter.
    Namespace {}
}

kind! {
    /// A volume.
    PersistentVolume {
        /// What it is.
        spec: PersistentVolumeSpec,
    }
}

part! {
    /// What a volume is.
    PersistentVolumeSpec {
        /// Where it can be attached.
        node_affinity: VolumeNodeAffinity,
        /// Its driver.
        csi: Option<VolumeDriver>,
        /// It is an EBS volume of the time before drivers.
        aws_elastic_block_store: Option<Present>,
        /// It is a disk of one node.
        local: Option<Present>,
        /// It is a directory of one node.
        host_path: Option<Present>,
    }
}

part! {
    /// Where a volume can be attached.
    VolumeNodeAffinity {
        /// Alternatives for the node.
        required: NodeSelector,
    }
}

part! {
    /// Who attaches a volume.
    VolumeDriver {
        /// The driver's name.
        driver: Box<str>,
    }
}

kind! {
    /// The request for a volume.
    PersistentVolumeClaim {
        /// What is requested.
        spec: PersistentVolumeClaimSpec,
        /// What became of it.
        status: PersistentVolumeClaimStatus,
    }
}

part! {
    /// What volume is requested.
    PersistentVolumeClaimSpec {
        /// The volume it got; empty while it waits.
        volume_name: Box<str>,
        /// How the volume is made.
        storage_class_name: Box<str>,
    }
}

part! {
    /// What became of the request for a volume.
    PersistentVolumeClaimStatus {
        /// `Lost` when the volume is gone.
        phase: Box<str>,
    }
}

kind! {
    /// How volumes are made.
    StorageClass {
        /// Who makes them.
        provisioner: Box<str>,
        /// `Immediate` makes the volume before a pod needs it.
        volume_binding_mode: Box<str>,
        /// Alternatives for where they can be.
        allowed_topologies: List<TopologySelectorTerm>,
    }
}

part! {
    /// Conditions on where a volume can be, all of which must hold.
    TopologySelectorTerm {
        /// The conditions.
        match_label_expressions: List<TopologySelectorExpression>,
    }
}

part! {
    /// A condition on where a volume can be.
    TopologySelectorExpression {
        /// The label of nodes.
        key: Box<str>,
        /// The values it can have.
        values: List<Box<str>>,
    }
}

kind! {
    /// How many pods may be missing at a time.
    PodDisruptionBudget {
        /// What is allowed.
        spec: PodDisruptionBudgetSpec,
    }
}

part! {
    /// How many pods may be missing at a time.
    PodDisruptionBudgetSpec {
        /// Which pods; none when absent.
        selector: Option<LabelSelector>,
        /// How many must be there.
        min_available: Option<IntOrString>,
        /// How many may be missing.
        max_unavailable: Option<IntOrString>,
        /// `AlwaysAllow` lets pods go that are not ready.
        unhealthy_pod_eviction_policy: Box<str>,
    }
}

kind! {
    /// How important pods are.
    PriorityClass {
        /// The more, the more important.
        value: i32,
    }
}

kind! {
    /// Sends traffic to pods.
    Service {
        /// To which pods.
        spec: ServiceSpec,
    }
}

part! {
    /// To which pods a service sends traffic.
    ServiceSpec {
        /// Their labels; no pods when absent.
        selector: Option<Labels>,
    }
}

kind! {
    /// A ReplicaSet or a StatefulSet.
    ReplicaSet {
        /// Which pods are its own.
        spec: ReplicaSetSpec,
    }
}

part! {
    /// Which pods a ReplicaSet or a StatefulSet has.
    ReplicaSetSpec {
        /// Their labels.
        selector: Option<LabelSelector>,
    }
}

kind! {
    /// The predecessor of ReplicaSets.
    ReplicationController {
        /// Which pods are its own.
        spec: ReplicationControllerSpec,
    }
}

part! {
    /// Which pods a ReplicationController has.
    ReplicationControllerSpec {
        /// Their labels.
        selector: Labels,
    }
}
