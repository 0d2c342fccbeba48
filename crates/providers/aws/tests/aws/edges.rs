//! Cases at the edges that the original's tests name and no other test here shows.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::names::metrics::aws as metrics;
use api::names::values::capacity_type::ON_DEMAND;
use aws::double::{Stored, Times};
use aws::port::{Error as AwsError, Instance, PlacementGroup, PlacementStrategy, TypeInZone};
use cloud::{CloudProvider as _, Error};
use futures::future::join_all;
use serde_json::json;

use crate::play::{CLASSES, Play, class, instance_type};
use crate::support::{ZONES, claim};

const ON_DEMAND_ONLY: (&str, &str, &[&str]) = ("karpenter.sh/capacity-type", "In", &[ON_DEMAND]);

fn play(types: &[&str]) -> Play {
    let mut play = Play::new(types);
    play.ready_class("default", &json!({}), &json!({}));
    play
}

#[test]
fn a240_questions_about_one_instance_are_one_and_an_error_is_for_everybody() {
    let mut play = play(&["m5.large"]);
    let ids: Vec<String> =
        (0..3).map(|number| play.node(&format!("claim-{number}"), &[ON_DEMAND_ONLY])).collect();
    let known: Vec<String> = ids.iter().map(|id| format!("aws:///{}/{id}", ZONES[0])).collect();
    // A process that has just started knows nothing and must ask.
    let instances = play.double.change(|world| world.instances.clone());
    let mut other = Play::new(&["m5.large"]);
    other.ready_class("default", &json!({}), &json!({}));
    other.double.change(|world| world.instances = instances);
    other.double.forget_calls();
    let many = (0..300).map(|number| other.aws.get(&known[number % known.len()]));
    let found = other.world.block_on(join_all(many));
    assert!(found.iter().all(Result::is_ok), "{:?}", found.iter().find(|each| each.is_err()));
    assert_eq!(other.double.count("ec2:DescribeInstances"), 1, "300 questions about three instances");
    let observed = |metric| other.metrics.value(metric, &["describe_instances"]);
    assert_eq!((observed(&metrics::BATCH_SIZE), observed(&metrics::BATCH_TIME)), (Some(1.0), Some(1.0)));
    // Who asks too often does not ask for each alone.
    let mut third = Play::new(&["m5.large"]);
    third.ready_class("default", &json!({}), &json!({}));
    third.double.fail("ec2:DescribeInstances", "RequestLimitExceeded", "slow", Times::Always);
    third.double.forget_calls();
    let found = third.world.block_on(join_all(known.iter().map(|id| third.aws.get(id))));
    assert!(found.iter().all(|each| each.as_ref().is_err_and(|error| !error.is_not_found())), "{found:?}");
    assert_eq!(third.double.count("ec2:DescribeInstances"), 1);
}

#[test]
fn a241_a_termination_that_fails_is_counted_and_tried_again() {
    let mut play = play(&["m5.large"]);
    let mut known = claim(&[]);
    known.status = play
        .create(&claim(&[ON_DEMAND_ONLY, ("topology.kubernetes.io/zone", "In", &[ZONES[0]])]))
        .unwrap()
        .status;
    play.double.fail_with(
        AwsError::new("ec2:TerminateInstances", "InternalError", "no").by_server(),
        Times::Next(1),
    );
    let failed = play.world.block_on(play.aws.delete(&known)).unwrap_err();
    assert!(!failed.is_not_found(), "{failed}");
    let place = [ZONES[0], "us-east-1a-id"];
    assert_eq!(play.metrics.value(&metrics::INSTANCE_TERMINATION_FAILURES, &place), Some(1.0));
    play.world.block_on(play.aws.delete(&known)).unwrap();
    assert_eq!(play.metrics.value(&metrics::INSTANCE_TERMINATION_FAILURES, &place), Some(1.0));
    play.pass(1);
    assert_eq!(play.double.change(|world| world.running().count()), 0);
}

#[test]
fn a242_of_all_instances_of_an_account_only_ours_are_listed() {
    let play = play(&["m5.large"]);
    let ours: BTreeSet<String> = (0..20)
        .map(|_| play.create(&claim(&[ON_DEMAND_ONLY])).unwrap().status.unwrap().provider_id)
        .collect();
    play.double.change(|world| {
        let one = world.running().next().unwrap().clone();
        for number in 0..20 {
            let mut tags = one.tags.clone();
            match number % 3 {
                0 => drop(tags.insert("eks:eks-cluster-name".to_owned(), "another".to_owned())),
                1 => drop(tags.remove("karpenter.sh/nodepool")),
                _ => tags.clear(),
            }
            let other = Instance { id: format!("i-other-{number}"), tags, ..one.clone() };
            world.instances.insert(other.id.clone(), other);
        }
    });
    let listed = play.world.block_on(play.aws.list()).unwrap();
    let listed: BTreeSet<String> = listed.into_iter().map(|each| each.status.unwrap().provider_id).collect();
    assert_eq!(listed, ours);
}

