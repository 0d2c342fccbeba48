//! Nodes that were launched for pods and do not take them are not launched again and again.
//!
//! ```text
//!   claim created for pods ─► node has joined, is empty, and the next plan has no use for it either: refused
//!   next plan wants another of the same kind for the same pods ─► it waits, longer each time
//! ```
//!
//! That happens where somebody taints every node, where nodes have less room than their type promises or lack labels.
//! Whatever is of another kind stays allowed: another pool; another zone, say, where the pods ask for that; and another
//! type where the node was too small. It is forgotten when the pods, or the pool, change or when pods run in the pool.
//!
//! Nodes are not replaced either by what does not take their pods: see [`Refusals::refuses`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::labels::LabelSets;
use api::names::{labels, taints};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::shared::{Operator, Requirement};
use cluster::eligibility::{is_daemon, is_reschedulable, is_stateful, is_static, is_terminal};
use cluster::instance_types::Wanted;
use cluster::objects::pod::PodSpec;
use cluster::objects::{Node, Pod};
use cluster::requests;
use cluster::state::State;
use cluster::state_node::StateNode;
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use runtime::Cluster;

use super::outcome::{NewClaim, Outcome, Pending};
use crate::node_claim::label;
use crate::node_claim::lifecycle::text;

/// How long nothing of a kind is launched after a first refusal; twice as long after each further one.
const FIRST: SignedDuration = SignedDuration::from_secs(30);
/// How long at most; and after so long without another one it is forgotten.
const LAST: SignedDuration = SignedDuration::from_mins(30);
/// Whoever runs for so long was not only let in to be thrown out again.
const SETTLED: SignedDuration = SignedDuration::from_mins(1);
/// Where so many types were too small, it is not the type.
const TYPES: usize = 3;
/// How much is remembered; what ends first is forgotten first.
const MOST: usize = 1000;

/// What pods have in common that are created for each other: their owner, or what they are themselves.
type Kin = Box<str>;

/// The kin of a pod.
fn kin(pod: &Pod) -> Kin {
    match pod.metadata.controller() {
        // Pods of StatefulSets differ in their volumes, and keep their names.
        Some(_) if is_stateful(pod) => format!("{}/{}", pod.metadata.namespace(), pod.metadata.name).into(),
        Some(owner) => owner.uid.clone(),
        None => pod.metadata.uid.clone(),
    }
}

/// Whether pods ask for the same, wherever they are.
fn same(one: &PodSpec, other: &PodSpec) -> bool {
    let unbound = |spec: &PodSpec| PodSpec { node_name: Box::default(), ..spec.clone() };
    unbound(one) == unbound(other)
}

/// What was launched in vain: of a pool, and where the node was too small, of a type.
type Kind = (Kin, Box<str>, Option<Box<str>>);

/// A node that did not take the pods it was launched for.
#[derive(Clone, Debug)]
struct Refusal {
    /// One of the pods.
    pod: Arc<Pod>,
    /// The pool, as it was.
    pool: (Option<String>, Option<i64>),
    /// What the node was launched as.
    labels: Vec<Requirement>,
    /// The node, and what is wrong with it.
    node: Box<str>,
    cause: String,
    /// Whether no other pod could run there either.
    for_all: bool,
    /// How often it has happened, and when last.
    count: u32,
    since: Timestamp,
    until: Timestamp,
}

impl Refusal {
    fn is_remembered(&self, now: Timestamp) -> bool {
        now < self.until.saturating_add(LAST).unwrap_or(Timestamp::MAX)
    }
}

/// What tells a pool from what it was.
fn version(pool: &NodePool) -> (Option<String>, Option<i64>) {
    (pool.metadata.uid.clone(), pool.metadata.generation)
}

/// A claim that was created for pods.
#[derive(Clone, Debug)]
struct Launch {
    kin: BTreeSet<Kin>,
    /// Whether it was found not to take them.
    refused: bool,
}

/// What was launched for pods, and in vain, as all know who launch nodes. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Launches(Arc<Mutex<Tried>>);

impl Launches {
    /// What is known now.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Tried> {
        self.0.lock()
    }

    /// What is known to take no pods, as the cluster is now.
    pub(crate) fn refusals(&self, cluster: &Cluster, now: Timestamp) -> Refusals {
        // Everybody else asks for the cluster while holding this, so nobody asks the other way round.
        let mut tried = self.lock();
        tried.forget(&cluster.read(), now);
        tried.refusals()
    }
}

/// What was launched for pods, and in vain.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    launches: BTreeMap<Box<str>, Launch>,
    refusals: BTreeMap<Kind, Refusal>,
}

/// Which nodes are known to take no pods, for those who decide whether to drain others for such nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<BTreeMap<Kind, Refusal>>);

