//! The provider on an AWS in the process.

use std::collections::BTreeSet;
use std::time::Duration;

use api::names::metrics::aws as metrics;
use api::names::values::capacity_type::{ON_DEMAND, SPOT};
use aws::double::{Stored, Times};
use aws::port::{CapacityReservation, PlacementGroup, PlacementStrategy, Subnet, ZonalShifts};
use cloud::{CloudProvider as _, Error};
use futures::future::join_all;
use serde_json::json;

use crate::play::{Play, instance_type};
use crate::support::{DISCOVERED, REGION, ZONES, claim};

const ON_DEMAND_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[ON_DEMAND]);

#[test]
fn a140_a_launch_creates_a_template_a_fleet_and_a_claim_that_says_what_it_got() {
    let mut play = Play::new(&["m5.large", "m5.xlarge"]);
    play.ready_class("default", &json!({}), &json!({}));
    let launched = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    assert_eq!(instance_type(&launched), "m5.large");
    let status = launched.status.clone().unwrap();
    assert!(status.provider_id.starts_with("aws:///us-east-1"), "{}", status.provider_id);
    assert_eq!(status.image_id, "ami-amd");
    assert_eq!(launched.metadata.annotations.as_ref().unwrap().len(), 3);
    assert_eq!(play.double.count("ec2:CreateLaunchTemplate"), 2, "they take different numbers of pods");
    assert_eq!(play.double.count("ec2:DescribeLaunchTemplates"), 0);
    assert_eq!(play.double.count("ec2:CreateFleet"), 1);
    let found = play.world.block_on(play.aws.get(&status.provider_id)).unwrap();
    assert_eq!(found.metadata.labels.as_ref().unwrap()["karpenter.sh/nodepool"], "pool-1");
    assert_eq!(play.world.block_on(play.aws.list()).unwrap().len(), 1);
    assert_eq!(play.metrics.value(&metrics::INSTANCES_LAUNCHED, &[ON_DEMAND]), Some(1.0));
}

#[test]
fn a141_what_ec2_does_not_have_is_followed_by_other_offerings_in_the_same_launch() {
    let names: Vec<&str> = DISCOVERED
        .types()
        .filter(|info| {
            let prices = aws::prices::Prices::of_region(REGION);
            let is_usual = ["c5.", "c6i.", "m5.", "m6i.", "r5.", "r6i.", "m5a.", "r5a.", "c5a.", "c7i."]
                .iter()
                .any(|family| info.name.starts_with(family));
            is_usual && !info.name.contains("metal") && prices.on_demand(&info.name).is_some()
        })
        .map(|info| info.name.as_str())
        .collect();
    assert!(names.len() > 70, "{}", names.len());
    let mut play = Play::new(&names);
    play.ready_class("default", &json!({}), &json!({}));
    let prices = aws::prices::Prices::of_region(REGION);
    let price = |name: &str| prices.on_demand(name).unwrap();
    let dearest = *names.iter().max_by(|a, b| price(a).total_cmp(&price(b)).then(a.cmp(b))).unwrap();
    play.double.change(|world| {
        for name in &names {
            for zone in ZONES {
                world.lacks(name, zone, SPOT);
                if *name != dearest || zone != ZONES[1] {
                    world.lacks(name, zone, ON_DEMAND);
                }
            }
        }
    });
    let before = play.world.now();
    let launched = play.create(&claim(&[])).unwrap();
    assert_eq!(instance_type(&launched), dearest);
    let asked = play.asked();
    assert!(asked.len() > 51, "{} offerings were asked for", asked.len());
    assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), asked.len(), "an offering was asked for twice");
    assert!(play.world.now().duration_since(before).as_secs_f64() <= 1.0);
    // The next launch does not ask for them either.
    play.double.forget_calls();
    play.create(&claim(&[])).unwrap();
    let known: BTreeSet<&String> = asked.iter().filter(|offer| !offer.contains(dearest)).collect();
    assert!(play.asked().iter().all(|offer| !known.contains(offer)));
}

