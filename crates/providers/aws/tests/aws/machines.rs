//! From instances to NodeClaims.

use api::aws::EC2NodeClass;
use api::names::labels::{self, aws as keys};
use api::names::resources;
use aws::instance::{LaunchPlan, Machine, Reservation, launch_annotations, node_claim};
use aws::node_class::Class;
use aws::port::{FleetInstance, Instance, InstanceState, Place, PlacementStrategy};
use serde_json::json;

use crate::support::{
    MarketNow, NOW, ZONES, claim, class, node_class, placement_group, requesting, with_reservation,
};

fn instance() -> Instance {
    Instance {
        id: "i-1".to_owned(),
        instance_type: "m5.large".to_owned(),
        state: InstanceState::Running,
        zone: ZONES[0].to_owned(),
        image_id: "ami-1".to_owned(),
        subnet_id: "subnet-a1".to_owned(),
        tags: [("karpenter.sh/nodepool".to_owned(), "pool-1".to_owned())].into(),
        launched: Some(NOW),
        ..Instance::default()
    }
}

#[test]
fn a90_how_an_instance_was_bought_follows_from_what_ec2_says() {
    let kind = |change: fn(&mut Instance), gate: bool| {
        let mut described = instance();
        change(&mut described);
        let machine = Machine::described(described, gate);
        (machine.capacity_type, machine.reservation)
    };
    assert_eq!(kind(|_| {}, true), ("on-demand", None));
    assert_eq!(kind(|each| each.spot_request_id = Some("sir-1".to_owned()), true), ("spot", None));
    assert_eq!(kind(|each| each.lifecycle = Some("spot".to_owned()), true), ("spot", None));
    let reserved = |each: &mut Instance| {
        each.reservation_id = Some("cr-1".to_owned());
        each.reservation_preference = Some("capacity-reservations-only".to_owned());
    };
    let reservation = Reservation { id: "cr-1".to_owned(), ..Reservation::default() };
    assert_eq!(kind(reserved, true), ("reserved", Some(reservation.clone())));
    assert_eq!(kind(reserved, false), ("on-demand", None));
    // It found an open reservation by chance.
    assert_eq!(kind(|each| each.reservation_id = Some("cr-1".to_owned()), true), ("on-demand", None));
    let block = |each: &mut Instance| {
        each.reservation_id = Some("cr-1".to_owned());
        each.reservation_preference = Some("capacity-reservations-only".to_owned());
        each.lifecycle = Some("capacity-block".to_owned());
    };
    assert!(kind(block, true).1.unwrap().is_block);
    let interruptible = |each: &mut Instance| {
        each.reservation_id = Some("cr-1".to_owned());
        each.reservation_preference = Some("capacity-reservations-only".to_owned());
        each.lifecycle = Some("interruptible-capacity-reservation".to_owned());
    };
    assert!(kind(interruptible, true).1.unwrap().is_interruptible);
}

#[test]
fn a91_tenancy_fabric_and_partition_have_their_defaults() {
    let mut described = instance();
    described.interface_types = ["interface", "efa", "efa-only"].map(str::to_owned).into();
    let machine = Machine::described(described.clone(), true);
    assert_eq!((machine.tenancy.as_str(), machine.fabric, machine.partition), ("default", 2, None));
    described.tenancy = "dedicated".to_owned();
    described.partition = 3;
    let machine = Machine::described(described, true);
    assert_eq!((machine.tenancy.as_str(), machine.partition), ("dedicated", Some(3)));
}

fn of(object: &EC2NodeClass, machine: &Machine) -> api::nodeclaim::NodeClaim {
    let class = class(object);
    let types = MarketNow::default().types(&class, &["m5.large"]);
    node_claim(machine, Some(&types[0]), Some(&class), NOW)
}

#[test]
fn a92_a_claim_has_the_labels_that_are_settled() {
    let object = node_class("AL2023", &json!({}));
    let claim = of(&object, &Machine::described(instance(), true));
    let all = claim.metadata.labels.unwrap();
    for (key, value) in [
        (labels::INSTANCE_TYPE, "m5.large"),
        (labels::ARCH, "amd64"),
        (labels::OS, "linux"),
        (labels::ZONE, ZONES[0]),
        (keys::ZONE_ID, "use1-az1"),
        (labels::REGION, "us-east-1"),
        (labels::CAPACITY_TYPE, "on-demand"),
        (labels::NODEPOOL, "pool-1"),
        (keys::INSTANCE_TENANCY, "default"),
        (keys::INSTANCE_CPU, "2"),
        (keys::INSTANCE_CATEGORY, "m"),
    ] {
        assert_eq!(all.get(key).map(String::as_str), Some(value), "{key}");
    }
    for key in [keys::CAPACITY_RESERVATION_ID, keys::INSTANCE_GPU_COUNT, keys::PLACEMENT_GROUP_ID] {
        assert!(!all.contains_key(key), "{key}");
    }
    let status = claim.status.unwrap();
    assert_eq!((status.provider_id.as_str(), status.image_id.as_str()), ("aws:///us-east-1a/i-1", "ami-1"));
    assert_eq!(claim.metadata.creation_timestamp.map(|time| time.0), Some(NOW));
    assert_eq!(claim.metadata.deletion_timestamp, None);
}

