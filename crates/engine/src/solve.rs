//! Finds a place for every pod: on a node that exists, on a claim that was just planned, or on a new claim.
//!
//! Pods are tried in a fixed order, the largest first; the first place that takes a pod is its place. A pod that
//! fits nowhere drops its wishes one by one, and goes to the end of the queue when none is left, because pods
//! placed later may make room for it (a pod it wants to be near, say). The round ends when a whole pass over the
//! queue places nothing.
//!
//! What makes it fast: pods that cannot be told apart share a class, and a class remembers which nodes and claims
//! will never take it.

mod cheaper;
mod claim;
mod failure;
mod finish;
mod limits;
mod min_values;
mod node;
mod reserve;
mod simulation;
pub(crate) mod template;
mod variant;

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::compiled::Compiled;
use crate::intern::ResourceId;
use crate::mask::Mask;
use crate::model::{ClassId, NodeId, PodClass, PodId, PoolId, ReservationId, Snapshot, Volume};
use crate::options::{MinValues, Options, Reserved};
use crate::resources::Amounts;
use crate::topology::{GroupId, HostId, Rules, Topology};
use crate::universe::{FastMap, SetId};
use crate::world::World;

pub use cheaper::{Bargain, Dear};
pub use failure::{
    Conflict, Failure, Flags, LimitShortage, PoolFailure, ReservedFailure, Scarce, TopologyFailure,
    TypeFailure, VolumeExcess,
};
pub use finish::{Plan, PlannedClaim, Unusable};
pub use simulation::{Answer, Question, Simulation};

use claim::Claim;
use limits::Room;
use node::NodeState;
use reserve::Reservations;
use simulation::Assumed;
use template::Template;
use variant::{Demands, Variant, Wishes};

/// Where a pod goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A node that exists or is on its way.
    Node(NodeId),
    /// A new claim, by its place in the plan.
    Claim(u32),
}

/// Finds a place for every pod of a snapshot.
// Not inlined, so that tools that measure it find it.
#[inline(never)]
pub fn solve(snapshot: &Snapshot, options: &Options) -> Plan {
    let mut solver = Solver::new(snapshot, *options);
    solver.place_waiting();
    solver.finish()
}

/// What decides whether a place takes a pod.
#[derive(Clone)]
pub(crate) struct Core<'a> {
    options: Options,
    world: World<'a>,
    compiled: Vec<Compiled>,
    topology: Topology,
    reservations: Reservations,
}

/// The places as they fill up, and the pods still to be placed.
#[derive(Clone)]
pub(crate) struct Solver<'a> {
    core: Core<'a>,
    templates: Vec<Template>,
    unusable: Vec<Unusable>,
    /// What is left of each pool's limits.
    limits: Vec<Room>,
    nodes: Vec<NodeState>,
    claims: Vec<Claim>,
    /// Claims by how many pods they have, fewest first.
    order: Vec<u32>,
    classes: Vec<ClassState>,
    places: Vec<Option<Place>>,
    failures: Vec<Option<Arc<Failure>>>,
    /// Whether some pool's taints only advise against it.
    advice_exists: bool,
    /// Changes when a refusal for a label that nobody defines may no longer hold.
    label_epoch: u32,
    /// Changes when a reservation is taken or given back.
    reservation_epoch: u32,
    /// What is assumed while a question is answered.
    assumed: Option<Assumed>,
    /// Nodes that are gone, one flag each.
    gone: Vec<bool>,
}

/// What is known about a class.
#[derive(Clone, Default)]
struct ClassState {
    wishes: Option<Wishes>,
    variants: Vec<Option<Box<Variant>>>,
    complete: bool,
    /// Groups that keep others away from where pods of this class are.
    guards: Option<Arc<[GroupId]>>,
    failed: Option<FailedAt>,
}

/// When a class last failed everywhere: it fails again until one of these changes.
#[derive(Clone)]
struct FailedAt {
    failure: Arc<Failure>,
    label_epoch: u32,
    reservation_epoch: u32,
    groups: Vec<(GroupId, u32)>,
    claims: usize,
}

