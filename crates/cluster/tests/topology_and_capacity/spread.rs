//! Pods that are spread over the domains of one label.

use serde_json::{Value, json};

use crate::objects::{ARCH, CAPACITY_TYPE, CPUS, HOSTNAME, Pod, ZONE, need, spread, with};
use crate::world::World;

/// A pod of the app `web` that is spread by a rule.
pub(crate) fn web(rule: Value) -> Pod {
    Pod::of("web").spread(rule)
}

/// A pod as before that fills half of a small machine, so that the last node has no room for more.
pub(crate) fn big_web(rule: Value) -> Pod {
    web(rule).cpu("1100m")
}

/// How so many pods are spread over zones in a cluster whose pool has requirements.
fn zones(requirements: Value, count: usize, rule: Value) -> Vec<usize> {
    let mut world = World::new();
    world.pool_requires("default", requirements);
    world.pods(count, "web", &web(rule));
    world.provision();
    world.skew(ZONE, "web")
}

fn in_zones(zones: &[&str]) -> Value {
    json!([need(ZONE, "In", zones)])
}

fn min_domains(count: u32) -> Value {
    with(spread(ZONE, 1, "web"), json!({"minDomains": count}))
}

/// 27.15-01
#[test]
fn a_pod_that_is_spread_over_an_unknown_label_waits_alone() {
    let mut world = World::new();
    world.pod(web(spread("unknown", 1, "web")).name("web"));
    world.pod(Pod::new().name("other"));
    let round = world.plan();
    round.expect_pending("web", "unsatisfiable topology constraint for topology spread, key=unknown");
    round.expect_place("other");
}

/// 27.15-01
#[test]
fn a_selector_that_cannot_be_understood_or_is_missing_spreads_nothing() {
    let invalid = json!({"matchExpressions": [{"key": "app", "operator": "Equals", "values": ["web"]}]});
    assert_eq!(zones(json!([]), 2, with(spread(ZONE, 1, "web"), json!({"labelSelector": invalid}))), [2]);
    assert_eq!(zones(json!([]), 2, with(spread(ZONE, 1, "web"), json!({"labelSelector": null}))), [2]);
    assert_eq!(zones(json!([]), 2, spread(ZONE, 1, "web")), [1, 1]);
}

/// 27.15-02
#[test]
fn pods_are_spread_over_the_zones_of_their_pool() {
    let rule = spread(ZONE, 1, "web");
    let expressions = json!([{"key": "app", "operator": "In", "values": ["web", "shop"]}]);
    let selector = json!({"matchLabels": null, "matchExpressions": expressions});
    assert_eq!(zones(json!([]), 4, rule.clone()), [2, 1, 1]);
    assert_eq!(zones(json!([]), 4, with(rule.clone(), json!({"labelSelector": selector}))), [2, 1, 1]);
    assert_eq!(zones(in_zones(&["zone-1", "zone-2", "zone-3"]), 4, rule.clone()), [2, 1, 1]);
    assert_eq!(zones(in_zones(&["zone-1", "zone-2"]), 4, rule), [2, 2]);
}

/// 27.15-02
#[test]
fn a_pool_whose_label_is_a_zone_has_just_that() {
    let label = json!({"template": {"metadata": {"labels": {ZONE: "zone-1"}}}});
    for requirements in [json!([]), in_zones(&["zone-1", "zone-2"])] {
        let mut world = World::new();
        world.change("NodePool", "default", json!({"spec": label}));
        world.pool_requires("default", requirements);
        world.pods(4, "web", &web(spread(ZONE, 1, "web")));
        world.provision().expect_all_placed();
        assert_eq!(world.skew(ZONE, "web"), [4]);
    }
}

/// 27.15-02
#[test]
fn pools_with_a_zone_each_share_the_pods() {
    let in_zone = |zone: &str| json!({"template": {"metadata": {"labels": {ZONE: zone}}}});
    let mut world = World::new();
    world.change("NodePool", "default", json!({"spec": in_zone("zone-1")}));
    world.pool("other", in_zone("zone-2"));
    world.pods(4, "web", &web(spread(ZONE, 1, "web")));
    world.provision().expect_all_placed();
    assert_eq!(world.skew(ZONE, "web"), [2, 2]);
}

/// Lets some pods be placed while the pool has requirements.
fn place_under(world: &mut World, requirements: Value, count: usize, pod: &Pod) {
    world.pool_requires("default", requirements);
    world.pods(count, "web", pod);
    world.provision();
    world.delete_pending();
}

