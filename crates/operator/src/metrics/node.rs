//! What nodes have and what of it is used.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::labels::LabelSets;
use api::names::controllers::METRICS_NODE;
use api::names::metrics::{
    CLUSTER_UTILIZATION, Metric, NODES_ALLOCATABLE, NODES_CURRENT_LIFETIME, NODES_SYSTEM_OVERHEAD,
    NODES_TOTAL_DAEMON_LIMITS, NODES_TOTAL_DAEMON_REQUESTS, NODES_TOTAL_POD_LIMITS, NODES_TOTAL_POD_REQUESTS,
};
use cluster::eligibility::{is_daemon, is_terminal};
use cluster::objects::Node;
use cluster::requests;
use cluster::state::{Key, State};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};
use units::Resources;

use super::{amount, resource_type};
use crate::Context;
use crate::wiring::Wiring;

/// How often nodes are looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// What a node has and what of it is used.
#[derive(Debug, Default, PartialEq)]
struct Usage {
    allocatable: Resources,
    overhead: Resources,
    pod_requests: Resources,
    pod_limits: Resources,
    daemon_requests: Resources,
    daemon_limits: Resources,
}

fn usage(state: &State, node: &Node) -> Usage {
    let all = |list: &cluster::objects::pod::ResourceList| -> Resources {
        list.iter().map(|(name, quantity)| (name, *quantity)).collect()
    };
    let mut usage = Usage { allocatable: all(&node.status.allocatable), ..Usage::default() };
    usage.overhead = all(&node.status.capacity);
    usage.overhead.subtract(&usage.allocatable);
    for pod in state.pods_on(&node.metadata.name).filter(|pod| !is_terminal(pod)) {
        let (requests, limits) = if is_daemon(pod) {
            (&mut usage.daemon_requests, &mut usage.daemon_limits)
        } else {
            (&mut usage.pod_requests, &mut usage.pod_limits)
        };
        requests.add(&requests::of_pod(pod));
        limits.add(&requests::limits_of_pod(pod));
    }
    usage
}

/// The series of one node, by metric: label values and value.
type Series = (&'static Metric, Vec<(Vec<String>, f64)>);

/// What is told of a node. `well_known` are the keys of the labels that metrics of nodes have, in order.
fn series(
    node: &Node,
    usage: &Usage,
    is_managed: bool,
    well_known: &[Option<String>],
    now: Timestamp,
) -> Vec<Series> {
    let own = &node.metadata.labels;
    let told: Vec<String> =
        well_known.iter().map(|key| own.text(key.as_deref().unwrap_or_default()).to_owned()).collect();
    let labels = |resource: Option<&str>| {
        let mut labels =
            vec![node.metadata.name.to_string(), node.status.phase.to_string(), is_managed.to_string()];
        labels.extend(resource.map(resource_type));
        labels.extend(told.iter().cloned());
        labels
    };
    let amounts = |resources: &Resources| {
        let each = resources
            .iter()
            .map(|(name, quantity)| (labels(Some(name.as_str())), amount(name.as_str(), *quantity)));
        each.collect::<Vec<_>>()
    };
    let created = node.metadata.creation_timestamp.as_ref();
    let age = created.map(|created| now.duration_since(created.0).as_secs_f64());
    vec![
        (&NODES_ALLOCATABLE, amounts(&usage.allocatable)),
        (&NODES_SYSTEM_OVERHEAD, amounts(&usage.overhead)),
        (&NODES_TOTAL_POD_REQUESTS, amounts(&usage.pod_requests)),
        (&NODES_TOTAL_POD_LIMITS, amounts(&usage.pod_limits)),
        (&NODES_TOTAL_DAEMON_REQUESTS, amounts(&usage.daemon_requests)),
        (&NODES_TOTAL_DAEMON_LIMITS, amounts(&usage.daemon_limits)),
        (&NODES_CURRENT_LIFETIME, age.map(|age| (labels(None), age)).into_iter().collect()),
    ]
}

/// The share of all nodes that pods ask for, in percent, by resource.
fn utilization(allocatable: &Resources, requests: &Resources) -> Vec<(Vec<String>, f64)> {
    let shares = allocatable.iter().filter(|(_, total)| !total.is_zero()).map(|(name, total)| {
        let used = amount(name.as_str(), requests.amount(name.as_str()));
        (vec![resource_type(name.as_str())], 100.0 * used / amount(name.as_str(), *total))
    });
    shares.collect()
}

struct Nodes {
    context: Context,
    /// The key of the label behind each well-known label of the metrics, in their order.
    well_known: Vec<Option<String>>,
    /// Nodes that were told of the last time.
    told: Mutex<BTreeSet<Box<str>>>,
}

impl Nodes {
    fn tell(&self) {
        let (metrics, now) = (&self.context.metrics, self.context.now());
        let mut told = BTreeSet::new();
        let (mut allocatable, mut requests) = (Resources::new(), Resources::new());
        let all: Vec<(Box<str>, Vec<Series>)> = {
            let state = self.context.cluster.read();
            let nodes = state.state_nodes();
            let present = nodes.iter().filter_map(|node| Some((node.node?, node.is_managed())));
            present
                .map(|(node, is_managed)| {
                    let usage = usage(&state, node);
                    allocatable.add(&usage.allocatable);
                    requests.add(&usage.pod_requests);
                    requests.add(&usage.daemon_requests);
                    (node.metadata.name.clone(), series(node, &usage, is_managed, &self.well_known, now))
                })
                .collect()
        };
        for (node, series) in all {
            for (metric, series) in series {
                metrics.replace(metric, &node, series);
            }
            told.insert(node);
        }
        metrics.replace(&CLUSTER_UTILIZATION, METRICS_NODE, utilization(&allocatable, &requests));
        let before = std::mem::replace(&mut *self.told.lock(), told.clone());
        for gone in before.difference(&told) {
            for (metric, _) in series(&Node::default(), &Usage::default(), false, &[], now) {
                metrics.replace(metric, gone, []);
            }
        }
    }
}

impl Reconcile for Nodes {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        async {
            self.tell();
            Ok(Again::After(INTERVAL))
        }
        .boxed()
    }
}

