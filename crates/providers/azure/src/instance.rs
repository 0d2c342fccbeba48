//! A machine as it was read from Azure, whichever of its interfaces made it. Entry: [`Instance::of_vm`],
//! [`Instance::of_machine`], [`node_claim`].

pub mod node_claim;
pub mod provider_id;

use std::collections::BTreeMap;

use api::names::tags::azure as tags;
use api::names::values::capacity_type;
use jiff::Timestamp;

use crate::arm::types::machine::Machine;
use crate::arm::types::vm::{ImageReference, VirtualMachine};
use crate::zone;

pub use node_claim::node_claim;

/// Where Azure is with a machine that is on its way out.
const DELETING: &str = "Deleting";
/// What Azure calls machines that it may take away.
const SPOT: &str = "Spot";

/// A machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// The name of its virtual machine, in lower case.
    pub name: String,
    /// The NodeClaim that it was made for; empty if not known.
    pub claim: String,
    /// How Nodes and claims name it.
    pub provider_id: String,
    /// Its size.
    pub size: String,
    /// Its zone, as a label says it.
    pub zone: String,
    /// `on-demand` or `spot`.
    pub capacity_type: &'static str,
    /// Its image.
    pub image_id: String,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whether it is on its way out.
    pub is_deleting: bool,
    /// Whether ultra disks can be attached.
    pub ultra_ssd: bool,
    /// The resource ID of the AKS machine that it is, if it is one.
    pub machine_id: Option<String>,
}

/// An answer lacks what every machine has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading machine {name:?}, {field} is {value}: {expected}")]
pub struct Unreadable {
    /// Which machine, as far as it is known.
    pub name: String,
    /// Which part of it.
    pub field: &'static str,
    /// What was there.
    pub value: String,
    /// What should be there.
    pub expected: String,
}

fn missing(name: &str, field: &'static str) -> Unreadable {
    Unreadable { name: name.to_owned(), field, value: "absent".to_owned(), expected: "expected a value".to_owned() }
}

/// The zone of a machine, as labels say it.
fn zone_label(name: &str, zones: &[String], location: &str) -> Result<String, Unreadable> {
    zone::from_azure(location, zones).map_err(|error| Unreadable {
        name: name.to_owned(),
        field: "zones",
        value: format!("{zones:?}"),
        expected: error.to_string(),
    })
}

fn image(reference: &ImageReference) -> String {
    let ImageReference { id, community_gallery_image_id, shared_gallery_image_id, .. } = reference;
    let known = [id, community_gallery_image_id, shared_gallery_image_id].into_iter().flatten();
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let ImageReference { publisher, offer, sku, version, .. } = reference;
    known.into_iter().find(|id| !id.is_empty()).cloned().unwrap_or_else(|| {
        [publisher, offer, sku, version].map(part).join(":")
    })
}

const fn kind(is_spot: bool) -> &'static str {
    if is_spot { capacity_type::SPOT } else { capacity_type::ON_DEMAND }
}

impl Instance {
    /// A virtual machine, as it was read or as a row of the resource graph.
    pub fn of_vm(vm: &VirtualMachine) -> Result<Self, Unreadable> {
        let name = vm.name.as_deref().unwrap_or_default();
        let id = vm.id.as_deref().filter(|id| !id.is_empty()).ok_or_else(|| missing(name, "id"))?;
        // The graph writes the names of resources in any case; Nodes have them in lower case.
        let name = provider_id::last_part(id).to_lowercase();
        if vm.name.as_deref().is_none_or(str::is_empty) {
            return Err(missing(&name, "name"));
        }
        let properties = vm.properties.as_ref().ok_or_else(|| missing(&name, "properties"))?;
        let size = properties.hardware_profile.as_ref().and_then(|hardware| hardware.vm_size.clone());
        let image = properties.storage_profile.as_ref().and_then(|storage| storage.image_reference.as_ref());
        let zones = vm.zones.as_deref().unwrap_or_default();
        let capabilities = properties.additional_capabilities.as_ref();
        Ok(Self {
            claim: name.strip_prefix("aks-").unwrap_or(&name).to_owned(),
            provider_id: provider_id::of(id),
            size: size.ok_or_else(|| missing(&name, "properties.hardwareProfile.vmSize"))?,
            zone: zone_label(&name, zones, vm.location.as_deref().unwrap_or_default())?,
            capacity_type: kind(properties.priority.as_deref() == Some(SPOT)),
            image_id: image.map(self::image).unwrap_or_default(),
            tags: vm.tags.clone().unwrap_or_default(),
            created: properties.time_created.as_deref().and_then(|time| time.parse().ok()),
            is_deleting: properties.provisioning_state.as_deref() == Some(DELETING),
            ultra_ssd: capabilities.and_then(|all| all.ultra_ssd_enabled).unwrap_or_default(),
            machine_id: None,
            name,
        })
    }

