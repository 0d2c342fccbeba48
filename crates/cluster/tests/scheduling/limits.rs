//! Which pool a pod gets its node from, and how far pools may grow.

use api::hash::node_pool_hash;
use api::nodepool::NodePool;
use serde_json::{Value, json};

use crate::objects::{Pod, pod, pool};
use crate::world::{Stage, World};

const EXCEEDED: &str = "all available instance types exceed limits for nodepool (NodePool=default)";

/// Pods that need a node each.
fn apart(name: &str) -> Pod {
    pod(name).label("app", "web").pods("podAntiAffinity", "hostname")
}

/// 27.8-01
#[test]
fn a_pool_beyond_its_limit_gets_no_more_nodes() {
    let mut world = World::with_pool().add(pod("a").selects("type=arm"));
    let outcome = world.round();
    world.settle(&outcome);
    merge_limits(&mut world, "20");
    world.push(pod("b").asks("cpu=1").selects("type=small"));
    world.round().expect_nodes(1);
    for limit in ["17", "10"] {
        merge_limits(&mut world, limit);
        world.round().expect_pending("b", EXCEEDED).expect_nodes(0);
    }
}

fn merge_limits(world: &mut World, cpus: &str) {
    world.object("NodePool", "default")["spec"]["limits"] = json!({"cpu": cpus});
}

/// 27.8-01
#[test]
fn a_limit_counts_whole_nodes() {
    let limited = |cpus: &str| World::new().add(pool("default").limits(&format!("cpu={cpus}")));
    let mut world = limited("2").add(pod("a").asks("cpu=1.75"));
    let outcome = world.round();
    assert_eq!(outcome.new_node("a").types, ["small"]);
    world.settle(&outcome);
    world.add(pod("b").asks("cpu=1.75")).round().expect_pending("b", EXCEEDED);
    // What the system keeps of a node counts too.
    limited("1.95").add(pod("a").asks("cpu=1.75")).round().expect_pending("a", EXCEEDED).expect_nodes(0);
    limited("2").add(pod("a").asks("cpu=2.1")).round().expect_pending("a", EXCEEDED).expect_nodes(0);
    // What no type has is not for want of a limit.
    let too_large = limited("2").add(pod("a").asks("cpu=210")).round();
    too_large.expect_pending("a", "no instance type has enough resources").expect_nodes(0);
    let outcome = limited("3").pods(2, &apart("web").asks("cpu=1.5")).round();
    assert_eq!((outcome.nodes.len(), outcome.pending()), (1, 1));
    outcome.expect_pending("web-2", EXCEEDED);
}

/// 27.8-01
#[test]
fn every_resource_of_a_node_can_be_limited() {
    let world = World::new().add(pool("default").limits("pods=1"));
    world.clone().add(pod("a").limited_to("example.com/gpu-a=1")).round().expect_nodes(0);
    assert_eq!(world.add(pod("a")).only_node().types, ["single"]);
    let world = World::new().add(pool("default").limits("example.com/gpu-a=1"));
    world.clone().add(pod("a").limited_to("example.com/gpu-a=1")).round().expect_pending("a", EXCEEDED);
    let types = world.add(pod("a")).only_node().types;
    assert!(types.len() == 5 && !types.contains(&"gpu-a".to_owned()), "{types:?}");
}

/// 27.8-01
#[test]
fn the_number_of_nodes_can_be_limited() {
    const EXHAUSTED: &str = "node limits have been exhausted for nodepool (NodePool=default)";
    let mut world = World::new().add(pool("default").limits("nodes=2"));
    for name in ["a", "b"] {
        world.push(apart(name));
        let outcome = world.round();
        outcome.expect_nodes(1);
        world.settle(&outcome);
    }
    world.add(apart("c")).round().expect_pending("c", EXHAUSTED).expect_nodes(0);
    // It holds within a round as well.
    let outcome = World::new().add(pool("default").limits("nodes=2")).pods(3, &apart("web")).round();
    outcome.expect_nodes(2).expect_pending("web-3", EXHAUSTED);
}

