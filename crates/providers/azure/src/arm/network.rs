//! Networks and what connects machines with them.

use http::Method;

use super::call::Call;
use super::client::Client;
use super::error::Error;
use super::running::Running;
use super::types::network::{LoadBalancer, NetworkSecurityGroup, Subnet, VirtualNetwork};
use super::types::nic::{NetworkInterface, TagsPatch};

const NETWORK: &str = "Microsoft.Network";
const VERSION: (&str, &str) = ("api-version", "2022-01-01");

impl Client {
    fn interface_url(&self, group: &str, name: &str) -> String {
        self.in_group(group, &[NETWORK, "networkInterfaces", name], &[VERSION])
    }

    /// A network interface.
    pub async fn network_interface(&self, group: &str, name: &str) -> Result<NetworkInterface, Error> {
        self.get("network:GetNetworkInterface", self.interface_url(group, name)).await
    }

    /// Makes a network interface.
    pub async fn put_network_interface(
        &self,
        group: &str,
        name: &str,
        interface: &NetworkInterface,
    ) -> Result<Running<NetworkInterface>, Error> {
        let url = self.interface_url(group, name);
        let call = Call::new("network:PutNetworkInterface", Method::PUT, url);
        self.sender.begin(call.json(interface)?).await
    }

    /// Replaces the tags of a network interface.
    pub async fn patch_network_interface(
        &self,
        group: &str,
        name: &str,
        tags: &TagsPatch,
    ) -> Result<NetworkInterface, Error> {
        let url = self.interface_url(group, name);
        let call = Call::new("network:PatchNetworkInterface", Method::PATCH, url);
        self.sender.ask(&call.json(tags)?).await
    }

    /// Deletes a network interface.
    pub async fn delete_network_interface(&self, group: &str, name: &str) -> Result<Running<()>, Error> {
        let url = self.interface_url(group, name);
        self.sender.begin(Call::new("network:DeleteNetworkInterface", Method::DELETE, url)).await
    }

    /// What may reach the machines of a resource group.
    pub async fn network_security_groups(&self, group: &str) -> Result<Vec<NetworkSecurityGroup>, Error> {
        let url = self.in_group(group, &[NETWORK, "networkSecurityGroups"], &[VERSION]);
        self.sender.list(Call::new("network:ListNetworkSecurityGroups", Method::GET, url)).await
    }

    /// What sends requests to the machines of a resource group.
    pub async fn load_balancers(&self, group: &str) -> Result<Vec<LoadBalancer>, Error> {
        let url = self.in_group(group, &[NETWORK, "loadBalancers"], &[VERSION]);
        self.sender.list(Call::new("network:ListLoadBalancers", Method::GET, url)).await
    }

    /// The networks of a resource group.
    pub async fn virtual_networks(&self, group: &str) -> Result<Vec<VirtualNetwork>, Error> {
        let url = self.in_group(group, &[NETWORK, "virtualNetworks"], &[VERSION]);
        self.sender.list(Call::new("network:ListVirtualNetworks", Method::GET, url)).await
    }

    /// A network, by its ID.
    pub async fn virtual_network(&self, id: &str) -> Result<VirtualNetwork, Error> {
        self.get("network:GetVirtualNetwork", self.by_id(id, &[VERSION])).await
    }

    /// A part of a network, by its ID.
    pub async fn subnet(&self, id: &str) -> Result<Subnet, Error> {
        self.get("network:GetSubnet", self.by_id(id, &[VERSION])).await
    }
}
