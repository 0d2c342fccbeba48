//! Pods, planned on Azure's instance types.

use std::collections::{BTreeMap, BTreeSet};

use api::names::labels;
use api::shared::Operator;
use azure::launch_errors::{Attempt, Refusal, meaning};
use azure::unavailable::Asked;
use cluster::instance_types::InstanceType;
use serde_json::{Value, json};

use crate::plan::Cluster;
use crate::support::{DS_V3, ON_DEMAND, World, ZONAL, ZONE, one, profile, with};

const KIND: &str = "karpenter.sh/capacity-type";
const MAX_DISK: &str = "karpenter.azure.com/sku-storage-ephemeralos-maxsize";

/// A value of each well-known label that some type has.
fn values(types: &[InstanceType]) -> BTreeMap<String, String> {
    let all = types.iter().flat_map(|each| &each.requirements);
    let set = all.filter(|each| each.operator == Operator::In && !each.values.is_empty());
    set.map(|each| (each.key.clone(), each.values[0].clone())).collect()
}

// azure.md 25.3
#[test]
fn every_well_known_label_can_be_selected_and_one_node_is_enough_until_it_registers() {
    let gpu = with(one("Standard_NC16as_T4_v3"), "GPUs", "1");
    let world = World::with_sizes(&[one("Standard_D4s_v3"), one("Standard_E4d_v5"), gpu]);
    let types = world.types(&profile(json!({"fipsMode": "FIPS"})));
    let known = values(&types);
    let by_others = [labels::NODEPOOL, labels::WINDOWS_BUILD];
    let mut tested = BTreeSet::new();
    for key in crate::support::SETS.well_known().filter(|key| !by_others.contains(key)) {
        let value = known.get(key).unwrap_or_else(|| panic!("no type has {key}"));
        let mut cluster = Cluster::new(json!([])).pod("pod", "1", json!({"nodeSelector": {key: value}}));
        let plan = cluster.plan(&types);
        assert_eq!(plan.claims.len(), 1, "{key}={value}: {:?}", plan.pending);
        let (each, offering) = world.choose(&types, &plan.claims[0].0, 0).unwrap();
        cluster.launched(&plan.claims[0].0, each, offering);
        for _ in 0..2 {
            let again = cluster.plan(&types);
            assert_eq!((again.claims.len(), again.placed), (0, 1), "{key}={value}");
        }
        let nowhere =
            Cluster::new(json!([])).pod("pod", "1", json!({"nodeSelector": {key: "nothing-like-it"}}));
        assert_eq!(nowhere.plan(&types).claims.len(), 0, "{key}");
        tested.insert(key.to_owned());
    }
    assert_eq!(tested.len(), 28);
}

// azure.md 25.3, ephemeral disks
#[test]
fn a_disk_larger_than_any_of_a_host_can_be_asked_for_and_not_be_had() {
    let world = World::new(ZONAL);
    let types = world.plain();
    let plan = |least: &str| {
        let pool = json!([{"key": MAX_DISK, "operator": "Gt", "values": [least]}]);
        Cluster::new(pool).pod("pod", "1", json!({})).plan(&types)
    };
    assert_eq!(plan("100").claims.len(), 1);
    assert_eq!(plan("7558").claims.len(), 1);
    assert_eq!(plan("7559").pending.len(), 1);
}

// azure.md 25.3, zones
#[test]
fn pods_spread_over_zones_although_some_sizes_have_none() {
    let world = World::new(ZONAL);
    let types = world.plain();
    let spread = json!({"topologySpreadConstraints": [{
        "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]});
    let mut cluster = Cluster::new(json!([]));
    for number in 0..8 {
        cluster = cluster.pod(&format!("pod-{number}"), "1", spread.clone());
    }
    let plan = cluster.plan(&types);
    assert!(plan.pending.is_empty(), "{:?}", plan.pending);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (claim, pods) in &plan.claims {
        let (_, offering) = world.choose(&types, claim, 0).unwrap();
        *counts.entry(offering.value(ZONE).unwrap().to_owned()).or_default() += pods.len();
    }
    // The region as a whole is a domain, too.
    let domains: Vec<&str> = counts.keys().map(String::as_str).collect();
    assert_eq!(domains, ["0", "southcentralus-1", "southcentralus-2", "southcentralus-3"]);
    assert!(counts.values().all(|count| *count == 2), "{counts:?}");
}

// azure.md 25.3, zones
#[test]
fn a_disk_outside_of_zones_finds_a_node_outside_of_zones() {
    let world = World::new(ZONAL);
    let types = world.plain();
    // The driver of Azure disks writes an empty zone.
    let selector = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "topology.disk.csi.azure.com/zone", "operator": "In", "values": [""]}]}]}}}});
    let plan = Cluster::new(json!([])).pod("pod", "1", selector).plan(&types);
    let (claim, _) = &plan.claims[0];
    assert_eq!(world.choose(&types, claim, 0).unwrap().1.value(ZONE), Some("0"));
}

