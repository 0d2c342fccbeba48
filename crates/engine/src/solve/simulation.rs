//! What would happen if some nodes went: asked many times of one cluster.
//!
//! The pods that wait are placed once. Every question then closes some nodes, places only the pods of these nodes,
//! and takes everything back, so that it costs what it changes, however large the cluster is:
//!
//! ```text
//! snapshot ─► waiting pods placed ─┬─► close nodes ─► place their pods ─► answer ─┐
//!                                  └──────────────── take back ◄──────────────────┘
//! ```
//!
//! So what waiting pods need is never part of an answer, and what cannot be placed anyway spoils none.

use std::sync::Arc;

use crate::intern::ResourceId;
use crate::model::{NodeId, PodId, ReservationId, Snapshot};
use crate::options::{Options, Reserved};
use crate::resources::Amounts;
use crate::solve::finish::Prices;
use crate::solve::node::NodeState;
use crate::solve::reserve::Reservations;
use crate::solve::{Failure, Place, PlannedClaim, PoolFailure, Solver, before};
use crate::topology::{Absent, AbsentPod, GroupId};
use crate::universe::{FastMap, Universe};

/// Lists of prices are forgotten when there are more than this.
const MANY_PRICES: usize = 1000;

/// Nodes that are assumed to go, and what matters about it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The nodes.
    pub without: &'q [NodeId],
    /// Whether it is only to save money, so that nodes that were busy lately are left alone.
    pub saving: bool,
    /// Whether pods must go elsewhere too that something keeps from being evicted.
    pub blocked_pods: bool,
    /// With more new claims than this the answer does not matter.
    pub most_claims: usize,
    /// A reservation that gets a launch back; pods then wait for reservations rather than take something else.
    pub credit: Option<ReservationId>,
}

impl<'q> Question<'q> {
    /// What happens without some nodes.
    pub fn without(nodes: &'q [NodeId]) -> Self {
        Self { without: nodes, saving: false, blocked_pods: false, most_claims: usize::MAX, credit: None }
    }
}

/// What happens to the pods of the nodes.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Where pods go; claims by their place in `claims`.
    pub places: Vec<(PodId, Place)>,
    /// Pods that find no place.
    pub failures: Vec<(PodId, Arc<Failure>)>,
    /// Claims that are needed for these pods.
    pub claims: Vec<PlannedClaim>,
    /// Whether more claims are needed than matter; the rest of the answer is then worth nothing.
    pub too_many_claims: bool,
}

/// What is assumed while a question is answered, and what it was in truth.
#[derive(Clone)]
pub(super) struct Assumed {
    /// Nodes that are gone, one flag each.
    gone: Vec<bool>,
    saving: bool,
    /// Nodes that got pods, as they were.
    nodes: Vec<(NodeId, NodeState)>,
}

impl Solver<'_> {
    /// Whether a node takes no pods while a question is answered.
    pub(super) fn is_closed(&self, node: usize) -> bool {
        self.assumed.as_ref().is_some_and(|assumed| {
            assumed.gone[node] || (assumed.saving && !self.core.world.snapshot.nodes[node].takes_moved)
        })
    }

    /// Notes what a node is like before it gets a pod by assumption.
    pub(super) fn remember(&mut self, node: NodeId) {
        if let Some(assumed) = &mut self.assumed
            && !assumed.nodes.iter().any(|(known, _)| *known == node)
        {
            assumed.nodes.push((node, self.nodes[node.index()].clone()));
        }
    }

    /// What is free on a node, whatever is assumed.
    pub(super) fn available_in_truth(&self, node: usize) -> &Amounts {
        let noted = self.assumed.iter().flat_map(|assumed| &assumed.nodes);
        let noted = noted.into_iter().find(|(known, _)| known.index() == node);
        noted.map_or(&self.nodes[node].available, |(_, state)| &state.available)
    }
}

/// A cluster that can be asked what would happen.
#[derive(Clone)]
pub struct Simulation<'a> {
    solver: Solver<'a>,
    prices: Prices,
    /// The pods of each node that would have to go elsewhere.
    pods: Arc<[Vec<PodId>]>,
    /// What pools may still have.
    limits: Vec<FastMap<ResourceId, i64>>,
    /// Nodes that are gone; none between questions.
    gone: Vec<bool>,
}

/// What is as it is when nothing is assumed.
struct Truth {
    options: Options,
    order: Vec<u32>,
    reservations: Option<Reservations>,
}

fn absent(snapshot: &Snapshot, pod: PodId) -> Option<AbsentPod> {
    let pod = &snapshot.pods[pod.index()];
    pod.runs.map(|runs| AbsentPod { class: pod.class, node: runs.on, counted: runs.counted })
}

impl<'a> Simulation<'a> {
    /// Places the pods that wait.
    pub fn new(snapshot: &'a Snapshot, options: &Options) -> Self {
        let mut solver = Solver::new(snapshot, *options);
        solver.place_waiting();
        let mut pods = vec![Vec::new(); snapshot.nodes.len()];
        for (position, pod) in snapshot.pods.iter().enumerate() {
            if let Some(runs) = pod.runs {
                pods[runs.on.index()].push(PodId::at(position));
            }
        }
        let gone = vec![false; snapshot.nodes.len()];
        let limits = solver.limits.clone();
        Self { solver, prices: Prices::default(), pods: pods.into(), limits, gone }
    }

