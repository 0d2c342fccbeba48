//! What a machine that exists tells: the node that it is, and whether it is the one that was to be made.

use api::names::tags::azure as names;

use crate::arm::types::machine::Machine;
use crate::arm::types::vm::VirtualMachine;
use crate::vm::{self, Instance, Unreadable};
use crate::zone;

/// Why a machine that exists is not that of a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// It tells too little.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It is that of another claim, whose name was shortened to the same. It must not be deleted.
    #[error(
        "AKS machine {machine:?} is that of NodeClaim {other:?} and not of {claim:?}: both names are shortened to the same"
    )]
    OtherClaim {
        /// The machine.
        machine: String,
        /// Whose it is.
        other: String,
        /// Whose it should have been.
        claim: String,
    },
}

/// Reads a machine. `location` is the cluster's.
pub fn instance(machine: &Machine, location: &str) -> Result<Instance, Unreadable> {
    let name = machine.name.clone().unwrap_or_default();
    let missing = |field| Unreadable::Missing { name: name.clone(), field };
    let properties = machine.properties.as_ref().ok_or_else(|| missing("properties"))?;
    let id = machine.id.clone().ok_or_else(|| missing("id"))?;
    let resource_id = properties.resource_id.as_deref().ok_or_else(|| missing("resourceId"))?;
    let size = properties.hardware.as_ref().and_then(|hardware| hardware.vm_size.clone());
    let zone = zone::from_azure(location, machine.zones.as_deref().unwrap_or_default())
        .map_err(|source| Unreadable::Zone { name: name.clone(), source })?;
    let tags = properties.tags.clone().unwrap_or_default();
    // AKS says the pool and the machine's own name.
    let own = name.rsplit('/').next().unwrap_or_default();
    let created = properties.status.as_ref().and_then(|status| status.creation_timestamp.as_ref());
    let ultra_ssd = properties.hardware.as_ref().and_then(|hardware| hardware.ultra_ssd_enabled);
    Ok(Instance {
        name: tags.get(names::AKS_MACHINE_NODE_CLAIM).map_or(own, String::as_str).to_owned(),
        provider_id: vm::provider_id(resource_id),
        size: size.ok_or_else(|| missing("vmSize"))?,
        zone,
        capacity_type: vm::capacity(properties.priority.as_deref()),
        image_id: properties.node_image_version.clone().unwrap_or_default(),
        created: created.and_then(|text| text.parse().ok()),
        is_deleting: vm::is_deleting(properties.provisioning_state.as_deref()),
        node_pool: tags.get(names::NODEPOOL).cloned(),
        ultra_ssd: ultra_ssd.unwrap_or_default(),
        tags,
        machine_id: Some(id),
    })
}

/// What can be said of a machine that tells too little: that it is there.
pub fn unreadable(machine: &Machine) -> Option<Instance> {
    let properties = machine.properties.as_ref()?;
    let as_vm = VirtualMachine {
        id: properties.resource_id.clone(),
        name: claim_of(machine).map(str::to_owned),
        tags: properties.tags.clone(),
        ..VirtualMachine::default()
    };
    let is_deleting = vm::is_deleting(properties.provisioning_state.as_deref());
    Some(Instance { machine_id: machine.id.clone(), is_deleting, ..vm::unreadable(&as_vm)? })
}

/// The claim that a machine was made for, if it says so.
pub fn claim_of(machine: &Machine) -> Option<&str> {
    let tags = machine.properties.as_ref()?.tags.as_ref()?;
    tags.get(names::AKS_MACHINE_NODE_CLAIM).map(String::as_str)
}

