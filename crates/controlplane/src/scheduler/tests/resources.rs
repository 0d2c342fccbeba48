//! What pods ask for and nodes have.

use serde_json::{Value, json};

use super::support::World;

/// How much CPU, in thousandths, a pod needs: the smallest node that takes it.
fn needed(spec: Value) -> u32 {
    let mut world = World::default();
    for step in 0..40 {
        let milli = step * 250;
        let cpu = format!("{milli}m");
        world.node(
            &format!("{milli:05}"),
            json!({"status": {"allocatable": {"cpu": cpu, "pods": "1", "hugepages-2Mi": "1Gi"}}}),
        );
    }
    world.pod("pod", json!({"spec": spec}));
    world.feasible("pod").first().and_then(|name| name.parse().ok()).unwrap_or(u32::MAX)
}

fn container(name: &str, cpu: &str) -> Value {
    json!({"name": name, "resources": {"requests": {"cpu": cpu}}})
}

fn sidecar(name: &str, cpu: &str) -> Value {
    json!({"name": name, "restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
}

#[test]
fn containers_add_up_and_init_containers_run_one_at_a_time() {
    let containers = json!([container("a", "1"), container("b", "500m")]);
    assert_eq!(needed(json!({"containers": containers})), 1500);
    let init = json!([container("c", "1"), container("d", "2")]);
    assert_eq!(needed(json!({"containers": containers, "initContainers": init})), 2000);
}

#[test]
fn a_sidecar_counts_beside_containers_and_beside_later_init_containers() {
    let containers = json!([container("a", "1")]);
    assert_eq!(needed(json!({"containers": containers, "initContainers": [sidecar("s", "1")]})), 2000);
    let before = json!([sidecar("s", "1"), container("i", "3")]);
    assert_eq!(needed(json!({"containers": containers, "initContainers": before})), 4000);
    let after = json!([container("i", "3"), sidecar("s", "1")]);
    assert_eq!(needed(json!({"containers": containers, "initContainers": after})), 3000);
}

#[test]
fn overhead_is_added_and_requests_of_the_whole_pod_replace_the_sum() {
    let containers = json!([container("a", "1"), container("b", "1")]);
    assert_eq!(needed(json!({"containers": containers, "overhead": {"cpu": "250m"}})), 2250);
    let whole = json!({"requests": {"cpu": "3"}});
    assert_eq!(
        needed(json!({"containers": containers, "resources": whole, "overhead": {"cpu": "250m"}})),
        3250
    );
    assert_eq!(needed(json!({"containers": containers, "resources": {"requests": {"memory": "0"}}})), 2000);
}

#[test]
fn extended_resources_have_to_be_offered_and_free() {
    let gpu = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}]}});
    let mut world = World::default();
    world.node("a", json!({})).node("b", json!({"status": {"allocatable": {"example.com/gpu": "1"}}}));
    assert_eq!(world.pod("pod", gpu.clone()).feasible("pod"), ["b"]);
    world.placed("pod", "b", gpu.clone()).pod("other", gpu);
    assert_eq!(world.refusal(), "0/2 nodes are available: 2 Insufficient example.com/gpu.");
}

#[test]
fn a_node_takes_as_many_pods_as_it_says_and_ended_pods_do_not_count() {
    let mut world = World::default();
    world.node("a", json!({"status": {"allocatable": {"pods": "1"}}}));
    world.placed("old", "a", json!({"status": {"phase": "Running"}})).pod("pod", json!({}));
    assert_eq!(world.refusal(), "0/1 nodes are available: 1 Too many pods.");
    world.placed("old", "a", json!({"status": {"phase": "Succeeded"}}));
    assert_eq!(world.decisions(), ["pod -> a"]);
}

#[test]
fn everything_that_is_short_is_named_with_ten_before_two() {
    let mut world = World::default();
    for index in 0..10 {
        world.node(&format!("small-{index}"), json!({"status": {"allocatable": {"cpu": "1"}}}));
    }
    world.node("full", json!({"status": {"allocatable": {"pods": "0", "memory": "1"}}}));
    world.node("fuller", json!({"status": {"allocatable": {"memory": "1"}}}));
    let requests = json!({"cpu": "2", "memory": "1Gi"});
    world
        .pod("pod", json!({"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}));
    assert_eq!(
        world.refusal(),
        "0/12 nodes are available: 1 Too many pods, 10 Insufficient cpu, 2 Insufficient memory."
    );
}

#[test]
fn a_pod_that_is_being_shrunk_counts_with_what_it_still_has() {
    let mut world = World::default();
    world.node("a", json!({}));
    let status = json!({"containerStatuses": [{"name": "main", "image": "", "imageID": "", "ready": true,
        "restartCount": 0, "resources": {"requests": {"cpu": "3"}}}]});
    world.cpu("old", "1", json!({"spec": {"nodeName": "a"}, "status": status}));
    world.cpu("pod", "2", json!({}));
    assert_eq!(world.refusal(), "0/1 nodes are available: 1 Insufficient cpu.");
    world.cpu("old", "1", json!({"spec": {"nodeName": "a"}}));
    assert_eq!(world.decisions(), ["pod -> a"]);
}
