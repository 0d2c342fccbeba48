//! Nodes: what their claims do not take care of, and their end.

use api::names::taints::{self, NodeTaint};
use cluster::objects::{Effect, Node, Taint};
use serde_json::{Value, json};

/// What makes two taints the same: their values do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark<'a> {
    pub(crate) key: &'a str,
    pub(crate) effect: &'a str,
}

impl From<NodeTaint> for Mark<'static> {
    fn from(taint: NodeTaint) -> Self {
        Self { key: taint.key, effect: taint.effect }
    }
}

impl<'a> From<&'a Taint> for Mark<'a> {
    fn from(taint: &'a Taint) -> Self {
        let effect = match taint.effect {
            Effect::Any => "",
            Effect::NoSchedule => taints::NO_SCHEDULE,
            Effect::PreferNoSchedule => taints::PREFER_NO_SCHEDULE,
            Effect::NoExecute => taints::NO_EXECUTE,
        };
        Self { key: &taint.key, effect }
    }
}

/// Whether a Node has a taint.
pub(crate) fn has_taint(node: &Node, mark: Mark<'_>) -> bool {
    node.spec.taints.iter().any(|taint| Mark::from(taint) == mark)
}

/// A taint as the API writes it.
pub(crate) fn taint_json(taint: &Taint) -> Value {
    let Mark { key, effect } = Mark::from(taint);
    let mut json = json!({"key": key, "effect": effect});
    if !taint.value.is_empty() {
        json["value"] = json!(taint.value);
    }
    if let Some(added) = &taint.time_added {
        json["timeAdded"] = json!(added);
    }
    json
}
