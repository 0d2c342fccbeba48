//! Labels, capacity and overhead of instance types, and which of them a NodeClass leaves.

use std::fmt::Write as _;

use api::names::labels::{self, azure as keys};
use azure::instance_type::{self, Incompatible, Network, Profile, incompatibility};
use azure::sku::Catalogue;
use expect_test::expect_file;
use serde_json::{Value, json};

use crate::support::{
    OVERLAY, REGIONAL, SETS, World, ZONAL, class, find, label, like, one, profile, sku, with,
};

// azure.md 2.2, 4.3, 4.4, 29
#[test]
fn every_size_of_the_fixtures_has_its_labels_and_resources() {
    let mut text = String::new();
    for location in [ZONAL, REGIONAL] {
        let world = World::new(location);
        let environment = world.environment();
        // Those that nodes cannot be of are made all the same, to see all that is said about them.
        for wire in crate::support::listed(location) {
            let sku = azure::sku::Sku::read(&wire, location).unwrap();
            let each = instance_type::resolve(&sku, &profile(json!({})), &environment, &world.market());
            writeln!(text, "{location} {}", each.name).unwrap();
            let mut keys: Vec<&str> = each.requirements.iter().map(|each| each.key.as_str()).collect();
            keys.sort_unstable();
            for key in keys {
                writeln!(text, "  {key} = {}", label(&each.requirements, key)).unwrap();
            }
            for (title, amounts) in [("capacity", &each.capacity), ("allocatable", &each.allocatable())] {
                let amounts = amounts.iter().filter(|(_, amount)| !amount.is_zero());
                let amounts: Vec<String> =
                    amounts.map(|(name, amount)| format!("{} {amount}", name.as_str())).collect();
                writeln!(text, "  {title}: {}", amounts.join(", ")).unwrap();
            }
            writeln!(text, "  volumes: {:?}", each.volume_limits).unwrap();
        }
    }
    expect_file!["../data/instance_types.txt"].assert_eq(&text);
}

// azure.md 4.3
#[test]
fn memory_is_whole_gibibytes_without_the_share_of_the_hypervisor() {
    let world = World::with_sizes(&[with(one("Standard_D2s_v3"), "MemoryGB", "3.5"), one("Standard_D2_v2")]);
    let types = world.plain();
    let memory = |name: &str| find(&types, name).capacity.amount("memory").value();
    let gib = 1_i64 << 30;
    // 3.5 GiB count as 3, 7 as 7; the share is rounded up.
    assert_eq!(memory("Standard_D2s_v3"), 3 * gib - 241_591_911);
    assert_eq!(memory("Standard_D2_v2"), 7 * gib - 563_714_458);
}

// azure.md 4.3
#[test]
fn the_disk_is_what_the_node_class_says_in_decimal_gigabytes() {
    let world = World::new(ZONAL);
    let disk = |spec: Value| {
        find(&world.types(&profile(spec)), "Standard_D2s_v3").capacity.amount("ephemeral-storage").to_string()
    };
    assert_eq!((disk(json!({})), disk(json!({"osDiskSizeGB": 30}))), ("128G".to_owned(), "30G".to_owned()));
}

// azure.md 4.5, 25.3
#[test]
fn pods_are_limited_by_the_node_class_or_else_by_the_network() {
    for (plugin, mode, expected) in [
        ("none", "", 250),
        ("azure", "overlay", 250),
        ("azure", "", 30),
        ("kubenet", "", 110),
        ("azure", "x", 110),
    ] {
        let network = Network { plugin, mode };
        let pods = |spec: Value| Profile::of(&class(spec, json!({})), network).max_pods;
        assert_eq!(pods(json!({})), expected, "{plugin} {mode}");
        assert_eq!(pods(json!({"maxPods": 42})), 42);
    }
    let world = World::new(ZONAL);
    let types = world.types(&profile(json!({"maxPods": 42})));
    assert_eq!(find(&types, "Standard_D2s_v3").capacity.amount("pods").value(), 42);
}

// azure.md 25.3
#[test]
fn every_well_known_label_is_on_every_type() {
    let world = World::new(ZONAL);
    let by_others = [labels::NODEPOOL, labels::WINDOWS_BUILD];
    for each in world.plain() {
        for key in SETS.well_known().filter(|key| !by_others.contains(key)) {
            assert_ne!(label(&each.requirements, key), "none", "{} {key}", each.name);
        }
        for key in [keys::SKU_NETWORKING_ACCELERATED, keys::SKU_STORAGE_PREMIUM_CAPABLE] {
            assert!(["true", "false"].contains(&label(&each.requirements, key).as_str()), "{key}");
        }
    }
}

