//! The cluster as one pass sees it, and what would happen if nodes went. Entry: [`Scene::without`].
//!
//! Pods that need a place anyway, because they wait for one or because their node is on its way out, are placed
//! first, with all nodes there. What they take is taken; what would have to be launched for them is none of the
//! business of those who ask, and neither is that there may be no place for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use api::labels::LabelSets;
use api::nodepool::NodePool;
use cluster::consolidate_after::is_unsettled;
use cluster::snapshot::{self, Built, InstanceTypes, Origin, ToPlace};
use cluster::state::State;
use engine::intern::ResourceId;
use engine::model::{ClassId, Guard, NodeId, PoolId, Running, Snapshot};
use engine::options::{Options, Reserved};
use engine::resources::{self, Amounts};
use engine::solve::{Place, Plan, solve};
use engine::text::Texts;
use jiff::Timestamp;
use runtime::Settings;
use units::{Format, Quantity};

use super::candidate::Candidate;
use super::launch::Launch;
use crate::catalogue::{self, Types};
use crate::managed::is_pool_managed;
use crate::provisioner;
use crate::provisioner::outcome::{Nominated, outcome};

/// How many pods a summary names.
const SHOWN: usize = 5;

/// The cluster as one pass sees it.
#[derive(Debug)]
pub(crate) struct Scene {
    /// One time for all.
    pub(crate) now: Timestamp,
    state: State,
    types: Types,
    settings: Arc<Settings>,
    sets: Arc<LabelSets>,
    pools: BTreeMap<Box<str>, Arc<NodePool>>,
    base: OnceLock<Base>,
}

/// What is asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    /// Whether nodes that have not been quiet for long enough refuse pods of nodes that go.
    pub(crate) consolidation: bool,
    /// Whether pods need a place, too, that something keeps from being evicted.
    pub(crate) blocked_pods: bool,
    /// A reservation that gets one launch back; then nothing but reservations is taken where there are any.
    pub(crate) credit: Option<Box<str>>,
}

/// What would happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simulated {
    /// Nodes that would have to be launched for the pods of the nodes that go.
    pub(crate) launches: Vec<Launch>,
    /// Pods that would have no place, by name.
    pub(crate) unplaced: Vec<Unplaced>,
    /// Nodes that would take pods.
    pub(crate) destinations: Vec<Nominated>,
}

/// A pod that would have no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unplaced {
    /// Its namespace and name.
    pub(crate) pod: Box<str>,
    /// Why.
    pub(crate) why: String,
}

impl Simulated {
    /// Whether every pod would have a place.
    pub(crate) fn is_complete(&self) -> bool {
        self.unplaced.is_empty()
    }

    /// What is wrong, for users.
    pub(crate) fn summary(&self) -> String {
        if self.unplaced.is_empty() {
            return "No Pod Scheduling Errors".to_owned();
        }
        let mut text = "not all pods would schedule, ".to_owned();
        for Unplaced { pod, why } in self.unplaced.iter().take(SHOWN) {
            let _ = write!(text, "{pod} => {why} ");
        }
        if self.unplaced.len() >= SHOWN {
            let _ = write!(text, " and {} other(s)", self.unplaced.len() - SHOWN);
        }
        text
    }
}

/// What is so whoever goes.
#[derive(Debug)]
struct Base {
    /// The nodes that pods go to that need a place anyway; none where that is a new node, or nowhere.
    places: BTreeMap<Box<str>, Option<usize>>,
    /// What is launched for them.
    claims: Vec<(PoolId, Amounts)>,
    /// Nodes that have not been quiet for long enough.
    unsettled: Vec<usize>,
}

impl Scene {
    /// A scene of a state. Instances in `leaving` are taken as on their way out.
    pub(crate) fn new(
        state: &State,
        types: &Types,
        settings: &Arc<Settings>,
        leaving: &BTreeSet<Box<str>>,
        now: Timestamp,
    ) -> Self {
        let mut state = state.clone();
        state.mark_for_deletion(leaving.iter().map(AsRef::as_ref));
        let managed = state.node_pools.values().filter(|pool| is_pool_managed(pool, state.provider()));
        let named = managed.map(|pool| (pool.metadata.name.as_deref().unwrap_or_default().into(), pool));
        let pools = named.map(|(name, pool)| (name, Arc::clone(pool))).collect();
        let sets = catalogue::label_sets(state.provider(), types.values().flat_map(|types| types.iter()));
        Self {
            now,
            types: types.clone(),
            settings: Arc::clone(settings),
            sets: Arc::new(sets),
            pools,
            base: OnceLock::new(),
            state,
        }
    }

