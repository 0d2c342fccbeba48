//! The disk that pods write to.

use api::aws::{AmiFamily, BlockDeviceMapping, InstanceStorePolicy};
use units::{Format, Quantity};

use crate::node_class::Class;
use crate::port::InstanceTypeInfo;

const GIB: i64 = 1 << 30;
const GB: i64 = 1_000_000_000;
/// What images of others are expected to have.
const UNKNOWN_GIB: i64 = 20;

/// How large the disk is that pods write to.
pub(super) fn of(class: &Class<'_>, info: &InstanceTypeInfo) -> Quantity {
    if class.spec.instance_store_policy == Some(InstanceStorePolicy::RAID0)
        && let Some(total) = info.storage.as_ref().and_then(|storage| storage.total_gb)
    {
        return Quantity::from_units(total * GB, Format::DecimalSi);
    }
    let mappings = class.spec.block_device_mappings.as_deref().unwrap_or_default();
    from_mappings(class, mappings).unwrap_or_else(|| default(class))
}

fn from_mappings(class: &Class<'_>, mappings: &[BlockDeviceMapping]) -> Option<Quantity> {
    let size = |mapping: &BlockDeviceMapping| mapping.ebs.as_ref()?.volume_size;
    let root = mappings.iter().find(|mapping| mapping.root_volume).and_then(size);
    root.or_else(|| match (class.family, class.family().ephemeral_device) {
        (AmiFamily::Custom, _) => size(mappings.last()?),
        (_, device) => mappings.iter().filter(|each| each.device_name.as_deref() == device).find_map(size),
    })
}

fn default(class: &Class<'_>) -> Quantity {
    let family = class.family();
    let volume = family.volumes.iter().find(|(device, _)| Some(*device) == family.ephemeral_device);
    Quantity::from_units(volume.map_or(UNKNOWN_GIB, |(_, gib)| *gib) * GIB, Format::BinarySi)
}
