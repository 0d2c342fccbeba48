//! What would be disrupted now, without doing it. Entries: [`preview`], [`without_nodes`].

mod without;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::{CONSOLIDATABLE, DRIFTED};
use api::nodeclaim::NodeClaim;
use api::nodepool::DisruptionReason;
use api::validation::budget::UNLIMITED;
use cloud::repair::Policies;
use cluster::buffers;
use cluster::costs::{self, Costs};
use cluster::eligibility::is_provisionable;
use cluster::snapshot::{self, InstanceTypes};
use cluster::state::{Object, Seen, State};
use cluster::state_node::StateNode;
use engine::solve::solve;
use jiff::Timestamp;
use runtime::Settings;

use super::budget::budgets;
use super::candidate::Candidate;
use super::command::Command;
use super::glance::{Look, glance};
use super::leftovers::{self, Leftovers};
use super::repair::Repair;
use super::scene::Scene;
use super::stay::{Kept, Stay, Why};
use super::{Class, Method, methods};
use crate::capacity_buffer::room::placement;
use crate::catalogue::Types;
use crate::node_claim_disruption::quiet::{Quiet, quiet};
use crate::provisioner;
use crate::provisioner::outcome::nominated;
use crate::static_capacity::node_limit;
pub use without::{Unknown, Without, without_nodes};

/// What would be disrupted now. Every node of a claim is in a move or kept.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// What would be done, in this order.
    pub moves: Vec<Move>,
    /// Nodes that stay, with what keeps them, by the reason for which they could go.
    pub kept: BTreeMap<String, Keeps>,
    /// What budgets allow, by pool and reason.
    pub budgets: Vec<Allowance>,
    /// What all nodes of pools cost per hour.
    pub price: f64,
}

/// What stands for any reason.
const ANY: &str = "";

/// What keeps a node, for each reason for which it could go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keeps(Vec<(&'static str, Why)>);

impl Keeps {
    /// What keeps a node that nothing is known of.
    fn unknown() -> Self {
        let text = "Nothing was found that it would have to go for".to_owned();
        Self(vec![(ANY, Why { text, detail: String::new() })])
    }

    /// Replaces what was said for a reason. That others rely on a node by now is no news where something else keeps it.
    fn set(&mut self, reason: &'static str, why: &Stay) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some(_) if matches!(why, Stay::Taken) => {}
            Some((_, known)) => *known = why.shown(),
            None => self.0.push((reason, why.shown())),
        }
    }

    /// What is said, each thing once, with the reasons that it is said for; there are none with what counts for all.
    pub fn all(&self) -> Vec<(Vec<&'static str>, &Why)> {
        let mut all: Vec<(Vec<&'static str>, &Why)> = Vec::new();
        for (reason, why) in &self.0 {
            match all.iter_mut().find(|(_, known)| *known == why) {
                Some((reasons, _)) => reasons.push(reason),
                None => all.push((vec![reason], why)),
            }
        }
        let is_one = all.len() == 1;
        for (reasons, _) in &mut all {
            if is_one || reasons.contains(&ANY) {
                reasons.clear();
            }
        }
        all
    }
}

impl std::fmt::Display for Keeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (reasons, why)) in self.all().into_iter().enumerate() {
            let separator = if place == 0 { "" } else { "; " };
            let colon = if reasons.is_empty() { "" } else { ": " };
            write!(f, "{separator}{}{colon}{why}", reasons.join(", "))?;
        }
        Ok(())
    }
}

/// Nodes that would go together.
#[derive(Clone, Debug)]
pub struct Move {
    /// Why.
    pub reason: &'static str,
    /// What has made them drift, or what is broken.
    pub causes: BTreeSet<String>,
    /// What is done: `delete`, `replace`, ...
    pub decision: &'static str,
    /// The nodes.
    pub nodes: Vec<String>,
    /// Types that the new nodes can become, the cheapest first.
    pub replacements: Vec<Vec<String>>,
    /// What is saved per hour.
    pub savings: f64,
    /// How many pods are evicted.
    pub evictions: usize,
}

/// How many nodes of a pool may be disrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The pool.
    pub pool: String,
    /// For what.
    pub reason: &'static str,
    /// How many at the same time; nothing if there is no limit.
    pub allowed: Option<i32>,
    /// Which budget says so, or why one allows nothing; empty if none does.
    pub by: String,
    /// How many are disrupted.
    pub disrupting: usize,
    /// How many nodes it has.
    pub nodes: usize,
}

