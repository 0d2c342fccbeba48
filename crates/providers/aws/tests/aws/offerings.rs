//! Where and how instance types can be bought at present.

use api::names::labels::{self, aws as keys};
use api::names::values::capacity_type::{ON_DEMAND, RESERVED, SPOT};
use aws::instance_type::memory::Learned;
use aws::instance_type::{Discovered, Unlisted, list};
use aws::node_class::Class;
use aws::port::{PlacementStrategy, SpotPrice};
use cloud::unavailable::Scope;
use cluster::instance_types::{InstanceType, Offering};
use serde_json::json;

use crate::support::{
    DISCOVERED, ENVIRONMENT, MarketNow, SETS, ZONES, class, info, label, node_class, only, placement_group,
    with_reservation,
};

/// Offerings that can be had, as capacity type and zone.
fn available(each: &InstanceType) -> Vec<String> {
    let text = |offering: &Offering| {
        let of = |key: &str| offering.value(key).unwrap_or_default().to_owned();
        let partition = offering.value(keys::PLACEMENT_GROUP_PARTITION);
        let partition = partition.map(|number| format!("/{number}")).unwrap_or_default();
        format!(
            "{} {}{partition}",
            of(labels::CAPACITY_TYPE),
            of(labels::ZONE).trim_start_matches("us-east-1")
        )
    };
    each.offerings.iter().filter(|offering| offering.available).map(text).collect()
}

#[test]
fn a20_zones_without_subnets_are_listed_but_cannot_be_had() {
    let object = node_class("AL2023", &json!({}));
    let types = MarketNow::default().types(&class(&object), &["m5.large"]);
    assert_eq!(types[0].offerings.len(), 6);
    assert_eq!(available(&types[0]), ["on-demand a", "spot a", "on-demand b", "spot b"]);
    let first = &types[0].offerings[0];
    assert_eq!(label(&first.requirements, keys::ZONE_ID), "use1-az1");
    assert_eq!(label(&first.requirements, keys::CAPACITY_RESERVATION_ID), "-");
}

#[test]
fn a21_types_that_cannot_be_used_are_listed_with_nothing_to_be_had() {
    let object = node_class("AL2023", &json!({}));
    let types = MarketNow::default().types(&class(&object), &["a1.large", "m5.large"]);
    assert_eq!(types.len(), 2);
    assert!(available(&types[0]).is_empty() && !available(&types[1]).is_empty());
}

#[test]
fn a22_what_has_no_price_cannot_be_had_unless_an_overlay_has_one() {
    let object = node_class("AL2023", &json!({}));
    let mut market = MarketNow::default();
    let spot = SpotPrice { instance_type: "m5.large".to_owned(), zone: ZONES[1].to_owned(), price: 0.01 };
    market.prices.update_spot(vec![spot]);
    let types = market.types(&class(&object), &["m5.large"]);
    assert_eq!(available(&types[0]), ["on-demand a", "on-demand b", "spot b"]);
    let mut preview = info("m5.large");
    preview.name = "m99.large".to_owned();
    let places = ZONES
        .map(|zone| aws::port::TypeInZone { instance_type: preview.name.clone(), zone: zone.to_owned() });
    let discovered = Discovered::new(vec![preview], places.into());
    let of = |market: &MarketNow| {
        let types =
            list(&class(&object), &discovered, &ENVIRONMENT, &Learned::default(), &market.get()).unwrap();
        available(&types[0])
    };
    assert!(of(&market).is_empty());
    market.overlay_prices.insert("m99.large".to_owned(), 1.0);
    assert_eq!(of(&market), ["on-demand a", "spot a", "on-demand b", "spot b"]);
}