#[test]
fn a142_when_nothing_is_left_the_claim_is_told_what_ec2_said() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.change(|world| {
        for zone in ZONES {
            world.lacks("m5.large", zone, SPOT);
            world.lacks("m5.large", zone, ON_DEMAND);
        }
    });
    let error = play.create(&claim(&[])).unwrap_err();
    let Error::InsufficientCapacity(text) = &error else { panic!("{error}") };
    assert!(text.contains("InsufficientInstanceCapacity"), "{text}");
    assert_eq!(play.asked().len(), 4);
    assert_eq!(
        play.metrics
            .value(&metrics::INSTANCE_LAUNCH_FAILURES, &[ZONES[0], "us-east-1a-id", SPOT, "LaunchFailed"]),
        Some(1.0)
    );
    // While it is known, nothing is asked at all.
    assert!(matches!(play.create(&claim(&[])), Err(Error::InsufficientCapacity(_))));
    assert_eq!(play.asked().len(), 4);
    play.pass(181);
    play.double.change(|world| world.insufficient.clear());
    play.create(&claim(&[])).unwrap();
}

#[test]
fn a143_an_error_that_other_offerings_do_not_help_with_ends_the_launch() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.fail("ec2:CreateFleet", "UnauthorizedOperation", "no", Times::Always);
    let Err(Error::Create { reason, .. }) = play.create(&claim(&[])) else { panic!("it was launched") };
    assert_eq!(reason, "Unauthorized");
    assert_eq!(play.double.count("ec2:CreateFleet"), 1);
    play.double.fail("ec2:CreateFleet", "RequestLimitExceeded", "slow", Times::Next(1));
    assert!(play.create(&claim(&[])).is_err());
    play.create(&claim(&[])).unwrap();
}

