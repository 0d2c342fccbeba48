//! Nodes that exist or are on their way, and what they save from being launched.

use serde_json::json;

use crate::machines::machine;
use crate::objects::{Pod, daemon, node, pod, pool};
use crate::outcome::Where;
use crate::world::{Stage, World};

const STAGES: [Stage; 4] = [Stage::Launched, Stage::Joined, Stage::Registered, Stage::Initialized];

/// A cluster with one node in a stage, launched for a pod that is gone again, and the node's name.
fn with_node(world: World, first: &Pod, stage: Stage) -> (World, String) {
    let mut world = world.add(first.clone());
    let outcome = world.round();
    outcome.expect_all_placed().expect_nodes(1);
    let names = world.launch(&outcome, stage);
    world.remove("Pod", first.name());
    (world, names[0].clone())
}

/// 27.6-01
#[test]
fn a_node_on_its_way_takes_pods_before_a_new_one_is_launched() {
    for stage in STAGES {
        let mut world = World::with_pool().add(pod("a").asks("cpu=100m"));
        let name = {
            let outcome = world.round();
            world.launch(&outcome, stage).remove(0)
        };
        // The first pod is not bound yet: it must not cause another node.
        world.round().expect_on("a", &name).expect_nodes(0);
        let outcome = world.add(pod("b").asks("cpu=100m")).round();
        outcome.expect_on("a", &name).expect_on("b", &name).expect_nodes(0);
    }
}

/// 27.6-02
#[test]
fn a_node_on_its_way_is_in_its_zone() {
    for stage in STAGES {
        let (world, name) = with_node(World::with_pool(), &pod("a").selects("zone=z2"), stage);
        world.clone().add(pod("b").requires("zone In z1 z2")).round().expect_on("b", &name);
        let outcome = world.add(pod("b").requires("zone In z1 z3")).round();
        outcome.expect_nodes(1);
        assert_ne!(outcome.new_node("b").label("zone"), Some("z2"));
    }
}

/// 27.6-03
#[test]
fn a_node_that_is_full_or_wrong_or_going_away_is_not_used() {
    let (mut world, name) =
        with_node(World::with_pool(), &pod("a").selects("type=small"), Stage::Initialized);
    world.clone().add(pod("b").asks("cpu=1.9")).round().expect_on("b", &name);
    world.clone().add(pod("b").asks("cpu=1.901")).round().expect_nodes(1);
    world.clone().add(pod("b").selects("arch=arm64")).round().expect_nodes(1);
    world.object("NodeClaim", "claim-1")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    world.clone().add(pod("b")).round().expect_nodes(1);
    world.remove("NodeClaim", "claim-1");
    world.remove("Node", "node-1");
    world.add(pod("b")).round().expect_nodes(1);
}

/// 27.6-04
#[test]
fn pods_spread_over_the_zones_of_nodes_that_exist() {
    let web = |name: &str| pod(name).label("app", "web").spreads("zone", "DoNotSchedule");
    let mut world = World::with_pool().pods(4, &web("first"));
    let outcome = world.round();
    assert_eq!(outcome.sizes(), [2, 1, 1]);
    world.settle(&outcome);
    let mut world = world.pods(5, &web("more"));
    let outcome = world.round();
    outcome.expect_all_placed().expect_nodes(0);
    world.settle(&outcome);
    let on = |node: &str| world.objects.iter().filter(|pod| pod["spec"]["nodeName"] == node).count();
    assert_eq!(["node-1", "node-2", "node-3"].map(on), [3, 3, 3]);
}

/// 27.6-04
#[test]
fn pods_that_want_hosts_of_their_own_do_not_share_nodes_that_exist() {
    let web = |name: &str| pod(name).label("app", "web").spreads("hostname", "DoNotSchedule");
    let mut world = World::with_pool().pods(4, &web("first"));
    let outcome = world.round();
    assert_eq!(outcome.sizes(), [1; 4]);
    world.settle(&outcome);
    assert_eq!(world.pods(5, &web("more")).round().expect_all_placed().sizes(), [1; 5]);
}

/// Whether a node of a stage takes a plain pod after a taint was put on its Node.
fn takes_pods(stage: Stage, taint: &str) -> bool {
    let pool = pool("default").startup_taint("boot:NoSchedule");
    let (mut world, name) = with_node(World::new().add(pool), &pod("a"), stage);
    let (key, effect) = taint.split_once(':').expect("key:Effect");
    world.object("Node", "node-1")["spec"]["taints"] = json!([{"key": key, "effect": effect}]);
    let outcome = world.add(pod("b")).round();
    outcome.expect_all_placed();
    outcome.places["b"] == Where::Node(name)
}

