//! A launch for tests: a plain node of a cluster with an overlay network.

use std::time::Duration;

use api::azure::AKSNodeClass;
use api::nodeclaim::NodeClaim;
use cluster::instance_types::InstanceType;
use serde_json::json;

use super::{Choice, Cluster, Launch};
use crate::auth::Secret;
use crate::class::Class;
use crate::environment::Environment;
use crate::network::{SecurityGroup, SubnetId};
use crate::settings::{AzureSettings, Batch, ProvisionMode};
use crate::sku::{Sku, gpu};

pub(crate) const MANAGED_SUBNET: &str = "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/MC_rg_test_eastus/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet";

/// Everything that a launch borrows.
pub(crate) struct Fixture {
    pub(crate) settings: AzureSettings,
    pub(crate) class: AKSNodeClass,
    pub(crate) claim: NodeClaim,
    pub(crate) instance_type: InstanceType,
    pub(crate) sku: Sku,
    pub(crate) subnet: SubnetId,
    pub(crate) security_group: SecurityGroup,
    pub(crate) capacity_type: &'static str,
    pub(crate) zone: &'static str,
}

impl Default for Fixture {
    fn default() -> Self {
        Self {
            settings: settings(),
            class: class(),
            claim: claim(),
            instance_type: instance_type(),
            sku: sku(),
            subnet: MANAGED_SUBNET.parse().unwrap(),
            security_group: SecurityGroup {
                id: "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/MC_rg_test_eastus/providers/Microsoft.Network/networkSecurityGroups/aks-agentpool-12345678-nsg".to_owned(),
                name: "aks-agentpool-12345678-nsg".to_owned(),
                cluster_id: "12345678".to_owned(),
            },
            capacity_type: "on-demand",
            zone: "eastus-2",
        }
    }
}

impl Fixture {
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice {
            instance_type: &self.instance_type,
            sku: &self.sku,
            capacity_type: self.capacity_type,
            zone: self.zone,
            ultra_ssd: false,
        }
    }

    /// Another size with its GPUs, and otherwise the same.
    pub(crate) fn set_size(&mut self, name: &str) {
        name.clone_into(&mut self.instance_type.name);
        name.clone_into(&mut self.sku.name);
        self.sku.gpu = gpu::of(name);
    }

    pub(crate) fn launch(&self) -> Launch<'_> {
        Launch {
            cluster: Cluster {
                settings: &self.settings,
                dns_service_ip: [10, 0, 0, 10].into(),
                vnet_guid: "a519e60a-cac0-40b2-b883-084477fe6f5c",
                ca_bundle: "Y2EtYnVuZGxl",
            },
            class: Class::from(&self.class),
            claim: &self.claim,
            choice: self.choice(),
            subnet: &self.subnet,
            security_group: &self.security_group,
        }
    }
}

/// The settings of a cluster with an overlay network.
pub(crate) fn settings() -> AzureSettings {
    let owned = str::to_owned;
    AzureSettings {
        cluster_name: owned("test"),
        cluster_endpoint: owned("https://test-dns-1234.hcp.eastus.azmk8s.io:443"),
        kubelet_bootstrap_token: Secret::new("abcdef.0123456789abcdef"),
        ssh_public_key: Secret::new("ssh-rsa AAAA azureuser"),
        vnet_subnet_id: owned(MANAGED_SUBNET),
        node_resource_group: owned("MC_rg_test_eastus"),
        vm_memory_overhead_percent: 0.075,
        linux_admin_username: owned("azureuser"),
        network_plugin: owned("azure"),
        network_plugin_mode: owned("overlay"),
        network_policy: owned("cilium"),
        network_dataplane: owned("cilium"),
        dns_service_ip: None,
        vnet_guid: None,
        node_identities: vec![],
        kubelet_identity_client_id: owned("61f71907-753f-4802-a901-47361c3664f2"),
        provision_mode: ProvisionMode::AksScriptless,
        nodebootstrapping_server_url: String::new(),
        use_sig: false,
        sig_access_token_server_url: String::new(),
        sig_subscription_id: String::new(),
        node_osdisk_diskencryptionset_id: None,
        manage_existing_aks_machines: false,
        aks_machines_pool_name: String::new(),
        batch: Batch { idle: Duration::from_secs(1), longest: Duration::from_secs(5), size: 50 },
        additional_tags: [].into(),
        enable_azure_sdk_logging: false,
        subscription_id: owned("12345678-1234-1234-1234-123456789012"),
        tenant_id: owned("72f988bf-86f1-41af-91ab-2d7cd011db47"),
        location: owned("eastus"),
        cluster_resource_group: owned("rg"),
        environment: Environment::public(),
        system_namespace: None,
    }
}