    /// Where waiting pods go, and how many claims are needed for them.
    pub fn waiting(&self) -> (&[Option<Place>], usize) {
        (&self.solver.places, self.solver.claims.len())
    }

    /// Requirements that answers speak of.
    pub fn universe(&mut self) -> &mut Universe {
        &mut self.solver.core.world.universe
    }

    /// Answers a question. The answer depends on nothing that was asked before.
    pub fn ask(&mut self, question: &Question<'_>) -> Answer {
        let snapshot = self.solver.core.world.snapshot;
        let mut pods: Vec<PodId> = question
            .without
            .iter()
            .flat_map(|node| self.pods[node.index()].iter().copied())
            .filter(|pod| {
                let runs = snapshot.pods[pod.index()].runs;
                question.blocked_pods || runs.is_none_or(|runs| !runs.blocked)
            })
            .collect();
        pods.sort_by(|a, b| before(snapshot, *a, *b));
        let truth = self.assume(question, &pods);
        let first = self.solver.claims.len();
        let enough = self.solver.place_all(pods.clone(), first.saturating_add(question.most_claims));
        let answer = if enough {
            self.answer(&pods, first)
        } else {
            Answer { too_many_claims: true, ..Answer::default() }
        };
        self.take_back(truth, &pods, first);
        question.without.iter().for_each(|node| self.gone[node.index()] = false);
        answer
    }

    /// Makes the nodes go.
    fn assume(&mut self, question: &Question<'_>, pods: &[PodId]) -> Truth {
        let solver = &mut self.solver;
        let snapshot = solver.core.world.snapshot;
        let mut groups: Vec<GroupId> = Vec::new();
        for pod in pods {
            let class = snapshot.pods[pod.index()].class;
            solver.variant_exists(class, 0);
            let state = &mut solver.classes[class.index()];
            state.failed = None;
            groups.extend(state.variants.iter().flatten().flat_map(|variant| &variant.owned));
        }
        groups.sort_unstable();
        groups.dedup();
        let mut gone = std::mem::take(&mut self.gone);
        question.without.iter().for_each(|node| gone[node.index()] = true);
        let absent = Absent {
            nodes: question.without.to_vec(),
            pods: pods.iter().filter_map(|pod| absent(snapshot, *pod)).collect(),
        };
        let core = &mut solver.core;
        core.topology.leave(&mut core.world, absent, groups.into_iter());
        let truth = Truth {
            options: core.options,
            order: std::mem::take(&mut solver.order),
            reservations: (!core.reservations.is_empty()).then(|| core.reservations.clone()),
        };
        if let Some(id) = question.credit {
            core.options.reserved = Reserved::Strict;
            core.reservations.credit(id);
        }
        solver.assumed = Some(Assumed { gone, saving: question.saving, nodes: Vec::new() });
        truth
    }

    fn answer(&mut self, pods: &[PodId], first: usize) -> Answer {
        let mut answer = Answer::default();
        if self.prices.len() > MANY_PRICES {
            self.prices.clear();
        }
        for claim in self.solver.claims[first..].to_vec() {
            let (pool, of_claim) = (claim.pool, claim.pods.clone());
            match self.solver.planned(claim, &mut self.prices) {
                Ok(planned) => {
                    let place = Place::Claim(u32::try_from(answer.claims.len()).expect("claims are few"));
                    answer.places.extend(of_claim.into_iter().map(|pod| (pod, place)));
                    answer.claims.push(planned);
                }
                Err(keys) => {
                    let failure = Arc::new(Failure::Pools(vec![(pool, PoolFailure::Truncated(keys))]));
                    answer.failures.extend(of_claim.into_iter().map(|pod| (pod, Arc::clone(&failure))));
                }
            }
        }
        for pod in pods {
            match (self.solver.places[pod.index()], &self.solver.failures[pod.index()]) {
                (Some(Place::Node(node)), _) => answer.places.push((*pod, Place::Node(node))),
                (None, Some(failure)) => answer.failures.push((*pod, Arc::clone(failure))),
                _ => {}
            }
        }
        answer.places.sort_unstable_by_key(|(pod, _)| *pod);
        answer.failures.sort_by_key(|(pod, _)| *pod);
        answer
    }

    fn take_back(&mut self, truth: Truth, pods: &[PodId], first: usize) {
        let solver = &mut self.solver;
        let snapshot = solver.core.world.snapshot;
        let core = &mut solver.core;
        core.topology.come_back(&core.world.universe);
        core.options = truth.options;
        if let Some(reservations) = truth.reservations {
            core.reservations = reservations;
        }
        solver.order = truth.order;
        for claim in solver.claims.drain(first..) {
            let limits = &mut solver.limits[claim.pool.index()];
            limits.clone_from(&self.limits[claim.pool.index()]);
        }
        if let Some(Assumed { gone, nodes, .. }) = solver.assumed.take() {
            self.gone = gone;
            for (node, state) in nodes {
                solver.nodes[node.index()] = state;
            }
        }
        for pod in pods {
            solver.places[pod.index()] = None;
            solver.failures[pod.index()] = None;
            let state = &mut solver.classes[snapshot.pods[pod.index()].class.index()];
            state.failed = None;
            state.variants.iter_mut().flatten().for_each(|variant| variant.forget_refusals_from(first));
        }
    }
}
