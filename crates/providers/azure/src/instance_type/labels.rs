//! The labels of an instance type.

use std::collections::BTreeSet;

use api::names::labels::{self, azure};
use api::shared::Requirement;
use cluster::instance_types::Offering;

use super::Environment;
use super::profile::{Family, Profile};
use crate::requirements::{absent, maybe, within};
use crate::sku::{Size, Sku};

/// The longest value of a label.
const LONGEST: usize = 63;

/// The labels of an instance type with some offerings.
pub(super) fn of(
    sku: &Sku,
    profile: &Profile,
    environment: &Environment<'_>,
    offerings: &[Offering],
) -> Vec<Requirement> {
    let mut all = vec![
        within(labels::INSTANCE_TYPE, [sku.name.as_str()]),
        within(labels::ARCH, [sku.architecture.as_str()]),
        within(labels::OS, ["linux"]),
        within(labels::REGION, [environment.location]),
    ];
    all.extend(of_offerings(offerings));
    all.extend(of_size(sku));
    all.extend(of_gpus(sku));
    all.extend(of_cluster(profile, environment));
    all
}

/// What the offerings that can be had leave open.
fn of_offerings(offerings: &[Offering]) -> [Requirement; 4] {
    [labels::ZONE, labels::CAPACITY_TYPE, azure::PLACEMENT_SCOPE, azure::SKU_STORAGE_ULTRA_SSD].map(|key| {
        let available = offerings.iter().filter(|offering| offering.available);
        let values: BTreeSet<&str> = available
            .flat_map(|offering| &offering.requirements)
            .filter(|requirement| requirement.key == key)
            .flat_map(|requirement| requirement.values.iter().map(String::as_str))
            .collect();
        within(key, values)
    })
}

/// What the name of a size says, and how many processors and how much memory it has: all that can be known of a size
/// without asking Azure. Nothing if the name does not follow the grammar.
pub fn of_name(name: &str, vcpus: i64, memory_mib: i64) -> Vec<Requirement> {
    let size = name.split_once('_').map_or(name, |(_, size)| size).parse::<Size>();
    let Ok(size) = size.or_else(|_| name.parse()) else { return Vec::new() };
    let (vcpus, memory) = (vcpus.to_string(), memory_mib.to_string());
    vec![
        within(azure::SKU_NAME, [name]),
        within(azure::SKU_FAMILY, [size.family.as_str()]),
        within(azure::SKU_SERIES, [size.series()]),
        within(azure::SKU_VERSION, [size.version_number()]),
        within(azure::SKU_CPU, [vcpus.as_str()]),
        within(azure::AKS_SKU_CPU, [vcpus.as_str()]),
        within(azure::SKU_MEMORY, [memory.as_str()]),
        within(azure::AKS_SKU_MEMORY, [memory.as_str()]),
    ]
}

fn of_size(sku: &Sku) -> Vec<Requirement> {
    let (vcpus, memory) = (sku.vcpus.to_string(), sku.memory_mib().to_string());
    let generations: Vec<String> = sku.hyperv_generations.iter().map(u8::to_string).collect();
    let disk = sku.ephemeral_disk.map(|disk| disk.size_gb).filter(|size| *size > 0);
    vec![
        within(azure::SKU_NAME, [sku.name.as_str()]),
        within(azure::SKU_FAMILY, [sku.size.family.as_str()]),
        within(azure::SKU_SERIES, [sku.size.series()]),
        within(azure::SKU_VERSION, [sku.size.version_number()]),
        within(azure::SKU_CPU, [vcpus.as_str()]),
        within(azure::AKS_SKU_CPU, [vcpus.as_str()]),
        within(azure::SKU_MEMORY, [memory.as_str()]),
        within(azure::AKS_SKU_MEMORY, [memory.as_str()]),
        within(azure::SKU_NETWORKING_ACCELERATED, [sku.accelerated_networking.to_string()]),
        within(azure::SKU_STORAGE_PREMIUM_CAPABLE, [sku.premium_io.to_string()]),
        maybe(azure::SKU_STORAGE_EPHEMERALOS_MAXSIZE, disk.map(|size| size.to_string())),
        within(azure::SKU_HYPERV_GENERATION, generations),
    ]
}

fn of_gpus(sku: &Sku) -> [Requirement; 3] {
    let count = if sku.gpu.is_some() { sku.gpu_count } else { 0 };
    [
        within(azure::SKU_GPU_COUNT, [count.to_string()]),
        maybe(azure::SKU_GPU_MANUFACTURER, sku.gpu.map(|gpu| gpu.vendor.as_str())),
        maybe(azure::SKU_GPU_NAME, sku.gpu_name()),
    ]
}

fn of_cluster(profile: &Profile, environment: &Environment<'_>) -> [Requirement; 6] {
    let fips = if profile.fips {
        within(azure::AKS_FIPS_ENABLED, ["true"])
    } else {
        absent(azure::AKS_FIPS_ENABLED)
    };
    [
        within(azure::AKS_CLUSTER, [cluster(environment.node_resource_group)]),
        within(azure::AKS_MODE, ["system", "user"]),
        within(azure::AKS_SCALE_SET_PRIORITY, ["regular", "spot"]),
        within(azure::AKS_PRIORITY, ["regular", "spot"]),
        within(azure::AKS_OS_SKU, [profile.image_family.as_str()]),
        fips,
    ]
}

/// The value of the label `os-sku` for an image family.
pub const fn os_sku(family: Option<api::azure::ImageFamily>) -> &'static str {
    Family::of(family).as_str()
}

/// The cluster's label, which is its node resource group as far as a label can say that.
pub fn cluster(node_resource_group: &str) -> String {
    let plain = |character| if matches!(character, '(' | ')') { '-' } else { character };
    let mut name: String = node_resource_group.chars().map(plain).take(LONGEST).collect();
    if name.ends_with(['-', '_', '.']) {
        if name.chars().count() >= LONGEST {
            name.pop();
        }
        name.push('z');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    // azure.md 2.4
    #[test]
    fn a_resource_group_becomes_a_label() {
        assert_eq!(cluster("MC_group_cluster_westus2"), "MC_group_cluster_westus2");
        assert_eq!(cluster("MC_(a)_b"), "MC_-a-_b");
        assert_eq!(cluster("MC_(a)"), "MC_-a-z");
        assert_eq!(cluster("a_"), "a_z");
        assert_eq!(cluster("a."), "a.z");
        let long = "a".repeat(62);
        assert_eq!(cluster(&format!("{long}-b")), format!("{long}z"));
        assert_eq!(cluster(&format!("{long}bc")), format!("{long}b"));
    }
}