/// 27.8-02
#[test]
fn the_pool_with_the_greatest_weight_is_used() {
    let world = World::new()
        .add(pool("b"))
        .add(pool("light").weight(20))
        .add(pool("heavy").weight(100))
        .add(pool("c"));
    assert_eq!(world.clone().add(pod("a")).only_node().pool, "heavy");
    for name in ["light", "b"] {
        assert_eq!(world.clone().add(pod("a").selects(&format!("pool={name}"))).only_node().pool, name);
    }
    assert_eq!(world.clone().add(pod("a").requires("pool NotIn heavy")).only_node().pool, "light");
    // Of equals the last by name is used.
    assert_eq!(world.add(pod("a").requires("pool NotIn heavy light")).only_node().pool, "c");
}

/// 27.8-03
#[test]
fn pools_of_a_fixed_size_do_not_grow_with_pods() {
    let fixed = pool("fixed").weight(100).with(json!({"spec": {"replicas": 3}}));
    let world = World::new().add(fixed.with(json!({"spec": {"weight": null}})));
    let outcome = world.clone().add(pod("a")).round();
    outcome.expect_nodes(0).expect_unplaced("a");
    assert_eq!(
        outcome.ignored,
        ["NodePool fixed: has a fixed number of nodes (spec.replicas); pending pods get no new node of it"]
    );
    assert_eq!(world.add(pool("default")).add(pod("a")).only_node().pool, "default");
}

/// 27.8-04
#[test]
fn a_pool_without_room_holds_back_the_others_in_a_spread() {
    let outcome = World::new()
        .add(pool("open").requires("zone In z1 z2"))
        .add(pool("closed").requires("zone In z3").limits("cpu=0"))
        .pods(6, &pod("web").label("app", "web").spreads("zone", "DoNotSchedule"))
        .round();
    assert_eq!(outcome.sizes(), [1, 1]);
    assert_eq!(outcome.pending(), 4);
    let mut zones: Vec<_> = outcome.nodes.iter().map(|node| node.label("zone")).collect();
    zones.sort_unstable();
    assert_eq!(zones, [Some("z1"), Some("z2")]);
}

/// 27.8-05
#[test]
fn a_claim_carries_the_hash_of_the_pool_it_was_planned_for() {
    let world = World::with_pool().add(pod("a"));
    let hash = |world: &World| {
        let claim = world.only_node().claim;
        claim["metadata"]["annotations"]["karpenter.sh/nodepool-hash"].as_str().expect("a hash").to_owned()
    };
    let planned: NodePool = serde_json::from_value(world.objects[0].clone()).expect("a NodePool");
    assert_eq!(hash(&world), node_pool_hash(&planned));
    let mut changed = world.clone();
    changed.object("NodePool", "default")["spec"]["template"]["metadata"]["labels"]["team"] = "a".into();
    assert_ne!(hash(&changed), hash(&world));
}

/// 27.8-06
#[test]
fn nodes_get_the_grace_period_of_their_pool_or_none() {
    let period = |fields: &Value| {
        let node = World::new().add(pool("default").template(fields)).add(pod("a")).only_node();
        node.claim["spec"]["terminationGracePeriod"].clone()
    };
    assert_eq!(period(&json!({"terminationGracePeriod": "30s"})), "30s");
    assert_eq!(period(&json!({})), Value::Null);
}

/// 27.8-07
#[test]
fn pods_of_a_node_that_goes_away_share_a_new_node_with_pods_that_wait() {
    let mut world = World::with_pool().pods(2, &pod("old").asks("cpu=100m"));
    let outcome = world.round();
    outcome.expect_nodes(1);
    world.settle(&outcome);
    world.object("NodeClaim", "claim-1")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let world = world.pods(2, &pod("new").asks("cpu=100m"));
    let outcome = world.round();
    outcome.expect_all_placed();
    assert_eq!(outcome.sizes(), [4]);
    // A node on its way takes them all just as well.
    let mut later = world.clone();
    let names = later.launch(&outcome, Stage::Registered);
    let outcome = later.round();
    outcome.expect_nodes(0);
    for pod in ["old-1", "old-2", "new-1", "new-2"] {
        outcome.expect_on(pod, &names[0]);
    }
}
