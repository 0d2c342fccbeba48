//! Removes nodes whose pods fit elsewhere, and replaces nodes by cheaper ones.
//!
//! ```text
//! multi   several nodes go together, with at most one new node for all of them
//! single  one node goes, with at most one new node for it; every node is looked at, on all cores
//! ```
//!
//! Whatever is decided in one pass is possible together: each step is looked at as if those before had happened, and
//! what takes the pods of one stays where it is.

mod balanced;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::CONSOLIDATABLE;
use api::names::labels;
use api::names::values::{CONSOLIDATION_MULTI, CONSOLIDATION_SINGLE};
use api::nodepool::{ConsolidationPolicy, DisruptionReason};
use cluster::costs;
use cluster::snapshot::Built;
use cluster::state::State;
use engine::consolidate::{self, Candidate as Node, Keep, Rules as _, Verdict};
use engine::model::NodeId;
use engine::solve::{Dear, Place, Question, Simulation};
use jiff::SignedDuration;

use super::budget::{Budget, Budgets};
use super::candidate::{self, Candidate};
use super::command::Command;
use super::decision::{Cause, Decision, Invalid};
use super::oracle::{self, Oracle};
use super::scene::{Ask, Scene};
use super::stay::Stay;
use super::{Class, Method, Reason, payback};
use crate::provisioner::outcome::Nominated;
use crate::text::sentence;
use crate::threads::threads;
use balanced::Totals;
use rules::Rules;

/// How long what was decided must hold before it is done.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a node must have been consolidatable to go instead of another one.
const QUIET: SignedDuration = SignedDuration::from_secs(10);
/// Why a node stays whose pods would have to wait for those of others.
const POD_BUDGETS: &str =
    "PodDisruptionBudgets do not let pods of the node go at the same time as those of other nodes that go";
/// So many nodes keep a core busy for long enough to be worth one.
const NODES_PER_THREAD: usize = 16;

/// How many nodes go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consolidation {
    /// Several.
    Multi,
    /// One.
    Single,
}

impl Method for Consolidation {
    fn reason(&self) -> Reason {
        Reason(DisruptionReason::Underutilized)
    }

    fn class(&self) -> Class {
        Class::Graceful
    }

    fn consolidation_type(&self) -> &'static str {
        match self {
            Self::Multi => CONSOLIDATION_MULTI,
            Self::Single => CONSOLIDATION_SINGLE,
        }
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// The best nodes of a pool are those that take the pods of others just now. Until it is known what becomes of
    /// them, worse ones would go in their stead.
    fn settles(&self) -> bool {
        true
    }

    fn accepts(&self, _: &State, candidate: &Candidate) -> Result<(), Option<Stay>> {
        let (spec, pool) = (&candidate.pool.spec, candidate.pool_name());
        if spec.replicas.is_some() {
            return Err(Some(Stay::Static(Arc::clone(&candidate.pool))));
        }
        let refused = |why: String| Err(Some(Stay::Unconsolidatable(why)));
        if !candidate.type_known {
            let type_ = candidate.label(labels::INSTANCE_TYPE);
            return refused(format!("Instance Type {type_:?} not found"));
        }
        for key in [labels::CAPACITY_TYPE, labels::ZONE] {
            if candidate.label(key).is_empty() {
                return refused(format!("Node does not have label {key:?}"));
            }
        }
        if spec.disruption.consolidate_after.duration().is_none() {
            return refused(format!("NodePool {pool:?} has consolidation disabled"));
        }
        if candidate.is_empty() {
            return Err(None);
        }
        if spec.disruption.consolidation_policy == ConsolidationPolicy::WhenEmpty {
            return refused(format!(
                "NodePool {pool:?} has consolidation policy WhenEmpty, but node is not empty"
            ));
        }
        candidate.check_quiet().map_err(Some)
    }

    fn decide(&self, scene: &Scene, candidates: Vec<Candidate>, budgets: &mut Budgets) -> Decision {
        self.choose(scene, candidates, budgets, Allowed::Replacements)
    }