    /// A machine of AKS. It has no location of its own: it is in that of its cluster.
    pub fn of_machine(machine: &Machine, location: &str) -> Result<Self, Unreadable> {
        let name = machine.name.as_deref().unwrap_or_default();
        let id = machine.id.as_deref().filter(|id| !id.is_empty()).ok_or_else(|| missing(name, "id"))?;
        let name = provider_id::last_part(id);
        let properties = machine.properties.as_ref().ok_or_else(|| missing(name, "properties"))?;
        let vm = properties.resource_id.as_deref().filter(|id| !id.is_empty());
        let vm = vm.ok_or_else(|| missing(name, "properties.resourceId"))?;
        let size = properties.hardware.as_ref().and_then(|hardware| hardware.vm_size.clone());
        let tags = properties.tags.clone().unwrap_or_default();
        let status = properties.status.as_ref();
        let zones = machine.zones.as_deref().unwrap_or_default();
        Ok(Self {
            name: provider_id::last_part(vm).to_lowercase(),
            claim: tags.get(tags::AKS_MACHINE_NODE_CLAIM).cloned().unwrap_or_default(),
            provider_id: provider_id::of(vm),
            size: size.ok_or_else(|| missing(name, "properties.hardware.vmSize"))?,
            zone: zone_label(name, zones, location)?,
            capacity_type: kind(properties.priority.as_deref() == Some(SPOT)),
            image_id: properties.node_image_version.clone().unwrap_or_default(),
            created: status
                .and_then(|status| status.creation_timestamp.as_deref())
                .and_then(|time| time.parse().ok()),
            is_deleting: properties.provisioning_state.as_deref() == Some(DELETING),
            ultra_ssd: properties
                .hardware
                .as_ref()
                .and_then(|hardware| hardware.ultra_ssd_enabled)
                .unwrap_or_default(),
            machine_id: Some(id.to_owned()),
            tags,
        })
    }

