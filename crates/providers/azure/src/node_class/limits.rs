//! Clusters for which no nodes can be created, and why: said in the condition of every NodeClass, before anything is
//! tried.

use std::net::IpAddr;

use api::names::reasons::azure as reasons;

use crate::arm::types::cluster::ManagedCluster;
use crate::settings::ProvisionMode;

/// What is known of a cluster. What nobody could find out is absent and refuses nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// By what it is known that the cluster is a service principal for Azure, if it is.
    pub service_principal: Option<String>,
    /// How pods get addresses.
    pub network_plugin: Option<String>,
    /// Who enforces network policies.
    pub network_policy: Option<String>,
    /// The families of addresses that services have.
    pub ip_families: Vec<String>,
    /// The address of the cluster's DNS.
    pub dns: Option<IpAddr>,
    /// The proxy that nodes need and are not told of.
    pub http_proxy: Option<String>,
    /// How many certificates nodes should trust and are not told of.
    pub custom_certificates: usize,
    /// By what it is known that pods have a subnet of their own, if they have.
    pub pod_subnet: Option<String>,
    /// Whether only AKS may change the resource group of the nodes, in which we make machines.
    pub is_locked: bool,
}

impl Facts {
    /// Takes over what AKS says about the cluster, which counts more than what its nodes look like.
    pub fn learn(&mut self, cluster: &ManagedCluster, mode: ProvisionMode) {
        let client = cluster.service_principal();
        self.service_principal = client.map(|client| format!("AKS says that it is client {client}"));
        if let Some(network) = &cluster.properties.network_profile {
            // What the settings say counts as well: it is what nodes are told.
            if let Some(plugin) = network.network_plugin.as_ref().filter(|plugin| is_refused_plugin(plugin)) {
                self.network_plugin = Some(plugin.clone());
            }
            if let Some(policy) = network.network_policy.as_ref().filter(|policy| is_refused_policy(policy)) {
                self.network_policy = Some(policy.clone());
            }
            self.ip_families.extend(network.ip_families.clone().unwrap_or_default());
        }
        let own: Vec<&str> = cluster.pools_with_pod_subnet().collect();
        if !own.is_empty() {
            self.pod_subnet = Some(format!("AKS says so of agent pools {}", own.join(", ")));
        }
        // AKS makes its own machines.
        self.is_locked = cluster.is_node_resource_group_locked() && !mode.is_machine_api();
        // In the other modes AKS itself tells nodes everything.
        if mode == ProvisionMode::AksScriptless {
            self.http_proxy = cluster.http_proxy().map(str::to_owned);
            self.custom_certificates = cluster.custom_certificates();
        }
    }
}

/// Why nodes cannot be created for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason of the condition.
    pub reason: &'static str,
    /// What the condition says.
    pub message: String,
}

/// Why nodes cannot be created for a cluster, if so.
pub fn refusal(facts: &Facts) -> Option<Refusal> {
    refusals(facts).into_iter().next()
}

/// Everything for which nodes cannot be created for a cluster.
pub fn refusals(facts: &Facts) -> Vec<Refusal> {
    let mut all = Vec::new();
    let mut refuse = |reason, message| all.push(Refusal { reason, message });
    if let Some(evidence) = &facts.service_principal {
        refuse(
            reasons::SERVICE_PRINCIPAL_UNSUPPORTED,
            format!(
                "the cluster has a service principal, expected a managed identity: {evidence}; \
                 update the cluster with --enable-managed-identity and set KUBELET_IDENTITY_CLIENT_ID"
            ),
        );
    }
    if let Some(plugin) = facts.network_plugin.as_deref().filter(|plugin| is_refused_plugin(plugin)) {
        refuse(
            reasons::NETWORK_PLUGIN_UNSUPPORTED,
            format!("the cluster has network plugin {plugin:?}, expected azure or none"),
        );
    }
    if let Some(evidence) = &facts.pod_subnet {
        refuse(
            reasons::POD_SUBNET_UNSUPPORTED,
            format!(
                "pods of the cluster have a subnet of their own, which pods on our nodes would not get: {evidence}; \
                 expected an overlay network, or one subnet for nodes and pods"
            ),
        );
    }
    if facts.is_locked {
        refuse(
            reasons::NODE_RESOURCE_GROUP_READ_ONLY,
            "only AKS may change the resource group of the nodes (restriction level ReadOnly), in which machines are \
             made: update the cluster with --nrg-lockdown-restriction-level Unrestricted and restart the controller, or \
             use a provision mode with AKS machines"
                .to_owned(),
        );
    }
    if let Some(policy) = facts.network_policy.as_deref().filter(|policy| is_refused_policy(policy)) {
        refuse(
            reasons::NETWORK_POLICY_UNSUPPORTED,
            format!("the cluster has network policy {policy:?}, expected cilium, azure or none"),
        );
    }
    let family = facts
        .ip_families
        .iter()
        .find(|family| is(family, &["IPv6"]))
        .map(|family| format!("family {family}"));
    let address = facts.dns.filter(IpAddr::is_ipv6).map(|address| format!("DNS address {address}"));
    if let Some(what) = family.or(address) {
        refuse(
            reasons::IP_FAMILY_UNSUPPORTED,
            format!(
                "the cluster has {what}, and nodes get IPv4 addresses only: expected a cluster without IPv6"
            ),
        );
    }
    if let Some(proxy) = &facts.http_proxy {
        refuse(
            reasons::HTTP_PROXY_UNSUPPORTED,
            format!(
                "the cluster has the HTTP proxy {proxy}, which nodes of provision mode aksscriptless are not told of: \
                 expected a cluster without one, or another mode"
            ),
        );
    }
    if facts.custom_certificates > 0 {
        refuse(
            reasons::CUSTOM_CA_UNSUPPORTED,
            format!(
                "the cluster has {} custom CA trust certificates, which nodes of provision mode aksscriptless are not \
                 told of: expected a cluster without any, or another mode",
                facts.custom_certificates
            ),
        );
    }
    all
}

