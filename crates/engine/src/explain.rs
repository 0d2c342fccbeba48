//! Why a pool has no type for a pod: how many types are left after each thing asked of them, and which type came
//! nearest.
//!
//! ```text
//! default: 1340 types → kubernetes.io/arch 944 → topology.kubernetes.io/zone 800 → fits 12 → available 0
//! ```

use std::sync::Arc;

use crate::compiled::Compiled;
use crate::intern::{KeyId, ResourceId};
use crate::mask::Mask;
use crate::model::{ClassId, PodClass, PoolId, Snapshot};
use crate::resources::Amounts;
use crate::solve::template::{Template, node_alternatives};
use crate::universe::SetId;
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
}

/// The type that came nearest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestMiss {
    /// The type, by its place in the catalogue.
    pub type_: usize,
    /// What it lacks most, and how much of it; nothing if it is only not for sale.
    pub lacks: Option<(ResourceId, i64)>,
}

/// Explains failures of one snapshot.
pub struct Explainer<'a> {
    world: World<'a>,
    compiled: Vec<Compiled>,
}

impl<'a> Explainer<'a> {
    /// Prepares the catalogues of a snapshot.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let world = World::new(snapshot);
        let compiled = snapshot
            .catalogues
            .iter()
            .map(|catalogue| Compiled::new(Arc::clone(catalogue), &world.universe, &snapshot.resources))
            .collect();
        Self { world, compiled }
    }

    /// How the types of a pool fall away for a pod that has dropped all its wishes.
    pub fn funnel(&mut self, pool: PoolId, class: ClassId) -> Option<Funnel> {
        let snapshot = self.world.snapshot;
        let (it, class) = (&snapshot.pools[pool.index()], &snapshot.classes[class.index()]);
        let catalogue = it.catalogue?;
        let asked = self.asked(it.requirements, class);
        let daemons =
            Template::new(pool, it, &mut self.compiled, &mut self.world, true).ok().map(|t| t.daemons);
        let compiled = &mut self.compiled[catalogue.index()];
        let mut rows = Mask::full(compiled.row_count());
        let mut steps = vec![(Step::Exists, compiled.types().len())];
        let mut keys: Vec<(KeyId, SetId)> = Vec::new();
        for (key, id) in self.world.universe.entries(asked).to_vec() {
            let requirement = self.world.universe.get(id).clone();
            keys.push((key, self.world.universe.set([(key, requirement)])));
        }
        keys.sort_by(|a, b| self.world.universe.key_name(a.0).cmp(self.world.universe.key_name(b.0)));
        for (key, set) in keys {
            let before = rows.count();
            rows.and(&compiled.meeting(set, &self.world.universe));
            if rows.count() != before {
                steps.push((Step::Label(key), compiled.types_of(&rows).len()));
            }
        }
        let meeting = rows.clone();
        let mut fitting = Mask::empty(compiled.row_count());
        let mut least_overhead: Option<Amounts> = None;
        for group in daemons.iter().flat_map(|groups| groups.iter()) {
            let mut of_group = rows.clone();
            of_group.and(&group.rows);
            if of_group.is_empty() {
                continue;
            }
            let mut total = class.requests.clone();
            total.add(&group.overhead);
            compiled.keep_fitting(&mut of_group, &total);
            fitting.or(&of_group);
            least_overhead.get_or_insert_with(|| group.overhead.clone()).lower_to(&group.overhead);
        }
        if daemons.is_none() {
            fitting = rows.clone();
            compiled.keep_fitting(&mut fitting, &class.requests);
        }
        steps.push((Step::Fits, compiled.types_of(&fitting).len()));
        let mut available = compiled.offered(asked, &mut self.world.universe);
        available.and(&fitting);
        steps.push((Step::Available, compiled.types_of(&available).len()));
        let mut wanted = class.requests.clone();
        wanted.add(&least_overhead.unwrap_or_default());
        let nearest = nearest_miss(compiled, &meeting, &fitting, &available, &wanted);
        Some(Funnel { pool, steps, nearest })
    }

    /// What pool and pod together ask of labels; of several alternatives the pod's last counts.
    fn asked(&mut self, pool: SetId, class: &PodClass) -> SetId {
        let alternatives = node_alternatives(class.node_selector, &class.required_terms, &mut self.world);
        let last = alternatives.last().copied().unwrap_or(SetId::EMPTY);
        let pod = self.world.universe.without(last, self.world.snapshot.keys.hostname);
        self.world.universe.intersect(pool, pod)
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
