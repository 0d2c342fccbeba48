//! What pods give up when they cannot have everything, and what they never give up.

use api::provider::Provider;
use cluster::instance_types::Offering;
use serde_json::json;

use crate::machines::{machine, offering};
use crate::objects::{node, pod, pool, requirement};
use crate::world::World;

/// The zone of the only new node of a pod in a cluster with a pool for everything.
fn zone(pod: crate::objects::Pod) -> Option<String> {
    World::with_pool().add(pod).only_node().label("zone").map(str::to_owned)
}

/// 27.3-01
#[test]
fn the_last_required_term_is_never_dropped() {
    let outcome = World::with_pool().add(pod("a").requires("zone In nowhere")).round();
    outcome.expect_pending("a", "topology.kubernetes.io/zone In [nowhere]");
}

/// 27.3-02
#[test]
fn required_terms_are_tried_in_their_order() {
    let pod = pod("a")
        .or_requires("zone In nowhere")
        .or_requires("type In unknown")
        .or_requires("zone In z1")
        .or_requires("zone In z2");
    assert_eq!(zone(pod).as_deref(), Some("z1"));
}

/// 27.3-03
#[test]
fn all_wishes_are_dropped_if_need_be() {
    let node = World::with_pool()
        .add(pod("a").prefers(1, "zone In nowhere").prefers(2, "type In unknown"))
        .only_node();
    assert_eq!(node.values("zone"), Vec::<&str>::new());
}

/// 27.3-04
#[test]
fn the_heaviest_wish_that_can_be_had_wins() {
    let pod = pod("a").prefers(1, "zone In z1").prefers(100, "zone In nowhere").prefers(50, "zone In z2");
    assert_eq!(zone(pod).as_deref(), Some("z2"));
}

/// 27.3-05
#[test]
fn a_wish_against_a_requirement_is_dropped() {
    let against = pod("a").requires("zone In z3").prefers(1, "zone NotIn z3");
    assert_eq!(zone(against).as_deref(), Some("z3"));
    let absurd = pod("a").requires("zone In z3").prefers(1, "zone In z1,zone NotIn z1");
    assert_eq!(zone(absurd).as_deref(), Some("z3"));
}

/// 27.3-06
#[test]
fn taints_that_only_advise_are_tolerated_after_all_wishes_are_dropped() {
    let world = World::new().add(pool("default").taint("slow:PreferNoSchedule").requires("zone In z1 z2"));
    let node = world.clone().add(pod("a").prefers(1, "zone In nowhere").prefers(2, "zone In z3")).only_node();
    assert_eq!(node.claim["spec"]["taints"], json!([{"key": "slow", "effect": "PreferNoSchedule"}]));
    // A wish that could be had with the taint is gone before the taint is tolerated.
    let node = world.add(pod("a").prefers(1, "zone In z2")).only_node();
    assert_eq!(node.values("zone"), ["z1", "z2"]);
}

/// 27.3-07
#[test]
fn a_pool_that_advises_against_itself_is_used_only_if_no_other_is() {
    let world = World::new().add(pool("slow").taint("slow:PreferNoSchedule").weight(100));
    assert_eq!(world.clone().add(pod("a")).only_node().pool, "slow");
    assert_eq!(world.add(pool("fast")).add(pod("a")).only_node().pool, "fast");
}

/// 27.3-07
#[test]
fn a_node_that_advises_against_itself_is_used_only_if_a_pool_does_so_too() {
    let bare = node("bare", "cpu=4 pods=10").taint("slow:PreferNoSchedule");
    World::with_pool().add(bare.clone()).add(pod("a")).round().expect_nodes(1);
    let world = World::new().add(bare).add(pod("a"));
    world.round().expect_unplaced("a");
    world.add(pool("slow").taint("other:PreferNoSchedule")).round().expect_on("a", "bare");
}

/// 27.3-08
#[test]
fn pods_with_wishes_that_cannot_be_had_are_packed_with_others() {
    for wish in ["zone In nowhere", "hostname In nowhere"] {
        let outcome = World::with_pool().add(pod("a")).add(pod("b").prefers(1, wish)).round();
        outcome.expect_all_placed().expect_nodes(1);
    }
}