    /// The state.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// What the administrator has set.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What every pool can choose from.
    pub(crate) fn types(&self) -> &Types {
        &self.types
    }

    /// Which labels there are.
    pub(crate) fn sets(&self) -> &Arc<LabelSets> {
        &self.sets
    }

    /// What would happen if the nodes of some candidates went.
    pub(crate) fn without(&self, candidates: &[&Candidate], ask: &Ask) -> Simulated {
        let removed = candidates.iter().map(|candidate| candidate.provider_id.clone()).collect();
        let mut built = self.build(removed, ask.blocked_pods);
        let base = self.base();
        base.place_first(&mut built);
        if ask.consolidation {
            for node in &base.unsettled {
                built.snapshot.nodes[*node].open = false;
            }
        }
        let mut options = self.options(Reserved::Fallback);
        if let Some(reservation) = &ask.credit {
            credit(&mut built.snapshot, reservation);
            options = self.options(Reserved::Strict);
        }
        let plan = solve(&built.snapshot, &options);
        self.simulated(&built, plan)
    }

    fn options(&self, reserved: Reserved) -> Options {
        let options = provisioner::options(&self.settings);
        // Where reservations are not looked at, they are not looked at here either.
        if options.reserved == Reserved::Off { options } else { Options { reserved, ..options } }
    }

    fn build(&self, removed: BTreeSet<Box<str>>, blocked_pods: bool) -> Built {
        let mut options = snapshot::Options::new(self.state.provider(), &[]);
        options.instance_types = InstanceTypes::ByPool(&self.types);
        options.scheduler_config = self.settings.scheduler_config.clone();
        options.removed = removed;
        options.to_place = ToPlace { blocked_of_removed_nodes: blocked_pods, ..ToPlace::default() };
        snapshot::build(&self.state, &options, self.now)
    }

    fn base(&self) -> &Base {
        self.base.get_or_init(|| {
            let built = self.build(BTreeSet::new(), false);
            let plan = solve(&built.snapshot, &self.options(Reserved::Fallback));
            let places = built.snapshot.pods.iter().zip(&plan.places).map(|(pod, place)| {
                let node = match place {
                    Some(Place::Node(node)) => Some(node.index()),
                    Some(Place::Claim(_)) | None => None,
                };
                (pod.name.clone(), node)
            });
            let claims = plan.claims.iter().map(|claim| (claim.pool, claim.requests.clone()));
            Base { places: places.collect(), claims: claims.collect(), unsettled: self.unsettled(&built) }
        })
    }

    /// Nodes that have not been quiet for long enough. Pools that get no new nodes have no say in it.
    fn unsettled(&self, built: &Built) -> Vec<usize> {
        let pools: BTreeSet<&str> = built.snapshot.pools.iter().map(|pool| &*pool.name).collect();
        let all = built.nodes.iter().enumerate();
        let unsettled = all.filter(|(_, origin)| {
            let Some(node) = self.state.state_node(&origin.provider_id) else { return false };
            let pool = self.pools.get(node.pool()).filter(|_| pools.contains(node.pool()));
            is_unsettled(pool.map(Arc::as_ref), node.claim, self.now)
        });
        unsettled.map(|(position, _)| position).collect()
    }