/// What has become of a claim.
enum Fate {
    /// It may still take its pods.
    Open,
    /// It has taken pods, or is gone or going.
    Done,
    /// It has joined, and is empty.
    Idle(Arc<Node>),
}

fn fate(state: &State, claim: &str) -> Fate {
    let Some(claim) = state.node_claims.named(claim) else { return Fate::Done };
    let Some(node) = state.node_of_claim(claim) else {
        return if claim.metadata.deletion_timestamp.is_some() { Fate::Done } else { Fate::Open };
    };
    let known = state.state_node_named(&node.metadata.name).unwrap_or_default();
    let leaves = node.spec.taints.iter().any(|taint| *taint.key == *taints::DISRUPTED.key);
    if known.is_marked_for_deletion() || leaves {
        return Fate::Done;
    }
    let has_done = |pod: &Pod| is_terminal(pod) && !is_daemon(pod) && !is_static(pod);
    if state.pods_on(&node.metadata.name).any(|pod| is_reschedulable(pod) || has_done(pod)) {
        return Fate::Done;
    }
    // Taints that go while a node starts keep no plan from using it, so it need not be ready for pods.
    if known.is_registered() { Fate::Idle(Arc::clone(node)) } else { Fate::Open }
}

/// Why a node does not take a pod.
struct Cause {
    text: String,
    /// Whether it is too small for the pod even without any other.
    too_small: bool,
    /// Whether no other pod could run there either.
    for_all: bool,
}

fn cause(state: &State, claim: &NodeClaim, node: &Node, pod: &Pod) -> Cause {
    let mut room = StateNode { node: Some(node), claim: Some(claim), ..StateNode::default() }.allocatable();
    let daemons = state.pods_on(&node.metadata.name).filter(|pod| !is_terminal(pod));
    daemons.for_each(|pod| room.subtract(&requests::of_pod(pod)));
    if !requests::of_pod(pod).fits(&room) {
        let type_ = label(claim, labels::INSTANCE_TYPE);
        let text = format!("instance type {type_:?} has less room than expected");
        return Cause { text, too_small: true, for_all: false };
    }
    let own = claim.spec.taints.iter().flatten();
    let own: BTreeSet<&str> = own.map(|taint| &*taint.key).collect();
    let foreign = node.spec.taints.iter().filter(|taint| !own.contains(&*taint.key));
    let foreign: Vec<&str> = foreign.map(|taint| &*taint.key).collect();
    if foreign.is_empty() {
        let text = "its labels or its neighbours do not suit the pod".to_owned();
        return Cause { text, too_small: false, for_all: false };
    }
    let text = format!("it has taints that it was not launched with ({})", foreign.join(", "));
    Cause { text, too_small: false, for_all: true }
}

/// What a claim was launched as, to be compared with what another one may become.
fn shape(claim: &NodeClaim) -> Vec<Requirement> {
    let labels = claim.metadata.labels.iter().flatten();
    let within = |(key, value): (&String, &String)| Requirement {
        key: key.clone(),
        operator: Operator::In,
        values: vec![value.clone()],
        min_values: None,
    };
    labels.map(within).collect()
}

impl Tried {
    /// A claim was created for pods.
    pub(crate) fn launched(&mut self, state: &State, claim: &NodeClaim, new: &NewClaim) {
        let pods = new.pods.iter().filter_map(|pod| state.pods.get(&pod.key));
        let kin: BTreeSet<Kin> = pods.map(|pod| kin(pod)).collect();
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        if !kin.is_empty() {
            self.launches.insert(name.into(), Launch { kin, refused: false });
        }
    }

    /// Takes out of what is to be done what would only repeat what was in vain. The pods wait instead.
    pub(super) fn hold_back(
        &mut self,
        state: &State,
        outcome: &mut Outcome,
        sets: &LabelSets,
        now: Timestamp,
    ) {
        self.forget(state, now);
        self.review(state, outcome, now);
        if self.refusals.is_empty() {
            return;
        }
        let claims = std::mem::take(&mut outcome.claims);
        for mut new in claims {
            match self.held(state, &mut new, sets, now) {
                None => outcome.claims.push(new),
                Some(why) => {
                    let why: Arc<str> = why.into();
                    let waits = new.pods.into_iter();
                    let waits = waits.map(|pod| {
                        let (why, error) = (Arc::clone(&why), Arc::clone(&why));
                        Pending { pod, why, error, unsupported: false }
                    });
                    outcome.pending.extend(waits);
                }
            }
        }
    }

    /// What is known to take no pods.
    pub(crate) fn refusals(&self) -> Refusals {
        Refusals(Arc::new(self.refusals.clone()))
    }

