//! Which of the nodes that take a pod is best: kube-scheduler's scores with their default weights.
//!
//! Only what can be seen from outside matters here, so numbers are compared exactly but not kept equal
//! to kube-scheduler's digit for digit.

use super::affinity::anti_affinity_question;
use super::cluster::Cluster;
use super::filter::Cycle;
use super::pod::PodInfo;
use super::spread;

const FULL: i64 = 100;

/// The best of `slots`, which are not empty; equal scores go to the first name.
pub(crate) fn best(cycle: &Cycle<'_>, slots: &[usize]) -> Option<usize> {
    if let [only] = slots {
        return Some(*only);
    }
    let (cluster, pod) = (cycle.cluster, cycle.pod);
    let mut totals: Vec<i64> = slots.iter().map(|slot| room(cluster, pod, *slot)).collect();
    let mut add = |weight: i64, scores: Option<Vec<i64>>| {
        for (total, score) in totals.iter_mut().zip(scores.into_iter().flatten()) {
            *total += weight * score;
        }
    };
    add(3, taints(cluster, pod, slots));
    add(2, node_affinity(cluster, pod, slots));
    add(2, pod_affinity(cluster, pod, slots));
    add(2, spreading(cycle, slots));
    let name = |slot: usize| &cluster.slots[slot].name;
    let ranked = slots.iter().copied().zip(totals);
    ranked
        .max_by(|(left, left_score), (right, right_score)| {
            left_score.cmp(right_score).then_with(|| name(*right).cmp(name(*left)))
        })
        .map(|(slot, _)| slot)
}

/// More free room is better, and so is using CPU and memory in the same proportion.
fn room(cluster: &Cluster, pod: &PodInfo, slot: usize) -> i64 {
    let state = &cluster.slots[slot];
    let sides = [
        (state.allocatable.milli_cpu, state.usage.scored.0 + pod.requests.scored.0),
        (state.allocatable.memory, state.usage.scored.1 + pod.requests.scored.1),
    ];
    let free = |(has, used): (i64, i64)| if has <= 0 || used >= has { 0 } else { share(has - used, has) };
    let used = |(has, used): (i64, i64)| if has <= 0 { 0 } else { share(used.min(has), has) };
    let least_allocated = i64::midpoint(free(sides[0]), free(sides[1]));
    // The standard deviation of two numbers is half their distance.
    let balanced = FULL - (used(sides[0]) - used(sides[1])).abs() / 2;
    least_allocated + balanced
}

fn share(part: i64, whole: i64) -> i64 {
    part.saturating_mul(FULL) / whole
}

/// Scales so that the largest becomes 100.
fn normalized(scores: Vec<i64>) -> Vec<i64> {
    let most = scores.iter().copied().max().unwrap_or(0);
    if most == 0 { scores } else { scores.into_iter().map(|score| share(score, most)).collect() }
}

/// Fewer taints that only prefer to be left alone.
fn taints(cluster: &Cluster, pod: &PodInfo, slots: &[usize]) -> Option<Vec<i64>> {
    let count = |slot: &usize| {
        let spec = cluster.slots[*slot].node.as_ref().and_then(|node| node.spec.as_ref());
        let taints = spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
        let unwanted = taints.filter(|taint| taint.effect == "PreferNoSchedule" && !pod.tolerates(taint));
        i64::try_from(unwanted.count()).unwrap_or(i64::MAX)
    };
    let counts: Vec<i64> = slots.iter().map(count).collect();
    if counts.iter().all(|count| *count == 0) {
        return None;
    }
    Some(normalized(counts).into_iter().map(|score| FULL - score).collect())
}

fn node_affinity(cluster: &Cluster, pod: &PodInfo, slots: &[usize]) -> Option<Vec<i64>> {
    if pod.preferred_nodes.is_empty() {
        return None;
    }
    let score = |slot: &usize| {
        let node = cluster.slots[*slot].node.as_ref();
        let matching = |(_, term): &&(i64, _)| {
            node.is_some_and(|node| super::selector::NodeTerm::matches_node(term, node))
        };
        pod.preferred_nodes.iter().filter(matching).map(|(weight, _)| weight).sum()
    };
    Some(normalized(slots.iter().map(score).collect()))
}

/// Preferences of the pod about placed pods, and of placed pods about it.
fn pod_affinity(cluster: &Cluster, pod: &PodInfo, slots: &[usize]) -> Option<Vec<i64>> {
    let of_namespace = cluster.namespace_labels(&pod.key.0);
    let mut scores = vec![0; slots.len()];
    let mut any = false;
    let mut add = |key: &str, weights: &mut dyn Iterator<Item = (usize, i64)>| {
        let Some((_, topology)) = cluster.topology_of(key) else { return };
        let mut domains = vec![0; topology.domains()];
        for (slot, weight) in weights {
            if let Some(domain) = topology.domain(slot) {
                domains[domain] += weight;
                any = true;
            }
        }
        for (score, slot) in scores.iter_mut().zip(slots) {
            *score += topology.domain(*slot).map_or(0, |domain| domains[domain]);
        }
    };
    for (weight, term) in &pod.preferred {
        let counts = cluster.counts.answer(&anti_affinity_question(term)).iter().enumerate();
        add(&term.topology_key, &mut counts.map(|(slot, count)| (slot, weight * count)));
    }
    for (term, weights) in
        cluster.counts.pulling().iter().filter(|(term, _)| term.group.matches(pod, of_namespace))
    {
        add(&term.topology_key, &mut weights.iter().map(|(slot, weight)| (*slot, *weight)));
    }
    if !any {
        return None;
    }
    let (least, most) = (scores.iter().min().copied()?, scores.iter().max().copied()?);
    Some(
        scores
            .into_iter()
            .map(|score| if most == least { 0 } else { share(score - least, most - least) })
            .collect(),
    )
}

/// Soft spread constraints: fewer matching pods in the node's domains.
fn spreading(cycle: &Cycle<'_>, slots: &[usize]) -> Option<Vec<i64>> {
    let (cluster, pod) = (cycle.cluster, cycle.pod);
    let soft: Vec<_> = pod.spreads.iter().filter(|spread| !spread.hard).collect();
    if soft.is_empty() {
        return None;
    }
    let mut scores: Vec<Option<i64>> = vec![Some(0); slots.len()];
    for spread in soft {
        let (_, topology) = cluster.topology_of(&spread.topology_key)?;
        let mut domains = vec![0; topology.domains()];
        if let Some(question) = spread::question(spread) {
            for (slot, count) in cluster.counts.answer(&question).iter().enumerate() {
                if let Some(domain) = topology.domain(slot) {
                    domains[domain] += count;
                }
            }
        }
        // A domain among many weighs more; thousandths keep the arithmetic exact.
        let weight = i64::from((topology.domains() + 2).ilog2()) * 1000;
        for (score, slot) in scores.iter_mut().zip(slots) {
            *score = score
                .zip(topology.domain(*slot))
                .map(|(score, domain)| score + domains[domain] * weight + (spread.max_skew - 1) * 1000);
        }
    }
    let known = || scores.iter().flatten().copied();
    let (least, most) = (known().min()?, known().max()?);
    let turned = |score: i64| if most == 0 { FULL } else { share(most + least - score, most) };
    Some(scores.iter().map(|score| score.map_or(0, turned)).collect())
}
