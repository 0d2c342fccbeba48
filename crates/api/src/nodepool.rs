//! NodePool (`karpenter.sh/v1`): what nodes may be created, how many, and when they may be disrupted.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{GoDuration, NillableDuration};

use crate::resource::{Column, CustomResource, Definition, custom_resource};
use crate::schema::{self, Rule, rule};
use crate::shared::{self, Condition, NodeClassReference, Requirement, ResourceList, Taint};

custom_resource! {
    /// A pool of nodes with common properties.
    NodePool {
        group: "karpenter.sh", version: "v1", plural: "nodepools", scope: ClusterResourceScope,
        spec: NodePoolSpec, status: NodePoolStatus
    }
}

impl CustomResource for NodePool {
    type Spec = NodePoolSpec;
    type Status = NodePoolStatus;
    const DEFINITION: Definition = Definition {
        description: "A pool of nodes with common properties: what nodes may be created, how many, and when they \
            may be disrupted.",
        short_names: &[],
        categories: &["karpenter"],
        namespaced: false,
        columns: &[
            Column::new("NodeClass", "string", ".spec.template.spec.nodeClassRef.name"),
            Column::new("Nodes", "string", ".status.nodes"),
            Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
            Column::new("Age", "date", ".metadata.creationTimestamp"),
            Column::wide("Weight", "integer", ".spec.weight"),
            Column::wide("CPU", "string", ".status.resources.cpu"),
            Column::wide("Memory", "string", ".status.resources.memory"),
        ],
        scale: Some((".spec.replicas", ".status.nodes")),
        spec_required: true,
        deprecation: None,
    };

    fn spec_rules() -> Vec<Rule> {
        vec![
            rule(
                "has(self.replicas) == has(oldSelf.replicas)",
                "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
            ),
            rule(
                "!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))",
                "only 'limits.nodes' is supported on static NodePools",
            ),
            rule("!has(self.replicas) || !has(self.weight)", "'weight' is not supported on static NodePools"),
        ]
    }
}

/// What nodes the pool may have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// The shape of the NodeClaims that are created.
    pub template: NodeClaimTemplate,
    /// When nodes may be disrupted, and how many at a time.
    #[serde(default)]
    #[schemars(extend("default" = {"consolidateAfter": "0s"}))]
    pub disruption: Disruption,
    /// Upper bounds on what the pool may provision in total; `nodes` counts nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: Option<ResourceList>,
    /// Pools with a higher weight are tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// How many nodes a static pool keeps, whatever the pods need. Alpha.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// The shape of the NodeClaims that a pool creates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClaimTemplate {
    /// Labels and annotations of the nodes.
    #[serde(default, skip_serializing_if = "TemplateMetadata::is_empty")]
    pub metadata: TemplateMetadata,
    /// Properties of the nodes.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateMetadata {
    /// Labels put on every node. Pods can select them, so they also act as requirements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "additionalProperties" = {"type": "string", "maxLength": 63, "pattern": schema::LABEL_VALUE},
        "maxProperties" = 100,
        "x-kubernetes-map-type" = "atomic",
        "x-kubernetes-validations" = label_rules(),
    ))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations put on every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "granular"))]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl TemplateMetadata {
    /// Whether nothing is set; an empty map is something.
    fn is_empty(&self) -> bool {
        self.labels.is_none() && self.annotations.is_none()
    }
}

fn label_rules() -> Vec<Rule> {
    vec![
        rule(
            r#"self.all(x, x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"] || !x.find("^([^/]+)").endsWith("karpenter.sh"))"#,
            r#"label domain "karpenter.sh" is restricted"#,
        ),
        rule(
            r#"self.all(x, x != "karpenter.sh/nodepool")"#,
            r#"label "karpenter.sh/nodepool" is restricted"#,
        ),
        rule(
            r#"self.all(x, x != "kubernetes.io/hostname")"#,
            r#"label "kubernetes.io/hostname" is restricted"#,
        ),
    ]
}

