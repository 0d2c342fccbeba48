//! Whether instances are still what their NodeClass asks for.

use std::collections::BTreeMap;

use api::aws::EC2NodeClass;
use api::names::labels;
use api::names::labels::aws as keys;
use api::nodeclaim::NodeClaim;
use aws::instance::drift::{Unknown, of_claim, of_machine};
use aws::instance::{Machine, Reservation};
use aws::node_class::Class;
use aws::port::PlacementStrategy;
use cloud::CloudProvider as _;
use serde_json::json;

use crate::play::Play;
use crate::support::{MarketNow, SETS, ZONES, claim, class, node_class, placement_group, with_reservation};

const HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
const VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";

fn annotated(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A claim for an m5.large with an image.
fn launched(image: &str) -> NodeClaim {
    let mut claim = claim(&[]);
    let all = claim.metadata.labels.as_mut().unwrap();
    all.insert(labels::INSTANCE_TYPE.to_owned(), "m5.large".to_owned());
    claim.status = Some(api::nodeclaim::NodeClaimStatus {
        image_id: image.to_owned(),
        ..api::nodeclaim::NodeClaimStatus::default()
    });
    claim
}

fn by_claim(
    object: &EC2NodeClass,
    annotations: &BTreeMap<String, String>,
    claim: &NodeClaim,
) -> Result<Option<&'static str>, Unknown> {
    let class = class(object);
    let types = MarketNow::default().types(&class, &["m5.large"]);
    of_claim(&class, Some(annotations), claim, &types, &SETS)
}

#[test]
fn a100_a_changed_class_counts_only_if_both_hashes_are_of_the_same_kind() {
    let object = node_class("AL2023", &json!({}));
    let result = |class: &[(&str, &str)], of_claim: &[(&str, &str)]| {
        let mut claim = launched("ami-amd");
        claim.metadata.annotations = Some(annotated(of_claim));
        by_claim(&object, &annotated(class), &claim).unwrap()
    };
    let new = [(HASH, "2"), (VERSION, "v6")];
    assert_eq!(result(&new, &[(HASH, "1"), (VERSION, "v6")]), Some("NodeClassDrift"));
    assert_eq!(result(&new, &new), None);
    assert_eq!(result(&new, &[(HASH, "1"), (VERSION, "v5")]), None);
    assert_eq!(result(&new, &[(HASH, "1")]), None);
    assert_eq!(result(&new, &[(VERSION, "v6")]), None);
    assert_eq!(result(&[(VERSION, "v6")], &[(HASH, "1"), (VERSION, "v6")]), None);
    assert_eq!(result(&[], &[]), None);
}

#[test]
fn a101_an_image_that_would_not_be_taken_today_counts() {
    let object = node_class("AL2023", &json!({}));
    let none = BTreeMap::new();
    assert_eq!(by_claim(&object, &none, &launched("ami-amd")), Ok(None));
    assert_eq!(by_claim(&object, &none, &launched("ami-old")), Ok(Some("AMIDrift")));
    assert_eq!(by_claim(&object, &none, &launched("ami-arm")), Ok(Some("AMIDrift")));
    assert_eq!(by_claim(&object, &none, &launched("")), Err(Unknown::NoImageId));
    let mut without = object.clone();
    without.status.as_mut().unwrap().amis.clear();
    assert_eq!(by_claim(&without, &none, &launched("ami-amd")), Err(Unknown::NoImages));
    let mut unknown = launched("ami-amd");
    unknown.metadata.labels.as_mut().unwrap().remove(labels::INSTANCE_TYPE);
    assert_eq!(by_claim(&object, &none, &unknown), Err(Unknown::InstanceType(String::new())));
}

fn machine() -> Machine {
    Machine {
        subnet_id: "subnet-a1".to_owned(),
        security_groups: vec!["sg-2".to_owned(), "sg-1".to_owned()],
        ..Machine::default()
    }
}

#[test]
fn a102_security_groups_are_compared_as_sets() {
    let object = node_class("AL2023", &json!({}));
    let result = |groups: &[&str]| {
        let security_groups = groups.iter().map(|group| (*group).to_owned()).collect();
        of_machine(&class(&object), &launched("ami-amd"), &Machine { security_groups, ..machine() })
    };
    assert_eq!(result(&["sg-2", "sg-1"]), Ok(None));
    for groups in [&["sg-1"][..], &["sg-1", "sg-2", "sg-3"], &["sg-1", "sg-3"], &[]] {
        assert_eq!(result(groups), Ok(Some("SecurityGroupDrift")), "{groups:?}");
    }
    let mut without = object.clone();
    without.status.as_mut().unwrap().security_groups.clear();
    assert_eq!(of_machine(&class(&without), &launched(""), &machine()), Err(Unknown::NoSecurityGroups));
}

