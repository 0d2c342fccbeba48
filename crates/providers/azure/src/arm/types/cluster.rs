//! An AKS cluster, as far as nodes depend on it, and who may do what with its resources. It is only read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// An AKS cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedCluster {
    /// Its resource ID.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its region.
    pub location: Option<String>,
    /// What it consists of.
    pub properties: ManagedClusterProperties,
}

/// What an AKS cluster consists of.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterProperties {
    /// Whether it runs.
    pub power_state: Option<PowerState>,
    /// The version of Kubernetes that it has.
    pub current_kubernetes_version: Option<String>,
    /// The version of Kubernetes that was asked for.
    pub kubernetes_version: Option<String>,
    /// The name of its API server.
    pub fqdn: Option<String>,
    /// The name of its API server, if only its network reaches it.
    #[serde(rename = "privateFQDN")]
    pub private_fqdn: Option<String>,
    /// The name of its API server for the portal.
    #[serde(rename = "azurePortalFQDN")]
    pub azure_portal_fqdn: Option<String>,
    /// The resource group of its nodes.
    pub node_resource_group: Option<String>,
    /// Who may change that resource group.
    pub node_resource_group_profile: Option<NodeResourceGroupProfile>,
    /// Its agent pools.
    pub agent_pool_profiles: Option<Vec<AgentPoolProperties>>,
    /// Who administers its nodes.
    pub linux_profile: Option<LinuxProfile>,
    /// The service principal that it is to Azure; `msi` with a managed identity.
    pub service_principal_profile: Option<ServicePrincipalProfile>,
    /// Its network.
    pub network_profile: Option<NetworkProfile>,
    /// Its identities; that of kubelets is `kubeletidentity`.
    pub identity_profile: Option<BTreeMap<String, UserAssignedIdentity>>,
    /// Whether it vouches for service accounts.
    pub oidc_issuer_profile: Option<OidcIssuerProfile>,
    /// How it is protected.
    pub security_profile: Option<SecurityProfile>,
    /// How its nodes reach the internet.
    pub http_proxy_config: Option<HttpProxyConfig>,
    /// Whether AKS runs a Karpenter for it.
    pub node_provisioning_profile: Option<NodeProvisioningProfile>,
    /// The keys that disks of its nodes are encrypted by.
    #[serde(rename = "diskEncryptionSetID")]
    pub disk_encryption_set_id: Option<String>,
}

/// Whether a cluster runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PowerState {
    /// `Running` or `Stopped`.
    pub code: Option<String>,
}

/// Who may change the resource group of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeResourceGroupProfile {
    /// `Unrestricted` or `ReadOnly`.
    pub restriction_level: Option<String>,
}

/// An agent pool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentPool {
    /// Its resource ID.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// What is known about it.
    pub properties: AgentPoolProperties,
}

/// What is known about an agent pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentPoolProperties {
    /// Its name, if it is said as a part of its cluster.
    pub name: Option<String>,
    /// `System`, `User`, `Gateway` or `Machines`.
    pub mode: Option<String>,
    /// `Linux` or `Windows`.
    pub os_type: Option<String>,
    /// Whether the cluster autoscaler changes how many nodes it has.
    pub enable_auto_scaling: Option<bool>,
    /// The subnet of its nodes, if it is none that AKS made.
    #[serde(rename = "vnetSubnetID")]
    pub vnet_subnet_id: Option<String>,
    /// The subnet of its pods, if that is another one.
    #[serde(rename = "podSubnetID")]
    pub pod_subnet_id: Option<String>,
}

/// Who administers nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinuxProfile {
    /// The name of the administrator.
    pub admin_username: Option<String>,
    /// How the administrator logs in.
    pub ssh: Option<SshProfile>,
}

/// How an administrator logs in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SshProfile {
    /// The keys.
    pub public_keys: Option<Vec<PublicKey>>,
}

/// A key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublicKey {
    /// The key itself.
    pub key_data: Option<String>,
}

/// A service principal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePrincipalProfile {
    /// Its client, or `msi` if there is a managed identity.
    pub client_id: Option<String>,
}

/// The network of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkProfile {
    /// `azure`, `kubenet` or `none`.
    pub network_plugin: Option<String>,
    /// `overlay` or nothing.
    pub network_plugin_mode: Option<String>,
    /// `azure`, `calico`, `cilium` or `none`.
    pub network_policy: Option<String>,
    /// `azure` or `cilium`.
    pub network_dataplane: Option<String>,
    /// How nodes reach the internet.
    pub outbound_type: Option<String>,
    /// `IPv4`, `IPv6` or both.
    pub ip_families: Option<Vec<String>>,
}

/// A managed identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserAssignedIdentity {
    /// Its resource ID.
    pub resource_id: Option<String>,
    /// Its client.
    pub client_id: Option<String>,
    /// Its principal.
    pub object_id: Option<String>,
}