/// Whether a machine that exists is that of a claim, and all is known that the claim needs.
pub fn check_existing(machine: &Machine, claim: &str, location: &str) -> Result<Instance, Conflict> {
    let name = machine.name.clone().unwrap_or_default();
    let missing = |field| Unreadable::Missing { name: name.clone(), field };
    let properties = machine.properties.as_ref().ok_or_else(|| missing("properties"))?;
    let other = claim_of(machine).ok_or_else(|| missing("tag of its NodeClaim"))?.to_owned();
    if other != claim {
        return Err(Conflict::OtherClaim { machine: name, other, claim: claim.to_owned() });
    }
    let status = properties.status.as_ref().ok_or_else(|| missing("status"))?;
    status.creation_timestamp.as_ref().ok_or_else(|| missing("creationTimestamp"))?;
    properties.priority.as_ref().ok_or_else(|| missing("priority"))?;
    properties.node_image_version.as_ref().ok_or_else(|| missing("nodeImageVersion"))?;
    Ok(instance(machine, location)?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn machine() -> Value {
        json!({
            "id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/c/agentPools/p/machines/m",
            "name": "p/m", "zones": ["2"], "sku": {"unknown": 1},
            "properties": {
                "resourceId": "/subscriptions/s/resourceGroups/MC_RG/providers/Microsoft.Compute/virtualMachines/aks-p-m-12345678-vm",
                "hardware": {"vmSize": "Standard_D2s_v5", "ultraSsdEnabled": true, "new": 2},
                "priority": "Spot", "nodeImageVersion": "AKSUbuntu-2204gen2containerd-1", "eTag": "x",
                "tags": {"karpenter.sh_nodepool": "pool", "karpenter.azure.com_aksmachine_nodeclaim": "pool-a1b2c"},
                "provisioningState": "Succeeded", "status": {"creationTimestamp": "2026-01-02T03:04:05Z"},
                "kubernetes": {"kubeletConfig": {"seLinux": true}}, "later": {"a": [1]},
            },
        })
    }

    fn of(machine: Value) -> Machine {
        serde_json::from_value(machine).unwrap()
    }

    // azure.md 9, 11.2
    #[test]
    fn a_machine_tells_everything_about_its_node() {
        let read = check_existing(&of(machine()), "pool-a1b2c", "eastus").unwrap();
        assert_eq!(read.name, "pool-a1b2c");
        assert_eq!(
            read.provider_id,
            "azure:///subscriptions/s/resourceGroups/mc_rg/providers/Microsoft.Compute/virtualMachines/aks-p-m-12345678-vm"
        );
        assert_eq!((read.zone.as_str(), read.capacity_type), ("eastus-2", "spot"));
        assert_eq!(read.image_id, "AKSUbuntu-2204gen2containerd-1");
        assert!(
            read.ultra_ssd
                && !read.is_deleting
                && read.machine_id.is_some_and(|id| id.ends_with("/machines/m"))
        );
    }

    // azure.md 11.2 step 1: what a reused machine must have
    #[test]
    fn a_machine_that_tells_too_little_is_not_used_again() {
        for (pointer, field) in [
            ("/id", "id"),
            ("/properties", "properties"),
            ("/properties/status", "status"),
            ("/properties/hardware", "vmSize"),
            ("/properties/priority", "priority"),
            ("/properties/resourceId", "resourceId"),
            ("/properties/nodeImageVersion", "nodeImageVersion"),
            ("/properties/status/creationTimestamp", "creationTimestamp"),
            ("/properties/tags/karpenter.azure.com_aksmachine_nodeclaim", "tag of its NodeClaim"),
        ] {
            let mut machine = machine();
            let parent = machine.pointer_mut(pointer.rsplit_once('/').unwrap().0).unwrap();
            parent.as_object_mut().unwrap().remove(pointer.rsplit_once('/').unwrap().1);
            let error = check_existing(&of(machine), "pool-a1b2c", "eastus").unwrap_err();
            assert_eq!(error.to_string(), format!("machine \"p/m\" has no {field}"));
        }
    }

    // azure.md 11.2, 28.19: hash collision
    #[test]
    fn the_machine_of_another_claim_is_told_from_ones_own() {
        let error = check_existing(&of(machine()), "other", "eastus").unwrap_err();
        assert!(matches!(&error, Conflict::OtherClaim { other, .. } if other == "pool-a1b2c"), "{error}");
    }

    // azure.md 11.5: missing priority is read as Regular
    #[test]
    fn a_machine_that_does_not_say_how_it_is_paid_for_is_on_demand() {
        let mut machine = machine();
        machine["properties"].as_object_mut().unwrap().remove("priority");
        assert_eq!(instance(&of(machine), "eastus").unwrap().capacity_type, "on-demand");
    }

    // azure.md 11.6: update is a full PUT of the fetched object
    #[test]
    fn what_is_not_known_about_a_machine_is_sent_back() {
        assert_eq!(serde_json::to_value(of(machine())).unwrap(), machine());
    }
}
