//! What a plan means for the cluster: claims to create, nodes to keep for pods, and pods that stay pending.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::labels::LabelSets;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use cluster::payload;
use cluster::reason::Reason;
use cluster::snapshot::{Built, NodeOrigin, Origin};
use cluster::state::Key;
use engine::model::{PodId, Snapshot};
use engine::scheduling_error::SchedulingErrors;
use engine::solve::{Failure, Place, Plan, PlannedClaim};
use engine::text::Texts;
use engine::universe::Universe;

use crate::capacity_buffer::room::{Placement, placement};

/// A pod that was decided about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    /// Where it is.
    pub(crate) key: Key,
    /// What tells it from another one of the same name.
    pub(crate) uid: Box<str>,
}

/// A claim that is to be created.
#[derive(Clone, Debug)]
pub(crate) struct NewClaim {
    /// What is sent to the API.
    pub(crate) claim: NodeClaim,
    /// The NodePool it was planned for.
    pub(crate) pool: Arc<NodePool>,
    /// The types it can become, the cheapest first.
    pub(crate) types: Vec<String>,
    /// Whether the pool's demand for choice was lowered.
    pub(crate) min_values_relaxed: bool,
    /// The pods it is for; virtual ones, which nobody is told about, are not among them.
    pub(crate) pods: Vec<Decided>,
    /// Whether it is also for virtual ones.
    pub(crate) for_buffers: bool,
    /// Whether no other pod that waits fits on it, so that there is nothing to wait for.
    pub(crate) full: bool,
}

impl NewClaim {
    /// A claim as the template of its pool has it, for no pods in particular.
    pub(crate) fn bare(pool: Arc<NodePool>, sets: &LabelSets) -> Result<Self, Reason> {
        let claim = payload::bare_node_claim(&pool, sets)?;
        let (types, pods) = (Vec::new(), Vec::new());
        Ok(Self { claim, pool, types, min_values_relaxed: false, pods, for_buffers: false, full: true })
    }
}

/// A node that pods are expected on.
#[derive(Clone, Debug)]
pub(crate) struct Nominated {
    /// Which objects it is.
    pub(crate) origin: NodeOrigin,
    /// The NodePool it belongs to.
    pub(crate) pool: Option<Box<str>>,
    /// Whether it is ready for pods.
    pub(crate) initialized: bool,
    /// The pods.
    pub(crate) pods: Vec<Decided>,
}

/// A pod that stays pending.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    /// The pod.
    pub(crate) pod: Decided,
    /// Why, as users read it.
    pub(crate) why: Arc<str>,
    /// Why, in upstream's words, as operators search logs for it.
    pub(crate) error: Arc<str>,
    /// Whether it is because of something that is not supported, rather than not there.
    pub(crate) unsupported: bool,
}

/// What a plan means for the cluster.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Claims to be created.
    pub(crate) claims: Vec<NewClaim>,
    /// Nodes to be kept for pods.
    pub(crate) nominated: Vec<Nominated>,
    /// Pods that stay pending.
    pub(crate) pending: Vec<Pending>,
    /// Pods that wait for a reservation to be settled; they are looked at again in the next round.
    pub(crate) deferred: Vec<Decided>,
    /// Pools that nothing can be launched for, and whether their demand for choice is why.
    pub(crate) unusable: Vec<(Arc<NodePool>, bool)>,
    /// Where the room is that buffers keep.
    pub(crate) placement: Placement,
}

/// What a plan for a snapshot means. `pools` are the NodePools as they were planned for.
pub(crate) fn outcome(
    built: &Built,
    mut plan: Plan,
    pools: &BTreeMap<Box<str>, Arc<NodePool>>,
    sets: &LabelSets,
) -> Outcome {
    let snapshot = &built.snapshot;
    let pool_of = |claim: &PlannedClaim| pools.get(&snapshot.pools[claim.pool.index()].name);
    let mut outcome = Outcome { placement: placement(built, &plan), ..Outcome::default() };
    let claims = std::mem::take(&mut plan.claims);
    for claim in claims.iter().filter(|claim| !claim.pods.is_empty()) {
        let Some(pool) = pool_of(claim) else { continue };
        outcome.claims.push(new_claim(built, &mut plan.universe, claim, pool, sets));
    }
    outcome.nominated = nominated(built, &plan);
    let texts = Texts { snapshot, universe: &plan.universe };
    // What sentences need is made only if there is one to be said.
    let mut errors: Option<SchedulingErrors<'_>> = None;
    // Pods of one class fail for one reason, whose texts are made once.
    let mut known: Option<(&Arc<Failure>, [Arc<str>; 2])> = None;
    for (position, failure) in plan.failures.iter().enumerate() {
        let Some(failure) = failure.as_ref().filter(|_| !is_virtual(built, PodId::at(position))) else {
            continue;
        };
        if failure.is_deferred() {
            outcome.deferred.push(decided(snapshot, PodId::at(position)));
            continue;
        }
        let said = match &known {
            Some((same, said)) if Arc::ptr_eq(same, failure) => said.clone(),
            _ => {
                let errors = errors
                    .get_or_insert_with(|| SchedulingErrors::new(snapshot, &plan.universe, &plan.unusable));
                let class = snapshot.pods[position].class;
                [errors.sentence(class, failure).into(), texts.failure(failure).into()]
            }
        };
        known = Some((failure, said.clone()));
        let [why, error] = said;
        let pod = decided(snapshot, PodId::at(position));
        outcome.pending.push(Pending { pod, why, error, unsupported: **failure == Failure::NeedsDevices });
    }
    for unusable in &plan.unusable {
        let pool = pools.get(&snapshot.pools[unusable.pool.index()].name);
        outcome.unusable.extend(pool.map(|pool| (Arc::clone(pool), !unusable.min_values.is_empty())));
    }
    outcome
}

