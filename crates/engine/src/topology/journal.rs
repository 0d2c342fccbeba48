//! Counts as if some nodes were gone, and back.
//!
//! Between [`Topology::leave`] and [`Topology::come_back`] every count is noted, so that it can be taken back:
//! asking what would happen costs no more than what changes.

use crate::intern::ValueId;
use crate::model::{ClassId, NodeId};
use crate::topology::{GroupId, GroupKey, HostId, Rule, Topology, single};
use crate::universe::Universe;
use crate::world::World;

/// Nodes that are assumed to be gone, and their pods that have to go elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Absent {
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) pods: Vec<AbsentPod>,
}

/// A pod that has to go elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AbsentPod {
    pub(crate) class: ClassId,
    pub(crate) node: NodeId,
    /// Whether rules that select it have counted it.
    pub(crate) counted: bool,
}

/// What was counted while nodes are assumed to be gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    absent: Absent,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Pods(GroupId, ValueId, i32),
    Hosts(GroupId, HostId, i32),
    Maker(GroupId, ValueId),
}

impl Topology {
    /// Counts pods in a domain.
    pub(super) fn add(&mut self, id: GroupId, value: ValueId, pods: i32, universe: &Universe) {
        self.groups[id.index()].add(value, pods, universe);
        self.note(Entry::Pods(id, value, pods));
    }

    /// Counts pods on a host.
    pub(super) fn add_hosts(&mut self, id: GroupId, host: HostId, pods: i32) {
        self.groups[id.index()].add_hosts(host, pods);
        self.note(Entry::Hosts(id, host, pods));
    }

    fn note(&mut self, entry: Entry) {
        if let Some(journal) = &mut self.journal {
            journal.entries.push(entry);
        }
    }

    /// From now on some nodes and their pods are gone. `groups` are those whose domains matter.
    pub(crate) fn leave(
        &mut self,
        world: &mut World<'_>,
        absent: &Absent,
        groups: impl Iterator<Item = GroupId>,
    ) {
        self.journal = Some(Journal { absent: absent.clone(), entries: Vec::new() });
        for pod in &absent.pods {
            let class = &world.snapshot.classes[pod.class.index()];
            if pod.counted {
                for id in self.counting(world, pod.class).to_vec() {
                    self.uncount(world, id, pod.node);
                }
            }
            for term in &class.anti_affinities {
                let key = GroupKey::of_term(Rule::AntiAffinity, term);
                if let Some(id) = self.inverse_ids.get(&key).copied() {
                    self.change(world, id, pod.node, -1);
                }
            }
        }
        for id in groups {
            self.lose_makers(world, id, &absent.nodes);
        }
    }

    /// Takes back everything that was counted since the nodes left.
    pub(crate) fn come_back(&mut self, universe: &Universe) {
        let Some(journal) = self.journal.take() else { return };
        for entry in journal.entries.into_iter().rev() {
            match entry {
                Entry::Pods(id, value, pods) => self.groups[id.index()].add(value, -pods, universe),
                Entry::Hosts(id, host, pods) => self.groups[id.index()].add_hosts(host, -pods),
                Entry::Maker(id, value) => self.groups[id.index()].gain_maker(value, universe),
            }
        }
    }

    /// The nodes do not come back: their pods are on other nodes now, or on none yet.
    pub(crate) fn stay(&mut self, moves: Vec<(AbsentPod, Option<NodeId>)>) {
        let Some(journal) = self.journal.take() else { return };
        self.gone.extend(journal.absent.nodes);
        self.moves.extend(moves);
    }

    /// A pod that ran nowhere is on a node now. Rules that are new must count it, too.
    pub(crate) fn arrive(&mut self, class: ClassId, node: NodeId) {
        self.moves.push((AbsentPod { class, node, counted: false }, Some(node)));
    }

    /// A rule that is new has counted as if nodes were there that are gone.
    pub(super) fn catch_up(&mut self, world: &mut World<'_>, id: GroupId) {
        if self.moves.is_empty() && self.gone.is_empty() && self.journal.is_none() {
            return;
        }
        // What is gone for good is not noted.
        let journal = self.journal.take();
        for (pod, node) in self.moves.clone() {
            if !self.selects_running(world, id, pod) {
                continue;
            }
            if pod.counted {
                self.uncount(world, id, pod.node);
            }
            if let Some(node) = node.filter(|node| self.counts_node(world, id, *node)) {
                self.change(world, id, node, 1);
            }
        }
        self.lose_makers(world, id, &self.gone.clone());
        self.journal = journal;
        let Some(journal) = &self.journal else { return };
        let Absent { nodes, pods } = journal.absent.clone();
        for pod in pods {
            if pod.counted && self.selects_running(world, id, pod) {
                self.uncount(world, id, pod.node);
            }
        }
        self.lose_makers(world, id, &nodes);
    }

    fn selects_running(&self, world: &World<'_>, id: GroupId, pod: AbsentPod) -> bool {
        let class = &world.snapshot.classes[pod.class.index()];
        let labels = world.snapshot.labels.get(class.labels.0);
        self.groups[id.index()].counts_running(class.namespace, labels)
    }

    /// The rules that counted running pods of a class, direct ones only.
    fn counting(&mut self, world: &World<'_>, class: ClassId) -> &[GroupId] {
        let class = &world.snapshot.classes[class.index()];
        let labels = world.snapshot.labels.get(class.labels.0);
        let (known, groups) = self.counting.entry((class.namespace, class.labels)).or_default();
        for (position, group) in self.groups.iter().enumerate().skip(*known) {
            if !group.inverse && group.counts_running(class.namespace, labels) {
                groups.push(GroupId::at(position));
            }
        }
        *known = self.groups.len();
        groups
    }

    /// Takes a running pod out of a rule, if its node counts there.
    fn uncount(&mut self, world: &mut World<'_>, id: GroupId, node: NodeId) {
        if self.counts_node(world, id, node) {
            self.change(world, id, node, -1);
        }
    }

    fn change(&mut self, world: &World<'_>, id: GroupId, node: NodeId, pods: i32) {
        let group = &self.groups[id.index()];
        if group.is_hostname() {
            return self.add_hosts(id, HostId(node.0), pods);
        }
        let object = world.snapshot.nodes[node.index()].object;
        let value = object.and_then(|object| single(&world.universe, object.labels, group.key.key));
        if let Some(value) = value {
            self.add(id, value, pods, &world.universe);
        }
    }

    fn lose_makers(&mut self, world: &mut World<'_>, id: GroupId, nodes: &[NodeId]) {
        let group = &self.groups[id.index()];
        if group.inverse || group.is_hostname() {
            return;
        }
        let key = group.key.key;
        for node in nodes {
            let labels = world.snapshot.nodes[node.index()].labels;
            let Some(value) = single(&world.universe, labels, key) else { continue };
            if self.counts_node(world, id, *node) && self.groups[id.index()].lose_maker(value) {
                self.note(Entry::Maker(id, value));
            }
        }
    }

    /// Whether a rule looks at a node at all.
    fn counts_node(&mut self, world: &mut World<'_>, id: GroupId, node: NodeId) -> bool {
        let Some(object) = world.snapshot.nodes[node.index()].object else { return false };
        let group = std::mem::take(&mut self.groups[id.index()]);
        let passes = self.passes(id, &group, object.labels, object.taints, world);
        self.groups[id.index()] = group;
        passes
    }
}
