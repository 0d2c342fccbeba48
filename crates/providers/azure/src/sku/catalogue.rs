//! The sizes of a region that nodes can be of, and why the others are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Sku, Unreadable, known, places};
use crate::arm::types::sku::ResourceSku;

/// The smallest node that AKS supports.
const LEAST_VCPUS: i64 = 2;
const LEAST_MEMORY_GIB: f64 = 3.5;

/// Sizes that AKS does not take, and two that cannot be told apart from others by their labels.
const REFUSED: [&str; 14] = [
    "Standard_A0",
    "Standard_A1",
    "Standard_A1_v2",
    "Standard_B1s",
    "Standard_B1ms",
    "Standard_F1",
    "Standard_F1s",
    "Basic_A0",
    "Basic_A1",
    "Basic_A2",
    "Basic_A3",
    "Basic_A4",
    "Standard_E64i_v3",
    "Standard_E64is_v3",
];

/// Why nodes are not of a size.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LeftOut {
    /// AKS does not take it.
    #[error("AKS does not support it")]
    Refused,
    /// Its name does not follow the grammar.
    #[error("its size {0:?} does not read like D4s_v5")]
    UnknownName(String),
    /// The subscription may not use it in the region.
    #[error("the subscription may not use it in this region")]
    Restricted,
    /// Something is not said about it that must be known.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It has too few processors or too little memory.
    #[error("it has {vcpus} vCPUs and {memory_gib} GiB, nodes need {} and {}", LEAST_VCPUS, LEAST_MEMORY_GIB)]
    TooSmall {
        /// Its virtual processors.
        vcpus: i64,
        /// Its memory.
        memory_gib: f64,
    },
    /// It has GPUs that AKS has no images for.
    #[error("AKS has no images for its GPUs")]
    UnknownGpu,
    /// Some of its processors are switched off.
    #[error("some of its vCPUs are switched off")]
    Constrained,
    /// Its memory is encrypted against its host.
    #[error("confidential machines are not supported")]
    Confidential,
}

/// There is no size that nodes can be of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no size of {location} can be used for nodes, out of {listed} that Azure lists")]
pub struct NoSizes {
    /// The region.
    pub location: String,
    /// How many there are.
    pub listed: usize,
}

/// The sizes of a region that nodes can be of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    skus: BTreeMap<String, Arc<Sku>>,
    left_out: BTreeMap<String, LeftOut>,
}

impl Catalogue {
    /// Reads everything that Azure lists for a region. Of two with one name, the first counts.
    pub fn read(listed: &[ResourceSku], location: &str) -> Result<Self, NoSizes> {
        let mut all = Self::default();
        let is_size = |wire: &&ResourceSku| {
            wire.resource_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("virtualMachines"))
        };
        for wire in listed.iter().filter(is_size) {
            let name = wire.name.clone().unwrap_or_default();
            if all.skus.contains_key(&name) || all.left_out.contains_key(&name) {
                continue;
            }
            match usable(wire, location) {
                Ok(sku) => _ = all.skus.insert(name, Arc::new(sku)),
                Err(why) => _ = all.left_out.insert(name, why),
            }
        }
        if all.skus.is_empty() {
            return Err(NoSizes { location: location.to_owned(), listed: all.left_out.len() });
        }
        Ok(all)
    }

    /// A size by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<Sku>> {
        self.skus.get(name)
    }

    /// All sizes, by name.
    pub fn skus(&self) -> impl ExactSizeIterator<Item = &Arc<Sku>> {
        self.skus.values()
    }

    /// Sizes that nodes are not of, and why.
    pub fn left_out(&self) -> &BTreeMap<String, LeftOut> {
        &self.left_out
    }

    /// Families that have sizes which came after the table of sizes, with those sizes: somebody should be told
    /// that they are there.
    pub fn unknown(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for sku in self.skus.values().filter(|sku| !known::is_name(&sku.name)) {
            all.entry(&sku.family).or_default().insert(&sku.name);
        }
        all
    }
}

fn usable(wire: &ResourceSku, location: &str) -> Result<Sku, LeftOut> {
    if REFUSED.contains(&wire.name.as_deref().unwrap_or_default()) {
        return Err(LeftOut::Refused);
    }
    let sku = Sku::read(wire, location)?;
    if places::is_restricted(wire, location) {
        return Err(LeftOut::Restricted);
    }
    if sku.vcpus < LEAST_VCPUS || sku.memory_gib < LEAST_MEMORY_GIB {
        return Err(LeftOut::TooSmall { vcpus: sku.vcpus, memory_gib: sku.memory_gib });
    }
    if sku.gpu_count > 0 && sku.gpu.is_none() {
        return Err(LeftOut::UnknownGpu);
    }
    if sku.size.constrained_vcpus.is_some() {
        return Err(LeftOut::Constrained);
    }
    if sku.size.is_confidential() {
        return Err(LeftOut::Confidential);
    }
    Ok(sku)
}
