//! The lease of a node: the cheap sign of life, every ten seconds.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{is_ours, is_silent, is_starting};
use crate::action::{Outcome, Verb};
use crate::cache::Cache;
use crate::names::LEASE_NAMESPACE;
use crate::object::{Key, Kind};
use crate::options::KubeletOptions;
use crate::time::{after, micros};

/// How often a lease is renewed.
const PERIOD: Duration = Duration::from_secs(10);

/// How long a lease holds.
const SECONDS: i32 = 40;

/// `key` names the node.
pub(crate) fn decide(cache: &Cache, key: &Key, options: &KubeletOptions, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(node) = cache.nodes.get(key) else { return outcome };
    if !is_ours(node, options) || is_silent(node) {
        return outcome;
    }
    if is_starting(cache, node, options, now) {
        let since = cache.signs(&key.name).map_or(now, |signs| signs.since);
        outcome.look_again(after(since, options.ready_after));
        return outcome;
    }
    let lease_key = Key::new(LEASE_NAMESPACE, &key.name);
    if let Some(lease) = cache.leases.get(&lease_key) {
        let renewed = lease.spec.renew_time.as_ref().map(|time| time.0);
        if let Some(due) = renewed.map(|renewed| after(renewed, PERIOD)).filter(|due| *due > now) {
            outcome.look_again(due);
            return outcome;
        }
        let body = json!({"spec": {"renewTime": micros(now)}});
        outcome.write(Kind::Lease, lease_key, Verb::Patch { body, subresource: None });
    } else {
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "name": key.name, "namespace": LEASE_NAMESPACE,
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Node", "name": key.name, "uid": node.metadata.uid,
                }],
            },
            "spec": {"holderIdentity": key.name, "leaseDurationSeconds": SECONDS, "renewTime": micros(now)},
        });
        outcome.create(Kind::Lease, LEASE_NAMESPACE, &Arc::new(body));
    }
    outcome.look_again(after(now, PERIOD));
    outcome
}

#[cfg(test)]
mod tests;
