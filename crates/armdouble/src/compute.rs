//! Virtual machines: what is checked, what comes with them, and what goes with them.
//!
//! ```text
//!   PUT ──► Creating ──► Succeeded ──PATCH──► Updating ──► Succeeded
//!              │  └─(fails)─► Failed                           │
//!              └───────────────── DELETE ◄─────────────────────┘
//!                                   │
//!                                Deleting ──► gone, with its extensions, and what has deleteOption Delete
//! ```

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Refusal};
use crate::bodies;
use crate::call::Call;
use crate::checks;
use crate::fit;
use crate::gallery;
use crate::operations::Effect;
use crate::others;
use crate::route::Kind;
use crate::settings::Reservation;
use crate::state::{Begin, State};
use crate::world::{World, list, text};

/// What can not be changed once a virtual machine is there.
const FIXED: [(&str, &str); 8] = [
    ("/zones", "zones"),
    ("/properties/priority", "priority"),
    ("/properties/evictionPolicy", "evictionPolicy"),
    ("/properties/osProfile/adminUsername", "osProfile.adminUsername"),
    ("/properties/osProfile/computerName", "osProfile.computerName"),
    ("/properties/osProfile/customData", "osProfile.customData"),
    ("/properties/storageProfile/imageReference", "imageReference"),
    ("/properties/storageProfile/osDisk/name", "osDisk.name"),
];
const DISKS: &str = "Microsoft.Compute/disks";

pub(crate) fn put(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::VirtualMachine, "VirtualMachine", &body)?;
    checks::tags(&body)?;
    checks::location(&state.world, &body)?;
    match state.world.get(&call.route.id).cloned() {
        Some(existing) => update(state, call, &existing, body),
        None => create(state, call, body),
    }
}

fn update(state: &mut State, call: &Call, existing: &Value, body: Value) -> Result<Answer, Refusal> {
    not_going(call, existing, "Update")?;
    let of = |resource: &Value, pointer: &str| {
        let value = resource.pointer(pointer).cloned().unwrap_or(Value::Null);
        // No zone and an empty list of zones are the same, and so is no priority and the usual one.
        if value == json!([]) || value == "Regular" { Value::Null } else { value }
    };
    for (pointer, name) in FIXED {
        if of(existing, pointer) != of(&body, pointer) {
            return Err(Refusal::new(
                409,
                "PropertyChangeNotAllowed",
                format!("Changing property '{name}' is not allowed."),
            )
            .target(name));
        }
    }
    let mut resource = body;
    for read_only in ["vmId", "timeCreated", "storageProfile"] {
        resource["properties"][read_only] = existing["properties"][read_only].clone();
    }
    finish(&mut state.world, call, &mut resource, "Updating");
    state.world.put(resource);
    begin(state, call, Effect::Settle, false)
}

fn create(state: &mut State, call: &Call, body: Value) -> Result<Answer, Refusal> {
    let world = &mut state.world;
    let interfaces: Vec<String> = list(&body, "/properties/networkProfile/networkInterfaces")
        .iter()
        .map(|each| text(each, "/id").to_owned())
        .collect();
    attachable(world, &call.route.id, &interfaces)?;
    let zone = text(&body, "/zones/0");
    let sku =
        fit::offered(world, &call.route.id, text(&body, "/properties/hardwareProfile/vmSize"), zone)?.clone();
    let auxiliary =
        call.header("x-ms-authorization-auxiliary").and_then(|value| value.strip_prefix("Bearer "));
    let has_token = auxiliary.is_some_and(|token| !crate::tokens::has_expired(token, call.now));
    let definition =
        gallery::find(world, &body["properties"]["storageProfile"]["imageReference"], has_token)?;
    fit::able(&sku, &body, &definition)?;
    accelerated(world, &sku, &interfaces)?;
    let is_spot = text(&body, "/properties/priority").eq_ignore_ascii_case("Spot");
    let location = world.settings.location.clone();
    if let Err(refusal) = world.quota.check(&sku, is_spot, &location) {
        refused(world, call);
        return Err(refusal);
    }
    world.quota.take(&call.route.id, &sku, is_spot);

    let mut resource = body;
    resource["properties"]["vmId"] = json!(world.uuid());
    resource["properties"]["timeCreated"] = json!(world.now.to_string());
    make_disk(world, call, &mut resource);
    finish(world, call, &mut resource, "Creating");
    for interface in &interfaces {
        let machine = json!({"id": call.route.id});
        world.change(interface, |interface| interface["properties"]["virtualMachine"] = machine);
    }
    world.put(resource);
    begin(state, call, Effect::Settle, true)
}

