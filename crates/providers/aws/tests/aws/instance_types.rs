//! Pods, storage, overhead and devices of instance types.

use api::names::labels::{self, aws as keys};
use api::names::resources;
use aws::instance_type::{Environment, Incompatible, incompatibility};
use aws::port::PlacementStrategy;
use cluster::instance_types::InstanceType;
use serde_json::{Value, json};

use crate::support::{ENVIRONMENT, class, info, label, node_class, placement_group, resolved, resolved_in};

fn pods(family: &str, spec: Value, name: &str) -> i64 {
    amount(&resolved(&node_class(family, &spec), name), resources::PODS)
}

fn amount(resolved: &InstanceType, name: &str) -> i64 {
    resolved.capacity.amount(name).value()
}

fn text(resolved: &InstanceType, name: &str) -> String {
    resolved.capacity.amount(name).to_string()
}

const FAMILIES: [&str; 7] =
    ["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"];

#[test]
fn a02_network_interfaces_limit_the_pods() {
    for (name, expected) in [("t3.large", 35), ("m5.large", 29), ("m6idn.32xlarge", 394)] {
        assert_eq!(pods("AL2023", json!({}), name), expected, "{name}");
    }
    let fabric = json!({"networkInterfaces": [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
        {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
    ]});
    assert_eq!(pods("AL2023", fabric, "m6idn.32xlarge"), 345);
    for windows in ["Windows2019", "Windows2022", "Windows2025"] {
        assert_eq!(pods(windows, json!({}), "t3.large"), 110);
    }
}

#[test]
fn a03_users_can_say_how_many_pods_there_are() {
    for family in FAMILIES {
        assert_eq!(pods(family, json!({"kubelet": {"maxPods": 10}}), "t3.large"), 10);
    }
    let per_core = json!({"kubelet": {"podsPerCore": 4}});
    assert_eq!(pods("AL2023", per_core.clone(), "t3.large"), 8);
    assert_eq!(pods("Bottlerocket", per_core.clone(), "t3.large"), 35);
    assert_eq!(pods("Windows2022", per_core, "t3.large"), 8);
    assert_eq!(pods("AL2023", json!({"kubelet": {"podsPerCore": 0}}), "t3.large"), 35);
    assert_eq!(pods("AL2023", json!({"kubelet": {"podsPerCore": 40}}), "t3.large"), 35);
    assert_eq!(pods("AL2023", json!({"kubelet": {"podsPerCore": 4, "maxPods": 20}}), "t3.large"), 8);
    assert_eq!(pods("AL2023", json!({"kubelet": {"podsPerCore": 40, "maxPods": 20}}), "t3.large"), 20);
    assert_eq!(pods("AL2023", json!({"kubelet": {"maxPods": "vcpus * 7 + max_pods"}}), "t3.large"), 49);
}

#[test]
fn a04_reserved_interfaces_are_not_for_pods() {
    let with = |reserved_interfaces, family: &str| {
        let environment = Environment { reserved_interfaces, ..ENVIRONMENT };
        let resolved = resolved_in(&node_class(family, &json!({})), "t3.large", &environment);
        (amount(&resolved, resources::PODS), kube_reserved_memory(&resolved))
    };
    for family in ["AL2", "AL2023", "Custom"] {
        assert_eq!(with(1, family), (24, 640));
    }
    assert_eq!(with(1, "Bottlerocket"), (24, 519));
    assert_eq!(with(1, "Windows2022"), (110, 1465));
    assert_eq!(with(1_000_000, "AL2023").0, 0);
}

/// What is kept for Kubernetes of the memory, in MiB: the overhead without the distance from eviction.
fn kube_reserved_memory(resolved: &InstanceType) -> i64 {
    (resolved.overhead.amount(resources::MEMORY).value() >> 20) - 100
}

#[test]
fn a05_memory_is_kept_for_pods_as_the_family_does_it() {
    for (family, expected) in [
        ("AL2", 640),
        ("AL2023", 640),
        ("Custom", 640),
        ("Bottlerocket", 365),
        ("Windows2019", 365),
        ("Windows2022", 365),
        ("Windows2025", 365),
    ] {
        let class = node_class(family, &json!({"kubelet": {"maxPods": 10}}));
        assert_eq!(kube_reserved_memory(&resolved(&class, "t3.large")), expected, "{family}");
    }
    let xlarge = resolved(&node_class("AL2023", &json!({})), "m5.xlarge");
    assert_eq!(kube_reserved_memory(&xlarge), 893);
    assert_eq!(xlarge.overhead.amount(resources::CPU).to_string(), "80m");
}

#[test]
fn a06_processors_are_kept_in_bands() {
    let class = node_class("AL2023", &json!({}));
    for (name, expected) in [
        ("m5.large", "70m"),
        ("m5.xlarge", "80m"),
        ("m5.2xlarge", "90m"),
        ("m5.8xlarge", "150m"),
        ("m5.24xlarge", "310m"),
    ] {
        assert_eq!(resolved(&class, name).overhead.amount(resources::CPU).to_string(), expected, "{name}");
    }
}

#[test]
fn a07_what_users_reserve_replaces_ours_key_by_key() {
    let class = node_class(
        "AL2023",
        &json!({"kubelet": {
            "kubeReserved": {"memory": "1Gi", "pid": "100"}, "systemReserved": {"cpu": "1", "memory": "2Gi"},
        }}),
    );
    let resolved = resolved(&class, "m5.xlarge");
    assert_eq!(resolved.overhead.amount(resources::CPU).to_string(), "1080m");
    assert_eq!(resolved.overhead.amount(resources::MEMORY).to_string(), "3172Mi");
    assert_eq!(resolved.overhead.amount("pid").to_string(), "100");
    assert_eq!(resolved.overhead.amount(resources::EPHEMERAL_STORAGE).to_string(), "3Gi");
}

#[test]
fn a08_hard_evictions_keep_memory_and_disk_and_soft_ones_do_not() {
    let eviction = |hard: Value| {
        let class = node_class(
            "AL2023",
            &json!({"kubelet": {
                "evictionHard": hard, "evictionSoft": {"memory.available": "50%"},
                "evictionSoftGracePeriod": {"memory.available": "1m"},
            }}),
        );
        let resolved = resolved(&class, "m5.xlarge");
        let kube_memory = 893 << 20;
        (
            resolved.overhead.amount(resources::MEMORY).value() - kube_memory,
            resolved.overhead.amount(resources::EPHEMERAL_STORAGE).value() - (1 << 30),
        )
    };
    let memory = 15_155_i64 << 20;
    let disk = 20_i64 << 30;
    assert_eq!(eviction(json!({})), (100 << 20, disk / 10));
    assert_eq!(
        eviction(json!({"memory.available": "500Mi", "nodefs.available": "1Gi"})),
        (500 << 20, 1 << 30)
    );
    assert_eq!(
        eviction(json!({"memory.available": "10%", "nodefs.available": "50%"})),
        (memory / 10, disk / 2)
    );
    assert_eq!(eviction(json!({"memory.available": "100%", "nodefs.available": "100%"})), (0, 0));
}

#[test]
fn a09_nodes_have_at_least_what_is_planned_with() {
    let class = node_class("AL2023", &json!({}));
    for (name, memory, processors) in [
        ("t4g.small", "1408312Ki", "1930m"),
        ("t4g.medium", "3377496Ki", "1930m"),
        ("t4g.xlarge", "15136012Ki", "3920m"),
        ("m5.large", "7220184Ki", "1930m"),
    ] {
        let allocatable = resolved(&class, name).allocatable();
        assert!(allocatable.amount(resources::MEMORY) <= memory.parse().unwrap(), "{name}");
        assert!(allocatable.amount(resources::CPU) <= processors.parse().unwrap(), "{name}");
    }
    let large = resolved(&class, "m5.large").allocatable();
    assert_eq!(large.amount(resources::MEMORY).to_string(), "6903Mi");
    assert_eq!(large.amount(resources::EPHEMERAL_STORAGE).to_string(), "17Gi");
}

#[test]
fn a10_pods_write_to_the_disk_that_the_family_uses() {
    let storage = |family: &str, spec: Value, name: &str| {
        text(&resolved(&node_class(family, &spec), name), resources::EPHEMERAL_STORAGE)
    };
    let device = |device: &str, size: &str| json!({"deviceName": device, "ebs": {"volumeSize": size}});
    for (family, expected) in [
        ("AL2", "20Gi"),
        ("AL2023", "20Gi"),
        ("Bottlerocket", "20Gi"),
        ("Custom", "20Gi"),
        ("Windows2022", "50Gi"),
    ] {
        assert_eq!(storage(family, json!({}), "m5.large"), expected, "{family}");
    }
    let both = json!({"blockDeviceMappings": [device("/dev/xvda", "30Gi"), device("/dev/xvdb", "40Gi")]});
    assert_eq!(storage("AL2023", both.clone(), "m5.large"), "30Gi");
    assert_eq!(storage("Bottlerocket", both.clone(), "m5.large"), "40Gi");
    assert_eq!(storage("Custom", both, "m5.large"), "40Gi");
    let root = json!({"blockDeviceMappings": [
        {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "30Gi"}},
        {"deviceName": "/dev/xvdc", "ebs": {"volumeSize": "70Gi"}, "rootVolume": true},
        {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "40Gi"}},
    ]});
    for family in FAMILIES {
        assert_eq!(storage(family, root.clone(), "m5.large"), "70Gi");
    }
    let other = json!({"blockDeviceMappings": [device("/dev/other", "30Gi")]});
    assert_eq!(storage("AL2023", other, "m5.large"), "20Gi");
    let without_size =
        json!({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-1"}}]});
    assert_eq!(storage("AL2023", without_size.clone(), "m5.large"), "20Gi");
    assert_eq!(storage("Custom", without_size, "m5.large"), "20Gi");
    let nothing = json!({"blockDeviceMappings": [{}]});
    for family in FAMILIES {
        assert!(!storage(family, nothing.clone(), "m5.large").is_empty());
    }
    let striped = json!({"instanceStorePolicy": "RAID0"});
    assert_eq!(storage("AL2023", striped.clone(), "m6idn.32xlarge"), "7600G");
    assert_eq!(storage("AL2023", striped, "m5.large"), "20Gi");
}

#[test]
fn a11_devices_are_counted() {
    let of =
        |name: &str, resource: &str| amount(&resolved(&node_class("AL2023", &json!({})), name), resource);
    assert_eq!(of("p4d.24xlarge", resources::NVIDIA_GPU), 8);
    assert_eq!(
        (of("trn1.32xlarge", resources::AWS_NEURON), of("trn1.32xlarge", resources::AWS_NEURON_CORE)),
        (16, 32)
    );
    assert_eq!(
        (of("inf1.xlarge", resources::AWS_NEURON), of("inf1.xlarge", resources::AWS_NEURON_CORE)),
        (1, 4)
    );
    assert_eq!(of("trn1.32xlarge", resources::AWS_EFA), 8);
    assert_eq!(of("m5.large", resources::AWS_EFA), 0);
    assert_eq!((of("t3.large", resources::AWS_POD_ENI), of("m5.large", resources::AWS_POD_ENI)), (0, 9));
    let class = node_class(
        "AL2023",
        &json!({"networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"},
        ]}),
    );
    assert_eq!(amount(&resolved(&class, "trn1.32xlarge"), resources::AWS_EFA), 1);
}