/// The key of the label behind each label of the metrics; where several have the same name, the last.
fn keys(context: &Context) -> Vec<Option<String>> {
    let sets = LabelSets::for_provider(context.provider());
    let named = |name: &String| {
        let keys = sets
            .well_known()
            .filter(|key| key.split_once('/').is_some_and(|(_, suffix)| resource_type(suffix) == *name));
        keys.last().map(str::to_owned)
    };
    context.metrics.well_known().iter().map(named).collect()
}

/// The controller.
pub(super) fn controller(context: &Context) -> Controller {
    let queue = Arc::new(Queue::new(Backoff::DEFAULT));
    queue.add(Key::cluster(METRICS_NODE));
    let nodes = Nodes { context: context.clone(), well_known: keys(context), told: Mutex::default() };
    Wiring::new(METRICS_NODE, 1).on(queue, Arc::new(nodes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{node_objects, pod_object, state};

    #[test]
    fn a_node_tells_what_it_has_and_what_its_pods_use() {
        let [node, claim] =
            node_objects("n1", "p", &json!({"status": {"capacity": {"cpu": "5"}}}), &json!({}));
        let container =
            json!([{"name": "c", "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "2"}}}]);
        let spec = json!({"spec": {"containers": container}});
        let owners = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}]);
        let daemon = json!({"metadata": {"ownerReferences": owners}, "spec": {"containers": container}});
        let done = json!({"spec": {"containers": container}, "status": {"phase": "Succeeded"}});
        let state = state(&[
            node,
            claim,
            pod_object("a", "n1", &spec),
            pod_object("d", "n1", &daemon),
            pod_object("done", "n1", &done),
        ]);
        let node = state.nodes.named("n1").unwrap();
        let usage = usage(&state, node);
        let cpu = |resources: &Resources| resources.amount("cpu").to_string();
        assert_eq!(cpu(&usage.allocatable), "4");
        assert_eq!(cpu(&usage.overhead), "1");
        assert_eq!((cpu(&usage.pod_requests), cpu(&usage.pod_limits)), ("500m".to_owned(), "2".to_owned()));
        assert_eq!(
            (cpu(&usage.daemon_requests), cpu(&usage.daemon_limits)),
            ("500m".to_owned(), "2".to_owned())
        );
        let keys = [Some("karpenter.sh/nodepool".to_owned()), None];
        let all = series(node, &usage, true, &keys, Timestamp::UNIX_EPOCH);
        let (_, allocatable) = &all[0];
        let (labels, value) = allocatable.iter().find(|(labels, _)| labels[3] == "cpu").unwrap();
        assert_eq!(labels.join(","), "n1,,true,cpu,p,");
        assert!((value - 4.0).abs() < 1e-9);
        let shares = utilization(&usage.allocatable, &usage.pod_requests);
        let (_, share) = shares.iter().find(|(labels, _)| labels[0] == "cpu").unwrap();
        assert!((share - 12.5).abs() < 1e-9);
    }
}
