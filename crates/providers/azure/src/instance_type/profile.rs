//! What instance types depend on of a NodeClass, and of nothing else of it.

use api::azure::{AKSNodeClass, FipsMode, GpuMode, ImageFamily, LocalDnsState};

/// As many pods as AKS allows by default with an overlay, or without a plugin of its own.
const MANY_PODS: i32 = 250;
/// As many as get an address of the subnet by default.
const PODS_IN_SUBNET: i32 = 30;
/// As many as Kubernetes recommends.
const RECOMMENDED_PODS: i32 = 110;
/// The disk of a NodeClass that says nothing at all.
const OS_DISK_SIZE_GB: i32 = 128;

/// The network plugin of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network<'a> {
    /// Which one: `azure` or `none`.
    pub plugin: &'a str,
    /// How it is used: `overlay`, or empty.
    pub mode: &'a str,
}

impl Network<'_> {
    /// How many pods a node takes if nobody says otherwise.
    pub fn max_pods(&self) -> i32 {
        match (self.plugin, self.mode) {
            ("none", _) | ("azure", "overlay") => MANY_PODS,
            ("azure", "") => PODS_IN_SUBNET,
            _ => RECOMMENDED_PODS,
        }
    }
}

/// What instance types depend on. NodeClasses with the same profile have the same types.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the NodeClass")]
pub struct Profile {
    /// The image family.
    pub image_family: Family,
    /// The disk of the operating system.
    pub os_disk_size_gb: i32,
    /// How many pods a node takes.
    pub max_pods: i32,
    /// Whether disks of the host are encrypted.
    pub encryption_at_host: bool,
    /// Whether the boot is protected.
    pub trusted_launch: bool,
    /// Whether AKS installs drivers of GPUs.
    pub gpu_driver: bool,
    /// Whether containers start before their image is complete.
    pub artifact_streaming: bool,
    /// Whether only validated cryptography is used.
    pub fips: bool,
    /// Whether nodes have a DNS cache.
    pub local_dns: bool,
}

/// Which systems a NodeClass is about; versions are a matter of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Some Ubuntu.
    Ubuntu,
    /// Some Azure Linux.
    AzureLinux,
}

impl Family {
    /// The value of the label `os-sku`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ubuntu => "Ubuntu",
            Self::AzureLinux => "AzureLinux",
        }
    }

    /// The systems of an image family.
    pub const fn of(family: Option<ImageFamily>) -> Self {
        match family {
            None | Some(ImageFamily::Ubuntu | ImageFamily::Ubuntu2204 | ImageFamily::Ubuntu2404) => {
                Self::Ubuntu
            }
            Some(ImageFamily::AzureLinux) => Self::AzureLinux,
        }
    }
}

impl Profile {
    /// What instance types depend on of a NodeClass.
    pub fn of(class: &AKSNodeClass, network: Network<'_>) -> Self {
        let spec = &class.spec;
        let security = spec.security.as_ref();
        let launch = security.and_then(|security| security.trusted_launch.as_ref());
        let is_on = |switch: Option<bool>| switch == Some(true);
        let local_dns = class.status.as_ref().and_then(|status| status.local_dns_state);
        Self {
            image_family: Family::of(spec.image_family),
            os_disk_size_gb: spec.os_disk_size_gb.unwrap_or(OS_DISK_SIZE_GB),
            max_pods: spec.max_pods.unwrap_or_else(|| network.max_pods()),
            encryption_at_host: is_on(security.and_then(|security| security.encryption_at_host)),
            trusted_launch: launch.is_some_and(|launch| is_on(launch.vtpm) || is_on(launch.secure_boot)),
            gpu_driver: spec.gpu.as_ref().and_then(|gpu| gpu.mode) != Some(GpuMode::None),
            artifact_streaming: is_on(spec.artifact_streaming.as_ref().and_then(|each| each.enabled)),
            fips: spec.fips_mode == Some(FipsMode::FIPS),
            local_dns: local_dns == Some(LocalDnsState::Enabled),
        }
    }
}