#[test]
fn a12_windows_runs_on_one_architecture_and_has_addresses_for_pods() {
    let class = node_class("Windows2022", &json!({}));
    let amd = resolved(&class, "m5.large");
    assert_eq!(label(&amd.requirements, labels::OS), "windows");
    assert_eq!(label(&amd.requirements, labels::WINDOWS_BUILD), "10.0.20348");
    assert_eq!(amount(&amd, resources::AWS_PRIVATE_IPV4_ADDRESS), 9);
    let arm = resolved(&class, "m6g.large");
    assert_eq!(label(&arm.requirements, labels::OS), "");
    assert_eq!(arm.capacity.get(resources::AWS_PRIVATE_IPV4_ADDRESS), None);
    let linux = resolved(&node_class("AL2023", &json!({})), "m5.large");
    assert_eq!(linux.capacity.get(resources::AWS_PRIVATE_IPV4_ADDRESS), None);
}

#[test]
fn a13_labels_follow_from_the_name() {
    let class = node_class("AL2023", &json!({}));
    let parts = |name: &str| {
        let labels = resolved(&class, name).requirements;
        [
            keys::INSTANCE_CATEGORY,
            keys::INSTANCE_GENERATION,
            keys::INSTANCE_FAMILY,
            keys::INSTANCE_SIZE,
            keys::INSTANCE_CAPABILITY_FLEX,
        ]
        .map(|key| label(&labels, key))
        .join(" ")
    };
    assert_eq!(parts("m5.large"), "m 5 m5 large false");
    assert_eq!(parts("m7i-flex.large"), "m 7 m7i-flex large true");
    assert_eq!(parts("u-6tb1.112xlarge"), "u 1 u-6tb1 112xlarge false");
    assert_eq!(parts("u7i-6tb.112xlarge"), "u 7 u7i-6tb 112xlarge false");
    assert_eq!(parts("m5.metal"), "m 5 m5 metal false");
    let metal = resolved(&class, "m5.metal").requirements;
    assert_eq!(label(&metal, keys::INSTANCE_HYPERVISOR), "");
    assert_eq!(label(&metal, keys::INSTANCE_TENANCY), "default|dedicated");
    assert_eq!(label(&metal, keys::NITRO_SANDBOX), "false");
    assert_eq!(label(&metal, labels::ZONE), "us-east-1a|us-east-1b");
    assert_eq!(label(&metal, keys::ZONE_ID), "use1-az1|use1-az2");
    assert_eq!(label(&resolved(&class, "m6idn.32xlarge").requirements, keys::NITRO_SANDBOX), "true");
}

