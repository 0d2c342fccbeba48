//! Clusters for which no nodes can be created, and why: said in the condition of every NodeClass, before anything is
//! tried.

use std::net::IpAddr;

use api::names::reasons::azure as reasons;

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
    let refuse = |reason, message| Some(Refusal { reason, message });
    if let Some(evidence) = &facts.service_principal {
        return refuse(
            reasons::SERVICE_PRINCIPAL_UNSUPPORTED,
            format!(
                "the cluster has a service principal, expected a managed identity: {evidence}; \
                 update the cluster with --enable-managed-identity and set KUBELET_IDENTITY_CLIENT_ID"
            ),
        );
    }
    if let Some(plugin) = facts.network_plugin.as_deref().filter(|plugin| !is(plugin, &["", "azure", "none"]))
    {
        return refuse(
            reasons::NETWORK_PLUGIN_UNSUPPORTED,
            format!("the cluster has network plugin {plugin:?}, expected azure or none"),
        );
    }
    if let Some(policy) = facts.network_policy.as_deref().filter(|policy| is(policy, &["calico"])) {
        return refuse(
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
        return refuse(
            reasons::IP_FAMILY_UNSUPPORTED,
            format!(
                "the cluster has {what}, and nodes get IPv4 addresses only: expected a cluster without IPv6"
            ),
        );
    }
    None
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
            };
            assert_eq!(reason(&facts), None, "{plugin} {policy}");
        }
    }
}
