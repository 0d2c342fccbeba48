//! Nodes that give no sign of life are out of reach.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition};
use serde_json::json;

use crate::action::Outcome;
use crate::cache::Cache;
use crate::names;
use crate::node::{condition, ready_status};
use crate::object::{Key, Kind};
use crate::pod;
use crate::time::{after, time};

/// How long a node may be silent: four renewals of its lease.
const GRACE: Duration = Duration::from_secs(40);

/// How long a node that has never reported may be silent.
const STARTUP_GRACE: Duration = Duration::from_mins(1);

const COMPONENT: &str = "node-controller";

/// The conditions that nobody knows of a silent node.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(node) = cache.nodes.get(key) else { return outcome };
    let Some(signs) = cache.signs(&key.name) else { return outcome };
    let reported = condition(node, "Ready").is_some();
    let until = after(signs.alive, if reported { GRACE } else { STARTUP_GRACE });
    if until > now {
        outcome.look_again(until);
    } else if REPORTED.iter().any(|name| condition(node, name).is_none_or(|known| known.status != "Unknown"))
    {
        lose(node, now, &mut outcome);
    }
    if ready_status(node).is_some_and(|ready| ready != "True") {
        pods_are_not_ready(cache, node, now, &mut outcome);
    }
    outcome
}

fn lose(node: &Node, now: Timestamp, outcome: &mut Outcome) {
    let mut conditions =
        node.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    for name in REPORTED {
        match conditions.iter_mut().find(|condition| condition.type_ == name) {
            Some(condition) if condition.status == "Unknown" => {}
            Some(condition) => {
                "Unknown".clone_into(&mut condition.status);
                condition.reason = Some("NodeStatusUnknown".to_owned());
                condition.message = Some("Kubelet stopped posting node status.".to_owned());
                condition.last_transition_time = Some(time(now));
            }
            None => conditions.push(NodeCondition {
                type_: name.to_owned(),
                status: "Unknown".to_owned(),
                reason: Some("NodeStatusNeverUpdated".to_owned()),
                message: Some("Kubelet never posted node status.".to_owned()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(time(now)),
            }),
        }
    }
    let body = json!({
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "status": {"conditions": conditions},
    });
    outcome.patch_status(Kind::Node, &node.metadata, body);
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let about = (Kind::Node, &node.metadata);
    outcome.note(about, COMPONENT, "NodeNotReady", format!("Node {name} status is now: NodeNotReady"));
}

/// Pods on a node that is not ready serve nobody, whatever they last said.
fn pods_are_not_ready(cache: &Cache, node: &Node, now: Timestamp, outcome: &mut Outcome) {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    for pod in cache.pods_on(name).filter(|pod| pod::is_ready(pod)) {
        let mut conditions =
            pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        for condition in conditions.iter_mut().filter(|condition| condition.type_ == "Ready") {
            "False".clone_into(&mut condition.status);
            condition.reason = Some("NodeNotReady".to_owned());
            condition.last_transition_time = Some(time(now));
        }
        let body = json!({
            "metadata": {"resourceVersion": pod.metadata.resource_version},
            "status": {"conditions": conditions},
        });
        outcome.patch_status(Kind::Pod, &pod.metadata, body);
    }
}

/// Whether a taint is one that this controller puts on nodes that are not ready.
pub(crate) fn is_health_taint(key: &str) -> bool {
    key == names::NOT_READY || key == names::UNREACHABLE
}

#[cfg(test)]
mod tests;
