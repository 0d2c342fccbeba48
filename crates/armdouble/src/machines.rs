//! Machines of the AKS Machine API: alone, in batches, with entity tags, and the virtual machines that they become.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::answer::{Answer, Refusal};
use crate::bodies;
use crate::call::{Call, facts};
use crate::checks;
use crate::failures::How;
use crate::lists;
use crate::operations::Effect;
use crate::route::Kind;
use crate::skus;
use crate::state::{Begin, State};
use crate::world::{World, list as elements, text};

/// The limit of the API.
const BATCH: usize = 50;
/// What Azure makes of the name of a machine.
const SUFFIX: &str = "12345678-vm";
/// What can not be changed once a machine is there.
const FIXED: [(&str, &str); 3] = [
    ("/properties/hardware/vmSize", "properties.hardware.vmSize"),
    ("/properties/priority", "properties.priority"),
    ("/zones", "zones"),
];

/// A machine of a batch.
struct Member {
    name: String,
    body: Value,
}

pub(crate) fn get(world: &World, call: &Call) -> Result<Answer, Refusal> {
    pool_exists(world, &pool_of(&call.route.id))?;
    let found = world.get(&call.route.id).ok_or_else(|| {
        Refusal::new(404, "NotFound", format!("Could not find the machine: {}", call.route.name())).flat()
    })?;
    Ok(Answer::json(200, found.clone()))
}

pub(crate) fn list(world: &World, call: &Call) -> Result<Answer, Refusal> {
    pool_exists(world, &pool_of(&call.route.id))?;
    let ids = world.parts(Kind::Machine, &call.route.id);
    let all = ids.iter().filter_map(|id| world.get(id)).cloned().collect();
    Ok(lists::page(call, all, world.settings.page_size))
}

pub(crate) fn put(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::Machine, "Machine", &body)?;
    pool_exists(&state.world, &pool_of(&call.route.id))?;
    let Some(header) = call.header("batchputmachine") else {
        return put_one(state, call, call.route.name(), body);
    };
    let members = members(header, &body)?;
    let mut refused = BTreeMap::new();
    let mut first = None;
    for member in members {
        let answer = match scripted(state, call, &member) {
            Some(refusal) => Err(refusal),
            None => put_one(state, call, &member.name, member.body),
        };
        match answer {
            Ok(answer) => first = first.or(Some(answer)),
            Err(refusal) => drop(refused.insert(member.name, refusal)),
        }
    }
    if refused.is_empty() {
        Ok(first.unwrap_or_else(|| Answer::empty(200)))
    } else {
        Err(some_refused(&refused))
    }
}

/// The machines of a batch: what they share, with what each has of its own.
fn members(header: &str, shared: &Value) -> Result<Vec<Member>, Refusal> {
    let bad = |why: String| {
        Refusal::new(400, "InvalidParameter", format!("The header BatchPutMachine {why}")).flat()
    };
    let header: Value = serde_json::from_str(header).map_err(|error| bad(format!("is no JSON: {error}.")))?;
    let all = elements(&header, "/batchMachines");
    if all.is_empty() || all.len() > BATCH {
        return Err(bad(format!("has {} machines; there may be 1 to {BATCH}.", all.len())));
    }
    let member = |each: &Value| {
        let name = text(each, "/machineName");
        if name.is_empty() {
            return Err(bad("has a machine without a name.".to_owned()));
        }
        let mut body = shared.clone();
        if let Some(zones) =
            each.get("zones").filter(|zones| zones.as_array().is_some_and(|all| !all.is_empty()))
        {
            body["zones"] = zones.clone();
        }
        if let Some(tags) = each["tags"].as_object() {
            let mut merged = body["properties"]["tags"].as_object().cloned().unwrap_or_else(Map::new);
            merged.extend(tags.clone());
            body["properties"]["tags"] = Value::Object(merged);
        }
        Ok(Member { name: name.to_owned(), body })
    };
    all.iter().map(member).collect()
}

fn scripted(state: &mut State, call: &Call, member: &Member) -> Option<Refusal> {
    let facts = facts(Kind::Machine, &member.name, &member.body);
    let how = state.failures.take(&call.method, Kind::Machine, &facts, |how| matches!(how, How::AtOnce(_)));
    match how {
        Some(How::AtOnce(refusal)) => Some(refusal),
        _ => None,
    }
}

/// Machines that are not named here are on their way.
fn some_refused(refused: &BTreeMap<String, Refusal>) -> Refusal {
    let details: Vec<Value> = refused
        .iter()
        .map(|(name, refusal)| json!({"code": refusal.code, "message": refusal.message, "target": name}))
        .collect();
    if refused.values().any(|refusal| refusal.status >= 500) {
        let message = json!({"details": details}).to_string();
        return Refusal::new(500, "BatchMachineInternalServerError", message).flat();
    }
    let message = format!("{} machines of the batch could not be put.", refused.len());
    let mut refusal = Refusal::new(400, "BatchMachineClientError", message).flat();
    refusal.details = details;
    refusal
}

