//! What machines are connected with: subnets and their free addresses, the security group, load balancers; and the keys
//! of their disks.

use std::collections::BTreeSet;

use cloud::doctor::Check;

use super::{Facts, Subject};
use crate::arm::types::cluster::ManagedCluster;
use crate::arm::types::network::Subnet;
use crate::network::{backend_pools, security_group};
use crate::node_class::subnet::choose;

/// Azure keeps the first four addresses of a range and the last one.
const KEPT: i64 = 5;
/// How many addresses a node takes where pods have addresses of the subnet: its own, and one for each pod.
const OF_A_NODE: i64 = 31;
/// Fewer nodes than these are few for a subnet.
const FEW_NODES: i64 = 5;

/// The subnets that nodes can be in: that of the cluster, and those of the NodeClasses.
pub(super) fn subnets(subject: &Subject) -> BTreeSet<String> {
    let of_cluster = &subject.vnet_subnet_id;
    let chosen = |class| choose(class, of_cluster, &subject.node_resource_group).ok();
    let of_classes = subject.classes().iter().filter_map(chosen).map(|id| id.to_string());
    let own = of_cluster.parse::<crate::network::SubnetId>().ok().map(|id| id.to_string());
    of_classes.chain(own).collect()
}

/// What is said about everything that surrounds machines.
pub(super) fn report(subject: &Subject, cluster: Option<&ManagedCluster>, facts: &Facts) -> Vec<Check> {
    let mut checks = Vec::new();
    let addresses = if is_overlay(cluster) { 1 } else { OF_A_NODE };
    for (id, found) in &facts.subnets {
        let name = id.rsplit('/').next().unwrap_or_default();
        let about = format!("subnet {name}");
        checks.push(match found {
            Ok(subnet) => of_subnet(about, subnet, addresses),
            Err(error) => {
                let advice = "check VNET_SUBNET_ID and spec.vnetSubnetID, and the role Network Contributor on its network";
                Check::bad(about, error.to_string(), advice)
            }
        });
    }
    if facts.subnets.is_empty() {
        let message = format!("{:?} is no ID of a subnet", subject.vnet_subnet_id);
        checks.push(Check::bad(
            "subnet",
            message,
            "set --vnet-subnet-id, as the controller's VNET_SUBNET_ID",
        ));
    }
    // AKS connects its own machines.
    if !subject.mode.is_machine_api() {
        checks.push(of_group(subject, facts));
        checks.push(of_balancers(subject, cluster, facts));
    }
    if let Some((id, found)) = &facts.keys {
        checks.push(match found {
            Ok(_) => Check::good("disk encryption set", format!("{id} can be read")),
            Err(error) => Check::bad(
                "disk encryption set",
                error.to_string(),
                "give the identity the role Reader on it",
            ),
        });
    }
    checks
}

fn is_overlay(cluster: Option<&ManagedCluster>) -> bool {
    let network = cluster.and_then(|cluster| cluster.properties.network_profile.as_ref());
    // Most clusters have one; where nobody says, nothing is made worse than it is.
    network.is_none_or(|network| {
        let is = |text: Option<&str>, name: &str| text.is_some_and(|text| text.eq_ignore_ascii_case(name));
        is(network.network_plugin_mode.as_deref(), "overlay") || is(network.network_plugin.as_deref(), "none")
    })
}

fn of_subnet(about: String, subnet: &Subnet, addresses: i64) -> Check {
    let Some(free) = free_addresses(subnet) else {
        return Check::good(about, "it is there");
    };
    let nodes = free / addresses;
    let message = format!("{free} addresses are free, enough for {nodes} nodes");
    let advice = "take a larger subnet, or one more by spec.vnetSubnetID of an AKSNodeClass";
    match nodes {
        0 => Check::bad(about, message, advice),
        few if few < FEW_NODES => Check::warning(about, message, advice),
        _ => Check::good(about, message),
    }
}

