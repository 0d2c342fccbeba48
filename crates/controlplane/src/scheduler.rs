//! The scheduler of the embedded cluster: kube-scheduler's rules as a pure state machine.
//!
//! [`Scheduler`] is told what happens in the cluster and asked for one decision after another; writing decisions
//! to the API server is the caller's part.
//! It shares no code with Karpenter's own engine, so that each can find the mistakes of the other, and its verdicts
//! are compared with those of the real kube-scheduler.

mod affinity;
mod cluster;
mod counts;
mod filter;
mod node;
mod pod;
mod preempt;
mod queue;
mod requests;
mod score;
mod selector;
mod spread;
mod verdict;
mod volumes;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};

use cluster::Cluster;
use filter::{Cycle, passes_alone, prepare};
use pod::PodInfo;
use preempt::Outcome;
use queue::{Parked, Pending, Queue};
use verdict::{GATED, NO_CLAIMS, NO_NODES, Rejection, summary, summary_for_all};

use crate::pod::Pod;

pub use volumes::{SELECTED_NODE, VolumePlan};

/// Namespace and name.
pub type Key = (String, String);

/// Pods that name another scheduler are left alone.
pub const SCHEDULER_NAME: &str = "default-scheduler";

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Bind the pod to the node; event `Scheduled`.
    Bind {
        /// The pod.
        pod: Key,
        /// Which pod of that name.
        uid: String,
        /// Its node.
        node: String,
    },
    /// Write what the plan says to volumes and claims; the pod is bound when all its claims are.
    BindVolumes {
        /// The pod.
        pod: Key,
        /// Which pod of that name.
        uid: String,
        /// The node that was chosen.
        node: String,
        /// What to write.
        plan: VolumePlan,
    },
    /// Set condition `PodScheduled=False`; event `FailedScheduling` unless the pod is gated.
    Unschedulable {
        /// The pod.
        pod: Key,
        /// Which pod of that name.
        uid: String,
        /// The reason of the condition.
        reason: Reason,
        /// The message of the condition and of the event.
        message: String,
        /// What `status.nominatedNodeName` is from now on.
        nominated: Option<String>,
        /// Pods to delete gracefully, after their condition `DisruptionTarget` was set with reason
        /// `PreemptionByScheduler` and [`PREEMPTED`]; event `Preempted`.
        victims: Vec<Key>,
    },
}

/// The message of a victim's condition `DisruptionTarget`.
pub const PREEMPTED: &str = "default-scheduler: preempting to accommodate a higher priority pod";

/// What the event `Scheduled` of a pod says.
pub fn scheduled_message(pod: &Key, node: &str) -> String {
    format!("Successfully assigned {}/{} to {node}", pod.0, pod.1)
}

/// What the event `Preempted` of a victim says; `uid` is the pod that it goes for.
pub fn preempted_message(uid: &str, node: &str) -> String {
    format!("Preempted by pod {uid} on node {node}")
}

/// Why a pod is not scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No node takes it.
    Unschedulable,
    /// It is not to be scheduled yet.
    SchedulingGated,
}

impl Reason {
    /// As conditions have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::SchedulingGated => "SchedulingGated",
        }
    }
}

/// A decision whose result was not observed yet.
#[derive(Debug)]
struct Assumed {
    pending: Pending,
    node: String,
    plan: VolumePlan,
    /// The pod is bound once its claims are.
    waits_for_volumes: bool,
}

/// How one attempt ended.
enum Attempt {
    Fits {
        node: String,
        plan: VolumePlan,
    },
    Fails {
        message: String,
        nominated: Option<String>,
        parked: Parked,
    },
    /// Fits once these pods are gone.
    Preempts {
        message: String,
        node: String,
        victims: Vec<Key>,
        parked: Parked,
    },
}

/// Decides which pod goes to which node.
#[derive(Debug, Default)]
pub struct Scheduler {
    cluster: Cluster,
    queue: Queue,
    assumed: BTreeMap<Key, Assumed>,
    /// Pods by the node that was promised to them.
    promised: BTreeMap<String, BTreeMap<Key, Arc<PodInfo>>>,
    ready: VecDeque<Decision>,
}

