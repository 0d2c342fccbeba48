//! The network that machines are in: subnets, security groups and load balancers.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

use crate::arm::types::SubResource;
use crate::arm::types::network::{BackendAddressPool, LoadBalancer, NetworkSecurityGroup};
use crate::settings::AzureSettings;

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant that compiles")
}

static SUBNET: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^/subscriptions/([^/]+)/resourceGroups/([a-z0-9_\-().]{0,89}[a-z0-9_\-()])/providers/Microsoft\.Network/virtualNetworks/([^/]+)/subnets/([^/]+)$",
    )
});
static MANAGED_NETWORK: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^aks-vnet-\d{8}$"));
static MANAGED_GROUP: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^aks-agentpool-(\d{8})-nsg$"));

/// The load balancers of a cluster: the one outside and the one inside.
const LOAD_BALANCERS: [&str; 2] = ["kubernetes", "kubernetes-internal"];

/// Pools for addresses that our machines do not have.
const IPV6_POOLS: [&str; 2] = ["aksOutboundBackendPool-ipv6", "kubernetes-ipv6"];

/// A subnet, by the parts of its resource ID. Azure does not look at the case of any of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubnetId {
    /// The subscription.
    pub subscription: String,
    /// The resource group.
    pub resource_group: String,
    /// The virtual network.
    pub network: String,
    /// The subnet's own name.
    pub name: String,
}

/// A text is no ID of a subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid subnet ID {0:?}, expected \
     /subscriptions/{{subscription}}/resourceGroups/{{group}}/providers/Microsoft.Network/virtualNetworks/{{network}}/subnets/{{subnet}}"
)]
pub struct NoSubnetId(String);

impl FromStr for SubnetId {
    type Err = NoSubnetId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = SUBNET.captures(text).map(|parts| parts.extract::<4>().1);
        let Some([subscription, resource_group, network, name]) = parts else {
            return Err(NoSubnetId(text.to_owned()));
        };
        let owned = str::to_owned;
        Ok(Self {
            subscription: owned(subscription),
            resource_group: owned(resource_group),
            network: owned(network),
            name: owned(name),
        })
    }
}

impl fmt::Display for SubnetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/subnets/{}", self.network_id(), self.name)
    }
}

impl SubnetId {
    /// The ID of its network.
    pub fn network_id(&self) -> String {
        let Self { subscription, resource_group, network, .. } = self;
        format!(
            "/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/Microsoft.Network/virtualNetworks/{network}"
        )
    }

    /// Whether both are parts of the same virtual network. Upstream looks at the case here, Azure nowhere.
    pub fn is_in_network_of(&self, other: &Self) -> bool {
        self.subscription.eq_ignore_ascii_case(&other.subscription)
            && self.resource_group.eq_ignore_ascii_case(&other.resource_group)
            && self.network.eq_ignore_ascii_case(&other.network)
    }

    /// Whether both are the same subnet.
    pub fn is(&self, other: &Self) -> bool {
        self.is_in_network_of(other) && self.name.eq_ignore_ascii_case(&other.name)
    }

    /// Whether AKS made the virtual network for the cluster.
    pub fn is_managed(&self, node_resource_group: &str) -> bool {
        MANAGED_NETWORK.is_match(&self.network)
            && self.resource_group.eq_ignore_ascii_case(node_resource_group)
            && self.name.eq_ignore_ascii_case("aks-subnet")
    }
}

/// The ID of the subnet that machines of a NodeClass are in.
pub fn subnet_id<'a>(settings: &'a AzureSettings, class: Option<&'a str>) -> &'a str {
    class.unwrap_or(&settings.vnet_subnet_id)
}

/// The security group that AKS made for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroup {
    /// Its resource ID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The digits by which AKS tells clusters apart.
    pub cluster_id: String,
}

impl SecurityGroup {
    /// The name of the route table that AKS made for the cluster.
    pub fn route_table(&self) -> String {
        format!("aks-agentpool-{}-routetable", self.cluster_id)
    }
}

/// Why the security group of a cluster is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSecurityGroup {
    /// There is none.
    #[error(
        "resource group {group:?} has no network security group of AKS, \
         expected one named aks-agentpool-<8 digits>-nsg"
    )]
    None {
        /// The resource group.
        group: String,
    },
    /// There are several.
    #[error("resource group {group:?} has several network security groups of AKS, expected one: {}", .names.join(", "))]
    Several {
        /// The resource group.
        group: String,
        /// The names of the security groups.
        names: Vec<String>,
    },
}

