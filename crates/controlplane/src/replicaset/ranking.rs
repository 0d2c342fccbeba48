//! Which pods go first when there are too many.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::node_of;
use crate::names;
use crate::object::annotation;
use crate::pod::{Pod, is_ready, phase, ready_since, restarts};

/// The first `number` pods to delete; `crowding` says how many related pods each node has.
pub(super) fn first_to_go<'a>(
    pods: &[&'a Arc<Pod>],
    number: usize,
    crowding: &BTreeMap<&str, usize>,
) -> Vec<&'a Arc<Pod>> {
    let mut pods = pods.to_vec();
    pods.sort_by(|a, b| order(a, b, crowding));
    pods.truncate(number);
    pods
}

/// Pods that do the least come first: without node, not running, not ready, cheap to delete, on crowded nodes,
/// lately ready, often restarted, young.
fn order(a: &Pod, b: &Pod, crowding: &BTreeMap<&str, usize>) -> Ordering {
    let rank = |pod: &Pod| {
        let crowd = node_of(pod).and_then(|node| crowding.get(node)).copied().unwrap_or(0);
        let phase = match phase(pod) {
            "Pending" | "" => 0,
            "Running" => 2,
            _ => 1,
        };
        (
            node_of(pod).is_some(),
            phase,
            is_ready(pod),
            cost(pod),
            Reverse(crowd),
            Reverse(ready_since(pod)),
            Reverse(restarts(pod)),
            Reverse(pod.metadata.creation_timestamp.clone()),
        )
    };
    rank(a).cmp(&rank(b)).then_with(|| a.metadata.name.cmp(&b.metadata.name))
}

fn cost(pod: &Pod) -> i32 {
    annotation(&pod.metadata, names::POD_DELETION_COST).and_then(|text| text.parse().ok()).unwrap_or(0)
}