impl Scheduler {
    /// A scheduler of an empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// A pod as it is now; `None` when it was deleted.
    pub fn observe_pod(&mut self, key: &Key, pod: Option<Arc<Pod>>) {
        let info = pod.map(|pod| Arc::new(PodInfo::new(key, pod)));
        let known = self.queue.pods.get(key).map(|pending| &pending.info);
        let known = known.or_else(|| self.cluster.placed_pod(key)).map(|known| known.uid.clone());
        let replaced = known.is_some_and(|known| info.as_ref().is_some_and(|info| info.uid != known));
        let Some(info) = info.filter(|info| !info.has_ended()) else { return self.forget_pod(key) };
        if replaced {
            self.forget_pod(key);
        }
        if let Some(node) = info.node_name() {
            self.observe_placed(&info, node);
        } else if self.assumed.contains_key(key) {
            // The binding is on its way; only what else changed is news.
            self.replace_assumed(&info);
        } else if info.is_pending() {
            self.observe_pending(info);
        } else {
            self.leave_queue(key);
        }
    }

    /// A node as it is now; `None` when it was deleted.
    pub fn observe_node(&mut self, name: &str, node: Option<Arc<Node>>) {
        let old = self.cluster.node(name).cloned();
        if let Some(slot) = self.cluster.set_node(name, node) {
            let state = &self.cluster.slots[slot];
            // As with kube-scheduler, a pod is tried again when a taint that kept it off is gone, even if it does not
            // fit: it says what is in its way now.
            let opened = |pod: &PodInfo| match (&old, &state.node) {
                (Some(old), Some(new)) => pod.is_kept_off(old) && !pod.is_kept_off(new),
                _ => false,
            };
            self.queue.wake(|pod, parked| {
                parked.looks_around
                    || passes_alone(pod, state)
                    || could_preempt(pod, &self.cluster, slot)
                    || opened(pod)
            });
        }
    }

    /// A namespace as it is now; its labels matter to affinity terms.
    pub fn observe_namespace(&mut self, name: &str, namespace: Option<Arc<Namespace>>) {
        if self.cluster.set_namespace(name, namespace) {
            self.queue.wake(|_, _| true);
        }
    }

    /// A claim as it is now.
    pub fn observe_claim(&mut self, key: &Key, claim: Option<Arc<PersistentVolumeClaim>>) {
        self.cluster.volumes.set_claim(key, claim);
        self.storage_changed();
    }

    /// A volume as it is now.
    pub fn observe_volume(&mut self, name: &str, volume: Option<Arc<PersistentVolume>>) {
        self.cluster.volumes.set_volume(name, volume);
        self.storage_changed();
    }

    /// A storage class as it is now.
    pub fn observe_storage_class(&mut self, name: &str, class: Option<Arc<StorageClass>>) {
        set(&mut self.cluster.volumes.classes, name.to_owned(), class);
        self.storage_changed();
    }

    /// What a node says about its storage drivers.
    pub fn observe_csi_node(&mut self, name: &str, csi_node: Option<Arc<CSINode>>) {
        set(&mut self.cluster.volumes.csi_nodes, name.to_owned(), csi_node);
        self.storage_changed();
    }

    /// A disruption budget as it is now.
    pub fn observe_budget(&mut self, key: &Key, budget: Option<Arc<PodDisruptionBudget>>) {
        // Budgets only order victims, so nobody waits for one.
        set(&mut self.cluster.budgets, key.clone(), budget);
    }

