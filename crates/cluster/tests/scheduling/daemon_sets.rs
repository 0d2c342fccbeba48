//! What DaemonSets will take of a new node.

use serde_json::json;

use crate::objects::{Daemon, Pool, daemon, node, pod, pool, requirement};
use crate::world::World;

/// The CPUs that the claim for a pod of one CPU asks for in a cluster with a DaemonSet.
#[track_caller]
fn cpus(pool: Pool, daemon: Daemon) -> String {
    let node = World::new().add(pool).add(daemon).add(pod("a").asks("cpu=1")).only_node();
    node.request("cpu").expect("some cpu").to_owned()
}

/// 27.7-01
#[test]
fn a_new_node_has_room_for_daemons() {
    for pool in [pool("default"), pool("default").startup_taint("boot:NoSchedule")] {
        let agent = daemon("agent").asks("cpu=1 memory=1Gi");
        let world = World::new().add(pool).add(agent).add(pod("a").asks("cpu=1 memory=1Gi"));
        let node = world.only_node();
        assert_eq!(node.types[0], "default");
        assert_eq!((node.request("cpu"), node.request("memory")), (Some("2"), Some("2Gi")));
        assert_eq!(node.request("pods"), Some("2"));
    }
}

/// 27.7-01
#[test]
fn a_daemon_larger_than_every_type_leaves_no_room() {
    let world = World::with_pool().add(daemon("agent").asks("cpu=10k memory=10Ti")).add(pod("a"));
    let outcome = world.round();
    outcome.expect_pending("a", "no instance type has enough resources").expect_nodes(0);
    outcome.expect_pending("a", r#"resources={"cpu":"10k","memory":"10Ti","pods":"2"}"#);
}

/// 27.7-01
#[test]
fn the_ports_of_daemons_are_taken_where_they_run() {
    let waiting = pod("a").port(8080);
    let world = World::with_pool().add(daemon("agent").port(8080)).add(waiting.clone());
    // Types whose daemons use the port are not looked at, so none meets anything.
    let nothing =
        "no instance type met the scheduling requirements or had enough resources or had a required offering";
    world.round().expect_pending("a", nothing).expect_nodes(0);
    let world = World::with_pool().add(daemon("agent").port(8080)).add(pod("a").port(8081));
    world.only_node();
    let elsewhere = daemon("agent").port(8080).selects("type=arm");
    let outcome = World::with_pool().add(elsewhere.clone()).add(waiting.clone().selects("type=arm")).round();
    outcome.expect_pending("a", "no instance type met all requirements");
    let node = World::with_pool().add(elsewhere).add(waiting).only_node();
    assert_eq!(node.types.len(), 5);
    assert!(!node.types.contains(&"arm".to_owned()));
}

/// 27.7-02
#[test]
fn the_newest_pod_of_a_daemon_shows_its_size() {
    let running = |name: &str, cpu: &str, created: &str| {
        let created = json!({"metadata": {"creationTimestamp": created}});
        pod(name).of_daemon("agent").asks(&format!("cpu={cpu}")).on("bare").with(created)
    };
    let node = World::with_pool()
        .add(daemon("agent").asks("cpu=1"))
        .add(node("bare", "cpu=5 memory=1Gi pods=10"))
        .add(running("new", "3", "2026-01-01T02:00:00Z"))
        .add(running("old", "2", "2026-01-01T01:00:00Z"))
        .add(pod("a").asks("cpu=1"))
        .only_node();
    assert_eq!((node.request("cpu"), node.types[0].as_str()), (Some("4"), "arm"));
}

/// 27.7-02
#[test]
fn a_daemon_asks_like_any_pod() {
    let init = json!({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]});
    assert_eq!(cpus(pool("default"), daemon("agent").limited_to("cpu=2")), "3");
    assert_eq!(cpus(pool("default"), daemon("agent").asks("cpu=1").spec(init.clone())), "4");
    assert_eq!(cpus(pool("default"), daemon("agent").asks("cpu=4").spec(init)), "5");
    assert_eq!(cpus(pool("default"), daemon("agent")), "1");
    let world = World::with_pool().add(daemon("agent").limited_to("cpu=10k")).add(pod("a"));
    world.round().expect_pending("a", "no instance type has enough resources");
}

/// 27.7-03
#[test]
fn daemons_that_will_not_run_there_do_not_count() {
    let agent = || daemon("agent").asks("cpu=1");
    let tolerant = pod("a").asks("cpu=1").tolerates(json!({"operator": "Exists"}));
    let tainted = World::new().add(pool("default").taint("own:NoSchedule")).add(tolerant);
    assert_eq!(tainted.clone().add(agent()).only_node().request("cpu"), Some("1"));
    let tolerating = agent().tolerates(json!({"key": "own", "operator": "Exists"}));
    assert_eq!(tainted.add(tolerating).only_node().request("cpu"), Some("2"));
    assert_eq!(cpus(pool("default"), agent().selects("team=unknown")), "1");
    assert_eq!(cpus(pool("default"), agent().selects("type=unknown")), "1");
    assert_eq!(cpus(pool("default").requires("arch In amd64"), agent().selects("type=arm")), "1");
}