#[test]
fn a103_subnet_reservation_and_placement_group_must_still_be_selected() {
    let object = node_class("AL2023", &json!({}));
    let elsewhere = Machine { subnet_id: "subnet-x".to_owned(), ..machine() };
    assert_eq!(of_machine(&class(&object), &launched(""), &elsewhere), Ok(Some("SubnetDrift")));
    let mut without = object.clone();
    without.status.as_mut().unwrap().subnets.clear();
    assert_eq!(of_machine(&class(&without), &launched(""), &machine()), Err(Unknown::NoSubnets));
    let reservation = Some(Reservation { id: "cr-1".to_owned(), ..Reservation::default() });
    let reserved = Machine { reservation, ..machine() };
    assert_eq!(of_machine(&class(&object), &launched(""), &reserved), Ok(Some("CapacityReservationDrift")));
    let with = with_reservation(object.clone(), &json!({}));
    assert_eq!(of_machine(&class(&with), &launched(""), &reserved), Ok(None));
    let group = placement_group(PlacementStrategy::Cluster, 0);
    let grouped = Class::new(&object, Some(&group), false).unwrap();
    assert_eq!(of_machine(&grouped, &launched(""), &machine()), Ok(Some("PlacementGroupDrift")));
    let mut placed = launched("");
    let all = placed.metadata.labels.as_mut().unwrap();
    all.insert(keys::PLACEMENT_GROUP_ID.to_owned(), "pg-1".to_owned());
    assert_eq!(of_machine(&grouped, &placed, &machine()), Ok(None));
    assert_eq!(of_machine(&class(&object), &placed, &machine()), Ok(Some("PlacementGroupDrift")));
}

#[test]
fn a104_of_several_reasons_the_first_is_told() {
    let object = node_class("AL2023", &json!({}));
    let group = placement_group(PlacementStrategy::Cluster, 0);
    let grouped = Class::new(&object, Some(&group), false).unwrap();
    // Everything is wrong at first; then one after the other is mended, the first reason first.
    let reservation = Some(Reservation { id: "cr-1".to_owned(), ..Reservation::default() });
    let mut wrong =
        Machine { security_groups: vec![], subnet_id: "subnet-x".to_owned(), reservation, ..machine() };
    let reason = |machine: &Machine| of_machine(&grouped, &launched(""), machine).unwrap();
    assert_eq!(reason(&wrong), Some("SecurityGroupDrift"));
    wrong.security_groups = machine().security_groups;
    assert_eq!(reason(&wrong), Some("SubnetDrift"));
    wrong.subnet_id = machine().subnet_id;
    assert_eq!(reason(&wrong), Some("CapacityReservationDrift"));
    wrong.reservation = None;
    assert_eq!(reason(&wrong), Some("PlacementGroupDrift"));
    // What the claim says counts before its image does.
    let (new, old) = ([(HASH, "2"), (VERSION, "v6")], [(HASH, "1"), (VERSION, "v6")]);
    let mut both = launched("ami-old");
    both.metadata.annotations = Some(annotated(&old));
    assert_eq!(by_claim(&object, &annotated(&new), &both), Ok(Some("NodeClassDrift")));
    both.metadata.annotations = Some(annotated(&new));
    assert_eq!(by_claim(&object, &annotated(&new), &both), Ok(Some("AMIDrift")));
}

#[test]
fn a262_a_claim_that_drifted_is_asked_about_before_its_instance_is() {
    let mut play = Play::new(&["m5.large"]);
    play.ready_class("default", &json!({}), &json!({}));
    play.pool("pool-1", "default", &json!({}));
    let asked = claim(&[("karpenter.sh/capacity-type", "In", &["on-demand"])]);
    let mut known = play.create(&asked).unwrap();
    known.spec = asked.spec;
    known.metadata.labels.as_mut().unwrap().insert("karpenter.sh/nodepool".to_owned(), "pool-1".to_owned());
    assert_eq!(play.world.block_on(play.aws.drift(&known)), Ok(None));
    // Both the image and the subnets are others by now.
    play.ready_class(
        "default",
        &json!({}),
        &json!({
            "subnets": [{"id": "subnet-x", "zone": ZONES[0], "zoneID": "us-east-1a-id"}],
            "amis": [{"id": "ami-new", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]}],
        }),
    );
    play.double.forget_calls();
    assert_eq!(play.world.block_on(play.aws.drift(&known)), Ok(Some("AMIDrift".to_owned())));
    assert_eq!(play.double.count("ec2:DescribeInstances"), 0);
}
