//! From sizes to what NodePools can choose from. Entry: [`list`].
//!
//! ```text
//!   Sku + Profile of a NodeClass ──► labels, capacity, overhead                   (seldom changes)
//!                                       └──► offerings: where, how, for how much, and whether at present
//! ```

mod cache;
mod capacity;
mod compatibility;
mod labels;
mod offerings;
mod overhead;
mod profile;

use cluster::instance_types::{InstanceType, Overlaid};

use crate::sku::{Catalogue, Sku};

pub use cache::{Cache, Stamp};
pub use compatibility::{Incompatible, incompatibility};
pub use labels::{cluster as cluster_label, of_name as labels_of_name, os_sku};
pub use offerings::{Market, Obstacle, UNKNOWN_PRICE, obstacle, offerings, priority};
pub use overhead::{EVICTION_MEMORY_MIB, KubeReserved};
pub use profile::{Family, Network, Profile};

/// The driver of Azure disks.
const VOLUME_DRIVER: &str = "disk.csi.azure.com";

/// What is the same for all NodeClasses.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// The region.
    pub location: &'a str,
    /// The resource group of the nodes, which names the cluster.
    pub node_resource_group: &'a str,
    /// The share of the memory that the hypervisor takes.
    pub vm_memory_overhead: f64,
}

/// Azure has not told its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no instance types found")]
pub struct NoTypes;

/// Everything that nodes of a NodeClass can be, with what cannot be had at present marked as such.
pub fn list(
    catalogue: &Catalogue,
    profile: &Profile,
    environment: &Environment<'_>,
    market: &Market<'_>,
) -> Result<Vec<InstanceType>, NoTypes> {
    if catalogue.skus().len() == 0 {
        return Err(NoTypes);
    }
    let compatible = catalogue.skus().filter(|sku| incompatibility(profile, sku).is_none());
    Ok(compatible.map(|sku| resolve(sku, profile, environment, market)).collect())
}

/// One type. Its labels for places and ways to buy are those of the offerings that can be had.
pub fn resolve(
    sku: &Sku,
    profile: &Profile,
    environment: &Environment<'_>,
    market: &Market<'_>,
) -> InstanceType {
    let offerings = offerings(sku, market);
    InstanceType {
        name: sku.name.clone(),
        requirements: labels::of(sku, profile, environment, &offerings),
        offerings,
        capacity: capacity::of(sku, profile, environment.vm_memory_overhead),
        overhead: overhead::of(sku),
        volume_limits: sku.data_disks.map(|most| (VOLUME_DRIVER.to_owned(), most)).into_iter().collect(),
        overlaid: Overlaid::default(),
    }
}
