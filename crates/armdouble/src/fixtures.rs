//! What there is at the start: an AKS cluster as `az aks create` leaves it, with images, SKUs and prices.

use serde_json::{Value, json};

use crate::settings::Settings;
use crate::world::World;

/// Image definitions by operating system, as AKS publishes them.
const UBUNTU: [&str; 12] = [
    "2004gen2fipscontainerd",
    "2004fipscontainerd",
    "2204gen2containerd",
    "2204containerd",
    "2204gen2arm64containerd",
    "2204gen2TLcontainerd",
    "2204gen2fipsTLcontainerd",
    "2404gen2containerd",
    "2404containerd",
    "2404gen2arm64containerd",
    "2404gen2TLcontainerd",
    "2204fipscontainerd",
];
const AZURE_LINUX: [&str; 13] = [
    "V2gen2",
    "V2",
    "V2gen2arm64",
    "V2gen2TL",
    "V2gen2fips",
    "V2fips",
    "V3gen2",
    "V3",
    "V3gen2arm64",
    "V3gen2TL",
    "V3gen2fips",
    "V3fips",
    "V3gen2arm64fips",
];
const UBUNTU_GALLERY: &str = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2";
const AZURE_LINUX_GALLERY: &str = "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b";
/// An older version and a newer one.
const VERSIONS: [(&str, &str); 2] =
    [("202605.15.0", "2026-05-15T00:00:00+00:00"), ("202606.01.0", "2026-06-01T00:00:00+00:00")];

pub(crate) fn fill(world: &mut World) {
    for (location, payload) in [
        ("southcentralus", include_str!("../data/skus_southcentralus.json")),
        ("westcentralus", include_str!("../data/skus_westcentralus.json")),
    ] {
        world.skus.load(location, payload);
    }
    world.prices.load(include_str!("../data/prices.csv"));
    for (os, gallery, definitions) in
        [("AKSUbuntu", UBUNTU_GALLERY, &UBUNTU[..]), ("AKSAzureLinux", AZURE_LINUX_GALLERY, &AZURE_LINUX[..])]
    {
        for definition in definitions {
            for (version, published) in VERSIONS {
                // Community galleries have nothing for FIPS.
                if !definition.to_ascii_lowercase().contains("fips") {
                    world.images.publish(gallery, definition, version, published);
                }
                world.images.publish_node_image(os, definition, version);
            }
        }
    }
    let settings = world.settings.clone();
    for resource in network(&settings).into_iter().chain(cluster(&settings)).chain(rights(&settings)) {
        world.put(resource);
    }
}

fn network(settings: &Settings) -> Vec<Value> {
    let location = &settings.location;
    let network = settings.node_id("Microsoft.Network/virtualNetworks", "aks-vnet-12345678");
    let subnet = json!({
        "id": settings.subnet_id(), "name": "aks-subnet",
        "properties": {"addressPrefix": "10.224.0.0/16", "provisioningState": "Succeeded"},
    });
    let balancer = |name: &str, pools: &[&str]| {
        let id = settings.node_id("Microsoft.Network/loadBalancers", name);
        let pools: Vec<Value> = pools
            .iter()
            .map(|pool| {
                json!({
                    "id": format!("{id}/backendAddressPools/{pool}"), "name": pool,
                    "properties": {"loadBalancerBackendAddresses": [], "provisioningState": "Succeeded"},
                })
            })
            .collect();
        json!({
            "id": id, "location": location,
            "properties": {"backendAddressPools": pools, "provisioningState": "Succeeded"},
        })
    };
    vec![
        json!({
            "id": network, "location": location,
            "properties": {
                "resourceGuid": "a519e60a-cac0-40b2-b883-084477fe6f5c",
                "addressSpace": {"addressPrefixes": ["10.224.0.0/12"]}, "subnets": [subnet],
                "provisioningState": "Succeeded",
            },
        }),
        subnet,
        json!({
            "id": settings.node_id("Microsoft.Network/networkSecurityGroups", "aks-agentpool-12345678-nsg"),
            "location": location, "properties": {"securityRules": [], "provisioningState": "Succeeded"},
        }),
        balancer("kubernetes", &["aksOutboundBackendPool", "kubernetes"]),
        balancer("kubernetes-internal", &["kubernetes"]),
        json!({
            "id": settings.node_id("Microsoft.Network/routeTables", "aks-agentpool-12345678-routetable"),
            "location": location, "properties": {"routes": [], "provisioningState": "Succeeded"},
        }),
    ]
}

