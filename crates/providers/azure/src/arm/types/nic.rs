//! Network interfaces, as Azure's network API spells them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SubResource;

/// A network interface, as it is put and as it is read; also a row of the resource graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// Its resource ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// What it is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<NetworkInterfaceProperties>,
}

/// What a network interface is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterfaceProperties {
    /// Its addresses, the first one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_configurations: Option<Vec<IpConfiguration>>,
    /// What may reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_security_group: Option<SubResource>,
    /// Whether the host is bypassed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_accelerated_networking: Option<bool>,
    /// Whether it passes on what is not for it.
    #[serde(rename = "enableIPForwarding", skip_serializing_if = "Option::is_none")]
    pub enable_ip_forwarding: Option<bool>,
    /// Whose it is; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<SubResource>,
    /// Where Azure is with it; read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning_state: Option<String>,
}

/// An address of a network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpConfiguration {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<IpConfigurationProperties>,
}

/// Where an address comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpConfigurationProperties {
    /// Whether it is the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<bool>,
    /// How it is chosen.
    #[serde(rename = "privateIPAllocationMethod", skip_serializing_if = "Option::is_none")]
    pub private_ip_allocation_method: Option<String>,
    /// The address; read-only.
    #[serde(rename = "privateIPAddress", skip_serializing_if = "Option::is_none")]
    pub private_ip_address: Option<String>,
    /// The subnet that it is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet: Option<SubResource>,
    /// Who sends requests to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer_backend_address_pools: Option<Vec<SubResource>>,
}

/// All tags of a network interface or an extension from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TagsPatch {
    /// The tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
}
