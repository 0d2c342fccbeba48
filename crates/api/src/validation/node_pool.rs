//! The runtime validation of a NodePool, which its condition `ValidationSucceeded` tells of.

use std::collections::BTreeSet;

use super::requirement::{self, RequirementError};
use super::{Errors, joined, kubernetes, quoted};
use crate::labels::{LabelSets, RestrictedLabel};
use crate::names::labels;
use crate::names::taints::{NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE};
use crate::nodepool::{NodeClaimTemplate, NodePoolSpec};
use crate::shared::Taint;

/// How long values of labels can be.
const LABEL_VALUE: usize = 63;

/// What is wrong with a NodePool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodePoolError {
    /// Nodes cannot carry the name as a label.
    #[error(
        "metadata.name: {name:?} has {} characters; at most {LABEL_VALUE} are accepted, because nodes have it as the \
         value of the label {}",
        name.chars().count(),
        labels::NODEPOOL
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A label of the template is the one that Karpenter sets.
    #[error("invalid key name {} in labels, restricted", quoted(key))]
    OwnLabel {
        /// The label key.
        key: String,
    },
    /// The key of a template's label is not a label key.
    #[error("invalid key name {} in labels, {}", quoted(key), quoted(why))]
    LabelKey {
        /// The label key.
        key: String,
        /// What is wrong with it.
        why: String,
    },
    /// The value of a template's label is not a label value.
    #[error("invalid value: {value} for label[{key}], {why}")]
    LabelValue {
        /// The label key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// Users may not set a label of the template.
    #[error("invalid key name {} in labels, {source}", quoted(key))]
    RestrictedLabel {
        /// The label key.
        key: String,
        /// Why not.
        source: RestrictedLabel,
    },
    /// The key or the value of a taint is not a qualified name.
    #[error("invalid value: {why} in {field}")]
    Taint {
        /// `taints` or `startupTaints`.
        field: &'static str,
        /// What is wrong.
        why: String,
    },
    /// There is no such effect.
    #[error("invalid value: {} in {field}", quoted(effect))]
    TaintEffect {
        /// `taints` or `startupTaints`.
        field: &'static str,
        /// The effect.
        effect: String,
    },
    /// Two taints have the same key and effect.
    #[error("duplicate taint Key/Effect pair {key}={effect}")]
    DuplicateTaint {
        /// The taint key.
        key: String,
        /// The effect.
        effect: String,
    },
    /// A requirement is wrong.
    #[error("invalid value: {} in requirements, restricted", joined(.0))]
    Requirement(Vec<RequirementError>),
    /// A requirement is on the label that Karpenter sets.
    #[error("invalid key: {} in requirements, restricted", quoted(labels::NODEPOOL))]
    OwnRequirement,
}

/// Finds everything that is wrong with a NodePool: first with its name, then with labels, with taints and with
/// requirements.
pub fn validate(name: &str, spec: &NodePoolSpec, sets: &LabelSets) -> Result<(), Errors<NodePoolError>> {
    let template = &spec.template;
    let mut errors = Vec::new();
    if name.chars().count() > LABEL_VALUE {
        errors.push(NodePoolError::Name { name: name.to_owned() });
    }
    check_labels(template, sets, &mut errors);
    // A startup taint must not repeat a taint, so both lists share what was seen.
    let mut seen = BTreeSet::new();
    check_taints(template.spec.taints.as_deref(), "taints", &mut seen, &mut errors);
    check_taints(template.spec.startup_taints.as_deref(), "startupTaints", &mut seen, &mut errors);
    let requirements = &template.spec.requirements;
    let wrong = requirements.iter().map(|each| requirement::validate(each, sets));
    errors.extend(wrong.filter(|each| !each.is_empty()).map(NodePoolError::Requirement));
    let own = requirements.iter().filter(|each| each.key == labels::NODEPOOL);
    errors.extend(own.map(|_| NodePoolError::OwnRequirement));
    Errors::check(errors)
}

