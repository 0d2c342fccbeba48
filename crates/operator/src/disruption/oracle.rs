//! What would happen if nodes went, asked many times of one scene.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::names::labels;
use api::names::values::capacity_type;
use cluster::snapshot::{Built, Origin};
use cluster::state::Watched as _;
use engine::consolidate::{self, Candidate as Node, Unplaced as Why};
use engine::model::{NodeId, PodId, ReservationId};
use engine::solve::{Answer, PlannedClaim, Question, Simulation};
use engine::text::Texts;

use super::candidate::Candidate;
use super::launch::Launch;
use super::scene::{Ask, Scene, Simulated, Unplaced};
use crate::provisioner::outcome;

/// What users are told of a node that the snapshot has no place for.
const NOT_UNDERSTOOD: &str = "node cannot be understood";

/// Answers what would happen if nodes went. One answer costs what it changes, not what the cluster has.
pub(crate) struct Oracle<'s> {
    scene: &'s Scene,
    built: &'s Built,
    simulation: Simulation<'s>,
    /// Nodes that have a claim by the instances behind them. Others are no candidates, though they may say that they
    /// are of the same instance.
    nodes: BTreeMap<&'s str, NodeId>,
}

impl<'s> Oracle<'s> {
    pub(super) fn new(scene: &'s Scene, built: &'s Built, simulation: Simulation<'s>) -> Self {
        let nodes = built.nodes.iter().enumerate().filter(|(_, origin)| origin.claim.is_some());
        let nodes = nodes.map(|(position, origin)| (&*origin.provider_id, NodeId::at(position))).collect();
        Self { scene, built, simulation, nodes }
    }

    /// What is asked about.
    pub(crate) fn scene(&self) -> &'s Scene {
        self.scene
    }

    /// What the engine knows.
    pub(crate) fn built(&self) -> &'s Built {
        self.built
    }

    /// What the engine is asked.
    pub(crate) fn simulation(&mut self) -> &mut Simulation<'s> {
        &mut self.simulation
    }

    /// Why nothing can be said about a candidate: some of its pods cannot be understood, or the node itself.
    pub(crate) fn stuck(&self, candidate: &Candidate) -> Option<String> {
        let Some(node) = self.nodes.get(&*candidate.provider_id) else {
            return Some(NOT_UNDERSTOOD.to_owned());
        };
        let stuck: Vec<Unplaced> = self.stuck_pods(&[*node], false).collect();
        let simulated = Simulated { unplaced: stuck, ..Simulated::default() };
        (!simulated.is_complete()).then(|| simulated.summary())
    }

    /// A candidate as the engine knows it.
    pub(crate) fn node(&self, candidate: &Candidate) -> Option<Node> {
        let snapshot = &self.built.snapshot;
        let types = snapshot.universe.values(snapshot.keys.instance_type);
        Some(Node {
            node: *self.nodes.get(&*candidate.provider_id)?,
            price: candidate.price,
            spot: candidate.label(labels::CAPACITY_TYPE) == capacity_type::SPOT,
            type_: types.get(candidate.label(labels::INSTANCE_TYPE)),
        })
    }

    /// Instances on which buffers keep room.
    pub(crate) fn keeping_room(&self) -> BTreeSet<&'s str> {
        let pods = self.built.pods.iter().enumerate();
        let virtual_pods = pods.filter(|(_, origin)| matches!(origin, Origin::Buffer(_)));
        let on = virtual_pods.filter_map(|(position, _)| self.simulation.node_of(PodId::at(position)));
        on.map(|node| &*self.built.nodes[node.index()].provider_id).collect()
    }

    /// Pods of some nodes that could not be placed anywhere else; those that cannot be evicted only if asked for.
    fn stuck_pods(&self, nodes: &[NodeId], blocked_pods: bool) -> impl Iterator<Item = Unplaced> {
        let stuck = self.built.stuck.iter().filter(move |stuck| blocked_pods || !stuck.blocked);
        stuck
            .filter(|stuck| nodes.contains(&stuck.node))
            .map(|stuck| Unplaced { pod: stuck.pod.clone(), why: stuck.reason.to_string() })
    }

    /// What would happen if the nodes of some candidates went.
    pub(crate) fn without(&mut self, candidates: &[&Candidate], ask: &Ask) -> Simulated {
        let (mut nodes, mut unplaced) = (Vec::new(), Vec::new());
        for candidate in candidates {
            match self.nodes.get(&*candidate.provider_id) {
                Some(node) => nodes.push(*node),
                // Nothing is known of what is on it either.
                None => unplaced.extend(not_understood(candidate)),
            }
        }
        let question = Question {
            saving: ask.consolidation,
            blocked_pods: ask.blocked_pods,
            credit: ask.credit.as_deref().and_then(|id| self.reservation(id)),
            ..Question::without(&nodes)
        };
        let answer = self.simulation.ask(&question);
        let mut simulated = self.simulated(&answer);
        simulated.unplaced.append(&mut unplaced);
        simulated.unplaced.extend(self.stuck_pods(&nodes, ask.blocked_pods));
        simulated.unplaced.sort_by(|a, b| a.pod.cmp(&b.pod));
        simulated
    }

    fn reservation(&self, name: &str) -> Option<ReservationId> {
        self.built.snapshot.reservations.get(name).map(ReservationId)
    }

    /// What an answer means for the cluster.
    pub(crate) fn simulated(&mut self, answer: &Answer) -> Simulated {
        let unplaced = consolidate::unplaced(&self.simulation, answer);
        let unplaced = unplaced_pods(self.built, &mut self.simulation, &unplaced);
        let launches = answer.claims.iter().filter_map(|claim| self.launch(claim)).collect();
        let destinations = outcome::on_nodes(self.built, answer.places.iter().copied());
        Simulated { launches, unplaced, destinations }
    }

    /// What a planned claim means for the cluster.
    pub(crate) fn launch(&mut self, claim: &PlannedClaim) -> Option<Launch> {
        let Self { scene, built, simulation, .. } = self;
        let pool = scene.pools().get(&built.snapshot.pools[claim.pool.index()].name)?;
        let new = outcome::new_claim(built, simulation.universe(), claim, pool, scene.sets());
        let types = scene.types().get(pool.metadata.name.as_deref().unwrap_or_default());
        let types = types.map_or_else(|| Arc::from([]), Arc::clone);
        Some(Launch::new(new, types, scene))
    }
}