/// Whether a pod only keeps room for others.
fn is_virtual(built: &Built, pod: PodId) -> bool {
    matches!(built.pods[pod.index()], Origin::Buffer(_))
}

/// The claim that is to be created for a planned one.
pub(crate) fn new_claim(
    built: &Built,
    universe: &mut Universe,
    claim: &PlannedClaim,
    pool: &Arc<NodePool>,
    sets: &LabelSets,
) -> NewClaim {
    let snapshot = &built.snapshot;
    let real = claim.pods.iter().filter(|pod| !is_virtual(built, **pod));
    let pods: Vec<Decided> = real.map(|pod| decided(snapshot, *pod)).collect();
    NewClaim {
        claim: payload::node_claim(snapshot, universe, claim, pool, sets),
        pool: Arc::clone(pool),
        types: type_names(snapshot, universe, claim),
        min_values_relaxed: claim.min_values_relaxed,
        for_buffers: pods.len() < claim.pods.len(),
        full: claim.full,
        pods,
    }
}

/// A pod of the snapshot.
pub(crate) fn decided(snapshot: &Snapshot, pod: PodId) -> Decided {
    let pod = &snapshot.pods[pod.index()];
    let (namespace, name) = pod.name.split_once('/').unwrap_or(("", &pod.name));
    Decided { key: Key::new(namespace, name), uid: pod.uid.clone() }
}

fn type_names(snapshot: &Snapshot, universe: &Universe, claim: &PlannedClaim) -> Vec<String> {
    let catalogue = snapshot.pools[claim.pool.index()].catalogue;
    let types = catalogue.map_or(&[][..], |catalogue| &snapshot.catalogues[catalogue.index()].types);
    let values = universe.values(snapshot.keys.instance_type);
    claim.types.iter().map(|kind| values.name(types[*kind].name).to_owned()).collect()
}

/// The nodes that pods were placed on, in order.
pub(crate) fn nominated(built: &Built, plan: &Plan) -> Vec<Nominated> {
    let places = plan.places.iter().enumerate();
    let places = places.filter_map(|(position, place)| Some((PodId::at(position), (*place)?)));
    on_nodes(built, places)
}

/// The nodes that pods are placed on, in order.
pub(crate) fn on_nodes(built: &Built, places: impl Iterator<Item = (PodId, Place)>) -> Vec<Nominated> {
    let snapshot = &built.snapshot;
    let mut by_node = BTreeMap::<usize, Vec<Decided>>::new();
    for (pod, place) in places {
        if let Place::Node(node) = place
            && !is_virtual(built, pod)
        {
            by_node.entry(node.index()).or_default().push(decided(snapshot, pod));
        }
    }
    by_node
        .into_iter()
        .map(|(node, pods)| {
            let labels = snapshot.nodes[node].labels;
            let pool = snapshot.universe.find(labels, snapshot.keys.node_pool);
            let pool = pool.and_then(|pool| snapshot.universe.get(pool).single());
            let names = snapshot.universe.values(snapshot.keys.node_pool);
            Nominated {
                origin: built.nodes[node].clone(),
                pool: pool.map(|pool| names.name(pool).into()),
                initialized: snapshot.nodes[node].initialized,
                pods,
            }
        })
        .collect()
}

/// Pods that were left out of the snapshot because something is wrong with them.
pub(crate) fn ignored_pods(built: &Built) -> impl Iterator<Item = (Key, &Reason)> {
    let pods = built.ignored.iter().filter(|ignored| ignored.kind == "Pod" && ignored.reason.is_rejection());
    pods.map(|ignored| {
        let key = Key::new(ignored.namespace.as_deref().unwrap_or_default(), &ignored.name);
        (key, &ignored.reason)
    })
}