/// Whether a cluster vouches for service accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OidcIssuerProfile {
    /// Whether it does.
    pub enabled: Option<bool>,
}

/// How a cluster is protected.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityProfile {
    /// Whether service accounts are identities to Azure.
    pub workload_identity: Option<WorkloadIdentity>,
    /// Certificates that nodes trust besides the usual ones.
    #[serde(rename = "customCATrustCertificates")]
    pub custom_ca_trust_certificates: Option<Vec<Value>>,
}

/// Whether service accounts are identities to Azure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadIdentity {
    /// Whether they are.
    pub enabled: Option<bool>,
}

/// How nodes reach the internet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpProxyConfig {
    /// For `http`.
    pub http_proxy: Option<String>,
    /// For `https`.
    pub https_proxy: Option<String>,
}

/// Whether AKS runs a Karpenter for a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeProvisioningProfile {
    /// `Auto` or `Manual`.
    pub mode: Option<String>,
}

/// A managed identity as a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedIdentity {
    /// Its resource ID.
    pub id: Option<String>,
    /// What is known about it.
    pub properties: ManagedIdentityProperties,
}

/// What is known about a managed identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedIdentityProperties {
    /// Its client.
    pub client_id: Option<String>,
    /// Its principal.
    pub principal_id: Option<String>,
}

/// What one role allows the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Permission {
    /// What it allows, with `*` for anything.
    pub actions: Vec<String>,
    /// What it does not allow all the same.
    pub not_actions: Vec<String>,
}

impl ManagedCluster {
    /// Its agent pools.
    pub fn pools(&self) -> &[AgentPoolProperties] {
        self.properties.agent_pool_profiles.as_deref().unwrap_or_default()
    }

    /// The identity of its kubelets.
    pub fn kubelet_identity(&self) -> Option<&UserAssignedIdentity> {
        self.properties.identity_profile.as_ref()?.get("kubeletidentity")
    }

    /// The resource group of its nodes; empty if nobody says.
    pub fn node_resource_group(&self) -> &str {
        self.properties.node_resource_group.as_deref().unwrap_or_default()
    }

    /// Whether only AKS may change the resource group of its nodes.
    pub fn is_node_resource_group_locked(&self) -> bool {
        let profile = self.properties.node_resource_group_profile.as_ref();
        let level = profile.and_then(|profile| profile.restriction_level.as_deref());
        level.is_some_and(|level| level.eq_ignore_ascii_case("ReadOnly"))
    }

    /// The agent pools whose pods have a subnet of their own.
    pub fn pools_with_pod_subnet(&self) -> impl Iterator<Item = &str> {
        let has =
            |pool: &&AgentPoolProperties| pool.pod_subnet_id.as_deref().is_some_and(|id| !id.is_empty());
        self.pools().iter().filter(has).filter_map(|pool| pool.name.as_deref())
    }

    /// The service principal that it is to Azure, if it has no managed identity.
    pub fn service_principal(&self) -> Option<&str> {
        let client = self.properties.service_principal_profile.as_ref()?.client_id.as_deref()?;
        Some(client).filter(|client| !client.is_empty() && !client.eq_ignore_ascii_case("msi"))
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        let code = self.properties.power_state.as_ref().and_then(|state| state.code.as_deref());
        code.is_some_and(|code| code.eq_ignore_ascii_case("stopped"))
    }

    /// Whether AKS runs a Karpenter of its own for it.
    pub fn has_node_auto_provisioning(&self) -> bool {
        let mode = self.properties.node_provisioning_profile.as_ref().and_then(|of| of.mode.as_deref());
        mode.is_some_and(|mode| mode.eq_ignore_ascii_case("auto"))
    }

    /// The proxy by which its nodes reach the internet, if they need one.
    pub fn http_proxy(&self) -> Option<&str> {
        let proxy = self.properties.http_proxy_config.as_ref()?;
        [&proxy.https_proxy, &proxy.http_proxy]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .find(|url| !url.is_empty())
    }

    /// How many certificates its nodes trust besides the usual ones.
    pub fn custom_certificates(&self) -> usize {
        let profile = self.properties.security_profile.as_ref();
        profile.and_then(|profile| profile.custom_ca_trust_certificates.as_ref()).map_or(0, Vec::len)
    }

    /// Whether service accounts of it can be identities to Azure: it vouches for them, and pods are told who they are.
    pub fn has_workload_identity(&self) -> bool {
        let vouches = self.properties.oidc_issuer_profile.as_ref().and_then(|issuer| issuer.enabled);
        let profile = self.properties.security_profile.as_ref();
        let tells = profile.and_then(|profile| profile.workload_identity.as_ref()?.enabled);
        vouches == Some(true) && tells == Some(true)
    }
}
