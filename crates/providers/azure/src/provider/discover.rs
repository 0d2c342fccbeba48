//! What must be found out about the cluster before nodes can join it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use api::names::labels::azure as labels;
use runtime::Api;
use serde_json::Value;

use super::ClusterInfo;
use crate::arm::types::cluster::ManagedCluster;
use crate::arm::{Client, Error};
use crate::network::SubnetId;
use crate::node_class::limits::Facts;
use crate::settings::AzureSettings;

/// The service by which nodes find the cluster's DNS.
const DNS: &str = "/api/v1/namespaces/kube-system/services/kube-dns";
/// The address that AKS gives it unless told otherwise.
const USUAL_DNS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 10));
/// How long AKS may take to say something about the cluster: nodes can be made without it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Some nodes that AKS itself made.
const NODES: &str = "/api/v1/nodes?limit=20&labelSelector=kubernetes.azure.com%2Frole%3Dagent";

/// Finds out what nodes are told about the cluster, and what may make them impossible. `ca_bundle` is how this process
/// knows the API server, in base64.
pub async fn discover(
    client: &Client,
    api: &Api,
    settings: &AzureSettings,
    ca_bundle: String,
) -> Result<(ClusterInfo, Facts), Error> {
    let (vnet_guid, dns, nodes, cluster) = futures::join!(
        vnet_guid(client, settings),
        api.get::<Value>(DNS),
        api.get::<Value>(NODES),
        Box::pin(managed_cluster(client, settings))
    );
    let service = dns.unwrap_or_else(|error| {
        tracing::info!(%error, "unable to find the service kube-dns, the usual address is taken");
        Value::Null
    });
    let nodes = nodes.unwrap_or_else(|error| {
        tracing::info!(%error, "unable to look at the nodes of the cluster");
        Value::Null
    });
    let mut found = facts(settings, &service, &nodes);
    if let Some(cluster) = cluster {
        found.learn(&cluster, settings.provision_mode);
    }
    let info =
        ClusterInfo { dns_service_ip: found.dns.unwrap_or(USUAL_DNS), vnet_guid: vnet_guid?, ca_bundle };
    Ok((info, found))
}

/// What AKS says about the cluster, if we may ask. The roles that launches need do not allow it.
async fn managed_cluster(client: &Client, settings: &AzureSettings) -> Option<ManagedCluster> {
    let (group, name) = (&settings.cluster_resource_group, &settings.cluster_name);
    if group.is_empty() {
        return None;
    }
    match tokio::time::timeout(PATIENCE, client.managed_cluster(group, name)).await {
        Ok(Ok(cluster)) => Some(cluster),
        Ok(Err(error)) => {
            tracing::info!(%error, "unable to ask AKS about the cluster, its nodes are looked at instead");
            None
        }
        Err(_) => {
            tracing::info!("AKS does not say anything about the cluster, its nodes are looked at instead");
            None
        }
    }
}

/// What Azure tells the network of the cluster apart by, where nodes are told.
async fn vnet_guid(client: &Client, settings: &AzureSettings) -> Result<String, Error> {
    if let Some(known) = &settings.vnet_guid {
        return Ok(known.clone());
    }
    let is_overlay = settings.network_plugin == "azure" && settings.network_plugin_mode == "overlay";
    // What is no ID of a subnet was refused with the settings.
    let Ok(subnet) = settings.vnet_subnet_id.parse::<SubnetId>() else { return Ok(String::new()) };
    if !is_overlay {
        return Ok(String::new());
    }
    let id = subnet.to_string();
    let id = id.rsplit_once("/subnets/").map_or(id.as_str(), |(network, _)| network);
    let found = client.virtual_network(id).await?;
    let guid =
        found.properties.and_then(|properties| properties.resource_guid).filter(|guid| !guid.is_empty());
    guid.ok_or_else(|| Error::new("GET virtualNetworks", "", &format!("{id} has no properties.resourceGuid")))
}

