//! Whether machines of a size can be what a NodeClass asks for.

use api::names::values::arch;

use super::profile::{Family, Profile};
use crate::sku::Sku;
use crate::sku::gpu::Vendor;

/// What a node with a DNS cache needs.
const LOCAL_DNS_VCPUS: i64 = 4;
const LOCAL_DNS_MEMORY_MIB: i64 = 244;

/// Why machines of a size cannot be what a NodeClass asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// There is no image of the family for its GPUs.
    #[error("the image family has no images for its GPUs")]
    Image,
    /// Disks of its host cannot be encrypted.
    #[error("it has no encryption at host")]
    EncryptionAtHost,
    /// It is too small for a DNS cache.
    #[error("a node with LocalDNS needs {} vCPUs and {} MiB", LOCAL_DNS_VCPUS, LOCAL_DNS_MEMORY_MIB)]
    LocalDns,
    /// AKS does not install drivers of its GPUs.
    #[error("AKS installs no drivers for its GPUs, and spec.gpu.mode is Driver")]
    GpuDriver,
    /// Images are not streamed to its architecture.
    #[error("artifact streaming does not work on arm64")]
    ArtifactStreaming,
    /// Its boot cannot be protected.
    #[error("it has no trusted launch")]
    TrustedLaunch,
}

/// Why machines of a size cannot be what a NodeClass asks for; none if they can.
pub fn incompatibility(profile: &Profile, sku: &Sku) -> Option<Incompatible> {
    if let Some(gpu) = &sku.gpu {
        let has_image = match profile.image_family {
            Family::Ubuntu => gpu.ubuntu,
            Family::AzureLinux => gpu.azure_linux || gpu.azure_linux3,
        };
        if !has_image {
            return Some(Incompatible::Image);
        }
        if profile.gpu_driver && gpu.vendor != Vendor::Nvidia {
            return Some(Incompatible::GpuDriver);
        }
    }
    if profile.encryption_at_host && !sku.encryption_at_host {
        return Some(Incompatible::EncryptionAtHost);
    }
    if profile.local_dns && (sku.vcpus < LOCAL_DNS_VCPUS || sku.memory_mib() < LOCAL_DNS_MEMORY_MIB) {
        return Some(Incompatible::LocalDns);
    }
    if profile.artifact_streaming && sku.architecture == arch::ARM64 {
        return Some(Incompatible::ArtifactStreaming);
    }
    if profile.trusted_launch && !sku.trusted_launch {
        return Some(Incompatible::TrustedLaunch);
    }
    None
}