#[test]
fn a93_amounts_of_nothing_are_left_out_and_fabric_adapters_unless_it_has_them() {
    let object = node_class("AL2023", &json!({}));
    let class = class(&object);
    let types = MarketNow::default().types(&class, &["m6idn.32xlarge"]);
    let capacity = |fabric: i64| {
        let machine = Machine { fabric, ..Machine::described(instance(), true) };
        node_claim(&machine, Some(&types[0]), Some(&class), NOW).status.unwrap().capacity
    };
    assert!(!capacity(0).contains_key(resources::AWS_EFA));
    assert!(capacity(1).contains_key(resources::AWS_EFA));
    assert!(!capacity(1).contains_key(resources::NVIDIA_GPU) && capacity(1).contains_key(resources::CPU));
}

#[test]
fn a94_an_instance_on_its_way_out_is_a_claim_that_is_being_deleted() {
    let object = node_class("AL2023", &json!({}));
    for (state, is_deleted) in [
        (InstanceState::Running, false),
        (InstanceState::Stopped, false),
        (InstanceState::ShuttingDown, true),
        (InstanceState::Terminated, true),
    ] {
        let machine = Machine { state, ..Machine::described(instance(), true) };
        assert_eq!(of(&object, &machine).metadata.deletion_timestamp.is_some(), is_deleted);
    }
    let bare = node_claim(&Machine::described(instance(), true), None, None, NOW);
    assert_eq!(bare.metadata.labels.unwrap()[labels::ZONE], ZONES[0]);
    assert!(bare.status.unwrap().capacity.is_empty());
}

#[test]
fn a95_a_claim_in_a_placement_group_says_which_partition_or_that_it_is_not_known_yet() {
    let object = node_class("AL2023", &json!({}));
    let labels = |strategy, partition| {
        let group = placement_group(strategy, 3);
        let class = Class::new(&object, Some(&group), false).unwrap();
        let machine = Machine { partition, ..Machine::described(instance(), true) };
        let all = node_claim(&machine, None, Some(&class), NOW).metadata.labels.unwrap();
        (all.get(keys::PLACEMENT_GROUP_ID).cloned(), all.get(keys::PLACEMENT_GROUP_PARTITION).cloned())
    };
    let group = Some("pg-1".to_owned());
    assert_eq!(labels(PlacementStrategy::Partition, Some(2)), (group.clone(), Some("2".to_owned())));
    assert_eq!(labels(PlacementStrategy::Partition, None), (group.clone(), Some(String::new())));
    assert_eq!(labels(PlacementStrategy::Spread, None), (group, None));
}

#[test]
fn a96_what_was_launched_is_known_before_ec2_describes_it() {
    let object = with_reservation(node_class("AL2023", &json!({})), &json!({"interruptible": true}));
    let class = class(&object);
    let types = MarketNow::default().types(&class, &["m5.large"]);
    let plan =
        LaunchPlan { capacity_type: "reserved", tenancy: "dedicated", partition: Some("2".to_owned()) };
    let fleet = FleetInstance {
        ids: vec!["i-1".to_owned()],
        instance_type: "m5.large".to_owned(),
        place: Place {
            zone: Some(ZONES[0].to_owned()),
            subnet_id: Some("subnet-a2".to_owned()),
            image_id: Some("ami-amd".to_owned()),
            instance_type: None,
        },
    };
    let tags = instance().tags;
    let machine = Machine::launched(&fleet, &class, &claim(&[]), &plan, &types, tags.clone(), NOW).unwrap();
    assert_eq!(machine.state, InstanceState::Pending);
    assert_eq!((machine.zone_id.as_str(), machine.subnet_id.as_str()), ("use1-az1", "subnet-a2"));
    assert_eq!(machine.partition, Some(2));
    assert!(machine.reservation.as_ref().is_some_and(|each| each.id == "cr-1" && each.is_interruptible));
    let all = node_claim(&machine, Some(&types[0]), Some(&class), NOW).metadata.labels.unwrap();
    assert_eq!(all[keys::CAPACITY_RESERVATION_INTERRUPTIBLE], "true");
    assert_eq!(
        (all[keys::CAPACITY_RESERVATION_TYPE].as_str(), all[keys::INSTANCE_TENANCY].as_str()),
        ("default", "dedicated")
    );
    let nowhere = FleetInstance { place: Place::default(), ..fleet.clone() };
    assert_eq!(Machine::launched(&nowhere, &class, &claim(&[]), &plan, &types, tags.clone(), NOW), None);
    let fabric = MarketNow::default().types(&class, &["m6idn.32xlarge"]);
    let fleet = FleetInstance { instance_type: "m6idn.32xlarge".to_owned(), ..fleet };
    let count =
        |claim| Machine::launched(&fleet, &class, &claim, &plan, &fabric, tags.clone(), NOW).unwrap().fabric;
    assert_eq!(count(claim(&[])), 0);
    assert_eq!(count(requesting(claim(&[]), &[(resources::AWS_EFA, "1")])), 2);
}

#[test]
fn a97_a_launched_claim_has_exactly_three_annotations() {
    let object = node_class("AL2023", &json!({}));
    let all = launch_annotations(&class(&object), Some("ca"));
    let keys: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "karpenter.k8s.aws/ec2nodeclass-hash",
            "karpenter.k8s.aws/ec2nodeclass-hash-version",
            "karpenter.k8s.aws/instance-profile-name",
        ]
    );
    assert_eq!(all["karpenter.k8s.aws/ec2nodeclass-hash-version"], "v6");
    assert_eq!(all["karpenter.k8s.aws/instance-profile-name"], "profile-1");
}
