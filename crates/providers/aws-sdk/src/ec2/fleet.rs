//! Launches: fleets, and runs that are only tried.

use aws::port::{
    FleetError, FleetInstance, FleetOverride, FleetPurchase, FleetRequest, FleetResult, FleetTemplate, Place,
    RunInstancesCheck,
};
use aws_sdk_ec2::operation::create_fleet::CreateFleetOutput;
use aws_sdk_ec2::operation::create_fleet::builders::CreateFleetFluentBuilder;
use aws_sdk_ec2::operation::run_instances::builders::RunInstancesFluentBuilder;
use aws_sdk_ec2::types::{
    self, DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest,
    FleetLaunchTemplateSpecificationRequest, FleetOnDemandAllocationStrategy, FleetReservationType,
    FleetType, InstanceType, LaunchTemplateSpecification, OnDemandOptionsRequest,
    ReservedCapacityOptionsRequest, SpotAllocationStrategy, SpotOptionsRequest,
    TargetCapacitySpecificationRequest,
};

use super::common::tag_specifications;
use super::launch_template::run_interface;

/// The newest version of a launch template.
const NEWEST: &str = "$Latest";

/// Fills in the request for a fleet.
pub(super) fn request(empty: CreateFleetFluentBuilder, wanted: &FleetRequest) -> CreateFleetFluentBuilder {
    let count = i32::try_from(wanted.count).unwrap_or(i32::MAX);
    let target = TargetCapacitySpecificationRequest::builder()
        .total_target_capacity(count)
        .default_target_capacity_type(DefaultTargetCapacityType::from(wanted.purchase.target()))
        .build();
    let mut request = empty
        .r#type(FleetType::Instant)
        .set_dry_run(wanted.dry_run.then_some(true))
        .set_context(wanted.context.clone())
        .set_launch_template_configs(Some(wanted.templates.iter().map(template).collect()))
        .target_capacity_specification(target)
        .set_tag_specifications(tag_specifications(&["instance", "volume", "fleet"], &wanted.tags));
    let strategy = wanted.purchase.strategy();
    match wanted.purchase {
        FleetPurchase::OnDemand { .. } => {
            let strategy = strategy.map(FleetOnDemandAllocationStrategy::from);
            request = request.on_demand_options(
                OnDemandOptionsRequest::builder().set_allocation_strategy(strategy).build(),
            );
        }
        FleetPurchase::Spot { .. } => {
            let strategy = strategy.map(SpotAllocationStrategy::from);
            request =
                request.spot_options(SpotOptionsRequest::builder().set_allocation_strategy(strategy).build());
        }
        FleetPurchase::InterruptibleReservation => {
            let options = ReservedCapacityOptionsRequest::builder()
                .reservation_types(FleetReservationType::InterruptibleCapacityReservation);
            request = request.reserved_capacity_options(options.build());
        }
        FleetPurchase::CapacityBlock => {}
    }
    request
}

fn template(wanted: &FleetTemplate) -> FleetLaunchTemplateConfigRequest {
    let named = FleetLaunchTemplateSpecificationRequest::builder()
        .launch_template_name(&wanted.name)
        .version(NEWEST)
        .build();
    FleetLaunchTemplateConfigRequest::builder()
        .launch_template_specification(named)
        .set_overrides(Some(wanted.overrides.iter().map(offer).collect()))
        .build()
}

fn offer(wanted: &FleetOverride) -> FleetLaunchTemplateOverridesRequest {
    FleetLaunchTemplateOverridesRequest::builder()
        .instance_type(InstanceType::from(wanted.instance_type.as_str()))
        .subnet_id(&wanted.subnet_id)
        .set_image_id(wanted.image_id.clone())
        .availability_zone(&wanted.zone)
        .set_priority(wanted.priority)
        .build()
}

/// What became of a fleet.
pub(super) fn result(answer: CreateFleetOutput) -> FleetResult {
    FleetResult {
        fleet_id: answer.fleet_id.unwrap_or_default(),
        instances: answer.instances.unwrap_or_default().into_iter().map(launched).collect(),
        errors: answer.errors.unwrap_or_default().into_iter().map(failed).collect(),
    }
}

fn launched(described: types::CreateFleetInstance) -> FleetInstance {
    let mut place = place(described.launch_template_and_overrides);
    // Some answers say it of the instances, some of the offering that they come from.
    place.zone = place.zone.or(described.availability_zone);
    place.subnet_id = place.subnet_id.or(described.subnet_id);
    let instance_type = described.instance_type.map(|name| name.as_str().to_owned());
    FleetInstance {
        ids: described.instance_ids.unwrap_or_default(),
        instance_type: instance_type.or_else(|| place.instance_type.clone()).unwrap_or_default(),
        place,
    }
}

fn failed(described: types::CreateFleetError) -> FleetError {
    FleetError {
        code: described.error_code.unwrap_or_default(),
        message: described.error_message.unwrap_or_default(),
        place: place(described.launch_template_and_overrides),
    }
}

fn place(described: Option<types::LaunchTemplateAndOverridesResponse>) -> Place {
    let Some(offer) = described.and_then(|described| described.overrides) else { return Place::default() };
    Place {
        instance_type: offer.instance_type.map(|name| name.as_str().to_owned()),
        zone: offer.availability_zone,
        subnet_id: offer.subnet_id,
        image_id: offer.image_id,
    }
}

/// Fills in the request for a run that is only tried.
pub(super) fn run_instances(
    empty: RunInstancesFluentBuilder,
    check: &RunInstancesCheck,
) -> RunInstancesFluentBuilder {
    let template =
        LaunchTemplateSpecification::builder().launch_template_name(&check.template).version(NEWEST).build();
    let kinds = ["instance", "volume", "network-interface"];
    empty
        .dry_run(true)
        .min_count(1)
        .max_count(1)
        .launch_template(template)
        .instance_type(InstanceType::from(check.instance_type.as_str()))
        .set_network_interfaces(Some(check.interfaces.iter().map(run_interface).collect()))
        .set_tag_specifications(tag_specifications(&kinds, &check.tags))
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
