//! What image families have in common and where they differ.

use api::aws::AmiFamily;

/// What is the same for all nodes of an image family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "families differ in each of them")]
pub struct Family {
    /// The volumes that nodes get unless the NodeClass says otherwise: device and size in GiB.
    pub volumes: &'static [(&'static str, i64)],
    /// The device on which pods keep their data.
    pub ephemeral_device: Option<&'static str>,
    /// Whether the kubelet is told how many pods there may be for each processor.
    pub pods_per_core: bool,
    /// Whether the network interfaces limit the number of pods.
    pub limited_by_interfaces: bool,
    /// Whether memory is kept for as many pods as the network interfaces allow, whatever the limit is.
    pub memory_by_interfaces: bool,
    /// Whether the kubelet can be given settings that we do not know.
    pub any_kubelet_field: bool,
    /// The build, of Windows.
    pub windows_build: Option<&'static str>,
}

const AL2: Family = Family {
    volumes: &[("/dev/xvda", 20)],
    ephemeral_device: Some("/dev/xvda"),
    pods_per_core: true,
    limited_by_interfaces: true,
    memory_by_interfaces: true,
    any_kubelet_field: false,
    windows_build: None,
};
const AL2023: Family = Family { any_kubelet_field: true, ..AL2 };
const BOTTLEROCKET: Family = Family {
    volumes: &[("/dev/xvda", 4), ("/dev/xvdb", 20)],
    ephemeral_device: Some("/dev/xvdb"),
    pods_per_core: false,
    memory_by_interfaces: false,
    ..AL2
};
const CUSTOM: Family = Family { volumes: &[], ephemeral_device: None, any_kubelet_field: true, ..AL2 };
const WINDOWS_2019: Family = windows("10.0.17763");
const WINDOWS_2022: Family = windows("10.0.20348");
const WINDOWS_2025: Family = windows("10.0.26100");

const fn windows(build: &'static str) -> Family {
    Family {
        volumes: &[("/dev/sda1", 50)],
        ephemeral_device: Some("/dev/sda1"),
        pods_per_core: true,
        limited_by_interfaces: false,
        memory_by_interfaces: false,
        any_kubelet_field: false,
        windows_build: Some(build),
    }
}

impl Family {
    /// What an image family is like.
    pub const fn of(family: AmiFamily) -> &'static Self {
        match family {
            AmiFamily::AL2 => &AL2,
            AmiFamily::AL2023 => &AL2023,
            AmiFamily::Bottlerocket => &BOTTLEROCKET,
            AmiFamily::Custom => &CUSTOM,
            AmiFamily::Windows2019 => &WINDOWS_2019,
            AmiFamily::Windows2022 => &WINDOWS_2022,
            AmiFamily::Windows2025 => &WINDOWS_2025,
        }
    }
}