impl<'a> Solver<'a> {
    fn new(snapshot: &'a Snapshot, options: Options) -> Self {
        let mut world = World::new(snapshot);
        let mut compiled: Vec<Compiled> = snapshot
            .catalogues
            .iter()
            .map(|catalogue| Compiled::new(Arc::clone(catalogue), &world.universe, &snapshot.resources))
            .collect();
        let relax = options.min_values == MinValues::BestEffort;
        let mut templates = Vec::new();
        let mut unusable = Vec::new();
        for (id, pool) in snapshot.pools.iter().enumerate() {
            let id = PoolId::at(id);
            match Template::new(id, pool, &mut compiled, &mut world, relax) {
                Ok(template) => templates.push(template),
                Err(min_values) => unusable.push(Unusable { pool: id, min_values }),
            }
        }
        let advises = |template: &Template| {
            let taints = snapshot.taints.get(snapshot.pools[template.pool.index()].taints.0);
            taints.iter().any(|taint| taint.effect == crate::model::Effect::PreferNoSchedule)
        };
        Self {
            advice_exists: templates.iter().any(advises),
            limits: Room::of_pools(snapshot),
            nodes: node::states(&mut world),
            claims: Vec::new(),
            order: Vec::new(),
            classes: snapshot.classes.iter().map(|_| ClassState::default()).collect(),
            places: vec![None; snapshot.pods.len()],
            failures: vec![None; snapshot.pods.len()],
            label_epoch: 0,
            reservation_epoch: 0,
            assumed: None,
            gone: vec![false; snapshot.nodes.len()],
            templates,
            unusable,
            core: Core {
                topology: Topology::new(&world),
                reservations: match options.reserved {
                    Reserved::Off => Reservations::default(),
                    Reserved::Strict | Reserved::Fallback => Reservations::new(snapshot),
                },
                options,
                compiled,
                world,
            },
        }
    }

    /// Places the pods that have no place.
    fn place_waiting(&mut self) {
        let snapshot = self.core.world.snapshot;
        let waits = |pod: &PodId| snapshot.pods[pod.index()].runs.is_none();
        let mut pods: Vec<PodId> = (0..snapshot.pods.len()).map(PodId::at).filter(waits).collect();
        pods.sort_by(|a, b| before(snapshot, *a, *b));
        self.register_rules(&pods);
        pods.retain(|pod| !self.place_as_nominated(*pod));
        self.place_all(pods, usize::MAX);
    }

    /// Makes the rules of all pods count from the start, also those of pods that come later.
    fn register_rules(&mut self, pods: &[PodId]) {
        for pod in pods {
            self.variant_exists(self.core.world.snapshot.pods[pod.index()].class, 0);
        }
    }

    /// Places a pod on the node that it was nominated for; whether that was possible.
    ///
    /// An earlier plan chose its nodes for its pods. Placed anew in another order, the same pods would not all fit on
    /// them, and each pass until they are bound would launch more.
    fn place_as_nominated(&mut self, pod: PodId) -> bool {
        let snapshot = self.core.world.snapshot;
        let it = &snapshot.pods[pod.index()];
        let Some(node) = it.nominated.filter(|node| snapshot.nodes[node.index()].open) else { return false };
        let class = &snapshot.classes[it.class.index()];
        if class.needs_devices {
            return false;
        }
        let guards = self.guards(it.class);
        for step in 0.. {
            if !self.variant_exists(it.class, step) {
                return false;
            }
            let slot = &mut self.classes[it.class.index()].variants[step];
            let variant = slot.take().expect("a variant is in its place between attempts");
            let obeyed = self.obeyed(class, &variant);
            let fits = self.takes(node, class, &variant, &obeyed);
            self.classes[it.class.index()].variants[step] = Some(variant);
            if fits {
                self.occupy(node, class, &guards);
                self.places[pod.index()] = Some(Place::Node(node));
                return true;
            }
        }
        false
    }

