//! What a pod asks for in all, as seen in the claim that is made for it.

use serde_json::{Value, json};
use units::Resources;

use crate::machines::{amounts, machine};
use crate::objects::{node, pod, pool};
use crate::world::World;

fn container(requests: &str) -> Value {
    json!({"name": "c", "resources": {"requests": crate::objects::map(requests)}})
}

fn sidecar(requests: &str) -> Value {
    let mut container = container(requests);
    container["restartPolicy"] = "Always".into();
    container
}

/// The claim for a pod with these containers asks for so much, and so does its choice of type: of a type that is
/// just large enough and one that lacks a little, the first is taken.
#[track_caller]
fn check(spec: Value, expected: &str) {
    let mut waiting = pod("a");
    waiting.0["spec"] = json!({"containers": []});
    let mut enough = amounts(expected);
    enough.set("pods", "1".parse().expect("an amount"));
    let mut lacking = enough.clone();
    lacking.subtract(&amounts("cpu=1m"));
    let sized = |name: &str, capacity: Resources, price: &str| {
        let mut type_ = machine(name, "").keeps("").offered(&format!("z1 spot {price}")).build();
        type_.capacity = capacity;
        type_
    };
    let types = vec![sized("enough", enough, "2"), sized("lacking", lacking, "1")];
    let node = World::with_types(types).add(pool("default")).add(waiting.spec(spec)).only_node();
    assert_eq!(node.types, ["enough"]);
    let asked = format!(
        "cpu={} memory={}",
        node.request("cpu").expect("some cpu"),
        node.request("memory").expect("some memory")
    );
    assert_eq!(asked, expected);
}

/// 27.5-01
#[test]
fn containers_sidecars_and_overhead_add_up() {
    check(
        json!({"containers": [container("cpu=1 memory=1Gi"), container("cpu=2 memory=2Gi")]}),
        "cpu=3 memory=3Gi",
    );
    let spec = json!({
        "containers": [container("cpu=2 memory=1Gi")],
        "initContainers": [sidecar("cpu=1 memory=2Gi"), sidecar("cpu=4 memory=1Gi")],
    });
    check(spec.clone(), "cpu=7 memory=4Gi");
    let mut with_more = spec;
    with_more["initContainers"].as_array_mut().expect("a list").push(container("cpu=3 memory=2Gi"));
    with_more["overhead"] = json!({"cpu": "5", "memory": "1Gi"});
    check(with_more, "cpu=13 memory=6Gi");
}

/// 27.5-01
#[test]
fn an_init_container_counts_with_the_sidecars_before_it() {
    let spec =
        |init: &[Value]| json!({"containers": [container("cpu=3 memory=1Gi")], "initContainers": init});
    let side = || sidecar("cpu=1 memory=1Gi");
    // Larger than what runs later, and smaller.
    check(spec(&[side(), container("cpu=10 memory=4Gi")]), "cpu=11 memory=5Gi");
    check(spec(&[side(), container("cpu=1 memory=512Mi")]), "cpu=4 memory=2Gi");
    // First of all, so alone.
    check(spec(&[container("cpu=10 memory=4Gi"), side()]), "cpu=10 memory=4Gi");
    check(spec(&[container("cpu=25 memory=4Gi"), side(), sidecar("cpu=2 memory=3Gi")]), "cpu=25 memory=5Gi");
    // In turns.
    let turns =
        [side(), container("cpu=2 memory=2Gi"), sidecar("cpu=5 memory=5Gi"), container("cpu=6 memory=1Gi")];
    check(spec(&turns), "cpu=12 memory=7Gi");
}

/// 27.5-01
#[test]
fn the_most_of_each_resource_counts_whenever_it_is_used() {
    let spec = json!({
        "containers": [container("cpu=1 memory=8Gi")],
        "initContainers": [container("cpu=10 memory=1Gi"), container("cpu=2 memory=2Gi")],
    });
    check(spec, "cpu=10 memory=8Gi");
}

/// 27.5-01
#[test]
fn the_pod_as_a_whole_overrides_its_containers() {
    let spec =
        |resources: Value| json!({"containers": [container("cpu=1 memory=1Gi")], "resources": resources});
    let both = json!({"requests": {"cpu": "11", "memory": "5Gi"}, "limits": {"cpu": "12", "memory": "6Gi"}});
    check(spec(both), "cpu=11 memory=5Gi");
    check(spec(json!({"requests": {"cpu": "2"}})), "cpu=2 memory=1Gi");
    let limits = json!({"limits": {"cpu": "4", "memory": "2Gi"}});
    check(json!({"containers": [{"name": "a"}], "resources": limits}), "cpu=4 memory=2Gi");
}

/// 27.5-01
#[test]
fn a_resize_in_place_holds_the_larger_amount() {
    // A node with 4 CPUs runs a pod that is resized; what is left decides about the next pod.
    let check = |wanted: &str, allocated: Option<&str>, left: &str| {
        let mut running = pod("running").asks(&format!("cpu={wanted}")).on("n");
        if let Some(allocated) = allocated {
            let status = json!({
                "name": "main",
                "allocatedResources": {"cpu": allocated},
                "resources": {"requests": {"cpu": "1"}},
            });
            running = running.with(json!({"status": {"containerStatuses": [status]}}));
        }
        let world = World::new().add(node("n", "cpu=4 pods=10")).add(running);
        world.clone().add(pod("next").asks(&format!("cpu={left}"))).round().expect_on("next", "n");
        world.add(pod("next").asks(&format!("cpu={left}.001"))).round().expect_unplaced("next");
    };
    check("1", Some("3"), "1");
    check("3", Some("1"), "1");
    check("2", Some("2"), "2");
    check("2", None, "2");
}

/// 27.5-02
#[test]
fn the_larger_of_amounts_knows_all_resources_and_the_smaller_only_common_ones() {
    let check = |a: &str, b: &str, larger: &str, smaller: &str| {
        let (mut most, mut least) = (amounts(a), amounts(a));
        most.raise_to(&amounts(b));
        least.lower_to(&amounts(b));
        assert_eq!((most, least), (amounts(larger), amounts(smaller)), "{a} and {b}");
    };
    check("", "", "", "");
    check("cpu=1", "", "cpu=1", "");
    check("", "cpu=1", "cpu=1", "");
    check("cpu=1 memory=2Gi", "cpu=2 memory=1Gi", "cpu=2 memory=2Gi", "cpu=1 memory=1Gi");
    check("cpu=1 memory=2Gi", "cpu=2 pods=3", "cpu=2 memory=2Gi pods=3", "cpu=1");
}
