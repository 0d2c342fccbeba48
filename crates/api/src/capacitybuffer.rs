//! CapacityBuffer (`autoscaling.x-k8s.io/v1beta1`): spare capacity kept ready for pods to come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resource::{Column, CustomResource, Definition, custom_resource};
use crate::schema::{self, Rule, rule};
use crate::shared::{Condition, ResourceList};

custom_resource! {
    /// Spare capacity kept ready for pods to come.
    CapacityBuffer {
        group: "autoscaling.x-k8s.io", version: "v1beta1", plural: "capacitybuffers",
        scope: NamespaceResourceScope, spec: CapacityBufferSpec, status: CapacityBufferStatus
    }
}

impl CustomResource for CapacityBuffer {
    type Spec = CapacityBufferSpec;
    type Status = CapacityBufferStatus;
    const DEFINITION: Definition = Definition {
        description: "Spare capacity kept ready for pods to come.",
        short_names: &["cb"],
        categories: &["autoscaling"],
        namespaced: true,
        columns: &[
            Column::new("Strategy", "string", ".spec.provisioningStrategy")
                .described("How the capacity is provided."),
            Column::new("PodTemplate", "string", ".status.podTemplateRef.name")
                .described("The pod template in use."),
            Column::new("Replicas", "integer", ".status.replicas")
                .described("How many pods are kept room for."),
            Column::new("ConditionsType", "string", ".status.conditions[*].type")
                .described("The types of the conditions."),
            Column::new("ConditionsStatus", "string", ".status.conditions[*].status")
                .described("Whether the conditions hold."),
            Column::new("ConditionsReason", "string", ".status.conditions[*].reason")
                .described("Why the conditions are as they are."),
            Column::new("Age", "date", ".metadata.creationTimestamp").described("The age of the buffer."),
        ],
        scale: None,
        spec_required: true,
        deprecation: None,
    };

    fn spec_rules() -> Vec<Rule> {
        vec![
            rule(
                "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
                "If podTemplateRef is set, replicas or limits must also be set",
            ),
            rule(
                "!(has(self.podTemplateRef) && has(self.scalableRef))",
                "You must define either PodTemplateRef or ScalableRef, but not both",
            ),
        ]
    }
}

/// What room is kept for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferSpec {
    /// How the capacity is provided.
    #[serde(default = "provisioning_strategy")]
    pub provisioning_strategy: String,
    /// A PodTemplate of the same namespace that says what the pods look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalObjectRef>,
    /// A workload of the same namespace that says what the pods look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
    /// How many pods to keep room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// How many pods to keep room for, in percent of the workload's replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// How much room to keep at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: Option<ResourceList>,
}

fn provisioning_strategy() -> String {
    "buffer.x-k8s.io/active-capacity".to_owned()
}

/// The name of an object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalObjectRef {
    /// The object's name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A workload of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableRef {
    /// The workload's API group; `apps` when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The workload's kind.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// The workload's name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What room is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// The pod template in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalObjectRef>,
    /// How many pods room is kept for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The generation of the pod template in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// How the capacity is provided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// What is known about the buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
