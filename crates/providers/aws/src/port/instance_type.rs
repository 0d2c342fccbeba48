//! Instance types, as EC2 describes them. They can be read from a file, so that tests have the real ones.
//!
//! What is yes or no here has several answers in EC2: `enclaves` is NitroEnclavesSupport `supported`, `ena` is
//! EnaSupport other than `unsupported`, `nvme` is NvmeSupport of the disks other than `unsupported`, and
//! `ebs_bandwidth_mbps` is MaximumBandwidthInMbps where EbsOptimizedSupport is `default`. `neuron` is absent
//! where NeuronInfo is.

use serde::{Deserialize, Serialize};

/// What EC2 says about an instance type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstanceTypeInfo {
    /// Its name.
    pub name: String,
    /// How many virtual processors it has.
    pub vcpus: u32,
    /// How much memory it has, in MiB.
    pub memory_mib: i64,
    /// Its processor.
    pub processor: Option<Processor>,
    /// Whether EC2 says that there are better ones by now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub previous_generation: bool,
    /// Its hypervisor; none for bare metal.
    pub hypervisor: Option<String>,
    /// How it can be bought, as EC2 says it.
    pub usage_classes: Vec<String>,
    /// Whether it can run enclaves.
    pub enclaves: bool,
    /// Its bandwidth to volumes in Mbit/s, if it has that without being asked.
    pub ebs_bandwidth_mbps: Option<i64>,
    /// How many volumes it can have, with the first.
    pub ebs_attachments: Option<u32>,
    /// The disks inside the host.
    pub storage: Option<LocalStorage>,
    /// Its GPUs, by kind.
    pub gpus: Vec<Gpu>,
    /// Its Neuron devices, by kind.
    pub neuron: Option<Vec<NeuronDevice>>,
    /// Its inference accelerators, by kind.
    pub accelerators: Vec<Accelerator>,
    /// Its network.
    pub network: Option<Network>,
    /// Which placement groups can have it.
    pub placement_strategies: Vec<String>,
}

/// The processor of an instance type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Processor {
    /// Its architectures, as EC2 names them.
    pub architectures: Vec<String>,
    /// Who makes it.
    pub manufacturer: Option<String>,
    /// Its clock rate in GHz.
    pub clock_ghz: Option<f64>,
    /// What else it can do.
    pub features: Vec<String>,
}

/// The disks inside the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LocalStorage {
    /// How large they are together, in GB.
    pub total_gb: Option<i64>,
    /// Whether they are NVMe disks.
    pub nvme: bool,
}

/// GPUs of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    /// What they are.
    pub name: String,
    /// Who makes them.
    pub manufacturer: String,
    /// How many there are.
    pub count: i64,
    /// The memory of one in MiB.
    pub memory_mib: i64,
}

/// Neuron devices of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeuronDevice {
    /// What they are.
    pub name: String,
    /// How many there are.
    pub count: i64,
    /// How many cores one has.
    pub cores: i64,
}

/// Inference accelerators of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Accelerator {
    /// What they are.
    pub name: String,
    /// Who makes them.
    pub manufacturer: String,
    /// How many there are.
    pub count: i64,
}

/// The network of an instance type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Whether traffic between instances is encrypted.
    pub encryption_in_transit: bool,
    /// Whether it has the enhanced adapter.
    pub ena: bool,
    /// How many elastic fabric adapters it can have; none if it cannot have any.
    pub efa_interfaces: Option<u32>,
    /// How many IPv4 addresses a network interface can have.
    pub ipv4_per_interface: i64,
    /// The network card of the first interface.
    pub default_card: i32,
    /// Its network cards.
    pub cards: Vec<NetworkCard>,
}

/// A network card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkCard {
    /// Its number.
    pub index: i32,
    /// How many network interfaces it can have.
    pub interfaces: i64,
}

impl InstanceTypeInfo {
    /// Its architectures, as EC2 names them.
    pub fn architectures(&self) -> &[String] {
        self.processor.as_ref().map_or(&[], |processor| &processor.architectures)
    }

    /// How many network interfaces the card of the first one can have.
    pub fn default_card_interfaces(&self) -> i64 {
        let Some(network) = &self.network else { return 0 };
        network.cards.iter().find(|card| card.index == network.default_card).map_or(0, |card| card.interfaces)
    }

    /// How many IPv4 addresses a network interface can have.
    pub fn ipv4_per_interface(&self) -> i64 {
        self.network.as_ref().map_or(0, |network| network.ipv4_per_interface)
    }
}
