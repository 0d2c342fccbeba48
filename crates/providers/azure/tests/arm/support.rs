//! A double with a client, and what is put into it.

use std::collections::BTreeMap;
use std::sync::Arc;

use armdouble::Double;
use azure::arm::types::bootstrap::{BootstrappingRequest, ProvisionHelperValues, ProvisionProfile};
use azure::arm::types::extension::Extension;
use azure::arm::types::machine::{BatchMachine, BatchPutMachine, Machine};
use azure::arm::types::nic::NetworkInterface;
use azure::arm::types::vm::VirtualMachine;
use azure::arm::{Client, MachinePool, Setup};
use azure::auth::FixedToken;
use clock::Clock;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Where everything is.
pub(crate) const LOCATION: &str = "southcentralus";
const SUBNET: &str = "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/MC_walk_walk_southcentralus/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet";

/// A double and its client.
pub(crate) struct World {
    pub(crate) double: Double,
    pub(crate) client: Client,
    /// The resource group of the nodes.
    pub(crate) group: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let double = Double::new(clock());
        let group = double.change(|azure| azure.settings.node_resource_group.clone());
        Self { client: Client::new(setup(&double)), double, group }
    }

    /// What a client of this double needs.
    pub(crate) fn setup(&self) -> Setup {
        setup(&self.double)
    }
}

fn clock() -> Clock {
    Clock::starting_at(Timestamp::from_second(1_794_830_400).expect("a second of this century"))
}

fn setup(double: &Double) -> Setup {
    let subscription = double.change(|azure| azure.settings.subscription.clone());
    Setup {
        clock: clock(),
        version: "1.2.3".to_owned(),
        ..Setup::new(Arc::new(double.clone()), Arc::new(FixedToken::new("token")), &subscription)
    }
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("tests write what Azure reads")
}

pub(crate) fn tags(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn interface(name: &str) -> NetworkInterface {
    read(json!({
        "location": LOCATION,
        "tags": {"karpenter.sh_nodepool": "p"},
        "properties": {
            "ipConfigurations": [{
                "name": name,
                "properties": {"primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": {"id": SUBNET}},
            }],
            "enableAcceleratedNetworking": true,
            "enableIPForwarding": false,
        },
    }))
}

pub(crate) fn machine(double: &Double, name: &str) -> VirtualMachine {
    let interface =
        double.change(|azure| azure.settings.node_id("Microsoft.Network/networkInterfaces", name));
    let image = "/CommunityGalleries/AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2/images/2204gen2containerd/versions/202606.01.0";
    read(json!({
        "location": LOCATION,
        "zones": ["1"],
        "tags": {"karpenter.sh_nodepool": "p"},
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_D2s_v3"},
            "storageProfile": {
                "osDisk": {"name": name, "diskSizeGB": 128, "createOption": "FromImage", "deleteOption": "Delete"},
                "imageReference": {"communityGalleryImageId": image},
            },
            "networkProfile": {"networkInterfaces": [
                {"id": interface, "properties": {"primary": true, "deleteOption": "Delete"}},
            ]},
            "osProfile": {
                "adminUsername": "azureuser",
                "computerName": name,
                "customData": "IyEvYmluL2Jhc2gK",
                "linuxConfiguration": {
                    "disablePasswordAuthentication": true,
                    "ssh": {"publicKeys": [{"path": "/home/azureuser/.ssh/authorized_keys", "keyData": "ssh-rsa AAAA"}]},
                },
            },
            "priority": "Regular",
        },
    }))
}

pub(crate) fn billing() -> Extension {
    read(json!({
        "location": LOCATION,
        "tags": {"karpenter.sh_nodepool": "p"},
        "properties": {
            "publisher": "Microsoft.AKS",
            "type": "Compute.AKS.Linux.Billing",
            "typeHandlerVersion": "1.0",
            "autoUpgradeMinorVersion": true,
            "settings": {},
        },
    }))
}

pub(crate) fn pool(double: &Double) -> MachinePool {
    let settings = double.change(|azure| azure.settings.clone());
    MachinePool {
        group: settings.cluster_resource_group,
        cluster: settings.cluster,
        pool: settings.machines_pool,
    }
}

pub(crate) fn aks_machine() -> Machine {
    read(json!({
        "zones": ["1"],
        "properties": {
            "hardware": {"vmSize": "Standard_D2s_v3", "ultraSsdEnabled": false},
            "operatingSystem": {
                "osType": "Linux", "osSKU": "Ubuntu2204", "osDiskSizeGB": 128, "osDiskType": "Managed", "enableFIPS": false,
            },
            "kubernetes": {"orchestratorVersion": "1.33.0", "nodeTaints": []},
            "mode": "User",
            "priority": "Regular",
            "nodeImageVersion": "AKSUbuntu-2204gen2containerd-202606.01.0",
            "tags": {"karpenter.sh_nodepool": "p"},
        },
    }))
}

pub(crate) fn batch(names: &[&str]) -> BatchPutMachine {
    let one = |name: &&str| BatchMachine {
        machine_name: (*name).to_owned(),
        zones: vec!["1".to_owned()],
        tags: tags(&[("karpenter.azure.com_aksmachine_nodeclaim", name)]),
    };
    BatchPutMachine { batch_machines: names.iter().map(one).collect() }
}

pub(crate) fn profile() -> ProvisionProfile {
    ProvisionProfile { vm_size: Some("Standard_D2s_v3".to_owned()), ..ProvisionProfile::default() }
}

pub(crate) fn values() -> BootstrappingRequest {
    let values = ProvisionHelperValues { sku_cpu: Some(2), sku_memory: Some(8) };
    BootstrappingRequest { provision_profile: None, provision_helper_values: Some(values) }
}
