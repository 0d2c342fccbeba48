//! Which nodes are to go first, and what their pods should therefore say. Entry: [`plan`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::DRIFTED;
use api::names::{annotations, labels, taints};
use api::nodepool::{DisruptionReason, NodePool};
use cluster::costs::{self, Costs};
use cluster::eligibility::{is_active, is_terminal};
use cluster::objects::Pod;
use cluster::state::{Key, State, Watched};
use cluster::state_node::StateNode;
use jiff::Timestamp;

use crate::catalogue::Types;
use crate::disruption::Class;
use crate::disruption::budget::{self, Budgets};
use crate::disruption::candidate::{self, Search};
use crate::node::{Mark, has_taint};

/// How many nodes are written to at once, besides those that go already.
const NODES_AT_ONCE: usize = 50;
/// What the pods of nodes say that go already.
const FIRST: i32 = i32::MIN;
/// Where pods serve the cluster, so that they do not tell whether a node can go.
const SYSTEM: &str = "kube-system";

/// What a pod should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// The pod.
    pub(super) pod: Key,
    /// Which pod of that name.
    pub(super) uid: Box<str>,
    /// Its deletion cost; none if it should say nothing.
    pub(super) cost: Option<i32>,
}

/// What pods should say.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) writes: Vec<Write>,
    /// How many nodes of each pool have pods that say something else.
    pub(super) pending: BTreeMap<Box<str>, usize>,
    /// How many nodes there are.
    pub(super) total: usize,
    /// How many of them go already.
    pub(super) disrupted: usize,
    /// How many of them could go.
    pub(super) ranked: usize,
}

/// Whether and why a node could go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// It goes already.
    Going,
    /// It is not what it should be.
    Drifted,
    /// It might be consolidated.
    Normal,
    /// Nothing is going to happen to it.
    Kept,
}

/// What pods should say, given what every pool can choose from.
pub(super) fn plan(state: &State, types: &Types, now: Timestamp) -> Plan {
    // What we write ourselves says nothing about what pods cost.
    let costs = Costs { pod_deletion_cost: false };
    let mut nodes: Vec<(f64, StateNode<'_>)> = state
        .state_nodes()
        .into_iter()
        .filter(StateNode::is_managed)
        .map(|node| (savings_ratio(state, &node, types, costs), node))
        .collect();
    nodes.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.name().cmp(other.name())));
    let groups = classify(state, &nodes, types, costs, now);
    let of = |group: Group| {
        let members = nodes.iter().zip(&groups).filter(move |(_, its)| **its == group);
        members.map(|((_, node), _)| node)
    };
    let ranked: Vec<&StateNode<'_>> = of(Group::Drifted).chain(of(Group::Normal)).collect();
    let lowest = i32::try_from(ranked.len()).map_or(FIRST + 1, |count| -count);
    let going: Vec<_> = of(Group::Going).collect();
    let mut plan =
        Plan { total: nodes.len(), disrupted: going.len(), ranked: ranked.len(), ..Plan::default() };
    for node in going {
        plan.write(state, node, Some(FIRST));
    }
    let costs = (lowest..0).map(Some).chain(std::iter::repeat(None));
    let mut left = NODES_AT_ONCE;
    for (node, cost) in ranked.into_iter().chain(of(Group::Kept)).zip(costs) {
        if left > 0 && plan.write(state, node, cost) {
            left -= 1;
        }
    }
    plan
}

impl Plan {
    /// Lets the pods of a node say something; whether any of them says something else.
    fn write(&mut self, state: &State, node: &StateNode<'_>, cost: Option<i32>) -> bool {
        let before = self.writes.len();
        let pods = pods_on(state, node).filter(|pod| is_of_replica_set(pod) && is_active(pod));
        self.writes.extend(pods.filter(|pod| !says(pod, cost)).map(|pod| Write {
            pod: pod.key(),
            uid: pod.metadata.uid.clone(),
            cost,
        }));
        let is_pending = self.writes.len() > before;
        if is_pending {
            *self.pending.entry(node.pool().into()).or_default() += 1;
        }
        is_pending
    }
}

