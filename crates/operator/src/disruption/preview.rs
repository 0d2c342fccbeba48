//! What would be disrupted now, without doing it. Entries: [`preview`], [`without_nodes`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::Conditions;
use api::names::conditions::node_claim::CONSOLIDATABLE;
use api::nodeclaim::NodeClaim;
use cluster::buffers;
use cluster::costs::{self, Costs};
use cluster::eligibility::is_provisionable;
use cluster::snapshot::{self, InstanceTypes};
use cluster::state::{Object, Seen, State};
use engine::solve::solve;
use jiff::Timestamp;
use runtime::Settings;

use super::candidate::{Search, find};
use super::command::Command;
use super::decision::Notice;
use super::glance::{Look, glance};
use super::scene::{Ask, Scene};
use super::{Class, Method, methods};
use crate::capacity_buffer::room::placement;
use crate::catalogue::Types;
use crate::node_claim_disruption::quiet::{Quiet, quiet};
use crate::provisioner;
use crate::provisioner::outcome::nominated;

/// What would be disrupted now.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// What would be done, in this order.
    pub moves: Vec<Move>,
    /// Nodes that stay, with what keeps them.
    pub kept: BTreeMap<String, String>,
    /// What budgets allow, by pool and reason.
    pub budgets: Vec<Allowance>,
    /// What all nodes of pools cost per hour.
    pub price: f64,
}

/// Nodes that would go together.
#[derive(Clone, Debug)]
pub struct Move {
    /// Why.
    pub reason: &'static str,
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
    /// How many are disrupted.
    pub disrupting: usize,
    /// How many nodes it has.
    pub nodes: usize,
}

/// What happens if some nodes go.
#[derive(Clone, Debug, Default)]
pub struct Without {
    /// Types that the new nodes can become, the cheapest first.
    pub launches: Vec<Vec<String>>,
    /// Pods by the nodes that take them.
    pub moved: BTreeMap<String, Vec<String>>,
    /// Pods that have no place, with why.
    pub unplaced: BTreeMap<String, String>,
    /// What is saved per hour.
    pub savings: f64,
    /// What keeps nodes from going by themselves.
    pub kept: BTreeMap<String, String>,
}

/// What would be disrupted now, as far as budgets allow, for every reason.
pub fn preview(state: &State, types: &Types, settings: &Arc<Settings>, now: Timestamp) -> Preview {
    let mut state = settled(state, now);
    expect_pods(&mut state, types, settings, now);
    let mut preview = Preview { price: price(&state, types), ..Preview::default() };
    let all = methods(settings.gates);
    let costs = Costs { pod_deletion_cost: !settings.gates.pod_deletion_cost_management };
    let (mut leaving, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for (position, method) in all.iter().enumerate() {
        loop {
            let look = Look { types, taken: &taken, leaving: &leaving, costs, now };
            let mut seen = glance(&state, all.iter().map(AsRef::as_ref), look);
            preview.keep(seen.notices);
            let view = std::mem::take(&mut seen.views[position]);
            let mut budgets = view.budgets;
            if leaving.is_empty() || !view.candidates.is_empty() {
                preview.allow(&budgets, &**method);
            }
            if view.candidates.is_empty() {
                break;
            }
            let scene = Scene::new(&state, types, settings, &leaving, now);
            let decision = method.decide(&scene, view.candidates, &mut budgets);
            preview.keep(decision.notices);
            if decision.commands.is_empty() {
                break;
            }
            for command in decision.commands {
                leaving.extend(command.provider_ids().map(Into::into));
                taken.extend(command.provider_ids().map(Into::into));
                taken.extend(command.destinations.iter().map(|node| node.origin.provider_id.clone()));
                preview.moves.push(shown(&command));
            }
        }
    }
    let going: BTreeSet<String> = preview.moves.iter().flat_map(|each| each.nodes.clone()).collect();
    preview.kept.retain(|node, _| !going.contains(node));
    preview
}

/// How many nodes there is something to do about, as the methods see it: all that a pass works out while nothing has
/// changed since it found nothing to do.
pub fn eligible(state: &State, types: &Types, settings: &Settings, now: Timestamp) -> usize {
    let all = methods(settings.gates);
    let costs = Costs { pod_deletion_cost: !settings.gates.pod_deletion_cost_management };
    let none = BTreeSet::new();
    let look = Look { types, taken: &none, leaving: &none, costs, now };
    let seen = glance(state, all.iter().map(AsRef::as_ref), look);
    seen.views.iter().map(|view| view.candidates.len()).max().unwrap_or_default()
}

/// What would happen if some nodes went, whatever keeps them. Fails with the names of nodes that are not known.
pub fn without_nodes(
    state: &State,
    types: &Types,
    settings: &Arc<Settings>,
    names: &[String],
    now: Timestamp,
) -> Result<Without, Vec<String>> {
    let none = BTreeSet::new();
    let search = Search { types, queued: &none, class: Class::Repair, costs: Costs::default(), now };
    let found = find(state, search).candidates;
    let unknown: Vec<String> =
        names.iter().filter(|name| !found.iter().any(|it| it.name() == **name)).cloned().collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let scene = Scene::new(state, types, settings, &none, now);
    let gone: Vec<_> = found.iter().filter(|it| names.iter().any(|name| it.name() == name)).collect();
    let ask = Ask { blocked_pods: true, ..Ask::default() };
    let simulated = scene.without(&gone, &ask);
    let mut without = Without::default();
    let before: f64 = gone.iter().map(|it| it.price).sum();
    without.savings = before - simulated.launches.iter().map(super::launch::Launch::price).sum::<f64>();
    without.launches = simulated.launches.iter().map(|launch| launch.new.types.clone()).collect();
    for node in &simulated.destinations {
        let name = node.origin.node.as_ref().or(node.origin.claim.as_ref()).map(ToString::to_string);
        let pods = node.pods.iter().map(|pod| pod.key.to_string()).collect();
        without.moved.insert(name.unwrap_or_default(), pods);
    }
    without.unplaced = simulated.unplaced.into_iter().map(|it| (it.pod.into(), it.why)).collect();
    let blocked = find(state, Search { class: Class::Graceful, ..search }).notices;
    let mut kept = Preview::default();
    kept.keep(blocked);
    kept.kept.retain(|node, _| names.contains(node));
    without.kept = kept.kept;
    Ok(without)
}

impl Preview {
    fn keep(&mut self, notices: Vec<Notice>) {
        for notice in notices.into_iter().filter(|notice| notice.about.kind == cluster::state::Kind::Node) {
            let name = notice.about.name.to_string();
            self.kept.insert(name, notice.message);
        }
    }

    fn allow(&mut self, budgets: &super::budget::Budgets, method: &dyn Method) {
        let reason = method.reason().text();
        for (pool, budget) in budgets {
            let known = self.budgets.iter().any(|it| *it.pool == **pool && it.reason == reason);
            if !known {
                self.budgets.push(Allowance {
                    pool: pool.to_string(),
                    reason,
                    allowed: (budget.allowed != i32::MAX).then_some(budget.allowed),
                    disrupting: budget.disrupting,
                    nodes: budget.nodes,
                });
            }
        }
    }
}

fn shown(command: &Command) -> Move {
    Move {
        reason: command.reason.text(),
        decision: command.decision(),
        nodes: command.candidates.iter().map(|it| it.name().to_owned()).collect(),
        replacements: command.replacements.iter().map(|launch| launch.new.types.clone()).collect(),
        savings: command.savings(),
        evictions: command.pod_count(),
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
