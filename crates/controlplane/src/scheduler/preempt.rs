//! Which pods have to go so that a more important one finds a place.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::Key;
use super::cluster::Cluster;
use super::filter::Cycle;
use super::pod::PodInfo;
use super::selector::Selector;
use super::verdict::{Rejection, summary};

const NEVER: &str = "not eligible due to preemptionPolicy=Never.";
const TERMINATING: &str = "not eligible due to a terminating pod on the nominated node.";
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";
const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";
/// Of many nodes this share is enough to choose from, and at least so many.
const CANDIDATES_PERCENT: usize = 10;
const CANDIDATES_AT_LEAST: usize = 100;

/// What came of the attempt.
pub(crate) enum Outcome {
    /// These pods have to go from this node.
    Victims { node: String, victims: Vec<Key> },
    /// Nobody can be sent away; the reason is part of the pod's message.
    Hopeless(String),
    /// The same, but a node that was promised stays promised.
    Waiting(String),
}

struct Candidate<'a> {
    node: &'a str,
    /// Most important first; never empty.
    victims: Vec<Arc<PodInfo>>,
    violations: usize,
}

/// `rejections` says why each node refuses the pod; nodes without an entry cannot be helped.
pub(crate) fn preempt(
    cycle: &Cycle<'_>,
    rejections: &BTreeMap<usize, Rejection>,
    promised: impl Fn(usize) -> Vec<Arc<PodInfo>>,
    (nominated, asked_to_go): (Option<&str>, &[Key]),
) -> Outcome {
    let (cluster, pod) = (cycle.cluster, cycle.pod);
    if !pod.may_preempt() {
        return Outcome::Waiting(NEVER.to_owned());
    }
    if let Some(slot) = nominated.and_then(|name| cluster.slot_of(name)) {
        let hopeless = rejections.get(&slot).is_some_and(|rejection| !rejection.resolvable);
        let leaving = |other: &PodInfo| {
            other.priority < pod.priority && (is_leaving(other) || asked_to_go.contains(&other.key))
        };
        if !hopeless && cluster.slots[slot].usage.pods.values().any(|other| leaving(other)) {
            return Outcome::Waiting(TERMINATING.to_owned());
        }
    }

    let mut potential: Vec<usize> =
        rejections.iter().filter(|(_, rejection)| rejection.resolvable).map(|(slot, _)| *slot).collect();
    potential.sort_by(|left, right| cluster.slots[*left].name.cmp(&cluster.slots[*right].name));
    let enough = (potential.len() * CANDIDATES_PERCENT / 100).max(CANDIDATES_AT_LEAST);
    let mut candidates: Vec<Candidate<'_>> = vec![];
    let mut failures = vec![];
    for slot in potential {
        match candidate(cycle, slot, &promised(slot)) {
            Ok(candidate) => candidates.push(candidate),
            Err(rejection) => failures.push(rejection),
        }
        if candidates.len() >= enough && candidates.iter().any(|candidate| candidate.violations == 0) {
            break;
        }
    }
    match candidates.into_iter().min_by_key(cost) {
        Some(best) => Outcome::Victims {
            node: best.node.to_owned(),
            // Those that are being deleted already need not be told again.
            victims: best
                .victims
                .iter()
                .filter(|one| !one.is_terminating())
                .map(|one| one.key.clone())
                .collect(),
        },
        None => Outcome::Hopeless(summary(cluster.node_count(), &failures, Some(NOT_HELPFUL))),
    }
}

/// Fewest violated budgets, least important victims, fewest of them, those that ran the shortest; then by name.
fn cost<'a>(candidate: &Candidate<'a>) -> (usize, i32, i64, usize, Reverse<Start>, &'a str) {
    let highest = candidate.victims.iter().map(|victim| victim.priority).max().unwrap_or(0);
    // Shifted so that two pods of negative priority cost more than one.
    let shifted = |victim: &Arc<PodInfo>| i64::from(victim.priority) + i64::from(i32::MAX) + 1;
    let sum = candidate.victims.iter().map(shifted).sum();
    let important = candidate.victims.iter().filter(|victim| victim.priority == highest);
    let earliest = important.map(|victim| start(victim)).min().unwrap_or(Start::NotYet);
    (candidate.violations, highest, sum, candidate.victims.len(), Reverse(earliest), candidate.node)
}

