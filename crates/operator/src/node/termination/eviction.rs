//! The eviction queue: pods that are to leave their nodes, until they have been told to.
//!
//! ```text
//!   pod ──► must go for its node to be empty in time?  delete it, with what is left as its grace
//!       ──► protected?                                 look again later
//!       ──► otherwise                                  ask for its eviction; a budget may refuse for now
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::DISRUPTION_REASON;
use api::names::metrics::{PODS_DRAINED, PODS_EVICTION_REQUESTS};
use api::names::{events, values};
use cluster::do_not_disrupt::DoNotDisrupt;
use cluster::eligibility::{is_active, is_evictable};
use cluster::objects::Pod;
use cluster::state::{Change, Key, Kind, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::Reconcile;
use runtime::events::About;
use runtime::queue::Queue;
use runtime::{Again, Error, Outcome};

use super::drain::{courtesy, grace, must_go};
use crate::Context;
use crate::node_claim::lifecycle::text;

/// How the API server refuses to evict a pod that several budgets select.
const SEVERAL_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// What happens at the deadline of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Pods that have not left stay.
    Leave,
    /// Pods are deleted in time.
    Force,
}

/// A pod that is to leave its node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    uid: Box<str>,
    deadline: Option<Timestamp>,
    mode: Mode,
}

impl Item {
    /// The stricter of two wishes for the same pod: nobody gets more time because somebody else asks.
    fn stricter(self, other: Self) -> Self {
        if self.mode != other.mode {
            return if self.mode > other.mode { self } else { other };
        }
        let deadline = match (self.deadline, other.deadline) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { deadline, ..self }
    }
}

/// What is to be done about a pod that is to leave.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nothing more: it leaves, or may stay.
    Drop,
    /// It is deleted, with so many seconds to stop.
    Delete { grace: i64 },
    /// It is protected for now.
    Wait,
    /// Its eviction is asked for.
    Evict,
}

fn decide(pod: &Pod, item: &Item, now: Timestamp) -> Step {
    match (item.mode, item.deadline) {
        (Mode::Leave, Some(deadline)) if now > deadline => return Step::Drop,
        (Mode::Force, Some(deadline)) if must_go(pod, Some(deadline), now) => {
            return Step::Delete { grace: grace(deadline, now) };
        }
        _ => {}
    }
    if !is_active(pod) {
        Step::Drop
    } else if is_evictable(pod, now) {
        Step::Evict
    } else {
        Step::Wait
    }
}

/// Pods that are to leave their nodes. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Evictions {
    queue: Arc<Queue>,
    items: Arc<Mutex<BTreeMap<Key, Item>>>,
}

impl Evictions {
    /// None yet; their keys go into a queue.
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Self { queue, items: Arc::default() }
    }

    /// Asks for pods to leave. Those that were asked before keep their back-off, unless it is urgent.
    pub(crate) fn add(&self, pods: &[Arc<Pod>], deadline: Option<Timestamp>, mode: Mode, urgent: bool) {
        let mut items = self.items.lock();
        for pod in pods {
            let (key, uid) = (pod.key(), pod.metadata.uid.clone());
            let item = Item { uid, deadline, mode };
            let known = items.remove(&key).filter(|known| known.uid == item.uid);
            if urgent {
                self.queue.add(key.clone());
            } else if known.is_none() {
                self.queue.add_after(key.clone(), courtesy(pod));
            }
            let item = match known {
                Some(known) => known.stricter(item),
                None => item,
            };
            items.insert(key, item);
        }
    }

    fn get(&self, key: &Key) -> Option<Item> {
        self.items.lock().get(key).cloned()
    }

    /// Forgets a pod, of that very UID.
    fn drop_item(&self, key: &Key, uid: &str) {
        let mut items = self.items.lock();
        if items.get(key).is_some_and(|item| *item.uid == *uid) {
            items.remove(key);
        }
    }

    /// Which keys a change concerns: a pod that is asked to leave may have become easier to move.
    pub(crate) fn watch(&self, change: &Change) -> Option<Key> {
        let Object::Pod(pod) = change.object() else { return None };
        let key = pod.key();
        let mut items = self.items.lock();
        let item = items.get(&key)?;
        match (&change.old, &change.new) {
            (Some(Object::Pod(old)), Some(Object::Pod(new))) => {
                let is_other = item.uid != new.metadata.uid;
                (is_other || old.metadata.annotations != new.metadata.annotations).then_some(key)
            }
            (_, None) => {
                items.remove(&key);
                None
            }
            _ => None,
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.items.lock().len()
    }
}

/// Carries out evictions.
pub(crate) struct Evictor {
    context: Context,
    evictions: Evictions,
}

impl Evictor {
    pub(crate) fn new(context: &Context, evictions: Evictions) -> Self {
        Self { context: context.clone(), evictions }
    }

