//! Where and how types can be bought, for how much, and whether at present.

use api::names::labels::azure as keys;
use api::shared::Operator;
use azure::arm::types::sku::{ResourceSku, RetailPrice};
use azure::instance_type::UNKNOWN_PRICE;
use azure::ranking::wants_ultra_ssd;
use azure::unavailable::Asked;
use cluster::instance_types::{InstanceType, Wanted};
use serde_json::{Value, json};

use crate::support::{
    DS_V3, ON_DEMAND, REGIONAL, SCOPE, SETS, SPOT, ULTRA_SSD, World, ZONAL, ZONE, find, label, like,
    offering, one, requirement, with,
};

/// All places of a type, with how it can be bought there.
fn places(each: &InstanceType) -> Vec<String> {
    let text = |offering: &cluster::instance_types::Offering| {
        let of = |key| offering.value(key).unwrap_or_default();
        let (paid, scope) = (of(keys::AKS_PRIORITY), of(SCOPE));
        assert_eq!(paid, of(keys::AKS_SCALE_SET_PRIORITY));
        format!("{} {} {paid} {scope}", of(ZONE), of("karpenter.sh/capacity-type"))
    };
    each.offerings.iter().map(text).collect()
}

// azure.md 5.1, 5.2, 25.3
#[test]
fn a_size_is_offered_in_the_region_and_in_each_of_its_zones() {
    let types = World::new(ZONAL).plain();
    expect_test::expect![[r#"
        0 on-demand regular regional
        0 spot spot regional
        southcentralus-2 on-demand regular zonal
        southcentralus-2 spot spot zonal
        southcentralus-3 on-demand regular zonal
        southcentralus-3 spot spot zonal"#]]
    .assert_eq(&places(find(&types, "Standard_D2as_v6")).join("\n"));
    let outside = ["0 on-demand regular regional", "0 spot spot regional"];
    assert_eq!(
        places(find(&types, "Standard_NC6s_v3")),
        outside,
        "a size without zones in a region with zones"
    );
    for each in World::new(REGIONAL).plain() {
        assert_eq!(places(&each), outside, "{}", each.name);
        assert_eq!(
            (label(&each.requirements, ZONE).as_str(), label(&each.requirements, SCOPE).as_str()),
            ("0", "regional")
        );
    }
}

// azure.md 25.3
#[test]
fn no_zone_is_empty() {
    for location in [ZONAL, REGIONAL] {
        for each in World::new(location).plain() {
            let zones = each.offerings.iter().map(|offering| offering.value(ZONE));
            assert!(zones.into_iter().all(|zone| zone.is_some_and(|zone| !zone.is_empty())));
        }
    }
}

// azure.md 5.2, 25.3
#[test]
fn what_is_not_sold_as_spot_is_there_and_cannot_be_had() {
    let world = World::with_sizes(&[with(one("Standard_D2s_v3"), "LowPriorityCapable", "False")]);
    let types = world.plain();
    for offering in &types[0].offerings {
        assert_eq!(offering.available, offering.value("karpenter.sh/capacity-type") == Some(ON_DEMAND));
    }
    assert_eq!(types[0].offerings.len(), 8);
    assert_eq!(label(&types[0].requirements, "karpenter.sh/capacity-type"), ON_DEMAND);
}

// azure.md 5.2, 6
#[test]
fn all_zones_have_one_price_and_the_two_markets_their_own() {
    let mut world = World::new(ZONAL);
    let row = |sku: &str, price: f64| -> RetailPrice {
        serde_json::from_value(json!({"skuName": sku, "armSkuName": "Standard_D2s_v3", "retailPrice": price}))
            .unwrap()
    };
    world.prices.update(&[row("D2s v3", 0.11), row("D2s v3 Spot", 0.02)]);
    let types = world.plain();
    for offering in &find(&types, "Standard_D2s_v3").offerings {
        let is_spot = offering.value("karpenter.sh/capacity-type") == Some(SPOT);
        assert!((offering.price - if is_spot { 0.02 } else { 0.11 }).abs() < 1e-9);
    }
    let unpriced = &find(&types, "Standard_D4s_v3").offerings;
    assert!(unpriced.iter().all(|each| (each.price - UNKNOWN_PRICE).abs() < 1e-9 && each.available));
}

// azure.md 25.3, 28.13
#[test]
fn a_family_that_came_after_the_table_is_the_last_choice_and_a_new_size_of_a_known_one_is_not() {
    let mut world = World::with_sizes(&[
        like("Standard_D2s_v3", "Standard_D6s_v3", DS_V3, 6),
        like("Standard_D2s_v3", "Standard_D2s_v9", "standardDSv9Family", 2),
    ]);
    let rows = ["Standard_D6s_v3", "Standard_D2s_v9"];
    let rows = rows.map(|name| RetailPrice {
        arm_sku_name: Some(name.to_owned()),
        retail_price: Some(0.3),
        ..RetailPrice::default()
    });
    world.prices.update(&rows);
    let types = world.plain();
    let price = |name: &str| offering(find(&types, name), "0", ON_DEMAND).price;
    assert!((price("Standard_D6s_v3") - 0.3).abs() < 1e-9);
    assert!((price("Standard_D2s_v9") - UNKNOWN_PRICE).abs() < 1e-9);
    assert!(offering(find(&types, "Standard_D2s_v9"), "0", ON_DEMAND).available);
}

// azure.md 5.2, 25.3
#[test]
fn an_exhausted_family_blocks_what_is_paid_by_use_only() {
    let mut world = World::new(ZONAL);
    world.quota.learn_sizes(&world.catalogue.clone());
    let before = world.quota.sequence();
    world.set_quota(&[(DS_V3, 46, 50), ("cores", 46, 1000)]);
    assert_ne!(world.quota.sequence(), before, "lists are made again");
    let types = world.plain();
    let available = |name: &str, kind: &str| {
        let mut all = find(&types, name).offerings.iter();
        all.any(|each| each.available && each.value("karpenter.sh/capacity-type") == Some(kind))
    };
    assert!(!available("Standard_D64s_v3", ON_DEMAND) && available("Standard_D64s_v3", SPOT));
    assert!(available("Standard_D4s_v3", ON_DEMAND), "an exact fit");
    assert!(available("Standard_D2s_v3", ON_DEMAND) && available("Standard_D2_v5", ON_DEMAND));
    assert_eq!(find(&types, "Standard_D64s_v3").offerings.len(), 8, "it is still in the list");
    assert_eq!(label(&find(&types, "Standard_D64s_v3").requirements, "karpenter.sh/capacity-type"), SPOT);
    let before = world.quota.sequence();
    world.set_quota(&[(DS_V3, 45, 50), ("cores", 45, 1000)]);
    assert_eq!(world.quota.sequence(), before, "no size fits that did not fit before");
    world.set_quota(&[(DS_V3, 47, 50), ("cores", 47, 1000)]);
    assert_ne!(world.quota.sequence(), before);
}

#[test]
fn spot_has_a_quota_of_its_own() {
    let mut world = World::new(ZONAL);
    world.set_quota(&[("lowPriorityCores", 1, 3)]);
    let types = world.plain();
    assert!(offering(find(&types, "Standard_D2s_v3"), "0", SPOT).available);
    assert!(!offering(find(&types, "Standard_D4s_v3"), "0", SPOT).available);
    assert!(offering(find(&types, "Standard_D4s_v3"), "0", ON_DEMAND).available);
}

// azure.md 5.2, 2.2
#[test]
fn labels_name_only_what_can_be_had() {
    let mut world = World::new(ZONAL);
    let sku = world.sku("Standard_D2s_v3");
    for kind in [ON_DEMAND, SPOT] {
        for zone in ["0", "southcentralus-1"] {
            world.unavailable.mark(&Asked::of(&sku, zone, kind), azure::unavailable::KEPT, world.now);
        }
    }
    let types = world.plain();
    let each = find(&types, "Standard_D2s_v3");
    assert_eq!(label(&each.requirements, ZONE), "southcentralus-2|southcentralus-3");
    assert_eq!(label(&each.requirements, SCOPE), "zonal");
    assert_eq!(each.offerings.len(), 8);
    world.wait(3);
    assert!(label(&find(&world.plain(), "Standard_D2s_v3").requirements, ZONE).starts_with("0|"));
}

/// A size with ultra disks in the region, and in some of three zones.
fn with_ultra_ssd(regional: &str, zones: &[&str]) -> ResourceSku {
    let mut wire = with(one("Standard_D2s_v3"), "UltraSSDAvailable", regional);
    let details: Vec<Value> = zones
        .iter()
        .map(|zone| json!({"name": [zone], "capabilities": [{"name": "UltraSSDAvailable", "value": "True"}]}))
        .collect();
    wire.location_info = serde_json::from_value(
        json!([{"location": ZONAL, "zones": ["1", "2", "3"], "zoneDetails": details}]),
    )
    .unwrap();
    wire
}

// azure.md 5.4, 25.3
#[test]
fn ultra_disks_in_the_region_say_nothing_about_zones_nor_one_zone_about_another() {
    let values = |wire: ResourceSku| {
        let types = World::with_sizes(&[wire]).plain();
        let of = |zone: &str| label(&offering(&types[0], zone, SPOT).requirements, ULTRA_SSD);
        (["0", "southcentralus-1", "southcentralus-2"].map(of), label(&types[0].requirements, ULTRA_SSD))
    };
    let (no, both) = ("false".to_owned(), "true|false".to_owned());
    let any = "false|true".to_owned();
    assert_eq!(values(with_ultra_ssd("True", &[])), ([both.clone(), no.clone(), no.clone()], any.clone()));
    assert_eq!(values(with_ultra_ssd("False", &["1"])), ([no.clone(), both, no.clone()], any));
    assert_eq!(values(with_ultra_ssd("False", &[])), ([no.clone(), no.clone(), no.clone()], no));
}

// azure.md 5.4, 25.3
#[test]
fn ultra_disks_are_enabled_if_nothing_else_will_do() {
    for (operator, values, expected) in [
        (Some(Operator::In), "true", true),
        (Some(Operator::In), "false", false),
        (Some(Operator::In), "", false),
        (None, "", false),
        (Some(Operator::In), "true,false", false),
        (Some(Operator::NotIn), "true", false),
        (Some(Operator::NotIn), "false", true),
    ] {
        let asked: Vec<_> =
            operator.map(|operator| requirement(ULTRA_SSD, operator, values)).into_iter().collect();
        let mut wanted = Wanted::new(&asked, &SETS).unwrap();
        assert_eq!(wants_ultra_ssd(&mut wanted), expected, "{operator:?} {values}");
    }
}
