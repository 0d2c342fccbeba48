//! Node lifecycle: what nodes say of themselves, what silence means, and the taints that follow.

pub(crate) mod health;
pub(crate) mod taints;

use k8s_openapi::api::core::v1::{Node, NodeCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A condition of a node.
pub(crate) fn condition<'a>(node: &'a Node, name: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == name)
}

/// `True`, `False` or `Unknown`, if the node has said anything.
pub(crate) fn ready_status(node: &Node) -> Option<&str> {
    condition(node, "Ready").map(|ready| ready.status.as_str())
}

/// When the node last reported whether it is ready.
pub(crate) fn ready_heartbeat(node: &Node) -> Option<&Time> {
    condition(node, "Ready")?.last_heartbeat_time.as_ref()
}
