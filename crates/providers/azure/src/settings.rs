//! What the administrator can set about Azure. Entry: [`AzureSettings::new`].

mod check;
mod tags;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use api::names::flags::{self as common, Flag, azure as flags};
use runtime::settings::Settings;
use serde::{Serialize, Serializer};
use units::GoDuration;

use crate::auth::Secret;
use crate::environment::Environment;

/// How machines are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
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

impl ProvisionMode {
    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "aksscriptless" => Some(Self::AksScriptless),
            "bootstrappingclient" => Some(Self::BootstrappingClient),
            "aksmachineapi" => Some(Self::AksMachineApi),
            "aksmachineapiheaderbatch" => Some(Self::AksMachineApiHeaderBatch),
            _ => None,
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AksScriptless => "aksscriptless",
            Self::BootstrappingClient => "bootstrappingclient",
            Self::AksMachineApi => "aksmachineapi",
            Self::AksMachineApiHeaderBatch => "aksmachineapiheaderbatch",
        }
    }

    /// Whether AKS makes the machines.
    pub fn is_machine_api(self) -> bool {
        matches!(self, Self::AksMachineApi | Self::AksMachineApiHeaderBatch)
    }
}

/// How machines are collected before they are made together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// How long no machine must have come.
    #[serde(serialize_with = "as_text")]
    pub idle: Duration,
    /// How long machines are collected at most.
    #[serde(serialize_with = "as_text")]
    pub longest: Duration,
    /// How many machines are collected at most.
    pub size: usize,
}

/// What the administrator set about Azure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AzureSettings {
    /// The cluster's name, at AKS too.
    pub cluster_name: String,
    /// The address of the API server for nodes.
    pub cluster_endpoint: String,
    /// The token by which nodes join the cluster.
    #[serde(skip)]
    pub kubelet_bootstrap_token: Secret,
    /// The key by which administrators log in to nodes.
    #[serde(skip)]
    pub ssh_public_key: Secret,
    /// The subnet of the nodes whose AKSNodeClass names none.
    pub vnet_subnet_id: String,
    /// The resource group of the nodes.
    pub node_resource_group: String,
    /// The share of the memory that the hypervisor takes.
    pub vm_memory_overhead_percent: f64,
    /// The name of the administrator on nodes.
    pub linux_admin_username: String,
    /// `azure` or `none`.
    pub network_plugin: String,
    /// `overlay` or empty.
    pub network_plugin_mode: String,
    /// The implementation of network policies.
    pub network_policy: String,
    /// `azure`, `cilium` or empty.
    pub network_dataplane: String,
    /// The address of the cluster's DNS service; looked up when absent.
    pub dns_service_ip: Option<IpAddr>,
    /// The identifier of the virtual network; looked up when absent.
    pub vnet_guid: Option<String>,
    /// Identities that nodes have.
    pub node_identities: Vec<String>,
    /// The client of the kubelet's identity.
    pub kubelet_identity_client_id: String,
    /// How machines are made.
    pub provision_mode: ProvisionMode,
    /// Where the bootstrapping service is, for that mode.
    pub nodebootstrapping_server_url: String,
    /// Whether images come from the shared gallery of AKS.
    pub use_sig: bool,
    /// Where the service with tokens for that gallery is.
    pub sig_access_token_server_url: String,
    /// The subscription of that gallery.
    pub sig_subscription_id: String,
    /// The keys that disks of nodes are encrypted by.
    pub node_osdisk_diskencryptionset_id: Option<String>,
    /// Whether AKS machines are kept that another mode made.
    pub manage_existing_aks_machines: bool,
    /// The agent pool of the AKS machines.
    pub aks_machines_pool_name: String,
    /// How AKS machines are collected.
    pub batch: Batch,
    /// Tags of everything that is made.
    pub additional_tags: BTreeMap<String, String>,
    /// Whether every call to Azure is logged.
    pub enable_azure_sdk_logging: bool,
    /// The subscription of the cluster.
    pub subscription_id: String,
    /// The directory of the cluster; empty if nobody says.
    pub tenant_id: String,
    /// The region.
    pub location: String,
    /// The resource group of the cluster; empty if nobody says.
    pub cluster_resource_group: String,
    /// Which cloud it is.
    pub environment: Environment,
    /// The namespace that the process runs in, if it does.
    pub system_namespace: Option<String>,
}

/// Why the process cannot start with these settings. Everything that is wrong is named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("validating Azure options, {0}")]
pub struct InvalidSettings(String);

