//! What a virtual machine tells about the node that it is.

use std::sync::LazyLock;

use api::names::process::AZURE_PROVIDER_ID;
use api::names::tags::azure as names;
use api::names::values::capacity_type;
use jiff::Timestamp;
use regex::Regex;

use super::name::PREFIX;
use crate::arm::types::vm::{ImageReference, VirtualMachine};
use crate::tags::Tags;
use crate::zone::{self, NoLabel};

static RESOURCE_GROUP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(/subscriptions/[^/]+/resourceGroups/)([^/]+)(/.*)$")
        .expect("the pattern is a constant that compiles")
});

/// A machine that is a node, or becomes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The name of its claim, as far as the machine's own name tells it.
    pub name: String,
    /// By which Kubernetes knows it.
    pub provider_id: String,
    /// Its size.
    pub size: String,
    /// Its zone, as a label says it.
    pub zone: String,
    /// `on-demand` or `spot`.
    pub capacity_type: &'static str,
    /// What it was started from; empty if unknown.
    pub image_id: String,
    /// When it was made, if Azure says.
    pub created: Option<Timestamp>,
    /// Whether it is going away.
    pub is_deleting: bool,
    /// Its NodePool, if it has one.
    pub node_pool: Option<String>,
    /// Whether ultra disks can be attached.
    pub ultra_ssd: bool,
    /// Its tags.
    pub tags: Tags,
    /// The AKS machine that it is, if so.
    pub machine_id: Option<String>,
}

/// A machine that tells too little.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Something is missing.
    #[error("machine {name:?} has no {field}")]
    Missing {
        /// The machine.
        name: String,
        /// What is missing.
        field: &'static str,
    },
    /// Nobody knows where it is.
    #[error("machine {name:?}: {source}")]
    Zone {
        /// The machine.
        name: String,
        /// What is wrong.
        source: NoLabel,
    },
}

/// Reads a virtual machine. `location` counts where the machine does not say its own.
pub fn instance(machine: &VirtualMachine, location: &str) -> Result<Instance, Unreadable> {
    let name = machine.name.clone().unwrap_or_default();
    let missing = |field| Unreadable::Missing { name: name.clone(), field };
    let id = machine.id.as_deref().ok_or_else(|| missing("id"))?;
    if name.is_empty() {
        return Err(missing("name"));
    }
    let properties = machine.properties.as_ref().ok_or_else(|| missing("properties"))?;
    let size = properties.hardware_profile.as_ref().and_then(|profile| profile.vm_size.clone());
    let location = machine.location.as_deref().filter(|own| !own.is_empty()).unwrap_or(location);
    let zone = zone::from_azure(location, machine.zones.as_deref().unwrap_or_default())
        .map_err(|source| Unreadable::Zone { name: name.clone(), source })?;
    let tags = machine.tags.clone().unwrap_or_default();
    let image = properties.storage_profile.as_ref().and_then(|profile| profile.image_reference.as_ref());
    let capabilities = properties.additional_capabilities.as_ref();
    Ok(Instance {
        name: name.strip_prefix(PREFIX).unwrap_or(&name).to_owned(),
        provider_id: provider_id(id),
        size: size.ok_or_else(|| missing("size"))?,
        zone,
        capacity_type: capacity(properties.priority.as_deref()),
        image_id: image.map(image_id).unwrap_or_default(),
        created: properties.time_created.as_ref().and_then(|text| text.parse().ok()),
        is_deleting: is_deleting(properties.provisioning_state.as_deref()),
        node_pool: tags.get(names::NODEPOOL).cloned(),
        ultra_ssd: capabilities.and_then(|all| all.ultra_ssd_enabled).unwrap_or_default(),
        tags,
        machine_id: None,
    })
}