    /// Places some pods, unless that takes more claims than allowed; returns whether it did not.
    fn place_all(&mut self, pods: Vec<PodId>, most_claims: usize) -> bool {
        self.register_rules(&pods);
        let mut queue: VecDeque<PodId> = pods.into();
        let mut length_when_queued: FastMap<PodId, usize> = FastMap::default();
        while let Some(pod) = queue.front().copied() {
            if length_when_queued.get(&pod) == Some(&queue.len()) {
                break;
            }
            queue.pop_front();
            match self.place(self.core.world.snapshot.pods[pod.index()].class, pod) {
                Ok(place) => {
                    self.places[pod.index()] = Some(place);
                    self.failures[pod.index()] = None;
                }
                Err(failure) => {
                    self.failures[pod.index()] = Some(failure);
                    queue.push_back(pod);
                    length_when_queued.insert(pod, queue.len());
                }
            }
            if self.claims.len() > most_claims {
                return false;
            }
        }
        true
    }

    fn place(&mut self, class_id: ClassId, pod: PodId) -> Result<Place, Arc<Failure>> {
        let class = &self.core.world.snapshot.classes[class_id.index()];
        if class.needs_devices {
            return Err(Arc::new(Failure::NeedsDevices));
        }
        if let Some(failure) = self.fails_again(class_id) {
            return Err(failure);
        }
        let guards = self.guards(class_id);
        let mut failure = Arc::new(Failure::NoPool);
        for step in 0.. {
            if !self.variant_exists(class_id, step) {
                break;
            }
            let slot = &mut self.classes[class_id.index()].variants[step];
            let mut variant = slot.take().expect("a variant is in its place between attempts");
            let attempt = self.attempt(class, &mut variant, &guards, pod);
            let second_try = variant.second_try;
            self.classes[class_id.index()].variants[step] = Some(variant);
            match attempt {
                Ok(place) => return Ok(place),
                Err(reason) if reason.is_deferred() => return Err(Arc::new(reason)),
                Err(_) if second_try => {}
                Err(reason) => failure = Arc::new(reason),
            }
        }
        self.remember_failure(class_id, &failure);
        Err(failure)
    }

    fn attempt(
        &mut self,
        class: &PodClass,
        variant: &mut Variant,
        guards: &[GroupId],
        pod: PodId,
    ) -> Result<Place, Failure> {
        let obeyed = self.obeyed(class, variant);
        if let Some(node) = self.place_on_node(class, variant, guards, &obeyed) {
            return Ok(Place::Node(node));
        }
        if let Some(claim) = self.place_on_claim(class, variant, guards, &obeyed, pod) {
            return Ok(Place::Claim(claim));
        }
        self.place_on_new_claim(class, variant, guards, &obeyed, pod).map(Place::Claim)
    }

    /// The topology groups that a pod must obey: its own rules, and those of others that keep it away.
    fn obeyed(&mut self, class: &PodClass, variant: &Variant) -> Vec<GroupId> {
        let mut obeyed = variant.owned.clone();
        let selecting = self.core.topology.selecting(self.core.world.snapshot, class).to_vec();
        obeyed.extend(selecting.into_iter().filter(|group| self.core.topology.group(*group).inverse));
        obeyed
    }

    /// Whether a class has a step, which is worked out if it is asked for the first time.
    fn variant_exists(&mut self, class_id: ClassId, step: usize) -> bool {
        while self.classes[class_id.index()].variants.len() <= step {
            let snapshot = self.core.world.snapshot;
            let class = &snapshot.classes[class_id.index()];
            let state = &mut self.classes[class_id.index()];
            if state.complete {
                return false;
            }
            match &mut state.wishes {
                None => state.wishes = Some(Wishes::of(class, self.core.options.preferences)),
                Some(wishes) => {
                    if !wishes.relax(self.advice_exists) {
                        state.complete = true;
                        return false;
                    }
                }
            }
            let wishes = state.wishes.as_ref().expect("wishes were just set");
            let second_try = wishes.is_second_try();
            let demands = Demands::new(class, wishes, &mut self.core.world.universe, snapshot.keys.hostname);
            let tolerations = if demands.advice_tolerated {
                self.core.world.with_advice(class.tolerations)
            } else {
                class.tolerations
            };
            let rules = Rules {
                class,
                tolerations,
                spreads: &demands.spreads,
                affinities: &demands.affinities,
                anti_affinities: &demands.anti_affinities,
                node_filter: &demands.node_filter,
            };
            let owned = self.core.topology.register(&mut self.core.world, &rules);
            if step == 0 {
                self.guards(class_id);
            }
            self.classes[class_id.index()].variants.push(Some(Box::new(Variant {
                requirements: demands.requirements,
                hostname: demands.hostname,
                strict: demands.strict,
                tolerations,
                owned,
                second_try,
                nodes: None,
                refused: Vec::new(),
            })));
        }
        true
    }