#[test]
fn a14_volumes_are_limited_by_what_the_machine_can_attach() {
    let class = node_class("AL2023", &json!({}));
    let limits = |name: &str| resolved(&class, name).volume_limits;
    assert_eq!(limits("m6idn.32xlarge"), [("ebs.csi.aws.com".to_owned(), 22)]);
}

#[test]
fn a15_types_that_cannot_be_what_is_asked_for_say_why() {
    let why = |family: &str, spec: Value, name: &str| {
        incompatibility(&class(&node_class(family, &spec)), &info(name))
    };
    assert_eq!(why("AL2023", json!({}), "m5.large"), None);
    assert_eq!(why("AL2023", json!({}), "a1.large"), Some(Incompatible::Image));
    assert_eq!(why("Bottlerocket", json!({}), "a1.large"), None);
    let tracking = json!({"connectionTracking": {"udpTimeout": 45}});
    assert_eq!(why("AL2023", tracking.clone(), "m5.large"), None);
    for name in ["m4.large", "m5.metal"] {
        assert_eq!(why("AL2023", tracking.clone(), name), Some(Incompatible::ConnectionTracking), "{name}");
    }
    let nested = |toggle: &str| json!({"cpuOptions": {"nestedVirtualization": toggle}});
    assert_eq!(why("AL2023", nested("enabled"), "m5.large"), Some(Incompatible::NestedVirtualization));
    assert_eq!(why("AL2023", nested("disabled"), "m5.large"), None);
    let mut capable = info("m5.large");
    capable.processor.as_mut().unwrap().features = vec!["nested-virtualization".to_owned()];
    assert_eq!(incompatibility(&class(&node_class("AL2023", &nested("enabled"))), &capable), None);
}