/// What would be disrupted now, as far as budgets allow, for every reason; broken nodes only with the policies that
/// say which are.
pub fn preview(
    state: &State,
    types: &Types,
    settings: &Arc<Settings>,
    repair: Option<Arc<Policies>>,
    now: Timestamp,
) -> Preview {
    let mut state = settled(state, now);
    expect_pods(&mut state, types, settings, now);
    let mut all = methods(settings.gates);
    if let Some(policies) = repair {
        all.insert(0, Arc::new(Repair::new(policies)));
    }
    let mut preview = Preview { price: price(&state, types), ..Preview::default() };
    for method in &all {
        preview.allow(&state, &**method, now);
    }
    let costs = Costs { pod_deletion_cost: !settings.gates.pod_deletion_cost_management };
    let (mut leaving, mut relied_on) = (BTreeSet::new(), BTreeSet::new());
    for (position, method) in all.iter().enumerate() {
        loop {
            let look = Look { types, taken: &leaving, relied_on: &relied_on, leaving: &leaving, costs, now };
            let mut seen = glance(&state, all.iter().map(AsRef::as_ref), look);
            let view = std::mem::take(&mut seen.views[position]);
            // What keeps a node from a graceful disruption keeps it from most.
            let of_class = if method.class() == Class::Graceful { ANY } else { method.reason().text() };
            preview.keep(of_class, seen.stays.remove(&method.class()).unwrap_or_default());
            preview.keep(method.reason().text(), view.stays);
            let mut budgets = view.budgets;
            if view.candidates.is_empty() {
                break;
            }
            let scene = Scene::new(&state, types, settings, &leaving, now);
            let decision = method.decide(&scene, view.candidates, &mut budgets);
            preview.keep(method.reason().text(), decision.stays);
            if decision.commands.is_empty() {
                break;
            }
            for command in decision.commands {
                leaving.extend(command.provider_ids().map(Into::into));
                relied_on.extend(command.destinations.iter().map(|node| node.origin.provider_id.clone()));
                make_room(&mut state, &command);
                preview.moves.push(shown(&command));
            }
        }
    }
    preview.complete(&state);
    preview
}

/// How many nodes there is something to do about, as the methods see it: all that a pass works out while nothing has
/// changed since it found nothing to do.
pub fn eligible(state: &State, types: &Types, settings: &Settings, now: Timestamp) -> usize {
    let all = methods(settings.gates);
    let costs = Costs { pod_deletion_cost: !settings.gates.pod_deletion_cost_management };
    let none = BTreeSet::new();
    if !state.is_synced(now) || leftovers::decide(state, &none) != Leftovers::default() {
        return 0;
    }
    let look = Look { types, taken: &none, relied_on: &none, leaving: &none, costs, now };
    let seen = glance(state, all.iter().map(AsRef::as_ref), look);
    seen.views.iter().map(|view| view.candidates.len()).max().unwrap_or_default()
}

impl Preview {
    /// Notes what keeps nodes from going for a reason. What was said of that before does not hold any more.
    fn keep(&mut self, reason: &'static str, stays: Vec<Kept>) {
        for Kept { node, why } in stays {
            self.kept.entry(node.into()).or_default().set(reason, &why);
        }
    }

    /// Notes what the pools that have nodes allow for the reason of a method.
    fn allow(&mut self, state: &State, method: &dyn Method, now: Timestamp) {
        let reason = method.reason();
        if self.budgets.iter().any(|known| known.reason == reason.text()) {
            return;
        }
        let all = budgets(state, &state.state_nodes(), reason.0, &BTreeSet::new(), now);
        let of_pools = all.iter().filter(|(_, budget)| budget.nodes > 0).map(|(pool, budget)| Allowance {
            pool: pool.to_string(),
            reason: reason.text(),
            allowed: (budget.allowed != UNLIMITED).then_some(budget.allowed),
            by: budget.explained(),
            disrupting: budget.disrupting,
            nodes: budget.nodes,
        });
        self.budgets.extend(of_pools);
    }