    /// What was decided holds if its nodes are still candidates, budgets still allow it, and a look at the cluster as
    /// it is now comes to the same result. Nodes that only go, with nothing new, may become fewer, if the rest is
    /// still worth it.
    fn validate(
        &self,
        scene: &Scene,
        mut command: Command,
        candidates: Vec<Candidate>,
        budgets: &mut Budgets,
    ) -> Result<Command, Invalid> {
        let names: BTreeSet<&str> = candidates.iter().map(Candidate::name).collect();
        let before = command.candidates.len();
        command.candidates.retain(|it| names.contains(it.name()));
        // A new node is for all of them or none.
        let is_enough = |command: &Command| {
            let count = command.candidates.len();
            count > 0 && (count == before || command.replacements.is_empty())
        };
        if !is_enough(&command) {
            let lost = before - command.candidates.len();
            let wrong = format!("validating candidates, {lost} candidates are no longer valid");
            return Err(Invalid::new(Cause::Churn, wrong));
        }
        let left = budgets.clone();
        let mut take = |it: &Candidate| budgets.get_mut(it.pool_name()).is_some_and(Budget::take);
        let allowed = command.candidates.iter().filter(|it| take(it)).count();
        if allowed < command.candidates.len() {
            let wrong = "validating candidates, a budget no longer allows the disruption";
            return Err(Invalid::new(Cause::Budget, wrong));
        }
        keep_within_pod_budgets(scene, &mut command, &candidates, &left);
        if !is_enough(&command) {
            let wrong = "validating candidates, a PodDisruptionBudget no longer allows the disruption";
            return Err(Invalid::new(Cause::Budget, wrong));
        }
        if command.candidates.len() < before && !is_worth(scene, &command, &candidates) {
            let wrong = "validating candidates, what is left of them is not worth it";
            return Err(Invalid::new(Cause::Churn, wrong));
        }
        command.destinations = check(scene, &mut command)?;
        if let Some(better) = self.better(&command, scene, candidates, left) {
            (command.candidates, command.destinations) = (better.candidates, better.destinations);
        }
        Ok(command)
    }
}

/// Leaves nodes out of a command as long as budgets of pods do not let all of them go at once, with the pods that
/// candidates have now.
fn keep_within_pod_budgets(
    scene: &Scene,
    command: &mut Command,
    candidates: &[Candidate],
    budgets: &Budgets,
) {
    let totals = Totals::default();
    let rules = Rules::new(candidates, budgets, scene, &totals, Allowed::Deletions);
    let places: BTreeMap<&str, usize> = candidates.iter().map(Candidate::name).zip(0..).collect();
    let mut going = Vec::new();
    let is_alone = command.candidates.len() == 1;
    command.candidates.retain(|candidate| {
        let Some(index) = places.get(candidate.name()) else { return false };
        if !is_alone && !rules.may_join(*index) {
            return false;
        }
        going.push(*index);
        let goes = rules.may_go(&going);
        if !goes {
            going.pop();
        }
        goes
    });
}

/// Whether it is worth it to let the nodes of a command go, as candidates are now.
fn is_worth(scene: &Scene, command: &Command, candidates: &[Candidate]) -> bool {
    let planned: BTreeSet<&str> = command.provider_ids().collect();
    let chosen: Vec<usize> =
        (0..candidates.len()).filter(|index| planned.contains(&*candidates[*index].provider_id)).collect();
    let savings = chosen.iter().map(|index| candidates[*index].price).sum();
    balanced::approves(candidates, &chosen, savings, &Totals::new(scene, candidates))
}

/// Whether what was decided is still possible, and which nodes would take the pods.
fn check(scene: &Scene, command: &mut Command) -> Result<Vec<Nominated>, Invalid> {
    let all: Vec<&Candidate> = command.candidates.iter().collect();
    let simulated = scene.without(&all, &Ask { consolidation: true, ..Ask::default() });
    if !simulated.is_complete() {
        let wrong = format!("validating command, {}", simulated.summary());
        return Err(Invalid::new(Cause::Scheduling, wrong));
    }
    let wrong = match (&mut *command.replacements, &*simulated.launches) {
        ([], []) => None,
        ([planned], [now]) => {
            let known: BTreeSet<&String> = now.new.types.iter().collect();
            let gone = planned.new.types.iter().filter(|name| !known.contains(name)).count();
            planned.confirm(now);
            match gone {
                0 => scene.refusal(std::slice::from_ref(planned)),
                _ => Some("replacement instance types are no longer possible".to_owned()),
            }
        }
        (planned, now) => Some(format!("{} new nodes are needed, not {}", now.len(), planned.len())),
    };
    match wrong {
        Some(wrong) => Err(Invalid::new(Cause::Scheduling, format!("validating command, {wrong}"))),
        None => Ok(simulated.destinations),
    }
}

/// What may be done about nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    /// They may go.
    Deletions,
    /// They may go, and make way for new ones.
    Replacements,
}

impl Consolidation {
    fn choose(
        self,
        scene: &Scene,
        mut candidates: Vec<Candidate>,
        budgets: &mut Budgets,
        allowed: Allowed,
    ) -> Decision {
        candidate::by_savings(&mut candidates);
        let mut oracle = scene.oracle();
        let totals = Totals::new(scene, &candidates);
        let mut decision = Decision::default();
        candidates.retain(|candidate| {
            let Some(why) = oracle.stuck(candidate) else { return true };
            if self == Self::Single {
                decision.keep(candidate, Stay::Unconsolidatable(sentence(&why)));
            }
            false
        });
        let nodes = candidates.iter().filter_map(|candidate| oracle.node(candidate)).collect();
        let mut search = Search {
            method: &self,
            allowed,
            candidates: &candidates,
            nodes,
            totals: &totals,
            relied: BTreeSet::new(),
            is_temporary: false,
            decision,
        };
        match self {
            Self::Multi => search.multi(&mut oracle, scene, budgets),
            Self::Single => search.single(&mut oracle, scene, budgets),
        }
        let Search { mut decision, is_temporary, .. } = search;
        decision.nothing = decision.commands.is_empty() && !is_temporary;
        decision
    }

