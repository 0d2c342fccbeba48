//! Label selectors, node selectors, tolerations, and amounts that may be percentages.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

type Labels = BTreeMap<String, String>;

/// Whether labels satisfy a selector; an empty selector takes everything.
pub(crate) fn matches(selector: &LabelSelector, labels: Option<&Labels>) -> bool {
    let get = |key: &str| labels.and_then(|labels| labels.get(key));
    let exact = selector.match_labels.iter().flatten().all(|(key, value)| get(key) == Some(value));
    exact
        && selector.match_expressions.iter().flatten().all(|rule| {
            let value = get(&rule.key);
            let listed = || value.is_some_and(|value| rule.values.iter().flatten().any(|one| one == value));
            match rule.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// Whether a node satisfies what a pod requires of it.
pub(crate) fn node_matches(
    node_selector: Option<&Labels>,
    affinity: Option<&Affinity>,
    labels: Option<&Labels>,
    name: &str,
) -> bool {
    let get = |key: &str| labels.and_then(|labels| labels.get(key));
    let plain = node_selector.into_iter().flatten().all(|(key, value)| get(key) == Some(value));
    let required = affinity
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    plain && required.is_none_or(|selector| selector_matches(selector, labels, name))
}

/// Whether a node satisfies one of the terms of a node selector.
pub(crate) fn selector_matches(selector: &NodeSelector, labels: Option<&Labels>, name: &str) -> bool {
    selector.node_selector_terms.iter().any(|term| term_matches(term, labels, name))
}

fn term_matches(term: &NodeSelectorTerm, labels: Option<&Labels>, name: &str) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let get = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    expressions.iter().all(|rule| requirement_holds(rule, get(&rule.key)))
        && fields.iter().all(|rule| requirement_holds(rule, (rule.key == "metadata.name").then_some(name)))
}

fn requirement_holds(rule: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = rule.values.as_deref().unwrap_or_default();
    let listed = || value.is_some_and(|value| values.iter().any(|one| one == value));
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = || values.first().and_then(|text| number(text));
    match rule.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => value.and_then(number).zip(bound()).is_some_and(|(value, bound)| value > bound),
        "Lt" => value.and_then(number).zip(bound()).is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// Whether a toleration covers a taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != taint.effect || !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref().unwrap_or("Equal") {
        "Exists" => true,
        "Equal" | "" => {
            toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
                && !key.is_empty()
        }
        _ => false,
    }
}

/// An amount that may be a percentage of `total`, rounded up or down.
pub(crate) fn scaled(amount: &IntOrString, total: i32, round_up: bool) -> i32 {
    match amount {
        IntOrString::Int(amount) => *amount,
        IntOrString::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            let product = percent.saturating_mul(i64::from(total));
            let rounded = if round_up { (product + 99).div_euclid(100) } else { product.div_euclid(100) };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_selector_needs_all_its_rules() {
        let selector: LabelSelector = serde_json::from_value(json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}],
        }))
        .unwrap();
        assert!(matches(&selector, Some(&labels(&[("app", "web")]))));
        assert!(!matches(&selector, Some(&labels(&[("app", "web"), ("tier", "db")]))));
        assert!(!matches(&selector, None));
        assert!(matches(&LabelSelector::default(), None));
    }

    #[test]
    fn a_toleration_without_key_covers_everything_only_with_exists() {
        let taint =
            |effect: &str| Taint { key: "a".to_owned(), effect: effect.to_owned(), ..Taint::default() };
        let exists = Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() };
        assert!(tolerates(&exists, &taint("NoExecute")));
        assert!(!tolerates(&Toleration::default(), &taint("NoExecute")));
        let other = Toleration { effect: Some("NoSchedule".to_owned()), ..exists };
        assert!(!tolerates(&other, &taint("NoExecute")));
    }

    #[test]
    fn percentages_round_as_asked() {
        let quarter = IntOrString::String("25%".to_owned());
        assert_eq!((scaled(&quarter, 10, true), scaled(&quarter, 10, false)), (3, 2));
        assert_eq!(scaled(&IntOrString::Int(4), 10, true), 4);
    }
}