/// A pod that has not started counts as started after every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    At(Timestamp),
    NotYet,
}

fn start(pod: &PodInfo) -> Start {
    pod.started().map_or(Start::NotYet, Start::At)
}

fn is_leaving(pod: &PodInfo) -> bool {
    let conditions = pod.pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or(&[]);
    pod.is_terminating()
        && conditions
            .iter()
            .find(|one| one.type_ == "DisruptionTarget")
            .is_some_and(|one| one.status == "True" && one.reason.as_deref() == Some("PreemptionByScheduler"))
}

/// The fewest pods that have to leave this node.
fn candidate<'a>(
    cycle: &Cycle<'a>,
    slot: usize,
    promised: &[Arc<PodInfo>],
) -> Result<Candidate<'a>, Rejection> {
    let state = &cycle.cluster.slots[slot];
    let mut victims: Vec<Arc<PodInfo>> =
        state.usage.pods.values().filter(|other| other.priority < cycle.pod.priority).cloned().collect();
    if victims.is_empty() {
        return Err(Rejection::final_(NO_VICTIMS));
    }
    let (mut usage, mut changeable) = (state.usage.clone(), cycle.changeable.clone());
    for victim in &victims {
        usage.remove(&victim.key);
        cycle.change(&mut changeable, victim, slot, -1);
    }
    cycle.filter_beside(slot, &usage, &changeable, promised)?;

    // As many as possible come back: those under a budget first, then the more important ones.
    victims.sort_by(|left, right| importance(left).cmp(&importance(right)));
    let protected = protected(cycle.cluster, &victims);
    let order = (0..victims.len()).filter(|index| protected[*index]);
    let order: Vec<usize> = order.chain((0..victims.len()).filter(|index| !protected[*index])).collect();
    let mut leaves = vec![false; victims.len()];
    for index in order {
        let victim = &victims[index];
        usage.add(victim);
        cycle.change(&mut changeable, victim, slot, 1);
        if cycle.filter_beside(slot, &usage, &changeable, promised).is_err() {
            usage.remove(&victim.key);
            cycle.change(&mut changeable, victim, slot, -1);
            leaves[index] = true;
        }
    }
    let violations =
        leaves.iter().zip(&protected).filter(|(leaves, protected)| **leaves && **protected).count();
    let victims: Vec<_> =
        victims.into_iter().zip(&leaves).filter(|(_, leaves)| **leaves).map(|(victim, _)| victim).collect();
    if victims.is_empty() {
        return Err(Rejection::final_(NO_VICTIMS));
    }
    Ok(Candidate { node: &state.name, victims, violations })
}

fn importance(pod: &PodInfo) -> (Reverse<i32>, Start, &Key) {
    (Reverse(pod.priority), start(pod), &pod.key)
}

/// Which pods, taken in this order, no disruption budget has an allowance left for.
fn protected(cluster: &Cluster, pods: &[Arc<PodInfo>]) -> Vec<bool> {
    let mut budgets: Vec<_> = cluster
        .budgets
        .iter()
        .map(|((namespace, _), budget)| {
            let selector = Selector::parse(budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()));
            let status = budget.status.as_ref();
            let allowed = status.and_then(|status| status.disruptions_allowed).unwrap_or(0);
            (namespace, selector, allowed, status.and_then(|status| status.disrupted_pods.as_ref()))
        })
        .filter(|(_, selector, ..)| !selector.is_empty())
        .collect();
    pods.iter()
        .map(|pod| {
            let mut violated = false;
            for (namespace, selector, allowed, disrupted) in &mut budgets {
                // A pod that is already being evicted has been counted.
                let counted = disrupted.is_some_and(|pods| pods.contains_key(&pod.key.1));
                if **namespace == pod.key.0
                    && !counted
                    && !pod.labels().is_empty()
                    && selector.matches(pod.labels())
                {
                    *allowed -= 1;
                    violated |= *allowed < 0;
                }
            }
            violated
        })
        .collect()
}