/// Properties of the nodes that a pool creates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints that stay on the nodes; pods must tolerate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::taints")]
    pub taints: Option<Vec<Taint>>,
    /// Taints that something else removes once the node is set up; pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::taints")]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the labels of a node must satisfy.
    #[schemars(schema_with = "shared::node_pool_requirements")]
    pub requirements: Vec<Requirement>,
    /// Which NodeClass configures the instances.
    #[schemars(schema_with = "shared::fixed_node_class_reference")]
    pub node_class_ref: NodeClassReference,
    /// How long a node may drain before its pods are deleted, whatever protects them. Unset waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub termination_grace_period: Option<GoDuration>,
    /// How long a node may live before it is replaced, or `Never`.
    #[serde(default = "expire_after")]
    #[schemars(schema_with = "schema::nillable_duration", extend("default" = "720h"))]
    pub expire_after: NillableDuration,
}

impl Default for NodeClaimTemplateSpec {
    fn default() -> Self {
        Self {
            taints: None,
            startup_taints: None,
            requirements: Vec::new(),
            node_class_ref: NodeClassReference::default(),
            termination_grace_period: None,
            expire_after: expire_after(),
        }
    }
}

/// The lifetime of nodes when the pool does not say.
pub(crate) fn expire_after() -> NillableDuration {
    "720h".parse().expect("a valid duration")
}

/// When nodes may be disrupted, and how many at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must have been quiet before it may be consolidated; `Never` switches consolidation off.
    #[serde(default = "consolidate_after")]
    #[schemars(schema_with = "schema::nillable_duration", extend("default" = "0s"))]
    pub consolidate_after: NillableDuration,
    /// Which nodes may be consolidated.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be disrupted at the same time; the strictest budget that applies wins.
    #[serde(default = "budgets")]
    #[schemars(
        length(max = 50),
        extend(
            "default" = [{"nodes": "10%"}],
            "x-kubernetes-list-type" = "atomic",
            "x-kubernetes-validations" = [rule(
                "self.all(x, has(x.schedule) == has(x.duration))",
                "'schedule' must be set with 'duration'",
            )],
        )
    )]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: consolidate_after(),
            consolidation_policy: ConsolidationPolicy::default(),
            budgets: budgets(),
        }
    }
}

fn consolidate_after() -> NillableDuration {
    "0s".parse().expect("a valid duration")
}

fn budgets() -> Vec<Budget> {
    vec![Budget { reasons: None, nodes: budget_nodes(), schedule: None, duration: None }]
}

fn budget_nodes() -> String {
    "10%".to_owned()
}

/// Which nodes may be consolidated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Only nodes without pods of their own.
    WhenEmpty,
    /// Empty nodes, and nodes whose pods fit elsewhere or on something cheaper.
    #[default]
    WhenEmptyOrUnderutilized,
    /// As `WhenEmptyOrUnderutilized`, but only where the savings outweigh the disruption.
    Balanced,
}

/// An upper bound on nodes that are disrupted at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// Which kinds of disruption the budget is for; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// A number of nodes, or a percentage of the pool's nodes rounded up.
    #[serde(default = "budget_nodes")]
    #[schemars(extend("pattern" = schema::BUDGET_NODES))]
    pub nodes: String,
    /// When the budget begins to apply, as a cron line in UTC. Always when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::BUDGET_SCHEDULE))]
    pub schedule: Option<String>,
    /// How long the budget applies after each hit of `schedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::BUDGET_DURATION))]
    pub duration: Option<String>,
}

/// Why a node is disrupted voluntarily.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionReason {
    /// Its pods fit elsewhere or on something cheaper.
    Underutilized,
    /// It has no pods of its own.
    Empty,
    /// It no longer is what its pool and NodeClass ask for.
    Drifted,
    /// It is broken and to be repaired.
    Unhealthy,
}

/// What the pool has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What the pool's nodes provide in total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub resources: Option<ResourceList>,
    /// How many nodes the pool has.
    #[serde(default)]
    pub nodes: i64,
    /// The generation of the NodeClass that the registration health refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// What is known about the pool's readiness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
