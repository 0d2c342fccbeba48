//! What the node bootstrapping service of AKS is asked, and what it answers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::hidden;
use super::node_config::{ArtifactStreamingProfile, KubeletConfig, LinuxOsConfig, LocalDnsProfile};

/// Which node is to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootstrappingRequest {
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provision_profile: Option<ProvisionProfile>,
    /// What the service does not look up itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provision_helper_values: Option<ProvisionHelperValues>,
}

/// What the service does not look up itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionHelperValues {
    /// How many vCPUs the size has.
    #[serde(rename = "skuCPU", skip_serializing_if = "Option::is_none")]
    pub sku_cpu: Option<i64>,
    /// How many GiB the size has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sku_memory: Option<i64>,
}

/// A node that is to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionProfile {
    /// Its pool; empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `x64` or `Arm64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// 2: Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_type: Option<i32>,
    /// 1: Ubuntu, 7: Azure Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_sku: Option<i32>,
    /// The size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm_size: Option<String>,
    /// The image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distro: Option<String>,
    /// The node's labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_node_labels: Option<BTreeMap<String, String>>,
    /// The version of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orchestrator_version: Option<String>,
    /// The subnet.
    #[serde(rename = "vnetSubnetID", skip_serializing_if = "Option::is_none")]
    pub vnet_subnet_id: Option<String>,
    /// `ManagedDisks` or `Ephemeral`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_profile: Option<String>,
    /// Taints that others remove.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_initialization_taints: Option<Vec<String>>,
    /// Taints that stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints: Option<Vec<String>>,
    /// How it is protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_profile: Option<ProvisionSecurity>,
    /// How many pods it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<i32>,
    /// Addresses of the network; empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vnet_cidrs: Option<Vec<String>>,
    /// Settings of the kernel.
    #[serde(rename = "customLinuxOSConfig", skip_serializing_if = "Option::is_none")]
    pub custom_linux_os_config: Option<LinuxOsConfig>,
    /// Whether only validated cryptography is used.
    #[serde(rename = "enableFIPS", skip_serializing_if = "Option::is_none")]
    pub enable_fips: Option<bool>,
    /// Whether containers start before their image is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_streaming_profile: Option<ArtifactStreamingProfile>,
    /// The DNS cache.
    #[serde(rename = "localDNSProfile", skip_serializing_if = "Option::is_none")]
    pub local_dns_profile: Option<LocalDnsProfile>,
    /// Settings of the kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_kubelet_config: Option<KubeletConfig>,
    /// 1: system, 2: user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<i32>,
    /// How GPUs are set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_profile: Option<ProvisionGpu>,
}

/// How a node is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionSecurity {
    /// Who may log in; 0 is the local user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_access: Option<i32>,
    /// Whether there is a virtual TPM.
    #[serde(rename = "enableVTPM", skip_serializing_if = "Option::is_none")]
    pub enable_vtpm: Option<bool>,
    /// Whether only signed code boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_secure_boot: Option<bool>,
}

/// How GPUs are set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionGpu {
    /// 2: GRID, 3: CUDA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_type: Option<i32>,
    /// Whether drivers are installed.
    #[serde(rename = "installGPUDriver", skip_serializing_if = "Option::is_none")]
    pub install_gpu_driver: Option<bool>,
}

/// What a machine does when it starts. Once the token is in it, it is secret, and it is never shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootstrappingResponse {
    /// The command that makes it a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cse: Option<String>,
    /// What it does first, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_data: Option<String>,
}

impl fmt::Debug for BootstrappingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cse, custom_data } = self;
        f.debug_struct("BootstrappingResponse")
            .field("cse", &hidden(cse.as_ref()))
            .field("custom_data", &hidden(custom_data.as_ref()))
            .finish()
    }
}
