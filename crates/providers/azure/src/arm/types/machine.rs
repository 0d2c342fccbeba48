//! Machines of the AKS Machine API.
//!
//! A machine that exists is changed by putting all of it again, so everything that we do not know is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::node_config::{ArtifactStreamingProfile, KubeletConfig, LinuxOsConfig, LocalDnsProfile};

/// A machine of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Its resource ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name, or the pool's and its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The zone, as one digit; empty if Azure chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<String>>,
    /// What it is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<MachineProperties>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What a machine is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineProperties {
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<MachineNetwork>,
    /// Its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<MachineHardware>,
    /// What it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operating_system: Option<MachineOperatingSystem>,
    /// What kind of node it becomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<MachineKubernetes>,
    /// How it is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security: Option<MachineSecurity>,
    /// `System` or `User`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `Regular` or `Spot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_image_version: Option<String>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Its DNS cache.
    #[serde(rename = "localDNSProfile", skip_serializing_if = "Option::is_none")]
    pub local_dns_profile: Option<LocalDnsProfile>,
    /// The virtual machine that it is; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// Where AKS is with it; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<String>,
    /// Changes whenever the machine does; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub e_tag: Option<String>,
    /// What became of it; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<MachineStatus>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Where a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineNetwork {
    /// The subnet.
    #[serde(rename = "vnetSubnetID", skip_serializing_if = "Option::is_none")]
    pub vnet_subnet_id: Option<String>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The size of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineHardware {
    /// The size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_size: Option<String>,
    /// How GPUs are set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_profile: Option<MachineGpu>,
    /// Whether ultra disks can be attached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ultra_ssd_enabled: Option<bool>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How GPUs are set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineGpu {
    /// `Install` or `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What a machine runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineOperatingSystem {
    /// `Linux`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_type: Option<String>,
    /// The operating system.
    #[serde(rename = "osSKU", skip_serializing_if = "Option::is_none")]
    pub os_sku: Option<String>,
    /// The size of the disk.
    #[serde(rename = "osDiskSizeGB", skip_serializing_if = "Option::is_none")]
    pub os_disk_size_gb: Option<i32>,
    /// `Ephemeral` or `Managed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_disk_type: Option<String>,
    /// Whether only validated cryptography is used.
    #[serde(rename = "enableFIPS", skip_serializing_if = "Option::is_none")]
    pub enable_fips: Option<bool>,
    /// Settings of Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linux_profile: Option<MachineLinux>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Settings of Linux.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineLinux {
    /// Settings of the kernel.
    #[serde(rename = "linuxOSConfig", skip_serializing_if = "Option::is_none")]
    pub linux_os_config: Option<LinuxOsConfig>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What kind of node a machine becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineKubernetes {
    /// The node's labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_labels: Option<BTreeMap<String, String>>,
    /// The version of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orchestrator_version: Option<String>,
    /// Settings of the kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubelet_config: Option<KubeletConfig>,
    /// Taints that others may remove.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_initialization_taints: Option<Vec<String>>,
    /// Taints that AKS puts back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints: Option<Vec<String>>,
    /// How many pods it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<i32>,
    /// Whether containers start before their image is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_streaming_profile: Option<ArtifactStreamingProfile>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// How a machine is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineSecurity {
    /// Who may log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_access: Option<String>,
    /// Whether temporary disks and caches are encrypted on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_encryption_at_host: Option<bool>,
    /// Whether there is a virtual TPM.
    #[serde(rename = "enableVTPM", skip_serializing_if = "Option::is_none")]
    pub enable_vtpm: Option<bool>,
    /// Whether only signed code boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_secure_boot: Option<bool>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// What became of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// When it was made, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    /// Whether AKS wants it replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_action: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_reason: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_error: Option<ErrorDetail>,
    /// Whether its virtual machine runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_state: Option<String>,
    /// What we do not know, kept so that it is sent back as it was.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Why something failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetail {
    /// The machine-readable reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The reason in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Reasons behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Vec<ErrorDetail>>,
}

/// Which machines are deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteMachines {
    /// Their names.
    pub machine_names: Vec<String>,
}

/// Machines that one request makes, as its header says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchPutMachine {
    /// What differs between them.
    pub batch_machines: Vec<BatchMachine>,
}

/// What differs between machines that one request makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchMachine {
    /// The name.
    pub machine_name: String,
    /// The zone, as one digit; empty if Azure chooses.
    pub zones: Vec<String>,
    /// The tags.
    pub tags: BTreeMap<String, String>,
}
