//! Spreads that the scheduler's configuration gives to pods without any of their own.

use cluster::scheduler_config::SchedulerConfig;
use serde_json::{Value, json};

use crate::objects::{HOSTNAME, Pod, ZONE, spread};
use crate::spread_counting::counts;
use crate::world::World;

/// A cluster whose scheduler has a default constraint.
fn world(key: &str, when: &str, more: &str) -> World {
    let mut world = World::new();
    let text = format!(
        "podTopologySpread: {{defaultConstraints: [{{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: {when}{more}}}]}}"
    );
    world.config = SchedulerConfig::parse(&text).expect("the configuration is right");
    world
}

/// A cluster whose pods each get a host of their own, if they belong to a workload.
fn over_hosts() -> World {
    world(HOSTNAME, "DoNotSchedule", "")
}

fn workload(kind: &str, name: &str, selector: Value) -> Value {
    let api_version = if kind == "ReplicationController" { "v1" } else { "apps/v1" };
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"},
           "spec": {"selector": selector}})
}

fn replica_set(name: &str, app: &str) -> Value {
    workload("ReplicaSet", name, json!({"matchLabels": {"app": app}}))
}

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// A pod of the app and the ReplicaSet `web`.
fn web() -> Pod {
    Pod::of("web").owned_by("apps/v1", "ReplicaSet", "web")
}

/// Whether four pods get a host each in a cluster with some objects.
#[track_caller]
fn check(objects: &[Value], pod: &Pod, spread_out: bool) {
    let mut world = over_hosts();
    for object in objects {
        world.add(object.clone());
    }
    world.pods(4, "web", pod);
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.sizes(), if spread_out { vec![1; 4] } else { vec![4] });
}

/// 27.15-15
#[test]
fn pods_of_a_workload_are_spread_over_zones_or_hosts() {
    for (key, sizes) in [(ZONE, vec![2, 1, 1]), (HOSTNAME, vec![1, 1, 1, 1])] {
        let mut world = world(key, "DoNotSchedule", "");
        world.add(replica_set("web", "web"));
        world.pods(4, "web", &web());
        world.provision().expect_all_placed();
        assert_eq!(world.skew(key, "web"), sizes);
    }
}

/// 27.15-15
#[test]
fn constraints_of_a_pod_replace_all_defaults() {
    let mut world = over_hosts();
    world.add(replica_set("web", "web"));
    world.pods(4, "web", &web().spread(spread(HOSTNAME, 4, "web")));
    world.plan().expect_all_placed().expect_nodes(1);
}

/// 27.15-15
#[test]
fn defaults_carry_the_number_of_domains() {
    let mut world = world(ZONE, "DoNotSchedule", ", minDomains: 4");
    world.add(replica_set("web", "web"));
    world.pods(4, "web", &web());
    // There are three zones, so no more than one pod may be in each.
    world.provision().expect_placed(3);
    assert_eq!(world.skew(ZONE, "web"), [1, 1, 1]);
}

/// 27.15-15
#[test]
fn defaults_that_are_wishes_are_dropped_and_others_are_not() {
    for (when, placed) in [("DoNotSchedule", 1), ("ScheduleAnyway", 3)] {
        let mut world = world(ZONE, when, ", minDomains: 3");
        world.pool_requires("default", json!([{"key": ZONE, "operator": "In", "values": ["zone-1"]}]));
        world.add(replica_set("web", "web"));
        world.pods(3, "web", &web());
        world.plan().expect_placed(placed);
    }
}

/// 27.15-15
#[test]
fn nothing_is_spread_without_a_default_or_a_workload() {
    let mut world = World::new();
    world.add(replica_set("web", "web"));
    world.pods(4, "web", &web());
    world.plan().expect_all_placed().expect_nodes(1);
    check(&[], &Pod::of("web"), false);
    check(&[replica_set("web", "web")], &Pod::of("web"), false);
    check(&[replica_set("web", "web")], &web(), true);
}

/// 27.15-15
#[test]
fn pods_that_run_already_are_counted_by_the_workloads_selector() {
    let mut world = world(ZONE, "DoNotSchedule", "");
    world.add(replica_set("web", "web"));
    for zone in ["zone-1", "zone-2"] {
        world.node(zone, json!({ZONE: zone}));
        world.change("Node", zone, json!({"status": {"allocatable": {"pods": "1"}}}));
        world.running(Pod::of("web").name(&format!("in-{zone}")), zone);
    }
    world.pods(1, "web", &web());
    world.provision().expect_all_placed();
    assert_eq!(world.domains(ZONE, "web"), counts(&[("zone-1", 1), ("zone-2", 1), ("zone-3", 1)]));
}

/// 27.15-15
#[test]
fn workloads_and_revisions_are_spread_apart_from_each_other() {
    let mut world = over_hosts();
    for (name, app, revision) in [("a-1", "a", "1"), ("a-2", "a", "2"), ("b-1", "b", "1")] {
        let labels = json!({"app": app, "revision": revision});
        world.add(workload("ReplicaSet", name, json!({"matchLabels": labels})));
        let pod = Pod::of(app).label("revision", revision).owned_by("apps/v1", "ReplicaSet", name);
        world.pods(2, name, &pod);
    }
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.sizes(), [3, 3]);
}

