//! KWOKNodeClass (`karpenter.kwok.sh/v1alpha1`): how simulated nodes behave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::GoDuration;

use crate::resource::{CustomResource, Definition, custom_resource};
use crate::schema;
use crate::shared::Condition;

custom_resource! {
    /// How simulated nodes behave.
    KWOKNodeClass {
        group: "karpenter.kwok.sh", version: "v1alpha1", plural: "kwoknodeclasses", scope: ClusterResourceScope,
        spec: #[serde(default)] KWOKNodeClassSpec, status: KWOKNodeClassStatus
    }
}

impl CustomResource for KWOKNodeClass {
    type Spec = KWOKNodeClassSpec;
    type Status = KWOKNodeClassStatus;
    const DEFINITION: Definition = Definition {
        description: "How simulated nodes behave.",
        short_names: &["kwoknc", "kwokncs"],
        categories: &["karpenter"],
        namespaced: false,
        columns: &[],
        scale: None,
        spec_required: false,
        deprecation: None,
    };
}

/// How simulated nodes behave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KWOKNodeClassSpec {
    /// How long after the launch the Node object appears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::duration")]
    pub node_registration_delay: Option<GoDuration>,
}

/// Whether the class can be used.
///
/// No controller reconciles the class, so the CRD's default says that it is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("default" = {"conditions": [{
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2024-01-01T01:01:01Z",
}]}))]
pub struct KWOKNodeClassStatus {
    /// What is known about the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::unkeyed_conditions")]
    pub conditions: Vec<Condition>,
}
