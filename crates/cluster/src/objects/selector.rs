//! Selectors: of objects by their labels, and of nodes.

use serde::Deserialize;

use super::collections::{Labels, List, nullable};

/// Selects objects by their labels; everything when it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be there.
    pub match_labels: Labels,
    /// Further conditions.
    pub match_expressions: List<LabelExpression>,
}

/// A condition on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct LabelExpression {
    /// The label.
    pub key: Box<str>,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: Box<str>,
    /// What the value is compared with.
    pub values: List<Box<str>>,
}

impl LabelSelector {
    /// Whether labels are selected. A selector with an unknown operator selects nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.is_valid()
            && self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| expression.matches(labels))
    }

    /// Whether all expressions can be understood.
    pub fn is_valid(&self) -> bool {
        self.match_expressions.iter().all(|expression| match &*expression.operator {
            "In" | "NotIn" => !expression.values.is_empty(),
            "Exists" | "DoesNotExist" => expression.values.is_empty(),
            _ => false,
        })
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

impl LabelExpression {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &*self.operator {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

/// Alternatives for a node, one of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The alternatives.
    pub node_selector_terms: List<NodeSelectorTerm>,
}

/// Conditions on a node, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// Conditions on labels.
    pub match_expressions: List<NodeSelectorRequirement>,
    /// Conditions on fields, which only DaemonSet pods can have.
    pub match_fields: Option<List<NodeSelectorRequirement>>,
}

/// A condition on a label of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct NodeSelectorRequirement {
    /// The label.
    pub key: Box<str>,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    #[serde(deserialize_with = "nullable")]
    pub operator: Box<str>,
    /// What the value is compared with.
    pub values: List<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: [bool; 3]) {
        let selector: LabelSelector = serde_json::from_str(selector).unwrap();
        let labels = [r#"{"app": "web"}"#, r#"{"app": "db"}"#, "{}"];
        let actual = labels.map(|labels| selector.matches(&serde_json::from_str(labels).unwrap()));
        assert_eq!(actual, expected);
    }

    #[test]
    fn all_conditions_must_hold() {
        check("{}", [true, true, true]);
        check(r#"{"matchLabels": {"app": "web"}}"#, [true, false, false]);
        check(
            r#"{"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}"#,
            [true, true, false],
        );
        check(
            r#"{"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}"#,
            [false, true, true],
        );
        check(r#"{"matchExpressions": [{"key": "app", "operator": "Exists"}]}"#, [true, true, false]);
        check(r#"{"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}"#, [false, false, true]);
    }

    #[test]
    fn what_cannot_be_understood_selects_nothing() {
        check(
            r#"{"matchExpressions": [{"key": "app", "operator": "Near", "values": ["web"]}]}"#,
            [false, false, false],
        );
        check(r#"{"matchExpressions": [{"key": "app", "operator": "In"}]}"#, [false, false, false]);
    }
}