/// Azure itself, as far as its quota goes.
struct Subscription {
    limit: i64,
    used: i64,
}

/// Plans and launches until all pods have a place: sizes that were started, and how many attempts Azure refused.
fn burst(
    mut world: World,
    mut cluster: Cluster,
    mut azure: Subscription,
) -> (BTreeMap<String, usize>, usize) {
    let (mut started, mut refused) = (BTreeMap::new(), 0);
    for round in 0..100 {
        let types = world.plain();
        let plan = cluster.plan(&types);
        if plan.claims.is_empty() {
            assert!(plan.pending.is_empty(), "{:?}", plan.pending);
            return (started, refused);
        }
        for (number, (claim, pods)) in plan.claims.iter().enumerate() {
            let launch = format!("{round}-{number}");
            // Nothing can be had for the claim any more: it goes, and its pods are planned again.
            let Ok((each, offering)) = world.choose(&types, claim, 0) else { continue };
            let sku = world.sku(&each.name);
            let zone = offering.value(ZONE).unwrap();
            world.quota.take(&launch, &Asked::of(&sku, zone, ON_DEMAND), world.now).unwrap();
            if sku.family == DS_V3 && azure.used + sku.vcpus > azure.limit {
                refused += 1;
                world.quota.give_back(&launch);
                let attempt = Attempt { sku: &sku, zone, capacity_type: ON_DEMAND };
                let text = "exceeding approved standardDSv3 Family Cores quota. Current Limit: 50, Current Usage: 48";
                let meaning = meaning(&Refusal { code: "OperationNotAllowed", text }, &attempt).unwrap();
                meaning.apply(&sku, &mut world.unavailable, world.now);
                continue;
            }
            if sku.family == DS_V3 {
                azure.used += sku.vcpus;
            }
            *started.entry(each.name.clone()).or_default() += 1;
            cluster.without_pods(pods);
        }
    }
    panic!("pods are left after 100 rounds");
}

fn fifty_pods(mut cluster: Cluster) -> Cluster {
    for number in 0..50 {
        cluster = cluster.pod(&format!("pod-{number:02}"), "1500m", json!({}));
    }
    cluster
}

fn only(families: &[&str]) -> Value {
    json!([
        {"key": KIND, "operator": "In", "values": [ON_DEMAND]},
        {"key": "karpenter.azure.com/sku-series", "operator": "In", "values": families},
    ])
}

// azure.md 25.4, burst
#[test]
fn a_burst_beyond_the_quota_of_a_family_lands_on_another_one() {
    let cluster = || fifty_pods(Cluster::new(only(&["Ds_v3", "D_v5"])));
    let expected = [("Standard_D2_v5", 25), ("Standard_D2s_v3", 1), ("Standard_D4s_v3", 12)]
        .map(|(name, count)| (name.to_owned(), count));
    let expected = BTreeMap::from(expected);
    // Without usages Azure says no: to a large machine at once, then to one after another of the small ones.
    let (started, refused) = burst(World::new(ZONAL), cluster(), Subscription { limit: 50, used: 0 });
    assert_eq!(started, expected);
    assert!(refused >= 2, "{refused}");
    // With usages nothing is asked for in vain, although no usage is read in between.
    let (started, refused) = burst(with_usages(), cluster(), Subscription { limit: 50, used: 0 });
    assert_eq!((started, refused), (expected, 0));
}

// azure.md 25.4, burst
#[test]
fn a_burst_beyond_the_quota_of_a_pools_only_family_goes_to_another_pool() {
    let pools = Cluster::default().pool("first", 10, only(&["Ds_v3"])).pool("second", 1, only(&["D_v5"]));
    let (started, refused) = burst(with_usages(), fifty_pods(pools), Subscription { limit: 50, used: 0 });
    let expected = [("Standard_D2_v5", 25), ("Standard_D2s_v3", 1), ("Standard_D4s_v3", 12)]
        .map(|(name, count)| (name.to_owned(), count));
    assert_eq!((started, refused), (BTreeMap::from(expected), 0));
}

fn with_usages() -> World {
    let mut world = World::new(ZONAL);
    world.quota.learn_sizes(&world.catalogue.clone());
    world.set_quota(&[(DS_V3, 0, 50)]);
    world
}