/// How many addresses nobody has, of those of IPv4; nothing if the ranges are not known.
fn free_addresses(subnet: &Subnet) -> Option<i64> {
    let properties = subnet.properties.as_ref()?;
    let several = properties.address_prefixes.as_deref().unwrap_or_default();
    let ranges: BTreeSet<&str> =
        several.iter().chain(&properties.address_prefix).map(String::as_str).collect();
    let sizes: Vec<i64> = ranges.into_iter().filter_map(size).collect();
    let used = properties.ip_configurations.as_ref().map_or(0, Vec::len);
    let used = i64::try_from(used).unwrap_or(i64::MAX);
    (!sizes.is_empty()).then(|| sizes.iter().sum::<i64>().saturating_sub(used).max(0))
}

/// How many addresses of a range of IPv4 can be given out.
fn size(range: &str) -> Option<i64> {
    let (address, bits) = range.split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    let is_ipv4 = address.parse::<std::net::Ipv4Addr>().is_ok() && bits <= 32;
    is_ipv4.then(|| (1_i64 << (32 - bits)) - KEPT)
}

fn of_group(subject: &Subject, facts: &Facts) -> Check {
    let about = "network security group";
    let found = match &facts.groups {
        Ok(groups) => security_group(groups, &subject.node_resource_group).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match found {
        Ok(group) => Check::good(about, group.name),
        Err(message) => {
            Check::bad(about, message, "AKS makes exactly one, in the resource group of the nodes")
        }
    }
}

fn of_balancers(subject: &Subject, cluster: Option<&ManagedCluster>, facts: &Facts) -> Check {
    let about = "load balancers";
    let balancers = match &facts.balancers {
        Ok(balancers) => balancers,
        Err(error) => return Check::bad(about, error.to_string(), "see the permissions"),
    };
    let pools = backend_pools(balancers);
    let network = cluster.and_then(|cluster| cluster.properties.network_profile.as_ref());
    let outbound = network.and_then(|network| network.outbound_type.as_deref()).unwrap_or("loadBalancer");
    if !pools.is_empty() {
        return Check::good(about, format!("nodes join {} pools, outbound type {outbound}", pools.len()));
    }
    let message =
        format!("{} has no pool that nodes can join, outbound type {outbound}", subject.node_resource_group);
    if outbound.eq_ignore_ascii_case("loadBalancer") {
        Check::bad(
            about,
            message,
            "nodes would not reach the internet; AKS makes the load balancer kubernetes",
        )
    } else {
        Check::good(about, message)
    }
}

#[cfg(test)]
mod tests {
    use cloud::doctor::Level;
    use serde_json::{Value, json};

    use super::*;

    fn subnet(properties: Value) -> Subnet {
        let properties = serde_json::from_value(properties).unwrap();
        Subnet { properties, ..Subnet::default() }
    }

    #[test]
    fn free_addresses_are_those_that_neither_azure_nor_anybody_else_has() {
        let used: Vec<Value> = (0..11).map(|number| json!({"id": format!("/nic/{number}")})).collect();
        let of = |properties: Value| free_addresses(&subnet(properties));
        assert_eq!(of(json!({"addressPrefix": "10.0.0.0/24"})), Some(251));
        assert_eq!(of(json!({"addressPrefix": "10.0.0.0/27", "ipConfigurations": used})), Some(16));
        assert_eq!(of(json!({"addressPrefixes": ["10.0.0.0/27", "10.0.1.0/28", "fd00::/64"]})), Some(38));
        assert_eq!(of(json!({"addressPrefix": "10.0.0.0/30"})), Some(0));
        assert_eq!(of(json!({})), None);
        assert_eq!(of(Value::Null), None);
    }

    #[test]
    fn a_subnet_is_full_when_not_one_more_node_fits() {
        let level = |prefix: &str, addresses: i64| {
            of_subnet("subnet".to_owned(), &subnet(json!({"addressPrefix": prefix})), addresses).level
        };
        assert_eq!(level("10.0.0.0/24", 1), Level::Good);
        assert_eq!(level("10.0.0.0/24", OF_A_NODE), Level::Good);
        assert_eq!(level("10.0.0.0/26", OF_A_NODE), Level::Warning);
        assert_eq!(level("10.0.0.0/27", OF_A_NODE), Level::Bad);
        assert_eq!(level("10.0.0.0/29", 1), Level::Warning);
    }
}
