//! Metrics of status conditions and of terminations: each exists once per kind of object, and once more under
//! an older name that all kinds share.

use super::MetricKind::{Counter, Gauge, Histogram};
use super::{DEFAULT_BUCKETS, Metric, MetricKind, MoreLabels, exponential, metrics};
use crate::names::{Stage, labels};

/// From half a second to more than two hours.
const BUCKETS: &[f64] = &exponential::<15>(0.5, 2.0);

metrics! {
    /// Metrics of one kind. The full name is [`name`], and the older one [`shared_name`].
    ALL;
    /// Seconds that a condition had one status before it took another.
    TRANSITION_SECONDS = "status_condition_transition_seconds", Histogram(BUCKETS),
        ["type", "status", "to_status"] + Object, Undeclared;
    /// The status that a condition has; always 1.
    COUNT = "status_condition_count", Gauge, ["namespace", "name", "type", "status", "reason"] + Object, Undeclared;
    /// Seconds for which a condition has had its status.
    CURRENT_STATUS_SECONDS = "status_condition_current_status_seconds", Gauge,
        ["namespace", "name", "type", "status", "reason"] + Object, Undeclared;
    /// Changes of a condition's status.
    TRANSITIONS = "status_condition_transitions_total", Counter, ["type", "status", "reason"] + Object, Undeclared;
    /// Seconds for which an object has been terminating.
    TERMINATION_CURRENT_TIME_SECONDS = "termination_current_time_seconds", Gauge,
        ["namespace", "name"] + Object, Undeclared;
    /// Seconds that the termination of an object took.
    TERMINATION_DURATION_SECONDS = "termination_duration_seconds", Histogram(BUCKETS), [] + Object, Undeclared;
}

/// The kinds that have these metrics: lower-case, as they are in the names.
pub const KINDS: &[&str] =
    &["nodeclaim", "nodepool", "node", "capacitybuffer", "ec2nodeclass", "aksnodeclass"];

/// Kinds without the older names.
pub const KINDS_WITHOUT_SHARED: &[&str] = &["node"];

/// The name of a kind's metric.
pub fn name(metric: &Metric, kind: &str) -> String {
    format!("operator_{kind}_{}", metric.name)
}

/// The older name, which all kinds share.
pub fn shared_name(metric: &Metric) -> String {
    format!("operator_{}", metric.name)
}

/// The labels that metrics with the older names have instead of the object's own.
pub const SHARED_LABELS: &[&str] = &["group", "kind"];

/// The metric under its older name, but for the name: it tells kinds apart by labels and has other buckets.
pub const fn shared(metric: &Metric) -> Metric {
    let kind = match metric.kind {
        MetricKind::Histogram(_) => Histogram(DEFAULT_BUCKETS),
        other => other,
    };
    Metric { kind, more_labels: MoreLabels::None, stage: Stage::Deprecated, ..*metric }
}

/// The labels by which the objects of a kind are told apart, taken from labels of the object. A label's name
/// is its key with `_` for everything that a metric's label cannot have.
///
/// `node_classes` are the label keys of the NodeClasses that the provider supports.
pub fn object_labels(kind: &str, node_classes: &[&str]) -> Vec<String> {
    let own: &[&str] = match kind {
        "nodeclaim" => &[labels::NODEPOOL],
        "node" => &[labels::NODEPOOL, labels::INITIALIZED],
        _ => return Vec::new(),
    };
    node_classes.iter().chain(own).map(|key| key.replace(['/', '.', '-'], "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_claims_are_told_apart_by_node_class_and_pool() {
        let classes = [labels::kwok::NODE_CLASS];
        assert_eq!(
            object_labels("node", &classes),
            ["karpenter_kwok_sh_kwoknodeclass", "karpenter_sh_nodepool", "karpenter_sh_initialized"]
        );
        assert_eq!(
            object_labels("nodeclaim", &classes),
            ["karpenter_kwok_sh_kwoknodeclass", "karpenter_sh_nodepool"]
        );
        assert!(object_labels("nodepool", &classes).is_empty());
    }

    #[test]
    fn the_older_names_have_default_buckets_and_name_no_kind() {
        assert_eq!(name(&COUNT, "node"), "operator_node_status_condition_count");
        assert_eq!(shared_name(&COUNT), "operator_status_condition_count");
        assert_eq!(shared(&TRANSITION_SECONDS).kind, Histogram(DEFAULT_BUCKETS));
        assert_eq!(shared(&COUNT).kind, Gauge);
    }
}