/// 27.15-03
#[test]
fn a_pod_in_a_zone_that_the_pool_no_longer_has_still_counts() {
    let mut world = World::new();
    place_under(&mut world, in_zones(&["zone-3"]), 1, &Pod::of("web").cpu("1100m"));
    place_under(&mut world, in_zones(&["zone-1", "zone-2"]), 6, &big_web(spread(ZONE, 1, "web")));
    assert_eq!(world.skew(ZONE, "web"), [2, 2, 1]);
}

/// 27.15-03
#[test]
fn a_pod_that_cannot_leave_a_deleting_node_counts_in_a_zone_that_nothing_else_has() {
    let mut world = World::new();
    world.node("leaving", json!({ZONE: "zone-3"}));
    world.change("Node", "leaving", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    world.running(Pod::of("web").annotation("karpenter.sh/do-not-disrupt", "true").name("stays"), "leaving");
    place_under(&mut world, in_zones(&["zone-1", "zone-2"]), 6, &big_web(spread(ZONE, 1, "web")));
    assert_eq!(world.skew(ZONE, "web"), [2, 2, 1]);
}

/// 27.15-03
#[test]
fn a_zone_may_be_fuller_by_the_skew_if_no_other_is_to_be_had() {
    let pod = big_web(spread(ZONE, 5, "web"));
    let mut world = World::new();
    place_under(&mut world, in_zones(&["zone-1"]), 1, &pod);
    place_under(&mut world, in_zones(&["zone-2"]), 1, &pod);
    place_under(&mut world, in_zones(&["zone-3"]), 10, &pod);
    assert_eq!(world.skew(ZONE, "web"), [6, 1, 1]);
}

/// 27.15-03
#[test]
fn zones_that_have_become_empty_are_filled_again() {
    let pod = big_web(spread(ZONE, 1, "web"));
    let mut world = World::new();
    place_under(&mut world, json!([]), 9, &pod);
    assert_eq!(world.skew(ZONE, "web"), [3, 3, 3]);
    let elsewhere: Vec<String> =
        ["zone-2", "zone-3"].iter().flat_map(|zone| world.pods_in(ZONE, zone)).collect();
    world.delete_pods(|pod| elsewhere.iter().any(|name| pod["metadata"]["name"] == **name));
    assert_eq!(world.skew(ZONE, "web"), [3]);
    place_under(&mut world, json!([]), 3, &pod);
    assert_eq!(world.skew(ZONE, "web"), [3, 2, 1]);
}

/// 27.15-03
#[test]
fn no_zone_exceeds_the_skew_whether_pools_or_nodes_know_the_emptiest() {
    let pod = big_web(spread(ZONE, 1, "web"));
    let mut world = World::new();
    place_under(&mut world, in_zones(&["zone-1"]), 1, &pod);
    place_under(&mut world, in_zones(&["zone-2", "zone-3"]), 10, &pod);
    assert_eq!(world.skew(ZONE, "web"), [2, 2, 1]);
    // The zone of a node counts even if no pool has it and no such pod is there.
    let mut world = World::new();
    world.node("empty", json!({ZONE: "zone-1"}));
    world.change("Node", "empty", json!({"status": {"allocatable": {"pods": "0"}}}));
    place_under(&mut world, in_zones(&["zone-2", "zone-3"]), 10, &pod);
    assert_eq!(world.skew(ZONE, "web"), [1, 1]);
}

/// 27.15-05
#[test]
fn a_rule_that_does_not_select_its_own_pod_packs_it() {
    for key in [HOSTNAME, ZONE, CAPACITY_TYPE] {
        let mut world = World::new();
        world.pods(5, "other", &Pod::of("other").spread(spread(key, 1, "web")));
        let round = world.plan();
        round.expect_all_placed().expect_nodes(1);
    }
}

/// 27.15-06
#[test]
fn too_few_domains_count_as_if_one_were_empty() {
    assert_eq!(zones(in_zones(&["zone-1", "zone-2"]), 3, min_domains(3)), [1, 1]);
    assert_eq!(zones(in_zones(&["zone-1", "zone-2", "zone-3"]), 11, min_domains(3)), [4, 4, 3]);
    assert_eq!(zones(in_zones(&["zone-1", "zone-2", "zone-3"]), 11, min_domains(2)), [4, 4, 3]);
}

/// 27.15-07
#[test]
fn hosts_take_as_many_pods_as_the_skew_allows() {
    for (skew, sizes) in [(1, vec![1, 1, 1, 1]), (4, vec![4]), (3, vec![3, 1])] {
        let mut world = World::new();
        world.pods(4, "web", &web(spread(HOSTNAME, skew, "web")));
        let round = world.plan();
        round.expect_all_placed();
        assert_eq!(round.sizes(), sizes);
    }
}

/// 27.15-07
#[test]
fn apps_that_are_spread_over_hosts_share_them() {
    let check = |arch: [&str; 2], nodes: usize| {
        let mut world = World::new();
        for (app, arch) in ["one", "two"].into_iter().zip(arch) {
            world.pods(2, app, &Pod::of(app).spread(spread(HOSTNAME, 1, app)).on(ARCH, arch));
        }
        world.plan().expect_all_placed().expect_nodes(nodes);
    };
    check(["amd64", "amd64"], 2);
    check(["amd64", "arm64"], 4);
}

fn bought(types: &[&str]) -> Value {
    json!([need(CAPACITY_TYPE, "In", types)])
}

/// 27.15-08
#[test]
fn pods_are_spread_over_the_ways_to_buy() {
    for requirements in [json!([]), bought(&["spot", "on-demand"])] {
        let mut world = World::new();
        place_under(&mut world, requirements, 4, &web(spread(CAPACITY_TYPE, 1, "web")));
        assert_eq!(world.skew(CAPACITY_TYPE, "web"), [2, 2]);
    }
}

/// 27.15-08
#[test]
fn a_rule_about_the_ways_to_buy_is_kept_unless_it_is_a_wish() {
    for (when, expected) in [("DoNotSchedule", vec![2, 1]), ("ScheduleAnyway", vec![5, 1])] {
        let pod = big_web(with(spread(CAPACITY_TYPE, 1, "web"), json!({"whenUnsatisfiable": when})));
        let mut world = World::new();
        place_under(&mut world, bought(&["spot"]), 1, &pod);
        place_under(&mut world, bought(&["on-demand"]), 5, &pod);
        assert_eq!(world.skew(CAPACITY_TYPE, "web"), expected);
    }
}

/// 27.15-08
#[test]
fn nodes_that_a_pod_does_not_accept_are_not_counted() {
    let pod = big_web(spread(CAPACITY_TYPE, 1, "web"));
    for (limited, expected) in [(true, vec![5, 1]), (false, vec![2, 1])] {
        let mut world = World::new();
        // The pod on spot capacity is on a machine that the others do not want.
        let first = Pod::of("web").cpu("1100m").on(CPUS, "2").on(CAPACITY_TYPE, "spot");
        place_under(&mut world, json!([]), 1, &first);
        let other =
            if limited { pod.clone().require(json!([need(CPUS, "NotIn", &["2"])])) } else { pod.clone() };
        place_under(&mut world, bought(&["on-demand"]), 5, &other);
        assert_eq!(world.skew(CAPACITY_TYPE, "web"), expected);
    }
}

/// 27.15-08
#[test]
fn pods_are_spread_over_processors_as_over_the_ways_to_buy() {
    let arch = |arch: &str| json!([need(ARCH, "In", &[arch])]);
    let pod = big_web(spread(ARCH, 1, "web"));
    let mut world = World::new();
    place_under(&mut world, arch("arm64"), 1, &pod.clone().cpu("15"));
    place_under(&mut world, arch("amd64"), 5, &pod);
    assert_eq!(world.skew(ARCH, "web"), [2, 1]);
}

/// 27.15-10
#[test]
fn pods_are_spread_over_a_label_that_pools_invent() {
    // Four values belong to spot nodes and one to nodes on demand, so the pods are bought four to one.
    let mut world = World::empty();
    world.types = World::new().types;
    let pool = |values: &[&str], capacity_type: &str| {
        let requirements = [need("slot", "In", values), need(CAPACITY_TYPE, "In", &[capacity_type])];
        json!({"template": {"spec": {"requirements": requirements}}})
    };
    world.pool("spot", pool(&["2", "3", "4", "5"], "spot"));
    world.pool("on-demand", pool(&["1"], "on-demand"));
    world.pods(20, "web", &web(spread("slot", 1, "web")));
    world.provision().expect_all_placed();
    assert_eq!(world.skew("slot", "web"), [4, 4, 4, 4, 4]);
    assert_eq!(world.skew(CAPACITY_TYPE, "web"), [16, 4]);
}

/// 27.15-11
#[test]
fn labels_of_the_pod_take_part_in_the_selector_if_it_has_them() {
    let rule = |key: &str| with(spread(HOSTNAME, 1, "web"), json!({"matchLabelKeys": [key]}));
    let mut world = World::new();
    for value in ["1", "2"] {
        world.pods(2, "web", &web(rule("version")).label("version", value));
    }
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.sizes(), [2, 2]);
    let mut world = World::new();
    world.pods(4, "web", &web(rule("unknown")));
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.sizes(), [1, 1, 1, 1]);
}