fn check_labels(template: &NodeClaimTemplate, sets: &LabelSets, errors: &mut Vec<NodePoolError>) {
    for (key, value) in template.metadata.labels.iter().flatten() {
        if key == labels::NODEPOOL {
            errors.push(NodePoolError::OwnLabel { key: key.clone() });
        }
        let wrong_key = kubernetes::qualified_name(key).into_iter();
        errors.extend(wrong_key.map(|why| NodePoolError::LabelKey { key: key.clone(), why }));
        let wrong_value = kubernetes::label_value(value).into_iter();
        errors.extend(wrong_value.map(|why| NodePoolError::LabelValue {
            key: key.clone(),
            value: value.clone(),
            why,
        }));
        if let Err(source) = sets.check_unrestricted(key) {
            errors.push(NodePoolError::RestrictedLabel { key: key.clone(), source });
        }
    }
}

/// Upstream also has an error of its own for an empty key, which prints nothing but a formatting mistake. The
/// errors of the qualified name say what is wrong.
fn check_taints<'a>(
    taints: Option<&'a [Taint]>,
    field: &'static str,
    seen: &mut BTreeSet<(&'a str, &'a str)>,
    errors: &mut Vec<NodePoolError>,
) {
    for Taint { key, value, effect, .. } in taints.unwrap_or_default() {
        let mut wrong = kubernetes::qualified_name(key);
        // A taint's value could be any label value, but upstream asks for a qualified name.
        if !value.is_empty() {
            wrong.extend(kubernetes::qualified_name(value));
        }
        errors.extend(wrong.into_iter().map(|why| NodePoolError::Taint { field, why }));
        if !matches!(effect.as_str(), NO_SCHEDULE | PREFER_NO_SCHEDULE | NO_EXECUTE | "") {
            errors.push(NodePoolError::TaintEffect { field, effect: effect.clone() });
        }
        if !seen.insert((key, effect)) {
            errors.push(NodePoolError::DuplicateTaint { key: key.clone(), effect: effect.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;
    use crate::provider::Provider;

    /// A NodePool with the given parts of its template.
    fn pool(metadata: &Value, spec: &Value) -> NodePoolSpec {
        let mut template = json!({
            "metadata": metadata,
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            },
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            template["spec"][key] = value.clone();
        }
        serde_json::from_value(json!({"template": template})).unwrap()
    }

    #[track_caller]
    fn check(metadata: &Value, spec: &Value, expected: &Expect) {
        let sets = LabelSets::for_provider(Provider::Kwok);
        let text = match validate("default", &pool(metadata, spec), &sets) {
            Ok(()) => String::new(),
            Err(errors) => {
                assert!(!errors.as_slice().is_empty());
                let lines: Vec<String> = errors.as_slice().iter().map(ToString::to_string).collect();
                lines.join("\n")
            }
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn a_good_pool_is_valid() {
        check(
            &json!({"labels": {"example.com/team": "a", "topology.kubernetes.io/zone": "test-zone-a", "x": ""}}),
            &json!({
                "taints": [{"key": "example.com/x", "effect": "NoSchedule"}, {"key": "y", "value": "z", "effect": ""}],
                "startupTaints": [{"key": "example.com/x", "effect": "NoExecute"}],
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            }),
            &expect![[""]],
        );
    }

    #[test]
    fn labels_must_be_labels_and_not_karpenters_own() {
        check(
            &json!({"labels": {
                "karpenter.sh/nodepool": "x",
                "karpenter.sh/registered": "true",
                "a b": "c",
                "Example.com/x": "",
                "ok": "not ok",
            }}),
            &json!({}),
            &expect![[r#"
                invalid key name "Example.com/x" in labels, "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                invalid key name "a b" in labels, "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                invalid key name "karpenter.sh/nodepool" in labels, restricted
                invalid key name "karpenter.sh/registered" in labels, using label karpenter.sh/registered is not allowed as it might interfere with the internal provisioning logic; specify a well known label: [karpenter.kwok.sh/instance-cpu karpenter.kwok.sh/instance-family karpenter.kwok.sh/instance-memory karpenter.kwok.sh/instance-size karpenter.sh/capacity-type karpenter.sh/nodepool kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type node.kubernetes.io/windows-build topology.kubernetes.io/region topology.kubernetes.io/zone], or a custom label that does not use a restricted domain: [karpenter.kwok.sh karpenter.sh]
                invalid value: not ok for label[ok], a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#]],
        );
    }

    #[test]
    fn taints_must_have_names_effects_and_no_twin() {
        check(
            &json!({}),
            &json!({
                "taints": [
                    {"key": "a b", "value": "c d", "effect": "NoSchedule"},
                    {"key": "x", "effect": "Evict"},
                    {"key": "twin", "effect": "NoSchedule"},
                ],
                "startupTaints": [
                    {"key": "twin", "value": "other", "effect": "NoSchedule"},
                    {"key": "x", "value": "-", "effect": "NoExecute"},
                ],
            }),
            &expect![[r#"
                invalid value: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') in taints
                invalid value: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') in taints
                invalid value: "Evict" in taints
                duplicate taint Key/Effect pair twin=NoSchedule
                invalid value: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') in startupTaints"#]],
        );
    }

    #[test]
    fn an_empty_taint_key_is_told_of_without_upstreams_formatting_mistake() {
        check(
            &json!({}),
            &json!({"taints": [{"key": "", "effect": "NoSchedule"}]}),
            &expect![[r"
                invalid value: name part must be non-empty in taints
                invalid value: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') in taints"]],
        );
    }

    #[test]
    fn each_bad_requirement_is_one_error() {
        check(
            &json!({}),
            &json!({"requirements": [
                {"key": "a b", "operator": "In", "values": []},
                {"key": "ok", "operator": "Exists"},
                {"key": "x", "operator": "Gt", "values": ["one"]},
            ]}),
            &expect![[r"
                invalid value: key a b is not a qualified name, name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'); key a b with operator In must have a value defined in requirements, restricted
                invalid value: key x with operator Gt must have a single positive integer value in requirements, restricted"]],
        );
    }

    #[test]
    fn no_requirement_may_be_on_the_pool_itself() {
        check(
            &json!({}),
            &json!({"requirements": [{"key": "karpenter.sh/nodepool", "operator": "In", "values": ["x"]}]}),
            &expect![[r#"invalid key: "karpenter.sh/nodepool" in requirements, restricted"#]],
        );
    }

    #[test]
    fn a_name_is_a_value_of_a_label() {
        let spec = pool(&json!({}), &json!({}));
        let check = |name: &str| validate(name, &spec, &LabelSets::core());
        assert_eq!(check(&"a".repeat(63)), Ok(()));
        let wrong = check(&"a".repeat(64)).unwrap_err().to_string();
        assert!(wrong.starts_with("metadata.name: \"aaa"), "{wrong}");
        assert!(wrong.contains("has 64 characters; at most 63 are accepted"), "{wrong}");
    }

    #[test]
    fn errors_are_joined_in_order() {
        let spec = pool(
            &json!({"labels": {"karpenter.sh/nodepool": "x"}}),
            &json!({
                "taints": [{"key": "x", "effect": "Evict"}],
                "requirements": [{"key": "karpenter.sh/nodepool", "operator": "Gt", "values": []}],
            }),
        );
        let errors = validate("default", &spec, &LabelSets::core()).unwrap_err();
        expect![[r#"invalid key name "karpenter.sh/nodepool" in labels, restricted; invalid value: "Evict" in taints; invalid value: key karpenter.sh/nodepool with operator Gt must have a single positive integer value in requirements, restricted; invalid key: "karpenter.sh/nodepool" in requirements, restricted"#]].assert_eq(&errors.to_string());
    }
}
