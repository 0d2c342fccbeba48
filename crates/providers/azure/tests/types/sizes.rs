//! Names of sizes, and which sizes nodes can be of.

use std::io::Read;

use azure::arm::types::sku::ResourceSku;
use azure::sku::{Catalogue, Placement, Size, Sku};
use serde_json::json;

use crate::support::{REGIONAL, ZONAL, catalogue, like, listed, one, sku, with};

/// The one name that the original cannot read.
const UNREAD: &str = "Standard_ND128isr_NDR_GB200_v6";

// azure.md 3.2
#[test]
fn all_1502_names_are_read_as_the_original_reads_them() {
    let mut table = String::new();
    let packed: &[u8] = include_bytes!("../../data/sizes.csv.gz");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut table).unwrap();
    let (mut compared, mut unread) = (0, Vec::new());
    for line in table.lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let name = row[0];
        let size: Size = name.strip_prefix("Standard_").unwrap().parse().unwrap();
        compared += 1;
        if row[2] == "no" {
            unread.push(name);
            continue;
        }
        let constrained = size.constrained_vcpus.map(|count| count.to_string()).unwrap_or_default();
        let found = [
            size.family.clone(),
            size.subfamily.clone(),
            size.vcpus.to_string(),
            constrained,
            size.features.clone(),
            size.accelerator.clone().unwrap_or_default(),
            size.version_number().to_owned(),
            size.series(),
        ];
        assert_eq!(found.as_slice(), &row[3..], "{name}");
    }
    assert_eq!((compared, unread), (1502, vec![UNREAD]));
}

// azure.md 28.12
#[test]
fn sizes_of_whole_racks_are_read_too() {
    let size: Size = UNREAD.strip_prefix("Standard_").unwrap().parse().unwrap();
    assert_eq!(
        (size.vcpus, size.accelerator.as_deref(), size.series().as_str()),
        (128, Some("GB200"), "NDisr_v6")
    );
}

