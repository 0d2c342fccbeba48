//! What an instance type has.

use api::names::resources;
use units::{Format, Quantity, Resources};

use super::profile::Profile;
use crate::sku::Sku;
use crate::sku::gpu::Vendor;

const GIB: i64 = 1 << 30;
const GB: i64 = 1_000_000_000;

/// What an instance type has; amounts of zero included.
pub(super) fn of(sku: &Sku, profile: &Profile, vm_memory_overhead: f64) -> Resources {
    let gpus = |vendor| match sku.gpu {
        Some(gpu) if gpu.vendor == vendor => sku.gpu_count,
        _ => 0,
    };
    let count = |number| Quantity::from_units(number, Format::DecimalSi);
    [
        (resources::CPU, count(sku.vcpus)),
        (resources::MEMORY, memory(sku.memory_gib, vm_memory_overhead)),
        (resources::EPHEMERAL_STORAGE, count(i64::from(profile.os_disk_size_gb) * GB)),
        (resources::PODS, count(i64::from(profile.max_pods))),
        (resources::NVIDIA_GPU, count(gpus(Vendor::Nvidia))),
        (resources::AMD_GPU, count(gpus(Vendor::Amd))),
    ]
    .into_iter()
    .collect()
}

/// The memory that a node is expected to see: whole GiB, without what the hypervisor takes, which is only
/// estimated.
fn memory(gib: f64, overhead: f64) -> Quantity {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "no machine has as much memory; casts saturate"
    )]
    let left = {
        let bytes = (gib as i64).saturating_mul(GIB);
        bytes.saturating_sub((bytes as f64 * overhead).ceil() as i64)
    };
    Quantity::from_units(left, Format::BinarySi)
}
