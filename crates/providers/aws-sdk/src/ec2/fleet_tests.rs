//! Fleets as they are asked for, and what became of them.

use aws_sdk_ec2::Config;
use aws_sdk_ec2::config::BehaviorVersion;
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use aws_sdk_ec2::operation::run_instances::RunInstancesInput;

use super::*;

/// A client that is never asked anything.
fn client() -> aws_sdk_ec2::Client {
    let config = Config::builder().behavior_version(BehaviorVersion::v2026_01_12()).build();
    aws_sdk_ec2::Client::from_conf(config)
}

fn built(wanted: &FleetRequest) -> CreateFleetInput {
    request(client().create_fleet(), wanted).as_input().clone().build().unwrap()
}

fn wanted(purchase: FleetPurchase) -> FleetRequest {
    let offer = FleetOverride {
        instance_type: "m9z.huge".to_owned(),
        subnet_id: "subnet-1".to_owned(),
        image_id: Some("ami-1".to_owned()),
        zone: "us-east-1a".to_owned(),
        priority: Some(0.5),
    };
    FleetRequest {
        templates: vec![FleetTemplate { name: "karpenter.k8s.aws/1".to_owned(), overrides: vec![offer] }],
        purchase,
        count: 3,
        tags: [("a".to_owned(), "b".to_owned())].into(),
        ..FleetRequest::default()
    }
}

#[test]
fn a_fleet_is_instant_and_of_the_newest_version() {
    let input = built(&wanted(FleetPurchase::OnDemand { prioritized: false }));
    assert_eq!((input.r#type, input.dry_run, input.context), (Some(FleetType::Instant), None, None));
    let configs = input.launch_template_configs.unwrap();
    let named = configs[0].launch_template_specification.as_ref().unwrap();
    assert_eq!(named.launch_template_name.as_deref(), Some("karpenter.k8s.aws/1"));
    assert_eq!(named.version.as_deref(), Some("$Latest"));
    let offer = &configs[0].overrides.as_ref().unwrap()[0];
    assert_eq!(offer.instance_type.as_ref().map(InstanceType::as_str), Some("m9z.huge"));
    assert_eq!((offer.subnet_id.as_deref(), offer.priority), (Some("subnet-1"), Some(0.5)));
    assert_eq!(
        (offer.availability_zone.as_deref(), offer.image_id.as_deref()),
        (Some("us-east-1a"), Some("ami-1"))
    );
    let target = input.target_capacity_specification.unwrap();
    assert_eq!(target.total_target_capacity, Some(3));
    assert_eq!(target.default_target_capacity_type, Some(DefaultTargetCapacityType::OnDemand));
    let kinds: Vec<_> = input.tag_specifications.unwrap().into_iter().map(|all| all.resource_type).collect();
    let expected = [types::ResourceType::Instance, types::ResourceType::Volume, types::ResourceType::Fleet];
    assert_eq!(kinds, expected.map(Some));
}

#[test]
fn every_purchase_has_its_own_options_and_no_others() {
    let options = |purchase| {
        let input = built(&wanted(purchase));
        let spot = input.spot_options.and_then(|all| all.allocation_strategy);
        let on_demand = input.on_demand_options.and_then(|all| all.allocation_strategy);
        let reserved = input.reserved_capacity_options.and_then(|all| all.reservation_types);
        let target = input.target_capacity_specification.and_then(|all| all.default_target_capacity_type);
        format!(
            "{} {:?} {:?} {:?}",
            target.unwrap().as_str(),
            spot.as_ref().map(SpotAllocationStrategy::as_str),
            on_demand.as_ref().map(FleetOnDemandAllocationStrategy::as_str),
            reserved.map(|all| all.iter().map(|kind| kind.as_str().to_owned()).collect::<Vec<_>>())
        )
    };
    assert_eq!(
        options(FleetPurchase::OnDemand { prioritized: false }),
        r#"on-demand None Some("lowest-price") None"#
    );
    assert_eq!(
        options(FleetPurchase::OnDemand { prioritized: true }),
        r#"on-demand None Some("prioritized") None"#
    );
    assert_eq!(
        options(FleetPurchase::Spot { prioritized: false }),
        r#"spot Some("price-capacity-optimized") None None"#
    );
    assert_eq!(
        options(FleetPurchase::Spot { prioritized: true }),
        r#"spot Some("capacity-optimized-prioritized") None None"#
    );
    assert_eq!(
        options(FleetPurchase::InterruptibleReservation),
        r#"reserved-capacity None None Some(["interruptible-capacity-reservation"])"#
    );
    assert_eq!(options(FleetPurchase::CapacityBlock), "capacity-block None None None");
}

#[test]
fn what_is_only_tried_says_so() {
    let trial = FleetRequest { dry_run: true, ..wanted(FleetPurchase::CapacityBlock) };
    assert_eq!(built(&trial).dry_run, Some(true));
    let check = RunInstancesCheck {
        template: "t".to_owned(),
        instance_type: "m5.large".to_owned(),
        ..RunInstancesCheck::default()
    };
    let request = run_instances(client().run_instances(), &check);
    let input: RunInstancesInput = request.as_input().clone().build().unwrap();
    assert_eq!((input.dry_run, input.min_count, input.max_count), (Some(true), Some(1), Some(1)));
    // Nothing is tagged with nothing.
    assert_eq!(input.tag_specifications, None);
}

#[test]
fn errors_say_where_if_they_know() {
    let offer = types::FleetLaunchTemplateOverrides::builder()
        .instance_type(InstanceType::M5Large)
        .availability_zone("us-east-1a")
        .subnet_id("subnet-1")
        .build();
    let place = types::LaunchTemplateAndOverridesResponse::builder().overrides(offer).build();
    let known = types::CreateFleetError::builder()
        .error_code("InsufficientInstanceCapacity")
        .error_message("none left")
        .launch_template_and_overrides(place)
        .build();
    let answer = CreateFleetOutput::builder()
        .fleet_id("fleet-1")
        .errors(known)
        .errors(types::CreateFleetError::builder().error_code("InternalError").build())
        .build();
    let read = result(answer);
    assert_eq!((read.fleet_id.as_str(), read.instances.len()), ("fleet-1", 0));
    assert_eq!(read.errors[0].code, "InsufficientInstanceCapacity");
    assert_eq!(read.errors[0].place.instance_type.as_deref(), Some("m5.large"));
    assert_eq!(read.errors[0].place.subnet_id.as_deref(), Some("subnet-1"));
    assert_eq!(read.errors[1].place, Place::default());
}

#[test]
fn instances_say_where_they_are_themselves_or_by_their_offering() {
    let read = |offer: Option<types::FleetLaunchTemplateOverrides>| {
        let place =
            offer.map(|offer| types::LaunchTemplateAndOverridesResponse::builder().overrides(offer).build());
        let launched = types::CreateFleetInstance::builder()
            .instance_ids("i-1")
            .instance_type(InstanceType::M5Large)
            .availability_zone("us-east-1b")
            .set_launch_template_and_overrides(place)
            .build();
        let mut read = result(CreateFleetOutput::builder().instances(launched).build());
        read.instances.remove(0)
    };
    let offer = types::FleetLaunchTemplateOverrides::builder().availability_zone("us-east-1a").build();
    assert_eq!(read(Some(offer)).place.zone.as_deref(), Some("us-east-1a"));
    let alone = read(None);
    assert_eq!(alone.place.zone.as_deref(), Some("us-east-1b"));
    assert_eq!((alone.instance_type.as_str(), alone.ids), ("m5.large", vec!["i-1".to_owned()]));
}