/// 27.3-09
#[test]
fn wishes_for_nodes_can_be_ignored() {
    let world = World::with_pool()
        .add(pod("one").selects("zone=z1").asks("cpu=400m"))
        .add(pod("two").selects("zone=z2").asks("cpu=300m"))
        .add(pod("three").selects("zone=z1").asks("cpu=200m"))
        .add(pod("last").prefers(1, "zone In z1").asks("cpu=100m"));
    assert_eq!(world.round().new_node("last").label("zone"), Some("z1"));
    assert_eq!(world.ignoring_preferences().round().new_node("last").label("zone"), Some("z2"));
}

/// 27.3-09
#[test]
fn spreads_that_are_only_wishes_can_be_ignored() {
    for topology in ["zone", "hostname"] {
        let world =
            World::with_pool().pods(5, &pod("web").label("app", "web").spreads(topology, "ScheduleAnyway"));
        assert!(world.round().expect_all_placed().nodes.len() > 1);
        assert_eq!(world.ignoring_preferences().only_node().pods.len(), 5);
    }
}

/// 27.3-09
#[test]
fn wishes_to_be_away_from_pods_can_be_ignored() {
    let web = pod("web").label("app", "web").prefers_pods("podAntiAffinity", "hostname");
    let world = World::with_pool().pods(3, &web);
    world.round().expect_all_placed().expect_nodes(3);
    assert_eq!(world.ignoring_preferences().only_node().pods.len(), 3);
}

/// 27.3-09
#[test]
fn wishes_to_be_near_pods_can_be_ignored() {
    // Too many for one node of any type, so the wish to share a zone is all that holds them together.
    let near = pod("near").label("app", "web").prefers_pods("podAffinity", "zone").asks("cpu=100m");
    let world = World::with_pool()
        .pods(2, &pod("one").label("app", "web").selects("zone=z1").asks("cpu=400m"))
        .add(pod("two").selects("zone=z2").asks("cpu=300m"))
        .add(near);
    assert_eq!(world.round().new_node("near").label("zone"), Some("z1"));
    assert_eq!(world.ignoring_preferences().round().new_node("near").label("zone"), Some("z2"));
}

/// 27.3-10
#[test]
fn the_zone_of_a_volume_is_not_dropped_with_a_term() {
    let zone = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement("zone In z3")]}]});
    let world = World::with_pool()
        .add(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
            "spec": {"nodeAffinity": {"required": zone}},
        }))
        .add(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": "data", "namespace": "default",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {"volumeName": "disk"}, "status": {"phase": "Bound"},
        }));
    let volumes = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    let pod = pod("a").spec(volumes).or_requires("zone In z1");
    let outcome = world.clone().add(pod.clone().or_requires("zone In z2")).round();
    outcome.expect_pending("a", "incompatible volume requirements").expect_nodes(0);
    assert_eq!(world.add(pod.or_requires("type In default")).only_node().label("zone"), Some("z3"));
}

/// A cluster on AWS whose only type can be had on demand and from a reservation with launches left.
fn with_reservation(left: u32) -> World {
    let id =
        json!({"key": "karpenter.k8s.aws/capacity-reservation-id", "operator": "In", "values": ["cr-1"]});
    let mut reserved = offering("z1 reserved 0.01");
    reserved.requirements.push(serde_json::from_value(id).expect("a requirement"));
    let reserved = Offering { reservation_capacity: left, ..reserved };
    let type_ = machine("m", "").offered("z1 on-demand 1").with_offering(reserved).build();
    let mut world = World::with_types(vec![type_]);
    world.provider = Provider::Aws;
    let pod = pod("web").label("app", "web").pods("podAntiAffinity", "hostname").prefers(1, "pool In wanted");
    world.add(pool("other").weight(100).requires("capacity In on-demand")).add(pool("wanted")).pods(2, &pod)
}

/// 27.3-11
#[test]
fn a_pod_that_waits_for_a_reservation_keeps_its_wishes() {
    let mut world = with_reservation(1);
    let outcome = world.round();
    outcome.expect_nodes(1);
    assert_eq!(outcome.nodes[0].pool, "wanted");
    assert_eq!(outcome.nodes[0].label("capacity"), Some("reserved"));
    outcome.expect_pending("web-2", "compatible reserved offerings are available, but could not be reserved");
    // By the next round the cloud knows that the reservation is used up.
    world.settle(&outcome);
    world.types = with_reservation(0).types;
    let node = world.round().new_node("web-2").clone();
    assert_eq!((node.pool.as_str(), node.label("capacity")), ("wanted", Some("on-demand")));
}