/// The security group of a cluster, among those of the resource group of its machines.
pub fn security_group(
    groups: &[NetworkSecurityGroup],
    node_resource_group: &str,
) -> Result<SecurityGroup, NoSecurityGroup> {
    let mut found: Vec<SecurityGroup> = groups
        .iter()
        .filter_map(|group| {
            let name = group.name.as_deref()?;
            let cluster_id = MANAGED_GROUP.captures(name)?.get(1)?.as_str().to_owned();
            Some(SecurityGroup {
                id: group.id.clone().unwrap_or_default(),
                name: name.to_owned(),
                cluster_id,
            })
        })
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(group), true) => Ok(group),
        (None, _) => Err(NoSecurityGroup::None { group: node_resource_group.to_owned() }),
        (Some(last), false) => {
            found.push(last);
            let names = found.into_iter().map(|group| group.name).collect();
            Err(NoSecurityGroup::Several { group: node_resource_group.to_owned(), names })
        }
    }
}

/// The pools of load balancers that machines join, among those of the resource group of the machines.
///
/// Pools that name their members by address are filled by the cloud controller, and machines have no IPv6.
pub fn backend_pools(balancers: &[LoadBalancer]) -> Vec<SubResource> {
    let is_ours = |balancer: &&LoadBalancer| {
        let name = balancer.name.as_deref().unwrap_or_default();
        LOAD_BALANCERS.iter().any(|own| own.eq_ignore_ascii_case(name))
    };
    let pools = balancers.iter().filter(is_ours).filter_map(|balancer| balancer.properties.as_ref());
    let pools = pools.flat_map(|properties| properties.backend_address_pools.iter().flatten());
    pools
        .filter(|pool| takes_machines(pool))
        .filter_map(|pool| pool.id.as_ref())
        .map(SubResource::new)
        .collect()
}

