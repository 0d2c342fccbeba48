//! Where launches and batches end: nothing is asked for without end, and nobody who is in trouble is asked more.

use std::collections::BTreeSet;
use std::time::Duration;

use api::names::values::capacity_type::{ON_DEMAND, SPOT};
use aws::double::{Stored, Times};
use aws::port::CapacityReservation;
use cloud::{CloudProvider as _, Error, Instance};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::play::{CLAIMS, CLASSES, Play, class};
use crate::support::{ZONES, claim};

const ON_DEMAND_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[ON_DEMAND]);
const RESERVED: &str = "reserved";

fn capacity_type(launched: &Instance) -> &str {
    &launched.metadata.labels.as_ref().unwrap()["karpenter.sh/capacity-type"]
}

/// A cluster with reservations of m5.large in the first zone that have room for one instance each.
fn with_reservations(ids: &[&str]) -> Play {
    let mut play = Play::with(&["m5.large"], &["--feature-gates=ReservedCapacity=true"]);
    let all: Vec<CapacityReservation> = ids
        .iter()
        .map(|id| CapacityReservation {
            id: (*id).to_owned(),
            zone: ZONES[0].to_owned(),
            instance_type: "m5.large".to_owned(),
            match_criteria: "targeted".to_owned(),
            available: 1,
            ..CapacityReservation::default()
        })
        .collect();
    let found: Vec<Value> = ids
        .iter()
        .map(|id| {
            json!({
                "id": id, "availabilityZone": ZONES[0], "instanceMatchCriteria": "targeted",
                "instanceType": "m5.large", "ownerID": "123456789012", "reservationType": "default",
                "state": "active", "interruptible": false,
            })
        })
        .collect();
    play.double.change(|world| {
        world.reservations = all.iter().map(|item| Stored { item: item.clone(), tags: [].into() }).collect();
        world.add_subnet("subnet-a2", ZONES[0], 1000, [].into());
    });
    let subnets = json!([
        {"id": "subnet-a1", "zone": ZONES[0], "zoneID": "us-east-1a-id"},
        {"id": "subnet-a2", "zone": ZONES[0], "zoneID": "us-east-1a-id"},
    ]);
    play.ready_class("default", &json!({}), &json!({"capacityReservations": found, "subnets": subnets}));
    let now = play.world.now();
    play.aws.know(|known| known.reservations.sync(&all, now));
    play
}

/// Launches; fails if that takes a minute.
fn launched(play: &Play) -> Result<Instance, Error> {
    let wanted = claim(&[]);
    play.world.block_on(async {
        let launch = tokio::time::timeout(Duration::from_mins(1), play.aws.create(&wanted));
        launch.await.expect("a launch comes to an end")
    })
}

#[test]
fn a250_a_reservation_is_asked_for_once_even_if_ec2_does_not_say_what_was_wrong() {
    let play = with_reservations(&["cr-1", "cr-2"]);
    play.double.change(|world| {
        world.vague = true;
        world.lacks("m5.large", ZONES[0], RESERVED);
    });
    let found = launched(&play).unwrap();
    assert_eq!(capacity_type(&found), SPOT);
    assert_eq!(play.double.count("ec2:CreateFleet"), 3, "each reservation, then spot");
    let left = play.aws.know(|known| known.reservations.left());
    assert_eq!(left.values().sum::<u32>(), 2, "nobody said that they are full");
}

#[test]
fn a251_a_full_subnet_leaves_the_reservation_to_the_other_subnets() {
    let play = with_reservations(&["cr-1"]);
    play.double.change(|world| {
        for subnet in &mut world.subnets {
            if subnet.item.id == "subnet-a1" {
                subnet.item.available_addresses = 0;
            }
        }
    });
    let found = launched(&play).unwrap();
    assert_eq!(capacity_type(&found), RESERVED);
    assert_eq!(play.double.count("ec2:CreateFleet"), 2, "one subnet, then the other");
    let used: BTreeSet<String> =
        play.double.change(|world| world.running().map(|each| each.subnet_id.clone()).collect());
    assert_eq!(used, ["subnet-a2".to_owned()].into());
}

