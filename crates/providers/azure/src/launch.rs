//! What launches are made from: the cluster, and what was chosen for a claim.

#[cfg(test)]
pub(crate) mod fixture;

use std::collections::BTreeMap;

use api::names::labels::azure as labels;
use api::names::labels::ARCH;
use api::names::resources;
use api::names::values::{arch, capacity_type};
use api::nodeclaim::NodeClaim;
use cluster::instance_types::{InstanceType, single};
use units::Quantity;

use crate::class::Class;
use crate::network::{SecurityGroup, SubnetId};

/// The zone label of machines whose zone Azure chooses.
pub const REGIONAL: &str = "0";

/// How machines are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProvisionMode {
    /// Virtual machines that are told everything by a script of ours.
    #[default]
    AksScriptless,
    /// Virtual machines that are told everything by a service of AKS.
    BootstrappingClient,
    /// Machines of the AKS Machine API, one at a time.
    AksMachineApi,
    /// Machines of the AKS Machine API, many at a time.
    AksMachineApiHeaderBatch,
}

/// What is set for the whole cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The cluster's name.
    pub cluster_name: String,
    /// The address of its API server.
    pub cluster_endpoint: String,
    /// The subscription that it is in.
    pub subscription_id: String,
    /// The directory that it is in.
    pub tenant_id: String,
    /// The region that it is in.
    pub location: String,
    /// The resource group that it is in.
    pub cluster_resource_group: String,
    /// The resource group of its machines.
    pub node_resource_group: String,
    /// The token by which nodes join it.
    pub kubelet_bootstrap_token: String,
    /// The key by which administrators log in.
    pub ssh_public_key: String,
    /// The name by which administrators log in.
    pub linux_admin_username: String,
    /// `azure` or `none`.
    pub network_plugin: String,
    /// `overlay` or empty.
    pub network_plugin_mode: String,
    /// The implementation of network policies.
    pub network_policy: String,
    /// `azure`, `cilium` or empty.
    pub network_dataplane: String,
    /// The subnet of machines whose NodeClass names none.
    pub vnet_subnet_id: String,
    /// The identities that machines have.
    pub node_identities: Vec<String>,
    /// The client of the kubelet's identity.
    pub kubelet_identity_client_id: String,
    /// How machines are made.
    pub provision_mode: ProvisionMode,
    /// Whether machines are started from the shared gallery of AKS.
    pub use_sig: bool,
    /// The subscription of that gallery.
    pub sig_subscription_id: String,
    /// The keys that disks are encrypted by, if any.
    pub node_osdisk_diskencryptionset_id: String,
    /// Tags of everything that is made.
    pub additional_tags: BTreeMap<String, String>,
}

impl Settings {
    /// Whether pods have addresses of their own network.
    pub fn is_overlay(&self) -> bool {
        self.network_plugin == "azure" && self.network_plugin_mode == "overlay"
    }

    /// Whether Cilium passes on what pods send.
    pub fn is_cilium(&self) -> bool {
        self.network_dataplane == "cilium"
    }
}

/// The cluster that nodes join: its settings and what was found out about it.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// What is set.
    pub settings: &'a Settings,
    /// The address of its DNS service.
    pub dns_service_ip: &'a str,
    /// What Azure tells its network apart by; empty if it does not matter.
    pub vnet_guid: &'a str,
    /// Certificates by which nodes know the API server, in base64.
    pub ca_bundle: &'a str,
    /// The cloud, such as `AzurePublicCloud`.
    pub cloud: &'a str,
}

/// A place on the host that a disk can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskPlacement {
    /// The NVMe disk.
    Nvme,
    /// The cache.
    Cache,
    /// The temporary disk.
    Resource,
}

impl DiskPlacement {
    /// Its name in the compute API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nvme => "NvmeDisk",
            Self::Cache => "CacheDisk",
            Self::Resource => "ResourceDisk",
        }
    }
}

/// Who makes a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuVendor {
    /// NVIDIA, whose drivers can be installed.
    Nvidia,
    /// AMD.
    Amd,
}

/// What was chosen for a claim.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The size, as NodePools see it.
    pub instance_type: &'a InstanceType,
    /// Whether the network can bypass the host.
    pub accelerated_networking: bool,
    /// The largest disk that the host has room for in GB, and where.
    pub ephemeral_disk: Option<(i64, DiskPlacement)>,
    /// Who makes its GPUs, if AKS knows it to have some.
    pub gpu: Option<GpuVendor>,
    /// The processors that the kubelet keeps for itself.
    pub kube_reserved_cpu: Quantity,
    /// The memory that the kubelet keeps for itself.
    pub kube_reserved_memory: Quantity,
    /// `on-demand` or `spot`.
    pub capacity_type: &'a str,
    /// The zone, as a label says it.
    pub zone: &'a str,
    /// Whether ultra disks can be attached.
    pub ultra_ssd: bool,
}

impl Choice<'_> {
    /// The size's name.
    pub fn size(&self) -> &str {
        &self.instance_type.name
    }

    /// Whether Azure may take the machine away.
    pub fn is_spot(&self) -> bool {
        self.capacity_type == capacity_type::SPOT
    }

    /// The one value that the size has for a label.
    pub fn value(&self, key: &str) -> Option<&str> {
        single(self.instance_type.requirements.iter().find(|requirement| requirement.key == key)?)
    }

    /// The architecture, as a label says it.
    pub fn architecture(&self) -> &str {
        self.value(ARCH).unwrap_or(arch::AMD64)
    }

    /// Whether the machine is bound to a zone, as a label says it.
    pub fn placement_scope(&self) -> &'static str {
        if self.zone == REGIONAL { "regional" } else { "zonal" }
    }

    /// The zones, as the machine's body says them.
    pub fn zones(&self) -> Vec<String> {
        let zone = self.zone.chars().last().filter(|_| self.zone != REGIONAL);
        zone.map(String::from).into_iter().collect()
    }

    /// Where on the host a disk of a size is, if it fits.
    pub fn disk_placement(&self, os_disk_size_gb: i32) -> Option<DiskPlacement> {
        let (most, placement) = self.ephemeral_disk?;
        (i64::from(os_disk_size_gb) <= most).then_some(placement)
    }

    /// How many pods the node takes.
    pub fn max_pods(&self) -> i32 {
        let pods = self.instance_type.capacity.amount(resources::PODS).value();
        i32::try_from(pods).unwrap_or(i32::MAX)
    }

    /// How many processors the size has.
    pub fn vcpus(&self) -> i64 {
        self.value(labels::SKU_CPU).and_then(|count| count.parse().ok()).unwrap_or_default()
    }

    /// How much memory the size has, in MiB.
    pub fn memory_mib(&self) -> i64 {
        self.value(labels::SKU_MEMORY).and_then(|count| count.parse().ok()).unwrap_or_default()
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

    /// Whether NVIDIA's drivers are installed.
    pub fn installs_gpu_driver(&self) -> bool {
        self.choice.gpu == Some(GpuVendor::Nvidia) && self.class.installs_gpu_driver()
    }
}