    fn simulated(&self, built: &Built, plan: Plan) -> Simulated {
        let snapshot = &built.snapshot;
        let mut unplaced = BTreeMap::<Box<str>, String>::new();
        let texts = Texts { snapshot, universe: &plan.universe };
        for (pod, failure) in snapshot.pods.iter().zip(&plan.failures) {
            if let Some(failure) = failure {
                unplaced.insert(pod.name.clone(), texts.failure(failure));
            }
        }
        let moved =
            snapshot.pods.iter().zip(&built.pods).filter(|(_, origin)| **origin == Origin::RemovedNode);
        let moved: BTreeSet<&str> = moved.map(|(pod, _)| &*pod.name).collect();
        let outcome = outcome(built, plan, &self.pools, &self.sets);
        for node in outcome.nominated.iter().filter(|node| !self.is_up(node)) {
            let names = [("nodeclaim", &node.origin.claim), ("node", &node.origin.node)];
            let names = names.iter().filter_map(|(kind, name)| Some(format!("{kind}/{}", name.as_ref()?)));
            let why =
                format!("would schedule against uninitialized {}", names.collect::<Vec<_>>().join(", "));
            let names = node.pods.iter().map(|pod| pod.key.to_string());
            for name in names.filter(|name| moved.contains(name.as_str())) {
                unplaced.insert(name.into(), why.clone());
            }
        }
        let launches = outcome.claims.into_iter().map(|new| {
            let pool = new.pool.metadata.name.as_deref().unwrap_or_default();
            let types = self.types.get(pool).map_or_else(|| Arc::from([]), Arc::clone);
            Launch::new(new, types, Arc::clone(&self.sets))
        });
        Simulated {
            launches: launches.collect(),
            unplaced: unplaced.into_iter().map(|(pod, why)| Unplaced { pod, why }).collect(),
            destinations: outcome.nominated,
        }
    }

    /// Whether pods that run can move to a node: it is ready for them, and not about to be booted again.
    fn is_up(&self, node: &Nominated) -> bool {
        let is_rebooting = || {
            let known = self.state.state_node(&node.origin.provider_id);
            known.is_some_and(|known| known.is_rebooting())
        };
        node.origin.claim.is_none() || node.initialized && !is_rebooting()
    }
}

impl Base {
    /// Leaves only those pods to be placed whose place goes; the others are where they go anyway.
    fn place_first(&self, built: &mut Built) {
        let snapshot = &mut built.snapshot;
        let pods = std::mem::take(&mut snapshot.pods);
        let origins = std::mem::take(&mut built.pods);
        for (pod, origin) in pods.into_iter().zip(origins) {
            let place = self.places.get(&pod.name).copied().flatten();
            match place {
                _ if origin == Origin::RemovedNode => {}
                Some(node) if !snapshot.nodes[node].open => {}
                Some(node) => {
                    occupy(snapshot, node, pod.class);
                    continue;
                }
                None => continue,
            }
            snapshot.pods.push(pod);
            built.pods.push(origin);
        }
        let one = resources::capacity(ResourceId::NODES, Quantity::from_units(1, Format::DecimalSi));
        for (pool, requests) in &self.claims {
            for limit in &mut snapshot.pools[pool.index()].limits {
                let taken =
                    if limit.resource == ResourceId::NODES { one } else { requests.get(limit.resource) };
                limit.remaining = limit.remaining.saturating_sub(taken);
            }
        }
    }
}

/// Puts a pod on a node.
fn occupy(snapshot: &mut Snapshot, node: usize, class: ClassId) {
    let class = &snapshot.classes[class.index()];
    let (id, taken) = (NodeId::at(node), &mut snapshot.nodes[node]);
    for resource in &taken.resources {
        let left = taken.available.get(*resource).saturating_sub(class.requests.get(*resource));
        taken.available.set(*resource, left);
    }
    taken.ports.extend_from_slice(&class.ports);
    taken.volumes.extend_from_slice(&class.volumes);
    taken.volumes.sort_unstable();
    taken.volumes.dedup();
    snapshot.running.push(Running { node: id, namespace: class.namespace, labels: class.labels, count: 1 });
    if !class.anti_affinities.is_empty() {
        let terms = class.anti_affinities.clone();
        snapshot.guards.push(Guard { node: id, tolerations: class.tolerations, terms });
    }
}

/// Gives one launch back to a reservation. One that nobody offers gets nothing.
fn credit(snapshot: &mut Snapshot, reservation: &str) {
    for catalogue in &mut snapshot.catalogues {
        let types = &mut Arc::make_mut(catalogue).types;
        for (id, left) in
            types.iter_mut().flat_map(|it| &mut it.offerings).filter_map(|it| it.reservation.as_mut())
        {
            if snapshot.reservations.resolve(id.0) == reservation {
                *left = left.saturating_add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
