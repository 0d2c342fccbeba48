//! NodeClaim (`karpenter.sh/v1`): the request for one node, and what became of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{GoDuration, NillableDuration};

use crate::nodepool::expire_after;
use crate::resource::{Column, CustomResource, Definition, custom_resource};
use crate::schema::{self, Rule, rule};
use crate::shared::{self, Condition, NodeClassReference, Requirement, ResourceList, Taint};

custom_resource! {
    /// The request for one node.
    NodeClaim {
        group: "karpenter.sh", version: "v1", plural: "nodeclaims", scope: ClusterResourceScope,
        spec: NodeClaimSpec, status: NodeClaimStatus
    }
}

impl CustomResource for NodeClaim {
    type Spec = NodeClaimSpec;
    type Status = NodeClaimStatus;
    const DEFINITION: Definition = Definition {
        description: "The request for one node, and what became of it.",
        short_names: &[],
        categories: &["karpenter"],
        namespaced: false,
        columns: &[
            Column::new("Type", "string", r".metadata.labels.node\.kubernetes\.io/instance-type"),
            Column::new("Capacity", "string", r".metadata.labels.karpenter\.sh/capacity-type"),
            Column::new("Zone", "string", r".metadata.labels.topology\.kubernetes\.io/zone"),
            Column::new("Node", "string", ".status.nodeName"),
            Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
            Column::new("Age", "date", ".metadata.creationTimestamp"),
            Column::wide("ImageID", "string", ".status.imageID"),
            Column::wide("ID", "string", ".status.providerID"),
            Column::wide("NodePool", "string", r".metadata.labels.karpenter\.sh/nodepool"),
            Column::wide("NodeClass", "string", ".spec.nodeClassRef.name"),
            Column::wide("Drifted", "string", r#".status.conditions[?(@.type=="Drifted")].status"#),
        ],
        scale: None,
        spec_required: true,
        deprecation: None,
    };

    fn spec_rules() -> Vec<Rule> {
        vec![rule("self == oldSelf", "spec is immutable")]
    }
}

/// What the node must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// Taints that stay on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::taints")]
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else removes once the node is set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::taints")]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the labels of the node must satisfy.
    #[schemars(schema_with = "shared::node_claim_requirements")]
    pub requirements: Vec<Requirement>,
    /// What the node must provide at least.
    #[serde(default, skip_serializing_if = "ResourceRequirements::is_empty")]
    pub resources: ResourceRequirements,
    /// Which NodeClass configures the instance.
    #[schemars(schema_with = "shared::node_class_reference")]
    pub node_class_ref: NodeClassReference,
    /// How long the node may drain before its pods are deleted, whatever protects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub termination_grace_period: Option<GoDuration>,
    /// How long the node may live before it is replaced, or `Never`.
    #[serde(default = "expire_after")]
    #[schemars(schema_with = "schema::nillable_duration", extend("default" = "720h"))]
    pub expire_after: NillableDuration,
}

impl Default for NodeClaimSpec {
    fn default() -> Self {
        Self {
            taints: None,
            startup_taints: None,
            requirements: Vec::new(),
            resources: ResourceRequirements::default(),
            node_class_ref: NodeClassReference::default(),
            termination_grace_period: None,
            expire_after: expire_after(),
        }
    }
}

/// What the node must provide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRequirements {
    /// The least amount of each resource.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub requests: ResourceList,
}

impl ResourceRequirements {
    fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// What became of the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The Node that registered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// The instance, as the cloud provider names it.
    #[serde(default, rename = "providerID", skip_serializing_if = "String::is_empty")]
    pub provider_id: String,
    /// The image the instance was started from.
    #[serde(default, rename = "imageID", skip_serializing_if = "String::is_empty")]
    pub image_id: String,
    /// What the instance is expected to have.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub capacity: ResourceList,
    /// What pods are expected to be able to use of it.
    #[serde(default, skip_serializing_if = "ResourceList::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub allocatable: ResourceList,
    /// What is known about the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::node_claim_conditions")]
    pub conditions: Vec<Condition>,
    /// When a pod last came to the node or left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_pod_event_time: Option<Time>,
}
