//! StatefulSets: pods with numbers, each with its own claims, started and replaced in order.

mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::action::Outcome;
use crate::cache::{Cache, Store};
use crate::names;
use crate::object::{Key, Kind, label, uid};
use crate::pod::{Availability, Pod, availability, is_finished, is_ready, phase};
use crate::replicaset::{count, some};
use crate::revision::{self, Revisions};

const COMPONENT: &str = "statefulset-controller";

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(set) = cache.stateful_sets.get(key) else { return outcome };
    let Some(spec) = &set.spec else { return outcome };
    if set.metadata.deletion_timestamp.is_some() {
        return outcome;
    }
    let collisions = set.status.as_ref().and_then(|status| status.collision_count).filter(|count| *count > 0);
    let owner = (Kind::StatefulSet, &set.metadata);
    let revisions = revision::ensure(cache, owner, &spec.template, collisions, &mut outcome);
    let mut pods: BTreeMap<i32, &Arc<Pod>> = BTreeMap::new();
    for pod in cache.owned_pods(uid(&set.metadata)) {
        if let Some(ordinal) = pods::ordinal(set, pod) {
            pods.insert(ordinal, pod);
        }
    }
    let current = set.status.as_ref().and_then(|status| status.current_revision.clone());
    let current = current.filter(|name| !name.is_empty()).unwrap_or_else(|| revisions.update.clone());
    let look = Look { set, spec, revisions, current, pods, claims: &cache.claims, now };
    look.converge(&mut outcome);
    look.status(&mut outcome);
    let used = look.pods.values().filter_map(|pod| revision_of(pod)).map(str::to_owned);
    let used: BTreeSet<String> = used.chain([look.current.clone()]).collect();
    look.revisions.clean_up(spec.revision_history_limit, &used, &mut outcome);
    outcome
}

/// One look at a set.
struct Look<'a> {
    set: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    revisions: Revisions,
    /// The name of the revision that pods had before the update.
    current: String,
    pods: BTreeMap<i32, &'a Arc<Pod>>,
    claims: &'a Store<PersistentVolumeClaim>,
    now: Timestamp,
}

fn revision_of(pod: &Pod) -> Option<&str> {
    label(&pod.metadata, names::CONTROLLER_REVISION_HASH)
}

impl Look<'_> {
    fn start(&self) -> i32 {
        self.spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0)
    }

    fn end(&self) -> i32 {
        self.start() + self.spec.replicas.unwrap_or(1)
    }

    fn in_order(&self) -> bool {
        self.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    fn is_healthy(&self, pod: &Pod, outcome: &mut Outcome) -> bool {
        let running = phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none();
        match availability(pod, self.spec.min_ready_seconds.unwrap_or(0), self.now) {
            Availability::Available => running,
            Availability::At(when) => {
                outcome.look_again(when);
                false
            }
            Availability::NotReady => false,
        }
    }

    /// One step towards the wanted pods.
    fn converge(&self, outcome: &mut Outcome) {
        let in_order = self.in_order();
        for ordinal in self.start()..self.end() {
            match self.pods.get(&ordinal) {
                None => {
                    self.create(ordinal, outcome);
                    if in_order {
                        return;
                    }
                }
                Some(pod) if is_finished(pod) => {
                    if pod.metadata.deletion_timestamp.is_none() {
                        outcome.delete(Kind::Pod, &pod.metadata, None);
                    }
                    if in_order {
                        return;
                    }
                }
                Some(pod) => {
                    if !self.is_healthy(pod, outcome) && in_order {
                        return;
                    }
                }
            }
        }
        let condemned: Vec<_> =
            self.pods.iter().rev().filter(|(at, _)| **at >= self.end() || **at < self.start()).collect();
        for (_, pod) in &condemned {
            if pod.metadata.deletion_timestamp.is_none() {
                self.delete(pod, outcome);
            }
            if in_order {
                return;
            }
        }
        self.update(outcome);
    }

    /// Replaces pods of older revisions, from the last one down.
    fn update(&self, outcome: &mut Outcome) {
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return;
        }
        let partition = strategy
            .and_then(|strategy| strategy.rolling_update.as_ref())
            .and_then(|rolling| rolling.partition)
            .unwrap_or(0);
        for ordinal in (self.start().max(partition)..self.end()).rev() {
            let Some(pod) = self.pods.get(&ordinal) else { return };
            let outdated = revision_of(pod) != Some(&self.revisions.update);
            if outdated && pod.metadata.deletion_timestamp.is_none() {
                self.delete(pod, outcome);
                return;
            }
            if !self.is_healthy(pod, outcome) {
                return;
            }
        }
    }

    fn delete(&self, pod: &Pod, outcome: &mut Outcome) {
        outcome.delete(Kind::Pod, &pod.metadata, None);
        let (name, set) = (pod.metadata.name.as_deref(), self.set.metadata.name.as_deref());
        let message = format!(
            "delete Pod {} in StatefulSet {} successful",
            name.unwrap_or_default(),
            set.unwrap_or_default()
        );
        outcome.note((Kind::StatefulSet, &self.set.metadata), COMPONENT, "SuccessfulDelete", message);
    }

    fn status(&self, outcome: &mut Outcome) {
        let old = self.set.status.clone().unwrap_or_default();
        let members = || self.pods.values().filter(|pod| !phase(pod).is_empty());
        let alive = || members().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let of = |name: &str| alive().filter(|pod| revision_of(pod) == Some(name)).count();
        let min = self.spec.min_ready_seconds.unwrap_or(0);
        let ready = || members().filter(|pod| phase(pod) == "Running" && is_ready(pod));
        let available =
            ready().filter(|pod| availability(pod, min, self.now) == Availability::Available).count();
        let update = self.revisions.update.as_str();
        let (replicas, ready, updated) = (members().count(), ready().count(), of(update));
        let strategy = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        let finished = strategy != Some("OnDelete") && updated == replicas && ready == replicas;
        let current = if finished { update } else { self.current.as_str() };
        let new = StatefulSetStatus {
            observed_generation: self.set.metadata.generation,
            replicas: count(replicas),
            ready_replicas: some(ready),
            available_replicas: Some(count(available)),
            current_replicas: some(if finished { updated } else { of(current) }),
            updated_replicas: some(updated),
            current_revision: Some(current.to_owned()),
            update_revision: Some(update.to_owned()),
            collision_count: Some(old.collision_count.unwrap_or(0)),
            conditions: old.conditions.clone(),
        };
        outcome.status(Kind::StatefulSet, &self.set.metadata, &old, &new);
    }
}

#[cfg(test)]
mod tests;
