//! Which instance types and offerings of a pool an overlay is for.

use api::labels::LabelSets;
use api::shared::Requirement;
use engine::universe::{SetId, Undefined, Universe};

use crate::instance_types::InstanceType;
use crate::instance_types::wanted::compile;

/// Compares overlays with instance types.
pub(super) struct Matcher<'a> {
    universe: Universe,
    sets: &'a LabelSets,
}

/// An instance type as sets of requirements. What cannot be understood is for no overlay.
pub(super) struct Compiled {
    requirements: Option<SetId>,
    offerings: Vec<Option<SetId>>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(sets: &'a LabelSets) -> Self {
        let mut universe = Universe::default();
        for name in sets.well_known() {
            let key = universe.key(name);
            universe.set_well_known(key);
        }
        Self { universe, sets }
    }

    /// Requirements as a set, if they can be understood.
    pub(super) fn requirements(&mut self, requirements: &[Requirement]) -> Option<SetId> {
        compile(&mut self.universe, requirements, self.sets).ok()
    }

    pub(super) fn types(&mut self, types: &[InstanceType]) -> Vec<Compiled> {
        types
            .iter()
            .map(|each| Compiled {
                requirements: self.requirements(&each.requirements),
                offerings: each
                    .offerings
                    .iter()
                    .map(|offering| self.requirements(&offering.requirements))
                    .collect(),
            })
            .collect()
    }

    /// The offerings of a pool's type that an overlay is for, by their positions; none if it is not for the type.
    ///
    /// A label of the user's own must be known of the pool or the type. Of an offering, only what it says counts.
    pub(super) fn offerings(&mut self, selectors: SetId, each: &Compiled, asked: SetId) -> Vec<usize> {
        let Some(requirements) = each.requirements else { return Vec::new() };
        let known = self.universe.intersect(selectors, requirements);
        if !self.universe.is_compatible(known, asked, Undefined::Refused) {
            return Vec::new();
        }
        let mut selected = Vec::new();
        for (number, offering) in each.offerings.iter().enumerate() {
            let matches = |offering| self.universe.is_compatible(asked, offering, Undefined::WellKnown);
            if offering.is_some_and(matches) {
                selected.push(number);
            }
        }
        selected
    }
}
