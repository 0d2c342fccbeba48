//! The values of the chart for an AKS cluster, so that nobody has to collect them.
//!
//! ```text
//!   Wishes ─► find (asks Azure) ─► Found ─┐
//!   Local (kubeconfig, key, token) ───────┴─► values: the text of karpenter-values.yaml
//! ```

mod token;
mod values;
mod wishes;

use crate::arm::types::cluster::ManagedCluster;
use crate::arm::{Client, Error};
use crate::auth::Secret;
use crate::environment::Environment;
use crate::network::SubnetId;

pub(crate) use token::bootstrap_tokens;
pub use token::{bootstrap_token, default_subscription};
pub use values::values;
pub use wishes::Wishes;

/// Why there are no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CannotConfigure(pub String);

/// What Azure says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The cluster.
    pub cluster: ManagedCluster,
    /// The subnet of the nodes.
    pub subnet_id: String,
    /// What Azure tells the network of the nodes apart by.
    pub vnet_guid: String,
    /// The client of the controller's identity.
    pub identity_client_id: String,
}

/// What is known on this machine and in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Local {
    /// The subscription of the cluster.
    pub subscription: String,
    /// Which cloud it is.
    pub environment: Environment,
    /// The address of the API server.
    pub endpoint: String,
    /// The token by which nodes join the cluster.
    pub bootstrap_token: Secret,
    /// The key by which administrators log in to nodes; that of the cluster if there is none.
    pub ssh_public_key: Option<String>,
}

/// Asks Azure for everything that values are made of.
pub async fn find(client: &Client, wishes: &Wishes) -> Result<Found, CannotConfigure> {
    let (cluster, identity) = futures::join!(
        client.managed_cluster(&wishes.resource_group, &wishes.cluster),
        client.managed_identity(&wishes.resource_group, &wishes.identity),
    );
    let cluster = cluster.map_err(|error| {
        let Wishes { cluster, resource_group, .. } = wishes;
        failed(&format!("reading the AKS cluster {cluster:?} in resource group {resource_group:?}"), &error)
    })?;
    let identity = identity.map_err(|error| {
        let Wishes { identity, resource_group, .. } = wishes;
        failed(&format!("reading the identity {identity:?} in resource group {resource_group:?}"), &error)
    })?;
    let client_id = identity.properties.client_id.filter(|id| !id.is_empty());
    let identity_client_id = client_id.ok_or_else(|| {
        CannotConfigure(format!("the identity {:?} has no properties.clientId", wishes.identity))
    })?;
    let (subnet_id, vnet_guid) = network(client, wishes, &cluster).await?;
    Ok(Found { cluster, subnet_id, vnet_guid, identity_client_id })
}

/// The subnet of the nodes, and what Azure tells its network apart by: what is asked for, else the one of the first
/// agent pool that names one, else the first of the network that AKS made.
async fn network(
    client: &Client,
    wishes: &Wishes,
    cluster: &ManagedCluster,
) -> Result<(String, String), CannotConfigure> {
    let of_pools = cluster.pools().iter().find_map(|pool| pool.vnet_subnet_id.as_deref());
    let named = wishes.subnet.as_deref().or(of_pools).filter(|id| !id.is_empty());
    let guid = |properties: Option<&crate::arm::types::network::VirtualNetworkProperties>| {
        properties.and_then(|properties| properties.resource_guid.clone()).unwrap_or_default()
    };
    if let Some(id) = named {
        let subnet: SubnetId =
            id.parse().map_err(|error| CannotConfigure(format!("the subnet of the nodes, {error}")))?;
        let found = client.virtual_network(&subnet.network_id()).await;
        let found = found.map_err(|error| failed("reading the virtual network of the nodes", &error))?;
        return Ok((id.to_owned(), guid(found.properties.as_ref())));
    }
    let group = cluster.node_resource_group();
    let all = client.virtual_networks(group).await;
    let all = all.map_err(|error| failed(&format!("listing the virtual networks of {group:?}"), &error))?;
    let first = all.iter().find_map(|network| {
        let properties = network.properties.as_ref()?;
        let subnet = properties.subnets.as_ref()?.iter().find_map(|subnet| subnet.id.clone())?;
        Some((subnet, guid(Some(properties))))
    });
    first.ok_or_else(|| {
        CannotConfigure(format!(
            "no agent pool names a subnet, and resource group {group:?} has no virtual network with one: \
             name the subnet of the nodes with --vnet-subnet-id"
        ))
    })
}

/// Whether an address is that of a cluster's API server, as far as AKS says. The kubeconfig may be of another cluster,
/// and its nodes would then join that one.
pub fn check_endpoint(cluster: &ManagedCluster, endpoint: &str) -> Result<(), CannotConfigure> {
    let properties = &cluster.properties;
    let names = [&properties.fqdn, &properties.private_fqdn, &properties.azure_portal_fqdn];
    let names: Vec<&str> =
        names.into_iter().flatten().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = host.split([':', '/']).next().unwrap_or_default();
    if names.is_empty() || names.iter().any(|name| name.eq_ignore_ascii_case(host)) {
        return Ok(());
    }
    Err(CannotConfigure(format!(
        "the kubeconfig is of the API server {host:?}, that of the cluster is {}: `az aks get-credentials` changes the \
         kubeconfig, --kubeconfig names another, and --cluster-endpoint says how nodes reach the API server",
        names.join(" or ")
    )))
}

fn failed(what: &str, error: &Error) -> CannotConfigure {
    CannotConfigure(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests;