/// 27.15-15
#[test]
fn the_selector_is_the_workloads_and_not_the_pods_labels() {
    // The pods differ in a label that the workload does not select by.
    for kind in ["ReplicaSet", "StatefulSet"] {
        let mut world = over_hosts();
        world.add(workload(kind, "web", json!({"matchLabels": {"app": "web"}})));
        for number in 0..4 {
            let pod = Pod::of("web").label("statefulset.kubernetes.io/pod-name", &format!("web-{number}"));
            world.pod(pod.owned_by("apps/v1", kind, "web").name(&format!("web-{number}")));
        }
        let round = world.plan();
        round.expect_all_placed();
        assert_eq!(round.sizes(), [1, 1, 1, 1]);
    }
}

/// 27.15-15
#[test]
fn expressions_of_a_workload_are_taken_as_they_are() {
    let selector = |operator: &str, values: &[&str]| {
        let expression = json!({"key": "app", "operator": operator, "values": values});
        [workload("ReplicaSet", "web", json!({"matchExpressions": [expression]}))]
    };
    check(&selector("In", &["web", "shop"]), &web(), true);
    check(&selector("Exists", &[]), &web(), true);
    check(&selector("NotIn", &["shop"]), &web(), true);
    check(&selector("NotIn", &["web"]), &web(), false);
}

/// 27.15-15
#[test]
fn a_replication_controller_selects_by_labels() {
    let controller = workload("ReplicationController", "web", json!({"app": "web"}));
    let pod = Pod::of("web").owned_by("v1", "ReplicationController", "web");
    check(std::slice::from_ref(&controller), &pod, true);
    // Of a service and a controller that name the same label, the controller's value counts.
    let other = workload("ReplicationController", "web", json!({"app": "other"}));
    check(&[service("web", json!({"selector": {"app": "web"}})), other], &pod, false);
}

/// 27.15-15
#[test]
fn owners_that_are_not_known_select_nothing() {
    check(&[], &web(), false);
    check(
        &[workload("Deployment", "web", json!({"matchLabels": {"app": "web"}}))],
        &Pod::of("web").owned_by("apps/v1", "Deployment", "web"),
        false,
    );
    let mut no_controller = web();
    no_controller.0["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    check(&[replica_set("web", "web")], &no_controller, false);
}

/// 27.15-15
#[test]
fn services_select_for_pods_of_any_owner() {
    let job = Pod::of("web").label("tier", "front").owned_by("batch/v1", "Job", "web");
    check(&[service("web", json!({"selector": {"app": "web"}}))], &job, true);
    // Several services select by all their labels together.
    let both = [
        service("web", json!({"selector": {"app": "web"}})),
        service("front", json!({"selector": {"tier": "front"}})),
    ];
    check(&both, &job, true);
}

/// 27.15-15
#[test]
fn services_of_other_pods_or_without_a_selector_do_not_count() {
    let pod = Pod::of("web");
    check(&[service("other", json!({"selector": {"app": "other"}}))], &pod, false);
    check(&[service("none", json!({}))], &pod, false);
    check(&[service("empty", json!({"selector": {}}))], &pod, false);
    let mut elsewhere = service("web", json!({"selector": {"app": "web"}}));
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    check(&[elsewhere], &pod, false);
}

/// 27.15-15
#[test]
fn services_together_select_only_pods_with_all_their_labels() {
    // Pods of the second kind are not selected by what is deduced for the first.
    let mut world = over_hosts();
    world.add(service("web", json!({"selector": {"app": "web"}})));
    world.add(service("front", json!({"selector": {"tier": "front"}})));
    world.pods(2, "front", &Pod::of("web").label("tier", "front"));
    world.pods(2, "back", &Pod::of("web").label("tier", "back"));
    let round = world.plan();
    round.expect_all_placed();
    // Back pods avoid all pods of the app, front pods only each other.
    let shared = round.pods.iter().any(|pods| pods.iter().filter(|pod| pod.starts_with("back")).count() > 1);
    assert!(!shared, "{round:?}");
    assert_eq!(round.sizes(), [2, 2]);
}

/// 27.15-15
#[test]
fn a_service_that_contradicts_the_workload_selects_nothing() {
    // No pod has both values, so the rule spreads nothing.
    let contrary = workload("ReplicaSet", "web", json!({"matchLabels": {"app": "other"}}));
    check(&[service("web", json!({"selector": {"app": "web"}})), contrary], &web(), false);
}

/// 27.15-15
#[test]
fn what_is_deduced_for_one_pod_is_not_used_for_another() {
    let mut world = over_hosts();
    world.add(service("a", json!({"selector": {"app": "a"}})));
    world.add(service("b", json!({"selector": {"app": "b"}})));
    let mut elsewhere = service("c", json!({"selector": {"app": "c"}}));
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    world.add(elsewhere);
    for (app, count) in [("a", 2), ("b", 2), ("c", 3)] {
        world.pods(count, app, &Pod::of(app));
    }
    world.pods(2, "far", &Pod::of("c").namespace("elsewhere"));
    let round = world.plan();
    round.expect_all_placed();
    let together = |app: &str| {
        round.pods.iter().map(|pods| pods.iter().filter(|pod| pod.starts_with(app)).count()).max()
    };
    assert_eq!((together("a-"), together("b-"), together("elsewhere/")), (Some(1), Some(1), Some(1)));
    // Nothing selects the three pods of the third app in their own namespace.
    round.expect_nodes(2);
}