fn put_one(state: &mut State, call: &Call, name: &str, body: Value) -> Result<Answer, Refusal> {
    let id = format!("{}/machines/{name}", pool_of(&call.route.id));
    let existing = state.world.get(&id).cloned();
    preconditions(call, existing.as_ref())?;
    checks::tags(&body["properties"]).map_err(Refusal::flat)?;
    let is_new = existing.is_none();
    let failure = match &existing {
        Some(existing) => {
            unchanged(existing, &body)?;
            None
        }
        None => startable(&state.world, name, &body)?,
    };
    let mut resource = body;
    fill(&mut state.world, &id, name, existing.as_ref(), &mut resource);
    if is_new && failure.is_none() {
        make_machine(&mut state.world, &resource);
    }
    state.world.put(resource);
    // A scripted failure is looked up by what this machine is, not by what the first one of its batch is.
    let facts = facts(Kind::Machine, name, state.world.get(&id).unwrap_or(&Value::Null));
    let how = state.failures.take(&call.method, Kind::Machine, &facts, |how| matches!(how, How::Later(_)));
    let failure = match how {
        Some(How::Later(refusal)) => Some(nested(refusal)),
        _ => failure,
    };
    let answer = state.begin(call, Begin { targets: vec![id], effect: Effect::Settle, is_new, failure });
    // What AKS refuses has no envelope.
    answer.map_err(Refusal::flat)
}

/// An error of compute, as AKS passes it on.
fn nested(refusal: Refusal) -> Refusal {
    if !refusal.details.is_empty() {
        return refusal;
    }
    let outer = if refusal.code == "OperationNotAllowed" { "QuotaExceeded" } else { refusal.code.as_str() };
    let detail = json!({"code": refusal.code, "message": refusal.message, "target": Value::Null});
    Refusal::new(refusal.status, outer, refusal.message.clone()).detail(detail)
}

fn preconditions(call: &Call, existing: Option<&Value>) -> Result<(), Refusal> {
    let tag = existing.map(|each| text(each, "/properties/eTag"));
    let differs = call.header("if-match").is_some_and(|wanted| match tag {
        Some(tag) => wanted != "*" && wanted != tag,
        None => true,
    });
    if differs || (call.header("if-none-match") == Some("*") && existing.is_some()) {
        return Err(Refusal::new(
            412,
            "ConditionNotMet",
            "The condition specified using HTTP conditional header(s) is not met.",
        )
        .flat());
    }
    Ok(())
}

fn unchanged(existing: &Value, body: &Value) -> Result<(), Refusal> {
    let of = |resource: &Value, pointer: &str| {
        let value = resource.pointer(pointer).cloned().unwrap_or(Value::Null);
        if value == json!([]) || value == "Regular" { Value::Null } else { value }
    };
    for (pointer, name) in FIXED {
        if of(existing, pointer) != of(body, pointer) {
            return Err(Refusal::new(
                400,
                "OperationNotAllowed",
                format!("Changing property '{name}' is not allowed."),
            )
            .target(name)
            .flat());
        }
    }
    Ok(())
}

/// Whether AKS accepts a new machine at all; what compute will say about it comes later.
fn startable(world: &World, name: &str, body: &Value) -> Result<Option<Refusal>, Refusal> {
    let (size, zone) = (text(body, "/properties/hardware/vmSize"), text(body, "/zones/0"));
    let location = &world.settings.location;
    let Some(sku) = world.skus.find(location, size) else {
        return Err(Refusal::new(
            400,
            "VMSizeNotSupported",
            format!("Virtual Machine size: '{size}' is not supported for subscription {} in location '{location}'.", world.settings.subscription),
        )
        .target(format!("machines/{name}"))
        .flat());
    };
    let version = text(body, "/properties/nodeImageVersion");
    if !version.is_empty() && !world.images.has_full_name(version) {
        return Err(Refusal::new(
            400,
            "InvalidParameter",
            format!("The node image version '{version}' does not exist."),
        )
        .target("properties.nodeImageVersion")
        .flat());
    }
    let is_spot = text(body, "/properties/priority").eq_ignore_ascii_case("Spot");
    let refused = if skus::is_offered(sku, location, zone) {
        world.quota.check(sku, is_spot, location).err()
    } else {
        let message = format!(
            "The requested VM size {size} is currently not available in location '{location}' zones '{zone}'."
        );
        Some(Refusal::new(409, "SkuNotAvailable", message))
    };
    Ok(refused.map(nested))
}

