//! Label selectors and node selectors, parsed once and matched often.
//!
//! Parsed selectors can be ordered, so that equal ones share their counts (see `counts`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Labels as objects carry them; an object without labels has `None`.
pub(crate) type Labels = BTreeMap<String, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Greater,
    Less,
}

/// What one label, or one field of a node, has to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

impl Requirement {
    /// A requirement that API validation would refuse has no meaning and gives `None`.
    fn parse(key: &str, operator: &str, values: &[String]) -> Option<Self> {
        let operator = match operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::Greater,
            "Lt" => Operator::Less,
            _ => return None,
        };
        let meaningful = match operator {
            Operator::In | Operator::NotIn => !values.is_empty(),
            Operator::Exists | Operator::DoesNotExist => values.is_empty(),
            Operator::Greater | Operator::Less => matches!(values, [bound] if bound.parse::<i64>().is_ok()),
        };
        meaningful.then(|| Self { key: key.to_owned(), operator, values: values.iter().cloned().collect() })
    }

    fn matches(&self, value: Option<&str>) -> bool {
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Greater => self.compare(value).is_some_and(|(value, bound)| value > bound),
            Operator::Less => self.compare(value).is_some_and(|(value, bound)| value < bound),
        }
    }

    fn compare(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

/// A label selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Selector {
    /// An absent selector, or one that no validation would have let through.
    Nothing,
    /// Every requirement holds; without requirements everything matches.
    All(Vec<Requirement>),
}

impl Selector {
    pub(crate) fn parse(selector: Option<&LabelSelector>) -> Self {
        let Some(selector) = selector else { return Self::Nothing };
        let equals = selector.match_labels.iter().flatten();
        let equals = equals.map(|(key, value)| Requirement::parse(key, "In", std::slice::from_ref(value)));
        let expressions = selector.match_expressions.iter().flatten();
        let expressions = expressions
            .map(|term| Requirement::parse(&term.key, &term.operator, term.values.as_deref().unwrap_or(&[])));
        let requirements: Option<BTreeSet<_>> = equals.chain(expressions).collect();
        requirements.map_or(Self::Nothing, |all| Self::All(all.into_iter().collect()))
    }

    /// Adds what `matchLabelKeys` and `mismatchLabelKeys` ask: the pod's own value, or any other.
    ///
    /// API servers merge this into the selector when a pod is created, and merging twice changes nothing.
    pub(crate) fn with_label_keys(self, own: &Labels, same: &[String], different: &[String]) -> Self {
        let Self::All(requirements) = self else { return self };
        let mut all: BTreeSet<_> = requirements.into_iter().collect();
        for (keys, operator) in [(same, Operator::In), (different, Operator::NotIn)] {
            all.extend(keys.iter().filter_map(|key| {
                let values = BTreeSet::from([own.get(key)?.clone()]);
                Some(Requirement { key: key.clone(), operator, values })
            }));
        }
        Self::All(all.into_iter().collect())
    }

    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(all) => all.iter().all(|one| one.matches(labels.get(&one.key).map(String::as_str))),
        }
    }

    pub(crate) fn everything() -> Self {
        Self::All(vec![])
    }

    /// Whether there is a selector and it asks nothing.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::All(all) if all.is_empty())
    }
}

/// One term of a node selector; `None` inside stands for a term that cannot be understood and never matches.
#[derive(Clone, Debug)]
pub(crate) struct NodeTerm {
    labels: Option<Vec<Requirement>>,
    fields: Option<Vec<Requirement>>,
    empty: bool,
    /// The node names that `metadata.name` is limited to, if it is.
    pub(crate) names: Option<BTreeSet<String>>,
}

const NAME_FIELD: &str = "metadata.name";

impl NodeTerm {
    pub(crate) fn parse(term: &NodeSelectorTerm) -> Self {
        let parse = |requirements: Option<&Vec<NodeSelectorRequirement>>| {
            let all = requirements.into_iter().flatten();
            all.map(|one| Requirement::parse(&one.key, &one.operator, one.values.as_deref().unwrap_or(&[])))
                .collect::<Option<Vec<_>>>()
        };
        let fields = parse(term.match_fields.as_ref()).filter(|fields| {
            let understood = |one: &Requirement| {
                matches!(one.operator, Operator::In | Operator::NotIn) && one.values.len() == 1
            };
            fields.iter().all(understood)
        });
        let limits =
            term.match_fields.iter().flatten().filter(|one| one.key == NAME_FIELD && one.operator == "In");
        let names = limits
            .map(|one| one.values.iter().flatten().cloned().collect::<BTreeSet<_>>())
            .reduce(|left, right| &left & &right);
        let empty = term.match_expressions.as_ref().is_none_or(Vec::is_empty)
            && term.match_fields.as_ref().is_none_or(Vec::is_empty);
        Self { labels: parse(term.match_expressions.as_ref()), fields, empty, names }
    }

    /// `name` is `None` for volumes, whose terms know labels only.
    fn matches(&self, labels: &Labels, name: Option<&str>) -> bool {
        let (false, Some(on_labels), Some(on_fields)) = (self.empty, &self.labels, &self.fields) else {
            return false;
        };
        let field = |key: &str| name.filter(|_| key == NAME_FIELD);
        on_labels.iter().all(|one| one.matches(labels.get(&one.key).map(String::as_str)))
            && (name.is_none()
                || on_fields.iter().all(|one| one.matches(Some(field(&one.key).unwrap_or("")))))
    }

    pub(crate) fn matches_node(&self, node: &Node) -> bool {
        self.matches(labels_of(node.metadata.labels.as_ref()), node.metadata.name.as_deref())
    }
}

/// The terms of a node selector, of which one must match.
pub(crate) fn node_terms(selector: &NodeSelector) -> Vec<NodeTerm> {
    selector.node_selector_terms.iter().map(NodeTerm::parse).collect()
}

/// Whether a volume with these terms can be used on a node with these labels.
pub(crate) fn volume_reaches(selector: &NodeSelector, labels: &Labels) -> bool {
    selector.node_selector_terms.iter().any(|term| NodeTerm::parse(term).matches(labels, None))
}

/// The labels of an object, empty if it has none.
pub(crate) fn labels_of(labels: Option<&Labels>) -> &Labels {
    static NONE: Labels = Labels::new();
    labels.unwrap_or(&NONE)
}
