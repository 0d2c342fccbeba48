//! Network interfaces: what they refer to must be there, and addresses run out.

use serde_json::{Value, json};

use crate::answer::{Answer, Refusal};
use crate::bodies;
use crate::call::Call;
use crate::checks;
use crate::operations::Effect;
use crate::others;
use crate::route::Kind;
use crate::state::{Begin, State};
use crate::world::{World, list, text};

pub(crate) fn put(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::NetworkInterface, "NetworkInterface", &body)?;
    checks::tags(&body)?;
    let world = &mut state.world;
    checks::location(world, &body)?;
    referenced(world, &call.route.id, &body)?;
    let existing = world.get(&call.route.id).cloned();
    let mut resource = body;
    resource["id"] = json!(call.route.id);
    resource["name"] = json!(call.route.name());
    resource["type"] = json!(call.route.resource_type);
    resource["etag"] = json!(format!("W/\"{}\"", world.uuid()));
    if let Some(machine) = existing.as_ref().and_then(|each| each.pointer("/properties/virtualMachine")) {
        resource["properties"]["virtualMachine"] = machine.clone();
    }
    let guid = world.uuid();
    resource["properties"]["resourceGuid"] = json!(guid);
    resource["properties"]["macAddress"] = json!("00-0D-3A-00-00-01");
    resource["properties"]["provisioningState"] = json!("Updating");
    give_addresses(world, &mut resource)?;
    let is_new = existing.is_none();
    world.put(resource);
    begin(state, call, Effect::Settle, is_new)
}

/// Subnets, pools and security groups must be there.
fn referenced(world: &World, id: &str, body: &Value) -> Result<(), Refusal> {
    let properties = &body["properties"];
    let mut wanted = vec![text(properties, "/networkSecurityGroup/id")];
    for configuration in list(properties, "/ipConfigurations") {
        let subnet = text(configuration, "/properties/subnet/id");
        if subnet.is_empty() {
            return Err(Refusal::new(
                400,
                "SubnetNotSpecifiedOnIpConfiguration",
                format!("Required subnet reference is not specified for ipConfiguration of {id}."),
            ));
        }
        wanted.push(subnet);
        let pools = list(configuration, "/properties/loadBalancerBackendAddressPools");
        wanted.extend(pools.iter().map(|pool| text(pool, "/id")));
    }
    for reference in wanted.into_iter().filter(|each| !each.is_empty()) {
        if !exists(world, reference) {
            return Err(Refusal::new(
                400,
                "InvalidResourceReference",
                format!(
                    "Resource {reference} referenced by resource {id} was not found. Please make sure that the referenced \
                     resource exists, and that both resources are in the same region."
                ),
            ));
        }
    }
    Ok(())
}

/// Pools are parts of their load balancer, not resources of their own.
fn exists(world: &World, id: &str) -> bool {
    if world.get(id).is_some() {
        return true;
    }
    let lower = id.to_ascii_lowercase();
    let Some((balancer, _)) = lower.split_once("/backendaddresspools/") else { return false };
    world.get(balancer).is_some_and(|balancer| {
        list(balancer, "/properties/backendAddressPools")
            .iter()
            .any(|pool| text(pool, "/id").eq_ignore_ascii_case(id))
    })
}

/// Each configuration gets an address of the subnet; all of an interface are in one.
fn give_addresses(world: &World, resource: &mut Value) -> Result<(), Refusal> {
    let id = text(resource, "/id").to_owned();
    let configurations = list(resource, "/properties/ipConfigurations");
    let wanted = configurations.len();
    let subnet = configurations.first().map(|each| text(each, "/properties/subnet/id").to_owned());
    let subnet = subnet.unwrap_or_default();
    let prefix = world.get(&subnet).map(|each| text(each, "/properties/addressPrefix")).unwrap_or_default();
    let Some(free) = world.addresses.free(&subnet, prefix, &id.to_ascii_lowercase(), wanted) else {
        let name = subnet.rsplit('/').next().unwrap_or_default();
        return Err(Refusal::new(
            400,
            "SubnetIsFull",
            format!(
                "Subnet {name} with address prefix {prefix} does not have enough capacity for {wanted} IP addresses."
            ),
        ));
    };
    let configurations = resource["properties"]["ipConfigurations"].as_array_mut();
    for (configuration, address) in configurations.into_iter().flatten().zip(free) {
        let name = text(configuration, "/name").to_owned();
        configuration["id"] = json!(format!("{id}/ipConfigurations/{name}"));
        configuration["properties"]["privateIPAddress"] = json!(address.to_string());
        configuration["properties"]["provisioningState"] = json!("Succeeded");
    }
    Ok(())
}

/// A subnet says who has its addresses.
pub(crate) fn subnet(world: &World, call: &Call) -> Result<Answer, Refusal> {
    let mut found = world.get(&call.route.id).cloned().ok_or_else(|| others::missing(call))?;
    let owners = world.addresses.owners(&call.route.id);
    let used: Vec<Value> =
        owners.map(|owner| json!({"id": format!("{owner}/ipConfigurations/own")})).collect();
    if !used.is_empty() {
        found["properties"]["ipConfigurations"] = json!(used);
    }
    Ok(Answer::json(200, found))
}

pub(crate) fn patch(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body = call.json()?;
    bodies::check(Kind::NetworkInterface, "TagsObject", &body)?;
    checks::tags(&body)?;
    if state.world.get(&call.route.id).is_none() {
        return Err(others::missing(call));
    }
    let tags = body.get("tags").cloned().unwrap_or_else(|| json!({}));
    state.world.change(&call.route.id, |resource| resource["tags"] = tags);
    begin(state, call, Effect::Settle, false)
}

pub(crate) fn delete(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let id = &call.route.id;
    let Some(existing) = state.world.get(id) else { return Ok(Answer::empty(204)) };
    let owner = text(existing, "/properties/virtualMachine/id");
    if !owner.is_empty() {
        return Err(Refusal::new(
            400,
            "NicInUse",
            format!(
                "Network Interface {id} is used by existing resource {owner}. In order to delete the network interface, it must be \
                 dissociated from the resource."
            ),
        ));
    }
    if let Some(owner) = state.world.reserved(id) {
        return Err(kept(owner));
    }
    state.world.change(id, |resource| resource["properties"]["provisioningState"] = json!("Deleting"));
    begin(state, call, Effect::Remove, false)
}

/// A network interface that is kept for a virtual machine.
pub(crate) fn kept(owner: &str) -> Refusal {
    Refusal::new(
        400,
        "NicReservedForAnotherVm",
        format!(
            "Nic(s) in request is reserved for another Virtual Machine for 180 seconds. Please provide another nic(s) or retry after \
             180 seconds. Reserved VM: {owner}"
        ),
    )
}

fn begin(state: &mut State, call: &Call, effect: Effect, is_new: bool) -> Result<Answer, Refusal> {
    let targets = vec![call.route.id.clone()];
    state.begin(call, Begin { targets, effect, is_new, failure: None })
}