/// What AKS adds to a machine.
fn fill(world: &mut World, id: &str, name: &str, existing: Option<&Value>, resource: &mut Value) {
    let tag = world.uuid();
    let now = json!(world.now.to_string());
    let pool = pool_of(id);
    let pool = pool.rsplit('/').next().unwrap_or_default();
    let machine =
        world.settings.node_id("Microsoft.Compute/virtualMachines", &format!("aks-{pool}-{name}-{SUFFIX}"));
    resource["id"] = json!(id);
    resource["name"] = json!(name);
    resource["type"] = json!("Microsoft.ContainerService/managedClusters/agentPools/machines");
    let properties = &mut resource["properties"];
    properties["eTag"] = json!(tag);
    properties["resourceId"] = json!(machine);
    let state = if existing.is_some() { "Updating" } else { "Creating" };
    properties["provisioningState"] = json!(state);
    if properties["priority"].is_null() {
        properties["priority"] = json!("Regular");
    }
    if properties["nodeImageVersion"].is_null() {
        properties["nodeImageVersion"] = json!("AKSUbuntu-2204gen2containerd-202606.01.0");
    }
    properties["status"] = match existing {
        Some(existing) => existing["properties"]["status"].clone(),
        None => json!({"creationTimestamp": now, "vmState": "Running"}),
    };
}

/// The virtual machine and the network interface that a machine becomes.
fn make_machine(world: &mut World, resource: &Value) {
    let id = text(resource, "/properties/resourceId").to_owned();
    let interface = id.replace("Microsoft.Compute/virtualMachines", "Microsoft.Network/networkInterfaces");
    let location = world.settings.location.clone();
    let size = text(resource, "/properties/hardware/vmSize");
    let is_spot = text(resource, "/properties/priority").eq_ignore_ascii_case("Spot");
    if let Some(sku) = world.skus.find(&location, size).cloned() {
        world.quota.take(&id, &sku, is_spot);
    }
    let tags = resource["properties"]["tags"].clone();
    let made = [
        json!({
            "id": interface, "location": location, "tags": tags,
            "properties": {"virtualMachine": {"id": id}, "provisioningState": "Succeeded"},
        }),
        json!({
            "id": id, "location": location, "tags": tags, "zones": resource["zones"],
            "properties": {
                "hardwareProfile": {"vmSize": size}, "priority": resource["properties"]["priority"],
                "provisioningState": "Creating", "timeCreated": world.now.to_string(),
                "networkProfile": {"networkInterfaces": [{"id": interface, "properties": {"deleteOption": "Delete"}}]},
            },
        }),
    ];
    for each in made {
        world.put(each);
    }
}

/// A machine is there when its virtual machine is.
pub(crate) fn succeeded(world: &mut World, id: &str) {
    let machine =
        world.get(id).map(|each| text(each, "/properties/resourceId").to_owned()).unwrap_or_default();
    for each in [id, &machine] {
        world.change(each, |resource| resource["properties"]["provisioningState"] = json!("Succeeded"));
    }
}

/// A machine that did not come to be keeps the reason, and has no virtual machine.
pub(crate) fn failed(world: &mut World, id: &str, failure: &Refusal) {
    let machine =
        world.get(id).map(|each| text(each, "/properties/resourceId").to_owned()).unwrap_or_default();
    crate::compute::removed(world, &machine);
    world.change(id, |resource| {
        resource["properties"]["provisioningState"] = json!("Failed");
        resource["properties"]["status"]["provisioningError"] = failure.value();
    });
}

pub(crate) fn removed(world: &mut World, id: &str) {
    if let Some(machine) = world.remove(id) {
        crate::compute::removed(world, text(&machine, "/properties/resourceId"));
    }
}

pub(crate) fn delete(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::DeleteMachines, "DeleteMachines", &body)?;
    let pool = call.route.parent();
    pool_exists(&state.world, &pool)?;
    let names = elements(&body, "/machineNames").iter().filter_map(Value::as_str);
    let targets: Vec<String> = names
        .map(|name| format!("{pool}/machines/{name}"))
        .filter(|id| state.world.get(id).is_some())
        .collect();
    if targets.is_empty() {
        return Err(Refusal::new(
            400,
            "InvalidParameter",
            "Cannot find any valid machines to delete. Please check your input machine names.",
        )
        .flat());
    }
    for target in &targets {
        state
            .world
            .change(target, |resource| resource["properties"]["provisioningState"] = json!("Deleting"));
    }
    state.begin(call, Begin { targets, effect: Effect::Remove, is_new: false, failure: None })
}

/// The ID of the pool in that of a machine or of the list of machines.
fn pool_of(id: &str) -> String {
    let at = id.to_ascii_lowercase().find("/machines").unwrap_or(id.len());
    id[..at].to_owned()
}

fn pool_exists(world: &World, pool: &str) -> Result<(), Refusal> {
    if world.get(pool).is_some() {
        return Ok(());
    }
    let name = pool.rsplit('/').next().unwrap_or_default();
    Err(Refusal::new(404, "NotFound", format!("Could not find the agentpool: {name}")).flat())
}