/// Network interfaces must be there, and be nobody else's.
fn attachable(world: &World, id: &str, interfaces: &[String]) -> Result<(), Refusal> {
    if interfaces.is_empty() {
        return Err(Refusal::new(
            400,
            "InvalidParameter",
            "Required parameter 'networkProfile' is missing (null).",
        )
        .target("networkProfile"));
    }
    for interface in interfaces {
        let Some(found) = world.get(interface) else {
            return Err(Refusal::new(
                400,
                "InvalidResourceReference",
                format!(
                    "Resource {interface} referenced by resource {id} was not found. Please make sure that the referenced \
                     resource exists, and that both resources are in the same region."
                ),
            ));
        };
        let owner = text(found, "/properties/virtualMachine/id");
        if !owner.is_empty() && !owner.eq_ignore_ascii_case(id) {
            return Err(Refusal::new(
                400,
                "NicInUse",
                format!("Network Interface {interface} is used by existing resource {owner}."),
            ));
        }
        let is_strict = world.settings.refused_interfaces == Reservation::Strict;
        if let Some(owner) =
            world.reserved(interface).filter(|owner| is_strict || !owner.eq_ignore_ascii_case(id))
        {
            return Err(crate::network::kept(owner));
        }
    }
    Ok(())
}

fn accelerated(world: &World, sku: &Value, interfaces: &[String]) -> Result<(), Refusal> {
    let wants = |id: &String| {
        world.get(id).and_then(|each| each["properties"]["enableAcceleratedNetworking"].as_bool())
            == Some(true)
    };
    if interfaces.iter().any(wants) && !crate::skus::is_able(sku, "AcceleratedNetworkingEnabled") {
        return Err(Refusal::new(
            400,
            "VMSizeIsNotPermittedToEnableAcceleratedNetworking",
            format!(
                "The specified VM size {} is not permitted to enable accelerated networking.",
                text(sku, "/name")
            ),
        ));
    }
    Ok(())
}

/// The disk that comes with a virtual machine; one without a name gets one.
fn make_disk(world: &mut World, call: &Call, resource: &mut Value) {
    let disk = &mut resource["properties"]["storageProfile"]["osDisk"];
    if disk["name"].is_null() {
        disk["name"] = json!(format!("{}_OsDisk_1", call.route.name()));
    }
    let name = disk["name"].as_str().unwrap_or_default();
    let id = world.settings.id(call.route.group(), DISKS, name);
    disk["managedDisk"]["id"] = json!(id);
    if disk["managedDisk"]["storageAccountType"].is_null() {
        disk["managedDisk"]["storageAccountType"] = json!("Premium_LRS");
    }
    disk["osType"] = json!("Linux");
    if disk["deleteOption"].is_null() {
        disk["deleteOption"] = json!("Detach");
    }
    let made = json!({
        "id": id, "location": world.settings.location, "managedBy": call.route.id,
        "properties": {"diskSizeGB": disk["diskSizeGB"], "provisioningState": "Succeeded"},
    });
    world.put(made);
}

fn finish(world: &mut World, call: &Call, resource: &mut Value, state: &str) {
    resource["id"] = json!(call.route.id);
    resource["name"] = json!(call.route.name());
    resource["type"] = json!(call.route.resource_type);
    resource["etag"] = json!(format!("\"{}\"", world.uuid()));
    resource["properties"]["provisioningState"] = json!(state);
    if let Some(identities) =
        resource.pointer_mut("/identity/userAssignedIdentities").and_then(Value::as_object_mut)
    {
        identities.values_mut().for_each(|identity| *identity = described());
    }
}

/// What Azure says about an identity.
fn described() -> Value {
    json!({
        "principalId": "33333333-3333-3333-3333-333333333333", "clientId": "44444444-4444-4444-4444-444444444444",
    })
}

