//! Pools can demand that enough different values of a label remain to choose from.

use crate::compiled::Compiled;
use crate::intern::{KeyId, ValueId};
use crate::mask::Mask;
use crate::solve::failure::Scarce;
use crate::universe::{SetId, Universe};

/// The keys whose demand is not met by the types, each with how many values there are.
pub(crate) fn unmet(set: SetId, rows: &Mask, compiled: &Compiled, universe: &Universe) -> Vec<(KeyId, u32)> {
    let demanding: Vec<_> =
        universe.entries(set).iter().filter(|(_, id)| universe.get(*id).min_values().is_some()).collect();
    // What no type is left for has another reason.
    if demanding.is_empty() || rows.is_empty() {
        return Vec::new();
    }
    let types = compiled.types_of(rows);
    let mut unmet = Vec::new();
    for (key, id) in demanding {
        let requirement = universe.get(*id);
        let mut values: Vec<ValueId> = types
            .iter()
            .filter_map(|type_| universe.find(compiled.types()[*type_].requirements, *key))
            .flat_map(|own| universe.get(own).members().unwrap_or_default())
            .copied()
            // Only values that the requirement itself still admits are a choice.
            .filter(|value| requirement.has(*value, universe.values(*key)))
            .collect();
        values.sort_unstable();
        values.dedup();
        let found = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if requirement.min_values().is_some_and(|wanted| found < wanted) {
            unmet.push((*key, found));
        }
    }
    unmet
}

/// The same as data for users.
pub(crate) fn scarce(set: SetId, unmet: &[(KeyId, u32)], universe: &Universe) -> Vec<Scarce> {
    let wanted = |key| universe.find(set, key).and_then(|id| universe.get(id).min_values()).unwrap_or(0);
    unmet.iter().map(|(key, found)| Scarce { key: *key, wanted: wanted(*key), found: *found }).collect()
}

/// The requirements with the demand lowered to what there is.
pub(crate) fn lowered(set: SetId, unmet: &[(KeyId, u32)], universe: &mut Universe) -> SetId {
    unmet.iter().fold(set, |set, (key, found)| {
        let id = universe.find(set, *key).expect("a key with a demand is in the set");
        let requirement = universe.get(id).clone().with_min_values(Some(*found));
        universe.replaced(set, *key, requirement)
    })
}