    /// The next decision in queue order, or `None` until something happens.
    ///
    /// It counts as carried out from now on, until [`Scheduler::observe_pod`] shows the result or
    /// [`Scheduler::failed`] takes it back.
    #[expect(
        clippy::should_implement_trait,
        reason = "it goes on after `None`, which users of iterators do not expect"
    )]
    pub fn next(&mut self) -> Option<Decision> {
        loop {
            if let Some(decision) = self.ready.pop_front() {
                return Some(decision);
            }
            let (kind, first) = self.queue.first()?;
            let key = first.info.key.clone();
            let attempt = self.attempt(kind)?;
            match attempt {
                Attempt::Fits { node, plan } => return self.assume(&key, node, plan),
                Attempt::Preempts { message, node, victims, parked } => {
                    self.promise(&key, message, node, victims, parked);
                }
                Attempt::Fails { message, nominated, parked } => {
                    self.say(&key, Reason::Unschedulable, message.clone(), nominated, vec![]);
                    for other in self.queue.park(kind, parked) {
                        // Most have an earlier message, and writing thousands anew would tell nobody more.
                        let untold = |said: &str| said == NO_NODES;
                        if self
                            .queue
                            .pods
                            .get(&other)
                            .is_some_and(|one| one.said.as_deref().is_none_or(untold))
                        {
                            self.say(&other, Reason::Unschedulable, message.clone(), None, vec![]);
                        }
                    }
                }
            }
        }
    }

    /// A decision about this pod could not be carried out; the pod is tried again.
    pub fn failed(&mut self, key: &Key) {
        if let Some(assumed) = self.assumed.remove(key) {
            self.cluster.volumes.forget(&assumed.plan);
            let slot = self.cluster.remove(key);
            let Pending { info, nominated, said, .. } = assumed.pending;
            self.enqueue(info, nominated, said);
            self.pod_left(slot);
        } else if let Some(pending) = self.queue.pods.get(key) {
            let (info, nominated) = (Arc::clone(&pending.info), pending.info.nominated().map(str::to_owned));
            self.enqueue(info, nominated, None);
            if let Some(pending) = self.queue.pods.get_mut(key) {
                pending.asked_to_go.clear();
            }
            self.queue.wake_pod(key);
        }
    }

    /// The names of the nodes that take a waiting pod now; for comparison with other schedulers.
    pub fn feasible(&mut self, key: &Key) -> Vec<String> {
        let Some(kind) = self.queue.pods.get(key).and_then(|pending| pending.kind) else { return vec![] };
        let Some(pending) = self.queue.pods.get(key).cloned() else { return vec![] };
        prepare(&mut self.cluster, &pending.info);
        let Some(statics) = self.queue.statics(kind) else { return vec![] };
        statics.refresh(&self.cluster, &pending.info);
        let Ok(cycle) = Cycle::new(&self.cluster, &pending.info, statics) else { return vec![] };
        let (fitting, _) = look(&cycle, &self.promised, None);
        let mut names: Vec<_> =
            fitting.into_iter().map(|slot| self.cluster.slots[slot].name.clone()).collect();
        names.sort();
        names
    }

    fn attempt(&mut self, kind: usize) -> Option<Attempt> {
        let (_, pending) = self.queue.first()?;
        let (pod, nominated) = (Arc::clone(&pending.info), pending.nominated.clone());
        let asked_to_go = pending.asked_to_go.clone();
        let nodes = self.cluster.node_count();
        if nodes == 0 {
            let parked = Parked { looks_around: false, anything_helps: true };
            return Some(Attempt::Fails { message: NO_NODES.to_owned(), nominated: None, parked });
        }
        prepare(&mut self.cluster, &pod);
        let statics = self.queue.statics(kind)?;
        statics.refresh(&self.cluster, &pod);
        let cycle = match Cycle::new(&self.cluster, &pod, statics) {
            Ok(cycle) => cycle,
            Err(reason) => {
                // kube-scheduler does not get to preemption, and says only that it did not.
                let message = format!("{} not found", summary_for_all(nodes, &reason));
                let parked = Parked { looks_around: false, anything_helps: false };
                return Some(Attempt::Fails { message, nominated, parked });
            }
        };
        let (fitting, rejections) = look(&cycle, &self.promised, nominated.as_deref());
        if let Some(slot) = score::best(&cycle, &fitting) {
            let state = &self.cluster.slots[slot];
            let plan = cycle.changeable.volumes.plan(&self.cluster.volumes, state).unwrap_or_default();
            return Some(Attempt::Fits { node: state.name.clone(), plan });
        }
        let promised = |slot: usize| promised_to(&self.promised, &self.cluster.slots[slot].name);
        let message = summary(nodes, rejections.values(), cycle.absent_reason());
        let parked = Parked { looks_around: cycle.looks_around(), anything_helps: false };
        Some(match preempt::preempt(&cycle, &rejections, promised, (nominated.as_deref(), &asked_to_go)) {
            Outcome::Victims { node, victims } => Attempt::Preempts { message, node, victims, parked },
            Outcome::Hopeless(reason) => {
                let message = format!("{message} {NO_CLAIMS}, preemption: {reason}");
                Attempt::Fails { message, nominated: None, parked }
            }
            Outcome::Waiting(reason) => {
                let message = format!("{message} {NO_CLAIMS}, preemption: {reason}");
                Attempt::Fails { message, nominated, parked }
            }
        })
    }

    /// Promises a node to a pod, for which other pods have to go.
    fn promise(&mut self, key: &Key, message: String, node: String, victims: Vec<Key>, parked: Parked) {
        let Some(priority) = self.queue.pods.get(key).map(|pending| pending.info.priority) else { return };
        // Less important pods that were promised the same node look for another one, unless all victims are leaving
        // already: then kube-scheduler has nothing to do and leaves the promises alone.
        let others = promised_to(&self.promised, &node).into_iter();
        for other in others.filter(|other| other.priority < priority && !victims.is_empty()) {
            let said = self.queue.pods.get(&other.key).and_then(|pending| pending.said.clone());
            match said {
                Some(said) => self.say(&other.key, Reason::Unschedulable, said, None, vec![]),
                None => self.enqueue(other, None, None),
            }
        }
        self.say(key, Reason::Unschedulable, message, Some(node), victims.clone());
        // The pod is no longer like its kind, which is tried again.
        if let Some(pending) = self.queue.pods.get_mut(key) {
            pending.asked_to_go = victims;
            let kind = pending.kind;
            kind.map(|kind| self.queue.park(kind, parked));
        }
    }

    /// Counts the pod as placed and says what to write.
    fn assume(&mut self, key: &Key, node: String, plan: VolumePlan) -> Option<Decision> {
        let pending = self.leave_queue(key)?;
        let (pod, uid) = (key.clone(), pending.info.uid.clone());
        self.cluster.place(&pending.info, &node);
        self.cluster.volumes.assume(&plan, &node);
        self.pod_arrived();
        let waits_for_volumes = !plan.is_empty();
        let assumed = Assumed { pending, node: node.clone(), plan: plan.clone(), waits_for_volumes };
        self.assumed.insert(key.clone(), assumed);
        Some(if waits_for_volumes {
            Decision::BindVolumes { pod, uid, node, plan }
        } else {
            Decision::Bind { pod, uid, node }
        })
    }

    /// Has a condition written, unless the pod has it already.
    fn say(
        &mut self,
        key: &Key,
        reason: Reason,
        message: String,
        nominated: Option<String>,
        victims: Vec<Key>,
    ) {
        let Some(pending) = self.queue.pods.get(key) else { return };
        let (info, said) = (Arc::clone(&pending.info), pending.said.clone());
        let moved = pending.nominated != nominated;
        if said.as_ref() == Some(&message) && !moved && victims.is_empty() {
            return;
        }
        let uid = info.uid.clone();
        if moved {
            self.enqueue(info, nominated.clone(), Some(message.clone()));
        } else if let Some(pending) = self.queue.pods.get_mut(key) {
            pending.said = Some(message.clone());
        }
        self.ready.push_back(Decision::Unschedulable {
            pod: key.clone(),
            uid,
            reason,
            message,
            nominated,
            victims,
        });
    }

    fn enqueue(&mut self, info: Arc<PodInfo>, nominated: Option<String>, said: Option<String>) {
        self.forget_promise(&info.key);
        if let Some(node) = &nominated {
            self.promised.entry(node.clone()).or_default().insert(info.key.clone(), Arc::clone(&info));
        }
        self.queue.put(info, nominated, said);
    }

    fn forget_promise(&mut self, key: &Key) {
        let Some(node) = self.queue.pods.get(key).and_then(|pending| pending.nominated.as_ref()) else {
            return;
        };
        if let Some(pods) = self.promised.get_mut(node) {
            pods.remove(key);
            if pods.is_empty() {
                self.promised.remove(node);
            }
        }
    }

    fn leave_queue(&mut self, key: &Key) -> Option<Pending> {
        self.forget_promise(key);
        self.ready.retain(|decision| !matches!(decision, Decision::Unschedulable { pod, .. } if pod == key));
        self.queue.take(key)
    }

    fn observe_pending(&mut self, info: Arc<PodInfo>) {
        let key = info.key.clone();
        let (gated, shown) = (info.is_gated(), shown(&info.pod));
        let old = self.queue.pods.get(&key);
        let nominated =
            info.nominated().map(str::to_owned).or_else(|| old.and_then(|old| old.nominated.clone()));
        let said = old.and_then(|old| old.said.clone()).or(shown);
        let said = said.filter(|said| gated || said != GATED);
        self.enqueue(info, nominated.clone(), said);
        if gated {
            self.say(&key, Reason::SchedulingGated, GATED.to_owned(), nominated, vec![]);
        }
    }

    fn observe_placed(&mut self, info: &Arc<PodInfo>, node: &str) {
        self.leave_queue(&info.key);
        if let Some(assumed) = self.assumed.remove(&info.key) {
            // The claims are bound by now, perhaps otherwise than planned.
            self.cluster.volumes.forget(&assumed.plan);
        }
        let old = self.cluster.place_of(&info.key).zip(self.cluster.placed_pod(&info.key).cloned());
        let slot = self.cluster.place(info, node);
        let Some((old_slot, old)) = old else { return self.pod_arrived() };
        let relabelled = old.labels() != info.labels() || old.is_terminating() != info.is_terminating();
        if old_slot != slot || relabelled || old.requests.taken != info.requests.taken {
            self.pod_left(Some(old_slot));
            self.pod_arrived();
        }
    }

    fn replace_assumed(&mut self, info: &Arc<PodInfo>) {
        let Some(assumed) = self.assumed.get_mut(&info.key) else { return };
        assumed.pending.info = Arc::clone(info);
        let node = assumed.node.clone();
        self.cluster.place(info, &node);
    }

    fn forget_pod(&mut self, key: &Key) {
        self.leave_queue(key);
        if let Some(assumed) = self.assumed.remove(key) {
            self.cluster.volumes.forget(&assumed.plan);
        }
        let slot = self.cluster.remove(key);
        self.pod_left(slot);
    }

    fn pod_left(&mut self, slot: Option<usize>) {
        let Some(slot) = slot else { return };
        let state = &self.cluster.slots[slot];
        self.queue.wake(|pod, parked| {
            parked.looks_around
                || !pod.claims.is_empty()
                || passes_alone(pod, state)
                || could_preempt(pod, &self.cluster, slot)
        });
    }

    /// A pod that comes helps those that want to be near it, or evens out a spread.
    fn pod_arrived(&mut self) {
        self.queue.wake_looking_around(|pod, _| {
            !pod.affinity.is_empty() || pod.spreads.iter().any(|spread| spread.hard)
        });
    }

    fn storage_changed(&mut self) {
        self.queue.wake(|pod, _| !pod.claims.is_empty());
        let waiting = self.assumed.iter().filter(|(_, assumed)| assumed.waits_for_volumes);
        let mut given_up = vec![];
        let mut bound = vec![];
        for (key, assumed) in waiting {
            if self.cluster.volumes.all_bound(&assumed.pending.info) {
                bound.push(key.clone());
            } else if self.cluster.volumes.was_given_up(&assumed.plan, &assumed.node) {
                given_up.push(key.clone());
            }
        }
        for key in bound {
            if let Some(assumed) = self.assumed.get_mut(&key) {
                assumed.waits_for_volumes = false;
                let (uid, node) = (assumed.pending.info.uid.clone(), assumed.node.clone());
                self.ready.push_back(Decision::Bind { pod: key, uid, node });
            }
        }
        for key in given_up {
            self.failed(&key);
        }
    }
}