    /// Looks at what has become of claims whose pods need yet another node.
    fn review(&mut self, state: &State, outcome: &Outcome, now: Timestamp) {
        let used: BTreeSet<&str> =
            outcome.nominated.iter().filter_map(|node| node.origin.claim.as_deref()).collect();
        let mut waiting = BTreeMap::<(Kin, &str), &Arc<Pod>>::new();
        for new in &outcome.claims {
            let pool = new.pool.metadata.name.as_deref().unwrap_or_default();
            for pod in new.pods.iter().filter_map(|pod| state.pods.get(&pod.key)) {
                waiting.entry((kin(pod), pool)).or_insert(pod);
            }
        }
        let Self { launches, refusals } = self;
        launches.retain(|name, launch| {
            let node = match fate(state, name) {
                Fate::Open => return true,
                Fate::Done => return false,
                Fate::Idle(_) if launch.refused || used.contains(&**name) => return true,
                Fate::Idle(node) => node,
            };
            let Some(claim) = state.node_claims.named(name) else { return false };
            let pool = label(claim, labels::NODEPOOL);
            let Some(current) = state.node_pools.named(pool) else { return false };
            for kin in &launch.kin {
                let Some(pod) = waiting.get(&(kin.clone(), pool)) else { continue };
                launch.refused = true;
                let Cause { text, too_small, for_all } = cause(state, claim, &node, pod);
                let is_of = |(of, known, type_): &&Kind| of == kin && **known == *pool && type_.is_some();
                let of_type = too_small && refusals.keys().filter(is_of).count() < TYPES;
                let type_ = of_type.then(|| label(claim, labels::INSTANCE_TYPE).into());
                let kind = (kin.clone(), pool.into(), type_);
                let count = refusals.get(&kind).map_or(0, |known| known.count) + 1;
                let wait = FIRST.saturating_mul(1 << (count - 1).min(20)).min(LAST);
                let refusal = Refusal {
                    pod: Arc::clone(pod),
                    pool: version(current),
                    labels: shape(claim),
                    node: node.metadata.name.clone(),
                    cause: text,
                    for_all,
                    count,
                    since: now,
                    until: now.saturating_add(wait).unwrap_or(Timestamp::MAX),
                };
                refusals.insert(kind, refusal);
            }
            true
        });
        while refusals.len() > MOST {
            let first =
                refusals.iter().min_by_key(|(_, refusal)| refusal.until).map(|(kind, _)| kind.clone());
            first.map(|kind| refusals.remove(&kind));
        }
    }

    /// Forgets what is long ago, what is of a pool that has changed, and pods that run by now. Those that ran before
    /// prove nothing: their nodes may be older than what is wrong. Where others run on newer nodes, or on the very node
    /// that took nobody, it is not spoiled for all.
    fn forget(&mut self, state: &State, now: Timestamp) {
        self.launches.retain(|name, _| state.node_claims.named(name).is_some());
        if self.refusals.is_empty() {
            return;
        }
        let remembered: BTreeSet<&Kin> = self.refusals.keys().map(|(kin, ..)| kin).collect();
        let mut settled = BTreeMap::<(Kin, Box<str>), Timestamp>::new();
        let mut usable = BTreeSet::<Kind>::new();
        for pod in state.pods.values().filter(|pod| is_reschedulable(pod)) {
            let Some(started) = pod.status.start_time.as_ref().map(|start| start.0) else { continue };
            let Some(node) = state.nodes.named(&pod.spec.node_name) else { continue };
            if now.duration_since(started) < SETTLED {
                continue;
            }
            let pool = node.metadata.labels.text(labels::NODEPOOL);
            let proves = |(of, refusal): &(&Kind, &Refusal)| {
                let is_newer =
                    node.metadata.creation_timestamp.as_ref().is_some_and(|at| at.0 >= refusal.since);
                *of.1 == *pool && started >= refusal.since && (is_newer || refusal.node == node.metadata.name)
            };
            usable.extend(self.refusals.iter().filter(proves).map(|(kind, _)| kind.clone()));
            let kin = kin(pod);
            if remembered.contains(&kin) {
                let last = settled.entry((kin, pool.into())).or_insert(started);
                *last = started.max(*last);
            }
        }
        self.refusals.retain(|kind, refusal| {
            let (kin, pool, _) = kind;
            refusal.for_all &= !usable.contains(kind);
            let current = state.node_pools.named(pool);
            refusal.is_remembered(now)
                && current.is_some_and(|pool| version(pool) == refusal.pool)
                && settled.get(&(kin.clone(), pool.clone())).is_none_or(|started| *started < refusal.since)
        });
    }

