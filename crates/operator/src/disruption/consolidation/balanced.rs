//! Whether a saving is worth the disturbance, for pools that ask for that.
//!
//! ```text
//! score = (savings / what the pool costs) / (cost of the disruption / that of disrupting the whole pool)
//! ```
//!
//! A move is approved if its score is at least 1/2 in every pool that it takes nodes from.

use std::collections::{BTreeMap, BTreeSet};

use api::names::events::CONSOLIDATION_APPROVED;
use api::names::metrics::{CONSOLIDATION_MOVES, CONSOLIDATION_SCORE};
use api::names::values::{APPROVED, REJECTED};
use api::nodepool::ConsolidationPolicy;
use cluster::costs::{self, Costs};
use runtime::events::About;

use crate::disruption::candidate::Candidate;
use crate::disruption::decision::{Measure, Notice};
use crate::disruption::scene::Scene;

/// How much dearer, relatively, a disruption may be than what it saves.
const K: i32 = 2;
const THRESHOLD: f64 = 0.5;

/// What pools cost, and what disrupting them would; only of pools that ask for a balance.
#[derive(Debug, Default)]
pub(super) struct Totals(BTreeMap<Box<str>, Total>);

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    cost: f64,
    disruption: f64,
}

impl Totals {
    /// The totals of the pools of some candidates.
    pub(super) fn new(scene: &Scene, candidates: &[Candidate]) -> Self {
        let asking: BTreeSet<&str> =
            candidates.iter().filter(|it| is_balanced(it)).map(Candidate::pool_name).collect();
        let mut totals = BTreeMap::<Box<str>, Total>::new();
        if asking.is_empty() {
            return Self(totals);
        }
        let costs = Costs { pod_deletion_cost: !scene.settings().gates.pod_deletion_cost_management };
        let by_id: BTreeMap<&str, &Candidate> = candidates.iter().map(|it| (&*it.provider_id, it)).collect();
        for node in scene.state().state_nodes().iter().filter(|node| asking.contains(node.pool())) {
            let total = totals.entry(node.pool().into()).or_default();
            let types = scene.types().get(node.pool());
            total.cost += types.map_or(0.0, |types| costs::price(node, types));
            let cost = || {
                let name = node.node.map_or("", |node| &node.metadata.name);
                costs.reschedule_disruption(scene.state().pods_on(name).map(AsRef::as_ref))
            };
            // What moving its pods costs does not depend on whether the node may go at the moment.
            total.disruption += by_id.get(node.provider_id()).map_or_else(cost, |candidate| candidate.cost);
        }
        Self(totals)
    }
}

fn is_balanced(candidate: &Candidate) -> bool {
    candidate.pool.spec.disruption.consolidation_policy == ConsolidationPolicy::Balanced
}

/// How a move looks to one pool.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Score {
    value: f64,
    /// Parts of the pool's cost and of its disruption.
    savings: f64,
    disruption: f64,
}

impl Score {
    fn is_approved(self) -> bool {
        self.value >= THRESHOLD
    }
}

/// What a pool thinks of a saving of its own and the cost of the disruption.
fn score(total: Total, savings: f64, disruption: f64) -> Option<Score> {
    if total.cost <= 0.0 || total.disruption <= 0.0 {
        return None;
    }
    let (savings, disruption) = (savings / total.cost, disruption / total.disruption);
    let value = if savings <= 0.0 {
        0.0
    } else if disruption <= 0.0 {
        f64::INFINITY
    } else {
        savings / disruption
    };
    Some(Score { value, savings, disruption })
}

/// The pools of a move that ask for a balance, each with what it thinks; nothing where that cannot be said.
fn scores<'c>(
    all: &'c [Candidate],
    chosen: &[usize],
    savings: f64,
    totals: &Totals,
) -> BTreeMap<&'c str, (&'c Candidate, Option<Score>)> {
    let mut pools = BTreeMap::<&str, Vec<&Candidate>>::new();
    for candidate in chosen.iter().map(|index| &all[*index]) {
        pools.entry(candidate.pool_name()).or_default().push(candidate);
    }
    let price = |of: &[&Candidate]| of.iter().map(|it| it.price).sum::<f64>();
    let whole: f64 = pools.values().map(|of| price(of)).sum();
    let several = pools.len() > 1;
    let balanced = pools.into_iter().filter(|(_, of)| is_balanced(of[0]));
    let scored = balanced.map(|(name, of)| {
        // Where several pools lose nodes, each has saved what its nodes are of the price.
        let share = if several && whole > 0.0 { price(&of) / whole } else { 1.0 };
        let disruption = of.iter().map(|it| it.cost).sum();
        let total = totals.0.get(name);
        (name, (of[0], total.and_then(|total| score(*total, savings * share, disruption))))
    });
    scored.collect()
}

