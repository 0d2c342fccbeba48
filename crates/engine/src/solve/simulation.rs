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

use crate::model::{NodeId, Pod, PodId, ReservationId, Share, Snapshot};
use crate::options::{Options, Reserved};
use crate::resources::Amounts;
use crate::solve::finish::Prices;
use crate::solve::limits::Room;
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
    /// A reservation that gets a launch back, because the nodes go before anything is launched: pools get back what
    /// the nodes take of their limits, too. Pods then wait for reservations rather than take something else.
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
    saving: bool,
    /// Nodes that got pods, as they were.
    nodes: Vec<(NodeId, NodeState)>,
}

impl Solver<'_> {
    /// Whether a node takes no pods while a question is answered.
    pub(super) fn is_closed(&self, node: usize) -> bool {
        let is_saving = self.assumed.as_ref().is_some_and(|assumed| assumed.saving);
        self.gone[node] || (is_saving && !self.core.world.snapshot.nodes[node].takes_moved)
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
    pub(super) solver: Solver<'a>,
    pub(super) prices: Prices,
    /// The pods of each node that would have to go elsewhere.
    pods: Arc<Vec<Vec<PodId>>>,
    /// Where pods are by now whose node went.
    moved: FastMap<PodId, NodeId>,
    /// What pools may still have.
    limits: Vec<Room>,
}

/// What the nodes of a question take of the limits of their pools.
fn shares<'s>(snapshot: &'s Snapshot, question: &Question<'s>) -> impl Iterator<Item = &'s Share> {
    question.without.iter().filter_map(|node| snapshot.nodes[node.index()].share.as_deref())
}

/// What is as it is when nothing is assumed.
struct Truth {
    options: Options,
    order: Vec<u32>,
    reservations: Option<Reservations>,
}

impl<'a> Simulation<'a> {
    /// Places the pods that wait.
    pub fn new(snapshot: &'a Snapshot, options: &Options) -> Self {
        let mut solver = Solver::new(snapshot, *options);
        solver.place_waiting();
        let mut pods = vec![Vec::new(); snapshot.nodes.len()];
        let mut moved = FastMap::default();
        for (position, pod) in snapshot.pods.iter().enumerate() {
            let id = PodId::at(position);
            if let Some(runs) = pod.runs {
                pods[runs.on.index()].push(id);
            } else if let Some(Place::Node(node)) = solver.places[position] {
                // Where a pod is expected, it must go elsewhere if that goes.
                pods[node.index()].push(id);
                moved.insert(id, node);
                solver.core.topology.arrive(pod.class, node);
            }
        }
        let limits = solver.limits.clone();
        Self { solver, prices: Prices::default(), pods: Arc::new(pods), moved, limits }
    }

    /// Where waiting pods go, and how many claims are needed for them.
    pub fn waiting(&self) -> (&[Option<Place>], usize) {
        (&self.solver.places, self.solver.claims.len())
    }