// azure.md 4.1, 25.3
#[test]
fn sizes_that_nodes_cannot_be_of_are_left_out_with_the_reason() {
    let catalogue = catalogue(ZONAL);
    let reasons: Vec<String> =
        catalogue.left_out().iter().map(|(name, why)| format!("{name}: {why}")).collect();
    expect_test::expect![[r#"
        Standard_A0: AKS does not support it
        Standard_B1s: AKS does not support it
        Standard_DC8s_v3: confidential machines are not supported
        Standard_M8-2ms: some of its vCPUs are switched off"#]]
    .assert_eq(&reasons.join("\n"));
    assert_eq!(catalogue.skus().len(), 16);
    // One of them is also restricted in this region.
    assert_eq!(crate::support::catalogue(REGIONAL).left_out().len(), 2);
}

fn read(wires: &[ResourceSku]) -> Catalogue {
    let mut all = vec![one("Standard_D2s_v3")];
    all.extend_from_slice(wires);
    Catalogue::read(&all, ZONAL).unwrap()
}

// azure.md 4.1
#[test]
fn each_rule_of_the_catalogue_has_its_reason() {
    let named = |name: &str| like("Standard_D2s_v3", name, "family", 4);
    let restricted = ResourceSku {
        restrictions: serde_json::from_value(json!([{"type": "Location", "values": ["southcentralus"]}]))
            .unwrap(),
        ..named("Standard_D4s_v4")
    };
    let other = ResourceSku { resource_type: Some("disks".to_owned()), ..named("Premium_LRS") };
    let without = |capability: &str| {
        let mut wire = named("Standard_D4s_v4");
        wire.capabilities.as_mut().unwrap().retain(|each| each.name.as_deref() != Some(capability));
        wire
    };
    for (wire, expected) in [
        (named("Standard_E64i_v3"), "AKS does not support it"),
        (named("Standard_E64is_v3"), "AKS does not support it"),
        (named("Basic_A4"), "AKS does not support it"),
        (named("Standard_what"), "its size \"what\" does not read like D4s_v5"),
        (restricted, "the subscription may not use it in this region"),
        (with(named("Standard_D1"), "vCPUs", "1"), "it has 1 vCPUs and 8 GiB, nodes need 2 and 3.5"),
        (with(named("Standard_D2"), "MemoryGB", "3.4"), "it has 4 vCPUs and 3.4 GiB, nodes need 2 and 3.5"),
        (with(named("Standard_NP10s"), "GPUs", "1"), "AKS has no images for its GPUs"),
        (named("Standard_E4-2s_v3"), "some of its vCPUs are switched off"),
        (named("Standard_EC4s_v3"), "confidential machines are not supported"),
        (without("vCPUs"), "Azure does not say its vCPUs"),
        (without("CpuArchitectureType"), "Azure does not say its CpuArchitectureType"),
    ] {
        let name = wire.name.clone().unwrap();
        let catalogue = read(&[wire]);
        let why = catalogue.left_out().get(&name).unwrap_or_else(|| panic!("{name} is not left out"));
        assert_eq!(why.to_string(), expected, "{name}");
    }
    assert!(read(&[other]).left_out().is_empty(), "what is no machine is not looked at");
    let least = with(named("Standard_D2_v4"), "MemoryGB", "3.5");
    assert!(read(&[least]).get("Standard_D2_v4").is_some(), "the smallest node");
    let kept = with(named("Standard_NC6s_v3"), "GPUs", "1");
    assert!(read(&[kept]).get("Standard_NC6s_v3").is_some(), "GPUs that AKS knows");
}

// azure.md 4.1
#[test]
fn a_region_without_any_size_is_an_error() {
    let error = Catalogue::read(&[one("Standard_A0")], ZONAL).unwrap_err();
    let expected = "no size of southcentralus can be used for nodes, out of 1 that Azure lists";
    assert_eq!(error.to_string(), expected);
}

// azure.md 4.1, 28.13
#[test]
fn sizes_that_came_after_the_table_are_named_with_their_family() {
    let new = like("Standard_D2s_v3", "Standard_D4s_v9", "standardDSv9Family", 4);
    let catalogue = read(&[new]);
    let unknown = catalogue.unknown();
    assert_eq!(unknown.len(), 1);
    assert!(unknown["standardDSv9Family"].contains("Standard_D4s_v9"));
    assert!(crate::support::catalogue(ZONAL).unknown().is_empty());
}

// azure.md 4.6
#[test]
fn the_ephemeral_disk_is_the_first_of_the_host_that_there_is() {
    for (name, expected) in [
        ("Standard_D128ds_v6", Some((7559, Placement::NvmeDisk))),
        ("Standard_D16plds_v5", Some((429, Placement::CacheDisk))),
        ("Standard_NC24ads_A100_v4", Some((274, Placement::CacheDisk))),
        ("Standard_D64s_v3", Some((1717, Placement::CacheDisk))),
        ("Standard_D2as_v6", None),
        ("Standard_A0", None),
        ("Standard_D2_v2", None),
    ] {
        let disk = sku(&one(name)).ephemeral_disk.map(|disk| (disk.size_gb, disk.placement));
        assert_eq!(disk, expected, "{name}");
    }
}

/// A size with disks of its host: NVMe in MiB, placements, cache in bytes, temporary disk in MiB.
fn disks(nvme: &str, placements: &str, cache: &str, temporary: &str) -> Sku {
    let wire = one("Standard_D2s_v3");
    let wire = with(wire, "EphemeralOSDiskSupported", "True");
    let wire = with(wire, "NvmeDiskSizeInMiB", nvme);
    let wire = with(wire, "SupportedEphemeralOSDiskPlacements", placements);
    let wire = with(wire, "CachedDiskBytes", cache);
    sku(&with(wire, "MaxResourceVolumeMB", temporary))
}

// azure.md 25.3, ephemeral disks
#[test]
fn nvme_comes_first_where_it_may_be_used_then_the_cache_then_the_temporary_disk() {
    let placement = |sku: &Sku| sku.ephemeral_disk.map(|disk| disk.placement);
    let cache = "107374182400";
    let all = disks("102400", "NvmeDisk,CacheDisk,ResourceDisk", cache, "102400");
    assert_eq!(placement(&all), Some(Placement::NvmeDisk));
    let not_allowed = disks("102400", "CacheDisk,ResourceDisk", cache, "102400");
    assert_eq!(placement(&not_allowed), Some(Placement::CacheDisk));
    let only_nvme_not_allowed = disks("102400", "ResourceDisk", "0", "0");
    assert_eq!(placement(&only_nvme_not_allowed), None);
    let temporary = disks("0", "ResourceDisk", "0", "102400");
    assert_eq!(
        temporary.ephemeral_disk.map(|disk| (disk.size_gb, disk.placement)),
        Some((107, Placement::ResourceDisk))
    );
    let unsupported = sku(&with(one("Standard_D64s_v3"), "EphemeralOSDiskSupported", "False"));
    assert_eq!(placement(&unsupported), None);
}

// azure.md 25.3, ephemeral disks
#[test]
fn a_cache_that_is_too_small_is_not_replaced_by_a_larger_temporary_disk() {
    let sku = disks("0", "CacheDisk,ResourceDisk", "53687091200", "1024000");
    assert_eq!(sku.ephemeral_placement(53), Some(Placement::CacheDisk));
    assert_eq!(sku.ephemeral_placement(54), None);
}

// azure.md 3.1
#[test]
fn trusted_launch_needs_the_second_generation_and_nobody_who_disables_it() {
    let of = |generations: &str, disabled: &str| {
        let wire = with(one("Standard_D2s_v3"), "HyperVGenerations", generations);
        sku(&with(wire, "TrustedLaunchDisabled", disabled)).trusted_launch
    };
    assert!(of("V1,V2", "False") && of("V2", ""));
    assert!(!of("V1", "False") && !of("V1,V2", "True"));
}

#[test]
fn of_two_entries_with_one_name_the_first_counts() {
    let mut all = listed(ZONAL);
    all.push(with(one("Standard_D2s_v3"), "vCPUs", "64"));
    let catalogue = Catalogue::read(&all, ZONAL).unwrap();
    assert_eq!(catalogue.get("Standard_D2s_v3").map(|sku| sku.vcpus), Some(2));
}
