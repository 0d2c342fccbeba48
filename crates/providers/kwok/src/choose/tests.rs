//! Which offering is chosen.

use api::provider::Provider;
use cluster::instance_types::kwok;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use super::*;

fn claim(requirements: &Value, requests: &Value) -> NodeClaim {
    let json = json!({
        "metadata": {"name": "c", "uid": "1"},
        "spec": {
            "requirements": requirements,
            "resources": {"requests": requests},
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
    });
    serde_json::from_value(json).unwrap()
}

fn one_of(key: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": "In", "values": values})
}

/// Type, zone and capacity type of what is chosen with each seed.
fn chosen(types: &[InstanceType], claim: &NodeClaim, seed: u64) -> Result<[String; 3], Error> {
    let sets = LabelSets::for_provider(Provider::Kwok);
    let mut wanted = wanted(claim, &sets)?;
    let choice = choose(claim, &mut wanted, types, &mut Pcg64Mcg::seed_from_u64(seed))?;
    let value = |key: &str| choice.offering.value(key).unwrap_or_default().to_owned();
    Ok([choice.instance_type.name.clone(), value(labels::ZONE), value(labels::CAPACITY_TYPE)])
}

#[test]
fn the_cheapest_offering_of_the_listed_types_is_taken() {
    let types = kwok::built_in();
    let names = ["m-4x-amd64-linux", "c-2x-amd64-linux", "s-2x-amd64-linux"];
    let zone = one_of(labels::ZONE, &["test-zone-c"]);
    let listed = one_of(labels::INSTANCE_TYPE, &names);
    let claim_of = |requirements: &[Value]| claim(&requirements.into(), &json!({"cpu": "100"}));
    let spot = claim_of(&[listed.clone(), zone.clone()]);
    assert_eq!(chosen(&types, &spot, 1).unwrap(), ["c-2x-amd64-linux", "test-zone-c", "spot"]);
    let on_demand = one_of(labels::CAPACITY_TYPE, &["on-demand"]);
    let on_demand = claim_of(&[listed, zone, on_demand]);
    assert_eq!(chosen(&types, &on_demand, 1).unwrap(), ["c-2x-amd64-linux", "test-zone-c", "on-demand"]);
}

#[test]
fn chance_decides_between_zones_of_the_same_price_but_the_seed_decides_chance() {
    let types = kwok::built_in();
    let claim = claim(&json!([one_of(labels::INSTANCE_TYPE, &["c-1x-arm64-linux"])]), &json!({}));
    let zones = |seeds: std::ops::Range<u64>| -> std::collections::BTreeSet<String> {
        seeds.map(|seed| chosen(&types, &claim, seed).unwrap()[1].clone()).collect()
    };
    assert_eq!(zones(0..50).len(), 4);
    assert_eq!(zones(3..4), zones(3..4));
}

#[test]
fn a_type_without_a_suitable_offering_is_passed_over() {
    let mut types = kwok::built_in();
    types.retain(|each| ["c-1x-amd64-linux", "c-2x-amd64-linux"].contains(&each.name.as_str()));
    for offering in &mut types[0].offerings {
        offering.available = false;
    }
    let listed = one_of(labels::INSTANCE_TYPE, &["c-1x-amd64-linux", "c-2x-amd64-linux"]);
    let two = claim(&json!([listed]), &json!({}));
    assert_eq!(chosen(&types, &two, 1).unwrap()[0], "c-2x-amd64-linux");
    let nowhere = claim(&json!([listed, one_of(labels::ZONE, &["elsewhere"])]), &json!({}));
    assert!(matches!(chosen(&types, &nowhere, 1), Err(Error::InsufficientCapacity(_))));
}

#[test]
fn a_full_reservation_is_not_launched_into() {
    let mut types = kwok::built_in();
    types.truncate(1);
    types[0].offerings.truncate(2);
    types[0].offerings[0].requirements[0].values = vec!["reserved".to_owned()];
    let any = claim(&json!([]), &json!({}));
    assert_eq!(chosen(&types, &any, 1).unwrap()[2], "on-demand");
    types[0].offerings[0].reservation_capacity = 1;
    assert_eq!(chosen(&types, &any, 1).unwrap()[2], "reserved");
}

#[test]
fn a_type_that_does_not_exist_is_named() {
    let unknown = claim(&json!([one_of(labels::INSTANCE_TYPE, &["huge"])]), &json!({}));
    let error = chosen(&kwok::built_in(), &unknown, 1).unwrap_err();
    assert_eq!(error, Error::Other("instance type not found (instance-type=huge)".to_owned()));
}

#[test]
fn a_claim_that_lists_no_types_gets_the_cheapest_that_is_large_enough() {
    let os = one_of(labels::OS, &["linux"]);
    let arch = one_of(labels::ARCH, &["arm64"]);
    let claim = claim(&json!([os, arch]), &json!({"cpu": "2", "memory": "9Gi"}));
    assert_eq!(chosen(&kwok::built_in(), &claim, 1).unwrap()[0], "s-4x-arm64-linux");
}

#[test]
fn of_entries_with_one_name_the_one_that_the_claim_allows_is_taken() {
    let mut types = kwok::built_in();
    types.retain(|each| each.name.starts_with("c-1x-amd64"));
    for each in &mut types {
        each.name = "same".to_owned();
        each.requirements[0].values = vec!["same".to_owned()];
    }
    let named = one_of(labels::INSTANCE_TYPE, &["same"]);
    let claim = claim(&json!([named, one_of(labels::OS, &["windows"])]), &json!({}));
    let sets = LabelSets::for_provider(Provider::Kwok);
    let mut wanted = wanted(&claim, &sets).unwrap();
    let choice = choose(&claim, &mut wanted, &types, &mut Pcg64Mcg::seed_from_u64(1)).unwrap();
    let os = choice.instance_type.requirements.iter().find(|each| each.key == labels::OS).unwrap();
    assert_eq!(os.values, ["windows"]);
}

#[test]
fn a_claim_that_cannot_be_understood_says_which_requirement() {
    let bad = claim(&json!([{"key": "size", "operator": "Gt", "values": ["big"]}]), &json!({}));
    let error = chosen(&kwok::built_in(), &bad, 1).unwrap_err().to_string();
    assert!(error.contains("size Gt") && error.contains("big"), "{error}");
}
