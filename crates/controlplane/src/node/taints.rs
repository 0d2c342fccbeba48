//! Taints that follow from a node's conditions.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::json;

use crate::action::Outcome;
use crate::cache::Cache;
use crate::names;
use crate::node::health::is_health_taint;
use crate::node::{condition, ready_status};
use crate::object::{Key, Kind};
use crate::time::time;

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(node) = cache.nodes.get(key) else { return outcome };
    let current = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let wanted = wanted(node);
    let is = |taint: &Taint, (key, effect): (&str, &str)| taint.key == key && taint.effect == effect;
    let mut taints: Vec<Taint> = current
        .iter()
        .filter(|taint| !is_ours(taint) || wanted.iter().any(|want| is(taint, *want)))
        .cloned()
        .collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| is(taint, (key, effect))) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                value: None,
                // People and the eviction of pods want to know since when; the others carry no time.
                time_added: Some(time(now)),
            });
        }
    }
    if taints != current {
        let taints = if taints.is_empty() { json!(null) } else { json!(taints) };
        let body = json!({
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": taints},
        });
        outcome.patch(Kind::Node, &node.metadata, body);
    }
    outcome
}

fn wanted(node: &Node) -> Vec<(&'static str, &'static str)> {
    let mut wanted = Vec::new();
    match ready_status(node) {
        Some("False") => wanted.extend([(names::NOT_READY, "NoSchedule"), (names::NOT_READY, "NoExecute")]),
        Some("Unknown") => {
            wanted.extend([(names::UNREACHABLE, "NoSchedule"), (names::UNREACHABLE, "NoExecute")]);
        }
        // A node that has not reported keeps the taint that it was created with.
        None if has(node, names::NOT_READY, "NoSchedule") => wanted.push((names::NOT_READY, "NoSchedule")),
        _ => {}
    }
    for (name, key) in [
        ("MemoryPressure", names::MEMORY_PRESSURE),
        ("DiskPressure", names::DISK_PRESSURE),
        ("PIDPressure", names::PID_PRESSURE),
        ("NetworkUnavailable", names::NETWORK_UNAVAILABLE),
    ] {
        if condition(node, name).is_some_and(|condition| condition.status == "True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        wanted.push((names::UNSCHEDULABLE, "NoSchedule"));
    }
    wanted
}

fn has(node: &Node, key: &str, effect: &str) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == key && taint.effect == effect)
}

/// Whether this controller decides about a taint.
fn is_ours(taint: &Taint) -> bool {
    let by_condition = [
        names::NOT_READY,
        names::UNREACHABLE,
        names::MEMORY_PRESSURE,
        names::DISK_PRESSURE,
        names::PID_PRESSURE,
        names::NETWORK_UNAVAILABLE,
        names::UNSCHEDULABLE,
    ];
    match taint.effect.as_str() {
        "NoSchedule" => by_condition.contains(&taint.key.as_str()),
        "NoExecute" => is_health_taint(&taint.key),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
