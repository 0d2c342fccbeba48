//! The volumes of instances.

use api::aws::{BlockDevice, BlockDeviceMapping, VolumeType};

use crate::node_class::Class;
use crate::port::{EbsVolume, VolumeMapping};

const GIB: i64 = 1 << 30;

/// The volumes of instances: those that the NodeClass lists, else those of the image family.
pub(super) fn of(class: &Class<'_>) -> Vec<VolumeMapping> {
    match class.spec.block_device_mappings.as_deref() {
        Some(listed) if !listed.is_empty() => listed.iter().map(mapping).collect(),
        _ => class.family().volumes.iter().map(|(device, gib)| default(device, *gib)).collect(),
    }
}

fn default(device: &str, gib: i64) -> VolumeMapping {
    VolumeMapping {
        device: Some(device.to_owned()),
        ebs: Some(EbsVolume {
            encrypted: Some(true),
            volume_type: Some(VolumeType::Gp3.as_str()),
            size_gib: Some(gib),
            ..EbsVolume::default()
        }),
    }
}

fn mapping(mapping: &BlockDeviceMapping) -> VolumeMapping {
    VolumeMapping { device: mapping.device_name.clone(), ebs: mapping.ebs.as_ref().map(volume) }
}

fn volume(device: &BlockDevice) -> EbsVolume {
    let given = |number: Option<i64>| number.filter(|number| *number != 0);
    // EC2 counts in GiB, and less than what was asked for will not do.
    let gib = |bytes: i64| bytes / GIB + i64::from(bytes % GIB > 0);
    EbsVolume {
        delete_on_termination: device.delete_on_termination,
        encrypted: device.encrypted,
        volume_type: device.volume_type.map(VolumeType::as_str),
        iops: given(device.iops),
        throughput: given(device.throughput),
        kms_key_id: device.kms_key_id.clone(),
        snapshot_id: device.snapshot_id.clone(),
        initialization_rate: device.volume_initialization_rate,
        size_gib: device.volume_size.map(|size| gib(size.value())),
    }
}
