//! What a node keeps for itself.

use api::names::resources;
use units::{Format, Quantity, Resources};

use crate::sku::Sku;

const MIB: i64 = 1 << 20;
/// What must be left of the memory before pods are evicted.
pub const EVICTION_MEMORY_MIB: i64 = 750;
/// What Kubernetes keeps of processors: the more there are, the less of each. Up to how many, and thousandths of each.
const PROCESSOR_BANDS: [(i64, i64); 4] = [(1, 60), (2, 40), (4, 20), (i64::MAX, 10)];
/// The same for memory: up to how many GiB, and the share of each.
const MEMORY_BANDS: [(f64, f64); 5] =
    [(4.0, 0.25), (8.0, 0.20), (16.0, 0.10), (128.0, 0.06), (f64::INFINITY, 0.02)];

/// What is kept for the kubelet and the container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeReserved {
    /// Thousandths of a processor.
    pub cpu_millis: i64,
    /// MiB of memory.
    pub memory_mib: i64,
}

impl KubeReserved {
    /// What is kept on machines of a size.
    pub fn of(sku: &Sku) -> Self {
        Self::new(sku.vcpus, sku.memory_gib)
    }

    /// What is kept on machines with some processors and GiB of memory.
    pub fn new(vcpus: i64, memory_gib: f64) -> Self {
        let mut below = 0;
        let mut cpu_millis: i64 = 0;
        for (up_to, share) in PROCESSOR_BANDS {
            let within = (vcpus.min(up_to) - below).max(0);
            cpu_millis = cpu_millis.saturating_add(within.saturating_mul(share));
            below = up_to;
        }
        let mut below = 0.0;
        let mut kept = 0.0;
        for (up_to, share) in MEMORY_BANDS {
            kept += (memory_gib.min(up_to) - below).max(0.0) * share;
            below = up_to;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "no machine has as much memory; a cast saturates"
        )]
        Self { cpu_millis, memory_mib: (kept * 1024.0) as i64 }
    }
}

/// What a node keeps for itself: for Kubernetes, and as a distance from eviction. Nothing is kept for the system.
pub(super) fn of(sku: &Sku) -> Resources {
    let kept = KubeReserved::of(sku);
    let memory = kept.memory_mib.saturating_add(EVICTION_MEMORY_MIB).saturating_mul(MIB);
    [
        (resources::CPU, Quantity::from_millis(kept.cpu_millis, Format::DecimalSi)),
        (resources::MEMORY, Quantity::from_units(memory, Format::BinarySi)),
    ]
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 4.4
    #[test]
    fn processors_and_memory_are_kept_in_bands() {
        for (vcpus, memory, millis, mib) in [
            (4, 7.0, 140, 1638),
            (2, 8.0, 100, 1843),
            (3, 64.0, 120, 5611),
            (2, 3.5, 100, 896),
            (1, 1.0, 60, 256),
            (128, 512.0, 1380, 17408),
        ] {
            let expected = KubeReserved { cpu_millis: millis, memory_mib: mib };
            assert_eq!(KubeReserved::new(vcpus, memory), expected, "{vcpus} vCPUs, {memory} GiB");
        }
    }
}