fn is_refused_plugin(plugin: &str) -> bool {
    !is(plugin, &["", "azure", "none"])
}

fn is_refused_policy(policy: &str) -> bool {
    is(policy, &["calico"])
}

fn is(text: &str, any: &[&str]) -> bool {
    any.iter().any(|each| text.eq_ignore_ascii_case(each))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(facts: &Facts) -> Option<&'static str> {
        refusal(facts).map(|refusal| refusal.reason)
    }

    // azure.md 23: service principals, kubenet and Calico, IPv6
    #[test]
    fn clusters_without_support_are_refused_with_a_reason_and_what_is_expected() {
        let facts = Facts { service_principal: Some("by its nodes".to_owned()), ..Facts::default() };
        assert_eq!(reason(&facts), Some("ServicePrincipalUnsupported"));
        let facts = Facts { network_plugin: Some("kubenet".to_owned()), ..Facts::default() };
        assert_eq!(reason(&facts), Some("NetworkPluginUnsupported"));
        let message = refusal(&facts).unwrap().message;
        assert_eq!(message, "the cluster has network plugin \"kubenet\", expected azure or none");
        let facts = Facts { network_policy: Some("Calico".to_owned()), ..Facts::default() };
        assert_eq!(reason(&facts), Some("NetworkPolicyUnsupported"));
        let facts = Facts { ip_families: vec!["IPv4".to_owned(), "IPv6".to_owned()], ..Facts::default() };
        assert_eq!(reason(&facts), Some("IPFamilyUnsupported"));
        let facts = Facts { dns: Some("fd00::a".parse().unwrap()), ..Facts::default() };
        assert_eq!(reason(&facts), Some("IPFamilyUnsupported"));
    }

    #[test]
    fn usual_clusters_and_those_of_which_nothing_is_known_are_not() {
        assert_eq!(reason(&Facts::default()), None);
        for (plugin, policy) in [("azure", "cilium"), ("azure", "azure"), ("none", ""), ("azure", "none")] {
            let facts = Facts {
                service_principal: None,
                network_plugin: Some(plugin.to_owned()),
                network_policy: Some(policy.to_owned()),
                ip_families: vec!["IPv4".to_owned()],
                dns: Some("10.0.0.10".parse().unwrap()),
                ..Facts::default()
            };
            assert_eq!(reason(&facts), None, "{plugin} {policy}");
        }
    }

    fn cluster(properties: &serde_json::Value) -> ManagedCluster {
        serde_json::from_value(serde_json::json!({"name": "c", "properties": properties})).unwrap()
    }

    // azure.md 23: service principals, HTTP proxies and custom CA trust certificates
    #[test]
    fn what_aks_says_about_a_cluster_counts_more_than_what_its_nodes_look_like() {
        let guessed = || Facts { service_principal: Some("by its nodes".to_owned()), ..Facts::default() };
        let learned = |properties: serde_json::Value, mode: ProvisionMode| {
            let mut facts = guessed();
            facts.learn(&cluster(&properties), mode);
            refusals(&facts).into_iter().map(|refusal| refusal.reason).collect::<Vec<_>>()
        };
        let ours = ProvisionMode::AksScriptless;
        let none: [&str; 0] = [];
        assert_eq!(learned(serde_json::json!({"servicePrincipalProfile": {"clientId": "msi"}}), ours), none);
        assert_eq!(
            learned(serde_json::json!({"servicePrincipalProfile": {"clientId": "1-2-3"}}), ours),
            ["ServicePrincipalUnsupported"]
        );
        let pods =
            || serde_json::json!({"agentPoolProfiles": [{"name": "a"}, {"name": "b", "podSubnetID": "/s"}]});
        for mode in [ours, ProvisionMode::AksMachineApi] {
            assert_eq!(learned(pods(), mode), ["PodSubnetUnsupported"]);
        }
        let locked =
            |level: &str| serde_json::json!({"nodeResourceGroupProfile": {"restrictionLevel": level}});
        assert_eq!(learned(locked("ReadOnly"), ours), ["NodeResourceGroupReadOnly"]);
        assert_eq!(learned(locked("Unrestricted"), ours), none);
        assert_eq!(learned(locked("ReadOnly"), ProvisionMode::AksMachineApi), none, "AKS makes its machines");
        let network = serde_json::json!({"networkProfile": {
            "networkPlugin": "kubenet", "networkPolicy": "calico", "ipFamilies": ["IPv4", "IPv6"],
        }});
        assert_eq!(
            learned(network, ours),
            ["NetworkPluginUnsupported", "NetworkPolicyUnsupported", "IPFamilyUnsupported"]
        );
        let nodes = || {
            serde_json::json!({
                "httpProxyConfig": {"httpProxy": "http://proxy:3128"},
                "securityProfile": {"customCATrustCertificates": ["Y2VydA=="]},
            })
        };
        assert_eq!(learned(nodes(), ours), ["HTTPProxyUnsupported", "CustomCAUnsupported"]);
        assert_eq!(learned(nodes(), ProvisionMode::AksMachineApi), none, "AKS tells its machines");
    }
}
