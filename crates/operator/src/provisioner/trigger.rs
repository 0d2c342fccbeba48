//! Wakes the provisioner: pods that no node takes, and nodes that go away with pods on them.

use std::sync::Arc;
use std::time::Duration;

use api::names::controllers::{PROVISIONER_TRIGGER_NODE, PROVISIONER_TRIGGER_POD};
use api::names::taints;
use cluster::eligibility::is_provisionable;
use cluster::objects::{Effect, Node};
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::Queue;

use super::batcher::Batcher;
use crate::Context;
use crate::wiring::Wiring;

/// How often the provisioner is reminded of what has not changed.
const REMINDER: Duration = Duration::from_secs(10);

/// Whether the pods of a node will need another one.
fn is_disrupted(node: &Node) -> bool {
    let taint = taints::DISRUPTED;
    node.spec.taints.iter().any(|known| *known.key == *taint.key && known.effect == Effect::NoSchedule)
}

struct Pods {
    context: Context,
    batcher: Arc<Batcher>,
}

impl Reconcile for Pods {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let (pod, is_new) = {
                let state = self.context.cluster.read();
                let pod = state.pods.get(key).filter(|pod| is_provisionable(pod)).map(Arc::clone);
                (pod, state.pod_record(key).is_none_or(|record| record.acknowledged.is_none()))
            };
            let Some(pod) = pod else { return Ok(Again::No) };
            if is_new {
                let now = self.context.now();
                self.context.cluster.update(|state| state.acknowledge_pod(key, now));
            }
            self.batcher.trigger(&pod.metadata.uid);
            Ok(Again::After(REMINDER))
        }
        .boxed()
    }
}

fn touch_waiting(change: &Change, _: &State, queue: &Queue) {
    if let Some(Object::Pod(pod)) = &change.new
        && is_provisionable(pod)
    {
        queue.add(pod.key());
    }
}

struct Nodes {
    context: Context,
    batcher: Arc<Batcher>,
}

impl Reconcile for Nodes {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let state = self.context.cluster.read();
            let Some(node) = state.nodes.get(key).filter(|node| is_disrupted(node)) else {
                return Ok(Again::No);
            };
            self.batcher.trigger(&node.metadata.uid);
            Ok(Again::After(REMINDER))
        }
        .boxed()
    }
}

fn touch_disrupted(change: &Change, _: &State, queue: &Queue) {
    if let Some(Object::Node(node)) = &change.new
        && is_disrupted(node)
    {
        queue.add(node.key());
    }
}

/// Pods wake the provisioner.
pub(super) fn pods(context: &Context, batcher: &Arc<Batcher>) -> Controller {
    let workers = context.settings.workers(10, 1000);
    let pods = Pods { context: context.clone(), batcher: Arc::clone(batcher) };
    Wiring::new(PROVISIONER_TRIGGER_POD, workers).listening(context, pods, touch_waiting)
}

/// Nodes that go away wake the provisioner.
pub(super) fn nodes(context: &Context, batcher: &Arc<Batcher>) -> Controller {
    let workers = context.settings.workers(10, 1000);
    let nodes = Nodes { context: context.clone(), batcher: Arc::clone(batcher) };
    Wiring::new(PROVISIONER_TRIGGER_NODE, workers).listening(context, nodes, touch_disrupted)
}
