//! Termination: a Node that is deleted is drained, its volumes are waited for, its instance is terminated, and only
//! then it goes.

pub(crate) mod drain;
pub(crate) mod eviction;
mod volumes;

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::{DRAINED, INSTANCE_TERMINATING, VOLUMES_DETACHED};
use api::names::metrics::{
    NODES_DRAINED, NODES_LIFETIME_DURATION, NODES_TERMINATED, NODES_TERMINATION_DURATION,
};
use api::names::{annotations, events, finalizers, labels, reasons, taints};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::objects::{Node, VolumeAttachment};
use cluster::state::{Change, Key, Meta, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use runtime::controller::Reconcile;
use runtime::events::About;
use runtime::{Again, Error, Outcome};
use serde_json::{Value, json};

use super::{Mark, is_managed, taint_json};
use crate::Context;
use crate::node_claim::lifecycle::{INSTANCE_GONE, text};
use crate::node_claim::{deadline, provider_id, write_status};
use crate::watching::Watching;
use drain::Drain;
use eviction::{Evictions, Mode};

/// How often pods and volumes are looked at while they are waited for.
const LOOK: Again = Again::secs(1);
/// The shortest drain, so that load balancers notice.
const SHORTEST_DRAIN: Duration = Duration::from_secs(5);

/// Terminates Nodes.
pub struct Termination {
    context: Context,
    evictions: Evictions,
}

/// What is known about a Node that goes.
struct Going {
    node: Arc<Node>,
    /// The one claim of its instance.
    claim: Option<Arc<NodeClaim>>,
    /// When it must be empty.
    deadline: Option<Timestamp>,
}

/// How far a Node has come.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// So many pods are left.
    Pods(usize),
    /// Load balancers may not have noticed yet.
    Soon,
    /// Volumes are attached.
    Volumes,
    /// Nothing is left but the instance.
    Empty,
}

impl Termination {
    pub(crate) fn new(context: &Context, evictions: Evictions) -> Self {
        Self { context: context.clone(), evictions }
    }

    async fn terminate(&self, node: Arc<Node>) -> Outcome {
        let claim = self.context.cluster.read().claim_of_node(&node).cloned();
        if let Some(claim) = claim.as_ref().filter(|claim| !claim.metadata.is_deleting()) {
            match self.context.api.delete(&**claim).await {
                Ok(()) => {}
                Err(error) if error.is_outrun() => {}
                Err(error) => return Err(error),
            }
        }
        if self.is_instance_gone(&node).await? {
            return self.release(&node).await;
        }
        let deadline = self.deadline(&node, claim.as_deref());
        let node = self.taint(node).await?;
        self.advance(&Going { node, claim, deadline }).await
    }

