//! Sizes of virtual machines, read once from what Azure says about them. Entry: [`Catalogue::read`].
//!
//! ```text
//!   ResourceSku ──► Sku: numbers and switches out of texts        one size
//!                    └──► Catalogue: those that nodes can be of   a region, with why the others are left out
//! ```

mod capabilities;
mod catalogue;
pub mod gpu;
mod known;
mod places;
mod size;

use std::collections::BTreeSet;

pub use capabilities::Unreadable;
pub use catalogue::{Catalogue, LeftOut, NoSizes};
pub(crate) use known::{is_family as is_known_family, is_name as is_known_name};
pub use size::Size;

use api::names::values::arch;

use crate::arm::types::sku::ResourceSku;
use capabilities::Capabilities;
use gpu::Gpu;

/// A size of virtual machines in one region.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that a size can do or cannot")]
pub struct Sku {
    /// Its name, such as `Standard_D4s_v5`.
    pub name: String,
    /// What its name says.
    pub size: Size,
    /// The family that quota is counted by; empty if Azure says none.
    pub family: String,
    /// How many virtual processors it has.
    pub vcpus: i64,
    /// Its memory in GiB, which Azure calls GB.
    pub memory_gib: f64,
    /// Its architecture as Kubernetes names it, or as Azure does if that means nothing to us.
    pub architecture: String,
    /// How many GPUs it has.
    pub gpu_count: i64,
    /// Its GPUs, if AKS has images for them.
    pub gpu: Option<Gpu>,
    /// Whether the network is accelerated.
    pub accelerated_networking: bool,
    /// Whether premium disks can be attached.
    pub premium_io: bool,
    /// The generations of Hyper-V that it runs on.
    pub hyperv_generations: BTreeSet<u8>,
    /// The disk of the machine's host that the operating system can be on.
    pub ephemeral_disk: Option<EphemeralDisk>,
    /// How many data disks can be attached.
    pub data_disks: Option<u32>,
    /// Whether disks of the host can be encrypted.
    pub encryption_at_host: bool,
    /// Whether the boot can be protected.
    pub trusted_launch: bool,
    /// Whether it is sold on the spot market.
    pub spot: bool,
    /// Whether ultra disks can be attached to machines outside of zones.
    pub ultra_ssd: bool,
    /// The zones that have it, as labels name them.
    pub zones: BTreeSet<String>,
    /// The zones where ultra disks can be attached.
    pub ultra_ssd_zones: BTreeSet<String>,
}

/// A disk of the machine's host that the operating system can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EphemeralDisk {
    /// How large it can be, in GB.
    pub size_gb: i64,
    /// Which disk it is.
    pub placement: Placement,
}

/// Which disk of the host the operating system is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A local NVMe disk.
    NvmeDisk,
    /// The cache of remote disks.
    CacheDisk,
    /// The temporary disk.
    ResourceDisk,
}

impl Placement {
    /// What Azure calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NvmeDisk => "NvmeDisk",
            Self::CacheDisk => "CacheDisk",
            Self::ResourceDisk => "ResourceDisk",
        }
    }
}

