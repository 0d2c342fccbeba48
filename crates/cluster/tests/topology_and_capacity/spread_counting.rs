//! Which pods and nodes a spread counts, and several spreads at once.

use serde_json::{Value, json};

use crate::objects::{CAPACITY_TYPE, HOSTNAME, Pod, ZONE, need, spread};
use crate::spread::web;
use crate::world::World;

/// 27.15-04
#[test]
fn only_pods_that_run_in_a_domain_and_match_are_counted() {
    let mut world = World::new();
    let taints = json!({"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}});
    for (node, zone) in [("first", "zone-1"), ("second", "zone-2"), ("third", "zone-3")] {
        world.node(node, json!({ZONE: zone}));
        world.change("Node", node, taints.clone());
    }
    world.node("nowhere", json!({}));
    world.change("Node", "nowhere", taints);
    world.running(Pod::of("web").name("one"), "first");
    world.running(Pod::of("web").name("two"), "first");
    world.running(Pod::of("web").name("three"), "second");
    let others: [(Pod, &str); 7] = [
        (Pod::new(), "third"),
        (Pod::of("web"), "nowhere"),
        (Pod::of("web"), "gone"),
        (Pod::of("web").namespace("elsewhere"), "third"),
        (Pod::of("web").deleting(), "third"),
        (Pod::of("web").phase("Failed"), "third"),
        (Pod::of("web").phase("Succeeded"), "third"),
    ];
    for (position, (pod, node)) in others.into_iter().enumerate() {
        world.running(pod.name(&format!("other-{position}")), node);
    }
    world.pod(Pod::of("web").with(json!({"status": {"conditions": null}})).name("unseen"));
    world.pods(2, "web", &web(spread(ZONE, 1, "web")));
    world.provision().expect_placed(2);
    // Any pod that counted in the third zone would send one of them to the second.
    assert_eq!(world.domains(ZONE, "web"), counts(&[("zone-1", 2), ("zone-2", 1), ("zone-3", 2)]));
}

/// 27.15-04
#[test]
fn pods_are_counted_by_how_their_node_was_bought() {
    let mut world = World::new();
    for (node, capacity_type) in [("first", "spot"), ("second", "on-demand")] {
        world.node(node, json!({CAPACITY_TYPE: capacity_type}));
        world.change("Node", node, json!({"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}}));
    }
    world.node("nowhere", json!({}));
    world.change("Node", "nowhere", json!({"status": {"allocatable": {"pods": "1"}}}));
    world.running(Pod::of("web").name("no-domain"), "nowhere");
    world.running(Pod::new().name("no-label"), "second");
    world.running(Pod::of("web").deleting().name("going"), "second");
    world.running(Pod::of("web").phase("Succeeded").name("succeeded"), "second");
    world.running(Pod::of("web").name("one"), "first");
    world.running(Pod::of("web").name("two"), "first");
    world.running(Pod::of("web").name("three"), "second");
    world.pods(2, "web", &web(spread(CAPACITY_TYPE, 1, "web")));
    world.provision().expect_placed(2);
    assert_eq!(world.domains(CAPACITY_TYPE, "web"), counts(&[("spot", 2), ("on-demand", 3)]));
}

pub(crate) fn counts(list: &[(&str, usize)]) -> std::collections::BTreeMap<String, usize> {
    list.iter().map(|(domain, count)| ((*domain).to_owned(), *count)).collect()
}

/// Adds pods round by round, and checks how they are spread after each.
#[track_caller]
fn check_rounds(rules: &[Value], key: &str, rounds: &[(usize, &[usize])]) {
    let pod = rules.iter().fold(Pod::of("web"), |pod, rule| pod.spread(rule.clone()));
    let mut world = World::new();
    for (count, expected) in rounds {
        world.pods(*count, "web", &pod);
        world.provision().expect_all_placed();
        assert_eq!(world.skew(key, "web"), *expected);
        for rule in rules.iter().filter(|rule| rule["topologyKey"] == HOSTNAME) {
            let most = rule["maxSkew"].as_u64().expect("a number");
            assert!(world.skew(HOSTNAME, "web")[0] as u64 <= most, "{:?}", world.skew(HOSTNAME, "web"));
        }
    }
}

/// 27.15-09
#[test]
fn zones_are_even_and_hosts_are_not_too_full() {
    let rules = [spread(ZONE, 1, "web"), spread(HOSTNAME, 3, "web")];
    check_rounds(&rules, ZONE, &[(2, &[1, 1]), (3, &[2, 2, 1]), (5, &[4, 3, 3]), (11, &[7, 7, 7])]);
}

/// 27.15-09
#[test]
fn the_ways_to_buy_are_even_and_hosts_are_not_too_full() {
    let rules = [spread(CAPACITY_TYPE, 1, "web"), spread(HOSTNAME, 3, "web")];
    check_rounds(&rules, CAPACITY_TYPE, &[(2, &[1, 1]), (3, &[3, 2]), (5, &[5, 5]), (11, &[11, 10])]);
}

/// 27.15-09
#[test]
fn zones_and_the_ways_to_buy_are_even_together() {
    let pod = web(spread(ZONE, 1, "web")).spread(spread(CAPACITY_TYPE, 1, "web"));
    let mut world = World::new();
    for (count, bought, zone) in [(2, 1, 1), (3, 3, 2), (5, 5, 4), (11, 11, 7)] {
        world.pods(count, "web", &pod);
        world.provision();
        let most = |key| world.skew(key, "web")[0];
        assert!(most(CAPACITY_TYPE) <= bought && most(ZONE) <= zone, "{:?}", world.skew(ZONE, "web"));
        let uneven = |key| {
            world.skew(key, "web").iter().max() > world.skew(key, "web").iter().min().map(|n| n + 1).as_ref()
        };
        assert!(!uneven(CAPACITY_TYPE) && !uneven(ZONE), "{:?}", world.skew(ZONE, "web"));
    }
}

/// 27.15-09
#[test]
fn three_rules_hold_together_in_every_round() {
    let mut world = World::new();
    // Spot capacity in the third zone too, so that no pod has to wait.
    for type_ in &mut world.types {
        let spot = crate::world::offering("zone-3", "spot", type_.offerings[0].price);
        let offerings = type_.offerings.iter().cloned().chain([spot]).collect();
        *type_ = crate::world::with_offerings(type_.clone(), offerings);
    }
    let rules = [(CAPACITY_TYPE, 1), (ZONE, 2), (HOSTNAME, 3)];
    let pod = rules.iter().fold(Pod::of("web"), |pod, (key, skew)| pod.spread(spread(key, *skew, "web")));
    for count in 1..15 {
        world.pods(count, "web", &pod);
        world.provision().expect_all_placed();
        for (key, skew) in rules {
            let counts = world.skew(key, "web");
            let complete = counts.len() == if key == ZONE { 3 } else { 2 };
            let least = if key != HOSTNAME && complete { counts[counts.len() - 1] } else { 0 };
            assert!(counts[0] - least <= skew as usize, "{key} {counts:?} with {count} more");
        }
    }
}

/// The pods of an app by zone, after they were added round by round.
fn by_zone(world: &World) -> Vec<usize> {
    world.skew(ZONE, "web")
}

/// 27.15-14
#[test]
fn pods_that_ask_for_zones_are_spread_over_those() {
    let pod = web(spread(ZONE, 1, "web"));
    let mut world = World::new();
    world.pods(5, "web", &pod.clone().on(ZONE, "zone-1"));
    world.pods(10, "web", &pod.on(ZONE, "zone-2"));
    world.provision().expect_all_placed();
    assert_eq!(by_zone(&world), [10, 5]);
}

/// 27.15-14
#[test]
fn pods_that_accept_two_zones_are_spread_over_both() {
    let mut world = World::new();
    let pod = web(spread(ZONE, 1, "web")).require(json!([need(ZONE, "In", &["zone-1", "zone-2"])]));
    world.pods(10, "web", &pod);
    world.provision().expect_all_placed();
    assert_eq!(by_zone(&world), [5, 5]);
}

/// 27.15-14
#[test]
fn each_pod_is_held_to_the_zones_that_it_accepts() {
    let mut world = World::new();
    let pod = |zones: &[&str]| web(spread(ZONE, 1, "web")).require(json!([need(ZONE, "In", zones)]));
    world.pods(6, "web", &pod(&["zone-1", "zone-2"]));
    world.provision().expect_all_placed();
    assert_eq!(by_zone(&world), [3, 3]);
    // Of the zones that it accepts the third is emptier.
    world.pods(1, "web", &pod(&["zone-2", "zone-3"]));
    world.provision().expect_all_placed();
    assert_eq!(world.domains(ZONE, "web"), counts(&[("zone-1", 3), ("zone-2", 3), ("zone-3", 1)]));
    world.pods(5, "web", &web(spread(ZONE, 1, "web")));
    world.provision().expect_all_placed();
    assert_eq!(by_zone(&world), [4, 4, 4]);
}

/// 27.15-14
#[test]
fn of_zones_that_the_skew_allows_the_emptiest_is_taken() {
    for accepted in [json!([]), json!([need(ZONE, "In", &["zone-1", "zone-2", "zone-3"])])] {
        let mut world = World::new();
        for (zone, pods) in [("zone-1", 2), ("zone-2", 1)] {
            world.node(zone, json!({ZONE: zone}));
            world.change("Node", zone, json!({"status": {"allocatable": {"pods": "0"}}}));
            for number in 0..pods {
                world.running(Pod::of("web").name(&format!("{zone}-{number}")), zone);
            }
        }
        // The skew would allow any zone.
        world.pod(web(spread(ZONE, 5, "web")).require(accepted).name("web"));
        world.provision().expect_all_placed();
        assert_eq!(world.domains(ZONE, "web")["zone-3"], 1);
    }
}

/// 27.15-14
#[test]
fn a_zone_that_is_only_preferred_does_not_limit_the_spread() {
    let mut world = World::new();
    let pod = web(spread(ZONE, 1, "web")).prefer(1, json!([need(ZONE, "In", &["zone-1", "zone-2"])]));
    world.pods(6, "web", &pod);
    world.provision().expect_all_placed();
    assert_eq!(by_zone(&world), [2, 2, 2]);
}

/// 27.15-14
#[test]
fn pods_that_ask_how_they_are_bought_are_spread_over_that() {
    let rule = || web(spread(CAPACITY_TYPE, 1, "web"));
    let mut world = World::new();
    world.pods(5, "web", &rule().on(CAPACITY_TYPE, "spot"));
    world.pods(5, "web", &rule().on(CAPACITY_TYPE, "on-demand"));
    world.provision().expect_all_placed();
    assert_eq!(world.skew(CAPACITY_TYPE, "web"), [5, 5]);
    let mut world = World::new();
    world.pods(3, "web", &rule().require(json!([need(CAPACITY_TYPE, "In", &["spot"])])));
    world.provision().expect_all_placed();
    assert_eq!(world.skew(CAPACITY_TYPE, "web"), [3]);
    world.pods(1, "web", &rule().require(json!([need(CAPACITY_TYPE, "In", &["on-demand", "spot"])])));
    world.provision().expect_all_placed();
    assert_eq!(world.domains(CAPACITY_TYPE, "web"), counts(&[("spot", 3), ("on-demand", 1)]));
    world.pods(5, "web", &rule());
    world.provision().expect_all_placed();
    assert_eq!(world.skew(CAPACITY_TYPE, "web"), [5, 4]);
}