#[test]
fn a16_network_interfaces_must_fit_the_cards() {
    let fits = |interfaces: Value, name: &str| {
        let class_object = node_class("AL2023", &json!({"networkInterfaces": interfaces}));
        incompatibility(&class(&class_object), &info(name)).is_none()
    };
    let interface = |card: i32, device: i32, kind: &str| json!({"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind});
    let first = || interface(0, 0, "interface");
    assert!(fits(json!([first()]), "m5.large") && fits(json!([]), "m5.large"));
    assert!(fits(json!([first(), interface(0, 2, "interface")]), "m5.large"));
    assert!(!fits(json!([first(), interface(0, 3, "interface")]), "m5.large"));
    assert!(!fits(json!([first(), interface(1, 1, "interface")]), "m5.large"));
    assert!(fits(json!([first(), interface(1, 1, "interface")]), "m6idn.32xlarge"));
    assert!(!fits(json!([first(), interface(0, 1, "efa-only")]), "m5.large"));
    let fabric = [first(), interface(0, 1, "efa-only"), interface(1, 1, "efa-only")];
    assert!(fits(json!(fabric), "m6idn.32xlarge"));
    let too_many: Vec<Value> = (0..3).map(|card| interface(card, 1, "efa-only")).collect();
    assert!(!fits(json!(too_many), "m6idn.32xlarge"));
    assert!(!fits(json!([first()]), "m3.large"));
}

#[test]
fn a17_a_placement_group_takes_types_of_its_strategy() {
    let object = node_class("AL2023", &json!({}));
    let of = |strategy, name: &str| {
        let group = placement_group(strategy, 3);
        let class = aws::node_class::Class::new(&object, Some(&group), false).unwrap();
        incompatibility(&class, &info(name))
    };
    assert_eq!(of(PlacementStrategy::Cluster, "m5.large"), None);
    assert_eq!(of(PlacementStrategy::Cluster, "t3.large"), Some(Incompatible::PlacementGroup));
    assert_eq!(of(PlacementStrategy::Partition, "t3.large"), None);
}

#[test]
fn a18_settings_that_cannot_be_read_fail_everything_and_are_never_replaced_by_defaults() {
    let object = node_class("AL2023", &json!({"kubelet": {"maxPods": [1]}}));
    let error = aws::node_class::Class::new(&object, None, false).unwrap_err();
    assert!(error.to_string().starts_with("spec.kubelet.maxPods: "), "{error}");
    let fails = |kubelet: Value| {
        let object = node_class("AL2023", &json!({"kubelet": kubelet}));
        let class = aws::node_class::Class::new(&object, None, true).unwrap();
        let zones = std::collections::BTreeSet::new();
        aws::instance_type::resolve(&class, &info("m5.large"), &zones, &ENVIRONMENT, None).is_err()
    };
    assert!(fails(json!({"maxPods": "0 - vcpus"})) && fails(json!({"maxPods": "vcpus / (vcpus - 2)"})));
    assert!(fails(json!({"evictionHard": {"memory.available": "much"}})));
    assert!(!fails(json!({"kubeReserved": {"cpu": "0 - vcpus"}})));
}

#[test]
fn a19_expressions_count_only_with_their_gate() {
    let object = node_class(
        "AL2023",
        &json!({"kubelet": {"maxPods": "vcpus * 2", "kubeReserved": {"cpu": "vcpus * 100 + 1", "memory": "1Gi"}}}),
    );
    let of = |gate: bool| {
        let class = aws::node_class::Class::new(&object, None, gate).unwrap();
        let zones = std::collections::BTreeSet::new();
        let resolved =
            aws::instance_type::resolve(&class, &info("m5.large"), &zones, &ENVIRONMENT, None).unwrap();
        (amount(&resolved, resources::PODS), resolved.overhead.amount(resources::CPU).to_string())
    };
    assert_eq!(of(true), (4, "210m".to_owned()));
    assert_eq!(of(false), (29, "70m".to_owned()));
}

/// The settings of the kubelet in the guide.
fn of_the_guide() -> Value {
    let guide = include_str!("../../../../../docs/aws.md");
    let line = guide.lines().find_map(|line| line.trim().strip_prefix("maxPods: ")).unwrap();
    json!({"kubelet": {"maxPods": serde_json::from_str::<Value>(line).unwrap()}})
}

#[test]
fn a33_prefix_delegation_is_planned_with_as_the_guide_says() {
    for (name, expected) in [
        // Three interfaces with nine addresses each are 434 pods with prefixes.
        ("m5.large", 110),
        ("m5.24xlarge", 250),
        // Two interfaces with one address each: not even the usual number.
        ("t3.nano", 2 * 16 + 2),
    ] {
        assert_eq!(pods("AL2023", of_the_guide(), name), expected, "{name}");
    }
}