impl Sku {
    /// Reads what Azure says about a size in a region.
    pub fn read(wire: &ResourceSku, location: &str) -> Result<Self, LeftOut> {
        let name = wire.name.clone().unwrap_or_default();
        let written = wire.size.as_deref().unwrap_or_default();
        let size = written.parse::<Size>().map_err(|_| LeftOut::UnknownName(written.to_owned()))?;
        let has = Capabilities::of(wire);
        let zones = places::zones(wire, location);
        Ok(Self {
            vcpus: has.integer("vCPUs")?,
            memory_gib: has.number("MemoryGB")?,
            architecture: match has.text("CpuArchitectureType")? {
                "x64" => arch::AMD64.to_owned(),
                "Arm64" => arch::ARM64.to_owned(),
                other => other.to_owned(),
            },
            gpu_count: has.integer("GPUs").unwrap_or_default(),
            gpu: gpu::of(&name),
            accelerated_networking: has.switch("AcceleratedNetworkingEnabled"),
            premium_io: has.switch("PremiumIO"),
            hyperv_generations: [(1, "V1"), (2, "V2")]
                .into_iter()
                .filter(|(_, version)| has.contains("HyperVGenerations", version))
                .map(|(number, _)| number)
                .collect(),
            ephemeral_disk: ephemeral_disk(has),
            data_disks: has.integer("MaxDataDiskCount").ok().and_then(|count| u32::try_from(count).ok()),
            encryption_at_host: has.switch("EncryptionAtHostSupported"),
            trusted_launch: has.contains("HyperVGenerations", "V2")
                && !has.contains("TrustedLaunchDisabled", "True"),
            spot: has.switch("LowPriorityCapable"),
            ultra_ssd: has.switch("UltraSSDAvailable"),
            ultra_ssd_zones: places::ultra_ssd_zones(wire, location, &zones),
            zones: zones.iter().map(|zone| crate::zone::label(location, zone)).collect(),
            family: wire.family.clone().unwrap_or_default(),
            name,
            size,
        })
    }

    /// Its memory in MiB, as labels say it.
    pub fn memory_mib(&self) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "no machine has as much memory; a cast saturates"
        )]
        let mib = (self.memory_gib * 1024.0) as i64;
        mib
    }

    /// The disk of the host that an operating system of a size is on; none if it is on a remote disk. A disk
    /// that is too small is not replaced by another, as AKS does not do that either.
    pub fn ephemeral_placement(&self, os_disk_size_gb: i32) -> Option<Placement> {
        let disk = self.ephemeral_disk?;
        (i64::from(os_disk_size_gb) <= disk.size_gb).then_some(disk.placement)
    }

    /// What its GPUs are called; none if it has none that AKS has images for.
    pub fn gpu_name(&self) -> Option<&str> {
        self.gpu?;
        self.size.accelerator.as_deref().or_else(|| gpu::name_of_series(&self.size.series()))
    }

    /// Whether ultra disks can be attached in a zone, or outside of zones.
    pub fn has_ultra_ssd(&self, zone: &str) -> bool {
        if zone == crate::zone::REGIONAL { self.ultra_ssd } else { self.ultra_ssd_zones.contains(zone) }
    }

    /// Where machines can be: outside of zones, and in each zone.
    pub fn placements(&self) -> impl Iterator<Item = &str> {
        std::iter::once(crate::zone::REGIONAL).chain(self.zones.iter().map(String::as_str))
    }
}

/// The first of the host's disks that there is: local NVMe, where the operating system may be on it, then the
/// cache, then the temporary disk.
fn ephemeral_disk(has: Capabilities<'_>) -> Option<EphemeralDisk> {
    const MIB: i64 = 1 << 20;
    const GB: i64 = 1_000_000_000;
    if !has.switch("EphemeralOSDiskSupported") {
        return None;
    }
    let amount = |name| has.integer(name).ok().filter(|amount| *amount > 0);
    let nvme = amount("NvmeDiskSizeInMiB")
        .filter(|_| has.contains("SupportedEphemeralOSDiskPlacements", Placement::NvmeDisk.as_str()))
        .map(|mib| (mib.saturating_mul(MIB) / GB, Placement::NvmeDisk));
    let cache = || amount("CachedDiskBytes").map(|bytes| (bytes / GB, Placement::CacheDisk));
    let resource = || {
        // Azure says MB and means MiB.
        amount("MaxResourceVolumeMB").map(|mib| (mib.saturating_mul(MIB) / GB, Placement::ResourceDisk))
    };
    let (size_gb, placement) = nvme.or_else(cache).or_else(resource)?;
    Some(EphemeralDisk { size_gb, placement })
}
