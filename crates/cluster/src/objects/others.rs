//! Kinds other than pods, as far as scheduling looks at them.

use api::shared::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
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
    /// Whether somebody keeps new pods away.
    #[serde(deserialize_with = "nullable")]
    pub unschedulable: bool,
}

part! {
    /// What a node is.
    NodeStatus {
        /// All it has.
        capacity: ResourceList,
        /// What pods may use.
        allocatable: ResourceList,
        /// How it is.
        conditions: List<NodeCondition>,
        /// What runs on it.
        node_info: NodeInfo,
        /// How far it is; rarely set.
        phase: Box<str>,
    }
}

impl Node {
    /// The condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|condition| &*condition.kind == kind)
    }

    /// Whether its kubelet says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|condition| &*condition.status == "True")
    }
}

/// How a node is in some respect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeCondition {
    /// In which respect.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: Box<str>,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "nullable")]
    pub status: Box<str>,
    /// Why, as one word.
    #[serde(deserialize_with = "nullable")]
    pub reason: Box<str>,
    /// Since when.
    pub last_transition_time: Option<Time>,
}

/// What runs on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    /// Changes with every boot.
    #[serde(rename = "bootID", deserialize_with = "nullable")]
    pub boot_id: Box<str>,
    /// The version of its kubelet, such as `v1.34.2`.
    #[serde(rename = "kubeletVersion", deserialize_with = "nullable")]
    pub kubelet_version: Box<str>,
}

part! {
    /// Keeps pods away from a node unless they tolerate it.
    #[derive(PartialEq, Eq)]
    Taint {
        /// The key.
        key: Box<str>,
        /// The value.
        value: Box<str>,
        /// What happens to pods that do not tolerate it.
        effect: Effect,
        /// When it was added, which decides when pods that tolerate it for a while must go.
        time_added: Option<Time>,
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
        template: PodTemplateSpec,
    }
}

part! {
    /// The shape of pods.
    PodTemplateSpec {
        /// What they bear.
        metadata: TemplateMetadata,
        /// What they ask for.
        spec: PodSpec,
    }
}

part! {
    /// What pods of a shape bear.
    TemplateMetadata {
        /// Their labels.
        labels: Labels,
    }
}

kind! {
    /// A shape of pods to refer to.
    PodTemplate {
        /// The shape.
        template: PodTemplateSpec,
    }
}

kind! {
    /// Pods that are all alike, and how they are replaced.
    Deployment {
        /// What the pods are like.
        spec: DeploymentSpec,
    }
}

part! {
    /// What the pods of a Deployment are like.
    DeploymentSpec {
        /// Their labels.
        selector: Option<LabelSelector>,
        /// How many there shall be; one when absent.
        replicas: Option<i32>,
        /// The shape of the pods.
        template: PodTemplateSpec,
    }
}

kind! {
    /// Pods that run until they have succeeded.
    Job {
        /// What the pods are like.
        spec: JobSpec,
        /// What became of them.
        status: JobStatus,
    }
}

part! {
    /// What the pods of a Job are like.
    JobSpec {
        /// How many run at the same time; one when absent.
        parallelism: Option<i32>,
        /// How many must succeed.
        completions: Option<i32>,
        /// Whether none are to run.
        suspend: bool,
        /// The shape of the pods.
        template: PodTemplateSpec,
    }
}

part! {
    /// What became of the pods of a Job.
    JobStatus {
        /// How many have succeeded.
        succeeded: i32,
        /// How it is.
        conditions: List<JobCondition>,
    }
}

part! {
    /// How a Job is in some respect.
    JobCondition {
        /// In which respect.
        #[serde(rename = "type")]
        kind: Box<str>,
        /// `True`, `False` or `Unknown`.
        status: Box<str>,
    }
}

kind! {
    /// A Job at certain times.
    CronJob {
        /// What the Jobs are like.
        spec: CronJobSpec,
    }
}

part! {
    /// What the Jobs of a CronJob are like.
    CronJobSpec {
        /// Whether none are to run.
        suspend: bool,
        /// The shape of the Jobs.
        job_template: JobTemplateSpec,
    }
}

part! {
    /// The shape of Jobs.
    JobTemplateSpec {
        /// What their pods are like.
        spec: JobSpec,
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
        /// What that comes to at present.
        status: PodDisruptionBudgetStatus,
    }
}

part! {
    /// What a budget comes to at present.
    PodDisruptionBudgetStatus {
        /// How many more pods may go.
        disruptions_allowed: i32,
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
        /// How many there shall be; one when absent.
        replicas: Option<i32>,
        /// The shape of the pods; the state forgets it where nobody asks for it.
        template: Option<Box<PodTemplateSpec>>,
        /// The shapes of the volumes that each pod of a StatefulSet gets; the state forgets them, too.
        volume_claim_templates: List<PersistentVolumeClaim>,
        /// How the pods of a StatefulSet are numbered.
        ordinals: Ordinals,
    }
}

part! {
    /// How the pods of a StatefulSet are numbered.
    Ordinals {
        /// The number of the first.
        start: i32,
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
        /// How many there shall be; one when absent.
        replicas: Option<i32>,
        /// The shape of the pods; the state forgets it where nobody asks for it.
        template: Option<Box<PodTemplateSpec>>,
    }
}

kind! {
    /// A volume that is attached to a node, or is to be.
    VolumeAttachment {
        /// Which, and where.
        spec: VolumeAttachmentSpec,
    }
}

part! {
    /// Which volume is attached, and where.
    VolumeAttachmentSpec {
        /// The node.
        node_name: Box<str>,
        /// The volume.
        source: VolumeAttachmentSource,
    }
}

part! {
    /// The volume that is attached.
    VolumeAttachmentSource {
        /// By name; empty for volumes that a pod defines itself.
        persistent_volume_name: Box<str>,
    }
}

kind! {
    /// What configures the instances of a cloud: as much as all clouds have in common.
    NodeClass {
        /// What it asks for, which only its own cloud understands.
        spec: serde_json::Value,
        /// How it is.
        status: NodeClassStatus,
    }
}

/// How a NodeClass is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeClassStatus {
    /// In which respects.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    /// What was found for it, which only its own cloud understands.
    #[serde(flatten)]
    pub found: serde_json::Map<String, serde_json::Value>,
}

impl NodeClass {
    /// The condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == kind)
    }
}
