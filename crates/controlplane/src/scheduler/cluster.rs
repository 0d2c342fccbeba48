//! Everything the scheduler knows: nodes with their pods, volumes, budgets, namespaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::Key;
use super::counts::{Counts, Question};
use super::node::{NodeState, differs};
use super::pod::PodInfo;
use super::requests::Amounts;
use super::selector::{Labels, labels_of};
use super::volumes::Volumes;

/// Domains of one topology key, numbered.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    values: BTreeMap<String, usize>,
    of_slot: Vec<Option<usize>>,
}

impl Topology {
    /// The domain of a slot; `None` if its node has no such label or there is no node.
    pub(crate) fn domain(&self, slot: usize) -> Option<usize> {
        self.of_slot.get(slot).copied().flatten()
    }

    pub(crate) fn domains(&self) -> usize {
        self.values.len()
    }

    fn set(&mut self, slot: usize, value: Option<&String>) {
        let domain = value.map(|value| {
            let next = self.values.len();
            self.values
                .get(value)
                .copied()
                .unwrap_or_else(|| *self.values.entry(value.clone()).or_insert(next))
        });
        if self.of_slot.len() <= slot {
            self.of_slot.resize(slot + 1, None);
        }
        self.of_slot[slot] = domain;
    }
}

/// The scheduler's picture of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    /// Slots are reused, so that counts by slot stay short.
    pub(crate) slots: Vec<NodeState>,
    by_name: BTreeMap<String, usize>,
    free: Vec<usize>,
    /// How many slots hold a Node object.
    nodes: usize,
    placed: BTreeMap<Key, usize>,
    pub(crate) counts: Counts,
    topologies: Vec<Topology>,
    topology_keys: BTreeMap<String, usize>,
    namespaces: BTreeMap<String, Arc<Namespace>>,
    pub(crate) volumes: Volumes,
    pub(crate) budgets: BTreeMap<Key, Arc<PodDisruptionBudget>>,
    versions: u64,
}

impl Cluster {
    pub(crate) fn node_count(&self) -> usize {
        self.nodes
    }

