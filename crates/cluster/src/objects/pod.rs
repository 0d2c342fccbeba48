//! Pods, as far as scheduling looks at them.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use units::Quantity;

use super::collections::{Labels, List, Map, nullable};
use super::selector::{LabelSelector, NodeSelector, NodeSelectorTerm};
use super::{Effect, Metadata};
use crate::shapes::Noted;

/// Amounts by resource name.
pub type ResourceList = Map<Quantity>;

/// A pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Name, namespace, labels and the like.
    pub metadata: Metadata,
    /// What it asks for.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// What became of it.
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
    /// What the state has found out about it; nothing in files.
    #[serde(skip)]
    pub(crate) noted: Option<Noted>,
}

/// What a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node it is bound to; empty while it waits.
    #[serde(deserialize_with = "nullable")]
    pub node_name: Box<str>,
    /// Labels its node must have.
    pub node_selector: Labels,
    /// Further rules for its node and for pods around it.
    pub affinity: Option<Box<Affinity>>,
    /// Taints it can live with.
    pub tolerations: List<Toleration>,
    /// How its like shall be spread.
    pub topology_spread_constraints: List<TopologySpread>,
    /// Its containers.
    pub containers: List<Container>,
    /// Containers that run before the others, or beside them if they restart.
    pub init_containers: List<Container>,
    /// What the runtime needs on top.
    pub overhead: ResourceList,
    /// What the pod as a whole asks for.
    #[serde(deserialize_with = "nullable")]
    pub resources: ResourceRequirements,
    /// Its volumes that are claims; others do not matter.
    #[serde(deserialize_with = "claim_volumes")]
    pub volumes: List<Volume>,
    /// Devices that are allocated dynamically.
    pub resource_claims: List<Named>,
    /// How important it is.
    pub priority: Option<i32>,
    /// The name of how important it is.
    #[serde(deserialize_with = "nullable")]
    pub priority_class_name: Box<str>,
    /// How long it may take to stop.
    pub termination_grace_period_seconds: Option<i64>,
    /// Who is to place it.
    pub scheduler_name: Option<Box<str>>,
    /// What keeps it from being placed.
    pub scheduling_gates: List<Named>,
}

/// Something of which only the name matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Named {
    /// The name.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
}

/// Rules for the node of a pod and for pods around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    /// Rules for its node.
    pub node_affinity: Option<NodeAffinity>,
    /// Pods to be near.
    pub pod_affinity: Option<PodAffinity>,
    /// Pods to be away from.
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// Rules for the node of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// What must hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// What would be nice.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: List<PreferredNodeTerm>,
}

/// A wish for the node of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct PreferredNodeTerm {
    /// How strong the wish is.
    pub weight: i32,
    /// What is wished.
    pub preference: NodeSelectorTerm,
}

/// Pods to be near, or to be away from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct PodAffinity {
    /// What must hold.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: List<PodAffinityTerm>,
    /// What would be nice.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: List<PreferredPodTerm>,
}

/// A wish about pods around.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PreferredPodTerm {
    /// How strong the wish is.
    pub weight: i32,
    /// What is wished.
    pub pod_affinity_term: PodAffinityTerm,
}

/// Pods of some namespaces, by their labels, seen through a label of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAffinityTerm {
    /// Which pods; none when absent.
    pub label_selector: Option<LabelSelector>,
    /// Namespaces by name.
    pub namespaces: List<Box<str>>,
    /// Namespaces by label.
    pub namespace_selector: Option<LabelSelector>,
    /// The label of nodes.
    pub topology_key: Box<str>,
}

/// Lets a pod onto tainted nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint key; any when empty.
    #[serde(deserialize_with = "nullable")]
    pub key: Box<str>,
    /// How the value is compared.
    #[serde(deserialize_with = "nullable")]
    pub operator: TolerationOperator,
    /// The value it is compared with.
    #[serde(deserialize_with = "nullable")]
    pub value: Box<str>,
    /// The effect.
    #[serde(deserialize_with = "nullable")]
    pub effect: Effect,
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum TolerationOperator {
    /// The values are equal.
    #[default]
    #[serde(alias = "")]
    Equal,
    /// Any value.
    Exists,
    /// The taint's value is a greater integer.
    Gt,
    /// The taint's value is a lesser integer.
    Lt,
}

/// How pods are spread over the values of a node label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TopologySpread {
    /// How much fuller than the emptiest domain another may be.
    pub max_skew: i32,
    /// The label.
    pub topology_key: Box<str>,
    /// `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: Box<str>,
    /// Which pods count; none when absent.
    pub label_selector: Option<LabelSelector>,
    /// How many domains there must be.
    pub min_domains: Option<i32>,
    /// Labels of the pod that are added to the selector.
    pub match_label_keys: List<Box<str>>,
    /// `Honor` or `Ignore`: whether only nodes count that the pod's node rules accept.
    pub node_affinity_policy: Option<Box<str>>,
    /// `Honor` or `Ignore`: whether only nodes count whose taints the pod tolerates.
    pub node_taints_policy: Option<Box<str>>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// What it asks for.
    #[serde(deserialize_with = "nullable")]
    pub resources: ResourceRequirements,
    /// Its ports on the host; others do not matter.
    #[serde(deserialize_with = "host_ports")]
    pub ports: List<ContainerPort>,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<Box<str>>,
}

