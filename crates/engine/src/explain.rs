//! Why a pool has no type for a pod: how many types are left after each thing asked of them, and which type came
//! nearest.
//!
//! ```text
//! default: 1340 types → kubernetes.io/arch 944 → topology.kubernetes.io/zone 800 → fits 12 → available 0
//! ```
//!
//! A funnel ends in zero: the last step is what the pool refused the pod for.

use std::sync::Arc;

use crate::compiled::Compiled;
use crate::intern::{KeyId, ResourceId};
use crate::mask::Mask;
use crate::model::{ClassId, PodClass, PoolId, Snapshot};
use crate::resources::Amounts;
use crate::solve::template::{Template, node_alternatives};
use crate::solve::{PoolFailure, Unusable};
use crate::universe::{Incompatible, SetId, Universe};
use crate::world::World;

/// How many types of a pool are left after each thing asked of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Funnel {
    /// The pool.
    pub pool: PoolId,
    /// What was asked, and how many types were left; the first is how many there are.
    pub steps: Vec<(Step, usize)>,
    /// The type that came nearest, if one meets all labels.
    pub nearest: Option<NearestMiss>,
}

/// Something that is asked of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To be in the catalogue.
    Exists,
    /// To meet what the pool or the pod asks of a label.
    Label(KeyId),
    /// To have room for the pod and the DaemonSets.
    Fits,
    /// To be for sale at present where the pod may run.
    Available,
    /// To be of a pool whose taints the pod tolerates.
    Taints,
    /// To be where the pod's volumes can be attached.
    Volumes,
    /// To attach as many volumes as the pod has.
    VolumeLimits,
    /// To leave the ports of the host to the pod that it needs.
    HostPorts,
    /// To be where topology rules let the pod go.
    Topology,
    /// To be within the limits of the pool.
    Limits,
    /// To leave as much choice as the pool demands.
    MinValues,
    /// To have a capacity reservation that is free.
    Reservations,
}

impl Step {
    /// The test at which a pool has refused a pod.
    fn of(failure: &PoolFailure, hostname: KeyId) -> Self {
        match failure {
            PoolFailure::Taints(_) => Self::Taints,
            PoolFailure::VolumeLimit(_) => Self::VolumeLimits,
            PoolFailure::Requirements(conflict) => Self::Label(match &conflict.reason {
                Incompatible::Undefined(key) => *key,
                Incompatible::Conflicts(keys) => keys.first().copied().unwrap_or(hostname),
            }),
            PoolFailure::Volumes(_) => Self::Volumes,
            PoolFailure::Topology(_) | PoolFailure::TopologyConflict(_) => Self::Topology,
            // What has labels, room and an offering has no port to give.
            PoolFailure::Types(_) => Self::HostPorts,
            PoolFailure::NodeLimit(_) | PoolFailure::Limits(_) | PoolFailure::LimitsUnsettled => Self::Limits,
            PoolFailure::MinValues(_) | PoolFailure::Truncated(_) => Self::MinValues,
            PoolFailure::Reserved(_) => Self::Reservations,
        }
    }
}

/// The type that came nearest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestMiss {
    /// The type, by its place in the catalogue.
    pub type_: usize,
    /// What it lacks most, and how much of it; nothing if it is only not for sale.
    pub lacks: Option<(ResourceId, i64)>,
}

/// Explains failures of one plan.
pub struct Explainer<'a> {
    pub(crate) world: World<'a>,
    /// The catalogues, prepared when one is first looked into.
    compiled: Vec<Compiled>,
}

impl<'a> Explainer<'a> {
    /// Explains a plan for a snapshot. `universe` is the plan's.
    pub fn new(snapshot: &'a Snapshot, universe: &Universe) -> Self {
        let mut world = World::new(snapshot);
        world.universe = universe.clone();
        Self { world, compiled: Vec::new() }
    }

    /// The requirements that explanations speak of.
    pub fn universe(&self) -> &Universe {
        &self.world.universe
    }

    pub(crate) fn compiled(&mut self) -> (&mut [Compiled], &mut World<'a>) {
        let Self { world, compiled } = self;
        if compiled.is_empty() {
            let catalogues = world.snapshot.catalogues.iter();
            compiled.extend(catalogues.map(|catalogue| {
                Compiled::new(Arc::clone(catalogue), &world.universe, &world.snapshot.resources)
            }));
        }
        (compiled, world)
    }

    /// The template of a pool, its demand for choice lowered to what there is.
    pub(crate) fn template(&mut self, pool: PoolId) -> Option<Template> {
        let (compiled, world) = self.compiled();
        Template::new(pool, &world.snapshot.pools[pool.index()], compiled, world, true).ok()
    }

    /// How the types of a pool fall away for a pod that has dropped all its wishes and that the pool has refused.
    pub fn funnel(&mut self, pool: PoolId, class: ClassId, failure: &PoolFailure) -> Option<Funnel> {
        let snapshot = self.world.snapshot;
        let class = &snapshot.classes[class.index()];
        let asked = if let PoolFailure::Types(failure) = failure {
            failure.requirements
        } else {
            let pod = self.asked(class);
            self.world.universe.intersect(snapshot.pools[pool.index()].requirements, pod)
        };
        let last = Step::of(failure, snapshot.keys.hostname);
        self.fall_away(pool, asked, Some(class), last)
    }