impl AzureSettings {
    /// Reads the provider's part of the settings. `variable` reads the environment, `file` a file.
    pub fn new(
        settings: &Settings,
        variable: impl Fn(&str) -> Option<String>,
        file: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, InvalidSettings> {
        let mut wrong = Vec::new();
        let read = Self::read(settings, variable, file, &mut wrong);
        check::check(&read, settings, &mut wrong);
        if wrong.is_empty() { Ok(read) } else { Err(InvalidSettings(wrong.join("; "))) }
    }

    fn read(
        settings: &Settings,
        variable: impl Fn(&str) -> Option<String>,
        file: impl FnOnce(&str) -> Result<String, String>,
        wrong: &mut Vec<String>,
    ) -> Self {
        let text = |flag: &Flag| settings.of_provider(flag).to_owned();
        let optional = |flag: &Flag| Some(text(flag)).filter(|text| !text.is_empty());
        let switch = |flag: &Flag| settings.of_provider(flag) == "true";
        let variable = |name: &str| variable(name).map(|value| value.trim().to_owned()).unwrap_or_default();
        let either = |first: &str, second: &str| {
            Some(variable(first)).filter(|value| !value.is_empty()).unwrap_or_else(|| variable(second))
        };
        let environment = Environment::choose(
            &variable(common::ARM_CLOUD),
            &variable(common::AZURE_ENVIRONMENT_FILEPATH),
            file,
        );
        Self {
            cluster_name: text(&flags::CLUSTER_NAME),
            cluster_endpoint: text(&flags::CLUSTER_ENDPOINT),
            kubelet_bootstrap_token: Secret::new(text(&flags::KUBELET_BOOTSTRAP_TOKEN)),
            ssh_public_key: Secret::new(text(&flags::SSH_PUBLIC_KEY)),
            vnet_subnet_id: text(&flags::VNET_SUBNET_ID),
            node_resource_group: text(&flags::NODE_RESOURCE_GROUP),
            vm_memory_overhead_percent: text(&flags::VM_MEMORY_OVERHEAD_PERCENT).parse().unwrap_or_default(),
            linux_admin_username: text(&flags::LINUX_ADMIN_USERNAME),
            network_plugin: text(&flags::NETWORK_PLUGIN),
            network_plugin_mode: text(&flags::NETWORK_PLUGIN_MODE),
            network_policy: text(&flags::NETWORK_POLICY),
            network_dataplane: text(&flags::NETWORK_DATAPLANE),
            dns_service_ip: check::address(settings, wrong),
            vnet_guid: optional(&flags::VNET_GUID),
            node_identities: list(&text(&flags::NODE_IDENTITIES)),
            kubelet_identity_client_id: text(&flags::KUBELET_IDENTITY_CLIENT_ID),
            provision_mode: check::mode(settings, wrong),
            nodebootstrapping_server_url: text(&flags::NODEBOOTSTRAPPING_SERVER_URL),
            use_sig: switch(&flags::USE_SIG),
            sig_access_token_server_url: text(&flags::SIG_ACCESS_TOKEN_SERVER_URL),
            sig_subscription_id: text(&flags::SIG_SUBSCRIPTION_ID),
            node_osdisk_diskencryptionset_id: optional(&flags::NODE_OSDISK_DISKENCRYPTIONSET_ID),
            manage_existing_aks_machines: switch(&flags::MANAGE_EXISTING_AKS_MACHINES),
            aks_machines_pool_name: text(&flags::AKS_MACHINES_POOL_NAME),
            batch: Batch {
                idle: duration(&text(&flags::PROVIDER_BATCH_IDLE_DURATION)),
                longest: duration(&text(&flags::PROVIDER_BATCH_MAX_DURATION)),
                size: text(&flags::PROVIDER_BATCH_MAX_SIZE).parse().unwrap_or_default(),
            },
            additional_tags: tags::read(&text(&flags::ADDITIONAL_TAGS), wrong),
            enable_azure_sdk_logging: switch(&flags::ENABLE_AZURE_SDK_LOGGING),
            subscription_id: either(common::AZURE_SUBSCRIPTION_ID, common::ARM_SUBSCRIPTION_ID),
            tenant_id: either(common::AZURE_TENANT_ID, common::ARM_TENANT_ID),
            location: variable(common::LOCATION),
            cluster_resource_group: variable(common::ARM_RESOURCE_GROUP),
            environment: environment.unwrap_or_else(|error| {
                wrong.push(error.to_string());
                Environment::public()
            }),
            system_namespace: Some(variable(common::SYSTEM_NAMESPACE)).filter(|name| !name.is_empty()),
        }
    }

    /// What is in force, as JSON and without secrets, for the log.
    pub fn to_json(&self) -> String {
        // There is nothing in here that JSON does not have.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// A duration; what is negative is found by the checks.
fn duration(text: &str) -> Duration {
    let nanos = text.parse::<GoDuration>().unwrap_or_default().as_nanos();
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

fn as_text<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{duration:?}"))
}

#[cfg(test)]
mod tests;