fn takes_machines(pool: &BackendAddressPool) -> bool {
    let (Some(name), Some(properties)) = (&pool.name, &pool.properties) else { return false };
    let addresses = properties.load_balancer_backend_addresses.iter().flatten();
    let mut addresses = addresses.filter_map(|address| address.properties.as_ref()?.ip_address.as_deref());
    !IPV6_POOLS.iter().any(|ipv6| ipv6.eq_ignore_ascii_case(name)) && addresses.all(str::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::launch::fixture;

    const MANAGED: &str = "/subscriptions/s/resourceGroups/MC_rg/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet";

    fn subnet(text: &str) -> SubnetId {
        text.parse().unwrap()
    }

    // azure.md 14.1, 25.2: subnet id
    #[test]
    fn ids_of_subnets_are_read_in_any_case_and_written_as_they_were() {
        for id in [
            MANAGED,
            "/SUBSCRIPTIONS/s/RESOURCEGROUPS/rg/PROVIDERS/microsoft.network/VIRTUALNETWORKS/v/SUBNETS/n",
            "/subscriptions/s/resourceGroups/.rg/providers/Microsoft.Network/virtualNetworks/v/subnets/n",
            "/subscriptions/s/resourceGroups/rg-/providers/Microsoft.Network/virtualNetworks/v/subnets/n",
            "/subscriptions/s/resourceGroups/my(rg)_1/providers/Microsoft.Network/virtualNetworks/v/subnets/n",
        ] {
            assert!(subnet(id).to_string().eq_ignore_ascii_case(id), "{id}");
        }
        let read = subnet(MANAGED);
        assert_eq!(
            (
                read.subscription.as_str(),
                read.resource_group.as_str(),
                read.network.as_str(),
                read.name.as_str()
            ),
            ("s", "MC_rg", "aks-vnet-12345678", "aks-subnet")
        );
    }

    // azure.md 14.1, 25.2
    #[test]
    fn what_is_no_subnet_is_refused_with_what_is_expected() {
        for id in [
            "",
            "subnet",
            "/subscriptions/s/resourceGroups/rg./providers/Microsoft.Network/virtualNetworks/v/subnets/n",
            "/subscriptions/s/resourceGroups/r#g/providers/Microsoft.Network/virtualNetworks/v/subnets/n",
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualNetworks/v/subnets/n",
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v",
            "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/n/x",
            "/subscriptions//resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/n",
        ] {
            let error = id.parse::<SubnetId>().unwrap_err().to_string();
            assert!(error.contains(&format!("{id:?}")) && error.contains("/subnets/{subnet}"), "{error}");
        }
    }

    // azure.md 14.1: AKS-managed VNet
    #[test]
    fn a_network_is_managed_if_its_three_names_say_so() {
        assert!(subnet(MANAGED).is_managed("mc_RG"));
        assert!(subnet(&MANAGED.replace("aks-vnet", "AKS-VNET")).is_managed("MC_rg"));
        assert!(!subnet(MANAGED).is_managed("other"));
        assert!(!subnet(&MANAGED.replace("12345678", "1234567")).is_managed("MC_rg"));
        assert!(!subnet(&MANAGED.replace("12345678", "123456789")).is_managed("MC_rg"));
        assert!(!subnet(&MANAGED.replace("aks-subnet", "own")).is_managed("MC_rg"));
    }

    // azure.md 14.1, 28.15: Azure ids have no case
    #[test]
    fn the_same_network_is_found_in_any_case() {
        let one = subnet(MANAGED);
        let other = subnet(&MANAGED.replace("MC_rg", "mc_RG").replace("aks-subnet", "second"));
        assert!(one.is_in_network_of(&other) && !one.is(&other));
        assert!(one.is(&subnet(&MANAGED.to_uppercase())));
        assert!(!one.is_in_network_of(&subnet(&MANAGED.replace("12345678", "87654321"))));
    }

    #[test]
    fn the_subnet_of_the_class_comes_before_that_of_the_settings() {
        let settings = AzureSettings { vnet_subnet_id: "cluster".to_owned(), ..fixture::settings() };
        assert_eq!(subnet_id(&settings, None), "cluster");
        assert_eq!(subnet_id(&settings, Some("own")), "own");
    }

    fn groups(names: &[&str]) -> Vec<NetworkSecurityGroup> {
        let group = |name: &&str| NetworkSecurityGroup {
            id: Some(format!("/nsg/{name}")),
            name: Some((*name).to_owned()),
        };
        names.iter().map(group).collect()
    }

    // azure.md 14.2
    #[test]
    fn the_security_group_is_the_one_that_is_named_as_aks_does() {
        let found =
            security_group(&groups(&["own", "AKS-agentpool-12345678-NSG", "aks-agentpool-1-nsg"]), "rg")
                .unwrap();
        assert_eq!(found.name, "AKS-agentpool-12345678-NSG");
        assert_eq!(found.id, "/nsg/AKS-agentpool-12345678-NSG");
        assert_eq!(found.route_table(), "aks-agentpool-12345678-routetable");
    }

    // azure.md 14.2: none or several is an error with the names
    #[test]
    fn no_security_group_and_several_are_both_said() {
        let none = security_group(&groups(&["own"]), "MC_rg").unwrap_err().to_string();
        assert!(none.contains("\"MC_rg\" has no network security group"), "{none}");
        let names = ["aks-agentpool-11111111-nsg", "aks-agentpool-22222222-nsg"];
        let several = security_group(&groups(&names), "MC_rg").unwrap_err().to_string();
        assert!(names.iter().all(|name| several.contains(name)), "{several}");
    }

    fn pools(balancers: Value) -> Vec<String> {
        let balancers: Vec<LoadBalancer> = serde_json::from_value(balancers).unwrap();
        backend_pools(&balancers).into_iter().map(|pool| pool.id).collect()
    }

    // azure.md 14.3
    #[test]
    fn machines_join_the_pools_of_both_load_balancers_of_the_cluster() {
        let all = pools(json!([
            {"name": "Kubernetes", "properties": {"backendAddressPools": [
                {"id": "/out", "name": "aksOutboundBackendPool", "properties": {}},
                {"id": "/ext", "name": "kubernetes", "properties": {"loadBalancerBackendAddresses": [
                    {"name": "a", "properties": {"ipAddress": ""}}, {"name": "b"},
                ]}},
            ]}},
            {"name": "kubernetes-internal", "properties": {"backendAddressPools": [
                {"id": "/int", "name": "kubernetes", "properties": {}},
            ]}},
            {"name": "other", "properties": {"backendAddressPools": [
                {"id": "/other", "name": "kubernetes", "properties": {}},
            ]}},
            {"name": null},
        ]));
        assert_eq!(all, ["/out", "/ext", "/int"]);
    }

    // azure.md 14.3: IPv6 pools, node-IP pools and incomplete ones are never assigned
    #[test]
    fn machines_join_no_pools_of_addresses_and_none_of_ipv6() {
        let all = pools(json!([{"name": "kubernetes", "properties": {"backendAddressPools": [
            {"id": "/a", "name": "aksOutboundBackendPool-ipv6", "properties": {}},
            {"id": "/b", "name": "kubernetes-ipv6", "properties": {}},
            {"id": "/c", "name": "by-address", "properties": {"loadBalancerBackendAddresses": [
                {"properties": {}}, {"properties": {"ipAddress": "10.0.0.4"}},
            ]}},
            {"name": "no-id", "properties": {}},
            {"id": "/d", "properties": {}},
            {"id": "/e", "name": "no-properties"},
        ]}}]));
        assert!(all.is_empty(), "{all:?}");
    }
}
