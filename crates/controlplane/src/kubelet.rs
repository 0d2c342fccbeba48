//! Simulated machines: nodes that become ready, pods that start, run, end and stop, without running anything.

mod conditions;
pub(crate) mod lease;
pub(crate) mod node;
pub(crate) mod pod;
mod pod_status;

use k8s_openapi::api::core::v1::Node;

use crate::names;
use crate::object::annotation;
use crate::options::{KubeletOptions, NodeSelection};

/// Whether a node is one of ours.
fn is_ours(node: &Node, options: &KubeletOptions) -> bool {
    let (key, value) = names::FAKE_NODE;
    options.nodes == NodeSelection::All || annotation(&node.metadata, key) == Some(value)
}

/// What is wrong with a node, by request.
fn failure(node: &Node) -> Option<&str> {
    annotation(&node.metadata, names::simulate::FAIL)
}

/// Whether the machine does not say anything at all.
fn is_silent(node: &Node) -> bool {
    failure(node) == Some("silent")
}

/// Whether the machine has not come up yet.
fn is_starting(
    cache: &crate::cache::Cache,
    node: &Node,
    options: &KubeletOptions,
    now: jiff::Timestamp,
) -> bool {
    let reported = crate::node::ready_status(node).is_some();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let since = cache.signs(name).map_or(now, |signs| signs.since);
    !reported && crate::time::after(since, options.ready_after) > now
}
