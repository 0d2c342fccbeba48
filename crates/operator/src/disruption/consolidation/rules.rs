//! What consolidation keeps to: budgets of pools and of pods, and whether it is worth it.

use std::collections::BTreeMap;

use cluster::eligibility::is_reschedulable;
use cluster::objects::{Pod, PodDisruptionBudget};
use cluster::pod_disruption_budgets;
use cluster::state::State;
use cluster::state_node::StateNode;
use engine::consolidate;
use parking_lot::Mutex;

use super::Allowed;
use super::balanced::{self, Totals};
use crate::disruption::budget::{Budget, Budgets};
use crate::disruption::candidate::Candidate;
use crate::disruption::payback;
use crate::disruption::scene::Scene;

/// What consolidation keeps to.
pub(super) struct Rules<'r> {
    candidates: &'r [Candidate],
    totals: &'r Totals,
    spot_to_spot: bool,
    /// The pool of each candidate, and how many nodes of it may go.
    pools: Vec<usize>,
    left: Vec<usize>,
    /// For each candidate, how many of its pods a budget of pods covers.
    covered: Vec<Vec<(usize, i32)>>,
    /// How many pods each budget of pods lets go, and how many are to go anyway.
    allowed: Vec<i32>,
    used: Vec<i32>,
    /// For each candidate, whether it makes way for no new one: it may have yet to pay for itself.
    held: Vec<bool>,
    /// What was last found not to be worth it, and what it would have saved.
    refused: Mutex<Option<(Vec<usize>, f64)>>,
}

impl<'r> Rules<'r> {
    pub(super) fn new(
        candidates: &'r [Candidate],
        budgets: &Budgets,
        scene: &Scene,
        totals: &'r Totals,
        moves: Allowed,
    ) -> Self {
        let mut names = BTreeMap::<&str, usize>::new();
        let mut left = Vec::new();
        let pools = candidates.iter().map(|candidate| {
            let name = candidate.pool_name();
            *names.entry(name).or_insert_with(|| {
                left.push(budgets.get(name).map_or(0, Budget::left));
                left.len() - 1
            })
        });
        let pools = pools.collect();
        let of_pods = pod_disruption_budgets::Budgets::new(
            scene.state().pod_disruption_budgets.values().map(AsRef::as_ref),
        );
        let mut allowed = Vec::new();
        let mut known = BTreeMap::<(&str, &str), usize>::new();
        let covered = candidates.iter().map(|candidate| {
            let mut covered = BTreeMap::<usize, i32>::new();
            for budget in candidate.pods.iter().flat_map(|pod| of_pods.holding(pod, scene.now)) {
                let position = *known.entry(key(budget)).or_insert_with(|| {
                    allowed.push(budget.status.disruptions_allowed);
                    allowed.len() - 1
                });
                *covered.entry(position).or_default() += 1;
            }
            covered.into_iter().collect()
        });
        let covered = covered.collect();
        let mut used = vec![0; allowed.len()];
        if !used.is_empty() {
            let budgets = leaving_pods(scene.state()).flat_map(|pod| of_pods.holding(pod, scene.now));
            budgets.filter_map(|budget| known.get(&key(budget))).for_each(|position| used[*position] += 1);
        }
        let spot_to_spot = scene.settings().gates.spot_to_spot_consolidation;
        let only_goes = |candidate: &Candidate| {
            moves == Allowed::Deletions || payback::is_held(&candidate.claim, scene.now)
        };
        let held = candidates.iter().map(only_goes).collect();
        let refused = Mutex::default();
        Self { candidates, totals, spot_to_spot, pools, left, covered, allowed, used, held, refused }
    }

    /// Notes that a candidate goes.
    pub(super) fn note_gone(&mut self, index: usize) {
        let left = &mut self.left[self.pools[index]];
        *left = left.saturating_sub(1);
        for (budget, pods) in &self.covered[index] {
            self.used[*budget] = self.used[*budget].saturating_add(*pods);
        }
    }

    /// What was last found not to be worth it, and what it would have saved.
    pub(super) fn refused(&self) -> Option<(Vec<usize>, f64)> {
        self.refused.lock().clone()
    }
}

/// What tells a budget of pods from others.
fn key(budget: &PodDisruptionBudget) -> (&str, &str) {
    (budget.metadata.namespace(), &budget.metadata.name)
}

/// Pods that have to move because their node is on its way out.
fn leaving_pods(state: &State) -> impl Iterator<Item = &Pod> {
    let nodes = state.state_nodes().into_iter().filter(StateNode::is_marked_for_deletion);
    let names = nodes.filter_map(|node| Some(&*node.node?.metadata.name));
    names.flat_map(|name| state.pods_on(name)).map(AsRef::as_ref).filter(|pod| is_reschedulable(pod))
}

impl consolidate::Rules for Rules<'_> {
    fn spot_to_spot(&self) -> bool {
        self.spot_to_spot
    }

    /// Budgets of pools count; and where several nodes go, what budgets of pods let go at once: nodes that drain at
    /// the same time would only wait for each other.
    fn may_go(&self, candidates: &[usize]) -> bool {
        let mut left = self.left.clone();
        let mut used = self.used.clone();
        for index in candidates {
            let pool = &mut left[self.pools[*index]];
            if *pool == 0 {
                return false;
            }
            *pool -= 1;
            for (budget, pods) in &self.covered[*index] {
                let is_shared = used[*budget] > 0 || candidates.len() > 1;
                used[*budget] = used[*budget].saturating_add(*pods);
                if is_shared && used[*budget] > self.allowed[*budget] {
                    return false;
                }
            }
        }
        true
    }

    /// A node with more pods than a budget of pods lets go drains bit by bit, and would keep all others that drain with
    /// it.
    fn may_join(&self, candidate: usize) -> bool {
        let fits =
            |(budget, pods): &(usize, i32)| self.used[*budget].saturating_add(*pods) <= self.allowed[*budget];
        self.covered[candidate].iter().all(fits)
    }

    fn may_be_replaced(&self, candidate: usize) -> bool {
        !self.held[candidate]
    }

    fn is_worth(&self, candidates: &[usize], savings: f64) -> bool {
        let is_worth = balanced::approves(self.candidates, candidates, savings, self.totals);
        if !is_worth {
            *self.refused.lock() = Some((candidates.to_vec(), savings));
        }
        is_worth
    }
}