    async fn delete(&self, pod: &Pod, item: &Item, grace: i64) -> Outcome {
        match self.context.api.delete_within(pod, Some(grace)).await {
            Ok(()) => {}
            Err(error) if error.is_outrun() => {
                self.evictions.drop_item(&pod.key(), &item.uid);
                return Ok(Again::No);
            }
            Err(error) => return Err(error),
        }
        self.evictions.drop_item(&pod.key(), &item.uid);
        let deadline = item.deadline.map(text).unwrap_or_default();
        let own = pod.spec.termination_grace_period_seconds.unwrap_or_default();
        let message = format!(
            "Deleting the pod to accommodate the terminationTime {deadline} of the node. The pod was granted \
             {grace} seconds of grace-period of its {own} terminationGracePeriodSeconds. This bypasses the PDB of \
             the pod and the do-not-disrupt annotation."
        );
        self.context.events.publish(&events::DISRUPTED, About::object(pod), message, &[&pod.metadata.uid]);
        self.count_drained(&self.reason(pod));
        Ok(Again::No)
    }

    async fn evict(&self, pod: &Pod, item: &Item) -> Outcome {
        let key = pod.key();
        let error = match self.context.api.evict(&key, &item.uid).await {
            Ok(()) => {
                self.count_request("200");
                self.context.cluster.doom(Kind::Pod, &key, &item.uid);
                self.evictions.drop_item(&key, &item.uid);
                let reason = self.reason(pod);
                let message = format!("Evicted pod: {reason}");
                self.context.events.publish(
                    &events::EVICTED,
                    About::object(pod),
                    message,
                    &[&pod.metadata.uid],
                );
                self.count_drained(&reason);
                return Ok(Again::No);
            }
            Err(error) => error,
        };
        if error.code() != 0 {
            self.count_request(&error.code().to_string());
        }
        if error.is_outrun() {
            self.evictions.drop_item(&key, &item.uid);
            return Ok(Again::No);
        }
        let Some(why) = refusal(&error) else { return Err(error) };
        let node = self.context.cluster.read().nodes.named(&pod.spec.node_name).cloned();
        let Some(node) = node else {
            self.evictions.drop_item(&key, &item.uid);
            return Ok(Again::No);
        };
        let message = format!("Failed to drain node, {why} (Pod={key})");
        let dedupe = [&*node.metadata.name, why];
        self.context.events.publish(&events::FAILED_DRAINING, About::object(&*node), message, &dedupe);
        Ok(Again::Backoff)
    }

    /// Why a pod leaves, as its owner reads it.
    fn reason(&self, pod: &Pod) -> String {
        let state = self.context.cluster.read();
        let node = state.nodes.named(&pod.spec.node_name);
        let Some(claim) = node.and_then(|node| state.claim_of_node(node)) else { return String::new() };
        let disruption = claim.condition(DISRUPTION_REASON).filter(|_| claim.is_true(DISRUPTION_REASON));
        disruption.map_or(values::FORCEFUL_TERMINATION, |condition| &condition.reason).to_owned()
    }

    fn count_request(&self, code: &str) {
        self.context.metrics.add(&PODS_EVICTION_REQUESTS, &[code], 1.0);
    }

    fn count_drained(&self, reason: &str) {
        self.context.metrics.add(&PODS_DRAINED, &[reason], 1.0);
    }

    /// Tells the owner of a pod how its annotation is understood.
    fn notify(&self, pod: &Pod, now: Timestamp) {
        if let Some(notice) = DoNotDisrupt::of(pod, now).notice() {
            let dedupe = [&*pod.metadata.uid, &notice.message];
            self.context.events.publish(notice.event, About::object(pod), notice.message.clone(), &dedupe);
        }
    }
}

/// What keeps a pod from being evicted for now, if that is all.
fn refusal(error: &Error) -> Option<&'static str> {
    if error.code() == 429 {
        return Some("evicting pod violates a PDB");
    }
    let is_several = error.code() == 500 && error.to_string().contains(SEVERAL_BUDGETS);
    is_several.then_some("eviction does not support multiple PDBs")
}

impl Reconcile for Evictor {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Some(item) = self.evictions.get(key) else { return Ok(Again::No) };
            let pod = self.context.cluster.read().pods.get(key).cloned();
            let Some(pod) = pod.filter(|pod| pod.metadata.uid == item.uid) else {
                self.evictions.drop_item(key, &item.uid);
                return Ok(Again::No);
            };
            let now = self.context.now();
            self.notify(&pod, now);
            match decide(&pod, &item, now) {
                Step::Drop => {
                    self.evictions.drop_item(key, &item.uid);
                    Ok(Again::No)
                }
                Step::Wait => Ok(Again::Backoff),
                Step::Delete { grace } => self.delete(&pod, &item, grace).await,
                Step::Evict => self.evict(&pod, &item).await,
            }
        }
        .boxed()
    }
}

impl crate::watching::Watching for Evictor {
    fn watch(&self, change: &Change, _: &State) -> Vec<Key> {
        self.evictions.watch(change).into_iter().collect()
    }

    fn existing(&self, _: &State) -> Vec<Key> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