    /// What is to be done instead of a command that only lets nodes go, if that saves more for what it costs: pods
    /// that stop in the meantime leave nodes behind that are cheaper to empty, and nodes that were promised to pods
    /// are free again. No more nodes of a pool go than before, and none that has become consolidatable just now.
    fn better(
        self,
        command: &Command,
        scene: &Scene,
        mut candidates: Vec<Candidate>,
        mut budgets: Budgets,
    ) -> Option<Command> {
        if !command.replacements.is_empty() {
            return None;
        }
        let planned: BTreeSet<&str> = command.provider_ids().collect();
        // They are compared as they are now, not as they were.
        let ratio_now = ratio(candidates.iter().filter(|it| planned.contains(&*it.provider_id)));
        candidates.retain(|it| {
            let condition = it.claim.condition(CONSOLIDATABLE);
            condition.is_some_and(|it| scene.now.duration_since(it.last_transition_time.0) >= QUIET)
        });
        for (pool, budget) in &mut budgets {
            budget.keep(command.candidates.iter().filter(|it| it.pool_name() == &**pool).count());
        }
        let commands = self.choose(scene, candidates, &mut budgets, Allowed::Deletions).commands;
        commands.into_iter().next().filter(|it| ratio(it.candidates.iter()) > ratio_now)
    }
}

/// How much is saved for what it costs if some nodes go.
fn ratio<'c>(candidates: impl Iterator<Item = &'c Candidate>) -> f64 {
    let (price, cost) = candidates.fold((0.0, 0.0), |(price, cost), it| (price + it.price, cost + it.cost));
    costs::savings_ratio(price, cost)
}

/// What is worked out for a decision.
struct Search<'c> {
    method: &'c Consolidation,
    allowed: Allowed,
    candidates: &'c [Candidate],
    nodes: Vec<Node>,
    totals: &'c Totals,
    /// Nodes that take the pods of others.
    relied: BTreeSet<NodeId>,
    /// Whether something kept nodes that may be over at any time, though nothing tells.
    is_temporary: bool,
    decision: Decision,
}

