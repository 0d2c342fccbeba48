//! From what EC2 says about instance types to what NodePools can choose from. Entry: [`list`].
//!
//! ```text
//!   InstanceTypeInfo + NodeClass ──► resolve: labels, capacity, overhead     (seldom changes)
//!                                       └──► offerings: where, how, for how much, and whether at present
//! ```

mod capacity;
mod compatibility;
mod labels;
pub mod memory;
mod offerings;
mod overhead;
pub mod pods;
mod storage;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cluster::instance_types::InstanceType;

use crate::kubelet::Resolved;
use crate::node_class::Class;
use crate::port::{InstanceTypeInfo, TypeInZone};

pub use compatibility::{Incompatible, incompatibility};
pub use labels::of_name as labels_of_name;
pub(crate) use offerings::place;
pub use offerings::{Market, offerings};

/// The driver of EBS volumes.
const VOLUME_DRIVER: &str = "ebs.csi.aws.com";

/// What instance types there are, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Discovered {
    types: BTreeMap<String, Arc<InstanceTypeInfo>>,
    zones: BTreeMap<String, BTreeSet<String>>,
    all_zones: BTreeSet<String>,
}

impl Discovered {
    /// What EC2 answered.
    pub fn new(types: Vec<InstanceTypeInfo>, places: Vec<TypeInZone>) -> Self {
        let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut all_zones = BTreeSet::new();
        for TypeInZone { instance_type, zone } in places {
            all_zones.insert(zone.clone());
            zones.entry(instance_type).or_default().insert(zone);
        }
        let types = types.into_iter().map(|info| (info.name.clone(), Arc::new(info))).collect();
        Self { types, zones, all_zones }
    }

    /// What EC2 says about a type.
    pub fn get(&self, instance_type: &str) -> Option<&Arc<InstanceTypeInfo>> {
        self.types.get(instance_type)
    }

    /// All types, by name.
    pub fn types(&self) -> impl ExactSizeIterator<Item = &Arc<InstanceTypeInfo>> {
        self.types.values()
    }

    /// The zones that have a type.
    pub fn zones_of(&self, instance_type: &str) -> &BTreeSet<String> {
        static NOWHERE: BTreeSet<String> = BTreeSet::new();
        self.zones.get(instance_type).unwrap_or(&NOWHERE)
    }

    /// All zones of the region.
    pub fn all_zones(&self) -> &BTreeSet<String> {
        &self.all_zones
    }
}

/// What is the same for all NodeClasses.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// The region.
    pub region: &'a str,
    /// The share of the memory that the hypervisor takes.
    pub vm_memory_overhead: f64,
    /// How many network interfaces pods cannot use.
    pub reserved_interfaces: i64,
}

/// Why nobody knows what a NodePool can choose from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unlisted {
    /// EC2 has not told its types.
    #[error("no instance types found")]
    NoTypes,
    /// EC2 has not told where its types are.
    #[error("no instance types offerings found")]
    NoZones,
    /// The NodeClass has no subnets.
    #[error("no subnets found")]
    NoSubnets,
    /// A type cannot be worked out, so that none is trusted.
    #[error("resolving instance type {instance_type}, {source}")]
    Type {
        /// The type.
        instance_type: String,
        /// What is wrong.
        source: crate::kubelet::Invalid,
    },
}

/// Everything that can be chosen from, with what cannot be had at present marked as such. One type that cannot
/// be worked out fails the whole list.
pub fn list(
    class: &Class<'_>,
    discovered: &Discovered,
    environment: &Environment<'_>,
    memory: &memory::Learned,
    market: &Market<'_>,
) -> Result<Vec<InstanceType>, Unlisted> {
    let mut types = resolve_all(class, discovered, environment, memory)?;
    for each in &mut types {
        if let Some(info) = discovered.get(&each.name) {
            each.offerings = offerings(class, info, discovered, market);
        }
    }
    Ok(types)
}

/// All types of a NodeClass, without their offerings: what does not depend on prices and what can be had.
pub fn resolve_all(
    class: &Class<'_>,
    discovered: &Discovered,
    environment: &Environment<'_>,
    memory: &memory::Learned,
) -> Result<Vec<InstanceType>, Unlisted> {
    if discovered.types.is_empty() {
        return Err(Unlisted::NoTypes);
    }
    if discovered.zones.is_empty() {
        return Err(Unlisted::NoZones);
    }
    if class.zones.is_empty() {
        return Err(Unlisted::NoSubnets);
    }
    let images = memory::images_key(&class.status.amis);
    discovered
        .types()
        .map(|info| {
            let learned = memory.get(&info.name, &images);
            resolve(class, info, discovered.zones_of(&info.name), environment, learned)
                .map_err(|source| Unlisted::Type { instance_type: info.name.clone(), source })
        })
        .collect()
}

/// A type of a NodeClass, without its offerings.
pub fn resolve(
    class: &Class<'_>,
    info: &InstanceTypeInfo,
    zones: &BTreeSet<String>,
    environment: &Environment<'_>,
    learned_memory: Option<units::Quantity>,
) -> Result<InstanceType, crate::kubelet::Invalid> {
    let kubelet = Resolved::of(class, info, environment.reserved_interfaces)?;
    let pods = pods::count(class, info, kubelet.max_pods, environment.reserved_interfaces);
    let mut capacity = capacity::of(class, info, pods, environment.vm_memory_overhead);
    let overhead = overhead::of(class, info, pods, &kubelet, &capacity)?;
    if let Some(memory) = learned_memory {
        capacity.set(api::names::resources::MEMORY, memory);
    }
    // The first volume is the node's own. What else takes places depends on the machine, so this is what it
    // can have at most.
    let volumes = info.ebs_attachments.map(|most| most.saturating_sub(1)).filter(|most| *most > 0);
    Ok(InstanceType {
        name: info.name.clone(),
        requirements: labels::of(class, info, zones, environment.region),
        offerings: Vec::new(),
        capacity,
        overhead,
        volume_limits: volumes.map(|most| (VOLUME_DRIVER.to_owned(), most)).into_iter().collect(),
        overlaid: cluster::instance_types::Overlaid::default(),
    })
}