    /// The slots that hold a Node object, with it.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (usize, &NodeState, &Arc<Node>)> {
        self.slots.iter().enumerate().filter_map(|(slot, state)| Some((slot, state, state.node.as_ref()?)))
    }

    pub(crate) fn slot_of(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Where a pod is, if it is placed or assumed to be.
    pub(crate) fn place_of(&self, key: &Key) -> Option<usize> {
        self.placed.get(key).copied()
    }

    pub(crate) fn placed_pod(&self, key: &Key) -> Option<&Arc<PodInfo>> {
        self.slots.get(self.place_of(key)?)?.usage.pods.get(key)
    }

    pub(crate) fn namespace_labels(&self, name: &str) -> &Labels {
        labels_of(self.namespaces.get(name).and_then(|namespace| namespace.metadata.labels.as_ref()))
    }

    /// Returns whether labels changed.
    pub(crate) fn set_namespace(&mut self, name: &str, namespace: Option<Arc<Namespace>>) -> bool {
        let before = self.namespace_labels(name).clone();
        match namespace {
            Some(namespace) => self.namespaces.insert(name.to_owned(), namespace),
            None => self.namespaces.remove(name),
        };
        let changed = before != *self.namespace_labels(name);
        if changed {
            self.counts.forget();
        }
        changed
    }

    fn slot(&mut self, name: &str) -> usize {
        if let Some(slot) = self.slot_of(name) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(NodeState::default());
            self.slots.len() - 1
        });
        name.clone_into(&mut self.slots[slot].name);
        self.by_name.insert(name.to_owned(), slot);
        slot
    }

    /// Gives a slot back when neither a node nor a pod is there.
    fn release(&mut self, slot: usize) {
        let state = &mut self.slots[slot];
        if state.node.is_none() && state.usage.pods.is_empty() {
            self.by_name.remove(&state.name);
            *state = NodeState::default();
            self.free.push(slot);
        }
    }

    /// The Node object of this name.
    pub(crate) fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.slots[self.slot_of(name)?].node.as_ref()
    }

    /// Returns the slot if something changed that scheduling looks at.
    pub(crate) fn set_node(&mut self, name: &str, node: Option<Arc<Node>>) -> Option<usize> {
        if node.is_none() && self.slot_of(name).is_none() {
            return None;
        }
        let slot = self.slot(name);
        let state = &mut self.slots[slot];
        let changed = match (&state.node, &node) {
            (Some(old), Some(new)) => differs(old, new),
            (None, None) => false,
            _ => true,
        };
        self.nodes = self.nodes - usize::from(state.node.is_some()) + usize::from(node.is_some());
        let allocatable = node.as_ref().and_then(|node| node.status.as_ref()?.allocatable.as_ref());
        state.allocatable = Amounts::of_node(allocatable);
        state.node = node;
        if changed {
            self.versions += 1;
            state.version = self.versions;
            for (key, index) in &self.topology_keys {
                self.topologies[*index].set(slot, self.slots[slot].labels().get(key));
            }
            self.tidy_topologies();
        }
        self.release(slot);
        changed.then_some(slot)
    }

    /// Domains of nodes that are gone would pile up for keys such as the host name.
    fn tidy_topologies(&mut self) {
        for (key, index) in &self.topology_keys {
            let topology = &mut self.topologies[*index];
            if topology.values.len() > 2 * self.slots.len() + 64 {
                *topology = Topology::default();
                for (slot, state) in self.slots.iter().enumerate() {
                    topology.set(slot, state.labels().get(key));
                }
            }
        }
    }

    /// The number of a topology key, for [`Cluster::topology`].
    pub(crate) fn know_topology(&mut self, key: &str) -> usize {
        if let Some(index) = self.topology_keys.get(key) {
            return *index;
        }
        let mut topology = Topology::default();
        for (slot, state) in self.slots.iter().enumerate() {
            topology.set(slot, state.labels().get(key));
        }
        self.topologies.push(topology);
        let index = self.topologies.len() - 1;
        self.topology_keys.insert(key.to_owned(), index);
        index
    }

    pub(crate) fn topology(&self, index: usize) -> &Topology {
        &self.topologies[index]
    }

    /// The topology of a key that is known.
    pub(crate) fn topology_of(&self, key: &str) -> Option<(usize, &Topology)> {
        let index = *self.topology_keys.get(key)?;
        Some((index, &self.topologies[index]))
    }

    /// Makes [`Counts::answer`] know this question.
    pub(crate) fn ask(&mut self, question: &Question) {
        let slots = &self.slots;
        let placed = slots
            .iter()
            .enumerate()
            .flat_map(|(slot, state)| state.usage.pods.values().map(move |pod| (slot, &**pod)));
        let namespaces = &self.namespaces;
        self.counts.ask(question, slots.len(), placed, |name| {
            labels_of(namespaces.get(name).and_then(|namespace| namespace.metadata.labels.as_ref()))
        });
    }

    /// Puts a pod on a node, away from where it was.
    pub(crate) fn place(&mut self, pod: &Arc<PodInfo>, node: &str) -> usize {
        self.remove(&pod.key);
        let slot = self.slot(node);
        self.slots[slot].usage.add(pod);
        self.placed.insert(pod.key.clone(), slot);
        self.count(pod, slot, 1);
        self.volumes.use_claims(pod, 1);
        for term in
            pod.anti_affinity.iter().chain(pod.preferred.iter().map(|(_, term)| term)).chain(&pod.affinity)
        {
            self.know_topology(&term.topology_key);
        }
        slot
    }

    /// Takes a pod off its node; returns the slot it was on.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<usize> {
        let slot = self.placed.remove(key)?;
        let pod = self.slots[slot].usage.remove(key)?;
        self.count(&pod, slot, -1);
        self.volumes.use_claims(&pod, -1);
        self.release(slot);
        Some(slot)
    }

    fn count(&mut self, pod: &PodInfo, slot: usize, sign: i64) {
        let namespace = self.namespaces.get(&pod.key.0);
        let labels = labels_of(namespace.and_then(|namespace| namespace.metadata.labels.as_ref()));
        self.counts.change(pod, labels, slot, sign);
    }
}
