//! Fleets: instances are launched in the best place that has any.

use jiff::Timestamp;

use super::world::World;
use crate::port::error::INSUFFICIENT_FREE_ADDRESSES;
use crate::port::launch_template::ReservationUse;
use crate::port::{
    Error, FleetError, FleetInstance, FleetOverride, FleetPurchase, FleetRequest, FleetResult, Instance,
    InstanceState, NewLaunchTemplate, Place,
};

const CREATE: &str = "ec2:CreateFleet";

/// Launches what a request asks for, as far as there is any.
pub(super) fn create(
    world: &mut World,
    request: &FleetRequest,
    now: Timestamp,
) -> Result<FleetResult, Error> {
    let mut offers: Vec<(f64, NewLaunchTemplate, FleetOverride)> = Vec::new();
    for listed in &request.templates {
        let Some(template) = world.template(&listed.name).cloned() else {
            let message =
                format!("The specified launch template, with template name {}, does not exist", listed.name);
            return Err(Error::new(CREATE, "InvalidLaunchTemplateName.NotFoundException", &message));
        };
        for each in &listed.overrides {
            offers.push((rank(world, request.purchase, each), template.clone(), each.clone()));
        }
    }
    if request.dry_run {
        return Err(Error::new(
            CREATE,
            "DryRunOperation",
            "Request would have succeeded, but DryRun flag is set.",
        ));
    }
    offers.sort_by(|(left, ..), (right, ..)| left.total_cmp(right));
    let mut result = FleetResult { fleet_id: world.id("fleet"), ..FleetResult::default() };
    for (_, template, each) in &offers {
        let mut ids = Vec::new();
        while launched(&result) + ids.len() < request.count as usize {
            match launch(world, request, template, each, now) {
                Ok(id) => ids.push(id),
                Err((code, message)) => {
                    let place = if world.vague { Place::default() } else { place(each, template) };
                    result.errors.push(FleetError { code, message, place });
                    break;
                }
            }
        }
        if !ids.is_empty() {
            let place = place(each, template);
            result.instances.push(FleetInstance { ids, instance_type: each.instance_type.clone(), place });
        }
    }
    if launched(&result) >= request.count as usize {
        // What was tried before there was enough is told all the same.
        result.errors.dedup();
    }
    Ok(result)
}

fn launched(result: &FleetResult) -> usize {
    result.instances.iter().map(|each| each.ids.len()).sum()
}

/// The lower, the sooner: what it costs really, or what we say.
fn rank(world: &World, purchase: FleetPurchase, each: &FleetOverride) -> f64 {
    let real = match purchase {
        FleetPurchase::OnDemand { prioritized: false } => world.prices.on_demand(&each.instance_type),
        _ => None,
    };
    real.or(each.priority).unwrap_or(f64::INFINITY)
}

fn place(each: &FleetOverride, template: &NewLaunchTemplate) -> Place {
    Place {
        instance_type: Some(each.instance_type.clone()),
        zone: Some(each.zone.clone()),
        subnet_id: Some(each.subnet_id.clone()),
        image_id: Some(each.image_id.clone().unwrap_or_else(|| template.data.image_id.clone())),
    }
}

/// Launches one instance, or says why not.
fn launch(
    world: &mut World,
    request: &FleetRequest,
    template: &NewLaunchTemplate,
    each: &FleetOverride,
    now: Timestamp,
) -> Result<String, (String, String)> {
    let reservation = match &template.data.reservation {
        Some(ReservationUse::Only(id)) => Some(id.clone()),
        Some(ReservationUse::None) | None => None,
    };
    let is_spot = matches!(request.purchase, FleetPurchase::Spot { .. });
    let kind = match &reservation {
        Some(_) => "reserved",
        None if is_spot => "spot",
        None => "on-demand",
    };
    let asked = (each.instance_type.clone(), each.zone.clone(), kind.to_owned());
    if let Some(code) = world.insufficient.get(&asked) {
        let message =
            format!("There is no Spot or other capacity of {} in {}.", each.instance_type, each.zone);
        return Err((code.clone(), message));
    }
    let subnet = world.subnets.iter_mut().find(|subnet| subnet.item.id == each.subnet_id);
    let Some(subnet) = subnet else {
        let message = format!("The subnet ID '{}' does not exist", each.subnet_id);
        return Err(("InvalidSubnetID.NotFound".to_owned(), message));
    };
    if subnet.item.available_addresses <= 0 {
        let message = format!("There are no free addresses in subnet '{}'.", each.subnet_id);
        return Err((INSUFFICIENT_FREE_ADDRESSES.to_owned(), message));
    }
    if let Some(id) = &reservation {
        let found = world.reservations.iter_mut().find(|found| &found.item.id == id);
        match found {
            Some(found) if found.item.available > 0 => found.item.available -= 1,
            _ => {
                let message = format!("The capacity reservation {id} has no capacity left");
                return Err(("ReservationCapacityExceeded".to_owned(), message));
            }
        }
    }
    subnet.item.available_addresses -= 1;
    let zone_id = subnet.item.zone_id.clone();
    let id = world.id("i");
    let group = template.data.placement_group.as_ref();
    let partitions = group.and_then(|group| world.placement_groups.iter().find(|known| &known.id == group));
    let has_partitions = partitions.is_some_and(|group| !group.partitions().is_empty());
    let instance = Instance {
        id: id.clone(),
        instance_type: each.instance_type.clone(),
        state: InstanceState::Running,
        zone: each.zone.clone(),
        zone_id,
        tenancy: template.data.tenancy.clone(),
        partition: template.data.partition.unwrap_or(u32::from(has_partitions)),
        image_id: each.image_id.clone().unwrap_or_else(|| template.data.image_id.clone()),
        subnet_id: each.subnet_id.clone(),
        security_groups: template
            .data
            .interfaces
            .first()
            .map(|first| first.security_groups.clone())
            .unwrap_or_default(),
        tags: request.tags.clone(),
        launched: Some(now),
        spot_request_id: is_spot.then(|| format!("sir-{id}")),
        lifecycle: match request.purchase {
            FleetPurchase::Spot { .. } => Some("spot".to_owned()),
            FleetPurchase::CapacityBlock => Some("capacity-block".to_owned()),
            FleetPurchase::InterruptibleReservation => Some("interruptible-capacity-reservation".to_owned()),
            FleetPurchase::OnDemand { .. } => None,
        },
        reservation_preference: reservation.as_ref().map(|_| "capacity-reservations-only".to_owned()),
        reservation_id: reservation,
        interface_types: template
            .data
            .interfaces
            .iter()
            .map(|each| each.interface_type.unwrap_or("interface").to_owned())
            .collect(),
    };
    if world.hide_new_instances > 0 {
        world.hidden.insert(id.clone(), world.hide_new_instances);
    }
    world.instances.insert(id.clone(), instance);
    Ok(id)
}