#[test]
fn a23_what_was_not_to_be_had_is_not_offered_for_a_while() {
    let object = node_class("AL2023", &json!({}));
    let names = ["m5.large", "m5.xlarge"];
    let market = MarketNow::default();
    market.unavailable.mark(Scope::offering("m5.large", ZONES[0], SPOT), "ICE");
    let types = market.types(&class(&object), &names);
    assert_eq!(available(&types[0]), ["on-demand a", "on-demand b", "spot b"]);
    assert_eq!(available(&types[1]).len(), 4);
    market.unavailable.mark(Scope::capacity_type(SPOT), "role");
    assert_eq!(available(&market.types(&class(&object), &names)[1]), ["on-demand a", "on-demand b"]);
}

#[test]
fn a24_a_zone_is_out_when_all_its_subnets_are_full() {
    let object = node_class("AL2023", &json!({}));
    let market = MarketNow::default();
    let of = |market: &MarketNow| available(&market.types(&class(&object), &["m5.large"])[0]);
    market.unavailable.mark(Scope::subnet("subnet-a1"), "full");
    assert_eq!(of(&market).len(), 4);
    market.unavailable.mark(Scope::subnet("subnet-a2"), "full");
    assert_eq!(of(&market), ["on-demand b", "spot b"]);
    market.unavailable.mark(Scope::subnet("subnet-b1"), "full");
    assert!(of(&market).is_empty());
}

#[test]
fn a25_zones_that_traffic_is_shifted_away_from_are_avoided() {
    let object = with_reservation(node_class("AL2023", &json!({})), &json!({}));
    let market = MarketNow { shifted_zones: ["use1-az1".to_owned()].into(), ..MarketNow::default() };
    assert_eq!(available(&market.types(&class(&object), &["m5.large"])[0]), ["on-demand b", "spot b"]);
}

#[test]
fn a26_reservations_are_offered_for_almost_nothing() {
    let object = with_reservation(node_class("AL2023", &json!({})), &json!({"interruptible": true}));
    let types = MarketNow::default().types(&class(&object), &["m5.large", "m5.xlarge"]);
    let reserved = types[0].offerings.last().unwrap();
    assert_eq!(reserved.value(labels::CAPACITY_TYPE), Some(RESERVED));
    assert_eq!(reserved.value(keys::CAPACITY_RESERVATION_ID), Some("cr-1"));
    assert_eq!(reserved.value(keys::CAPACITY_RESERVATION_INTERRUPTIBLE), Some("true"));
    assert_eq!(reserved.reservation_capacity, 5);
    assert!(reserved.price > 0.0 && reserved.price < 0.000_001);
    assert_eq!(label(&types[0].requirements, labels::CAPACITY_TYPE), "on-demand|spot|reserved");
    assert_eq!(label(&types[0].requirements, keys::CAPACITY_RESERVATION_ID), "cr-1");
    assert_eq!(label(&types[1].requirements, keys::CAPACITY_RESERVATION_ID), "-");
    assert_eq!(types[1].offerings.len(), 6);
    let off = MarketNow { reserved_capacity: false, ..MarketNow::default() };
    assert_eq!(off.types(&class(&object), &["m5.large"])[0].offerings.len(), 6);
}

#[test]
fn a27_a_reservation_that_is_full_is_there_and_has_nothing_left() {
    let object = with_reservation(node_class("AL2023", &json!({})), &json!({}));
    let market = MarketNow { reservation_counts: [("cr-1".to_owned(), 0)].into(), ..MarketNow::default() };
    let types = market.types(&class(&object), &["m5.large"]);
    let reserved = types[0].offerings.last().unwrap();
    assert!(reserved.available && !reserved.is_launchable());
}

#[test]
fn a28_a_reservation_that_ends_soon_or_is_elsewhere_cannot_be_had() {
    let block = json!({"reservationType": "capacity-block", "state": "expiring"});
    for reservation in [block, json!({"availabilityZone": ZONES[2]}), json!({"instanceType": "a1.large"})] {
        let object = with_reservation(node_class("AL2023", &json!({})), &reservation);
        let types = MarketNow::default().types(&class(&object), &["m5.large", "a1.large"]);
        let of = |each: &InstanceType| available(each).iter().any(|text| text.starts_with(RESERVED));
        assert!(!types.iter().any(of), "{reservation}");
    }
    let block = json!({"reservationType": "capacity-block"});
    let object = with_reservation(node_class("AL2023", &json!({})), &block);
    let types = MarketNow::default().types(&class(&object), &["m5.large"]);
    assert!(types[0].offerings.last().unwrap().is_launchable());
}

