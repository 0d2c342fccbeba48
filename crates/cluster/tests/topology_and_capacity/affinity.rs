//! Pods that want to be near others, or away from them.

use serde_json::{Value, json};

use crate::objects::{ARCH, HOSTNAME, Pod, ZONE, need, spread, term, with};
use crate::spread_counting::counts;
use crate::world::World;

/// A pod of an app that must be with its own kind.
fn together(key: &str, app: &str) -> Pod {
    Pod::of(app).near(term(key, app))
}

/// A pod of an app that must not be with its own kind.
fn apart(key: &str, app: &str) -> Pod {
    Pod::of(app).away_from(term(key, app))
}

/// The order of some things in a trial: all orders come up, the same in every run.
fn shuffled<T>(mut things: Vec<T>, trial: u64) -> Vec<T> {
    let mut state = trial.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..things.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).expect("a few bits") % (last + 1);
        things.swap(last, other);
    }
    things
}

/// 27.16-01
#[test]
fn rules_without_terms_ask_for_nothing() {
    let mut world = World::new();
    let affinity =
        json!({"podAffinity": {}, "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}});
    world.pod(Pod::new().spec(json!({"affinity": affinity})).name("web"));
    world.plan().expect_all_placed().expect_nodes(1);
}

/// 27.16-01
#[test]
fn a_pod_goes_to_the_host_of_the_pod_that_it_wants_to_be_near() {
    for trial in 0..10 {
        let mut world = World::new();
        let spread_out = Pod::of("other").spread(spread(HOSTNAME, 1, "other"));
        let mut pods: Vec<Pod> = (0..10).map(|n| spread_out.clone().name(&format!("other-{n}"))).collect();
        pods.push(Pod::of("target").name("target"));
        pods.push(Pod::of("web").near(term(HOSTNAME, "target")).name("web"));
        for (number, pod) in shuffled(pods, trial).into_iter().enumerate() {
            world.pod(pod.with(json!({"metadata": {"uid": format!("{number:03}")}})));
        }
        world.provision().expect_all_placed();
        assert_eq!(world.node_of("web"), world.node_of("target"));
    }
}

/// 27.16-01
#[test]
fn pods_can_be_near_in_one_label_and_spread_over_another() {
    let mut world = World::new();
    let rule = || Pod::of("web").spread(spread(HOSTNAME, 1, "web")).cpu("1");
    world.pod(rule().label("role", "target").cpu("2").on(ARCH, "arm64").name("target"));
    let near = json!({"topologyKey": ARCH, "labelSelector": {"matchLabels": {"role": "target"}}});
    world.pod(rule().near(near).name("web"));
    world.provision().expect_all_placed();
    assert_ne!(world.node_of("web"), world.node_of("target"));
    assert_eq!(world.skew(ARCH, "web"), [2]);
    assert_eq!(world.label(&world.node_of("web"), ARCH).as_deref(), Some("arm64"));
}

/// 27.16-02
#[test]
fn pods_that_stay_together_on_a_host_share_one() {
    let mut world = World::new();
    world.pods(3, "web", &together(HOSTNAME, "web"));
    world.plan().expect_all_placed().expect_nodes(1);
}

/// 27.16-02
#[test]
fn pods_that_stay_together_wait_when_their_host_is_full() {
    let mut world = World::new();
    world.pods(10, "web", &together(HOSTNAME, "web"));
    let round = world.provision();
    round.expect_placed(5).expect_nodes(1);
    assert!(round.pending.values().all(|text| text.contains("pod affinity")), "{round:?}");
    world.delete_pending();
    world.pods(10, "web", &together(HOSTNAME, "web"));
    world.plan().expect_placed(0);
}

/// 27.16-02
#[test]
fn pods_that_stay_together_on_a_host_do_not_start_again_in_another_zone() {
    let mut world = World::new();
    world.pod(together(HOSTNAME, "web").on(ZONE, "zone-1").name("first"));
    world.provision().expect_all_placed();
    let elsewhere = json!([need(ZONE, "In", &["zone-2", "zone-3"])]);
    world.pods(10, "web", &together(HOSTNAME, "web").require(elsewhere));
    world.plan().expect_placed(0).expect_nodes(0);
}

/// 27.16-03
#[test]
fn pods_that_stay_together_in_a_zone_share_a_node() {
    let mut world = World::new();
    world.pods(3, "web", &together(ZONE, "web"));
    world.plan().expect_all_placed().expect_nodes(1);
    let mut world = World::new();
    world.pods(3, "web", &together(ZONE, "web").require(json!([need(ZONE, "In", &["zone-3"])])));
    world.provision().expect_all_placed().expect_nodes(1);
    assert_eq!(world.domains(ZONE, "web"), counts(&[("zone-3", 3)]));
}

/// 27.16-03
#[test]
fn pods_that_stay_together_but_ask_for_different_zones_start_in_each() {
    let mut world = World::new();
    for zone in ["zone-2", "zone-3"] {
        world.pod(together(ZONE, "web").on(ZONE, zone).name(zone));
    }
    world.provision().expect_all_placed().expect_nodes(2);
    assert_eq!(world.domains(ZONE, "web"), counts(&[("zone-2", 1), ("zone-3", 1)]));
}

/// 27.16-04
#[test]
fn wishes_to_be_near_or_away_do_not_keep_pods_waiting() {
    let mut world = World::new();
    world.pod(Pod::of("web").rather_near(50, &term(HOSTNAME, "nobody")).name("web"));
    world.plan().expect_all_placed();
    // On a cluster with one zone only.
    let mut world = World::new();
    world.pool_requires("default", json!([need(ZONE, "In", &["zone-1"])]));
    world.pods(
        3,
        "web",
        &Pod::of("web").rather_away_from(50, &term(ZONE, "web")).spread(spread(HOSTNAME, 1, "web")),
    );
    world.plan().expect_all_placed().expect_nodes(3);
}

/// 27.16-04
#[test]
fn a_wish_to_be_together_yields_to_a_rule_to_spread() {
    let mut world = World::new();
    world.pod(Pod::of("target").name("target"));
    let pod = Pod::of("web").rather_near(50, &term(HOSTNAME, "target")).spread(spread(HOSTNAME, 1, "web"));
    world.pods(3, "web", &pod);
    world.provision().expect_all_placed();
    assert_eq!(world.skew(HOSTNAME, "web"), [1, 1, 1]);
}

/// 27.16-05
#[test]
fn a_pod_is_not_on_a_host_with_those_that_it_avoids_whoever_comes_first() {
    for trial in 0..10 {
        let mut world = World::new();
        let pods = vec![
            Pod::of("target").name("target"),
            Pod::of("web").away_from(term(HOSTNAME, "target")).name("web"),
        ];
        for (number, pod) in shuffled(pods, trial).into_iter().enumerate() {
            world.pod(pod.with(json!({"metadata": {"uid": number.to_string()}})));
        }
        world.provision().expect_all_placed();
        assert_ne!(world.node_of("web"), world.node_of("target"));
    }
}

/// Pods of an app in each of the three zones, made larger so that they come first.
fn in_every_zone(world: &mut World, pod: &Pod) {
    for zone in ["zone-1", "zone-2", "zone-3"] {
        world.pod(pod.clone().cpu("2").on(ZONE, zone).name(&format!("in-{zone}")));
    }
}

/// 27.16-06
#[test]
fn a_pod_that_avoids_pods_of_every_zone_waits() {
    let mut world = World::new();
    in_every_zone(&mut world, &Pod::of("target"));
    world.pod(Pod::of("web").away_from(term(ZONE, "target")).name("web"));
    let round = world.plan();
    round.expect_placed(3).expect_pending("web", "unsatisfiable topology constraint for pod anti-affinity");
}

/// 27.16-06
#[test]
fn a_pod_that_avoids_one_whose_zone_is_open_waits() {
    let mut world = World::new();
    world.pod(Pod::of("target").cpu("2").name("target"));
    world.pod(Pod::of("web").away_from(term(ZONE, "target")).name("web"));
    let round = world.provision();
    round.expect_placed(1).expect_pending("web", "pod anti-affinity");
    // Once the node is there, so is its zone.
    world.provision().expect_all_placed();
    assert_ne!(world.label(&world.node_of("web"), ZONE), world.label(&world.node_of("target"), ZONE));
}

/// 27.16-06
#[test]
fn pods_can_avoid_each_others_processors() {
    let mut world = World::new();
    world.pod(Pod::of("target").cpu("2").on(ARCH, "arm64").name("target"));
    world.pod(Pod::of("web").away_from(term(ARCH, "target")).name("web"));
    world.provision().expect_all_placed();
    assert_eq!(world.label(&world.node_of("web"), ARCH).as_deref(), Some("amd64"));
}

/// Guards that avoid the app `web`, all in one round with it or running before it.
fn with_guards(guard: &Pod, before: bool) -> crate::world::Round {
    let mut world = World::new();
    in_every_zone(&mut world, guard);
    if before {
        world.provision().expect_all_placed();
    }
    world.pod(Pod::of("web").name("web"));
    world.plan()
}

/// 27.16-07
#[test]
fn a_pod_that_others_avoid_keeps_away_from_them() {
    for before in [false, true] {
        let round = with_guards(&Pod::of("guard").away_from(term(ZONE, "web")), before);
        round.expect_pending("web", "unsatisfiable topology constraint for pod anti-affinity");
    }
}

/// 27.16-07
#[test]
fn a_pod_that_others_would_rather_avoid_does_not_mind() {
    for before in [false, true] {
        let round = with_guards(&Pod::of("guard").rather_away_from(10, &term(ZONE, "web")), before);
        round.expect_all_placed();
    }
}

/// 27.16-07
#[test]
fn a_pod_that_one_without_a_zone_avoids_waits_a_round() {
    let mut world = World::new();
    world.pod(Pod::of("guard").cpu("2").away_from(term(ZONE, "web")).name("guard"));
    world.pod(Pod::of("web").name("web"));
    let round = world.provision();
    round.expect_placed(1).expect_place("guard");
    world.provision().expect_all_placed();
    assert_ne!(world.label(&world.node_of("web"), ZONE), world.label(&world.node_of("guard"), ZONE));
}

/// 27.16-08
#[test]
fn pods_that_avoid_each_other_in_zones_come_one_in_a_round() {
    let mut world = World::new();
    for zones in 1..=3 {
        world.delete_pending();
        world.pods(3, "web", &apart(ZONE, "web"));
        world.provision().expect_placed(1);
        assert_eq!(world.domains(ZONE, "web").len(), zones);
    }
    world.delete_pending();
    world.pods(3, "web", &apart(ZONE, "web"));
    world.provision().expect_placed(0);
    assert_eq!(world.skew(ZONE, "web"), [1, 1, 1]);
}

/// 27.16-09
#[test]
fn pods_that_want_to_be_near_nobody_wait() {
    let mut world = World::new();
    world.pods(10, "web", &Pod::of("web").near(term(ZONE, "nobody")));
    let round = world.plan();
    round.expect_placed(0);
    assert!(round.pending.values().all(|text| text.contains("pod affinity")), "{round:?}");
}

/// 27.16-09
#[test]
fn pods_wait_a_round_for_the_zone_of_the_pod_that_they_want_to_be_near() {
    let mut world = World::new();
    world.pod(Pod::of("target").label("group", "x").name("target"));
    world.pods(10, "web", &Pod::of("web").near(term(ZONE, "target")));
    world.provision().expect_placed(1);
    world.provision().expect_all_placed().expect_placed(10);
    let zone = world.label(&world.node_of("target"), ZONE).expect("a zone");
    assert_eq!(world.domains(ZONE, "web"), counts(&[(&zone, 10)]));
}

/// 27.16-09
#[test]
fn pods_go_to_the_zone_of_a_pod_that_has_one_in_the_same_round() {
    let mut world = World::new();
    world.pod(Pod::of("target").on(ZONE, "zone-3").name("target"));
    world.pods(10, "web", &Pod::of("web").near(term(ZONE, "target")));
    world.provision().expect_all_placed();
    assert_eq!(world.domains(ZONE, "web"), counts(&[("zone-3", 10)]));
}

/// 27.16-10
#[test]
fn a_chain_of_pods_that_follow_each_other_is_placed_in_any_order() {
    for trial in 0..50 {
        let mut world = World::new();
        let link = |app: &str, near: &str| Pod::of(app).near(term(HOSTNAME, near)).name(app);
        let pods =
            vec![Pod::of("db").name("db"), link("web", "db"), link("cache", "web"), link("ui", "cache")];
        for (number, pod) in shuffled(pods, trial).into_iter().enumerate() {
            world.pod(pod.with(json!({"metadata": {"uid": number.to_string()}})));
        }
        world.plan().expect_all_placed().expect_nodes(1);
    }
}

/// 27.16-10
#[test]
fn a_chain_that_hangs_on_nobody_ends_in_waiting() {
    let mut world = World::new();
    for (app, near) in [("web", "db"), ("cache", "web"), ("ui", "cache")] {
        world.pod(Pod::of(app).near(term(HOSTNAME, near)).name(app));
    }
    world.pod(Pod::new().name("other"));
    let round = world.plan();
    round.expect_placed(1).expect_place("other");
    for app in ["web", "cache", "ui"] {
        round.expect_pending(app, "unsatisfiable topology constraint for pod affinity");
    }
}

/// Whether a pod finds one of another namespace by a term with some more fields.
#[track_caller]
fn check_namespaces(fields: Value, finds: bool) {
    let mut world = World::new();
    for (name, labels) in [("default", json!({})), ("other", json!({"team": "x"})), ("third", json!({}))] {
        world.add(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
        );
    }
    world.pod(Pod::of("target").namespace("other").on(ZONE, "zone-2").cpu("2").name("target"));
    world.pod(Pod::of("web").near(with(term(ZONE, "target"), fields)).name("web"));
    let round = world.provision();
    if finds {
        round.expect_all_placed();
        assert_eq!(world.domains(ZONE, "web"), counts(&[("zone-2", 1)]));
    } else {
        round.expect_pending("web", "pod affinity");
    }
}

/// 27.16-11
#[test]
fn terms_look_at_the_namespaces_that_they_name() {
    check_namespaces(json!({}), false);
    check_namespaces(json!({"namespaces": ["other"]}), true);
    check_namespaces(json!({"namespaces": ["third"]}), false);
    check_namespaces(json!({"namespaceSelector": {}}), true);
    check_namespaces(json!({"namespaceSelector": {"matchLabels": {"team": "x"}}}), true);
    check_namespaces(json!({"namespaceSelector": {"matchLabels": {"team": "y"}}}), false);
    check_namespaces(
        json!({"namespaceSelector": {"matchLabels": {"team": "y"}}, "namespaces": ["other"]}),
        true,
    );
}

/// 27.16-11
#[test]
fn pods_of_other_namespaces_are_not_avoided_unless_they_are_named() {
    for (fields, nodes) in [(json!({}), 1), (json!({"namespaces": ["other"]}), 2)] {
        let mut world = World::new();
        world.pod(Pod::of("target").namespace("other").name("target"));
        world.pod(Pod::of("web").away_from(with(term(HOSTNAME, "target"), fields)).name("web"));
        world.plan().expect_all_placed().expect_nodes(nodes);
    }
}