pub(crate) fn patch(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::VirtualMachine, "VirtualMachineUpdate", &body)?;
    checks::tags(&body)?;
    let existing = state.world.get(&call.route.id).cloned().ok_or_else(|| others::missing(call))?;
    not_going(call, &existing, "Update")?;
    let mut resource = existing;
    if let Some(tags) = body.get("tags").filter(|tags| !tags.is_null()) {
        resource["tags"] = tags.clone();
    }
    if let Some(identity) = body.get("identity").filter(|identity| !identity.is_null()) {
        merge_identity(&mut resource, identity);
    }
    if let Some(properties) = body["properties"].as_object() {
        merge(&mut resource["properties"], properties);
    }
    finish(&mut state.world, call, &mut resource, "Updating");
    state.world.put(resource);
    begin(state, call, Effect::Settle, false)
}

/// Identities that are named are added; those that are null are taken away; the others stay.
fn merge_identity(resource: &mut Value, change: &Value) {
    if !resource["identity"].is_object() {
        resource["identity"] = json!({});
    }
    let identity = &mut resource["identity"];
    if let Some(kind) = change.get("type") {
        identity["type"] = kind.clone();
    }
    let Some(named) = change["userAssignedIdentities"].as_object() else { return };
    if !identity["userAssignedIdentities"].is_object() {
        identity["userAssignedIdentities"] = json!({});
    }
    let Some(all) = identity["userAssignedIdentities"].as_object_mut() else { return };
    for (id, value) in named {
        all.retain(|each, _| !each.eq_ignore_ascii_case(id));
        if !value.is_null() {
            all.insert(id.clone(), described());
        }
    }
}

fn merge(into: &mut Value, change: &Map<String, Value>) {
    for (name, value) in change {
        match value.as_object() {
            Some(object) if into[name].is_object() => merge(&mut into[name], object),
            _ => into[name] = value.clone(),
        }
    }
}

pub(crate) fn delete(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    if state.world.get(&call.route.id).is_none() {
        return Ok(Answer::empty(204));
    }
    state
        .world
        .change(&call.route.id, |resource| resource["properties"]["provisioningState"] = json!("Deleting"));
    begin(state, call, Effect::Remove, false)
}

/// A virtual machine that goes takes along what is only there for it.
pub(crate) fn removed(world: &mut World, id: &str) {
    let Some(machine) = world.remove(id) else { return };
    let machine_id = text(&machine, "/id").to_owned();
    world.quota.release(&machine_id);
    for part in world.parts(Kind::Extension, &machine_id) {
        world.remove(&part);
    }
    for interface in list(&machine, "/properties/networkProfile/networkInterfaces") {
        let interface_id = text(interface, "/id");
        if text(interface, "/properties/deleteOption") == "Delete" {
            world.remove(interface_id);
            continue;
        }
        world.change(interface_id, |interface| {
            if let Some(properties) = interface["properties"].as_object_mut() {
                properties.remove("virtualMachine");
            }
        });
        world.reserve(interface_id, &machine_id);
    }
    let disk = &machine["properties"]["storageProfile"]["osDisk"];
    let disk_id = text(disk, "/managedDisk/id");
    if text(disk, "/deleteOption") == "Delete" {
        world.remove(disk_id);
    } else {
        world.change(disk_id, |disk| disk["managedBy"] = Value::Null);
    }
}

/// A virtual machine that was refused may keep its network interfaces for a while.
pub(crate) fn refused(world: &mut World, call: &Call) {
    let is_create = call.route.kind == Kind::VirtualMachine && call.method == http::Method::PUT;
    if !is_create || world.settings.refused_interfaces == Reservation::None {
        return;
    }
    let body = call.json().unwrap_or_default();
    for interface in list(&body, "/properties/networkProfile/networkInterfaces") {
        world.reserve(text(interface, "/id"), &call.route.id);
    }
}

fn not_going(call: &Call, existing: &Value, what: &str) -> Result<(), Refusal> {
    if text(existing, "/properties/provisioningState") != "Deleting" {
        return Ok(());
    }
    Err(Refusal::new(
        409,
        "OperationNotAllowed",
        format!(
            "Operation '{what}' is not allowed on VM '{}' since the VM is marked for deletion. You can only retry the Delete \
             operation (or wait for an ongoing one to complete).",
            call.route.name()
        ),
    ))
}

fn begin(state: &mut State, call: &Call, effect: Effect, is_new: bool) -> Result<Answer, Refusal> {
    let targets = vec![call.route.id.clone()];
    state.begin(call, Begin { targets, effect, is_new, failure: None })
}
