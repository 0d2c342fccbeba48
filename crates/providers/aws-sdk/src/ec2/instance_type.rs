//! Instance types, where they are, and what they cost on the spot market.

use aws::port::instance_type::{
    Accelerator, Gpu, InstanceTypeInfo, LocalStorage, Network, NetworkCard, NeuronDevice, Processor,
};
use aws::port::{Filter, SpotPrice, TypeInZone};
use aws_sdk_ec2::types::{self, EbsOptimizedSupport, EnaSupport, EphemeralNvmeSupport, NitroEnclavesSupport};

use super::common::count;

/// What can be a node.
pub(super) fn filters() -> [Filter; 2] {
    [
        Filter::new("supported-virtualization-type", ["hvm"]),
        Filter::new("processor-info.supported-architecture", ["x86_64", "arm64"]),
    ]
}

pub(super) fn info(described: types::InstanceTypeInfo) -> Option<InstanceTypeInfo> {
    let ebs = described.ebs_info;
    Some(InstanceTypeInfo {
        name: described.instance_type?.as_str().to_owned(),
        vcpus: count(described.v_cpu_info.and_then(|all| all.default_v_cpus)),
        memory_mib: described.memory_info.and_then(|all| all.size_in_mib).unwrap_or_default(),
        processor: described.processor_info.map(processor),
        previous_generation: described.current_generation == Some(false),
        hypervisor: described.hypervisor.map(|hypervisor| hypervisor.as_str().to_owned()),
        usage_classes: words(described.supported_usage_classes, types::UsageClassType::as_str),
        enclaves: described.nitro_enclaves_support == Some(NitroEnclavesSupport::Supported),
        ebs_bandwidth_mbps: ebs.as_ref().and_then(ebs_bandwidth),
        ebs_attachments: ebs
            .and_then(|all| all.maximum_ebs_attachments)
            .and_then(|most| u32::try_from(most).ok()),
        storage: described.instance_storage_info.as_ref().map(storage),
        gpus: described.gpu_info.and_then(|all| all.gpus).map_or_else(Vec::new, |all| each(all, gpu)),
        neuron: described.neuron_info.map(|all| each(all.neuron_devices.unwrap_or_default(), neuron)),
        accelerators: described
            .inference_accelerator_info
            .and_then(|all| all.accelerators)
            .map_or_else(Vec::new, |all| each(all, accelerator)),
        network: described.network_info.map(network),
        placement_strategies: words(
            described.placement_group_info.and_then(|all| all.supported_strategies),
            types::PlacementGroupStrategy::as_str,
        ),
    })
}

fn each<S, T>(all: Vec<S>, convert: fn(S) -> T) -> Vec<T> {
    all.into_iter().map(convert).collect()
}

fn words<T>(all: Option<Vec<T>>, word: fn(&T) -> &str) -> Vec<String> {
    all.unwrap_or_default().iter().map(|each| word(each).to_owned()).collect()
}

fn number(number: Option<i32>) -> i64 {
    number.map_or(0, i64::from)
}

fn processor(described: types::ProcessorInfo) -> Processor {
    Processor {
        architectures: words(described.supported_architectures, types::ArchitectureType::as_str),
        manufacturer: described.manufacturer,
        clock_ghz: described.sustained_clock_speed_in_ghz,
        features: words(described.supported_features, types::SupportedAdditionalProcessorFeature::as_str),
    }
}

/// The bandwidth to volumes, of types that have it without being asked.
fn ebs_bandwidth(described: &types::EbsInfo) -> Option<i64> {
    let is_default = described.ebs_optimized_support == Some(EbsOptimizedSupport::Default);
    let most = described.ebs_optimized_info.as_ref().and_then(|all| all.maximum_bandwidth_in_mbps);
    most.filter(|_| is_default).map(i64::from)
}

fn storage(described: &types::InstanceStorageInfo) -> LocalStorage {
    LocalStorage {
        total_gb: described.total_size_in_gb,
        nvme: described.nvme_support != Some(EphemeralNvmeSupport::Unsupported),
    }
}

fn gpu(described: types::GpuDeviceInfo) -> Gpu {
    Gpu {
        name: described.name.unwrap_or_default(),
        manufacturer: described.manufacturer.unwrap_or_default(),
        count: number(described.count),
        memory_mib: number(described.memory_info.and_then(|memory| memory.size_in_mib)),
    }
}

fn neuron(described: types::NeuronDeviceInfo) -> NeuronDevice {
    NeuronDevice {
        name: described.name.unwrap_or_default(),
        count: number(described.count),
        cores: number(described.core_info.and_then(|cores| cores.count)),
    }
}

fn accelerator(described: types::InferenceDeviceInfo) -> Accelerator {
    Accelerator {
        name: described.name.unwrap_or_default(),
        manufacturer: described.manufacturer.unwrap_or_default(),
        count: number(described.count),
    }
}

fn network(described: types::NetworkInfo) -> Network {
    let has_efa = described.efa_supported == Some(true);
    let efa = described.efa_info.and_then(|efa| efa.maximum_efa_interfaces);
    Network {
        encryption_in_transit: described.encryption_in_transit_supported.unwrap_or_default(),
        ena: described.ena_support != Some(EnaSupport::Unsupported),
        efa_interfaces: efa.filter(|_| has_efa).and_then(|most| u32::try_from(most).ok()),
        ipv4_per_interface: number(described.ipv4_addresses_per_interface),
        default_card: described.default_network_card_index.unwrap_or_default(),
        cards: described.network_cards.iter().flatten().map(card).collect(),
    }
}

fn card(described: &types::NetworkCardInfo) -> NetworkCard {
    NetworkCard {
        index: described.network_card_index.unwrap_or_default(),
        interfaces: number(described.maximum_network_interfaces),
    }
}

pub(super) fn in_zone(described: types::InstanceTypeOffering) -> Option<TypeInZone> {
    Some(TypeInZone {
        instance_type: described.instance_type?.as_str().to_owned(),
        zone: described.location?,
    })
}

/// A price; without a time or with a text that is no price, it is none.
pub(super) fn spot_price(described: types::SpotPrice) -> Option<SpotPrice> {
    described.timestamp?;
    let price: f64 = described.spot_price?.parse().ok()?;
    Some(SpotPrice {
        instance_type: described.instance_type?.as_str().to_owned(),
        zone: described.availability_zone?,
        price: Some(price).filter(|price| price.is_finite())?,
    })
}

#[cfg(test)]
#[path = "instance_type_tests.rs"]
mod tests;
