//! The pods that wait, and in which order they are tried.
//!
//! Pods that nothing can tell apart form a kind: when one of them fits nowhere, neither do the others, so a kind
//! is tried by its first pod and put aside as a whole until something happens that could help it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::Key;
use super::filter::Statics;
use super::pod::PodInfo;

/// Kinds without pods are kept for the next pods of the workload, up to so many.
const KEPT_KINDS: usize = 1024;

/// More important pods first, then the older ones, then those seen first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    priority: Reverse<i32>,
    created: Option<Timestamp>,
    sequence: u64,
    pub(crate) key: Key,
}

/// A pod that waits for a node.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) info: Arc<PodInfo>,
    pub(crate) rank: Rank,
    /// Its kind; gated pods have none.
    pub(crate) kind: Option<usize>,
    /// The message in its condition, as far as it was asked for.
    pub(crate) said: Option<String>,
    /// The node that was cleared for it.
    pub(crate) nominated: Option<String>,
    /// Pods that were told to go for it.
    pub(crate) asked_to_go: Vec<Key>,
}

/// What a kind that fits nowhere waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parked {
    /// Pods on any node matter, not only those on a node with room.
    pub(crate) looks_around: bool,
    /// Everything can help.
    pub(crate) anything_helps: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Kind {
    description: String,
    members: BTreeSet<Rank>,
    pub(crate) statics: Statics,
    parked: Option<Parked>,
}

/// All waiting pods.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) pods: BTreeMap<Key, Pending>,
    kinds: BTreeMap<usize, Kind>,
    by_description: BTreeMap<String, usize>,
    active: BTreeSet<(Rank, usize)>,
    parked: BTreeSet<usize>,
    /// Those of them to which pods on any node matter.
    looking_around: BTreeSet<usize>,
    next_kind: usize,
    sequence: u64,
}

impl Queue {
    /// A pod is new or has changed; it is tried again unless it is of the kind it was.
    pub(crate) fn put(&mut self, info: Arc<PodInfo>, nominated: Option<String>, said: Option<String>) {
        let old = self.pods.get(&info.key);
        let sequence = old.map_or(self.sequence, |old| old.rank.sequence);
        if old.is_none() {
            self.sequence += 1;
        }
        let rank = Rank {
            priority: Reverse(info.priority),
            created: info.created(),
            sequence,
            key: info.key.clone(),
        };
        let description = (!info.is_gated()).then(|| describe(&info, nominated.as_deref()));
        let known =
            description.as_ref().and_then(|description| self.by_description.get(description)).copied();
        if let Some(old) = self
            .pods
            .get_mut(&info.key)
            .filter(|old| old.kind.is_some() && old.kind == known && old.rank == rank)
        {
            (old.info, old.nominated, old.said) = (info, nominated, said);
            return;
        }
        let asked_to_go = self.take(&info.key).map(|old| old.asked_to_go).unwrap_or_default();
        let kind = description.map(|description| known.unwrap_or_else(|| self.add_kind(description)));
        if let Some(kind) = kind {
            self.update(kind, |kind| {
                kind.members.insert(rank.clone());
                // Its condition has to be written at least, and the cluster may have changed since the others were tried.
                kind.parked = None;
            });
        }
        self.pods.insert(info.key.clone(), Pending { info, rank, kind, said, nominated, asked_to_go });
    }

    /// Takes a pod out.
    pub(crate) fn take(&mut self, key: &Key) -> Option<Pending> {
        let pending = self.pods.remove(key)?;
        if let Some(kind) = pending.kind {
            self.update(kind, |kind| {
                kind.members.remove(&pending.rank);
            });
        }
        Some(pending)
    }

    /// The kind whose turn it is, with its first pod.
    pub(crate) fn first(&self) -> Option<(usize, &Pending)> {
        let (rank, kind) = self.active.first()?;
        Some((*kind, self.pods.get(&rank.key)?))
    }

    pub(crate) fn statics(&mut self, kind: usize) -> Option<&mut Statics> {
        self.kinds.get_mut(&kind).map(|kind| &mut kind.statics)
    }