// azure.md 4.2, 25.3
#[test]
fn azure_linux_has_no_images_for_some_gpus() {
    let ubuntu_only = with(like("Standard_NC6s_v3", "Standard_NV12s_v3", "nv", 12), "GPUs", "1");
    let world = World::with_sizes(&[
        ubuntu_only,
        one("Standard_NC16as_T4_v3"),
        one("Standard_NC24ads_A100_v4"),
        one("Standard_D2s_v3"),
    ]);
    for family in ["Ubuntu", "Ubuntu2204", "Ubuntu2404"] {
        assert_eq!(world.names(&profile(json!({"imageFamily": family}))).len(), 4, "{family}");
    }
    let left = world.names(&profile(json!({"imageFamily": "AzureLinux"})));
    assert_eq!(left, ["Standard_D2s_v3", "Standard_NC16as_T4_v3", "Standard_NC24ads_A100_v4"]);
}

// azure.md 4.2, 25.3
#[test]
fn drivers_are_installed_for_one_vendor_only() {
    let amd = with(like("Standard_NC6s_v3", "Standard_NV4ads_V710_v5", "nv", 4), "GPUs", "1");
    let world = World::with_sizes(&[amd, one("Standard_NC6s_v3"), one("Standard_D2s_v3")]);
    let left = |spec: Value| world.names(&profile(spec));
    let with_drivers = ["Standard_D2s_v3", "Standard_NC6s_v3"];
    assert_eq!(left(json!({})), with_drivers);
    assert_eq!(left(json!({"gpu": {"mode": "Driver"}})), with_drivers);
    assert_eq!(left(json!({"gpu": {}})), with_drivers);
    assert_eq!(left(json!({"gpu": {"mode": "None"}})).len(), 3);
}

// azure.md 4.2, 25.3
#[test]
fn encryption_at_host_counts_only_where_it_is_asked_for() {
    let world = World::with_sizes(&[
        with(one("Standard_D2s_v3"), "EncryptionAtHostSupported", "True"),
        with(one("Standard_D4s_v3"), "EncryptionAtHostSupported", "False"),
    ]);
    let left = |spec: Value| world.names(&profile(spec));
    assert_eq!(left(json!({"security": {"encryptionAtHost": true}})), ["Standard_D2s_v3"]);
    assert_eq!(left(json!({"security": {"encryptionAtHost": false}})).len(), 2);
    assert_eq!(left(json!({})).len(), 2);
}

// azure.md 4.2, 25.3
#[test]
fn artifact_streaming_hides_arm64_only_if_it_is_on() {
    let world = World::new(ZONAL);
    let has_arm = |spec: Value| world.names(&profile(spec)).contains(&"Standard_D16plds_v5".to_owned());
    assert!(!has_arm(json!({"artifactStreaming": {"enabled": true}})));
    assert!(has_arm(json!({"artifactStreaming": {"enabled": false}})) && has_arm(json!({})));
}

// azure.md 4.2, 25.3
#[test]
fn a_dns_cache_needs_four_processors() {
    let world = World::new(ZONAL);
    let of = |state: &str| {
        let spec = json!({});
        Profile::of(&class(spec, json!({"localDNSState": state})), OVERLAY)
    };
    let (on, off) = (of("Enabled"), of("Disabled"));
    assert_ne!(on, off, "the lists are kept apart");
    let is_small = |name: &String| world.sku(name).vcpus < 4;
    assert!(!world.names(&on).iter().any(is_small));
    assert!(world.names(&off).iter().any(is_small));
    assert_eq!(world.names(&off), world.names(&profile(json!({}))));
    let tiny = sku(&with(with(one("Standard_D4s_v3"), "MemoryGB", "0.2"), "vCPUs", "4"));
    assert_eq!(incompatibility(&on, &tiny), Some(Incompatible::LocalDns));
}