/// Whether a pod says already what it should.
pub(super) fn says(pod: &Pod, cost: Option<i32>) -> bool {
    let said = pod.metadata.annotations.get(annotations::POD_DELETION_COST).map(|value| &**value);
    said == cost.map(|cost| cost.to_string()).as_deref()
}

fn pods_on<'a>(state: &'a State, node: &StateNode<'_>) -> impl Iterator<Item = &'a Arc<Pod>> + Clone {
    // Pods without a node are on none.
    let name = node.node.map_or("", |node| &*node.metadata.name);
    state.pods_on(name).filter(move |_| !name.is_empty())
}

fn is_of_replica_set(pod: &Pod) -> bool {
    pod.metadata.controller().is_some_and(|owner| owner.is("apps/v1", "ReplicaSet"))
}

/// Whether a pod is a reason for its node to stay: deleting other pods would not empty the node.
fn pins(pod: &Pod) -> bool {
    const MOVABLE: [(&str, &str); 3] =
        [("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("apps/v1", "DaemonSet")];
    let owner = pod.metadata.controller();
    let is_movable = owner.is_some_and(|owner| MOVABLE.iter().any(|(version, kind)| owner.is(version, kind)));
    pod.metadata.namespace() != SYSTEM && !is_movable && !is_terminal(pod)
}

fn savings_ratio(state: &State, node: &StateNode<'_>, types: &Types, costs: Costs) -> f64 {
    let price = types.get(node.pool()).map_or(0.0, |types| costs::price(node, types));
    let cost = costs.reschedule_disruption(pods_on(state, node).map(Arc::as_ref));
    costs::savings_ratio(price, cost)
}

/// The groups of nodes that are in the order in which they should go.
fn classify(
    state: &State,
    nodes: &[(f64, StateNode<'_>)],
    types: &Types,
    costs: Costs,
    now: Timestamp,
) -> Vec<Group> {
    // Whatever is under way is marked.
    let queued = BTreeSet::new();
    let search = Search { types, queued: &queued, relied_on: &queued, class: Class::Graceful, costs, now };
    let found = candidate::find(state, search).candidates;
    let candidates: BTreeSet<&str> = found.iter().map(|candidate| &*candidate.provider_id).collect();
    let all = state.state_nodes();
    let mut drifted = budget::budgets(state, &all, DisruptionReason::Drifted, &queued, now);
    let mut normal = budget::budgets(state, &all, DisruptionReason::Underutilized, &queued, now);
    let take = |budgets: &mut Budgets, pool: &str| budgets.get_mut(pool).is_some_and(budget::Budget::take);
    let classified = nodes.iter().map(|(_, node)| {
        if node.is_marked_for_deletion() || is_disrupted(node) {
            return Group::Going;
        }
        let pool = state.node_pools.named(node.pool());
        let is_free = candidates.contains(node.provider_id())
            && !pods_on(state, node).any(|pod| pins(pod))
            && is_offered(node, types);
        let Some(pool) = pool.filter(|_| is_free) else { return Group::Kept };
        match wish(node, pool) {
            Group::Drifted if take(&mut drifted, node.pool()) => Group::Drifted,
            Group::Normal if take(&mut normal, node.pool()) => Group::Normal,
            _ => Group::Kept,
        }
    });
    classified.collect()
}

/// The group of a node that nothing keeps, whatever budgets say.
fn wish(node: &StateNode<'_>, pool: &NodePool) -> Group {
    let is_dynamic = pool.spec.replicas.is_none();
    if is_dynamic && node.claim.is_some_and(|claim| claim.is_true(DRIFTED)) {
        Group::Drifted
    } else if pool.spec.disruption.consolidate_after.duration().is_none() {
        Group::Kept
    } else {
        Group::Normal
    }
}

fn is_disrupted(node: &StateNode<'_>) -> bool {
    node.node.is_some_and(|node| has_taint(node, Mark::from(taints::DISRUPTED)))
}

fn is_offered(node: &StateNode<'_>, types: &Types) -> bool {
    let name = node.label(labels::INSTANCE_TYPE);
    types.get(node.pool()).is_some_and(|types| types.iter().any(|each| each.name == name))
}