/// What can be said of a machine that tells too little: that it is there. Nobody knows its age, so that it is not
/// collected, and whoever looks for its provider ID does not take it to be gone.
pub fn unreadable(machine: &VirtualMachine) -> Option<Instance> {
    let name = machine.name.as_deref().unwrap_or_default();
    let tags = machine.tags.clone().unwrap_or_default();
    let state = machine.properties.as_ref().and_then(|properties| properties.provisioning_state.as_deref());
    Some(Instance {
        name: name.strip_prefix(PREFIX).unwrap_or(name).to_owned(),
        provider_id: provider_id(machine.id.as_deref()?),
        size: String::new(),
        zone: zone::REGIONAL.to_owned(),
        capacity_type: capacity_type::ON_DEMAND,
        image_id: String::new(),
        created: None,
        is_deleting: is_deleting(state),
        node_pool: tags.get(names::NODEPOOL).cloned(),
        ultra_ssd: false,
        tags,
        machine_id: None,
    })
}

/// How a machine is paid for; those that do not say it are on demand.
pub(crate) fn capacity(priority: Option<&str>) -> &'static str {
    if priority == Some("Spot") { capacity_type::SPOT } else { capacity_type::ON_DEMAND }
}

/// Whether a state says that something is going away.
pub(crate) fn is_deleting(state: Option<&str>) -> bool {
    state == Some("Deleting")
}

/// What a machine was started from: the first way to name it that there is.
fn image_id(image: &ImageReference) -> String {
    let ImageReference { id, community_gallery_image_id, shared_gallery_image_id, .. } = image;
    let gallery = [id, community_gallery_image_id, shared_gallery_image_id];
    let gallery = gallery.into_iter().flatten().find(|id| !id.is_empty());
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let market = [&image.publisher, &image.offer, &image.sku, &image.version];
    match gallery {
        Some(id) => id.clone(),
        None if market.iter().all(|part| part.is_none()) => String::new(),
        None => market.map(part).join(":"),
    }
}

/// The provider ID of a virtual machine, which has its resource group in small letters.
pub fn provider_id(resource_id: &str) -> String {
    match RESOURCE_GROUP.captures(resource_id).map(|parts| parts.extract::<3>().1) {
        Some([before, group, after]) => {
            format!("{AZURE_PROVIDER_ID}{before}{}{after}", group.to_ascii_lowercase())
        }
        None => format!("{AZURE_PROVIDER_ID}{resource_id}"),
    }
}