fn cluster(settings: &Settings) -> Vec<Value> {
    let location = &settings.location;
    let id = settings.cluster_id();
    let identity = settings.node_id(
        "Microsoft.ManagedIdentity/userAssignedIdentities",
        &format!("{}-agentpool", settings.cluster),
    );
    let pool = |name: &str, mode: &str| {
        json!({
            "id": format!("{id}/agentPools/{name}"),
            "properties": {
                "mode": mode, "type": if mode == "Machines" { "VirtualMachines" } else { "VirtualMachineScaleSets" },
                "vmSize": "Standard_D2s_v3", "count": 1, "osType": "Linux", "osSKU": "Ubuntu",
                "orchestratorVersion": "1.34.2", "currentOrchestratorVersion": "1.34.2",
                "vnetSubnetID": settings.subnet_id(), "provisioningState": "Succeeded",
            },
        })
    };
    let (system, machines) = (pool("nodepool1", "System"), pool(&settings.machines_pool, "Machines"));
    let host = format!(
        "{}-{}.hcp.{location}.azmk8s.io",
        settings.cluster,
        &settings.subscription[..8.min(settings.subscription.len())]
    );
    let profile = json!({
        "name": "nodepool1", "count": 1, "vmSize": "Standard_D2s_v3", "mode": "System", "osType": "Linux",
        "vnetSubnetID": settings.subnet_id(), "maxPods": 250,
    });
    vec![
        json!({
            "id": identity, "location": location,
            "properties": {
                "clientId": "44444444-4444-4444-4444-444444444444", "principalId": "33333333-3333-3333-3333-333333333333",
                "tenantId": settings.tenant,
            },
        }),
        json!({
            "id": id, "location": location, "sku": {"name": "Base", "tier": "Standard"},
            "identity": {"type": "SystemAssigned", "principalId": "55555555-5555-5555-5555-555555555555", "tenantId": settings.tenant},
            "properties": {
                "provisioningState": "Succeeded", "powerState": {"code": "Running"}, "kubernetesVersion": "1.34",
                "currentKubernetesVersion": "1.34.2", "dnsPrefix": settings.cluster, "fqdn": host,
                "agentPoolProfiles": [profile], "nodeResourceGroup": settings.node_resource_group, "enableRBAC": true,
                "linuxProfile": {
                    "adminUsername": "azureuser", "ssh": {"publicKeys": [{"keyData": "ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB walk"}]},
                },
                "servicePrincipalProfile": {"clientId": "msi"},
                "networkProfile": {
                    "networkPlugin": "azure", "networkPluginMode": "overlay", "networkPolicy": "cilium",
                    "networkDataplane": "cilium", "loadBalancerSku": "standard", "outboundType": "loadBalancer",
                    "podCidr": "10.244.0.0/16", "serviceCidr": "10.0.0.0/16", "dnsServiceIP": "10.0.0.10",
                    "podCidrs": ["10.244.0.0/16"], "serviceCidrs": ["10.0.0.0/16"], "ipFamilies": ["IPv4"],
                },
                "identityProfile": {
                    "kubeletidentity": {
                        "resourceId": identity, "clientId": "44444444-4444-4444-4444-444444444444",
                        "objectId": "33333333-3333-3333-3333-333333333333",
                    },
                },
                "oidcIssuerProfile": {"enabled": true, "issuerURL": format!("https://{location}.oic.prod-aks.azure.com/{}/", settings.tenant)},
                "securityProfile": {"workloadIdentity": {"enabled": true}},
                "nodeProvisioningProfile": {"mode": "Manual"}, "disableLocalAccounts": false,
            },
        }),
        system,
        machines,
    ]
}

/// Who the controller is, and what it may do: the three roles that the walk-through gives it in the resource group of
/// the nodes, as far as they matter.
fn rights(settings: &Settings) -> Vec<Value> {
    let identity = settings.id(
        &settings.cluster_resource_group,
        "Microsoft.ManagedIdentity/userAssignedIdentities",
        "karpentermsi",
    );
    let role = |name: &str, actions: &[&str]| {
        let id = settings.node_id("Microsoft.Authorization/permissions", name);
        json!({"id": id, "actions": actions, "notActions": [], "dataActions": [], "notDataActions": []})
    };
    vec![
        json!({
            "id": identity, "location": settings.location,
            "properties": {
                "clientId": "66666666-6666-6666-6666-666666666666",
                "principalId": "77777777-7777-7777-7777-777777777777", "tenantId": settings.tenant,
            },
        }),
        role(
            "virtual-machine-contributor",
            &[
                "Microsoft.Authorization/*/read",
                "Microsoft.Compute/locations/*",
                "Microsoft.Compute/virtualMachines/*",
                "Microsoft.Compute/disks/write",
                "Microsoft.Compute/disks/read",
                "Microsoft.Compute/disks/delete",
            ],
        ),
        role("network-contributor", &["Microsoft.Authorization/*/read", "Microsoft.Network/*"]),
        role(
            "managed-identity-operator",
            &[
                "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
                "Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",
                "Microsoft.Authorization/*/read",
            ],
        ),
    ]
}