#[test]
fn a243_whether_a_claim_without_its_instance_has_drifted_is_not_known() {
    let mut play = play(&["m5.large"]);
    play.node("one", &[ON_DEMAND_ONLY]);
    play.pool("pool-1", "default", &json!({}));
    let read =
        |play: &Play| -> api::nodeclaim::NodeClaim { serde_json::from_value(play.claim("one")).unwrap() };
    let drift = |play: &Play, claim: &api::nodeclaim::NodeClaim| play.world.block_on(play.aws.drift(claim));
    assert_eq!(drift(&play, &read(&play)), Ok(None));
    for id in ["", "no provider ID", "aws:///us-east-1a/i-00000000000000000"] {
        let mut wrong = read(&play);
        id.clone_into(&mut wrong.status.as_mut().unwrap().provider_id);
        assert!(drift(&play, &wrong).is_err(), "{id:?}");
    }
    let mut without = read(&play);
    without.metadata.labels.as_mut().unwrap().remove("node.kubernetes.io/instance-type");
    assert!(drift(&play, &without).is_err(), "nobody knows which image it would get");
    let mut orphan = read(&play);
    orphan.metadata.labels.as_mut().unwrap().insert("karpenter.sh/nodepool".to_owned(), "gone".to_owned());
    assert_eq!(drift(&play, &orphan), Ok(None), "without a pool there is nothing to compare with");
}

#[test]
fn a244_a_launch_offers_as_many_values_as_the_pool_asks_for() {
    let play = play(&["c5.large", "c6i.large", "m5.large", "m6i.large", "r5.large"]);
    let offered = |wanted: &api::nodeclaim::NodeClaim| -> Result<BTreeSet<String>, Error> {
        play.double.forget_calls();
        play.create(wanted)?;
        let name = |offer: String| offer.split([' ', '/']).nth(1).unwrap_or_default().to_owned();
        Ok(play.asked().into_iter().map(name).collect())
    };
    let mut choosy = claim(&[
        ON_DEMAND_ONLY,
        ("karpenter.k8s.aws/instance-family", "Exists", &[]),
        ("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"]),
    ]);
    choosy.spec.requirements[1].min_values = Some(4);
    choosy.spec.requirements[2].min_values = Some(3);
    let all = offered(&choosy).unwrap();
    let families: BTreeSet<&str> = all.iter().filter_map(|name| name.split('.').next()).collect();
    assert!(families.len() >= 4, "{families:?}");
    assert_eq!(families.iter().filter_map(|family| family.chars().next()).collect::<BTreeSet<_>>().len(), 3);
    choosy.spec.requirements[1].min_values = Some(6);
    assert!(matches!(offered(&choosy), Err(Error::InsufficientCapacity(_))), "there are five families");
}

#[test]
fn a245_ten_thousand_questions_at_once_get_one_list() {
    let play = play(&["m5.large", "c5.large"]);
    let pool: api::nodepool::NodePool = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "pool-1"},
        "spec": {"template": {"spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
        }}},
    }))
    .unwrap();
    play.double.forget_calls();
    let lists = play.world.block_on(join_all((0..10_000).map(|_| play.aws.instance_types(&pool))));
    let first = lists[0].as_ref().unwrap();
    assert!(lists.iter().all(|list| Arc::ptr_eq(list.as_ref().unwrap(), first)));
    assert!(play.double.calls().is_empty(), "{:?}", play.double.calls());
}

#[test]
fn a246_a_local_zone_has_what_ec2_says_that_it_has() {
    const LOCAL: &str = "us-east-1-bos-1a";
    let mut play = Play::new(&["m5.large", "c5.large"]);
    play.double.change(|world| {
        world.places.push(TypeInZone { instance_type: "m5.large".to_owned(), zone: LOCAL.to_owned() });
        world.add_subnet("subnet-local", LOCAL, 100, [("cluster".to_owned(), "test".to_owned())].into());
    });
    play.world.block_on(play.aws.refresh_instance_types()).unwrap();
    play.ready_class(
        "default",
        &json!({}),
        &json!({"subnets": [{"id": "subnet-local", "zone": LOCAL, "zoneID": format!("{LOCAL}-id")}]}),
    );
    let launched = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    assert_eq!(instance_type(&launched), "m5.large", "c5.large is not there");
    let labels = launched.metadata.labels.unwrap();
    assert_eq!(labels["topology.kubernetes.io/zone"], LOCAL);
    assert_eq!(labels["topology.k8s.aws/zone-id"], format!("{LOCAL}-id"));
}

