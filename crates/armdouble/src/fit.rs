//! Whether a size can be what a virtual machine asks of it.

use serde_json::Value;

use crate::answer::Refusal;
use crate::skus::{self, capability, is_able};
use crate::world::{World, list, text};

/// The size of a machine, if the subscription gets it in that zone.
pub(crate) fn offered<'a>(world: &'a World, id: &str, size: &str, zone: &str) -> Result<&'a Value, Refusal> {
    let location = &world.settings.location;
    let Some(sku) = world.skus.find(location, size) else {
        return Err(Refusal::new(
            400,
            "InvalidParameter",
            format!("The value {size} provided for the VM size is not valid. The valid sizes in the current region are others."),
        )
        .target("vmSize"));
    };
    let is_zonal = world.skus.of(location).iter().any(|sku| !list(sku, "/locationInfo/0/zones").is_empty());
    if !zone.is_empty() && !is_zonal {
        return Err(Refusal::new(
            400,
            "AvailabilityZoneNotSupported",
            format!(
                "The zone(s) '{zone}' for resource '{id}' is not supported. The supported zones for location '{location}' are ''"
            ),
        ));
    }
    if !skus::is_offered(sku, location, zone) {
        return Err(Refusal::new(
            409,
            "SkuNotAvailable",
            format!(
                "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: {size}' is currently \
                 not available in location '{location}'. Please try another size or deploy to a different location or different \
                 zone. See https://aka.ms/azureskunotavailable for details."
            ),
        ));
    }
    Ok(sku)
}

/// Whether a size can do everything that a virtual machine asks for, with an image of this definition.
pub(crate) fn able(sku: &Value, machine: &Value, definition: &str) -> Result<(), Refusal> {
    let size = text(sku, "/name");
    let flag = |pointer: &str| machine.pointer(pointer).and_then(Value::as_bool) == Some(true);
    let refuse = |code: &str, message: String| Err(Refusal::new(400, code, message));
    if text(machine, "/properties/priority").eq_ignore_ascii_case("Spot") {
        if !is_able(sku, "LowPriorityCapable") {
            return Err(Refusal::new(
                409,
                "OperationNotAllowed",
                format!("The VM size '{size}' is not supported for creation of VMs with 'Spot' priority."),
            ));
        }
    } else if !machine["properties"]["evictionPolicy"].is_null() {
        let message = "Eviction policy can be set only on Azure Spot Virtual Machines.";
        return refuse("InvalidParameter", message.to_owned());
    }
    image(sku, definition)?;
    if flag("/properties/securityProfile/encryptionAtHost") && !is_able(sku, "EncryptionAtHostSupported") {
        let message = "'securityProfile.encryptionAtHost' is not supported for this VM size.".to_owned();
        return refuse("InvalidParameter", message);
    }
    let generations = capability(sku, "HyperVGenerations").unwrap_or_default();
    let wants_trusted_launch = text(machine, "/properties/securityProfile/securityType") == "TrustedLaunch";
    if wants_trusted_launch && (is_able(sku, "TrustedLaunchDisabled") || !generations.contains("V2")) {
        let message = format!("The selected VM size '{size}' does not support Trusted Launch.");
        return refuse("BadRequest", message);
    }
    if flag("/properties/additionalCapabilities/ultraSSDEnabled")
        && !has_ultra_disks(sku, text(machine, "/zones/0"))
    {
        let message = format!("The requested VM size '{size}' does not support UltraSSD in this place.");
        return refuse("InvalidParameter", message);
    }
    ephemeral_disk(sku, machine)
}

fn image(sku: &Value, definition: &str) -> Result<(), Refusal> {
    let (size, definition) = (text(sku, "/name"), definition.to_ascii_lowercase());
    let refuse = |message: String| Err(Refusal::new(400, "BadRequest", message));
    let generation = if definition.contains("gen2") { "V2" } else { "V1" };
    if !capability(sku, "HyperVGenerations").unwrap_or_default().contains(generation) {
        let number = generation.trim_start_matches('V');
        return refuse(format!(
            "The selected VM size '{size}' cannot boot Hypervisor Generation '{number}'."
        ));
    }
    let architecture = if definition.contains("arm64") { "Arm64" } else { "x64" };
    let has = capability(sku, "CpuArchitectureType").unwrap_or("x64");
    if !has.eq_ignore_ascii_case(architecture) {
        return refuse(format!(
            "Cannot create a VM of size '{size}' because this VM size only supports a CPU Architecture of '{has}', but an image \
             or disk with CPU Architecture '{architecture}' was given."
        ));
    }
    Ok(())
}

fn has_ultra_disks(sku: &Value, zone: &str) -> bool {
    if zone.is_empty() {
        return is_able(sku, "UltraSSDAvailable");
    }
    let details = list(sku, "/locationInfo").iter().flat_map(|each| list(each, "/zoneDetails"));
    details
        .filter(|each| list(each, "/name").iter().any(|name| name == zone))
        .any(|each| is_able(each, "UltraSSDAvailable"))
}

fn ephemeral_disk(sku: &Value, machine: &Value) -> Result<(), Refusal> {
    let disk = &machine["properties"]["storageProfile"]["osDisk"];
    if disk["diffDiskSettings"].is_null() {
        return Ok(());
    }
    let size = text(sku, "/name");
    let refuse = |message: String| Err(Refusal::new(400, "InvalidParameter", message).target("osDisk"));
    if text(disk, "/caching") != "ReadOnly" {
        return refuse("Ephemeral OS disks need the caching type 'ReadOnly'.".to_owned());
    }
    let number = |name: &str| capability(sku, name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let placement = text(disk, "/diffDiskSettings/placement");
    let bytes = match placement {
        "NvmeDisk" => number("NvmeDiskSizeInMiB") << 20,
        "ResourceDisk" => number("MaxResourceVolumeMB") << 20,
        _ => number("CachedDiskBytes"),
    };
    let wanted = disk["diskSizeGB"].as_u64().unwrap_or(0);
    if !is_able(sku, "EphemeralOSDiskSupported") || wanted > bytes / 1_000_000_000 {
        return refuse(format!(
            "OS disk of Ephemeral VM with size greater than {} GB is not allowed for VM size {size} when the DiffDiskPlacement is \
             {placement}.",
            bytes / 1_000_000_000
        ));
    }
    Ok(())
}
