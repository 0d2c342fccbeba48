//! The runtime validation of a NodeOverlay, which its condition `ValidationSucceeded` tells of.

use super::requirement::{self, RequirementError};
use super::{Errors, joined};
use crate::labels::LabelSets;
use crate::nodeoverlay::{InvalidPrice, NodeOverlaySpec};
use crate::shared::{Operator, Requirement};
use units::Quantity;

/// What is wrong with a NodeOverlay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeOverlayError {
    /// A requirement is wrong.
    #[error("invalid value: {} in requirements, restricted", joined(.0))]
    Requirement(Vec<RequirementError>),
    /// A requirement with `NotIn` has nothing to compare with.
    #[error(transparent)]
    NoValue(RequirementError),
    /// Instance types say themselves how much of the resource they have.
    #[error("invalid capacity: {resource} in resource, restricted")]
    Capacity {
        /// The resource.
        resource: String,
    },
    /// No instance type has less than nothing.
    #[error("invalid capacity: {resource} of {amount} in resource, expected none or more")]
    Negative {
        /// The resource.
        resource: String,
        /// How much of it.
        amount: Quantity,
    },
    /// The price, or the change of it, is no number. The CRD refuses most of these.
    #[error(transparent)]
    Price(#[from] InvalidPrice),
}

/// Finds everything that is wrong with a NodeOverlay: first with requirements, then with the capacity, then with
/// the price.
pub fn validate(spec: &NodeOverlaySpec, sets: &LabelSets) -> Result<(), Errors<NodeOverlayError>> {
    let mut errors = Vec::new();
    for each in &spec.requirements {
        // An overlay selects, so the CRD has no minValues, and one that slipped through has no effect.
        let each = Requirement { min_values: None, ..each.clone() };
        let wrong = requirement::validate(&each, sets);
        if !wrong.is_empty() {
            errors.push(NodeOverlayError::Requirement(wrong));
        }
        if each.operator == Operator::NotIn && each.values.is_empty() {
            let error = RequirementError::NoValue { key: each.key, operator: each.operator };
            errors.push(NodeOverlayError::NoValue(error));
        }
    }
    let restricted = spec.capacity.iter().flatten().filter(|(name, _)| sets.is_well_known_resource(name));
    errors.extend(restricted.map(|(name, _)| NodeOverlayError::Capacity { resource: name.clone() }));
    let negative = spec.capacity.iter().flatten().filter(|(_, amount)| **amount < Quantity::ZERO);
    errors.extend(
        negative.map(|(name, amount)| NodeOverlayError::Negative { resource: name.clone(), amount: *amount }),
    );
    errors.extend(spec.price_change().err().map(NodeOverlayError::Price));
    Errors::check(errors)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::Provider;

    #[track_caller]
    fn check(spec: Value, expected: &Expect) {
        let spec = serde_json::from_value(spec).unwrap();
        let result = validate(&spec, &LabelSets::for_provider(Provider::Aws));
        expected.assert_eq(&result.err().map(|errors| errors.to_string()).unwrap_or_default());
    }

    #[test]
    fn a_good_overlay_is_valid() {
        check(
            json!({
                "requirements": [
                    {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"], "minValues": 2},
                ],
                "capacity": {"example.com/device": "4", "nvidia.com/gpu": 1},
            }),
            &expect![[""]],
        );
    }

    #[test]
    fn requirements_are_checked_and_not_in_needs_values() {
        check(
            json!({"requirements": [
                {"key": "x", "operator": "In"},
                {"key": "beta.kubernetes.io/arch", "operator": "NotIn"},
            ]}),
            &expect![
                "invalid value: key x with operator In must have a value defined in requirements, restricted; key beta.kubernetes.io/arch with operator NotIn must have a value defined"
            ],
        );
    }

    #[test]
    fn capacity_must_not_be_what_instance_types_have() {
        check(
            json!({"requirements": [], "capacity": {"cpu": 1, "pods": 1, "vpc.amazonaws.com/efa": 1, "x": 1}}),
            &expect![
                "invalid capacity: cpu in resource, restricted; invalid capacity: pods in resource, restricted; invalid capacity: vpc.amazonaws.com/efa in resource, restricted"
            ],
        );
    }

    #[test]
    fn amounts_and_prices_that_make_no_sense_are_refused() {
        check(
            json!({"requirements": [], "capacity": {"x": "-1", "y": "0"}, "price": "cheap"}),
            &expect![[
                r#"invalid capacity: x of -1 in resource, expected none or more; invalid value "cheap"; expected a price such as "1.2", "+0.5" or "-10%""#
            ]],
        );
    }
}
