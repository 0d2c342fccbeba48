//! Which nodes take a pod: the filters in kube-scheduler's order, of which the first that refuses is reported.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};

use super::affinity::{AffinityState, affinity_question, anti_affinity_question};
use super::cluster::Cluster;
use super::node::{NodeState, Usage};
use super::pod::PodInfo;
use super::requests::Amounts;
use super::spread::{self, SpreadState};
use super::verdict::{Reasons, Rejection};
use super::volumes::VolumeState;

const CORDONED: &str = "node(s) were unschedulable";
const TAINTED: &str = "node(s) had untolerated taint(s)";
const NOT_SELECTED: &str = "node(s) didn't match Pod's node affinity/selector";
const PORT_TAKEN: &str = "node(s) didn't have free ports for the requested pod ports";
const TERMS_CONFLICT: &str = "pod affinity terms conflict";
/// Said for nodes that a pod's `metadata.name` affinity leaves out.
const NOT_NAMED: &str = "node(s) didn't satisfy plugin(s) [NodeAffinity]";

/// What only the pod's specification and the Node object decide, remembered by slot.
///
/// Pods of one kind share it, so that placing thousands of them asks each node once.
#[derive(Debug, Default)]
pub(crate) struct Statics {
    slots: Vec<Static>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Static {
    /// The version of the node this was worked out for; 0 is none.
    version: u64,
    open: bool,
    tolerated: bool,
    selected: bool,
}

impl Statics {
    /// Works out what is missing or out of date.
    pub(crate) fn refresh(&mut self, cluster: &Cluster, pod: &PodInfo) {
        self.slots.resize(cluster.slots.len(), Static::default());
        for (slot, state, node) in cluster.nodes() {
            if self.slots[slot].version != state.version {
                self.slots[slot] = Static::of(pod, node, state.version);
            }
        }
    }

    pub(crate) fn selected(&self, slot: usize) -> bool {
        self.slots[slot].selected
    }

    pub(crate) fn tolerated(&self, slot: usize) -> bool {
        self.slots[slot].tolerated
    }
}

impl Static {
    fn of(pod: &PodInfo, node: &Node, version: u64) -> Self {
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
        let cordon = || Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        Self {
            version,
            open: !cordoned || pod.tolerates(&cordon()),
            tolerated: !pod.is_kept_off(node),
            selected: pod.selects(node),
        }
    }

    fn filter(self) -> Result<(), Rejection> {
        let checks = [(self.open, CORDONED), (self.tolerated, TAINTED), (self.selected, NOT_SELECTED)];
        checks
            .into_iter()
            .try_for_each(|(passed, reason)| passed.then_some(()).ok_or(Rejection::final_(reason)))
    }
}

/// Everything about one attempt to place one pod.
pub(crate) struct Cycle<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) pod: &'a PodInfo,
    pub(crate) statics: &'a Statics,
    pub(crate) named: Option<BTreeSet<String>>,
    pub(crate) changeable: Changeable,
}

/// The part of an attempt that depends on which pods are on the nodes.
#[derive(Clone)]
pub(crate) struct Changeable {
    spread: SpreadState,
    affinity: AffinityState,
    pub(crate) volumes: VolumeState,
}

/// Makes the cluster count what the pod's rules ask about.
pub(crate) fn prepare(cluster: &mut Cluster, pod: &PodInfo) {
    cluster.counts.tidy();
    let terms =
        pod.affinity.iter().chain(&pod.anti_affinity).chain(pod.preferred.iter().map(|(_, term)| term));
    let keys =
        terms.map(|term| &term.topology_key).chain(pod.spreads.iter().map(|spread| &spread.topology_key));
    for key in keys {
        cluster.know_topology(key);
    }
    for question in pod.spreads.iter().filter_map(spread::question) {
        cluster.ask(&question);
    }
    if !pod.affinity.is_empty() {
        cluster.ask(&affinity_question(pod));
    }
    for term in pod.anti_affinity.iter().chain(pod.preferred.iter().map(|(_, term)| term)) {
        cluster.ask(&anti_affinity_question(term));
    }
}