/// The pods of a node of which nobody can say where they could go.
fn not_understood(candidate: &Candidate) -> impl Iterator<Item = Unplaced> {
    candidate
        .pods
        .iter()
        .map(|pod| Unplaced { pod: pod.key().to_string().into(), why: NOT_UNDERSTOOD.to_owned() })
}

/// What is wrong, for users, as a simulation of the built snapshot has found.
pub(crate) fn summary(built: &Built, simulation: &mut Simulation<'_>, pods: &[(PodId, Why)]) -> String {
    Simulated { unplaced: unplaced_pods(built, simulation, pods), ..Simulated::default() }.summary()
}

fn unplaced_pods(built: &Built, simulation: &mut Simulation<'_>, pods: &[(PodId, Why)]) -> Vec<Unplaced> {
    let snapshot = &built.snapshot;
    let texts = Texts { snapshot, universe: simulation.universe() };
    let unready = |node: &NodeId| {
        let origin = &built.nodes[node.index()];
        let names = [("nodeclaim", &origin.claim), ("node", &origin.node)];
        let names = names.iter().filter_map(|(kind, name)| Some(format!("{kind}/{}", name.as_ref()?)));
        format!("would schedule against uninitialized {}", names.collect::<Vec<_>>().join(", "))
    };
    let told = pods.iter().map(|(pod, why)| {
        let why = match why {
            Why::Failure(failure) => texts.failure(failure),
            Why::Unready(node) => unready(node),
        };
        Unplaced { pod: snapshot.pods[pod.index()].name.clone(), why }
    });
    let mut all: Vec<Unplaced> = told.collect();
    all.sort_by(|a, b| a.pod.cmp(&b.pod));
    all
}