impl Search<'_> {
    /// Several nodes at once.
    fn multi(&mut self, oracle: &mut Oracle<'_>, scene: &Scene, budgets: &mut Budgets) {
        let rules = Rules::new(self.candidates, budgets, scene, self.totals, self.allowed);
        let moves = consolidate::merge(&mut oracle.simulation().clone(), &self.nodes, &rules);
        for each in moves {
            self.take(oracle, scene, budgets, &each.candidates, &rules);
        }
        // Users see how what came closest was weighed.
        if let Some((chosen, savings)) = rules.refused().filter(|_| self.decision.commands.is_empty()) {
            self.tell_scores(&chosen, savings);
        }
    }

    /// One node at a time.
    fn single(&mut self, oracle: &mut Oracle<'_>, scene: &Scene, budgets: &mut Budgets) {
        let mut rules = Rules::new(self.candidates, budgets, scene, self.totals, self.allowed);
        let threads = threads(self.nodes.len(), NODES_PER_THREAD);
        let built = oracle.built();
        let found = consolidate::examine_all(
            oracle.simulation(),
            &self.nodes,
            &rules,
            threads,
            |simulation, _, verdict| Found::new(built, simulation, verdict),
        );
        for (index, found) in found.into_iter().enumerate() {
            let candidate = &self.candidates[index];
            match found {
                Found::Goes if !rules.may_go(&[index]) => {
                    let is_held = budgets.get(candidate.pool_name()).is_none_or(|budget| budget.left() == 0);
                    let why = if is_held {
                        Stay::held(candidate, budgets, self.method.reason())
                    } else {
                        self.is_temporary = true;
                        Stay::Silent(POD_BUDGETS.to_owned())
                    };
                    self.decision.keep(candidate, why);
                }
                Found::Goes => {
                    if self.take(oracle, scene, budgets, &[index], &rules) {
                        rules.note_gone(index);
                    }
                }
                Found::Stays(why) => {
                    self.decision.keep(candidate, Stay::Unconsolidatable(why));
                }
                Found::NotYet => {
                    let why = payback::told(&candidate.claim);
                    self.decision.keep(candidate, Stay::Unconsolidatable(why));
                }
                Found::NotWorth(savings) => {
                    self.tell_scores(&[index], savings);
                    let why = balanced::refusal(self.candidates, index, savings, self.totals);
                    self.decision.keep(candidate, Stay::Silent(why));
                }
            }
        }
    }

    /// Makes nodes go, with what that takes, unless that is not possible after what was decided before; whether it is.
    ///
    /// They are looked at again: what copies of a simulation have found means nothing to the simulation itself.
    fn take(
        &mut self,
        oracle: &mut Oracle<'_>,
        scene: &Scene,
        budgets: &mut Budgets,
        chosen: &[usize],
        rules: &Rules<'_>,
    ) -> bool {
        // Pods that move should not have to move again.
        if chosen.iter().any(|index| self.relied.contains(&self.nodes[*index].node)) {
            return false;
        }
        let verdict = consolidate::examine(oracle.simulation(), &self.nodes, chosen, rules, false);
        let price = chosen.iter().map(|index| self.candidates[*index].price).sum();
        let Some(savings) = verdict.savings(price) else { return false };
        if let Verdict::Replace(claim) = &verdict
            && let Some(why) = oracle.launch(claim).and_then(|launch| scene.refusal(&[launch]))
        {
            self.is_temporary = true;
            for index in chosen {
                self.decision.keep(&self.candidates[*index], Stay::Blocked(sentence(&why)));
            }
            return false;
        }
        self.tell_scores(chosen, savings);
        let nodes: Vec<_> = chosen.iter().map(|index| self.nodes[*index].node).collect();
        let question = Question { saving: true, ..Question::without(&nodes) };
        let mut answer = oracle.simulation().adopt(&question);
        match verdict {
            Verdict::Replace(claim) => answer.claims = vec![*claim],
            Verdict::Delete => answer.claims.clear(),
            Verdict::Keep(_) => return false,
        }
        self.relied.extend(answer.places.iter().filter_map(|(_, place)| match place {
            Place::Node(node) => Some(*node),
            Place::Claim(_) => None,
        }));
        let simulated = oracle.simulated(&answer);
        let candidates: Vec<Candidate> = chosen.iter().map(|index| self.candidates[*index].clone()).collect();
        for candidate in &candidates {
            budgets.get_mut(candidate.pool_name()).map(Budget::take);
        }
        let command = Command::after(self.method, candidates, simulated, scene.now);
        if !command.replacements.is_empty() {
            self.decision.notices.extend(command.candidate_notices());
        }
        self.decision.commands.push(command);
        true
    }

    /// Counts what was found, and tells how it was weighed.
    fn tell_scores(&mut self, chosen: &[usize], savings: f64) {
        let told = balanced::moves(self.candidates, chosen, savings, self.totals);
        self.decision.measures.extend(told.measures);
        self.decision.notices.extend(told.notices);
    }
}

/// What was found about one node.
enum Found {
    /// It can go.
    Goes,
    /// It stays, and users are told why.
    Stays(String),
    /// It stays until it has paid for itself.
    NotYet,
    /// It stays: this is too little to save.
    NotWorth(f64),
}

/// What events say, around the number, of a node whose pods need several new ones.
pub(super) const MANY_CLAIMS: (&str, &str) = ("Can't remove without creating ", " candidates");

impl Found {
    fn new(built: &Built, simulation: &mut Simulation<'_>, verdict: Verdict) -> Self {
        Self::Stays(match verdict {
            Verdict::Delete | Verdict::Replace(_) => return Self::Goes,
            Verdict::Keep(Keep::NotYet) => return Self::NotYet,
            Verdict::Keep(Keep::NotWorth(savings)) => return Self::NotWorth(savings),
            Verdict::Keep(Keep::Pods(pods)) => sentence(&oracle::summary(built, simulation, &pods)),
            Verdict::Keep(Keep::ManyClaims(count)) => {
                format!("{}{count}{}", MANY_CLAIMS.0, MANY_CLAIMS.1)
            }
            Verdict::Keep(Keep::Dear(dear)) => dear_text(simulation, &dear),
        })
    }
}

fn dear_text(simulation: &mut Simulation<'_>, dear: &Dear) -> String {
    match dear {
        Dear::SpotToSpotOff => {
            "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node".to_owned()
        }
        Dear::MinValues(keys) => {
            let universe = simulation.universe();
            let names: Vec<&str> = keys.iter().map(|key| universe.key_name(*key)).collect();
            let names = names.join(" ");
            format!("Filtering by price: minValues requirement is not met for label(s) (label(s)=[{names}])")
        }
        Dear::Nothing => "Can't replace with a cheaper node".to_owned(),
        Dear::FewSpot(found) => format!(
            "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to \
             consolidate, got {found}"
        ),
    }
}

#[cfg(test)]
mod tests;
