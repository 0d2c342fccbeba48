//! ReplicaSets: as many pods as asked for.

mod ranking;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};
use serde_json::json;

use crate::action::Outcome;
use crate::cache::{Cache, node_of};
use crate::object::{Key, Kind, controller, uid};
use crate::pod::{Availability, Pod, availability, is_active, is_ready, is_terminating};
use crate::{selector, template};

const COMPONENT: &str = "replicaset-controller";

/// How many pods are created or deleted before looking again.
const BURST: usize = 500;

/// How many events one look writes: people read the first ones only.
const NOTES: usize = 10;

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(set) = cache.replica_sets.get(key) else { return outcome };
    let Some(spec) = &set.spec else { return outcome };
    let alive = set.metadata.deletion_timestamp.is_none();
    let pods = pods(cache, set, spec, alive, &mut outcome);
    let active: Vec<&Arc<Pod>> = pods.iter().copied().filter(|pod| is_active(pod)).collect();
    if alive {
        scale(cache, set, spec, &active, &mut outcome);
    }
    status(set, spec, &pods, &active, now, &mut outcome);
    outcome
}

/// The pods of the set: those it controls, those it adopts, without those it lets go.
fn pods<'a>(
    cache: &'a Cache,
    set: &'a ReplicaSet,
    spec: &ReplicaSetSpec,
    alive: bool,
    outcome: &mut Outcome,
) -> Vec<&'a Arc<Pod>> {
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let mut pods = Vec::new();
    for pod in cache.owned_pods(uid(&set.metadata)) {
        if selector::matches(&spec.selector, pod.metadata.labels.as_ref()) {
            pods.push(pod);
        } else if alive && is_active(pod) {
            outcome.patch(
                Kind::Pod,
                &pod.metadata,
                json!({"metadata": {"uid": pod.metadata.uid, "ownerReferences": null}}),
            );
        }
    }
    if alive {
        for pod in cache.orphans(Kind::Pod, namespace).filter_map(|key| cache.pods.get(key)) {
            if is_active(pod) && selector::matches(&spec.selector, pod.metadata.labels.as_ref()) {
                let owner = template::owner_reference(Kind::ReplicaSet, &set.metadata);
                outcome.patch(
                    Kind::Pod,
                    &pod.metadata,
                    json!({"metadata": {"uid": pod.metadata.uid, "ownerReferences": [owner]}}),
                );
                pods.push(pod);
            }
        }
    }
    pods
}

fn scale(
    cache: &Cache,
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    active: &[&Arc<Pod>],
    outcome: &mut Outcome,
) {
    let wanted = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
    let about = (Kind::ReplicaSet, &set.metadata);
    if active.len() < wanted {
        let Some(template) = &spec.template else { return };
        let body = Arc::new(template::pod(template, Kind::ReplicaSet, &set.metadata));
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        let missing = (wanted - active.len()).min(BURST);
        for _ in 0..missing {
            outcome.create(Kind::Pod, namespace, &body);
        }
        let name = set.metadata.name.as_deref().unwrap_or_default();
        outcome.note(about, COMPONENT, "SuccessfulCreate", format!("Created {missing} pod(s) of {name}"));
    } else if active.len() > wanted {
        let excess = (active.len() - wanted).min(BURST);
        let ranks = crowding(cache, set);
        for (number, pod) in ranking::first_to_go(active, excess, &ranks).into_iter().enumerate() {
            outcome.delete(Kind::Pod, &pod.metadata, None);
            if number < NOTES {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                outcome.note(about, COMPONENT, "SuccessfulDelete", format!("Deleted pod: {name}"));
            }
        }
    }
}

/// How many pods of all sets of the same deployment each node has.
fn crowding<'a>(cache: &'a Cache, set: &ReplicaSet) -> BTreeMap<&'a str, usize> {
    let mut ranks = BTreeMap::new();
    let siblings: Vec<&str> = match controller(&set.metadata) {
        None => vec![uid(&set.metadata)],
        Some(owner) => cache
            .owned(&owner.uid, Kind::ReplicaSet)
            .filter_map(|key| cache.replica_sets.get(key))
            .map(|set| uid(&set.metadata))
            .collect(),
    };
    for sibling in siblings {
        let pods = cache.owned(sibling, Kind::Pod).filter_map(|key| cache.pods.get(key));
        for pod in pods.filter(|pod| is_active(pod)) {
            if let Some(node) = node_of(pod) {
                *ranks.entry(node).or_default() += 1;
            }
        }
    }
    ranks
}

fn status(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    pods: &[&Arc<Pod>],
    active: &[&Arc<Pod>],
    now: Timestamp,
    outcome: &mut Outcome,
) {
    let old = set.status.clone().unwrap_or_default();
    let labels =
        spec.template.as_ref().and_then(|t| t.metadata.as_ref()).and_then(|meta| meta.labels.as_ref());
    let fully = |pod: &Pod| {
        let has = |(key, value): (&String, &String)| {
            pod.metadata.labels.as_ref().and_then(|l| l.get(key)) == Some(value)
        };
        labels.into_iter().flatten().all(has)
    };
    let mut available = 0;
    for pod in active {
        match availability(pod, spec.min_ready_seconds.unwrap_or(0), now) {
            Availability::Available => available += 1,
            Availability::At(when) => outcome.look_again(when),
            Availability::NotReady => {}
        }
    }
    let new = ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: some(active.iter().filter(|pod| fully(pod)).count()),
        ready_replicas: some(active.iter().filter(|pod| is_ready(pod)).count()),
        available_replicas: some(available),
        terminating_replicas: Some(count(pods.iter().filter(|pod| is_terminating(pod)).count())),
        observed_generation: set.metadata.generation,
        conditions: old.conditions.clone(),
    };
    outcome.status(Kind::ReplicaSet, &set.metadata, &old, &new);
}

/// A count as fields hold it.
pub(crate) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A count that is left out when it is zero.
pub(crate) fn some(number: usize) -> Option<i32> {
    (number > 0).then(|| count(number))
}

#[cfg(test)]
mod tests;