    /// Sees to it that every node of a claim either goes or is kept.
    fn complete(&mut self, state: &State) {
        let going: BTreeSet<&String> = self.moves.iter().flat_map(|each| &each.nodes).collect();
        self.kept.retain(|node, _| !going.contains(node));
        for node in state.state_nodes().iter().filter(|node| node.is_managed()) {
            let name = name(node);
            if !going.contains(&name) {
                self.kept.entry(name).or_insert_with(Keeps::unknown);
            }
        }
    }
}

/// The name of a node, or of its claim if there is none.
fn name(node: &StateNode<'_>) -> String {
    node.node.map_or_else(|| node.name().to_owned(), |node| node.metadata.name.to_string())
}

/// What comes for a node of a pool with a fixed number of nodes counts in its limit beside it.
fn make_room(state: &mut State, command: &Command) {
    for candidate in &command.candidates {
        if candidate.pool.spec.replicas.is_some() && !command.replacements.is_empty() {
            state.reserve(candidate.pool_name(), node_limit(&candidate.pool), 1);
        }
    }
}

fn shown(command: &Command) -> Move {
    // What a pool with a fixed number of nodes gets is not chosen here; as a rule it is what it had.
    let is_chosen = command.replacements.iter().all(|launch| !launch.new.types.is_empty());
    Move {
        reason: command.reason.text(),
        causes: command.candidates.iter().filter_map(|candidate| cause(command, candidate)).collect(),
        decision: command.decision(),
        nodes: command.candidates.iter().map(|it| it.name().to_owned()).collect(),
        replacements: command.replacements.iter().map(|launch| launch.new.types.clone()).collect(),
        savings: if is_chosen { command.savings() } else { 0.0 },
        evictions: command.pod_count(),
    }
}

/// What has made a node drift, or what is broken.
fn cause(command: &Command, candidate: &Candidate) -> Option<String> {
    match command.reason.0 {
        DisruptionReason::Drifted => Some(candidate.claim.condition(DRIFTED)?.reason.clone()),
        DisruptionReason::Unhealthy => {
            let resolution = &candidate.repaired.as_ref()?.resolution;
            Some(format!("{}={}", resolution.condition, resolution.status))
        }
        DisruptionReason::Empty | DisruptionReason::Underutilized => None,
    }
}

/// What all nodes of pools cost per hour.
fn price(state: &State, types: &Types) -> f64 {
    let nodes = state.state_nodes();
    let prices = nodes.iter().filter_map(|node| Some(costs::price(node, types.get(node.pool())?)));
    prices.sum()
}

/// The state in which every node that was quiet for long enough says so. Files need not say it.
pub fn settled(state: &State, now: Timestamp) -> State {
    let mut settled = state.clone();
    for claim in state.node_claims.values() {
        let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(api::names::labels::NODEPOOL));
        let Some(pool) = pool.and_then(|name| state.node_pools.named(name)) else { continue };
        if pool.spec.replicas.is_some() || quiet(claim, pool, now) != Quiet::Yes {
            continue;
        }
        let mut after = NodeClaim::clone(claim);
        // No write has made it, and as old as the one that is known it would not be taken in.
        after.metadata.resource_version = None;
        if Conditions::of(&mut after, now).set_true(CONSOLIDATABLE) {
            settled.observe(Seen::Applied(Object::NodeClaim(Arc::new(after))));
        }
    }
    settled
}

/// Notes what the provisioner would: on which nodes pods that wait are expected, and which keep room for buffers.
fn expect_pods(state: &mut State, types: &Types, settings: &Settings, now: Timestamp) {
    let rooms = if settings.gates.capacity_buffer { buffers::rooms(state) } else { Vec::new() };
    if rooms.is_empty() && !state.unbound_pods().any(|pod| is_provisionable(pod)) {
        return;
    }
    let mut options = snapshot::Options::new(state.provider(), &[]);
    options.instance_types = InstanceTypes::ByPool(types);
    options.scheduler_config = settings.scheduler_config.clone();
    options.rooms = &rooms;
    let built = snapshot::build(&*state, &options, now);
    let plan = solve(&built.snapshot, &provisioner::options(settings));
    let until = now + settings.nomination_window();
    for node in nominated(&built, &plan) {
        state.nominate(&node.origin.provider_id, until);
    }
    state.set_buffer_pods(placement(&built, &plan).instances);
}

#[cfg(test)]
mod tests;
