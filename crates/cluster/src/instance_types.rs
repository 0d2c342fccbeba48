//! Instance types as providers describe them, and their way into the engine's catalogue.
//!
//! [`kwok`] reads the files that the simulated provider uses and knows its built-in types; [`wanted`] compares
//! types and offerings with what a NodeClaim asks for.

pub mod kwok;
pub mod wanted;

use api::labels::LabelSets;
use api::names::{labels, resources, values};
use api::provider::Provider;
use api::shared::{Operator, Requirement};
use units::{Format, Quantity, Resources};

pub use engine::model::Overlaid;

pub use wanted::Wanted;

/// A kind of machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceType {
    /// Its name, the value of the instance-type label.
    pub name: String,
    /// Its labels.
    pub requirements: Vec<Requirement>,
    /// Where and how it can be bought.
    pub offerings: Vec<Offering>,
    /// What it has.
    pub capacity: Resources,
    /// What the system keeps of it.
    pub overhead: Resources,
    /// How many volumes of a driver it can attach; unknown where absent.
    pub volume_limits: Vec<(String, u32)>,
    /// What NodeOverlays changed.
    pub overlaid: Overlaid,
}

/// One way to buy an instance type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offering {
    /// Zone, capacity type and whatever else it fixes.
    pub requirements: Vec<Requirement>,
    /// Price per hour.
    pub price: f64,
    /// Whether it can be had at present.
    pub available: bool,
    /// How many launches its reservation has left.
    pub reservation_capacity: u32,
    /// Capacity that differs from the type's.
    pub capacity_override: Option<Resources>,
    /// Overhead that differs from the type's.
    pub overhead_override: Option<Resources>,
}

impl InstanceType {
    /// What pods can use of it: what the system keeps is taken off, and huge pages are no ordinary memory.
    pub fn allocatable(&self) -> Resources {
        let mut left = self.capacity.clone();
        left.subtract(&self.overhead);
        let huge = self.capacity.iter().filter(|(name, _)| name.as_str().starts_with("hugepages-"));
        for (_, pages) in huge {
            if let Some(mut memory) = left.get(resources::MEMORY) {
                memory -= *pages;
                left.set(resources::MEMORY, memory.max(Quantity::from_units(0, Format::BinarySi)));
            }
        }
        left
    }

    /// What pods can use of it if it is bought in one way, which may have more or less than others.
    pub fn allocatable_of(&self, offering: &Offering) -> Resources {
        if offering.capacity_override.is_none() && offering.overhead_override.is_none() {
            return self.allocatable();
        }
        let of_offering = Self {
            capacity: self.capacity_of(offering),
            overhead: replaced(&self.overhead, offering.overhead_override.as_ref()),
            ..Self::default()
        };
        of_offering.allocatable()
    }

    /// What it has if it is bought in one way.
    pub fn capacity_of(&self, offering: &Offering) -> Resources {
        replaced(&self.capacity, offering.capacity_override.as_ref())
    }
}

/// Amounts, some of them replaced by others.
fn replaced(base: &Resources, by: Option<&Resources>) -> Resources {
    let mut all = base.clone();
    for (name, amount) in by.into_iter().flatten() {
        all.set(name.clone(), *amount);
    }
    all
}

impl Offering {
    /// The one value that it has for a label; none if it leaves a choice.
    pub fn value(&self, key: &str) -> Option<&str> {
        single(self.requirements.iter().find(|requirement| requirement.key == key)?)
    }

    /// Whether an instance can be had now: of a reservation, as long as some of it is left.
    pub fn is_launchable(&self) -> bool {
        let is_reserved = self.value(labels::CAPACITY_TYPE) == Some(values::capacity_type::RESERVED);
        self.available && (!is_reserved || self.reservation_capacity > 0)
    }
}

/// The labels of a cloud, together with those that its instance types are told apart by.
pub fn label_sets<'a>(provider: Provider, types: impl IntoIterator<Item = &'a InstanceType>) -> LabelSets {
    let mut offered: Vec<&String> = Vec::new();
    let offerings = types.into_iter().flat_map(|each| &each.offerings);
    for requirement in offerings.flat_map(|offering| &offering.requirements) {
        if !offered.contains(&&requirement.key) {
            offered.push(&requirement.key);
        }
    }
    LabelSets::for_provider(provider).with_well_known(offered.into_iter().cloned())
}

/// The one value that satisfies a requirement, if it names just one.
pub fn single(requirement: &Requirement) -> Option<&str> {
    match requirement.values.as_slice() {
        [value] if requirement.operator == Operator::In => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use api::shared::Operator;

    use super::*;

    #[test]
    fn a_reservation_can_be_launched_from_as_long_as_some_of_it_is_left() {
        for (kind, available, left, expected) in [
            (Some("reserved"), true, 1, true),
            (Some("reserved"), true, 0, false),
            (Some("reserved"), false, 1, false),
            (Some("on-demand"), true, 0, true),
            (Some("on-demand"), false, 0, false),
            (None, true, 0, true),
            (None, false, 1, false),
        ] {
            let requirements = kind.map(|kind| Requirement {
                key: labels::CAPACITY_TYPE.to_owned(),
                operator: Operator::In,
                values: vec![kind.to_owned()],
                min_values: None,
            });
            let requirements = requirements.into_iter().collect();
            let offering =
                Offering { requirements, available, reservation_capacity: left, ..Offering::default() };
            assert_eq!(offering.is_launchable(), expected, "{kind:?} {available} {left}");
        }
    }
}