#[test]
fn a247_one_subnet_that_accepts_instances_is_enough_and_a_verdict_goes_with_its_class() {
    let mut play = Play::new(&["m5.large"]);
    play.double
        .fail_with(AwsError::new("ec2:RunInstances", "InternalError", "no").by_server(), Times::Next(1));
    play.start();
    play.world.apply(&class("default", &json!({})).to_string());
    play.pass(30);
    assert_eq!(play.condition("default", "Ready").0, "True", "the second subnet is fine");
    assert_eq!(play.double.count("ec2:RunInstances"), 2);
    play.double.fail("ec2:CreateFleet", "UnauthorizedOperation", "no", Times::Always);
    play.world.apply(&class("second", &json!({})).to_string());
    play.pass(30);
    assert_eq!(play.condition("second", "ValidationSucceeded").1, "CreateFleetAuthCheckFailed");
    play.double.mend("ec2:CreateFleet");
    play.world.delete(&format!("{CLASSES}/second"));
    play.pass(10);
    assert!(play.world.get(&format!("{CLASSES}/second")).is_none());
    play.world.apply(&class("second", &json!({})).to_string());
    play.pass(30);
    assert_eq!(play.condition("second", "Ready").0, "True", "it is another class");
}

#[test]
fn a248_only_nodes_in_partitions_wait_for_their_partition() {
    let group = |strategy, partitions| PlacementGroup {
        id: "pg-1".to_owned(),
        name: "group".to_owned(),
        strategy,
        partitions,
        spread_level: None,
    };
    for (strategy, partitions) in [(PlacementStrategy::Cluster, 0), (PlacementStrategy::Spread, 0)] {
        let mut play = Play::new(&["m5.large"]);
        play.double.change(|world| world.placement_groups.push(group(strategy, partitions)));
        play.ready_class("default", &json!({"placementGroupSelector": {"name": "group"}}), &json!({}));
        let mut known = claim(&[]);
        let launched = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
        known.metadata.labels = launched.metadata.labels;
        known.status = launched.status;
        let hooks = play.aws.registration_hooks();
        play.double.forget_calls();
        assert_eq!(play.world.block_on(hooks[0].registered(&known)), Ok(runtime::Again::No), "{strategy:?}");
        assert!(play.double.calls().is_empty(), "{strategy:?}");
    }
    let mut play = Play::new(&["m5.large"]);
    play.double.change(|world| world.placement_groups.push(group(PlacementStrategy::Partition, 3)));
    play.ready_class("default", &json!({"placementGroupSelector": {"name": "group"}}), &json!({}));
    let ask = |play: &Play, claim: &api::nodeclaim::NodeClaim| {
        play.world.block_on(play.aws.registration_hooks()[0].registered(claim))
    };
    assert_eq!(ask(&play, &claim(&[])), Ok(runtime::Again::No), "in no group");
    let launched = play.create(&claim(&[ON_DEMAND_ONLY])).unwrap();
    let mut known = claim(&[]);
    known.metadata.labels = launched.metadata.labels;
    known.status = launched.status;
    play.double.change(|world| world.instances.clear());
    play.pass(31);
    assert!(ask(&play, &known).is_err(), "the instance is gone");
    let label = "karpenter.k8s.aws/placement-group-partition";
    known.metadata.labels.as_mut().unwrap().insert(label.to_owned(), "2".to_owned());
    assert_eq!(ask(&play, &known), Ok(runtime::Again::No), "it is known already");
}

#[test]
fn a249_reservations_that_were_seen_twice_are_one() {
    let mut play = Play::with(&["m5.large"], &["--feature-gates=ReservedCapacity=true"]);
    play.start();
    play.double.change(|world| {
        world.reservations.push(Stored {
            item: aws::port::CapacityReservation {
                id: "cr-1".to_owned(),
                zone: ZONES[0].to_owned(),
                instance_type: "m5.large".to_owned(),
                owner_id: "111122223333".to_owned(),
                match_criteria: "targeted".to_owned(),
                available: 1,
                ..aws::port::CapacityReservation::default()
            },
            tags: [("team".to_owned(), "a".to_owned())].into(),
        });
    });
    let terms = json!([{"id": "cr-1"}, {"tags": {"team": "a"}}]);
    play.world.apply(&class("default", &json!({"capacityReservationSelectorTerms": terms})).to_string());
    play.pass(30);
    let object = play.world.get(&format!("{CLASSES}/default")).unwrap();
    assert_eq!(object["status"]["capacityReservations"].as_array().map(Vec::len), Some(1));
    play.create(&claim(&[])).unwrap();
    let second = play.create(&claim(&[])).unwrap();
    assert_ne!(second.metadata.labels.unwrap()["karpenter.sh/capacity-type"], "reserved", "there was one");
}