/// What may make nodes impossible.
fn facts(settings: &AzureSettings, service: &Value, nodes: &Value) -> Facts {
    let found: Option<IpAddr> =
        service.pointer("/spec/clusterIP").and_then(Value::as_str).and_then(|text| text.parse().ok());
    let families = service.pointer("/spec/ipFamilies").and_then(Value::as_array);
    let families = families.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Facts {
        service_principal: service_principal(settings, nodes),
        pod_subnet: pod_subnet(nodes),
        network_plugin: Some(settings.network_plugin.clone()),
        network_policy: Some(settings.network_policy.clone()),
        ip_families: families.collect(),
        dns: settings.dns_service_ip.or(found),
        ..Facts::default()
    }
}

/// Nodes of a cluster with a managed identity say which one their kubelet has.
fn service_principal(settings: &AzureSettings, nodes: &Value) -> Option<String> {
    let nodes = nodes.get("items").and_then(Value::as_array)?;
    let has_identity = |node: &Value| {
        let of_node =
            node.pointer("/metadata/labels").and_then(|all| all.get(labels::AKS_KUBELET_IDENTITY_CLIENT_ID));
        of_node.and_then(Value::as_str).is_some_and(|client| !client.is_empty())
    };
    let is_without = settings.kubelet_identity_client_id.is_empty()
        && !nodes.is_empty()
        && !nodes.iter().any(has_identity);
    let label = labels::AKS_KUBELET_IDENTITY_CLIENT_ID;
    is_without.then(|| format!("KUBELET_IDENTITY_CLIENT_ID is empty, and no node has the label {label}"))
}

/// Nodes whose pods have a subnet of their own say which.
fn pod_subnet(nodes: &Value) -> Option<String> {
    let nodes = nodes.get("items").and_then(Value::as_array)?;
    let subnet = |node: &Value| {
        let of_node = node.pointer("/metadata/labels")?.get(labels::AKS_PODNETWORK_SUBNET)?.as_str()?;
        Some(of_node.to_owned()).filter(|subnet| !subnet.is_empty())
    };
    let found = nodes.iter().find_map(subnet)?;
    Some(format!("a node has the label {}={found}", labels::AKS_PODNETWORK_SUBNET))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::launch::fixture;
    use crate::node_class::limits::refusal;

    fn reason(identity: &str, service: &Value, nodes: &Value) -> Option<&'static str> {
        let settings = AzureSettings {
            kubelet_identity_client_id: identity.to_owned(),
            dns_service_ip: None,
            network_policy: String::new(),
            ..fixture::settings()
        };
        refusal(&facts(&settings, service, nodes)).map(|refusal| refusal.reason)
    }

    fn nodes(identity: Option<&str>) -> Value {
        json!({"items": [{"metadata": {"labels": {labels::AKS_KUBELET_IDENTITY_CLIENT_ID: identity}}}]})
    }

    // azure.md 23: service principals and IPv6
    #[test]
    fn what_makes_nodes_impossible_is_seen_in_the_cluster() {
        let plain = json!({"spec": {"clusterIP": "10.0.0.10", "ipFamilies": ["IPv4"]}});
        assert_eq!(reason("", &plain, &nodes(Some("1"))), None);
        assert_eq!(reason("1", &plain, &nodes(None)), None);
        assert_eq!(reason("", &plain, &json!({"items": []})), None, "there is nobody to look at");
        assert_eq!(reason("", &Value::Null, &Value::Null), None, "nobody could look");
        assert_eq!(reason("", &plain, &nodes(None)), Some("ServicePrincipalUnsupported"));
        let dual = json!({"spec": {"clusterIP": "10.0.0.10", "ipFamilies": ["IPv4", "IPv6"]}});
        assert_eq!(reason("1", &dual, &nodes(Some("1"))), Some("IPFamilyUnsupported"));
        let apart = json!({"items": [{"metadata": {"labels": {
            labels::AKS_KUBELET_IDENTITY_CLIENT_ID: "1", labels::AKS_PODNETWORK_SUBNET: "pods",
        }}}]});
        assert_eq!(reason("1", &plain, &apart), Some("PodSubnetUnsupported"));
        let only = json!({"spec": {"clusterIP": "fd00::a"}});
        assert_eq!(reason("1", &only, &nodes(Some("1"))), Some("IPFamilyUnsupported"));
    }
}
