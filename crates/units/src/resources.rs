//! Resource vectors: an amount per resource name, in name order. Entry: [`Resources`].

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;

use crate::quantity::Quantity;

/// The name of a resource. The common ones need no allocation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Cow<'static, str>);

impl ResourceName {
    /// Processor time, in cores.
    pub const CPU: Self = Self(Cow::Borrowed("cpu"));
    /// Memory, in bytes.
    pub const MEMORY: Self = Self(Cow::Borrowed("memory"));
    /// Node-local storage, in bytes.
    pub const EPHEMERAL_STORAGE: Self = Self(Cow::Borrowed("ephemeral-storage"));
    /// The number of pods.
    pub const PODS: Self = Self(Cow::Borrowed("pods"));
    /// The number of nodes, known to pool limits only.
    pub const NODES: Self = Self(Cow::Borrowed("nodes"));

    const COMMON: [Self; 5] = [Self::CPU, Self::MEMORY, Self::EPHEMERAL_STORAGE, Self::PODS, Self::NODES];

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        let common = Self::COMMON.into_iter().find(|common| common.as_str() == name);
        common.unwrap_or_else(|| Self(Cow::Owned(name.to_owned())))
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Amounts by resource name. A name that is not present counts as zero in every comparison, but stays
/// distinct from one that is present with zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources(BTreeMap<ResourceName, Quantity>);

impl Resources {
    /// No resources at all.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The amount of one resource, if present.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// The amount of one resource, zero when absent.
    pub fn amount(&self, name: &str) -> Quantity {
        self.get(name).unwrap_or_default()
    }

    /// Sets the amount of one resource.
    pub fn set(&mut self, name: impl Into<ResourceName>, quantity: Quantity) {
        self.0.insert(name.into(), quantity);
    }

    /// Adds every amount of `other`; the result has the names of both.
    pub fn add(&mut self, other: &Self) {
        for (name, quantity) in other {
            if let Some(own) = self.0.get_mut(name) {
                *own += *quantity;
            } else {
                self.0.insert(name.clone(), *quantity);
            }
        }
    }

    /// Subtracts the amounts of `other` for the names that are present here; other names are left out.
    pub fn subtract(&mut self, other: &Self) {
        for (name, own) in &mut self.0 {
            if let Some(quantity) = other.0.get(name) {
                *own -= *quantity;
            }
        }
    }

    /// Raises every amount to that of `other` where that is larger; the result has the names of both.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, quantity) in other {
            match self.0.get_mut(name) {
                Some(own) if *own >= *quantity => {}
                Some(own) => *own = *quantity,
                None => self.set(name.clone(), *quantity),
            }
        }
    }

    /// Lowers every amount to that of `other` where that is smaller; the result has the names in both only.
    pub fn lower_to(&mut self, other: &Self) {
        self.0.retain(|name, own| match other.0.get(name) {
            Some(quantity) => {
                *own = (*own).min(*quantity);
                true
            }
            None => false,
        });
    }

    /// Whether these requests fit into `available`. Nothing fits where any available amount is negative, not
    /// even an empty request.
    pub fn fits(&self, available: &Self) -> bool {
        !available.any_negative()
            && self.iter().all(|(name, request)| *request <= available.amount(name.as_str()))
    }

    /// Whether every amount is zero.
    pub fn is_zero(&self) -> bool {
        self.0.values().all(|quantity| quantity.is_zero())
    }

    /// Whether any amount is below zero.
    pub fn any_negative(&self) -> bool {
        self.0.values().any(|quantity| quantity.sign() < 0)
    }

    /// Whether no name is present.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All names with their amounts, in name order.
    pub fn iter(&self) -> btree_map::Iter<'_, ResourceName, Quantity> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Resources {
    type Item = (&'a ResourceName, &'a Quantity);
    type IntoIter = btree_map::Iter<'a, ResourceName, Quantity>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<ResourceName>> FromIterator<(N, Quantity)> for Resources {
    fn from_iter<I: IntoIterator<Item = (N, Quantity)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(name, quantity)| (name.into(), quantity)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `cpu=1 memory=2Gi`.
    fn resources(text: &str) -> Resources {
        text.split_whitespace()
            .map(|entry| {
                let (name, quantity) = entry.split_once('=').unwrap();
                (name, quantity.parse().unwrap())
            })
            .collect()
    }

    fn changed(start: &str, change: impl Fn(&mut Resources, &Resources), other: &str) -> String {
        let mut result = resources(start);
        change(&mut result, &resources(other));
        let entries: Vec<_> = result.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect();
        entries.join(" ")
    }

    #[test]
    fn adding_joins_the_names_in_order() {
        let sum = changed("cpu=500m pods=1", Resources::add, "memory=1Gi cpu=1 example.com/gpu=1");
        assert_eq!(sum, "cpu=1500m example.com/gpu=1 memory=1Gi pods=1");
    }

    #[test]
    fn subtracting_keeps_only_own_names() {
        assert_eq!(
            changed("cpu=1 memory=1Gi", Resources::subtract, "cpu=1500m pods=1"),
            "cpu=-500m memory=1Gi"
        );
    }

    #[test]
    fn raising_joins_and_lowering_intersects() {
        assert_eq!(
            changed("cpu=1 pods=5", Resources::raise_to, "cpu=2 memory=1Ki pods=3"),
            "cpu=2 memory=1Ki pods=5"
        );
        assert_eq!(changed("cpu=1 pods=5", Resources::lower_to, "cpu=2 memory=1Ki pods=3"), "cpu=1 pods=3");
        assert_eq!(changed("cpu=1", Resources::lower_to, "pods=3"), "");
    }

    #[test]
    fn requests_fit_when_no_resource_exceeds_what_is_available() {
        let available = resources("cpu=2 memory=1Gi");
        assert!(resources("cpu=2 memory=1024Mi").fits(&available));
        assert!(!resources("cpu=2001m").fits(&available));
        assert!(!resources("example.com/gpu=1").fits(&available));
        assert!(resources("example.com/gpu=0").fits(&available));
        assert!(resources("cpu=-1").fits(&Resources::new()));
    }

    #[test]
    fn nothing_fits_where_something_available_is_negative() {
        assert!(!Resources::new().fits(&resources("cpu=2 memory=-1")));
    }

    #[test]
    fn signs_are_looked_at_across_all_names() {
        assert!(resources("cpu=0 memory=0Ki").is_zero() && Resources::new().is_zero());
        assert!(!resources("cpu=0 memory=1n").is_zero());
        assert!(resources("cpu=1 memory=-1n").any_negative());
        assert!(!resources("cpu=0").is_empty() && Resources::new().is_empty());
    }

    #[test]
    fn absent_amounts_are_zero_but_not_present() {
        let requests = resources("cpu=1");
        assert_eq!((requests.get("memory"), requests.amount("memory")), (None, Quantity::ZERO));
        assert_eq!(requests.get(ResourceName::CPU.as_str()), Some(requests.amount("cpu")));
    }
}