#[test]
fn a144_five_hundred_claims_of_one_shape_are_one_fleet() {
    let mut play = Play::new(&["m5.large", "c5.large", "r5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    // They have one shape, and still each its own name and the time at which it was made.
    let claims: Vec<_> = (0..500)
        .map(|number| {
            let mut each = claim(&[ON_DEMAND_ONLY]);
            each.metadata.name = Some(format!("claim-{number}"));
            each.metadata.uid = Some(format!("uid-{number}"));
            each
        })
        .collect();
    let launched = play.world.block_on(join_all(claims.iter().map(|each| play.aws.create(each))));
    let ids: BTreeSet<String> =
        launched.into_iter().map(|each| each.unwrap().status.unwrap().provider_id).collect();
    assert_eq!(ids.len(), 500, "each claim has an instance of its own");
    let fleets: Vec<String> = play
        .double
        .calls()
        .into_iter()
        .filter(|call| call.operation == "ec2:CreateFleet")
        .map(|call| call.about)
        .collect();
    let [fleet] = fleets.as_slice() else { panic!("{fleets:?}") };
    assert!(fleet.starts_with("500 on-demand "), "{fleet}");
    for offer in
        ["m5.large", "c5.large", "r5.large"].map(|name| [0, 1].map(|zone| format!("{name}/{}", ZONES[zone])))
    {
        assert!(offer.iter().all(|offer| fleet.split(' ').any(|each| each == offer)), "{fleet}");
    }
    assert_eq!(play.double.change(|world| world.running().count()), 500, "and nobody else's was launched");
    let calls = play.double.calls().len();
    // Two of them asked for the instance types.
    let per_node = f64::from(u32::try_from(calls - 2).unwrap()) / 500.0;
    println!("calls per node: {per_node}");
    assert!(per_node < 0.01, "{per_node} calls per node");
    assert_eq!(play.metrics.value(&metrics::API_CALLS, &["ec2:CreateFleet"]), Some(1.0));
    assert_eq!(play.metrics.value(&metrics::INSTANCES_LAUNCHED, &[ON_DEMAND]), Some(500.0));
    assert_eq!(play.world.block_on(play.aws.list()).unwrap().len(), 500);
    // They go together, too.
    play.double.forget_calls();
    let gone = ids.iter().map(|id| {
        let mut gone = claim(&[]);
        gone.status.get_or_insert_default().provider_id.clone_from(id);
        gone
    });
    let gone: Vec<_> = gone.collect();
    let deleted = play.world.block_on(join_all(gone.iter().map(|each| play.aws.delete(each))));
    assert!(deleted.iter().all(Result::is_ok));
    assert_eq!(
        (play.double.count("ec2:DescribeInstances"), play.double.count("ec2:TerminateInstances")),
        (1, 1)
    );
}

#[test]
fn a156_claims_of_two_shapes_and_all_types_are_two_fleets() {
    let names: Vec<&str> = DISCOVERED.types().map(|info| info.name.as_str()).collect();
    let mut play = Play::new(&names);
    play.ready_class("default", &json!({}), &json!({}));
    let general = ("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"][..]);
    let claims: Vec<_> = (0..500)
        .map(
            |number| {
                if number % 2 == 0 { claim(&[ON_DEMAND_ONLY]) } else { claim(&[ON_DEMAND_ONLY, general]) }
            },
        )
        .collect();
    play.double.forget_calls();
    let launched = play.world.block_on(join_all(claims.iter().map(|each| play.aws.create(each))));
    for (number, each) in launched.into_iter().enumerate() {
        let each = each.unwrap();
        let is_general = ["c", "m", "r"].iter().any(|family| instance_type(&each).starts_with(family));
        assert!(number % 2 == 0 || is_general, "{}", instance_type(&each));
    }
    assert_eq!(play.double.count("ec2:CreateFleet"), 2);
    let calls = play.double.calls().len();
    println!("{calls} requests for 500 nodes of {} types", names.len());
    assert!(calls < 100, "{calls}");
    // What was worked out for a shape is worked out again when something changes.
    let scope = cloud::unavailable::Scope::capacity_type(ON_DEMAND);
    play.aws.unavailable().mark(scope, "test");
    assert!(matches!(play.create(&claims[0]), Err(Error::InsufficientCapacity(_))));
}

#[test]
fn a145_a_batch_that_is_only_half_filled_goes_on_with_other_offerings() {
    let mut play = Play::new(&["m5.large", "m5.xlarge"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.change(|world| {
        world.subnets[0].item.available_addresses = 3;
        world.subnets[1].item.available_addresses = 0;
        world.add_subnet("subnet-a2", ZONES[0], 10, [("cluster".to_owned(), "test".to_owned())].into());
    });
    let subnets = json!({"subnets": [
        {"id": "subnet-a1", "zone": ZONES[0], "zoneID": "us-east-1a-id"},
        {"id": "subnet-a2", "zone": ZONES[0], "zoneID": "us-east-1a-id"},
        {"id": "subnet-b1", "zone": ZONES[1], "zoneID": "us-east-1b-id"},
    ]});
    play.ready_class("default", &json!({}), &subnets);
    let claims: Vec<_> = (0..8).map(|_| claim(&[ON_DEMAND_ONLY])).collect();
    let launched = play.world.block_on(join_all(claims.iter().map(|each| play.aws.create(each))));
    assert!(launched.iter().all(Result::is_ok), "{launched:?}");
    let in_second = play
        .double
        .change(|world| world.running().filter(|instance| instance.subnet_id == "subnet-a2").count());
    assert_eq!(in_second, 5);
}

#[test]
fn a146_templates_are_created_once_kept_while_used_and_created_again_if_somebody_deleted_them() {
    let mut play = Play::new(&["m5.large", "m6g.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.start_some(|name| name == "launchtemplate.garbagecollection");
    let both: Vec<_> = (0..3).map(|_| claim(&[ON_DEMAND_ONLY])).collect();
    let launched = play.world.block_on(join_all(both.iter().map(|each| play.aws.create(each))));
    assert!(launched.iter().all(Result::is_ok), "{launched:?}");
    let templates =
        |play: &Play| play.double.change(|world| world.templates.keys().cloned().collect::<Vec<_>>());
    assert_eq!(play.double.count("ec2:CreateLaunchTemplate"), 2, "one for each image");
    let first = templates(&play);
    // As long as they are used, they stay, however long that is.
    for _ in 0..5 {
        play.pass(50);
        play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    }
    assert_eq!(templates(&play), first);
    assert_eq!(play.double.count("ec2:CreateLaunchTemplate"), 2);
    // Somebody deletes them: the launch that notices makes them again, and succeeds.
    play.double.change(|world| world.templates.clear());
    play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    assert_eq!(play.double.count("ec2:CreateLaunchTemplate"), 4);
    assert_eq!(templates(&play).len(), 2);
    // One that another process created is the same: it is neither made again nor changed.
    let made = play.double.change(|world| world.templates.clone());
    let mut other = Play::new(&["m5.large", "m6g.large"]);
    other.ready_class("default", &json!({}), &json!({}));
    other.double.change(|world| world.templates = made.clone());
    other.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    assert_eq!(other.double.change(|world| world.templates.clone()), made);
    // Nobody needs them any more.
    play.pass(120);
    assert_eq!(templates(&play), Vec::<String>::new());
}

#[test]
fn a147_an_instance_that_ec2_does_not_describe_yet_is_neither_lost_nor_gone() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.double.change(|world| world.hide_new_instances = 2);
    let mut known = claim(&[ON_DEMAND_ONLY]);
    known.status = play.create(&known).unwrap().status;
    let id = known.status.as_ref().unwrap().provider_id.clone();
    play.world.block_on(play.aws.list()).unwrap();
    assert!(play.world.block_on(play.aws.get(&id)).is_ok());
    play.world.block_on(play.aws.delete(&known)).unwrap();
    assert_eq!(play.double.change(|world| world.running().count()), 0);
    play.double.change(|world| world.instances.clear());
    play.pass(31);
    assert!(play.world.block_on(play.aws.delete(&known)).unwrap_err().is_not_found());
    assert!(play.world.block_on(play.aws.get(&id)).unwrap_err().is_not_found());
}

#[test]
fn a148_a_class_that_is_missing_or_not_ready_launches_nothing() {
    let mut play = Play::new(&["m5.large"]);
    let missing = play.create(&claim(&[])).unwrap_err();
    assert!(matches!(missing, Error::InsufficientCapacity(_)), "{missing}");
    assert!(play.events.published().iter().any(|event| event.message.contains("Failed resolving NodeClass")));
    play.ready_class(
        "default",
        &json!({}),
        &json!({"conditions": [{
            "type": "Ready", "status": "False", "reason": "r", "message": "SubnetsReady=False",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}),
    );
    assert_eq!(play.create(&claim(&[])), Err(Error::NodeClassNotReady("SubnetsReady=False".to_owned())));
    play.ready_class("default", &json!({"tags": {"a": "b"}}), &json!({"securityGroups": []}));
    assert!(matches!(play.create(&claim(&[])), Err(Error::Create { .. })));
    assert_eq!(play.asked(), Vec::<String>::new());
}

#[test]
fn a149_what_cannot_be_had_is_gone_from_the_lists_of_all_classes_at_once() {
    let mut play = Play::new(&["m5.large", "m5.xlarge"]);
    for name in ["default", "other"] {
        play.ready_class(name, &json!({}), &json!({}));
    }
    let pool = |class: &str| -> api::nodepool::NodePool {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": class},
            "spec": {"template": {"spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class},
            }}},
        }))
        .unwrap()
    };
    let list = |play: &Play, class: &str| play.world.block_on(play.aws.instance_types(&pool(class))).unwrap();
    let available = |play: &Play, class: &str| -> usize {
        let types = list(play, class);
        types[0].offerings.iter().filter(|each| each.available).count()
    };
    let before = list(&play, "default");
    assert!(
        std::sync::Arc::ptr_eq(&before, &list(&play, "default")),
        "nothing changed, so it is the same list"
    );
    assert_eq!((available(&play, "default"), available(&play, "other")), (4, 4));
    let scope = cloud::unavailable::Scope::offering("m5.large", ZONES[0], SPOT);
    play.aws.unavailable().mark(scope, "test");
    assert_eq!((available(&play, "default"), available(&play, "other")), (3, 3));
    play.pass(181);
    assert_eq!((available(&play, "default"), available(&play, "other")), (4, 4));
    // Prices count at once, and so does everything in a class.
    play.aws.know(|known| {
        known.change_prices(|prices| prices.update_on_demand([("m5.large".to_owned(), 9.0)].into()))
    });
    assert!(list(&play, "default")[0].offerings.iter().any(|each| (each.price - 9.0).abs() < 1e-9));
    play.ready_class("other", &json!({"cpuOptions": {"nestedVirtualization": "enabled"}}), &json!({}));
    assert_ne!(available(&play, "default"), available(&play, "other"));
}

#[test]
fn a150_a_reservation_is_filled_and_then_others_are_launched() {
    let mut play = Play::with(&["m5.large"], &["--feature-gates=ReservedCapacity=true"]);
    let reservation = CapacityReservation {
        id: "cr-1".to_owned(),
        zone: ZONES[0].to_owned(),
        instance_type: "m5.large".to_owned(),
        match_criteria: "targeted".to_owned(),
        available: 1,
        ..CapacityReservation::default()
    };
    play.double
        .change(|world| world.reservations.push(Stored { item: reservation.clone(), tags: [].into() }));
    play.ready_class("default", &json!({}), &json!({"capacityReservations": [{
        "id": "cr-1", "availabilityZone": ZONES[0], "instanceMatchCriteria": "targeted",
        "instanceType": "m5.large", "ownerID": "123456789012", "reservationType": "default", "state": "active",
        "interruptible": false,
    }]}));
    let now = play.world.now();
    // EC2 said two, but somebody else was faster.
    play.aws
        .know(|known| known.reservations.sync(&[CapacityReservation { available: 2, ..reservation }], now));
    let kind = |launched: &cloud::Instance| {
        launched.metadata.labels.as_ref().unwrap()["karpenter.sh/capacity-type"].clone()
    };
    let first = play.create(&claim(&[])).unwrap();
    assert_eq!(kind(&first), "reserved");
    assert_eq!(first.metadata.labels.as_ref().unwrap()["karpenter.k8s.aws/capacity-reservation-id"], "cr-1");
    assert_eq!(kind(&play.create(&claim(&[])).unwrap()), SPOT, "in the same launch");
    assert_eq!(play.aws.know(|known| known.reservations.left()["cr-1"]), 0);
    let mut gone = first;
    play.double.change(|world| world.instances.clear());
    play.pass(31);
    gone.metadata.name = Some("claim-1".to_owned());
    assert!(play.world.block_on(play.aws.delete(&gone)).unwrap_err().is_not_found());
    assert_eq!(play.aws.know(|known| known.reservations.left()["cr-1"]), 1);
}

#[test]
fn a151_nothing_is_asked_about_instances_in_a_zone_that_is_avoided() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let in_a = claim(&[ON_DEMAND_ONLY, ("topology.kubernetes.io/zone", "In", &[ZONES[0]])]);
    let mut known = in_a.clone();
    known.status = play.create(&in_a).unwrap().status;
    let until = play.world.now() + Duration::from_hours(1);
    play.aws.know(|all| {
        all.shifted.replace(vec![ZonalShifts { zone_id: "us-east-1a-id".to_owned(), until, applied: true }]);
    });
    play.double.forget_calls();
    assert!(play.world.block_on(play.aws.delete(&known)).is_err());
    assert!(play.world.block_on(play.aws.get(&known.status.as_ref().unwrap().provider_id)).is_ok());
    assert!(matches!(play.create(&in_a), Err(Error::InsufficientCapacity(_))));
    assert!(play.double.calls().is_empty(), "{:?}", play.double.calls());
    play.pass(3601);
    play.world.block_on(play.aws.delete(&known)).unwrap();
}

#[test]
fn a152_a_partition_that_ec2_chose_is_written_on_the_claim() {
    let mut play = Play::new(&["m5.large"]);
    play.double.change(|world| {
        world.placement_groups.push(PlacementGroup {
            id: "pg-1".to_owned(),
            name: "group".to_owned(),
            strategy: PlacementStrategy::Partition,
            partitions: 3,
            spread_level: None,
        });
    });
    play.ready_class("default", &json!({"placementGroupSelector": {"name": "group"}}), &json!({}));
    let launched = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    let labels = launched.metadata.labels.clone().unwrap();
    assert_eq!(labels["karpenter.k8s.aws/placement-group-id"], "pg-1");
    assert_eq!(labels["karpenter.k8s.aws/placement-group-partition"], "");
    let mut written = serde_json::to_value(claim(&[ON_DEMAND_ONLY])).unwrap();
    written["metadata"]["labels"] = json!(labels);
    written["apiVersion"] = "karpenter.sh/v1".into();
    written["kind"] = "NodeClaim".into();
    written.as_object_mut().unwrap().remove("status");
    play.world.apply(&written.to_string());
    let mut known = claim(&[]);
    known.metadata.labels = Some(labels);
    let hooks = play.aws.registration_hooks();
    let ask = |play: &Play, claim: &_| play.world.block_on(hooks[0].registered(claim)).unwrap();
    assert_ne!(ask(&play, &known), runtime::Again::No, "without an instance there is nothing to ask");
    known.status = launched.status;
    assert_eq!(ask(&play, &known), runtime::Again::No);
    let object = play.world.get(&format!("{}/claim-1", crate::play::CLAIMS)).unwrap();
    assert_eq!(object["metadata"]["labels"]["karpenter.k8s.aws/placement-group-partition"], "1");
}

#[test]
fn a153_a_machine_is_booted_once_for_the_same_reason() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let mut known = claim(&[]);
    known.status = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap().status;
    for operation in ["one", "one", "two"] {
        play.world.block_on(play.aws.reboot(&known, operation)).unwrap();
    }
    assert_eq!(play.double.change(|world| world.reboots.len()), 2);
    play.double.fail("ec2:RebootInstances", "UnauthorizedOperation", "no", Times::Always);
    let error = play.world.block_on(play.aws.reboot(&known, "three")).unwrap_err();
    assert!(error.ends_reboot(), "{error}");
}

