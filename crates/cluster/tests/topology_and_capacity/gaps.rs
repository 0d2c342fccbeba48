//! Cases in the corners of the model: zero amounts, hosts by name, nodes whose state is not known, several
//! alternatives together with wishes.

use serde_json::{Value, json};

use crate::objects::{CPUS, HOSTNAME, Pod, ZONE, need, spread, term};
use crate::world::{World, machine, quantity, with_resource};

#[test]
fn an_offering_that_takes_a_resource_away_does_not_have_it() {
    let mut world = World::empty();
    let mut type_ = with_resource(machine("gpu", 4, 4), "example.com/gpu", "1");
    for offering in &mut type_.offerings {
        if offering.requirements[0].values[0] != "zone-3" {
            offering.capacity_override = Some([("example.com/gpu", quantity("0"))].into_iter().collect());
        }
    }
    world.types = vec![type_];
    world.pool("default", json!({}));
    let pod = Pod::new().requests(json!({"example.com/gpu": "1"}));
    world.pod(pod.clone().name("anywhere"));
    world.pod(pod.on(ZONE, "zone-1").name("in-zone-1"));
    let round = world.plan();
    round.expect_place("anywhere");
    round.expect_pending("in-zone-1", "no instance type has enough resources");
}

#[test]
fn a_type_that_has_none_of_what_the_system_keeps_is_of_no_use() {
    let mut world = World::empty();
    let mut short = with_resource(machine("short", 4, 4), "ephemeral-storage", "0");
    short.overhead.set("ephemeral-storage", quantity("1Gi"));
    let mut silent = machine("silent", 8, 8);
    silent.overhead.set("ephemeral-storage", quantity("1Gi"));
    world.types = vec![short, silent];
    world.pool("default", json!({}));
    world.pod(Pod::new().name("web"));
    assert_eq!(world.plan().types, [["silent"]]);
}

/// A cluster with two nodes, one of them with a pod of the app, and a node that goes away with another such pod
/// that asks for its own kind and for some hosts.
fn with_hosts(hosts: Value) -> World {
    let mut world = World::empty();
    world.node("one", json!({}));
    world.node("two", json!({}));
    world.node("leaving", json!({}));
    world.change("Node", "leaving", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    world.running(Pod::of("web").name("first"), "one");
    world.running(Pod::of("web").near(term(HOSTNAME, "web")).require(hosts).name("second"), "leaving");
    world
}

#[test]
fn a_pod_that_cannot_go_to_its_own_kind_may_be_the_first_elsewhere() {
    let round = with_hosts(json!([need(HOSTNAME, "NotIn", &["one"])])).plan();
    assert_eq!(round.expect_place("second"), "two");
    let round = with_hosts(json!([need(HOSTNAME, "In", &["two"])])).plan();
    assert_eq!(round.expect_place("second"), "two");
}

#[test]
fn a_pod_that_can_go_to_its_own_kind_must() {
    let round = with_hosts(json!([need(HOSTNAME, "In", &["one", "two"])])).plan();
    assert_eq!(round.expect_place("second"), "one");
    let mut full = with_hosts(json!([need(HOSTNAME, "In", &["one", "two"])]));
    full.change("Node", "one", json!({"status": {"allocatable": {"pods": "1"}}}));
    full.plan().expect_placed(0);
}

/// A node of a pool that has no provider ID yet, or no instance type.
fn unknown_nodes() -> [Value; 2] {
    [
        json!({"spec": {"providerID": ""}, "metadata": {"labels": {"karpenter.sh/nodepool": "default"}}}),
        json!({"metadata": {"labels": {"karpenter.sh/nodepool": "default"}}}),
    ]
}

#[test]
fn pods_on_a_node_whose_state_is_not_known_are_counted_where_it_says_it_is() {
    for unknown in unknown_nodes() {
        let mut world = World::new();
        world.node("unknown", json!({ZONE: "zone-1"}));
        world.change("Node", "unknown", unknown);
        world.running(Pod::of("web").name("there"), "unknown");
        world.pods(2, "web", &Pod::of("web").spread(spread(ZONE, 1, "web")));
        let round = world.plan();
        round.expect_all_placed().expect_nodes(2);
        let mut zones = [round.node_label(0, ZONE), round.node_label(1, ZONE)];
        zones.sort_unstable();
        assert_eq!(zones, ["zone-2", "zone-3"]);
    }
}

#[test]
fn a_node_whose_state_is_not_known_takes_no_pods_and_its_pods_stay() {
    for unknown in unknown_nodes() {
        let mut world = World::new();
        world.node("unknown", json!({ZONE: "zone-1"}));
        world.change("Node", "unknown", unknown);
        world.change("Node", "unknown", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        world.running(Pod::of("web").name("there"), "unknown");
        world.pod(Pod::of("web").name("waits"));
        let round = world.plan();
        round.expect_placed(1).expect_nodes(1);
        assert_ne!(round.expect_place("waits"), "unknown");
    }
}

#[test]
fn an_earlier_alternative_is_tried_without_wishes_too() {
    let mut world = World::new();
    // The first alternative works, but not with the wish; the last never does.
    let pod = Pod::new()
        .require(json!([need(ZONE, "In", &["zone-2"])]))
        .require(json!([need(ZONE, "In", &["zone-9"])]))
        .prefer(1, json!([need(CPUS, "In", &["1000"])]));
    world.pod(pod.name("web"));
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.values(0, ZONE), ["zone-2"]);
}

#[test]
fn the_last_alternative_without_wishes_comes_before_earlier_ones() {
    let mut world = World::new();
    let pod = ["zone-1", "zone-2", "zone-3"]
        .iter()
        .fold(Pod::new(), |pod, zone| pod.require(json!([need(ZONE, "In", &[zone])])));
    world.pod(pod.prefer(1, json!([need(CPUS, "In", &["1000"])])).name("web"));
    assert_eq!(world.plan().values(0, ZONE), ["zone-3"]);
}

#[test]
fn wishes_are_still_dropped_one_by_one_for_earlier_alternatives() {
    let mut world = World::new();
    let pod = Pod::new()
        .require(json!([need(ZONE, "In", &["zone-1"])]))
        .require(json!([need(ZONE, "In", &["zone-2"])]))
        .require(json!([need(ZONE, "In", &["zone-9"])]))
        .prefer(9, json!([need(CPUS, "In", &["1000"])]))
        .prefer(1, json!([need(CPUS, "In", &["16"])]));
    world.pod(pod.name("web"));
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(round.values(0, ZONE), ["zone-1"]);
    assert_eq!(round.values(0, CPUS), ["16"]);
}

#[test]
fn the_reason_that_users_see_is_that_of_the_last_alternative() {
    let mut world = World::new();
    let pod = Pod::new()
        .require(json!([need(ZONE, "In", &["zone-8"])]))
        .require(json!([need(ZONE, "In", &["zone-9"])]))
        .prefer(1, json!([need(CPUS, "In", &["1000"])]));
    world.pod(pod.name("web"));
    world.plan().expect_pending("web", "topology.kubernetes.io/zone In [zone-9]");
}
