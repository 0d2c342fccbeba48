//! What launches are made from: the cluster, and what was chosen for a claim.

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod table;

use std::net::IpAddr;

use api::names::resources;
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;
use cluster::instance_types::InstanceType;

use crate::class::Class;
use crate::network::{SecurityGroup, SubnetId};
use crate::settings::AzureSettings;
use crate::sku::Sku;
use crate::sku::gpu::Vendor;

/// The cluster that nodes join: its settings and what was found out about it.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// What is set.
    pub settings: &'a AzureSettings,
    /// The address of its DNS service.
    pub dns_service_ip: IpAddr,
    /// What Azure tells its network apart by; empty if it does not matter.
    pub vnet_guid: &'a str,
    /// Certificates by which nodes know the API server, in base64.
    pub ca_bundle: &'a str,
}

impl Cluster<'_> {
    /// Whether pods have addresses of a network of their own.
    pub fn is_overlay(&self) -> bool {
        self.settings.network_plugin == "azure" && self.settings.network_plugin_mode == "overlay"
    }

    /// Whether Cilium passes on what pods send.
    pub fn is_cilium(&self) -> bool {
        self.settings.network_dataplane == "cilium"
    }
}

/// What was chosen for a claim.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The size, as NodePools see it.
    pub instance_type: &'a InstanceType,
    /// The size, as Azure sees it.
    pub sku: &'a Sku,
    /// `on-demand` or `spot`.
    pub capacity_type: &'a str,
    /// The zone, as a label says it.
    pub zone: &'a str,
    /// Whether ultra disks can be attached.
    pub ultra_ssd: bool,
}

impl Choice<'_> {
    /// Whether Azure may take the machine away.
    pub fn is_spot(&self) -> bool {
        self.capacity_type == capacity_type::SPOT
    }

    /// How the machine is paid for, in the words of Azure.
    pub fn priority(&self) -> &'static str {
        if self.is_spot() { "Spot" } else { "Regular" }
    }

    /// How many pods the node takes.
    pub fn max_pods(&self) -> i32 {
        let pods = self.instance_type.capacity.amount(resources::PODS).value();
        i32::try_from(pods).unwrap_or(i32::MAX)
    }
}

/// Everything that a virtual machine is made from.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The cluster that it joins.
    pub cluster: Cluster<'a>,
    /// The NodeClass.
    pub class: Class<'a>,
    /// The claim.
    pub claim: &'a NodeClaim,
    /// What was chosen for the claim.
    pub choice: Choice<'a>,
    /// The subnet.
    pub subnet: &'a SubnetId,
    /// The cluster's security group.
    pub security_group: &'a SecurityGroup,
}

impl Launch<'_> {
    /// The name of the claim.
    pub fn claim_name(&self) -> &str {
        self.claim.metadata.name.as_deref().unwrap_or_default()
    }

    /// Whether it has GPUs of NVIDIA.
    pub fn has_nvidia(&self) -> bool {
        self.choice.sku.gpu.is_some_and(|gpu| gpu.vendor == Vendor::Nvidia)
    }

    /// Whether NVIDIA's drivers are installed.
    pub fn installs_gpu_driver(&self) -> bool {
        self.has_nvidia() && self.class.installs_gpu_driver()
    }
}
