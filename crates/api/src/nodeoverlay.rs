//! NodeOverlay (`karpenter.sh/v1alpha1`): corrects prices and adds resources of instance types.

mod price;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resource::{Column, CustomResource, Definition, custom_resource};
use crate::schema::{self, Rule, rule};
use crate::shared::{self, Condition, Requirement, ResourceList};
pub use price::{InvalidPrice, Price};

custom_resource! {
    /// A correction of what is known about instance types.
    NodeOverlay {
        group: "karpenter.sh", version: "v1alpha1", plural: "nodeoverlays", scope: ClusterResourceScope,
        spec: NodeOverlaySpec, status: NodeOverlayStatus
    }
}

impl CustomResource for NodeOverlay {
    type Spec = NodeOverlaySpec;
    type Status = NodeOverlayStatus;
    const DEFINITION: Definition = Definition {
        description: "A correction of what is known about instance types: their price, and resources they offer.",
        short_names: &["overlays"],
        categories: &["karpenter"],
        namespaced: false,
        columns: &[
            Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
            Column::new("Age", "date", ".metadata.creationTimestamp"),
            Column::wide("Weight", "integer", ".spec.weight"),
        ],
        scale: None,
        spec_required: true,
        deprecation: None,
    };

    fn spec_rules() -> Vec<Rule> {
        vec![rule(
            "!has(self.price) || !has(self.priceAdjustment)",
            "cannot set both 'price' and 'priceAdjustment'",
        )]
    }
}

/// Which instance types are corrected, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// Which instance types and offerings the overlay is for.
    #[schemars(schema_with = "shared::node_overlay_requirements")]
    pub requirements: Vec<Requirement>,
    /// The price, instead of the known one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::OVERLAY_PRICE))]
    pub price: Option<String>,
    /// A change of the known price, such as `+0.5` or `-10%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::OVERLAY_ADJUSTMENT))]
    pub price_adjustment: Option<String>,
    /// Resources that the instance types offer in addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        schema_with = "schema::quantities",
        extend("x-kubernetes-validations" = [rule(
            "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
            "invalid resource restricted",
        )])
    )]
    pub capacity: Option<ResourceList>,
    /// The overlay with the higher weight wins where two concern the same thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

impl NodeOverlaySpec {
    /// What it does to prices, if anything.
    pub fn price_change(&self) -> Result<Option<Price>, InvalidPrice> {
        let stated = self.price.as_ref().or(self.price_adjustment.as_ref());
        stated.filter(|text| !text.is_empty()).map(|text| text.parse()).transpose()
    }
}

/// Whether the overlay is in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverlayStatus {
    /// What is known about the overlay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