impl Container {
    /// Whether an init container keeps running beside the others.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

/// What a container or a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// What is set aside.
    pub requests: ResourceList,
    /// What it may use.
    pub limits: ResourceList,
    /// Devices that are allocated dynamically.
    pub claims: List<Named>,
}

/// A port of a container on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct ContainerPort {
    /// The port on the host; none when zero.
    #[serde(rename = "hostPort")]
    pub host_port: i32,
    /// The address of the host; all when empty.
    #[serde(rename = "hostIP", deserialize_with = "nullable")]
    pub host_ip: Box<str>,
    /// The protocol; TCP when absent.
    pub protocol: Option<Box<str>>,
}

fn host_ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<ContainerPort>, D::Error> {
    let ports = Option::<Vec<ContainerPort>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(ports.into_iter().filter(|port| port.host_port != 0).collect())
}

/// A volume that is a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// Its name in the pod.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// A claim by name.
    pub persistent_volume_claim: Option<ClaimSource>,
    /// A claim that is made for the pod and named after it.
    pub ephemeral: Option<Present>,
}

/// A claim by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSource {
    /// The claim, in the pod's namespace.
    pub claim_name: Box<str>,
}

/// Something of which only the presence matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
pub struct Present {}

fn claim_volumes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<List<Volume>, D::Error> {
    let volumes = Option::<Vec<Volume>>::deserialize(deserializer)?.unwrap_or_default();
    let is_claim = |volume: &Volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
    Ok(volumes.into_iter().filter(is_claim).collect())
}

/// What became of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// How far it is.
    #[serde(deserialize_with = "nullable")]
    pub phase: Phase,
    /// What its conditions say.
    pub conditions: PodConditions,
    /// Where it is about to go, because others make room for it.
    #[serde(deserialize_with = "nullable")]
    pub nominated_node_name: Box<str>,
    /// When its node took it.
    pub start_time: Option<Time>,
    /// What its containers have.
    pub container_statuses: List<ContainerStatus>,
    /// What its init containers have.
    pub init_container_statuses: List<ContainerStatus>,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Phase {
    /// Not all containers run yet.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It is done.
    Succeeded,
    /// It is done, but not as it should.
    Failed,
    /// Nobody knows.
    #[serde(other)]
    Unknown,
}

/// The conditions of a pod that matter to scheduling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodConditions {
    /// A scheduler has looked at it.
    pub scheduling: Option<Scheduling>,
    /// It is known not to be ready.
    pub not_ready: bool,
    /// Since when it is ready.
    pub ready_since: Option<Timestamp>,
    /// Since when it has a node.
    pub scheduled_since: Option<Timestamp>,
    /// The node has not resized it yet.
    pub resize: Option<Resize>,
}

/// What the scheduler says about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// There is no place for it.
    Unschedulable,
    /// Anything else: it has a place, or is held back.
    Other,
}

/// What the node says about a resize.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// It can never be done.
    Infeasible,
    /// It can be done, perhaps later.
    Other,
}

impl<'de> Deserialize<'de> for PodConditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConditionsVisitor)
    }
}

struct ConditionsVisitor;

impl<'de> Visitor<'de> for ConditionsVisitor {
    type Value = PodConditions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of conditions")
    }

    fn visit_unit<E>(self) -> Result<PodConditions, E> {
        Ok(PodConditions::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PodConditions, A::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Condition<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            status: Cow<'a, str>,
            #[serde(borrow)]
            reason: Option<Cow<'a, str>>,
            #[serde(rename = "lastTransitionTime")]
            since: Option<Time>,
        }

        let mut conditions = PodConditions::default();
        while let Some(condition) = list.next_element::<Condition<'de>>()? {
            let has_reason = |reason: &str| condition.reason.as_deref() == Some(reason);
            match &*condition.kind {
                "PodScheduled" if has_reason("Unschedulable") => {
                    conditions.scheduling = Some(Scheduling::Unschedulable);
                }
                "PodScheduled" => {
                    conditions.scheduling.get_or_insert(Scheduling::Other);
                    if condition.status == "True" {
                        conditions.scheduled_since = condition.since.map(|since| since.0);
                    }
                }
                "Ready" => {
                    conditions.not_ready |= condition.status == "False";
                    if condition.status == "True" {
                        conditions.ready_since = condition.since.map(|since| since.0);
                    }
                }
                "PodResizePending" => {
                    let resize = if has_reason("Infeasible") { Resize::Infeasible } else { Resize::Other };
                    conditions.resize.get_or_insert(resize);
                }
                _ => {}
            }
        }
        Ok(conditions)
    }
}

/// What a container has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The container.
    #[serde(deserialize_with = "nullable")]
    pub name: Box<str>,
    /// What it has been given.
    pub resources: Option<ResourceRequirements>,
    /// What has been set aside for it.
    pub allocated_resources: ResourceList,
}