/// 27.7-03
#[test]
fn daemons_that_may_run_there_count() {
    let agent = || daemon("agent").asks("cpu=1");
    assert_eq!(cpus(pool("default").label("team", "a"), agent().selects("team=a")), "2");
    assert_eq!(cpus(pool("default").label("team", "a"), agent().selects("team=b")), "1");
    assert_eq!(cpus(pool("default"), agent().requires("team NotIn a")), "2");
    assert_eq!(cpus(pool("default"), agent().or_requires("zone In nowhere").or_requires("zone In z1")), "2");
    assert_eq!(cpus(pool("default"), agent().prefers(1, "zone In nowhere")), "2");
    assert_eq!(cpus(pool("default").taint("slow:PreferNoSchedule"), agent()), "2");
}

/// 27.7-04
#[test]
fn only_the_daemons_of_a_type_count_for_it() {
    let world = World::with_pool()
        .add(daemon("for-small").asks("cpu=1").selects("size=small"))
        .add(daemon("for-large").asks("cpu=8").selects("size=large"));
    for (selector, cpu) in [("type=small", "1500m"), ("type=arm", "8500m")] {
        let node = world.clone().add(pod("a").asks("cpu=500m").selects(selector)).only_node();
        assert_eq!(node.request("cpu"), Some(cpu), "{selector}");
    }
    // With both kinds of types left, the claim asks for what the least of them needs. Only the type for a single
    // pod is gone.
    let node = world.clone().add(pod("a").asks("cpu=500m")).only_node();
    assert_eq!((node.types.len(), node.request("cpu")), (5, Some("1500m")));
    // A pod may fit on a type only because the other daemon does not run there.
    let node = world.clone().add(pod("a").asks("cpu=2900m")).only_node();
    assert!(node.types.contains(&"default".to_owned()) && node.types.contains(&"arm".to_owned()));
    assert_eq!(world.clone().add(pod("a").asks("cpu=7900m")).only_node().types, ["arm"]);
    // A failure tells both.
    let text = r#"min={"cpu":"101","pods":"2"}, max={"cpu":"108","pods":"2"}"#;
    world.add(pod("a").asks("cpu=100")).round().expect_pending("a", text);
    let rare = World::with_pool().add(daemon("for-large").asks("cpu=8").selects("size=large"));
    let text = r#"resources={"cpu":"108","pods":"2"}"#;
    rare.add(pod("a").asks("cpu=100")).round().expect_pending("a", text);
}

/// 27.7-05
#[test]
fn a_daemon_is_not_tied_to_the_node_its_pod_runs_on() {
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["bare"]});
    let pinned = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [field]}],
    }}}});
    let running = pod("agent-1").of_daemon("agent").asks("cpu=1").spec(pinned).on("bare");
    let world = World::with_pool().add(node("bare", "cpu=1 pods=1")).add(running);
    for (agent, amd, arm) in [
        (daemon("agent").asks("cpu=1").requires("type In arm"), "1", "2"),
        (daemon("agent").asks("cpu=1"), "2", "2"),
    ] {
        let world = world.clone().add(agent);
        let asked = |selector: &str| {
            let node = world.clone().add(pod("a").asks("cpu=1").selects(selector)).only_node();
            node.request("cpu").map(str::to_owned)
        };
        assert_eq!(asked("type=default").as_deref(), Some(amd));
        assert_eq!(asked("type=arm").as_deref(), Some(arm));
    }
    // The pod says nothing about where others may run: the template does.
    let own = pod("agent-1").of_daemon("agent").asks("cpu=1").on("bare").spec(json!({"affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [requirement("zone In nowhere")]}],
        }},
    }}));
    let node = World::with_pool()
        .add(node("bare", "cpu=1 pods=1"))
        .add(own)
        .add(daemon("agent").asks("cpu=1").requires("zone In z1"))
        .add(pod("a").asks("cpu=1"))
        .only_node();
    assert_eq!(node.request("cpu"), Some("2"));
}

/// 27.7-06
#[test]
fn each_daemon_counts_once_even_if_another_is_alike() {
    let elsewhere =
        daemon("agent").asks("cpu=1").with(json!({"metadata": {"namespace": "other", "uid": "x"}}));
    let node = World::with_pool()
        .add(daemon("agent").asks("cpu=1"))
        .add(daemon("twin").asks("cpu=1"))
        .add(elsewhere)
        .add(pod("a").asks("cpu=1"))
        .only_node();
    assert_eq!((node.request("cpu"), node.request("pods")), (Some("4"), Some("4")));
}

/// 27.7-06
#[test]
fn a_daemon_without_pods_gets_its_missing_requests_from_its_limits() {
    let agent = daemon("agent").asks("cpu=1").limited_to("cpu=2 memory=1Gi");
    let node = World::with_pool().add(agent).add(pod("a").asks("cpu=1")).only_node();
    assert_eq!((node.request("cpu"), node.request("memory")), (Some("2"), Some("1Gi")));
}