    /// How the types fall away of a pool that nothing can be launched for.
    pub fn funnel_of_unusable(&mut self, unusable: &Unusable) -> Option<Funnel> {
        let asked = self.world.snapshot.pools[unusable.pool.index()].requirements;
        let last = if unusable.min_values.is_empty() { Step::Available } else { Step::MinValues };
        self.fall_away(unusable.pool, asked, None, last)
    }

    fn fall_away(
        &mut self,
        pool: PoolId,
        asked: SetId,
        class: Option<&PodClass>,
        last: Step,
    ) -> Option<Funnel> {
        let catalogue = self.world.snapshot.pools[pool.index()].catalogue?;
        let daemons = self.template(pool).map(|template| template.daemons);
        let (compiled, world) = self.compiled();
        let compiled = &mut compiled[catalogue.index()];
        let mut steps = vec![(Step::Exists, compiled.types().len())];
        if last == Step::Taints {
            steps.push((last, 0));
            return Some(Funnel { pool, steps, nearest: None });
        }
        let mut rows = Mask::full(compiled.row_count());
        let mut keys: Vec<(KeyId, SetId)> = Vec::new();
        for (key, id) in world.universe.entries(asked).to_vec() {
            let requirement = world.universe.get(id).clone();
            keys.push((key, world.universe.set([(key, requirement)])));
        }
        keys.sort_by(|a, b| world.universe.key_name(a.0).cmp(world.universe.key_name(b.0)));
        for (key, set) in keys {
            let before = rows.count();
            rows.and(&compiled.meeting(set, &world.universe));
            if rows.count() != before {
                steps.push((Step::Label(key), compiled.types_of(&rows).len()));
            }
        }
        let meeting = rows.clone();
        let requests = class.map_or_else(Amounts::default, |class| class.requests.clone());
        let mut fitting = Mask::empty(compiled.row_count());
        let mut least_overhead: Option<Amounts> = None;
        for group in daemons.iter().flat_map(|groups| groups.iter()) {
            let mut of_group = rows.clone();
            of_group.and(&group.rows);
            if of_group.is_empty() {
                continue;
            }
            let mut total = requests.clone();
            total.add(&group.overhead);
            compiled.keep_fitting(&mut of_group, &total);
            fitting.or(&of_group);
            least_overhead.get_or_insert_with(|| group.overhead.clone()).lower_to(&group.overhead);
        }
        if daemons.is_none() {
            fitting = rows.clone();
            compiled.keep_fitting(&mut fitting, &requests);
        }
        if class.is_some() {
            steps.push((Step::Fits, compiled.types_of(&fitting).len()));
        }
        let mut available = compiled.offered(asked, &mut world.universe);
        available.and(&fitting);
        steps.push((Step::Available, compiled.types_of(&available).len()));
        let mut wanted = requests;
        wanted.add(&least_overhead.unwrap_or_default());
        let nearest = nearest_miss(compiled, &meeting, &fitting, &available, &wanted);
        // What is asked after nothing is left says nothing.
        let end = steps.iter().position(|(_, left)| *left == 0).map_or(steps.len(), |zero| zero + 1);
        steps.truncate(end);
        if steps.last().is_some_and(|(_, left)| *left > 0) {
            steps.push((last, 0));
        }
        Some(Funnel { pool, steps, nearest })
    }

    /// What a pod asks of labels, the host name left out; of several alternatives the last counts.
    pub(crate) fn asked(&mut self, class: &PodClass) -> SetId {
        let alternatives = node_alternatives(class.node_selector, &class.required_terms, &mut self.world);
        let last = alternatives.last().copied().unwrap_or(SetId::EMPTY);
        self.world.universe.without(last, self.world.snapshot.keys.hostname)
    }
}

fn nearest_miss(
    compiled: &Compiled,
    meeting: &Mask,
    fitting: &Mask,
    available: &Mask,
    wanted: &Amounts,
) -> Option<NearestMiss> {
    if !available.is_empty() {
        return None;
    }
    if let Some(row) = fitting.iter().next() {
        return Some(NearestMiss { type_: compiled.row_type(row), lacks: None });
    }
    // The type whose largest shortage, relative to what is wanted, is smallest.
    let shortage = |row: usize| {
        let have = compiled.row_allocatable(row);
        wanted
            .iter()
            .filter(|(resource, amount)| have.get(*resource) < *amount)
            .map(|(resource, amount)| {
                let missing = amount - have.get(resource);
                // Per mille is fine enough to compare and stays an integer.
                (i128::from(missing) * 1000 / i128::from(amount.max(1)), resource, missing)
            })
            .max()
    };
    meeting.iter().filter_map(|row| shortage(row).map(|shortage| (shortage, row))).min().map(
        |((_, resource, missing), row)| NearestMiss {
            type_: compiled.row_type(row),
            lacks: Some((resource, missing)),
        },
    )
}
