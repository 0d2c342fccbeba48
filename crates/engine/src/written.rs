//! Requirements as a NodeClaim writes them.

use crate::intern::KeyId;
use crate::model::Snapshot;
use crate::requirement::{Operator, Requirement};
use crate::solve::PlannedClaim;
use crate::universe::{SetId, Undefined, Universe};

/// Labels that every node gets once it has joined. Pods and DaemonSets may ask for them, so claims pretend to have
/// them while deciding, but they are not written.
pub const SIMULATED: [&str; 2] = ["karpenter.sh/registered", "karpenter.sh/initialized"];

/// One requirement of a NodeClaim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gte` or `Lte`.
    pub operator: &'static str,
    /// Sorted.
    pub values: Vec<String>,
    /// How many different values must remain.
    pub min_values: Option<u32>,
}

/// A set of requirements, in the order of their keys.
pub fn requirements(universe: &Universe, set: SetId, hostname: KeyId) -> Vec<Written> {
    let mut written: Vec<Written> = universe
        .entries(set)
        .iter()
        .filter(|(key, _)| *key != hostname && !SIMULATED.contains(&universe.key_name(*key)))
        .flat_map(|(key, id)| one(universe, *key, universe.get(*id)))
        .collect();
    written.sort();
    written
}

/// Bounds and excluded values are separate entries; all of them hold together.
fn one(universe: &Universe, key: KeyId, requirement: &Requirement) -> Vec<Written> {
    let entry = |operator: &'static str, values: Vec<String>| Written {
        key: universe.key_name(key).to_owned(),
        operator,
        values,
        min_values: requirement.min_values(),
    };
    let (gte, lte) = requirement.bounds();
    let mut entries = Vec::new();
    entries.extend(gte.map(|bound| entry("Gte", vec![bound.to_string()])));
    entries.extend(lte.map(|bound| entry("Lte", vec![bound.to_string()])));
    let operator = requirement.operator();
    if entries.is_empty() || operator == Operator::NotIn {
        let names = requirement.listed().iter().map(|value| universe.values(key).name(*value).to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        entries.push(entry(operator.as_str(), names));
    }
    entries
}

impl PlannedClaim {
    /// Everything the claim asks for: its requirements, the types it may become and how they may be bought.
    ///
    /// `universe` is that of the plan the claim belongs to.
    pub fn written(&self, snapshot: &Snapshot, universe: &mut Universe) -> Vec<Written> {
        let keys = snapshot.keys;
        let pool = &snapshot.pools[self.pool.index()];
        let catalogue = pool.catalogue.expect("a pool without types makes no claims");
        let types = &snapshot.catalogues[catalogue.index()].types;
        let mut capacity_types = Vec::new();
        for offering in self.types.iter().flat_map(|type_| &types[*type_].offerings) {
            let launchable = offering.available && offering.reservation.is_none_or(|(_, left)| left > 0);
            if launchable
                && universe.is_compatible(self.requirements, offering.requirements, Undefined::WellKnown)
            {
                let own = universe.find(offering.requirements, keys.capacity_type);
                capacity_types
                    .extend(own.and_then(|id| universe.get(id).members()).into_iter().flatten().copied());
            }
        }
        let names = Requirement::within(self.types.iter().map(|type_| types[*type_].name));
        let mut added = vec![(keys.instance_type, names)];
        capacity_types.sort_unstable();
        capacity_types.dedup();
        let own = universe.find(self.requirements, keys.capacity_type);
        let demanded = own.and_then(|id| universe.get(id).min_values()).unwrap_or(0);
        // Which of them can be had now is for the reader. The API server refuses fewer values than `minValues`, so
        // where they would be fewer those of the pool stay; what cannot be had is not launched anyway.
        if !capacity_types.is_empty() && capacity_types.len() >= demanded as usize {
            added.push((keys.capacity_type, Requirement::within(capacity_types)));
        }
        let added = universe.set(added);
        let all = universe.intersect(self.requirements, added);
        requirements(universe, all, keys.hostname)
    }
}
