//! Nodes: what their claims do not take care of, and their end.

mod health;
mod hydration;
pub mod termination;

use std::sync::Arc;

use api::names::controllers as names;
use api::names::taints::{self, NodeTaint};
use api::provider::Provider;
use cluster::objects::{Effect, Node, Taint};
use runtime::controller::Controller;
use runtime::queue::{Backoff, Queue};
use serde_json::{Value, json};

use crate::Context;
use crate::node_claim::reboot::Reboot;
use crate::watching::{controller, controller_on};
use crate::wiring::Wiring;
use termination::Termination;
use termination::eviction::{Evictions, Evictor};

/// The controllers of Nodes, listening already.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let workers = context.settings.workers(100, 5000);
    let backoff = Backoff::millis(100, 10_000);
    let evicting = Wiring { backoff, ..Wiring::new(names::EVICTION_QUEUE, workers) };
    let terminating = Wiring { backoff, ..Wiring::new(names::NODE_TERMINATION, workers) };
    let queue = Arc::new(Queue::new(backoff));
    let evictions = Evictions::new(Arc::clone(&queue));
    let evictor = Evictor::new(context, evictions.clone());
    let hydrating = Wiring {
        backoff: Backoff::millis(100, 60_000),
        ..Wiring::new(names::NODE_HYDRATION, context.settings.workers(1000, 5000))
    };
    // It drains nodes with the same queue.
    let rebooting =
        Wiring { backoff: Backoff::millis(100, 60_000), ..Wiring::new(names::NODE_CLAIM_REBOOT, 10) };
    let mut all = vec![
        controller(context, hydrating, hydration::Hydration::new(context)),
        controller_on(context, queue, evicting, evictor),
        controller(context, rebooting, Reboot::new(context, evictions.clone())),
        controller(context, terminating, Termination::new(context, evictions)),
    ];
    if let Some(health) = health::Health::new(context) {
        let repairing = Wiring {
            backoff: Backoff::millis(100, 60_000),
            ..Wiring::new(names::NODE_HEALTH, context.settings.workers(10, 1000))
        };
        all.push(controller(context, repairing, health));
    }
    all
}

/// The label by which a Node says which NodeClass configured it.
pub(crate) fn node_class_label(provider: Provider) -> String {
    let class = provider.node_class();
    format!("{}/{}", class.group, class.kind.to_lowercase())
}

/// Whether a Node is one of this cloud.
pub(crate) fn is_managed(node: &Node, provider: Provider) -> bool {
    node.metadata.labels.get(&node_class_label(provider)).is_some()
}

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

/// The change that gives a Node a taint or takes it away, if that is not so already. Lists are replaced as a whole,
/// so it is refused if somebody else was faster.
pub(crate) fn taint_change(node: &Node, mark: Mark<'_>, tainted: bool) -> Option<Value> {
    if has_taint(node, mark) == tainted {
        return None;
    }
    let others = node.spec.taints.iter().filter(|taint| Mark::from(*taint) != mark);
    let mut list: Vec<Value> = others.map(taint_json).collect();
    if tainted {
        list.push(json!({"key": mark.key, "effect": mark.effect}));
    }
    let version = node.metadata.resource_version.to_string();
    Some(json!({"metadata": {"resourceVersion": version}, "spec": {"taints": list}}))
}

/// Whether so many nodes are broken that the cause is not in the nodes: more than a fifth, rounded up.
pub(crate) fn is_too_many(broken: usize, all: usize) -> bool {
    broken > all.div_ceil(5)
}
