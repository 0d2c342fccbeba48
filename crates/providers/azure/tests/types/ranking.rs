//! Which machine a launch asks for, and why not another one.

use std::collections::BTreeMap;

use api::shared::Requirement;
use azure::instance_type::Obstacle;
use azure::ranking::Reason;
use azure::unavailable::Asked;
use serde_json::json;

use crate::support::{
    DS_V3, ON_DEMAND, SCOPE, SPOT, World, ZONAL, ZONE, is, like, one, profile, requirement,
};

const NAME: &str = "node.kubernetes.io/instance-type";
const KIND: &str = "karpenter.sh/capacity-type";

fn by_use(names: &str) -> Vec<Requirement> {
    vec![is(NAME, names), is(KIND, ON_DEMAND)]
}

// azure.md 7
#[test]
fn the_cheapest_comes_first_and_names_decide_between_equals() {
    let world = World::new(ZONAL);
    let types = world.plain();
    let ranking =
        world.rank(&types, &by_use("Standard_D2s_v3,Standard_D2_v3,Standard_D2as_v6,Standard_D64s_v3"), 0);
    let order: Vec<&str> = ranking.candidates.iter().map(|each| each.instance_type.name.as_str()).collect();
    assert_eq!(order, ["Standard_D2as_v6", "Standard_D2_v3", "Standard_D2s_v3", "Standard_D64s_v3"]);
}

// azure.md 7, 25.3
#[test]
fn spot_comes_before_what_is_paid_by_use_and_zones_before_the_region() {
    let world = World::new(ZONAL);
    let types = world.plain();
    let ranking = world.rank(&types, &[is(NAME, "Standard_D2s_v3")], 0);
    let text = |offering: &&cluster::instance_types::Offering| {
        format!("{} {}", offering.value(KIND).unwrap(), offering.value(SCOPE).unwrap())
    };
    let order: Vec<String> = ranking.candidates[0].offerings.iter().map(text).collect();
    let expected = ["spot zonal", "spot zonal", "spot zonal", "spot regional", "on-demand zonal"];
    assert_eq!(order[..5], expected);
    assert_eq!(order[7], "on-demand regional");
}