    /// Why a claim is not to be created now, if so. Types that are too small for all its pods are taken out of it.
    fn held(&self, state: &State, new: &mut NewClaim, sets: &LabelSets, now: Timestamp) -> Option<String> {
        // What is also for others is needed anyway.
        if new.pods.is_empty() || new.for_buffers {
            return None;
        }
        let mut wanted = Wanted::new(&new.claim.spec.requirements, sets).ok()?;
        let pool: Box<str> = new.pool.metadata.name.as_deref().unwrap_or_default().into();
        // The types that every pod so far has reason to avoid; all of them if nothing.
        let mut avoided: Option<BTreeSet<Box<str>>> = None;
        let mut last: Option<&Refusal> = None;
        for pod in &new.pods {
            let pod = state.pods.get(&pod.key)?;
            let kin = kin(pod);
            let of_pod = self.refusals.iter().filter(|((kin_of, pool_of, _), refusal)| {
                *kin_of == kin && *pool_of == pool && now < refusal.until
            });
            let of_pod = of_pod.filter(|(_, refusal)| same(&refusal.pod.spec, &pod.spec));
            let of_pod: Vec<_> = of_pod.filter(|(_, refusal)| wanted.admits(&refusal.labels)).collect();
            last = of_pod.iter().map(|(_, refusal)| *refusal).chain(last).max_by_key(|it| it.until);
            if of_pod.iter().any(|((_, _, type_), _)| type_.is_none()) {
                continue;
            }
            let types: BTreeSet<Box<str>> =
                of_pod.iter().filter_map(|((_, _, type_), _)| type_.clone()).collect();
            avoided = Some(match avoided {
                Some(avoided) => &avoided & &types,
                None => types,
            });
        }
        let Refusal { node, cause, until, .. } = last?;
        if let Some(avoided) = avoided
            && (avoided.is_empty() || narrow(new, &avoided))
        {
            return None;
        }
        let until = text(*until);
        Some(format!(
            "node {node:?} of NodePool {pool:?} was launched for it and does not take it: {cause}; nothing of that \
             kind is launched for it before {until}"
        ))
    }
}

impl Refusals {
    /// Why nodes of a kind are not worth draining others for, if so: they did not take pods like those that are to
    /// move, or are spoiled for whomever. Nothing is urgent there: whoever waits for a node tries again, and until
    /// that went well nobody else follows.
    pub(crate) fn refuses(
        &self,
        state: &State,
        new: &NewClaim,
        sets: &LabelSets,
        now: Timestamp,
    ) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let mut wanted = Wanted::new(&new.claim.spec.requirements, sets).ok()?;
        let pods: Vec<&Arc<Pod>> = new.pods.iter().filter_map(|pod| state.pods.get(&pod.key)).collect();
        let known = self.0.iter().find(|((of, pool, type_), refusal)| {
            let is_like = |pod: &&Arc<Pod>| kin(pod) == *of && same(&refusal.pod.spec, &pod.spec);
            refusal.is_remembered(now)
                && type_.is_none()
                && new.pool.metadata.name.as_deref() == Some(&**pool)
                && version(&new.pool) == refusal.pool
                && (refusal.for_all || pods.iter().any(is_like))
                && wanted.admits(&refusal.labels)
        });
        let ((_, pool, _), Refusal { node, cause, .. }) = known?;
        Some(format!(
            "node {node:?} of NodePool {pool:?} was launched for pods and does not take them: {cause}; no other is \
             replaced by one of that kind until one has taken pods"
        ))
    }
}

#[cfg(test)]
impl Refusals {
    /// What is known of a pool whose nodes somebody spoils.
    pub(crate) fn of_pool(pool: &NodePool, now: Timestamp) -> Self {
        let refusal = Refusal {
            pod: Arc::default(),
            pool: version(pool),
            labels: Vec::new(),
            node: "spoiled".into(),
            cause: "it is spoiled".to_owned(),
            for_all: true,
            count: 1,
            since: now,
            until: now,
        };
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        Self(Arc::new([(("".into(), name.into(), None), refusal)].into()))
    }
}

/// Takes types out of a claim; whether enough are left.
fn narrow(new: &mut NewClaim, avoided: &BTreeSet<Box<str>>) -> bool {
    let is_left = |name: &String| !avoided.contains(name.as_str());
    let requirements = &mut new.claim.spec.requirements;
    // Fewer types might be fewer than somebody asks for.
    if !new.types.iter().any(is_left) || requirements.iter().any(|it| it.min_values.is_some()) {
        return false;
    }
    new.types.retain(is_left);
    let of_types = requirements.iter_mut().filter(|it| it.key == labels::INSTANCE_TYPE);
    of_types.filter(|it| it.operator == Operator::In).for_each(|it| it.values.retain(is_left));
    true
}

#[cfg(test)]
mod tests;