    /// Whether there is nobody to stop the pods of a Node that is not ready.
    async fn is_instance_gone(&self, node: &Node) -> Result<bool, Error> {
        if node.is_ready() || node.spec.provider_id.is_empty() {
            return Ok(false);
        }
        match self.context.cloud.get(&node.spec.provider_id).await {
            Ok(_) => Ok(false),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// When a Node must be empty, which everybody is told.
    fn deadline(&self, node: &Node, claim: Option<&NodeClaim>) -> Option<Timestamp> {
        let name = &*node.metadata.name;
        match claim.and_then(deadline)? {
            Ok(deadline) => {
                let event = &events::TERMINATION_GRACE_PERIOD_EXPIRING;
                let message = format!("All pods will be deleted by {}", text(deadline));
                self.context.events.publish(event, About::object(node), message, &[&node.metadata.uid]);
                Some(deadline)
            }
            Err(value) => {
                // A typing error must not keep the Node for ever.
                let key = annotations::TERMINATION_TIMESTAMP;
                let message = format!(
                    "Failed to drain node in time, ignoring annotation {key}: {value:?} is not a time"
                );
                self.context.events.publish(
                    &events::FAILED_DRAINING,
                    About::object(node),
                    message,
                    &[name, key],
                );
                None
            }
        }
    }

    /// Keeps new pods and load balancers away.
    async fn taint(&self, node: Arc<Node>) -> Result<Arc<Node>, Error> {
        let Some(patch) = taint_patch(&node) else { return Ok(node) };
        let patched = self.context.api.patch_strategic(&node.key(), &patch).await?;
        let taint = taints::DISRUPTED;
        tracing::info!(
            Node = %node.metadata.name,
            "taint.Key" = taint.key, "taint.Value" = taint.value, "taint.Effect" = taint.effect,
            "tainted node"
        );
        Ok(patched)
    }

    /// Does what can be done now, and notes in the claim how far it is.
    async fn advance(&self, going: &Going) -> Outcome {
        let now = self.context.now();
        let (drain, attachments) = {
            let state = self.context.cluster.read();
            let name = &*going.node.metadata.name;
            let drain = drain::decide(state.pods_on(name), going.deadline, now);
            (drain, volumes::waited_for(name, &state, now))
        };
        self.evictions.add(&drain.forced, going.deadline, Mode::Force, true);
        self.evictions.add(&drain.turn, going.deadline, Mode::Force, false);
        let mut after = going.claim.as_deref().cloned();
        let stage = advance(after.as_mut(), &drain, &attachments, going.deadline, now);
        self.tell(&going.node, &stage, &attachments);
        let mut again = Some(LOOK);
        let mut failure = None;
        if stage == Stage::Empty {
            match self.terminate_instance(after.as_mut()).await {
                Ok(next) => again = next,
                Err(error) => failure = Some(error),
            }
        }
        if let (Some(before), Some(after)) = (&going.claim, &after) {
            self.note(&going.node, before, after).await?;
        }
        if let Some(error) = failure {
            return Err(error);
        }
        match again {
            Some(again) => Ok(again),
            None => self.release(&going.node).await,
        }
    }

    fn tell(&self, node: &Node, stage: &Stage, attachments: &[Arc<VolumeAttachment>]) {
        let name = &*node.metadata.name;
        match stage {
            Stage::Pods(waiting) => {
                let message = format!("Failed to drain node, {waiting} pods are waiting to be evicted");
                self.context.events.publish(&events::FAILED_DRAINING, About::object(node), message, &[name]);
            }
            Stage::Volumes => {
                let names = volumes::names(attachments);
                let message = format!("Awaiting deletion of bound volumeattachments ({names})");
                let event = &events::AWAITING_VOLUME_DETACHMENT;
                self.context.events.publish(event, About::object(node), message, &[name]);
            }
            Stage::Soon | Stage::Empty => {}
        }
    }

    /// Terminates the instance; nothing once it is gone, or if nobody knows which it is.
    async fn terminate_instance(&self, claim: Option<&mut NodeClaim>) -> Result<Option<Again>, Error> {
        let Some(claim) = claim else { return Ok(None) };
        let gone = match self.context.cloud.delete(claim).await {
            Ok(()) => false,
            Err(error) if error.is_not_found() => true,
            Err(error) => return Err(error.into()),
        };
        Conditions::of(claim, self.context.now()).set_true(INSTANCE_TERMINATING);
        Ok((!gone).then_some(Again::After(INSTANCE_GONE)))
    }

    async fn note(&self, node: &Node, before: &NodeClaim, after: &NodeClaim) -> Result<(), Error> {
        match write_status(&self.context, before, after).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        }
        if after.is_true(DRAINED) && !before.is_true(DRAINED) {
            self.context.metrics.add(&NODES_DRAINED, &[node.metadata.labels.text(labels::NODEPOOL)], 1.0);
        }
        Ok(())
    }

    /// Lets a Node go.
    async fn release(&self, node: &Node) -> Outcome {
        let change = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizers::TERMINATION]}});
        match self.context.api.patch_strategic::<Node>(&node.key(), &change).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => return Ok(Again::No),
            Err(error) => return Err(error),
        }
        tracing::info!(Node = %node.metadata.name, "deleted node");
        let (now, metrics) = (self.context.now(), &self.context.metrics);
        let [pool, zone] = [labels::NODEPOOL, labels::ZONE].map(|key| node.metadata.labels.text(key));
        metrics.add(&NODES_TERMINATED, &[pool, zone], 1.0);
        let since = |time: Timestamp| now.duration_since(time).as_secs_f64().max(0.0);
        if let Some(deleted) = node.metadata.deleting_since() {
            metrics.observe(&NODES_TERMINATION_DURATION, &[pool], since(deleted));
        }
        if let Some(created) = &node.metadata.creation_timestamp {
            metrics.observe(&NODES_LIFETIME_DURATION, &[pool], since(created.0));
        }
        Ok(Again::No)
    }
}

