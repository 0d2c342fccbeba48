//! Instance types, as EC2 describes them.

use aws_sdk_ec2::primitives::DateTime;

use super::*;

fn described() -> types::builders::InstanceTypeInfoBuilder {
    types::InstanceTypeInfo::builder().instance_type(types::InstanceType::from("x1.large"))
}

#[test]
fn a_type_that_says_nothing_has_nothing() {
    let expected = InstanceTypeInfo { name: "x1.large".to_owned(), ..InstanceTypeInfo::default() };
    assert_eq!(info(described().build()), Some(expected));
    assert_eq!(info(types::InstanceTypeInfo::builder().build()), None);
}

#[test]
fn processor_memory_and_disks_are_read() {
    let processor = types::ProcessorInfo::builder()
        .supported_architectures(types::ArchitectureType::Arm64)
        .sustained_clock_speed_in_ghz(2.5)
        .manufacturer("AWS")
        .build();
    let disks = types::InstanceStorageInfo::builder()
        .total_size_in_gb(900)
        .nvme_support(EphemeralNvmeSupport::Required)
        .build();
    let read = info(
        described()
            .v_cpu_info(types::VCpuInfo::builder().default_v_cpus(2).build())
            .memory_info(types::MemoryInfo::builder().size_in_mib(8192).build())
            .hypervisor(types::InstanceTypeHypervisor::Nitro)
            .supported_usage_classes(types::UsageClassType::Spot)
            .nitro_enclaves_support(NitroEnclavesSupport::Supported)
            .processor_info(processor)
            .instance_storage_info(disks)
            .build(),
    )
    .unwrap();
    let processor = Processor {
        architectures: vec!["arm64".to_owned()],
        manufacturer: Some("AWS".to_owned()),
        clock_ghz: Some(2.5),
        features: Vec::new(),
    };
    assert_eq!((read.vcpus, read.memory_mib, read.processor), (2, 8192, Some(processor)));
    assert_eq!((read.hypervisor.as_deref(), read.enclaves), (Some("nitro"), true));
    assert_eq!(read.usage_classes, ["spot"]);
    assert_eq!(read.storage, Some(LocalStorage { total_gb: Some(900), nvme: true }));
}

#[test]
fn the_bandwidth_to_volumes_counts_only_where_it_is_always_there() {
    let bandwidth = |support: EbsOptimizedSupport| {
        let optimized = types::EbsOptimizedInfo::builder().maximum_bandwidth_in_mbps(4750).build();
        let ebs = types::EbsInfo::builder().ebs_optimized_support(support).ebs_optimized_info(optimized);
        let read = info(described().ebs_info(ebs.maximum_ebs_attachments(27).build()).build()).unwrap();
        (read.ebs_bandwidth_mbps, read.ebs_attachments)
    };
    assert_eq!(bandwidth(EbsOptimizedSupport::Default), (Some(4750), Some(27)));
    assert_eq!(bandwidth(EbsOptimizedSupport::Supported), (None, Some(27)));
}

#[test]
fn adapters_are_counted_only_if_they_are_supported() {
    let network = |has_efa: bool| {
        let efa = types::EfaInfo::builder().maximum_efa_interfaces(4).build();
        let card = types::NetworkCardInfo::builder().network_card_index(1).maximum_network_interfaces(15);
        let all = types::NetworkInfo::builder()
            .efa_supported(has_efa)
            .efa_info(efa)
            .ena_support(EnaSupport::Required)
            .ipv4_addresses_per_interface(50)
            .default_network_card_index(1)
            .network_cards(card.build());
        info(described().network_info(all.build()).build()).unwrap()
    };
    let read = network(true);
    assert_eq!((read.default_card_interfaces(), read.ipv4_per_interface()), (15, 50));
    assert_eq!(read.network.as_ref().unwrap().efa_interfaces, Some(4));
    assert!(read.network.unwrap().ena);
    assert_eq!(network(false).network.unwrap().efa_interfaces, None);
}

#[test]
fn accelerators_are_read_by_kind() {
    let gpu = types::GpuDeviceInfo::builder()
        .name("A100")
        .manufacturer("NVIDIA")
        .count(8)
        .memory_info(types::GpuDeviceMemoryInfo::builder().size_in_mib(40_960).build());
    let neuron = types::NeuronDeviceInfo::builder()
        .name("Trainium")
        .count(16)
        .core_info(types::NeuronDeviceCoreInfo::builder().count(2).build());
    let read = info(
        described()
            .gpu_info(types::GpuInfo::builder().gpus(gpu.build()).build())
            .neuron_info(types::NeuronInfo::builder().neuron_devices(neuron.build()).build())
            .build(),
    )
    .unwrap();
    let gpu =
        Gpu { name: "A100".to_owned(), manufacturer: "NVIDIA".to_owned(), count: 8, memory_mib: 40_960 };
    assert_eq!(read.gpus, [gpu]);
    assert_eq!(read.neuron, Some(vec![NeuronDevice { name: "Trainium".to_owned(), count: 16, cores: 2 }]));
    assert!(read.accelerators.is_empty());
}

#[test]
fn prices_that_cannot_be_read_are_left_out() {
    let price = |text: &str, with_time: bool| {
        let time = with_time.then(|| DateTime::from_secs(60));
        let built = types::SpotPrice::builder()
            .instance_type(types::InstanceType::from("x1.large"))
            .availability_zone("us-east-1a")
            .spot_price(text)
            .set_timestamp(time)
            .build();
        spot_price(built).map(|read| read.price)
    };
    assert_eq!(price("0.0125", true), Some(0.0125));
    assert_eq!((price("0.0125", false), price("cheap", true), price("NaN", true)), (None, None, None));
}