#[test]
fn a29_each_partition_is_an_offering_of_its_own() {
    let object = node_class("AL2023", &json!({}));
    let group = placement_group(PlacementStrategy::Partition, 2);
    let class = Class::new(&object, Some(&group), false).unwrap();
    let market = MarketNow::default();
    let types = market.types(&class, &["m5.large"]);
    assert_eq!(types[0].offerings.len(), 12);
    assert_eq!(label(&types[0].requirements, keys::PLACEMENT_GROUP_PARTITION), "1|2");
    assert_eq!(label(&types[0].requirements, keys::PLACEMENT_GROUP_ID), "pg-1");
    let partition = Scope::offering("m5.large", ZONES[0], ON_DEMAND).within("pg-1/2");
    market.unavailable.mark(partition, "ICE");
    assert_eq!(
        available(&market.types(&class, &["m5.large"])[0])[..3],
        ["on-demand a/1".to_owned(), "spot a/1".to_owned(), "spot a/2".to_owned()]
    );
    market.unavailable.mark(Scope::offering("m5.large", ZONES[0], ON_DEMAND).within("pg-1"), "ICE");
    assert_eq!(available(&market.types(&class, &["m5.large"])[0])[0], "spot a/1");
    // Other groups and instances without any are not concerned.
    assert_eq!(available(&market.types(&self::class(&object), &["m5.large"])[0])[0], "on-demand a");
}

#[test]
fn a30_without_types_zones_or_subnets_there_is_no_list() {
    let object = node_class("AL2023", &json!({}));
    let market = MarketNow::default();
    let result = |object: &api::aws::EC2NodeClass, discovered: &Discovered| {
        list(&class(object), discovered, &ENVIRONMENT, &Learned::default(), &market.get())
            .map(|types| types.len())
    };
    assert_eq!(result(&object, &Discovered::default()), Err(Unlisted::NoTypes));
    assert_eq!(result(&object, &Discovered::new(vec![info("m5.large")], vec![])), Err(Unlisted::NoZones));
    let mut without = object.clone();
    without.status.as_mut().unwrap().subnets.clear();
    assert_eq!(result(&without, &only(&["m5.large"])), Err(Unlisted::NoSubnets));
    assert_eq!(result(&object, &DISCOVERED), Ok(1386));
}

#[test]
fn a31_memory_that_was_seen_replaces_the_estimate_for_the_same_images() {
    let object = node_class("AL2023", &json!({}));
    let mut learned = Learned::default();
    let images = aws::instance_type::memory::images_key(&object.status.as_ref().unwrap().amis);
    learned.note("m5.large", &images, "7500Mi".parse().unwrap());
    let market = MarketNow::default();
    let memory = |object: &api::aws::EC2NodeClass| {
        let types =
            list(&class(object), &only(&["m5.large"]), &ENVIRONMENT, &learned, &market.get()).unwrap();
        types[0].capacity.amount("memory").to_string()
    };
    assert_eq!(memory(&object), "7500Mi");
    let mut other = object.clone();
    other.status.as_mut().unwrap().amis[0].id = "ami-new".to_owned();
    assert_eq!(memory(&other), "7577Mi");
}

#[test]
fn a32_a_node_with_an_older_image_says_nothing_about_memory() {
    let object = node_class("AL2023", &json!({}));
    let is_telling = |arch: &str, image: &str| {
        let labels = [(labels::ARCH.to_owned(), arch.to_owned())].into();
        aws::instance_type::memory::is_telling(&class(&object), &labels, image, &SETS)
    };
    assert!(is_telling("amd64", "ami-amd") && is_telling("arm64", "ami-arm"));
    assert!(!is_telling("amd64", "ami-arm") && !is_telling("amd64", "ami-old") && !is_telling("s390x", ""));
}