#[test]
fn a154_one_instance_that_is_gone_does_not_hide_the_others() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let claims: Vec<_> = (0..3).map(|_| claim(&[ON_DEMAND_ONLY])).collect();
    let launched = play.world.block_on(join_all(claims.iter().map(|each| play.aws.create(each))));
    let launched: Vec<_> = launched.into_iter().map(Result::unwrap).collect();
    play.pass(31);
    let lost = launched[1].status.as_ref().unwrap().provider_id.rsplit('/').next().unwrap().to_owned();
    play.double.change(|world| world.instances.remove(&lost));
    let deleted = play.world.block_on(join_all(launched.iter().map(|each| play.aws.delete(each))));
    assert!(deleted[0].is_ok() && deleted[2].is_ok(), "{deleted:?}");
    assert!(deleted[1].as_ref().unwrap_err().is_not_found());
}

#[test]
fn a155_a_subnet_falls_behind_as_launches_take_its_addresses() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class(
        "default",
        &json!({}),
        &json!({"subnets": [
            {"id": "subnet-a1", "zone": ZONES[0], "zoneID": "us-east-1a-id"},
            {"id": "subnet-a2", "zone": ZONES[0], "zoneID": "us-east-1a-id"},
        ]}),
    );
    play.double.change(|world| world.add_subnet("subnet-a2", ZONES[0], 4000, [].into()));
    let free =
        |id: &str, free: i64| Subnet { id: id.to_owned(), available_addresses: free, ..Subnet::default() };
    play.aws.know(|known| known.addresses.refresh(&[free("subnet-a1", 100), free("subnet-a2", 90)]));
    for _ in 0..4 {
        play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    }
    let used = play
        .double
        .change(|world| world.running().filter(|instance| instance.subnet_id == "subnet-a2").count());
    assert_eq!(used, 2);
}
