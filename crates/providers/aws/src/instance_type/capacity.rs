//! What an instance type has.

use api::names::resources;
use units::{Format, Quantity, Resources};

use super::storage;
use crate::node_class::Class;
use crate::port::InstanceTypeInfo;
use crate::tables::limits_of;

const MIB: i64 = 1 << 20;
/// What ARM machines keep for themselves, in MiB.
const ARM_MIB: i64 = 64;

/// What an instance type has; amounts of zero included.
pub(super) fn of(
    class: &Class<'_>,
    info: &InstanceTypeInfo,
    pods: i64,
    vm_memory_overhead: f64,
) -> Resources {
    let limits = limits_of(&info.name);
    let gpus = |by: &str| info.gpus.iter().filter(|gpu| gpu.manufacturer == by).map(|gpu| gpu.count).sum();
    let neuron = info.neuron.as_deref().unwrap_or_default();
    let fabric = class.fabric_interfaces().unwrap_or_else(|| {
        info.network.as_ref().and_then(|network| network.efa_interfaces).map_or(0, i64::from)
    });
    let counts: [(&'static str, i64); 9] = [
        (resources::CPU, i64::from(info.vcpus)),
        (resources::PODS, pods),
        (resources::AWS_POD_ENI, limits.branch_interfaces),
        (resources::NVIDIA_GPU, gpus("NVIDIA")),
        (resources::AMD_GPU, gpus("AMD")),
        (resources::HABANA_GAUDI, gpus("Habana")),
        (resources::AWS_NEURON, neuron.iter().map(|device| device.count).sum()),
        (resources::AWS_NEURON_CORE, neuron.first().map_or(0, |device| device.count * device.cores)),
        (resources::AWS_EFA, fabric),
    ];
    let mut all: Resources = counts
        .into_iter()
        .map(|(name, count)| (name, Quantity::from_units(count, Format::DecimalSi)))
        .collect();
    all.set(resources::MEMORY, memory(info, vm_memory_overhead));
    all.set(resources::EPHEMERAL_STORAGE, storage::of(class, info));
    let is_windows = class.family().windows_build.is_some()
        && info.architectures().first().is_some_and(|first| first == "x86_64");
    if is_windows {
        let addresses = limits.ipv4_per_interface.map_or(0, |all| all - 1);
        all.set(resources::AWS_PRIVATE_IPV4_ADDRESS, Quantity::from_units(addresses, Format::DecimalSi));
    }
    all
}

/// The memory that a node is expected to see: what the hypervisor takes is only estimated.
pub(super) fn memory(info: &InstanceTypeInfo, overhead: f64) -> Quantity {
    let is_arm = info.architectures().first().is_some_and(|first| first == "arm64");
    let mib = info.memory_mib - if is_arm { ARM_MIB } else { 0 };
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "the same arithmetic as others use, for the same result"
    )]
    let taken = ((mib * MIB) as f64 * overhead / 1024.0 / 1024.0).ceil() as i64;
    Quantity::from_units((mib - taken) * MIB, Format::BinarySi)
}
