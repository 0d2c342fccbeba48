//! The status of a simulated node.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeStatus, NodeSystemInfo};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Map, json};

use super::{conditions, failure, is_ours, is_silent};
use crate::action::{Outcome, difference};
use crate::cache::Cache;
use crate::names::{self, simulate};
use crate::node::{condition, ready_heartbeat};
use crate::object::{Key, Kind, label};
use crate::options::KubeletOptions;
use crate::time::after;

/// How often the status is posted when nothing changes.
const HEARTBEAT: Duration = Duration::from_mins(5);

pub(crate) fn decide(cache: &Cache, key: &Key, options: &KubeletOptions, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(node) = cache.nodes.get(key) else { return outcome };
    if !is_ours(node, options)
        || is_silent(node)
        || node.metadata.deletion_timestamp.is_some() && failure(node).is_some()
    {
        return outcome;
    }
    let since = cache.signs(&key.name).map_or(now, |signs| signs.since);
    let up = after(since, options.ready_after);
    let reported = condition(node, "Ready").is_some();
    if !reported && up > now {
        outcome.look_again(up);
        return outcome;
    }
    label_node(node, &mut outcome);
    if label(&node.metadata, names::STAGE.0) == Some(names::STAGE.1) {
        // Somebody wants to say themselves how the node is.
        return outcome;
    }
    let beat = ready_heartbeat(node).map(|time| after(time.0, HEARTBEAT));
    let due = beat.is_none_or(|due| due <= now);
    let old = node.status.clone().unwrap_or_default();
    let mut new = old.clone();
    complete(&mut new, node, options);
    if conditions::update(node, &mut new, due, now) {
        // What was asked for was cured by a reboot.
        let annotations = json!({simulate::CONDITIONS: null});
        outcome.patch(Kind::Node, &node.metadata, json!({"metadata": {"annotations": annotations}}));
        return outcome;
    }
    if new != old {
        if let (Ok(old), Ok(new)) = (serde_json::to_value(&old), serde_json::to_value(&new))
            && let Some(patch) = difference(&old, &new)
        {
            // Conditions are one list that others write to, so a newer one must not be overwritten.
            let body = json!({
                "metadata": {"resourceVersion": node.metadata.resource_version}, "status": patch,
            });
            outcome.patch_status(Kind::Node, &node.metadata, body);
        }
        outcome.look_again(after(now, HEARTBEAT));
    } else if let Some(due) = beat {
        outcome.look_again(due);
    }
    outcome
}

/// Labels that every kubelet sets on its node.
fn label_node(node: &Node, outcome: &mut Outcome) {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let mut missing = Map::new();
    for (key, value) in [(names::HOSTNAME, name), (names::OS, "linux"), (names::ARCH, "amd64")] {
        if label(&node.metadata, key).is_none() {
            missing.insert(key.to_owned(), json!(value));
        }
    }
    if !missing.is_empty() {
        outcome.patch(Kind::Node, &node.metadata, json!({"metadata": {"labels": missing}}));
    }
}

/// Fills in what the node came without.
fn complete(status: &mut NodeStatus, node: &Node, options: &KubeletOptions) {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    if status.addresses.as_ref().is_none_or(Vec::is_empty) {
        let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
        let internal = internal_address(name);
        status.addresses = Some(vec![address("InternalIP", internal), address("Hostname", name.to_owned())]);
    }
    if status.capacity.as_ref().is_none_or(BTreeMap::is_empty) {
        let capacity = options.capacity.iter().map(|(name, amount)| (name.clone(), Quantity(amount.clone())));
        status.capacity = Some(capacity.collect());
    }
    // What a device plugin adds to the capacity can be used too.
    let capacity = status.capacity.clone().unwrap_or_default();
    let allocatable = status.allocatable.get_or_insert_default();
    for (name, amount) in capacity {
        allocatable.entry(name).or_insert(amount);
    }
    // Real kubelets leave it alone, but whoever made the node may wait for it.
    if status.phase.as_deref() == Some("Pending") {
        status.phase = Some("Running".to_owned());
    }
    let info = status.node_info.get_or_insert_default();
    if info.kubelet_version.is_empty() {
        let id = crate::template::hash(&name, None);
        let boot_id = if info.boot_id.is_empty() { id.clone() } else { info.boot_id.clone() };
        *info = NodeSystemInfo {
            architecture: label(&node.metadata, names::ARCH).unwrap_or("amd64").to_owned(),
            operating_system: label(&node.metadata, names::OS).unwrap_or("linux").to_owned(),
            kubelet_version: options.version.clone(),
            kube_proxy_version: options.version.clone(),
            container_runtime_version: "simulated://1.0".to_owned(),
            kernel_version: "6.12.0".to_owned(),
            os_image: "Simulated Linux".to_owned(),
            machine_id: id.clone(),
            system_uuid: id,
            boot_id,
            ..NodeSystemInfo::default()
        };
    }
}

/// An address from 172.16.0.0/12 that follows from the name.
pub(super) fn internal_address(name: &str) -> String {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    std::net::Ipv4Addr::from(0xac10_0000 | (hash % 0x000f_fffe + 1)).to_string()
}

#[cfg(test)]
mod tests;