fn class() -> AKSNodeClass {
    serde_json::from_value(json!({
        "metadata": {"name": "default"},
        "spec": {"imageFamily": "Ubuntu2204"},
        "status": {"kubernetesVersion": "1.34.2", "images": [
            {"id": "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202512.6.0", "requirements": [
                {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                {"key": "karpenter.azure.com/sku-hyperv-generation", "operator": "In", "values": ["2"]},
            ]},
        ]},
    }))
    .unwrap()
}

fn claim() -> NodeClaim {
    serde_json::from_value(json!({
        "metadata": {"name": "general-purpose-a1b2c", "labels": {
            "karpenter.sh/nodepool": "general-purpose", "team": "a",
        }},
        "spec": {
            "requirements": [
                {"key": "karpenter.azure.com/sku-family", "operator": "In", "values": ["D"]},
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["Standard_D4s_v5", "Standard_D8s_v5"]},
            ],
            "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
        },
    }))
    .unwrap()
}

fn sku() -> Sku {
    let wire = serde_json::from_value(json!({
        "resourceType": "virtualMachines", "name": "Standard_D4s_v5", "size": "D4s_v5",
        "family": "standardDSv5Family", "locations": ["eastus"],
        "locationInfo": [{"location": "eastus", "zones": ["1", "2"]}],
        "capabilities": [
            {"name": "vCPUs", "value": "4"},
            {"name": "MemoryGB", "value": "16"},
            {"name": "CpuArchitectureType", "value": "x64"},
            {"name": "HyperVGenerations", "value": "V1,V2"},
            {"name": "AcceleratedNetworkingEnabled", "value": "True"},
            {"name": "EphemeralOSDiskSupported", "value": "True"},
            {"name": "CachedDiskBytes", "value": "161061273600"},
            {"name": "LowPriorityCapable", "value": "True"},
        ],
    }));
    Sku::read(&wire.unwrap(), "eastus").unwrap()
}

fn instance_type() -> InstanceType {
    let mut capacity = units::Resources::new();
    capacity.set("pods", "250".parse().unwrap());
    InstanceType {
        name: "Standard_D4s_v5".to_owned(),
        requirements: serde_json::from_value(json!([
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["Standard_D4s_v5"]},
            {"key": "karpenter.azure.com/sku-name", "operator": "In", "values": ["Standard_D4s_v5"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "topology.kubernetes.io/region", "operator": "In", "values": ["eastus"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eastus-1", "eastus-2", "0"]},
            {"key": "karpenter.azure.com/sku-cpu", "operator": "In", "values": ["4"]},
            {"key": "karpenter.azure.com/sku-memory", "operator": "In", "values": ["16384"]},
            {"key": "karpenter.azure.com/sku-hyperv-generation", "operator": "In", "values": ["1", "2"]},
            {"key": "karpenter.azure.com/sku-gpu-name", "operator": "DoesNotExist"},
            {"key": "kubernetes.azure.com/mode", "operator": "In", "values": ["system", "user"]},
        ]))
        .unwrap(),
        capacity,
        ..InstanceType::default()
    }
}