#[test]
fn a252_a_fleet_has_a_thousand_instances_at_most() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let claims: Vec<_> = (0..2_001).map(|_| claim(&[ON_DEMAND_ONLY])).collect();
    let found = play.world.block_on(join_all(claims.iter().map(|each| play.aws.create(each))));
    let ids: BTreeSet<String> =
        found.into_iter().map(|each| each.unwrap().status.unwrap().provider_id).collect();
    assert_eq!(ids.len(), 2_001);
    let calls = play.double.calls();
    let fleets = calls.iter().filter(|call| call.operation == "ec2:CreateFleet");
    let mut sizes: Vec<u32> =
        fleets.map(|call| call.about.split(' ').next().unwrap().parse().unwrap()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 1000, 1000]);
}

#[test]
fn a253_an_ec2_in_trouble_is_not_asked_to_terminate_each_instance_alone() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    let mut claims = Vec::new();
    for _ in 0..20 {
        let mut known = claim(&[]);
        known.status = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap().status;
        claims.push(known);
    }
    let delete = |play: &Play| play.world.block_on(join_all(claims.iter().map(|each| play.aws.delete(each))));
    play.double.fail("ec2:TerminateInstances", "RequestLimitExceeded", "slow", Times::Always);
    play.double.forget_calls();
    assert!(delete(&play).iter().all(|each| each.as_ref().is_err_and(|error| !error.is_not_found())));
    assert_eq!(play.double.count("ec2:TerminateInstances"), 1);
    // One that is gone is another matter: the others must go all the same.
    play.double.fail("ec2:TerminateInstances", "InvalidInstanceID.NotFound", "i-0", Times::Next(1));
    play.double.forget_calls();
    assert!(delete(&play).iter().all(Result::is_ok));
    assert_eq!(play.double.count("ec2:TerminateInstances"), 21);
    assert_eq!(play.double.change(|world| world.running().count()), 0);
}

#[test]
fn a254_claims_of_another_cloud_are_none_of_our_business() {
    let mut play = Play::new(&["m5.large"]);
    play.start();
    play.world.apply(&class("default", &json!({})).to_string());
    play.pass(30);
    let mut other = serde_json::to_value(claim(&[])).unwrap();
    other["apiVersion"] = "karpenter.sh/v1".into();
    other["kind"] = "NodeClaim".into();
    other["metadata"] = json!({"name": "theirs"});
    other["spec"]["nodeClassRef"] =
        json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    other.as_object_mut().unwrap().remove("status");
    play.world.apply(&other.to_string());
    // A new version of the hash is written on all claims of the class.
    let stamps = json!({"karpenter.k8s.aws/ec2nodeclass-hash-version": "v5"});
    play.world.patch(&format!("{CLASSES}/default"), &json!({"metadata": {"annotations": stamps}}));
    play.pass(10);
    let found = play.world.get(&format!("{CLASSES}/default")).unwrap();
    assert_eq!(found["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash-version"], "v6");
    assert_eq!(play.claim("theirs")["metadata"]["annotations"], Value::Null);
    play.world.delete(&format!("{CLASSES}/default"));
    play.pass(10);
    assert!(play.world.get(&format!("{CLASSES}/default")).is_none(), "it waits for nobody");
    assert!(play.world.get(&format!("{CLAIMS}/theirs")).is_some());
}

#[test]
fn a255_a_template_that_could_not_be_deleted_is_deleted_later() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.start_some(|name| name == "launchtemplate.garbagecollection");
    play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    let count = |play: &Play| play.double.change(|world| world.templates.len());
    assert_eq!(count(&play), 1);
    play.double.fail("ec2:DeleteLaunchTemplate", "RequestLimitExceeded", "slow", Times::Next(2));
    play.pass(120);
    assert_eq!(count(&play), 1, "EC2 is asked too often");
    play.pass(180);
    assert_eq!(count(&play), 0);
    assert_eq!(play.double.count("ec2:DeleteLaunchTemplate"), 3);
}