    /// What it looks at.
    pub fn snapshot(&self) -> &'a Snapshot {
        self.solver.core.world.snapshot
    }

    /// The node that a pod is on by now.
    pub fn node_of(&self, pod: PodId) -> Option<NodeId> {
        let runs_on = || self.snapshot().pods[pod.index()].runs.map(|runs| runs.on);
        self.moved.get(&pod).copied().or_else(runs_on)
    }

    /// Requirements that answers speak of.
    pub fn universe(&mut self) -> &mut Universe {
        &mut self.solver.core.world.universe
    }

    /// Answers a question. The answer depends on nothing that was asked before.
    pub fn ask(&mut self, question: &Question<'_>) -> Answer {
        let pods = self.pods_of(question);
        let truth = self.assume(question, &pods, false);
        let (answer, first) = self.try_out(question, &pods);
        self.take_back(truth, question, &pods, first);
        answer
    }

    /// Answers a question, and makes its answer true for all questions to come: the nodes are gone, and their pods
    /// are where they went. New claims are charged to their pools, but take no pods of others.
    pub fn adopt(&mut self, question: &Question<'_>) -> Answer {
        let pods = self.pods_of(question);
        let truth = self.assume(question, &pods, true);
        let (answer, first) = self.try_out(question, &pods);
        self.solver.settle_limits(first, &answer.claims);
        let place = |pod: &PodId| match self.solver.places[pod.index()] {
            Some(Place::Node(node)) => Some(node),
            _ => None,
        };
        let moves = pods.iter().filter_map(|pod| Some((self.absent(*pod)?, place(pod))));
        let moves: Vec<(AbsentPod, Option<NodeId>)> = moves.collect();
        let of_nodes = Arc::make_mut(&mut self.pods);
        question.without.iter().for_each(|node| of_nodes[node.index()].clear());
        for (pod, node) in pods.iter().filter_map(|pod| Some((*pod, place(pod)?))) {
            of_nodes[node.index()].push(pod);
            self.moved.insert(pod, node);
        }
        self.solver.core.topology.stay(moves);
        self.solver.core.options = truth.options;
        self.solver.order = truth.order;
        self.solver.assumed = None;
        self.limits.clone_from(&self.solver.limits);
        self.forget(&pods, usize::MAX);
        answer
    }

    /// The pods that have to go elsewhere, in the order in which they are placed.
    fn pods_of(&self, question: &Question<'_>) -> Vec<PodId> {
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
        pods
    }

    /// A pod as topologies see it where it is by now.
    fn absent(&self, pod: PodId) -> Option<AbsentPod> {
        let Pod { class, runs, .. } = self.solver.core.world.snapshot.pods[pod.index()];
        if let Some(node) = self.moved.get(&pod).copied() {
            // Whoever has moved is counted where it went.
            return Some(AbsentPod { class, node, counted: true });
        }
        runs.map(|runs| AbsentPod { class, node: runs.on, counted: runs.counted })
    }

    /// Places the pods; what comes of it, and the first new claim.
    fn try_out(&mut self, question: &Question<'_>, pods: &[PodId]) -> (Answer, usize) {
        let first = self.solver.claims.len();
        let enough = self.solver.place_all(pods.to_vec(), first.saturating_add(question.most_claims));
        let answer = if enough {
            self.answer(pods, first)
        } else {
            Answer { too_many_claims: true, ..Answer::default() }
        };
        (answer, first)
    }

    /// Makes the nodes go; rules that these pods do not state matter only if it is for good.
    fn assume(&mut self, question: &Question<'_>, pods: &[PodId], for_good: bool) -> Truth {
        let absent = Absent {
            nodes: question.without.to_vec(),
            pods: pods.iter().filter_map(|pod| self.absent(*pod)).collect(),
        };
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
        if for_good {
            groups.extend(solver.core.topology.all());
        }
        groups.sort_unstable();
        groups.dedup();
        question.without.iter().for_each(|node| solver.gone[node.index()] = true);
        let core = &mut solver.core;
        core.topology.leave(&mut core.world, &absent, groups.into_iter());
        let truth = Truth {
            options: core.options,
            order: std::mem::take(&mut solver.order),
            reservations: (!core.reservations.is_empty()).then(|| core.reservations.clone()),
        };
        if let Some(id) = question.credit {
            core.options.reserved = Reserved::Strict;
            core.reservations.credit(id);
            for share in shares(snapshot, question) {
                solver.limits[share.pool.index()].give_back(&share.amounts);
            }
        }
        solver.assumed = Some(Assumed { saving: question.saving, nodes: Vec::new() });
        truth
    }

    fn answer(&mut self, pods: &[PodId], first: usize) -> Answer {
        let mut answer = Answer::default();
        if self.prices.len() > MANY_PRICES {
            self.prices.clear();
        }
        let mut claims = self.solver.claims.split_off(first);
        self.solver.name_types(&mut claims, &mut self.prices);
        for claim in claims.iter().cloned() {
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
        self.solver.claims.extend(claims);
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

    fn take_back(&mut self, truth: Truth, question: &Question<'_>, pods: &[PodId], first: usize) {
        let solver = &mut self.solver;
        question.without.iter().for_each(|node| solver.gone[node.index()] = false);
        let core = &mut solver.core;
        core.topology.come_back(&core.world.universe);
        core.options = truth.options;
        if let Some(reservations) = truth.reservations {
            core.reservations = reservations;
        }
        solver.order = truth.order;
        let of_claims = solver.claims.drain(first..).map(|claim| claim.pool);
        let of_nodes = question.credit.into_iter().flat_map(|_| shares(core.world.snapshot, question));
        for pool in of_claims.chain(of_nodes.map(|share| share.pool)) {
            solver.limits[pool.index()].clone_from(&self.limits[pool.index()]);
        }
        for (node, state) in solver.assumed.take().into_iter().flat_map(|assumed| assumed.nodes) {
            solver.nodes[node.index()] = state;
        }
        self.forget(pods, first);
    }

    /// Forgets what was found out about some pods, and what claims from a number on have refused.
    fn forget(&mut self, pods: &[PodId], first: usize) {
        let solver = &mut self.solver;
        let snapshot = solver.core.world.snapshot;
        for pod in pods {
            solver.places[pod.index()] = None;
            solver.failures[pod.index()] = None;
            let state = &mut solver.classes[snapshot.pods[pod.index()].class.index()];
            state.failed = None;
            state.variants.iter_mut().flatten().for_each(|variant| variant.forget_refusals_from(first));
        }
    }
}