/// Asks every node, the promised one first and alone.
fn look(
    cycle: &Cycle<'_>,
    promised: &BTreeMap<String, BTreeMap<Key, Arc<PodInfo>>>,
    nominated: Option<&str>,
) -> (Vec<usize>, BTreeMap<usize, Rejection>) {
    let ask = |slot: usize| {
        let state = &cycle.cluster.slots[slot];
        let promised = promised_to(promised, &state.name);
        cycle.filter_beside(slot, &state.usage, &cycle.changeable, &promised)
    };
    let nominated = nominated.and_then(|name| cycle.cluster.slot_of(name));
    let nominated = nominated.filter(|slot| cycle.cluster.slots[*slot].node.is_some());
    if let Some(slot) = nominated.filter(|slot| ask(*slot).is_ok()) {
        return (vec![slot], BTreeMap::new());
    }
    let mut fitting = vec![];
    let mut rejections = BTreeMap::new();
    for (slot, _) in cycle.nodes() {
        match ask(slot) {
            Ok(()) => fitting.push(slot),
            Err(rejection) => {
                rejections.insert(slot, rejection);
            }
        }
    }
    (fitting, rejections)
}

fn promised_to(promised: &BTreeMap<String, BTreeMap<Key, Arc<PodInfo>>>, node: &str) -> Vec<Arc<PodInfo>> {
    // Nearly always empty, and then nothing is allocated.
    promised.get(node).map(|pods| pods.values().cloned().collect()).unwrap_or_default()
}

/// Whether less important pods are on the node, so that a change there may make room after all.
fn could_preempt(pod: &PodInfo, cluster: &Cluster, slot: usize) -> bool {
    pod.may_preempt() && cluster.slots[slot].usage.pods.values().any(|other| other.priority < pod.priority)
}

/// The message of the pod's condition, if it says that the pod is not scheduled.
fn shown(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
    Some(condition.message.clone().unwrap_or_default())
}

fn set<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}