/// Whether every pool that asks for a balance approves of a move.
pub(super) fn approves(all: &[Candidate], chosen: &[usize], savings: f64, totals: &Totals) -> bool {
    let scores = scores(all, chosen, savings, totals);
    !chosen.is_empty() && scores.values().all(|(_, score)| score.is_some_and(Score::is_approved))
}

/// Why a pool that asks for a balance keeps a node that could go.
pub(super) fn refusal(all: &[Candidate], index: usize, savings: f64, totals: &Totals) -> String {
    let pool = all[index].pool_name();
    let score = scores(all, &[index], savings, totals).into_values().find_map(|(_, score)| score);
    let detail = score.map_or("nobody knows what the NodePool costs".to_owned(), |score| {
        let (savings, disruption) = (score.savings * 100.0, score.disruption * 100.0);
        let value = score.value;
        format!(
            "score {value:.2} < threshold {THRESHOLD:.2}, savings {savings:.1}%, disruption {disruption:.1}%"
        )
    });
    format!(
        "Too little would be saved for NodePool {pool:?}, whose consolidation policy is Balanced ({detail})"
    )
}

/// What is told about a move.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) measures: Vec<Measure>,
    pub(super) notices: Vec<Notice>,
}

/// What is told about a move that was weighed, whether it is carried out or not.
pub(super) fn moves(all: &[Candidate], chosen: &[usize], savings: f64, totals: &Totals) -> Told {
    let mut told = Told::default();
    let scores = scores(all, chosen, savings, totals);
    let is_approved = scores.values().all(|(_, score)| score.is_some_and(Score::is_approved));
    let pools: BTreeMap<&str, &Candidate> =
        chosen.iter().map(|index| (all[*index].pool_name(), &all[*index])).collect();
    for (pool, candidate) in pools {
        let policy = policy(candidate.pool.spec.disruption.consolidation_policy);
        let labels = [decision(is_approved), pool, policy].map(Into::into).to_vec();
        told.measures.push(Measure::Add(&CONSOLIDATION_MOVES, labels, 1.0));
    }
    for (pool, (candidate, score)) in scores {
        let Some(score) = score else { continue };
        let policy = policy(candidate.pool.spec.disruption.consolidation_policy);
        let labels = [decision(score.is_approved()), pool, policy].map(Into::into).to_vec();
        told.measures.push(Measure::Observe(&CONSOLIDATION_SCORE, labels, score.value));
        if !score.is_approved() {
            continue;
        }
        let message = format!(
            "score {:.2} >= threshold {THRESHOLD:.2} (k: {K}, savings {:.1}%, disruption {:.1}%)",
            score.value,
            score.savings * 100.0,
            score.disruption * 100.0
        );
        if chosen.len() == 1 {
            told.notices.extend(candidate.notices(&CONSOLIDATION_APPROVED, &message, ""));
        } else {
            let about = About::object(&*candidate.pool);
            let event = &CONSOLIDATION_APPROVED;
            told.notices.push(Notice { event, about, message, repeats: String::new() });
        }
    }
    told
}

const fn decision(is_approved: bool) -> &'static str {
    if is_approved { APPROVED } else { REJECTED }
}

const fn policy(policy: ConsolidationPolicy) -> &'static str {
    match policy {
        ConsolidationPolicy::WhenEmpty => "WhenEmpty",
        ConsolidationPolicy::WhenEmptyOrUnderutilized => "WhenEmptyOrUnderutilized",
        ConsolidationPolicy::Balanced => "Balanced",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: Total = Total { cost: 10.0, disruption: 100.0 };

    #[test]
    fn a_saving_is_worth_half_of_what_it_costs_relatively() {
        for (savings, disruption, expected) in [
            // Half of the price for the whole disturbance.
            (5.0, 100.0, Some(0.5)),
            (1.0, 10.0, Some(1.0)),
            (0.25, 10.0, Some(0.25)),
            (0.0, 10.0, Some(0.0)),
            (-1.0, 10.0, Some(0.0)),
            (1.0, 0.0, Some(f64::INFINITY)),
        ] {
            let found = score(POOL, savings, disruption).map(|score| score.value);
            assert_eq!(found, expected, "{savings} for {disruption}");
        }
    }

    #[test]
    fn a_pool_that_costs_nothing_approves_of_nothing() {
        for total in [Total { cost: 0.0, ..POOL }, Total { disruption: 0.0, ..POOL }] {
            assert_eq!(score(total, 1.0, 1.0), None);
        }
    }

    #[test]
    fn the_score_does_not_depend_on_the_size_of_the_pool() {
        let large = Total { cost: POOL.cost * 7.0, disruption: POOL.disruption * 7.0 };
        let (small, large) = (score(POOL, 1.0, 8.0), score(large, 7.0, 56.0));
        assert!((small.unwrap().value - large.unwrap().value).abs() < 1e-12);
    }
}