    /// Puts a kind aside; returns its pods.
    pub(crate) fn park(&mut self, kind: usize, parked: Parked) -> Vec<Key> {
        let mut members = vec![];
        self.update(kind, |kind| {
            kind.parked = Some(parked);
            members = kind.members.iter().map(|rank| rank.key.clone()).collect();
        });
        members
    }

    /// Tries those kinds again that `helped` chooses; it is asked with the first pod of each.
    pub(crate) fn wake(&mut self, helped: impl Fn(&PodInfo, Parked) -> bool) {
        let chosen = self.chosen(&self.parked, helped);
        self.unpark(&chosen);
    }

    /// The same, of those to which pods on any node matter.
    pub(crate) fn wake_looking_around(&mut self, helped: impl Fn(&PodInfo, Parked) -> bool) {
        let chosen = self.chosen(&self.looking_around, helped);
        self.unpark(&chosen);
    }

    fn chosen(&self, among: &BTreeSet<usize>, helped: impl Fn(&PodInfo, Parked) -> bool) -> Vec<usize> {
        let chosen = among.iter().copied().filter(|kind| {
            let kind = &self.kinds[kind];
            let first = kind.members.first().and_then(|rank| self.pods.get(&rank.key));
            first
                .zip(kind.parked)
                .is_some_and(|(first, parked)| parked.anything_helps || helped(&first.info, parked))
        });
        chosen.collect()
    }

    fn unpark(&mut self, kinds: &[usize]) {
        for kind in kinds {
            self.update(*kind, |kind| kind.parked = None);
        }
    }

    /// Tries the kind of one pod again.
    pub(crate) fn wake_pod(&mut self, key: &Key) {
        if let Some(kind) = self.pods.get(key).and_then(|pending| pending.kind) {
            self.update(kind, |kind| kind.parked = None);
        }
    }

    fn add_kind(&mut self, description: String) -> usize {
        if self.kinds.len() >= KEPT_KINDS {
            self.kinds.retain(|_, kind| !kind.members.is_empty());
            self.by_description.retain(|_, kind| self.kinds.contains_key(kind));
        }
        self.next_kind += 1;
        self.by_description.insert(description.clone(), self.next_kind);
        self.kinds.insert(self.next_kind, Kind { description, ..Kind::default() });
        self.next_kind
    }

    /// Changes a kind and keeps the two lists in step with it.
    fn update(&mut self, id: usize, change: impl FnOnce(&mut Kind)) {
        let Some(kind) = self.kinds.get_mut(&id) else { return };
        if let Some(first) = kind.members.first() {
            self.active.remove(&(first.clone(), id));
        }
        change(kind);
        self.parked.remove(&id);
        self.looking_around.remove(&id);
        match (kind.members.first(), kind.parked) {
            (Some(first), None) => {
                self.active.insert((first.clone(), id));
            }
            (Some(_), Some(parked)) => {
                self.parked.insert(id);
                if parked.looks_around {
                    self.looking_around.insert(id);
                }
            }
            (None, _) => kind.parked = None,
        }
        debug_assert!(self.by_description.contains_key(&kind.description));
    }
}

/// Two pods with the same description have the same chances.
fn describe(info: &PodInfo, nominated: Option<&str>) -> String {
    let spec = info.pod.spec.as_ref();
    let spread = spec.and_then(|spec| spec.topology_spread_constraints.as_ref());
    let rules = (
        &info.key.0,
        info.labels(),
        info.node_selector(),
        spec.and_then(|spec| spec.affinity.as_ref()),
        info.tolerations(),
        spread,
        info.priority,
        info.may_preempt(),
    );
    // Claims and promised nodes make a pod a kind of its own.
    let own = (nominated.is_some() || !info.claims.is_empty()).then_some(&info.key);
    let rules = serde_json::to_string(&(rules, nominated, own)).unwrap_or_default();
    format!("{rules}{:?}{:?}", info.requests, info.ports)
}