/// The name of the virtual machine with a provider ID.
pub fn vm_name_of(provider_id: &str) -> Option<&str> {
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)^azure:///subscriptions/.*/virtualMachines/([^/]+)$")
            .expect("the pattern is a constant that compiles")
    });
    Some(ID.captures(provider_id)?.get(1)?.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ID: &str =
        "/subscriptions/s/resourceGroups/MC_RG/providers/Microsoft.Compute/virtualMachines/aks-pool-a1b2c";

    fn machine() -> Value {
        json!({
            "id": ID, "name": "aks-pool-a1b2c", "location": "eastus", "zones": ["1"],
            "tags": {"karpenter.sh_nodepool": "pool"},
            "properties": {
                "hardwareProfile": {"vmSize": "Standard_D4s_v5"}, "priority": "Spot",
                "storageProfile": {"imageReference": {"communityGalleryImageId": "/CommunityGalleries/g"}},
                "timeCreated": "2026-01-02T03:04:05.123456+00:00", "provisioningState": "Succeeded",
                "additionalCapabilities": {"ultraSSDEnabled": true},
            },
        })
    }

    fn read(machine: Value) -> Result<Instance, Unreadable> {
        instance(&serde_json::from_value(machine).unwrap(), "eastus")
    }

    // azure.md 9: VM→NodeClaim
    #[test]
    fn a_machine_tells_everything_about_its_node() {
        let instance = read(machine()).unwrap();
        assert_eq!(
            instance,
            Instance {
                name: "pool-a1b2c".to_owned(),
                provider_id: "azure:///subscriptions/s/resourceGroups/mc_rg/providers/Microsoft.Compute/virtualMachines/aks-pool-a1b2c".to_owned(),
                size: "Standard_D4s_v5".to_owned(),
                zone: "eastus-1".to_owned(),
                capacity_type: "spot",
                image_id: "/CommunityGalleries/g".to_owned(),
                created: Some("2026-01-02T03:04:05.123456Z".parse().unwrap()),
                is_deleting: false,
                node_pool: Some("pool".to_owned()),
                ultra_ssd: true,
                tags: [("karpenter.sh_nodepool".to_owned(), "pool".to_owned())].into(),
                machine_id: None,
            }
        );
    }

    // azure.md 9, 25.8: missing timeCreated, Deleting; rows of the graph have nulls
    #[test]
    fn a_machine_need_not_tell_everything() {
        let instance = read(json!({
            "id": ID, "name": "other", "location": null, "zones": null, "tags": null, "identity": null,
            "properties": {"hardwareProfile": {"vmSize": "S"}, "provisioningState": "Deleting", "timeCreated": "x"},
        }))
        .unwrap();
        assert_eq!((instance.name.as_str(), instance.zone.as_str()), ("other", "0"));
        assert_eq!((instance.capacity_type, instance.created), ("on-demand", None));
        assert!(instance.is_deleting && instance.image_id.is_empty() && instance.node_pool.is_none());
    }

    // azure.md 5.1, 25.8
    #[test]
    fn a_machine_that_tells_too_little_is_named() {
        for (pointer, value, expected) in [
            ("/id", json!(null), "machine \"aks-pool-a1b2c\" has no id"),
            ("/name", json!(null), "machine \"\" has no name"),
            ("/properties", json!(null), "machine \"aks-pool-a1b2c\" has no properties"),
            ("/properties/hardwareProfile", json!(null), "machine \"aks-pool-a1b2c\" has no size"),
        ] {
            let mut machine = machine();
            *machine.pointer_mut(pointer).unwrap() = value;
            assert_eq!(read(machine).unwrap_err().to_string(), expected);
        }
        let mut machine = machine();
        machine["zones"] = json!(["1", "2"]);
        assert!(read(machine).unwrap_err().to_string().starts_with("machine \"aks-pool-a1b2c\": "));
    }

    // azure.md 9: imageID
    #[test]
    fn the_image_is_the_first_name_that_there_is() {
        let of = |image: Value| image_id(&serde_json::from_value(image).unwrap());
        assert_eq!(of(json!({"id": "/a", "communityGalleryImageId": "/b"})), "/a");
        assert_eq!(of(json!({"communityGalleryImageId": "/b", "sharedGalleryImageId": "/c"})), "/b");
        assert_eq!(of(json!({"id": "", "sharedGalleryImageId": "/c"})), "/c");
        assert_eq!(of(json!({"publisher": "p", "offer": "o", "sku": "s", "version": "v"})), "p:o:s:v");
        assert_eq!(of(json!({})), "");
    }

    // azure.md 9: provider ids
    #[test]
    fn provider_ids_have_the_resource_group_in_small_letters_and_end_with_the_machine() {
        let id = provider_id(ID);
        assert_eq!(vm_name_of(&id), Some("aks-pool-a1b2c"));
        for wrong in ["", "aws:///i-1", "azure:///subscriptions/s", &ID[1..]] {
            assert_eq!(vm_name_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_machine_that_tells_too_little_is_there_nevertheless() {
        let machine: VirtualMachine = serde_json::from_value(serde_json::json!({
            "id": "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/aks-a",
            "name": "aks-a", "zones": ["1", "2"], "tags": {"karpenter.sh_nodepool": "pool"},
            "properties": {"timeCreated": "2026-01-01T00:00:00Z"},
        }))
        .unwrap();
        assert!(instance(&machine, "eastus").is_err());
        let found = unreadable(&machine).unwrap();
        assert!(
            found
                .provider_id
                .ends_with("/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/aks-a")
        );
        assert_eq!((found.name.as_str(), found.node_pool.as_deref()), ("a", Some("pool")));
        assert_eq!(found.created, None, "it is never collected");
        assert_eq!(unreadable(&VirtualMachine::default()), None);
    }
}