// azure.md 4.2
#[test]
fn trusted_launch_leaves_sizes_that_can_be_protected() {
    let world = World::new(ZONAL);
    for switch in ["vtpm", "secureBoot"] {
        let left = world.names(&profile(json!({"security": {"trustedLaunch": {switch: true}}})));
        assert!(left.iter().all(|name| world.sku(name).trusted_launch) && !left.is_empty(), "{switch}");
        assert!(left.len() < world.plain().len());
    }
    let off = profile(json!({"security": {"trustedLaunch": {"vtpm": false}}}));
    assert_eq!(world.names(&off).len(), world.plain().len());
}

// azure.md 2.2
#[test]
fn labels_follow_the_node_class() {
    let world = World::new(ZONAL);
    let label_of = |spec: Value, key: &str| {
        label(&find(&world.types(&profile(spec)), "Standard_D2s_v3").requirements, key)
    };
    assert_eq!(label_of(json!({}), keys::AKS_OS_SKU), "Ubuntu");
    assert_eq!(label_of(json!({"imageFamily": "Ubuntu2404"}), keys::AKS_OS_SKU), "Ubuntu");
    assert_eq!(label_of(json!({"imageFamily": "AzureLinux"}), keys::AKS_OS_SKU), "AzureLinux");
    assert_eq!(label_of(json!({"fipsMode": "FIPS"}), keys::AKS_FIPS_ENABLED), "true");
    assert_eq!(label_of(json!({"fipsMode": "Disabled"}), keys::AKS_FIPS_ENABLED), "-");
    assert_eq!(label_of(json!({}), keys::AKS_FIPS_ENABLED), "-");
}

// azure.md 28.12
#[test]
fn gpus_are_named_even_if_the_name_of_the_size_does_not_say_it() {
    for (name, vendor, expected) in [
        ("Standard_NC6s_v3", "nvidia", "V100"),
        ("Standard_NC24r_Promo", "nvidia", "K80"),
        ("Standard_ND40rs_v2", "nvidia", "V100"),
        ("Standard_ND96asr_v4", "nvidia", "A100"),
        ("Standard_ND96isr_MI300X_v5", "amd", "MI300X"),
        ("Standard_ND96isr_H100_v5", "nvidia", "H100"),
        ("Standard_NV48s_v3", "nvidia", "M60"),
        ("Standard_ND128isr_NDR_GB200_v6", "nvidia", "GB200"),
    ] {
        let wire = with(like("Standard_NC6s_v3", name, "n", 6), "GPUs", "2");
        let world = World::with_sizes(&[wire]);
        let types = world.types(&profile(json!({"gpu": {"mode": "None"}})));
        let of = |key: &str| label(&types[0].requirements, key);
        assert_eq!(of(keys::SKU_GPU_NAME), expected, "{name}");
        assert_eq!(
            (of(keys::SKU_GPU_MANUFACTURER).as_str(), of(keys::SKU_GPU_COUNT).as_str()),
            (vendor, "2")
        );
        let resource = format!("{vendor}.com/gpu");
        assert_eq!(types[0].capacity.amount(&resource).value(), 2);
    }
}

// azure.md 4.2
#[test]
fn a_region_without_sizes_is_an_error() {
    let world = World::new(ZONAL);
    let nothing = instance_type::list(
        &Catalogue::default(),
        &profile(json!({})),
        &world.environment(),
        &world.market(),
    );
    assert_eq!(nothing.unwrap_err().to_string(), "no instance types found");
}

// azure.md 4.2
#[test]
fn only_what_types_depend_on_tells_profiles_apart() {
    let plain = profile(json!({}));
    for spec in [
        json!({"imageFamily": "AzureLinux"}),
        json!({"osDiskSizeGB": 64}),
        json!({"maxPods": 10}),
        json!({"security": {"encryptionAtHost": true}}),
        json!({"security": {"trustedLaunch": {"secureBoot": true}}}),
        json!({"gpu": {"mode": "None"}}),
        json!({"artifactStreaming": {"enabled": true}}),
        json!({"fipsMode": "FIPS"}),
    ] {
        assert_ne!(profile(spec.clone()), plain, "{spec}");
    }
    for spec in [
        json!({"tags": {"a": "b"}}),
        json!({"vnetSubnetID": "x"}),
        json!({"osDiskSizeGB": 128}),
        json!({"maxPods": 250}),
        json!({"artifactStreaming": {"enabled": false}}),
        json!({"imageFamily": "Ubuntu2204"}),
    ] {
        assert_eq!(profile(spec.clone()), plain, "{spec}");
    }
}