impl<'a> Cycle<'a> {
    /// Fails with the reason if the pod itself cannot be placed, whatever the nodes are.
    pub(crate) fn new(cluster: &'a Cluster, pod: &'a PodInfo, statics: &'a Statics) -> Result<Self, String> {
        let named = named_nodes(pod);
        if named.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(TERMS_CONFLICT.to_owned());
        }
        let volumes = VolumeState::new(&cluster.volumes, pod)?;
        let spread = SpreadState::new(cluster, pod, statics);
        let affinity = AffinityState::new(cluster, pod);
        Ok(Self { cluster, pod, statics, named, changeable: Changeable { spread, affinity, volumes } })
    }

    /// Why nodes that were not looked at are out.
    pub(crate) fn absent_reason(&self) -> Option<&'static str> {
        self.named.is_some().then_some(NOT_NAMED)
    }

    /// The nodes to look at.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, &'a NodeState)> {
        let named = self.named.as_ref();
        let nodes = self.cluster.nodes();
        nodes
            .filter(move |(_, state, _)| named.is_none_or(|names| names.contains(&state.name)))
            .map(|(slot, state, _)| (slot, state))
    }

    /// Whether a node takes the pod, with the pods in `usage` on it and `changeable` in accordance.
    pub(crate) fn filter(
        &self,
        slot: usize,
        usage: &Usage,
        changeable: &Changeable,
    ) -> Result<(), Rejection> {
        let state = &self.cluster.slots[slot];
        self.statics.slots[slot].filter()?;
        if usage.collides(&self.pod.ports) {
            return Err(Rejection::resolvable(PORT_TAKEN));
        }
        fit(&self.pod.requests.needed, usage, &state.allocatable)?;
        changeable.volumes.filter(&self.cluster.volumes, state, usage)?;
        changeable.spread.filter(self.cluster, self.pod, slot)?;
        changeable.affinity.filter(self.cluster, slot)
    }

    /// The same, leaving room for pods that were promised the node and go first.
    ///
    /// The pod has to fit with them and without them, because they may end up elsewhere.
    pub(crate) fn filter_beside(
        &self,
        slot: usize,
        usage: &Usage,
        changeable: &Changeable,
        promised: &[Arc<PodInfo>],
    ) -> Result<(), Rejection> {
        let mut going_first = promised
            .iter()
            .filter(|other| other.priority >= self.pod.priority && other.uid != self.pod.uid)
            .peekable();
        if going_first.peek().is_some() {
            let (mut usage, mut changeable) = (usage.clone(), changeable.clone());
            for other in going_first {
                usage.add(other);
                self.change(&mut changeable, other, slot, 1);
            }
            self.filter(slot, &usage, &changeable)?;
        }
        self.filter(slot, usage, changeable)
    }

    /// Whether pods on other nodes matter to this one.
    pub(crate) fn looks_around(&self) -> bool {
        self.changeable.affinity.is_active() || self.pod.spreads.iter().any(|spread| spread.hard)
    }

    /// What if another pod came to this slot (`by` 1) or left it (-1).
    pub(crate) fn change(&self, changeable: &mut Changeable, other: &PodInfo, slot: usize, by: i64) {
        changeable.spread.change(self.cluster, self.pod, self.statics, (other, slot, by));
        changeable.affinity.change(self.cluster, self.pod, (other, slot, by));
        changeable.volumes.change(other, by);
    }
}

/// Whether what depends on this node alone lets a pod in; the cheap part of the filters.
pub(crate) fn passes_alone(pod: &PodInfo, state: &NodeState) -> bool {
    state.node.as_ref().is_some_and(|node| Static::of(pod, node, 0).filter().is_ok())
        && !state.usage.collides(&pod.ports)
        && fit(&pod.requests.needed, &state.usage, &state.allocatable).is_ok()
}

/// The node names that every term of the required affinity limits the pod to.
fn named_nodes(pod: &PodInfo) -> Option<BTreeSet<String>> {
    let terms = pod.node_terms.as_ref().filter(|terms| !terms.is_empty())?;
    terms.iter().try_fold(BTreeSet::new(), |all, term| Some(&all | term.names.as_ref()?))
}

/// Enough free resources, and room for one more pod.
fn fit(needed: &Amounts, usage: &Usage, allocatable: &Amounts) -> Result<(), Rejection> {
    let mut lacking: Vec<Cow<'static, str>> = vec![];
    let mut resolvable = true;
    if i64::try_from(usage.pods.len()).is_ok_and(|pods| pods + 1 > allocatable.pods) {
        lacking.push("Too many pods".into());
    }
    if !needed.is_empty() {
        let used = &usage.requested;
        let plain = [
            ("Insufficient cpu", needed.milli_cpu, used.milli_cpu, allocatable.milli_cpu),
            ("Insufficient memory", needed.memory, used.memory, allocatable.memory),
            (
                "Insufficient ephemeral-storage",
                needed.ephemeral_storage,
                used.ephemeral_storage,
                allocatable.ephemeral_storage,
            ),
        ];
        for (reason, needed, used, allocatable) in plain {
            if needed > 0 && needed > allocatable - used {
                lacking.push(reason.into());
                resolvable &= needed <= allocatable;
            }
        }
        for (name, needed) in needed.others.iter().filter(|(_, needed)| **needed != 0) {
            let allocatable = allocatable.others.get(name).copied().unwrap_or(0);
            if *needed > allocatable - used.others.get(name).copied().unwrap_or(0) {
                lacking.push(format!("Insufficient {name}").into());
                resolvable &= *needed <= allocatable;
            }
        }
    }
    match lacking.as_slice() {
        [] => Ok(()),
        [Cow::Borrowed(one)] => Err(Rejection { reasons: Reasons::One(one), resolvable }),
        _ => Err(Rejection { reasons: Reasons::Several(lacking), resolvable }),
    }
}
