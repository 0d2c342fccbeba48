//! The network interface of a virtual machine.

use super::name::vm_name;
use crate::arm::Error;
use crate::arm::types::SubResource;
use crate::arm::types::nic::{
    IpConfiguration, IpConfigurationProperties, NetworkInterface, NetworkInterfaceProperties,
};
use crate::launch::Launch;
use crate::tags;

/// The network interface of a launch, which joins the pools of load balancers.
pub fn network_interface(launch: &Launch<'_>, pools: &[SubResource]) -> NetworkInterface {
    let settings = launch.cluster.settings;
    let name = vm_name(launch.claim_name());
    // In a network of their own pods need no addresses of the subnet.
    let has_addresses_for_pods = settings.network_plugin == "azure" && !launch.cluster.is_overlay();
    let more = if has_addresses_for_pods { launch.choice.max_pods().saturating_sub(1) } else { 0 };
    let first = address(launch, name.clone(), Some(pools.to_vec()));
    let others = (1..=more).map(|number| address(launch, format!("ipconfig{number}"), None));
    // In a network that AKS manages, the subnet has the security group.
    let is_managed = launch.subnet.is_managed(&settings.node_resource_group);
    NetworkInterface {
        location: Some(settings.location.clone()),
        tags: Some(tags::of_claim(settings, launch.class.spec, launch.claim)),
        properties: Some(NetworkInterfaceProperties {
            ip_configurations: Some(std::iter::once(first).chain(others).collect()),
            network_security_group: (!is_managed).then(|| SubResource::new(&launch.security_group.id)),
            enable_accelerated_networking: Some(launch.choice.sku.accelerated_networking),
            enable_ip_forwarding: Some(false),
            ..NetworkInterfaceProperties::default()
        }),
        ..NetworkInterface::default()
    }
}

fn address(launch: &Launch<'_>, name: String, pools: Option<Vec<SubResource>>) -> IpConfiguration {
    IpConfiguration {
        name: Some(name),
        properties: Some(IpConfigurationProperties {
            primary: Some(pools.is_some()),
            private_ip_allocation_method: Some("Dynamic".to_owned()),
            subnet: Some(SubResource::new(launch.subnet.to_string())),
            load_balancer_backend_address_pools: pools,
            ..IpConfigurationProperties::default()
        }),
    }
}

/// Whether Azure refused a network interface because a pool of load balancers is gone: then it is worth another try
/// with the pools that there are now.
pub fn is_stale_pool(error: &Error, pools: &[SubResource]) -> bool {
    let text = error.message.to_ascii_lowercase();
    error.has_code("InvalidResourceReference")
        && pools.iter().any(|pool| !pool.id.is_empty() && text.contains(&pool.id.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::{Value, json};

    use super::*;
    use crate::launch::fixture::{Fixture, MANAGED_SUBNET};

    fn pools() -> Vec<SubResource> {
        vec![SubResource::new("/lb/pools/kubernetes"), SubResource::new("/lb/pools/aksOutboundBackendPool")]
    }

    fn body(fixture: &Fixture) -> Value {
        serde_json::to_value(network_interface(&fixture.launch(), &pools())).unwrap()
    }

    // azure.md 10.3: the whole body
    #[test]
    fn an_interface_in_an_overlay_network_has_one_address() {
        expect![[r#"
            {
              "location": "eastus",
              "properties": {
                "enableAcceleratedNetworking": true,
                "enableIPForwarding": false,
                "ipConfigurations": [
                  {
                    "name": "aks-general-purpose-a1b2c",
                    "properties": {
                      "loadBalancerBackendAddressPools": [
                        {
                          "id": "/lb/pools/kubernetes"
                        },
                        {
                          "id": "/lb/pools/aksOutboundBackendPool"
                        }
                      ],
                      "primary": true,
                      "privateIPAllocationMethod": "Dynamic",
                      "subnet": {
                        "id": "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/MC_rg_test_eastus/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
                      }
                    }
                  }
                ]
              },
              "tags": {
                "compute.aks.billing": "linux",
                "karpenter.azure.com_cluster": "test",
                "karpenter.sh_nodepool": "general-purpose"
              }
            }"#]].assert_eq(&serde_json::to_string_pretty(&body(&Fixture::default())).unwrap());
    }

    fn addresses(plugin: &str, mode: &str, pods: &str) -> Vec<Value> {
        let mut fixture = Fixture::default();
        plugin.clone_into(&mut fixture.settings.network_plugin);
        mode.clone_into(&mut fixture.settings.network_plugin_mode);
        fixture.instance_type.capacity.set("pods", pods.parse().unwrap());
        body(&fixture)["properties"]["ipConfigurations"].as_array().unwrap().clone()
    }

    // azure.md 10.3, 25.5: 30 IP configs for node subnet, = maxPods when set, 1 for overlay
    #[test]
    fn pods_in_the_subnet_have_addresses_on_the_interface() {
        assert_eq!(addresses("azure", "overlay", "250").len(), 1);
        assert_eq!(addresses("none", "", "250").len(), 1);
        let all = addresses("azure", "", "30");
        assert_eq!(all.len(), 30);
        assert_eq!(
            all[29],
            json!({"name": "ipconfig29", "properties": {
                "primary": false, "privateIPAllocationMethod": "Dynamic", "subnet": {"id": MANAGED_SUBNET},
            }})
        );
        assert_eq!(addresses("azure", "", "11").len(), 11);
    }

    // azure.md 10.3, 25.5: NSG attached only for BYO VNet
    #[test]
    fn the_security_group_is_on_the_interface_in_a_network_of_the_user() {
        let mut fixture = Fixture::default();
        assert_eq!(body(&fixture)["properties"].get("networkSecurityGroup"), None);
        fixture.subnet = MANAGED_SUBNET.replace("aks-subnet", "own").parse().unwrap();
        assert_eq!(
            body(&fixture)["properties"]["networkSecurityGroup"]["id"],
            json!(fixture.security_group.id)
        );
    }

    #[test]
    fn the_network_is_accelerated_where_the_size_can() {
        let mut fixture = Fixture::default();
        fixture.sku.accelerated_networking = false;
        assert_eq!(body(&fixture)["properties"]["enableAcceleratedNetworking"], false);
    }

    // azure.md 10.1, 25.4: only a reference to a submitted pool is retried
    #[test]
    fn a_pool_that_is_gone_is_told_from_other_references() {
        let refused = |code: &str, message: &str| is_stale_pool(&Error::new("PUT", code, message), &pools());
        assert!(refused(
            "InvalidResourceReference",
            "Resource /LB/pools/KUBERNETES referenced by x was not found"
        ));
        assert!(refused("invalidresourcereference", "/lb/pools/aksoutboundbackendpool"));
        assert!(!refused("InvalidResourceReference", "Resource /subnets/x was not found"));
        assert!(!refused("Other", "/lb/pools/kubernetes"));
        assert!(!is_stale_pool(
            &Error::new("PUT", "InvalidResourceReference", "x"),
            &[SubResource::default()]
        ));
    }
}
