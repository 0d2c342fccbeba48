//! What a pool's claims start from: the types it can use, and what DaemonSets take of them.

use std::sync::Arc;

use crate::compiled::Compiled;
use crate::mask::Mask;
use crate::model::{CatalogueId, HostPort, Pool, PoolId};
use crate::resources::Amounts;
use crate::solve::failure::Scarce;
use crate::solve::limits::Sizes;
use crate::solve::min_values;
use crate::universe::{SetId, Undefined};
use crate::world::World;

/// What a pool's claims start from.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) pool: PoolId,
    pub(crate) catalogue: CatalogueId,
    /// Requirements of the pool, lowered where its demand for choice could not be met.
    pub(crate) requirements: SetId,
    pub(crate) min_values_relaxed: bool,
    /// Rows of the types that the pool can use.
    pub(crate) rows: Mask,
    /// The types by which DaemonSets run on them.
    pub(crate) daemons: Arc<[DaemonGroup]>,
    /// The types by size, where the pool has limits.
    pub(crate) sizes: Option<Arc<Sizes>>,
}

/// Types that run the same DaemonSets.
#[derive(Debug)]
pub(crate) struct DaemonGroup {
    pub(crate) rows: Mask,
    pub(crate) overhead: Amounts,
    pub(crate) ports: Vec<HostPort>,
}

impl Template {
    /// The template of a pool, unless nothing the pool asks for can be had; then of which labels there is too little
    /// choice, if that is why.
    pub(crate) fn new(
        id: PoolId,
        pool: &Pool,
        compiled: &mut [Compiled],
        world: &mut World<'_>,
        relax_min_values: bool,
    ) -> Result<Self, Vec<Scarce>> {
        let catalogue = pool.catalogue.ok_or_else(Vec::new)?;
        let compiled = &mut compiled[catalogue.index()];
        let matching = compiled.matching(pool.requirements, &mut world.universe);
        let mut rows = (*matching).clone();
        compiled.keep_fitting(&mut rows, &Amounts::default());
        let mut rows = compiled.whole_types(&rows);
        let (mut requirements, mut min_values_relaxed) = (pool.requirements, false);
        let unmet = min_values::unmet(requirements, &rows, compiled, &world.universe);
        if !unmet.is_empty() {
            if relax_min_values {
                requirements = min_values::lowered(requirements, &unmet, &mut world.universe);
                min_values_relaxed = true;
            } else {
                rows = Mask::empty(compiled.row_count());
            }
        }
        if rows.is_empty() {
            return Err(min_values::scarce(requirements, &unmet, &world.universe));
        }
        let daemons = daemon_groups(pool, requirements, &rows, compiled, world).into();
        let sizes = Sizes::new(pool, &rows, compiled);
        Ok(Self { pool: id, catalogue, requirements, min_values_relaxed, rows, daemons, sizes })
    }
}

/// Groups types by the exact DaemonSets that run on them; groups come in the order of their first type.
fn daemon_groups(
    pool: &Pool,
    requirements: SetId,
    rows: &Mask,
    compiled: &mut Compiled,
    world: &mut World<'_>,
) -> Vec<DaemonGroup> {
    let snapshot = world.snapshot;
    let mut running: Vec<(usize, Mask)> = Vec::new();
    for class in &snapshot.daemons {
        let daemon = &snapshot.classes[class.index()];
        let tolerations = world.with_advice(daemon.tolerations);
        if daemon.needs_devices || !world.tolerates(tolerations, pool.taints) {
            continue;
        }
        let mut on = Mask::empty(compiled.row_count());
        for set in node_alternatives(daemon.node_selector, &daemon.required_terms, world) {
            if world.universe.is_compatible(requirements, set, Undefined::WellKnown) {
                on.or(&compiled.meeting(set, &world.universe));
            }
        }
        on.and(rows);
        if !on.is_empty() {
            running.push((class.index(), on));
        }
    }
    let mut groups: Vec<(Vec<usize>, DaemonGroup)> = Vec::new();
    for row in rows.iter() {
        let daemons: Vec<usize> =
            running.iter().filter(|(_, on)| on.contains(row)).map(|(class, _)| *class).collect();
        let position = groups.iter().position(|(signature, _)| *signature == daemons).unwrap_or_else(|| {
            let mut group = DaemonGroup {
                rows: Mask::empty(compiled.row_count()),
                overhead: Amounts::default(),
                ports: vec![],
            };
            for class in daemons.iter().map(|class| &snapshot.classes[*class]) {
                group.overhead.add(&class.requests);
                group.ports.extend(class.ports.iter().cloned());
            }
            groups.push((daemons, group));
            groups.len() - 1
        });
        groups[position].1.rows.insert(row);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What a pod asks of its node, one set for each of its required terms.
pub(crate) fn node_alternatives(selector: SetId, terms: &[SetId], world: &mut World<'_>) -> Vec<SetId> {
    if terms.is_empty() {
        return vec![selector];
    }
    terms.iter().map(|term| world.universe.intersect(selector, *term)).collect()
}