/// 27.6-05
#[test]
fn taints_that_go_away_by_themselves_matter_only_on_ready_nodes() {
    for taint in [
        "node.kubernetes.io/not-ready:NoExecute",
        "node.kubernetes.io/not-ready:NoSchedule",
        "node.kubernetes.io/unreachable:NoSchedule",
        "node.cloudprovider.kubernetes.io/uninitialized:NoSchedule",
        "karpenter.sh/unregistered:NoExecute",
        "readiness.k8s.io/disk:NoSchedule",
        "boot:NoSchedule",
    ] {
        for stage in [Stage::Joined, Stage::Registered] {
            assert!(takes_pods(stage, taint), "{stage:?} {taint}");
        }
        assert!(!takes_pods(Stage::Initialized, taint), "{taint}");
    }
}

/// 27.6-05
#[test]
fn other_taints_keep_pods_away() {
    assert!(!takes_pods(Stage::Registered, "own:NoSchedule"));
    assert!(!takes_pods(Stage::Initialized, "own:NoSchedule"));
    // The same key with another effect is another taint.
    assert!(!takes_pods(Stage::Registered, "boot:NoExecute"));
    assert!(!takes_pods(Stage::Registered, "node.kubernetes.io/unreachable:NoExecute"));
}

/// 27.6-05
#[test]
fn a_node_whose_taints_are_gone_takes_pods() {
    let tolerant = pod("a").tolerates(json!({"key": "own", "operator": "Exists"}));
    for stage in [Stage::Registered, Stage::Initialized] {
        let tainted = World::new().add(pool("default").taint("own:NoSchedule"));
        let (mut world, name) = with_node(tainted, &tolerant, stage);
        world.push(pod("b"));
        world.round().expect_pending("b", "did not tolerate taint");
        world.object("Node", "node-1")["spec"]["taints"] = json!([]);
        world.round().expect_on("b", &name);
    }
}

/// A node with 16 CPUs, of which the system keeps 100m, and some DaemonSets.
fn with_large_node(daemons: &[crate::objects::Daemon]) -> World {
    let mut world = World::with_pool();
    for daemon in daemons {
        world.push(daemon.clone());
    }
    with_node(world, &pod("a").selects("type=arm"), Stage::Initialized).0
}

/// 27.6-06
#[test]
fn daemons_that_run_already_are_not_set_aside_again() {
    let agent = pod("agent-1").of_daemon("agent").asks("cpu=1").on("node-1");
    let world = with_large_node(&[daemon("agent").asks("cpu=1")]);
    for world in [world.clone(), world.add(agent)] {
        world.clone().add(pod("b").asks("cpu=14.9")).round().expect_on("b", "node-1");
        world.add(pod("b").asks("cpu=14.901")).round().expect_pending("b", "no instance type");
    }
}

/// 27.6-06
#[test]
fn a_daemon_that_asks_for_what_a_node_lacks_takes_nothing_of_it() {
    let world = World::with_pool().add(daemon("agent").asks("cpu=1 example.com/device=1"));
    let world = world.add(node("bare", "cpu=2 pods=10"));
    world.clone().add(pod("a").asks("cpu=1")).round().expect_on("a", "bare");
    world.add(pod("a").asks("cpu=1.1")).round().expect_unplaced("a");
}

/// 27.6-07
#[test]
fn a_daemon_that_nobody_expected_frees_nothing() {
    let stray = pod("stray").of_daemon("stray").asks("cpu=2").on("node-1");
    let world = with_large_node(&[daemon("agent").asks("cpu=100m")]).add(stray);
    world.clone().add(pod("b").asks("cpu=13.9")).round().expect_on("b", "node-1");
    let outcome = world.add(pod("b").asks("cpu=15.5")).round();
    outcome.expect_nodes(1);
    assert_eq!(outcome.new_node("b").types, ["arm"]);
}

/// 27.6-08
#[test]
fn daemons_may_select_nodes_that_are_ready() {
    for label in ["karpenter.sh/initialized", "karpenter.sh/registered"] {
        let selecting = daemon("agent").asks("cpu=1").selects(&format!("{label}=true"));
        let node = World::with_pool().add(selecting).add(pod("a").asks("cpu=1")).only_node();
        assert_eq!((node.types[0].as_str(), node.request("cpu")), ("default", Some("2")));
        assert!(!node.labels.contains_key(label));
        assert!(!node.claim.to_string().contains(label), "{}", node.claim);
    }
}

/// 27.6-09
#[test]
fn batches_of_pods_fill_nodes_one_after_the_other() {
    let types = vec![machine("ten", "cpu=10 memory=100Gi pods=100").keeps("").build()];
    let mut world = World::with_types(types).add(pool("default"));
    let mut pods = 0;
    for (batch, count) in [3, 7, 1, 9, 4, 10, 2, 8, 5, 6].into_iter().enumerate() {
        world = world.pods(count, &pod(&format!("batch-{batch}")).asks("cpu=1"));
        let outcome = world.round();
        outcome.expect_all_placed();
        world.settle(&outcome);
        pods += count;
        let nodes = world.objects.iter().filter(|object| object["kind"] == "Node").count();
        // Ten fit on each node, so at most one node has room left.
        assert_eq!(nodes, pods.div_ceil(10), "after batch {batch}");
    }
}