    fn guards(&mut self, class_id: ClassId) -> Arc<[GroupId]> {
        if let Some(guards) = &self.classes[class_id.index()].guards {
            return Arc::clone(guards);
        }
        let class = &self.core.world.snapshot.classes[class_id.index()];
        let guards: Arc<[GroupId]> = self.core.topology.guarded_by(&self.core.world, class).into();
        self.classes[class_id.index()].guards = Some(Arc::clone(&guards));
        guards
    }

    fn fails_again(&mut self, class_id: ClassId) -> Option<Arc<Failure>> {
        let failed = self.classes[class_id.index()].failed.as_ref()?;
        let unchanged = failed.label_epoch == self.label_epoch
            && failed.reservation_epoch == self.reservation_epoch
            && failed.groups.iter().all(|(id, version)| self.core.topology.group(*id).version() == *version)
            && (failed.groups.is_empty() || failed.claims == self.claims.len());
        unchanged.then(|| Arc::clone(&failed.failure))
    }

    fn remember_failure(&mut self, class_id: ClassId, failure: &Arc<Failure>) {
        let class = &self.core.world.snapshot.classes[class_id.index()];
        let inverse = self.core.topology.selecting(self.core.world.snapshot, class).to_vec();
        let inverse = inverse.into_iter().filter(|group| self.core.topology.group(*group).inverse);
        let variants = &self.classes[class_id.index()].variants;
        let mut groups: Vec<GroupId> = variants
            .iter()
            .flatten()
            .flat_map(|variant| variant.owned.iter().copied())
            .chain(inverse)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        self.classes[class_id.index()].failed = Some(FailedAt {
            failure: Arc::clone(failure),
            label_epoch: self.label_epoch,
            reservation_epoch: self.reservation_epoch,
            groups: groups.into_iter().map(|id| (id, self.core.topology.group(id).version())).collect(),
            claims: self.claims.len(),
        });
    }
}

/// In which order pods are placed: the largest first, then the oldest.
fn before(snapshot: &Snapshot, a: PodId, b: PodId) -> Ordering {
    let (a, b) = (&snapshot.pods[a.index()], &snapshot.pods[b.index()]);
    let size = |class: ClassId| {
        let requests = &snapshot.classes[class.index()].requests;
        (requests.get(ResourceId::CPU), requests.get(ResourceId::MEMORY))
    };
    size(b.class).cmp(&size(a.class)).then_with(|| a.created.cmp(&b.created)).then_with(|| a.uid.cmp(&b.uid))
}

/// How many volumes of each driver there are, with `more` of which some may be there already.
fn volume_counts(present: &[Volume], more: &[Volume]) -> FastMap<crate::model::DriverId, u32> {
    let mut all: Vec<Volume> = present.iter().chain(more).copied().collect();
    all.sort_unstable();
    all.dedup();
    let mut counts = FastMap::default();
    for volume in &all {
        *counts.entry(volume.driver).or_insert(0) += 1;
    }
    counts
}

/// What a host sees of itself: nodes come first, claims behind them.
fn claim_host(snapshot: &Snapshot, claim: usize) -> HostId {
    HostId::at(snapshot.nodes.len() + claim)
}

/// The parts of a claim that a pod would change.
struct Change {
    requirements: SetId,
    rows: Mask,
    reservations: Vec<ReservationId>,
    requests: Amounts,
}
