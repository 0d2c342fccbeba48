//! Which values of a label nodes of the pools could have, and under which taints.

use crate::intern::{KeyId, ValueId};
use crate::model::{Snapshot, TaintsId};
use crate::universe::{FastMap, RequirementId, Universe};

/// A value that nodes of some pools could have.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub(crate) value: ValueId,
    /// The taints of those pools.
    pub(crate) taints: Vec<TaintsId>,
}

/// The domains of each label, found when they are first asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    known: FastMap<KeyId, Vec<Domain>>,
}

impl Domains {
    pub(crate) fn of(&mut self, snapshot: &Snapshot, universe: &Universe, key: KeyId) -> &[Domain] {
        self.known.entry(key).or_insert_with(|| find(snapshot, universe, key))
    }
}

fn find(snapshot: &Snapshot, universe: &Universe, key: KeyId) -> Vec<Domain> {
    let mut domains: Vec<Domain> = Vec::new();
    let mut places: FastMap<ValueId, usize> = FastMap::default();
    for pool in &snapshot.pools {
        let Some(catalogue) = pool.catalogue else { continue };
        let declared = universe.find(pool.declared, key);
        let mut add = |value: ValueId| {
            let place = *places.entry(value).or_insert_with(|| {
                domains.push(Domain { value, taints: Vec::new() });
                domains.len() - 1
            });
            if !domains[place].taints.contains(&pool.taints) {
                domains[place].taints.push(pool.taints);
            }
        };
        // Values that the pool names are domains even if no type offers them.
        declared.and_then(|id| universe.get(id).members()).into_iter().flatten().copied().for_each(&mut add);
        let mut seen: Vec<RequirementId> = Vec::new();
        for it in &snapshot.catalogues[catalogue.index()].types {
            let Some(offered) = universe.find(it.requirements, key) else { continue };
            if seen.contains(&offered) {
                continue;
            }
            seen.push(offered);
            let values = universe.get(offered).members().unwrap_or_default();
            let admits = |value: &ValueId| {
                declared.is_none_or(|id| universe.get(id).has(*value, universe.values(key)))
            };
            values.iter().copied().filter(admits).for_each(&mut add);
        }
    }
    domains
}