    /// The NodePool that it was made for.
    pub fn node_pool(&self) -> Option<&str> {
        self.tags.get(tags::NODEPOOL).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn vm(change: impl FnOnce(&mut Value)) -> Result<Instance, Unreadable> {
        let mut vm = json!({
            "id": "/subscriptions/S/resourceGroups/MC_Group/providers/Microsoft.Compute/virtualMachines/aks-Pool-x1",
            "name": "aks-pool-x1", "location": "WestUS2", "zones": ["2"],
            "tags": {"karpenter.sh_nodepool": "pool"},
            "properties": {
                "hardwareProfile": {"vmSize": "Standard_D2s_v5"}, "priority": "Spot",
                "timeCreated": "2026-01-02T03:04:05.123Z", "provisioningState": "Succeeded",
                "storageProfile": {"imageReference": {"communityGalleryImageId": "/CommunityGalleries/g/images/i"}},
                "additionalCapabilities": {"ultraSSDEnabled": true},
            },
        });
        change(&mut vm);
        Instance::of_vm(&serde_json::from_value(vm).unwrap())
    }

    // azure.md 9, 10.6: VM→NodeClaim, last id segment lower-cased
    #[test]
    fn a_virtual_machine_is_read_into_what_claims_need() {
        let found = vm(|_| ()).unwrap();
        let id = "azure:///subscriptions/S/resourceGroups/mc_group/providers/Microsoft.Compute/virtualMachines/aks-pool-x1";
        assert_eq!((found.provider_id.as_str(), found.name.as_str()), (id, "aks-pool-x1"));
        assert_eq!((found.claim.as_str(), found.zone.as_str()), ("pool-x1", "westus2-2"));
        assert_eq!((found.size.as_str(), found.capacity_type), ("Standard_D2s_v5", "spot"));
        assert_eq!(found.image_id, "/CommunityGalleries/g/images/i");
        assert!(found.ultra_ssd && !found.is_deleting && found.created.is_some());
        assert_eq!(found.node_pool(), Some("pool"));
    }

    // azure.md 9: imageID; 25.8: VM missing timeCreated
    #[test]
    fn images_are_named_by_the_first_that_is_known() {
        let of = |reference: Value| {
            let change = |vm: &mut Value| vm["properties"]["storageProfile"]["imageReference"] = reference;
            vm(change).unwrap().image_id
        };
        assert_eq!(of(json!({"id": "a", "communityGalleryImageId": "b"})), "a");
        assert_eq!(of(json!({"sharedGalleryImageId": "c"})), "c");
        assert_eq!(of(json!({"publisher": "p", "offer": "o", "sku": "s", "version": "v"})), "p:o:s:v");
        let without = vm(|vm| vm["properties"]["timeCreated"] = Value::Null).unwrap();
        assert_eq!(without.created, None);
    }

    // azure.md 5.1: zones from ARM; 25.8: rows without id or name
    #[test]
    fn what_every_machine_has_must_be_there() {
        let text = |change: fn(&mut Value)| vm(change).unwrap_err().to_string();
        assert_eq!(text(|vm| vm["id"] = Value::Null), r#"reading machine "aks-pool-x1", id is absent: expected a value"#);
        assert!(text(|vm| vm["name"] = Value::Null).contains("name is absent"));
        assert!(text(|vm| vm["zones"] = json!(["1", "2"])).contains("expected one at most"));
        assert!(text(|vm| vm["location"] = "".into()).contains("its location is empty"));
        assert_eq!(vm(|vm| vm["zones"] = json!([])).unwrap().zone, "0");
        assert!(vm(|vm| vm["properties"]["provisioningState"] = "Deleting".into()).unwrap().is_deleting);
    }

    // azure.md 11.2, 11.5: missing priority is Regular
    #[test]
    fn a_machine_of_aks_is_known_by_its_virtual_machine_and_its_claim_by_a_tag() {
        let machine = json!({
            "id": "/subscriptions/s/resourceGroups/c/providers/Microsoft.ContainerService/managedClusters/k/agentPools/p/machines/m",
            "name": "p/m", "zones": [],
            "properties": {
                "resourceId": "/subscriptions/s/resourceGroups/MC/providers/Microsoft.Compute/virtualMachines/aks-p-m-12345678-vm",
                "hardware": {"vmSize": "Standard_D2s_v5"}, "nodeImageVersion": "AKSUbuntu-2204-1",
                "tags": {"karpenter.azure.com_aksmachine_nodeclaim": "claim-1"},
                "status": {"creationTimestamp": "2026-01-02T03:04:05Z"},
            },
        });
        let found = Instance::of_machine(&serde_json::from_value(machine).unwrap(), "westus2").unwrap();
        assert_eq!((found.name.as_str(), found.claim.as_str()), ("aks-p-m-12345678-vm", "claim-1"));
        assert_eq!((found.capacity_type, found.zone.as_str()), ("on-demand", "0"));
        assert!(found.machine_id.is_some_and(|id| id.ends_with("/machines/m")));
        assert!(found.provider_id.ends_with("/resourceGroups/mc/providers/Microsoft.Compute/virtualMachines/aks-p-m-12345678-vm"));
    }
}