/// The strategic patch that keeps new pods and load balancers away from a Node, if something is missing.
fn taint_patch(node: &Node) -> Option<Value> {
    const EXCLUDED: &str = "karpenter";
    let wanted = Mark::from(taints::DISRUPTED);
    let of_key = node.spec.taints.iter().filter(|taint| &*taint.key == wanted.key);
    let is_tainted = of_key.map(Mark::from).eq([wanted]);
    let is_labelled = node.metadata.labels.text(labels::EXCLUDE_FROM_LOAD_BALANCERS) == EXCLUDED;
    if is_tainted && is_labelled {
        return None;
    }
    let mut list: Vec<Value> =
        node.spec.taints.iter().filter(|taint| &*taint.key != wanted.key).map(taint_json).collect();
    list.push(json!({"key": wanted.key, "effect": wanted.effect}));
    Some(json!({
        "metadata": {
            "resourceVersion": node.metadata.resource_version.to_string(),
            "labels": {labels::EXCLUDE_FROM_LOAD_BALANCERS: EXCLUDED},
        },
        "spec": {"taints": list},
    }))
}

/// How far a Node has come; its claim, if it has one, notes it.
fn advance(
    claim: Option<&mut NodeClaim>,
    drain: &Drain,
    attachments: &[Arc<VolumeAttachment>],
    deadline: Option<Timestamp>,
    now: Timestamp,
) -> Stage {
    use reasons::node_claim as why;
    let mut conditions = claim.map(|claim| Conditions::of(claim, now));
    if let Some(conditions) = &mut conditions
        && conditions.get(DRAINED).is_none()
    {
        conditions.set(DRAINED, ConditionStatus::Unknown, why::DRAINING, why::DRAINING);
    }
    if drain.waiting > 0 {
        return Stage::Pods(drain.waiting);
    }
    if let Some(conditions) = &mut conditions {
        let started = conditions.get(DRAINED).filter(|drained| drained.status == ConditionStatus::Unknown);
        let is_soon = started.is_some_and(|started| {
            now.duration_since(started.last_transition_time.0).unsigned_abs() < SHORTEST_DRAIN
        });
        if is_soon {
            return Stage::Soon;
        }
        conditions.set_true(DRAINED);
    }
    let is_late = deadline.is_some_and(|deadline| now > deadline);
    if let Some(conditions) = &mut conditions {
        let elapsed = why::TERMINATION_GRACE_PERIOD_ELAPSED;
        let awaiting = why::AWAITING_VOLUME_DETACHMENT;
        match (attachments.is_empty(), is_late) {
            (true, _) => conditions.set_true(VOLUMES_DETACHED),
            (false, true) => conditions.set(VOLUMES_DETACHED, ConditionStatus::False, elapsed, elapsed),
            (false, false) => conditions.set(VOLUMES_DETACHED, ConditionStatus::Unknown, awaiting, awaiting),
        };
    }
    if attachments.is_empty() || is_late { Stage::Empty } else { Stage::Volumes }
}

impl Reconcile for Termination {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let node = self.context.cluster.read().nodes.get(key).cloned();
            let provider = self.context.provider();
            let node = node.filter(|node| is_going(node) && is_managed(node, provider));
            match node {
                Some(node) => self.terminate(node).await,
                None => Ok(Again::No),
            }
        }
        .boxed()
    }
}

/// Whether there is something to do about a Node.
fn is_going(node: &Node) -> bool {
    node.metadata.is_deleting() && node.metadata.has_finalizer(finalizers::TERMINATION)
}

impl Watching for Termination {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        let going = |name: &str| {
            let node = state.nodes.named(name).filter(|node| is_going(node));
            node.map(|node| node.key()).into_iter().collect()
        };
        match change.object() {
            Object::Node(node) => {
                if is_going(node) {
                    vec![node.key()]
                } else {
                    Vec::new()
                }
            }
            Object::NodeClaim(claim) if claim.metadata.is_deleting() => {
                let nodes = state.nodes_of(provider_id(claim)).filter(|node| is_going(node));
                nodes.map(|node| node.key()).collect()
            }
            // Whoever leaves may have been the last one.
            Object::Pod(pod) if change.new.is_none() => going(&pod.spec.node_name),
            Object::VolumeAttachment(attachment) if change.new.is_none() => going(&attachment.spec.node_name),
            _ => Vec::new(),
        }
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.nodes.values().filter(|node| is_going(node)).map(|node| node.key()).collect()
    }
}

#[cfg(test)]
mod tests;
