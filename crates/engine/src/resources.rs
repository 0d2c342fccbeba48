//! Amounts of resources as dense vectors of integers.
//!
//! CPU is counted in billionths of a core, everything else in thousandths of a unit: exact for every amount that
//! occurs, and sums of a whole cluster stay far below the bounds of `i64`. What is finer is rounded to the safe
//! side, requests up and capacity down.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;
use units::{Format, Quantity};

use crate::intern::{Interner, ResourceId};

/// The resources of a snapshot, each known by a number.
#[derive(Clone, Debug)]
pub struct ResourceTable {
    names: Interner,
}

impl Default for ResourceTable {
    fn default() -> Self {
        let mut table = Self { names: Interner::default() };
        for (name, expected) in [
            ("cpu", ResourceId::CPU),
            ("memory", ResourceId::MEMORY),
            ("pods", ResourceId::PODS),
            ("nodes", ResourceId::NODES),
        ] {
            assert_eq!(table.intern(name), expected, "the first resources have fixed numbers");
        }
        table
    }
}

impl ResourceId {
    /// Processors.
    pub const CPU: Self = Self(0);
    /// Memory.
    pub const MEMORY: Self = Self(1);
    /// Pods.
    pub const PODS: Self = Self(2);
    /// Nodes, which only limits know.
    pub const NODES: Self = Self(3);
}

/// Units of a resource that make one.
const fn scale(resource: ResourceId) -> i128 {
    if resource.0 == ResourceId::CPU.0 { 1_000_000_000 } else { 1_000 }
}

const NANOS: i128 = 1_000_000_000;

impl ResourceTable {
    /// The number of a resource, which is added if it is new.
    pub fn intern(&mut self, name: &str) -> ResourceId {
        ResourceId::at(self.names.intern(name) as usize)
    }

    /// The number of a resource that was seen before.
    pub fn get(&self, name: &str) -> Option<ResourceId> {
        self.names.get(name).map(|id| ResourceId::at(id as usize))
    }

    /// A resource's name.
    pub fn name(&self, resource: ResourceId) -> &str {
        self.names.resolve(u32::from(resource.0))
    }

    /// An amount as people write it: bytes in powers of two, everything else in powers of ten.
    pub fn quantity(&self, resource: ResourceId, amount: i64) -> Quantity {
        let name = self.name(resource);
        let bytes = matches!(name, "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
        quantity(resource, amount, if bytes { Format::BinarySi } else { Format::DecimalSi })
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none, which is never so.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// What a pod asks for, rounded up.
pub fn request(resource: ResourceId, quantity: Quantity) -> i64 {
    let per_unit = NANOS / scale(resource);
    let nanos = quantity.nanos();
    saturate(nanos.div_euclid(per_unit) + i128::from(nanos.rem_euclid(per_unit) != 0))
}

/// What a node offers, rounded down.
pub fn capacity(resource: ResourceId, quantity: Quantity) -> i64 {
    saturate(quantity.nanos().div_euclid(NANOS / scale(resource)))
}

/// The amount as a quantity again, in the given format.
pub fn quantity(resource: ResourceId, amount: i64, format: Format) -> Quantity {
    Quantity::from_nanos(i128::from(amount) * (NANOS / scale(resource)), format)
}

fn saturate(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

/// An amount of each resource; what is missing at the end is zero.
#[derive(Clone, Debug, Default)]
pub struct Amounts(SmallVec<[i64; 8]>);

impl PartialEq for Amounts {
    fn eq(&self, other: &Self) -> bool {
        self.trimmed() == other.trimmed()
    }
}

impl Eq for Amounts {}

impl Hash for Amounts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.trimmed().hash(state);
    }
}

impl Amounts {
    /// The amount of a resource.
    #[inline]
    pub fn get(&self, resource: ResourceId) -> i64 {
        self.0.get(resource.index()).copied().unwrap_or(0)
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, resource: ResourceId, amount: i64) {
        if self.0.len() <= resource.index() {
            self.0.resize(resource.index() + 1, 0);
        }
        self.0[resource.index()] = amount;
    }

    /// Adds to the amount of a resource.
    pub fn increase(&mut self, resource: ResourceId, amount: i64) {
        self.set(resource, self.get(resource).saturating_add(amount));
    }

    /// Adds all amounts of another vector.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Subtracts all amounts of another vector.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    /// Takes the larger amount of each resource.
    pub fn raise_to(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    /// Takes the smaller amount of each resource.
    pub fn lower_to(&mut self, other: &Self) {
        self.combine(other, i64::min);
    }

    /// The amounts without zeros at the end, which say nothing.
    fn trimmed(&self) -> &[i64] {
        let end = self.0.iter().rposition(|amount| *amount != 0).map_or(0, |last| last + 1);
        &self.0[..end]
    }

    fn combine(&mut self, other: &Self, operation: fn(i64, i64) -> i64) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (position, amount) in self.0.iter_mut().enumerate() {
            *amount = operation(*amount, other.0.get(position).copied().unwrap_or(0));
        }
    }

    /// Whether every amount is at most what is available, and nothing available is negative.
    pub fn fits(&self, available: &Self) -> bool {
        let shared = self.0.len().min(available.0.len());
        self.0.iter().zip(&available.0).all(|(wanted, available)| *available >= 0 && wanted <= available)
            && self.0[shared..].iter().all(|wanted| *wanted <= 0)
            && available.0[shared..].iter().all(|available| *available >= 0)
    }

    /// Whether any amount is below zero.
    pub fn any_negative(&self) -> bool {
        self.0.iter().any(|amount| *amount < 0)
    }

    /// Replaces negative amounts by zero.
    pub fn clamp_to_zero(&mut self) {
        self.0.iter_mut().for_each(|amount| *amount = (*amount).max(0));
    }

    /// Whether all amounts are zero.
    pub fn is_empty(&self) -> bool {
        self.trimmed().is_empty()
    }

    /// The amounts that are not zero.
    pub fn iter(&self) -> impl Iterator<Item = (ResourceId, i64)> {
        self.0.iter().enumerate().filter(|(_, amount)| **amount != 0).map(|(i, a)| (ResourceId::at(i), *a))
    }
}

impl FromIterator<(ResourceId, i64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (ResourceId, i64)>>(amounts: I) -> Self {
        let mut result = Self::default();
        amounts.into_iter().for_each(|(resource, amount)| result.increase(resource, amount));
        result
    }
}
