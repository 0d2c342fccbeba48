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
use cluster::buffers;
use cluster::snapshot::{self, Built, InstanceTypes, Origin, ToPlace};
use cluster::state::State;
use engine::options::{Options, Reserved};
use engine::solve::Simulation;
use engine::zones::{Zones, effective_zones};
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::Settings;

use super::candidate::Candidate;
use super::launch::Launch;
use super::oracle::Oracle;
use crate::catalogue::{self, Types};
use crate::managed::is_pool_managed;
use crate::provisioner::counted::Counted;
use crate::provisioner::outcome::Nominated;
use crate::provisioner::{self, Refusals};

/// How a summary begins.
pub(crate) const NOT_ALL: &str = "not all pods would schedule, ";
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
    /// Instances that are to take no pods of others, because they may go any moment.
    closed: BTreeSet<Box<str>>,
    /// Which nodes are known to take no pods.
    refusals: Refusals,
    built: OnceLock<Built>,
    counted: OnceLock<Counted>,
    /// What is told of what was simulated.
    unplaced: Mutex<Option<usize>>,
    zones: OnceLock<Zones>,
}

/// What a simulation says of pods that wait for a node, whatever goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    /// How many have no place.
    pub(crate) unplaced: usize,
    /// In which zones they must be.
    pub(crate) zones: Zones,
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
        let mut text = NOT_ALL.to_owned();
        for Unplaced { pod, why } in self.unplaced.iter().take(SHOWN) {
            let _ = write!(text, "{pod} => {why} ");
        }
        if self.unplaced.len() >= SHOWN {
            let _ = write!(text, " and {} other(s)", self.unplaced.len() - SHOWN);
        }
        text
    }
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
            closed: BTreeSet::new(),
            refusals: Refusals::default(),
            built: OnceLock::new(),
            counted: OnceLock::new(),
            unplaced: Mutex::default(),
            zones: OnceLock::new(),
            state,
        }
    }

    /// The same, where some instances take no pods of nodes that go to save money.
    pub(crate) fn closing(self, closed: BTreeSet<Box<str>>) -> Self {
        Self { closed, ..self }
    }

    /// The same, where some nodes are known to take no pods.
    pub(crate) fn knowing(self, refusals: Refusals) -> Self {
        Self { refusals, ..self }
    }

    /// Why it is in vain to launch nodes in place of others, if so: such nodes are known to take no pods.
    pub(crate) fn refusal(&self, launches: &[Launch]) -> Option<String> {
        let mut launches = launches.iter();
        launches.find_map(|it| self.refusals.refuses(&self.state, &it.new, it.sets(), self.now))
    }

    /// What plans for pools with limits have counted.
    pub(crate) fn counted(&self) -> &Counted {
        self.counted.get_or_init(|| Counted::new(&self.state, self.now))
    }

    /// What is to be told of pods that wait, if anything was simulated since this was asked last.
    pub(crate) fn take_simulated(&self) -> Option<Pending> {
        let unplaced = self.unplaced.lock().take()?;
        Some(Pending { unplaced, zones: self.zones.get_or_init(|| self.pending_zones()).clone() })
    }

    /// In which zones the pods must be that wait for a node.
    fn pending_zones(&self) -> Zones {
        let built = self.built.get_or_init(|| self.build());
        let is_waiting = |origin: &Origin| *origin == Origin::Waiting;
        // Mostly nothing waits, and then nothing need be worked out.
        if !built.pods.iter().any(is_waiting) {
            return Zones::default();
        }
        effective_zones(&built.snapshot, |pod| is_waiting(&built.pods[pod.index()]))
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

    /// NodePools by name.
    pub(crate) fn pools(&self) -> &BTreeMap<Box<str>, Arc<NodePool>> {
        &self.pools
    }

    /// Answers what would happen if nodes went, as often as it is asked.
    pub(crate) fn oracle(&self) -> Oracle<'_> {
        let built = self.built.get_or_init(|| self.build());
        let simulation = Simulation::new(&built.snapshot, &self.options());
        let waiting = built.snapshot.pods.iter().zip(simulation.waiting().0);
        let unplaced = waiting.filter(|(pod, place)| pod.runs.is_none() && place.is_none()).count();
        *self.unplaced.lock() = Some(unplaced);
        Oracle::new(self, built, simulation)
    }

    /// What would happen if the nodes of some candidates went. Who asks more than once asks an oracle.
    pub(crate) fn without(&self, candidates: &[&Candidate], ask: &Ask) -> Simulated {
        self.oracle().without(candidates, ask)
    }

    /// Whether buffers may keep room on nodes.
    pub(crate) fn has_buffers(&self) -> bool {
        self.settings.gates.capacity_buffer && !self.state.capacity_buffers.is_empty()
    }

    fn options(&self) -> Options {
        let options = provisioner::options(&self.settings);
        // Where reservations are not looked at, they are not looked at here either.
        let reserved = if options.reserved == Reserved::Off { Reserved::Off } else { Reserved::Fallback };
        Options { reserved, ..options }
    }

    fn build(&self) -> Built {
        let mut options = snapshot::Options::new(self.state.provider(), &[]);
        options.instance_types = InstanceTypes::ByPool(&self.types);
        options.scheduler_config = self.settings.scheduler_config.clone();
        options.unsupported_volumes = self.state.unsupported_volumes().clone();
        options.to_place = ToPlace { in_case: true, ..ToPlace::default() };
        // What comes for a node is there before others are gone.
        options.leaving_count = true;
        let rooms =
            if self.settings.gates.capacity_buffer { buffers::rooms(&self.state) } else { Vec::new() };
        options.rooms = &rooms;
        let mut built = snapshot::build(&self.state, &options, self.now);
        for (node, origin) in built.snapshot.nodes.iter_mut().zip(&built.nodes) {
            node.takes_moved &= !self.closed.contains(&origin.provider_id);
        }
        built
    }
}

#[cfg(test)]
mod tests;