// azure.md 7
#[test]
fn machines_spread_over_zones_that_are_equally_good_and_a_seed_always_decides_alike() {
    let world = World::new(ZONAL);
    let types = world.plain();
    let zone = |seed: u64| {
        let ranking = world.rank(&types, &by_use("Standard_D2s_v3"), seed);
        let (_, offering) = ranking.best().unwrap();
        offering.value(ZONE).unwrap().to_owned()
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..150 {
        *counts.entry(zone(seed)).or_default() += 1;
    }
    assert_eq!(counts.len(), 3);
    assert!(counts.values().all(|count| (35..=65).contains(count)), "{counts:?}");
    assert!((0..10).all(|seed| zone(seed) == zone(seed)));
}

// azure.md 25.3, zones
#[test]
fn zones_and_the_region_can_be_asked_for() {
    let world = World::new(ZONAL);
    let best = |more: &[Requirement]| {
        let mut all = by_use("Standard_D2s_v3");
        all.extend_from_slice(more);
        world.best(&all).map(|(_, zone, _)| zone)
    };
    assert_eq!(best(&[is(SCOPE, "regional")]).as_deref(), Ok("0"), "a size with zones, launched without");
    assert_eq!(best(&[is(ZONE, "southcentralus-2")]).as_deref(), Ok("southcentralus-2"));
    let zones = "southcentralus-1,southcentralus-2,southcentralus-3";
    assert!(
        best(&[is(ZONE, zones)]).unwrap().starts_with("southcentralus-"),
        "real zones exclude the region"
    );
    assert!(best(&[]).unwrap().starts_with("southcentralus-"), "zones are preferred");
    let outside = [is(NAME, "Standard_NC6s_v3"), is(ZONE, zones)];
    assert!(world.best(&outside).is_err());
    assert_eq!(world.best(&[is(NAME, "Standard_NC6s_v3"), is(KIND, ON_DEMAND)]).unwrap().1, "0");
}

#[test]
fn what_was_left_out_is_said_with_the_reason() {
    let mut world = World::new(ZONAL);
    let stale = world.plain();
    let sku = world.sku("Standard_F16s_v2");
    world.unavailable.mark(
        &Asked::of(&sku, "southcentralus-1", ON_DEMAND),
        azure::unavailable::KEPT,
        world.now,
    );
    world.set_quota(&[(DS_V3, 48, 50)]);
    // Lists that were made before and after: what is known now counts in both.
    for types in [stale, world.plain()] {
        let ranking = world.rank(&types, &by_use("Standard_D2s_v3,Standard_D4s_v3,Standard_F16s_v2"), 0);
        let reason = |name: &str, zone: Option<&str>| {
            let mut all = ranking.skipped.iter().filter(|skipped| skipped.instance_type == name);
            let found =
                all.find(|skipped| zone.is_none_or(|zone| skipped.offering == Some((zone, ON_DEMAND))));
            found.map(|skipped| skipped.reason.clone())
        };
        assert_eq!(reason("Standard_D2_v5", None), Some(Reason::Requirements));
        assert_eq!(reason("Standard_D2s_v3", Some("0")), None);
        let Some(Reason::Obstacle(Obstacle::Quota(shortage))) = reason("Standard_D4s_v3", Some("0")) else {
            panic!("{:?}", reason("Standard_D4s_v3", Some("0")))
        };
        assert_eq!((shortage.quota.as_str(), shortage.needed, shortage.left), (DS_V3, 4, 2));
        let closed = reason("Standard_F16s_v2", Some("southcentralus-1"));
        assert!(matches!(closed, Some(Reason::Obstacle(Obstacle::Unavailable { .. }))));
        assert_eq!(
            ranking.why(),
            "Standard_F16s_v2: Azure did not have it, and is not asked again before 2027-01-15T08:03:00Z; \
             Standard_D4s_v3: the quota standardDSv3Family is used up: 4 vCPUs are needed, 2 of 50 are left"
        );
    }
}

#[test]
fn if_nothing_is_left_the_claim_is_told_why() {
    let mut world = World::new(ZONAL);
    world.set_quota(&[(DS_V3, 50, 50)]);
    let error = world.best(&by_use("Standard_D2s_v3,Standard_D4s_v3,Standard_D64s_v3")).unwrap_err();
    assert!(
        error.starts_with(
            "insufficient capacity, all requested instance types were unavailable during launch: "
        )
    );
    assert!(
        error.contains("Standard_D64s_v3: the quota standardDSv3Family is used up: 64 vCPUs are needed"),
        "{error}"
    );
    let nothing = world.best(&[is(NAME, "Standard_X1")]).unwrap_err();
    assert_eq!(nothing, "insufficient capacity, all requested instance types were unavailable during launch");
}

// azure.md 9
#[test]
fn a_machine_must_have_room_for_the_pods() {
    let world = World::new(ZONAL);
    let types = world.plain();
    let asked = by_use("Standard_D2s_v3,Standard_D4s_v3,Standard_D64s_v3");
    let mut wanted = cluster::instance_types::Wanted::new(&asked, &crate::support::SETS).unwrap();
    let requests = [("cpu", "3".parse().unwrap())].into_iter().collect();
    let mut request = azure::ranking::Request { wanted: &mut wanted, requests: &requests, seed: 0 };
    let ranking = azure::ranking::rank(&types, &mut request, &world.catalogue, &world.market());
    assert_eq!(ranking.best().unwrap().0.name, "Standard_D4s_v3");
    let too_small: Vec<&str> = ranking
        .skipped
        .iter()
        .filter(|skipped| skipped.reason == Reason::TooSmall)
        .map(|skipped| skipped.instance_type)
        .collect();
    assert_eq!(too_small, ["Standard_D2s_v3"; 4]);
}

// The first create succeeds without one doomed attempt.
#[test]
fn with_the_quota_of_the_three_cheapest_families_used_up_the_first_choice_is_the_fourth() {
    let mut world = World::new(ZONAL);
    let wanted = [is(KIND, ON_DEMAND), is("kubernetes.io/arch", "amd64")];
    let types = world.types(&profile(json!({})));
    let mut families: Vec<String> = Vec::new();
    for each in world.rank(&types, &wanted, 0).candidates {
        let family = world.sku(&each.instance_type.name).family.clone();
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let used_up: Vec<(&str, i64, i64)> =
        families[..3].iter().map(|family| (family.as_str(), 10, 10)).collect();
    world.set_quota(&used_up);
    let (name, ..) = world.best(&wanted).unwrap();
    assert_eq!(world.sku(&name).family, families[3], "{families:?}");
    // Nothing that would be refused is among the alternatives either.
    let types = world.types(&profile(json!({})));
    for each in world.rank(&types, &wanted, 0).candidates {
        assert!(!families[..3].contains(&world.sku(&each.instance_type.name).family));
    }
}

// azure.md 25.4
#[test]
fn a_smaller_type_is_chosen_when_the_larger_one_cannot_be_had() {
    let mut world = World::new(ZONAL);
    let sku = world.sku("Standard_D64s_v3");
    for zone in sku.placements() {
        for kind in [ON_DEMAND, SPOT] {
            world.unavailable.mark(&Asked::of(&sku, zone, kind), azure::unavailable::KEPT, world.now);
        }
    }
    assert!(world.best(&[is(NAME, "Standard_D64s_v3")]).is_err());
    assert_eq!(world.best(&[is(NAME, "Standard_D64s_v3,Standard_D4s_v3")]).unwrap().0, "Standard_D4s_v3");
    world.wait(3);
    assert_eq!(world.best(&[is(NAME, "Standard_D64s_v3")]).unwrap().0, "Standard_D64s_v3");
}

#[test]
fn launches_that_are_decided_together_share_the_quota() {
    let mut world = World::with_sizes(&[
        one("Standard_D4s_v3"),
        like("Standard_D4s_v3", "Standard_E4s_v5", "standardESv5Family", 4),
    ]);
    world.quota.learn_sizes(&world.catalogue.clone());
    world.set_quota(&[(DS_V3, 0, 10)]);
    let wanted = [is(KIND, ON_DEMAND)];
    let mut chosen = Vec::new();
    for launch in ["a", "b", "c", "d"] {
        let types = world.plain();
        let ranking = world.rank(&types, &wanted, 0);
        let (each, offering) = ranking.best().unwrap();
        let sku = world.sku(&each.name);
        let zone = offering.value(ZONE).unwrap();
        world.quota.take(launch, &Asked::of(&sku, zone, ON_DEMAND), world.now).unwrap();
        chosen.push(each.name.clone());
    }
    let (first, then) = ("Standard_D4s_v3", "Standard_E4s_v5");
    assert_eq!(chosen, [first, first, then, then]);
    let sequence = world.quota.sequence();
    world.quota.give_back("a");
    assert_ne!(world.quota.sequence(), sequence, "lists are made again");
    assert_eq!(world.best(&wanted).unwrap().0, first);
}

#[test]
fn requirements_that_name_no_offering_leave_nothing() {
    let world = World::new(ZONAL);
    let types = world.plain();
    let absent = requirement(ZONE, api::shared::Operator::DoesNotExist, "");
    let ranking = world.rank(&types, &[absent], 0);
    assert!(ranking.candidates.is_empty() && ranking.why().is_empty());
}
