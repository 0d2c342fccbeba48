//! The validation of what a pod asks of its node, before a place is looked for.

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PodSpec};

use super::Errors;
use super::requirement::{self, RequirementError};
use crate::labels::LabelSets;
use crate::shared::Operator;

/// What is wrong with what a pod asks of its node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodError {
    /// A term selects by the fields of the Node, which do not exist before the Node does.
    #[error("node selector term with matchFields is not supported")]
    MatchFields,
    /// A requirement is wrong.
    #[error(transparent)]
    Requirement(#[from] RequirementError),
}

/// Finds everything that is wrong with a pod's node selector and the terms of its required node affinity.
pub fn validate(pod: &PodSpec, sets: &LabelSets) -> Result<(), Errors<PodError>> {
    let mut errors = Vec::new();
    for (key, value) in pod.node_selector.iter().flatten() {
        let wrong =
            requirement::validate_parts(key, Ok(Operator::In), std::slice::from_ref(value), None, sets);
        errors.extend(wrong.into_iter().map(PodError::Requirement));
    }
    let required = pod
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    for term in required.iter().flat_map(|selector| &selector.node_selector_terms) {
        errors.extend(validate_term(term, sets));
    }
    Errors::check(errors)
}

/// What is wrong with one term of a node affinity.
pub fn validate_term(term: &NodeSelectorTerm, sets: &LabelSets) -> Vec<PodError> {
    let mut errors: Vec<PodError> = term.match_fields.iter().map(|_| PodError::MatchFields).collect();
    for expression in term.match_expressions.iter().flatten() {
        let operator = Operator::ALL.into_iter().find(|each| each.as_str() == expression.operator);
        let operator = operator.ok_or(expression.operator.as_str());
        let values = expression.values.as_deref().unwrap_or_default();
        let wrong = requirement::validate_parts(&expression.key, operator, values, None, sets);
        errors.extend(wrong.into_iter().map(PodError::Requirement));
    }
    errors
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(spec: &Value, expected: &Expect) {
        let mut pod = json!({"containers": []});
        for (key, value) in spec.as_object().into_iter().flatten() {
            pod[key] = value.clone();
        }
        let result = validate(&serde_json::from_value(pod).unwrap(), &LabelSets::core());
        expected.assert_eq(&result.err().map(|errors| errors.to_string()).unwrap_or_default());
    }

    fn affinity(terms: &Value) -> Value {
        json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
        }}})
    }

    #[test]
    fn a_pod_that_asks_for_nothing_or_for_labels_is_valid() {
        check(&json!({}), &expect![[""]]);
        check(
            &json!({"nodeSelector": {"example.com/x": "a", "karpenter.sh/capacity-type": "spot"}}),
            &expect![[""]],
        );
        let expressions =
            json!([{"key": "x", "operator": "Gt", "values": ["1"]}, {"key": "y", "operator": "Exists"}]);
        check(&affinity(&json!([{"matchExpressions": expressions}])), &expect![[""]]);
    }

    #[test]
    fn restricted_labels_cannot_be_selected() {
        check(
            &json!({"nodeSelector": {"kubernetes.io/hostname": "x", "zone": "not ok"}}),
            &expect![
                "using label kubernetes.io/hostname is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [karpenter.sh/capacity-type karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a custom label that does not use a restricted domain: [karpenter.sh]; invalid value not ok for key zone, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ],
        );
    }

    #[test]
    fn fields_of_the_node_cannot_be_selected() {
        let fields = json!([{"key": "metadata.name", "operator": "In", "values": ["x"]}]);
        check(
            &affinity(&json!([{"matchFields": fields}, {"matchFields": []}])),
            &expect![
                "node selector term with matchFields is not supported; node selector term with matchFields is not supported"
            ],
        );
    }

    #[test]
    fn every_term_is_checked() {
        check(
            &affinity(&json!([
                {"matchExpressions": [{"key": "x", "operator": "Near", "values": ["y"]}]},
                {"matchExpressions": [{"key": "x", "operator": "In"}, {"key": "y", "operator": "Lt"}]},
            ])),
            &expect![
                "key x has an unsupported operator Near not in [In NotIn Exists DoesNotExist Gt Lt Gte Lte]; key x with operator In must have a value defined; key y with operator Lt must have a single positive integer value"
            ],
        );
    }
}
