//! Recognises pods that look the same before they are converted. Entries: [`Memo`] and [`Shapes`].
//!
//! Most pods are replicas. Converting a pod takes microseconds and many look-ups; finding that an equal one has been
//! converted takes one hash and one comparison of what was read. Pods of the state are compared once, when they
//! change: afterwards their number tells.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::eligibility::{has_annotation_of_disruption, is_owned_by_daemon_set, is_owned_by_node};
use crate::objects::Pod;
use crate::objects::pod::PodSpec;

/// What the state finds out about a pod when it changes, so that nobody has to look into all its parts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The number of a shape that it has in common with others.
    shape: u32,
    /// Whether it belongs to a DaemonSet.
    pub(crate) is_daemon: bool,
    /// Whether it is its node's own.
    pub(crate) is_static: bool,
    /// Whether it says anything about its own disruption.
    pub(crate) speaks_of_disruption: bool,
}

/// The shapes of the pods that are there, each known by one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    known: Vec<Option<Known>>,
    by_looks: HashTable<u32>,
    /// Numbers that nobody has any more.
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Known {
    hash: u64,
    pod: Arc<Pod>,
    uses: usize,
}

impl Shapes {
    /// The pod with what is found out about it.
    pub(crate) fn note(&mut self, mut pod: Arc<Pod>) -> Arc<Pod> {
        let hash = hash(&pod);
        let noted = |shape: u32, pod: &Pod| Noted {
            shape,
            is_daemon: is_owned_by_daemon_set(pod),
            is_static: is_owned_by_node(pod),
            speaks_of_disruption: has_annotation_of_disruption(pod),
        };
        let found = self.by_looks.find(hash, |number| {
            let known = self.known[*number as usize].as_ref();
            known.is_some_and(|known| known.hash == hash && same(&known.pod, &pod, false))
        });
        if let Some(number) = found.copied() {
            if let Some(known) = &mut self.known[number as usize] {
                known.uses += 1;
            }
            let noted = noted(number, &pod);
            Arc::make_mut(&mut pod).noted = Some(noted);
            return pod;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.known.push(None);
            u32::try_from(self.known.len() - 1).expect("fewer than four billion pods")
        });
        let noted = noted(number, &pod);
        Arc::make_mut(&mut pod).noted = Some(noted);
        self.known[number as usize] = Some(Known { hash, pod: Arc::clone(&pod), uses: 1 });
        let known = &self.known;
        self.by_looks.insert_unique(hash, number, |number| {
            known[*number as usize].as_ref().map_or(0, |known| known.hash)
        });
        pod
    }

    /// Notes that a pod is not there any more.
    pub(crate) fn release(&mut self, pod: &Pod) {
        let Some(Noted { shape: number, .. }) = pod.noted else { return };
        let Some(known) = &mut self.known[number as usize] else { return };
        known.uses -= 1;
        if known.uses == 0 {
            let hash = known.hash;
            if let Ok(entry) = self.by_looks.find_entry(hash, |other| *other == number) {
                entry.remove();
            }
            self.known[number as usize] = None;
            self.free.push(number);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.by_looks.len()
    }
}

/// What was found out about pods, by their looks.
pub(crate) struct Memo<'a, T> {
    table: HashTable<(u64, &'a Pod, T)>,
    by_shape: Vec<Option<T>>,
    with_owner: bool,
}

impl<'a, T: Clone> Memo<'a, T> {
    /// `with_owner` says whether the owner of a pod matters.
    pub(crate) fn new(with_owner: bool) -> Self {
        Self { table: HashTable::new(), by_shape: Vec::new(), with_owner }
    }

    /// The number that tells all about the looks of a pod, if it has one.
    fn shape(&self, pod: &Pod) -> Option<usize> {
        pod.noted.filter(|_| !self.with_owner).map(|noted| noted.shape as usize)
    }

    /// What was found out about a pod that looks the same.
    pub(crate) fn get(&self, pod: &Pod) -> Option<&T> {
        if let Some(shape) = self.shape(pod) {
            return self.by_shape.get(shape)?.as_ref();
        }
        let entry = self.table.find(hash(pod), |(_, known, _)| same(known, pod, self.with_owner))?;
        Some(&entry.2)
    }

    /// Remembers what was found out about a pod.
    pub(crate) fn insert(&mut self, pod: &'a Pod, found: T) {
        if let Some(shape) = self.shape(pod) {
            if self.by_shape.len() <= shape {
                self.by_shape.resize(shape + 1, None);
            }
            self.by_shape[shape] = Some(found);
            return;
        }
        let hash = hash(pod);
        self.table.insert_unique(hash, (hash, pod, found), |(hash, ..)| *hash);
    }
}

/// A hash of what usually differs between workloads.
fn hash(pod: &Pod) -> u64 {
    let mut hasher = FxHasher::default();
    pod.metadata.namespace.hash(&mut hasher);
    pod.metadata.labels.hash(&mut hasher);
    pod.spec.node_selector.hash(&mut hasher);
    for container in &pod.spec.containers {
        container.resources.requests.hash(&mut hasher);
    }
    pod.spec.affinity.is_some().hash(&mut hasher);
    hasher.finish()
}

/// Whether nothing that matters to placement tells two pods apart. Everything that a class is made of must be here.
fn same(a: &Pod, b: &Pod, with_owner: bool) -> bool {
    let PodSpec {
        node_name: _,
        node_selector,
        affinity,
        tolerations,
        topology_spread_constraints,
        containers,
        init_containers,
        overhead,
        resources,
        volumes,
        resource_claims,
        priority: _,
        priority_class_name: _,
        termination_grace_period_seconds: _,
        scheduler_name: _,
        scheduling_gates: _,
    } = &a.spec;
    let has_own_claims = volumes.iter().any(|volume| volume.ephemeral.is_some());
    a.metadata.namespace() == b.metadata.namespace()
        && a.metadata.labels == b.metadata.labels
        && *containers == b.spec.containers
        && *node_selector == b.spec.node_selector
        && *affinity == b.spec.affinity
        && *tolerations == b.spec.tolerations
        && *topology_spread_constraints == b.spec.topology_spread_constraints
        && *init_containers == b.spec.init_containers
        && *overhead == b.spec.overhead
        && *resources == b.spec.resources
        && *volumes == b.spec.volumes
        && *resource_claims == b.spec.resource_claims
        && a.status.container_statuses == b.status.container_statuses
        && a.status.init_container_statuses == b.status.init_container_statuses
        && a.status.conditions.resize == b.status.conditions.resize
        && (!has_own_claims || a.metadata.name == b.metadata.name)
        && (!with_owner || a.metadata.controller() == b.metadata.controller())
}

#[cfg(test)]
mod tests;
