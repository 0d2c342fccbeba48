//! PodDisruptionBudgets: how many pods may be evicted now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::action::Outcome;
use crate::cache::Cache;
use crate::object::{Key, Kind, Object, controller};
use crate::pod::{Pod, is_finished, is_ready};
use crate::selector::{matches, scaled};
use crate::time::{after, time};

/// How long an eviction counts that no deletion followed.
const EVICTION_TIMEOUT: Duration = Duration::from_mins(2);

/// The budgets of a namespace that cover one of these states of a pod.
pub(crate) fn concerned(cache: &Cache, namespace: &str, states: [Option<&Object>; 2]) -> Vec<Key> {
    let covers = |budget: &PodDisruptionBudget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| {
            states.iter().flatten().any(|pod| matches(selector, pod.meta().labels.as_ref()))
        })
    };
    cache
        .budgets
        .in_namespace(namespace)
        .filter(|(_, budget)| covers(budget))
        .map(|(key, _)| key.clone())
        .collect()
}

pub(crate) fn decide(cache: &Cache, key: &Key, now: Timestamp) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(budget) = cache.budgets.get(key) else { return outcome };
    let Some(spec) = &budget.spec else { return outcome };
    let pods: Vec<&Arc<Pod>> = match &spec.selector {
        None => Vec::new(),
        Some(selector) => cache
            .pods
            .in_namespace(&key.namespace)
            .map(|(_, pod)| pod)
            .filter(|pod| matches(selector, pod.metadata.labels.as_ref()) && !is_finished(pod))
            .collect(),
    };
    let old = budget.status.clone().unwrap_or_default();
    let disrupted = disrupted(&old, &pods, now, &mut outcome);
    let healthy = pods.iter().filter(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        pod.metadata.deletion_timestamp.is_none() && !disrupted.contains_key(name) && is_ready(pod)
    });
    let current = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let (new, is_known) = match expectation(cache, spec, &pods) {
        Ok((expected, desired)) => {
            let allowed = if expected <= 0 { 0 } else { (current - desired).max(0) };
            (counts(budget, (allowed, current, desired, expected), disrupted), Ok(allowed > 0))
        }
        Err(message) => {
            // What cannot be counted must not be disrupted.
            let old = (
                0,
                old.current_healthy.unwrap_or(0),
                old.desired_healthy.unwrap_or(0),
                old.expected_pods.unwrap_or(0),
            );
            (counts(budget, old, disrupted), Err(message))
        }
    };
    let mut new = new;
    new.conditions = Some(conditions(budget, &is_known, now));
    let before = budget.status.clone().unwrap_or_default();
    outcome.status(Kind::PodDisruptionBudget, &budget.metadata, &before, &new);
    outcome
}

fn counts(
    budget: &PodDisruptionBudget,
    (allowed, current, desired, expected): (i32, i32, i32, i32),
    disrupted: BTreeMap<String, Time>,
) -> PodDisruptionBudgetStatus {
    PodDisruptionBudgetStatus {
        disruptions_allowed: Some(allowed),
        current_healthy: Some(current),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: budget.metadata.generation,
        conditions: None,
    }
}

/// Evictions that the server has allowed but whose pods are not seen to go yet.
fn disrupted(
    status: &PodDisruptionBudgetStatus,
    pods: &[&Arc<Pod>],
    now: Timestamp,
    outcome: &mut Outcome,
) -> BTreeMap<String, Time> {
    let mut kept = BTreeMap::new();
    for (name, when) in status.disrupted_pods.iter().flatten() {
        let pod = pods.iter().find(|pod| pod.metadata.name.as_ref() == Some(name));
        let staying = pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none());
        let until = after(when.0, EVICTION_TIMEOUT);
        if staying && until > now {
            outcome.look_again(until);
            kept.insert(name.clone(), when.clone());
        }
    }
    kept
}

/// How many pods there should be, and how many of them have to be healthy.
fn expectation(
    cache: &Cache,
    spec: &PodDisruptionBudgetSpec,
    pods: &[&Arc<Pod>],
) -> Result<(i32, i32), String> {
    let have = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    if let Some(most) = &spec.max_unavailable {
        let expected = wanted(cache, pods)?;
        let most = scaled(most, expected, true);
        return Ok((expected, (expected - most).max(0)));
    }
    match &spec.min_available {
        Some(IntOrString::Int(least)) => Ok((have, *least)),
        Some(percent @ IntOrString::String(_)) => {
            let expected = wanted(cache, pods)?;
            Ok((expected, scaled(percent, expected, true)))
        }
        None => Ok((have, 1)),
    }
}

/// How many pods the controllers of these pods want.
fn wanted(cache: &Cache, pods: &[&Arc<Pod>]) -> Result<i32, String> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    // Several ReplicaSets of one deployment share its scale, so scales are counted by what holds them.
    let mut roots: BTreeMap<String, i32> = BTreeMap::new();
    for pod in pods {
        // Pods that nothing controls have no scale, and do not count.
        let Some(owner) = controller(&pod.metadata) else { continue };
        if seen.insert(&owner.uid) {
            let (root, scale) = scale_of(cache, &owner.uid).ok_or_else(|| {
                format!("{} \"{}\" does not say how many pods it wants", owner.kind, owner.name)
            })?;
            roots.insert(root, scale);
        }
    }
    Ok(roots.values().sum())
}

/// What says how many pods there are: the owner itself, or the deployment above it.
fn scale_of(cache: &Cache, uid: &str) -> Option<(String, i32)> {
    let object = cache.by_uid(uid)?;
    match &object {
        Object::ReplicaSet(set) => match controller(&set.metadata) {
            Some(owner) if owner.kind == "Deployment" => scale_of(cache, &owner.uid),
            _ => Some((uid.to_owned(), set.spec.as_ref()?.replicas.unwrap_or(1))),
        },
        Object::Deployment(deployment) => {
            Some((uid.to_owned(), deployment.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        Object::StatefulSet(set) => Some((uid.to_owned(), set.spec.as_ref()?.replicas.unwrap_or(1))),
        _ => None,
    }
}

fn conditions(budget: &PodDisruptionBudget, state: &Result<bool, String>, now: Timestamp) -> Vec<Condition> {
    let (status, reason, message) = match state {
        Ok(true) => ("True", "SufficientPods", ""),
        Ok(false) => ("False", "InsufficientPods", ""),
        Err(message) => ("False", "SyncFailed", message.as_str()),
    };
    let mut all = budget.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let before = all.iter().position(|condition| condition.type_ == "DisruptionAllowed");
    let since = before.map(|at| &all[at]).filter(|before| before.status == status);
    let new = Condition {
        type_: "DisruptionAllowed".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: budget.metadata.generation,
        last_transition_time: since.map_or_else(|| time(now), |before| before.last_transition_time.clone()),
    };
    match before {
        Some(at) => all[at] = new,
        None => all.push(new),
    }
    all
}

#[cfg(test)]
mod tests;