/// 27.6-10
#[test]
fn a_ready_node_comes_before_a_hundred_that_are_on_their_way() {
    let mut world = World::with_pool().pods(100, &pod("old").selects("type=single"));
    let outcome = world.round();
    world.launch(&outcome, Stage::Registered);
    world.objects.retain(|object| object["kind"] != "Pod");
    world.object("Node", "node-57")["metadata"]["labels"]["karpenter.sh/initialized"] = "true".into();
    world.push(pod("new"));
    world.round().expect_on("new", "node-57");
    // The same if the others have no Node yet.
    world.objects.retain(|each| each["kind"] != "Node" || each["metadata"]["name"] == "node-57");
    world.round().expect_on("new", "node-57");
}

/// 27.6-11
#[test]
fn pods_with_the_same_port_need_different_hosts() {
    let (world, name) = with_node(World::with_pool(), &pod("a"), Stage::Initialized);
    let outcome = world.clone().add(pod("b").port(80)).add(pod("c").port(80)).add(pod("d").port(81)).round();
    outcome.expect_all_placed().expect_nodes(1);
    outcome.expect_on("b", &name).expect_on("d", &name);
    // One that runs counts as well, and so does one on a node that is only planned.
    let outcome = world.add(pod("b").port(80).on("node-1")).pods(2, &pod("c").port(80)).round();
    assert_eq!(outcome.sizes(), [1, 1]);
}

/// 27.6-12
#[test]
fn nodes_that_belong_to_nobody_are_used() {
    let world = World::with_pool().add(node("bare", "cpu=10 memory=10Gi pods=110"));
    for count in [1, 100] {
        let outcome = world.clone().pods(count, &pod("web").asks("cpu=10m")).round();
        outcome.expect_nodes(0);
        assert!(outcome.places.values().all(|place| *place == Where::Node("bare".into())));
    }
    // They are ready, so they come before nodes on their way, whatever the names.
    let (world, _) = with_node(World::with_pool(), &pod("a"), Stage::Registered);
    let outcome = world.add(node("z-bare", "cpu=10 pods=10")).add(pod("b")).round();
    outcome.expect_on("b", "z-bare");
    let world = World::new().add(node("bare", "cpu=10 pods=10").label("arch", "arm64"));
    let world = world.add(pod("a").selects("arch=amd64"));
    world.round().expect_pending("a", "nodepool requirements filtered out all available instance types");
    world.add(pool("default")).round().expect_nodes(1);
}

/// 27.6-13
#[test]
fn a_daemon_needs_the_labels_of_a_node_but_not_of_a_new_one() {
    let world = World::with_pool()
        .add(daemon("agent").asks("cpu=1").selects("os=linux"))
        .add(node("bare", "cpu=1 memory=1Gi pods=10"));
    world.clone().add(pod("a").asks("cpu=1")).round().expect_on("a", "bare").expect_nodes(0);
    let labelled = World::with_pool()
        .add(daemon("agent").asks("cpu=1").selects("os=linux"))
        .add(node("bare", "cpu=1 memory=1Gi pods=10").label("os", "linux"));
    assert_eq!(labelled.add(pod("a").asks("cpu=1")).only_node().request("cpu"), Some("2"));
    let node = world.add(pod("a").asks("cpu=1").selects("zone=z1")).only_node();
    assert_eq!((node.types[0].as_str(), node.request("cpu")), ("default", Some("2")));
}

/// 27.6-14
#[test]
fn devices_that_the_kubelet_does_not_know_yet_are_taken_from_the_claim() {
    let asking = |name: &str| pod(name).limited_to("example.com/gpu-a=1");
    for stage in [Stage::Joined, Stage::Registered] {
        let (mut world, name) = with_node(World::with_pool(), &asking("a"), stage);
        for amounts in ["capacity", "allocatable"] {
            world.object("Node", "node-1")["status"][amounts]["example.com/gpu-a"] = "0".into();
        }
        world.push(asking("b"));
        world.round().expect_on("b", &name).expect_nodes(0);
        // A ready node is taken at its word.
        let labels = &mut world.object("Node", "node-1")["metadata"]["labels"];
        labels["karpenter.sh/registered"] = "true".into();
        labels["karpenter.sh/initialized"] = "true".into();
        world.round().expect_nodes(1);
    }
}

/// 27.6-14
#[test]
fn pods_that_stay_together_use_the_zone_of_a_node_on_its_way() {
    for stage in STAGES {
        let web = |name: &str| pod(name).label("app", "web").pods("podAffinity", "zone");
        let mut world = World::with_pool().add(web("a").selects("zone=z2"));
        let name = {
            let outcome = world.round();
            world.launch(&outcome, stage).remove(0)
        };
        world.remove("Pod", "a");
        let outcome = world.add(web("a")).add(web("b")).round();
        outcome.expect_on("a", &name).expect_on("b", &name).expect_nodes(0);
    }
}
