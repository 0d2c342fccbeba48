//! Recognises pods that look the same before they are converted. Entry: [`Memo`].
//!
//! Most pods are replicas. Converting a pod takes microseconds and many look-ups; finding that an equal one has been
//! converted takes one hash and one comparison of what was read.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use crate::objects::Pod;
use crate::objects::pod::PodSpec;

/// What was found out about pods, by their looks.
pub(super) struct Memo<'a, T> {
    table: HashTable<(u64, &'a Pod, T)>,
    with_owner: bool,
}

impl<'a, T: Clone> Memo<'a, T> {
    /// `with_owner` says whether the owner of a pod matters.
    pub(super) fn new(with_owner: bool) -> Self {
        Self { table: HashTable::new(), with_owner }
    }

    /// What was found out about a pod that looks the same.
    pub(super) fn get(&self, pod: &Pod) -> Option<&T> {
        let entry = self.table.find(hash(pod), |(_, known, _)| same(known, pod, self.with_owner))?;
        Some(&entry.2)
    }

    /// Remembers what was found out about a pod.
    pub(super) fn insert(&mut self, pod: &'a Pod, found: T) {
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
