//! Claims and volumes.

use serde_json::{Value, json};

use super::support::{World, key, merge, parse};

const DRIVER: &str = "csi.example.com";

fn world() -> World {
    let mut world = World::default();
    for (name, zone) in [("a", "x"), ("b", "y")] {
        world.node(name, json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}}));
    }
    for (name, provisioner) in [("wait", DRIVER), ("static", "kubernetes.io/no-provisioner")] {
        let class = json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"});
        world.scheduler.observe_storage_class(name, Some(parse(class)));
    }
    world
}

fn claim(world: &mut World, name: &str, patch: Value) {
    let mut claim = json!({"metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "wait", "resources": {"requests": {"storage": "1Gi"}}}});
    merge(&mut claim, &patch);
    world.scheduler.observe_claim(&key(name), Some(parse(claim)));
}

fn bound(volume: &str) -> Value {
    json!({"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": volume}})
}

fn volume(world: &mut World, name: &str, patch: Value) {
    let mut volume = json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "storageClassName": "static", "csi": {"driver": DRIVER, "volumeHandle": name}},
        "status": {"phase": "Available"}});
    merge(&mut volume, &patch);
    world.scheduler.observe_volume(name, Some(parse(volume)));
}

fn in_zone(zone: &str) -> Value {
    json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
        [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]}}}})
}

fn mounting(claims: &[&str]) -> Value {
    let volumes =
        claims.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    json!({"spec": {"volumes": volumes.collect::<Vec<_>>()}})
}

#[test]
fn a_claim_has_to_be_there_and_bound_before_the_pod_can_go_anywhere() {
    let mut world = world();
    world.pod("pod", mounting(&["data"]));
    assert_eq!(world.refusal(), "0/2 nodes are available: persistentvolumeclaim \"data\" not found.");
    claim(&mut world, "data", json!({"spec": {"storageClassName": "unknown"}}));
    assert_eq!(world.refusal(), "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
    claim(&mut world, "data", bound("volume"));
    assert_eq!(world.refusal(), "0/2 nodes are available: persistentvolume \"volume\" not found.");
    volume(&mut world, "volume", json!({}));
    assert_eq!(world.feasible("pod"), ["a", "b"]);
}

#[test]
fn a_bound_volume_decides_by_its_node_affinity_and_its_zone_label() {
    let mut world = world();
    claim(&mut world, "data", bound("volume"));
    volume(&mut world, "volume", in_zone("y"));
    world.pod("pod", mounting(&["data"]));
    assert_eq!(world.feasible("pod"), ["b"]);
    volume(&mut world, "volume", json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "x"}}}));
    assert_eq!(world.feasible("pod"), ["a"]);
    volume(&mut world, "volume", in_zone("z"));
    assert_eq!(
        world.refusal(),
        "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
    );
}

#[test]
fn a_claim_that_waits_gets_its_node_selected_and_the_pod_is_bound_when_the_claim_is() {
    let mut world = world();
    claim(&mut world, "data", json!({}));
    world.pod("pod", mounting(&["data"]));
    let plan = r#"VolumePlan { bind: [], provision: [("default", "data")] }"#;
    assert_eq!(world.decisions(), [format!("pod => a {plan}")]);
    let selected = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}}});
    claim(&mut world, "data", selected.clone());
    assert_eq!(world.decisions(), [""; 0]);
    let mut done = selected;
    merge(&mut done, &bound("made"));
    claim(&mut world, "data", done);
    assert_eq!(world.decisions(), ["pod -> a"]);
}

#[test]
fn a_node_that_was_selected_stays_until_the_provisioner_gives_up() {
    let mut world = world();
    claim(
        &mut world,
        "data",
        json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "b"}}}),
    );
    world.pod("pod", mounting(&["data"]));
    assert_eq!(world.feasible("pod"), ["b"]);
    assert_eq!(world.decisions().len(), 1);
    claim(&mut world, "data", json!({}));
    assert!(world.decisions()[0].starts_with("pod => a "));
}

#[test]
fn a_class_makes_volumes_only_in_its_topologies() {
    let mut world = world();
    let topologies =
        json!([{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["y"]}]}]);
    let class = json!({"metadata": {"name": "wait"}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": topologies});
    world.scheduler.observe_storage_class("wait", Some(parse(class)));
    claim(&mut world, "data", json!({}));
    assert_eq!(world.pod("pod", mounting(&["data"])).feasible("pod"), ["b"]);
}

#[test]
fn without_a_provisioner_the_smallest_volume_that_is_large_enough_is_reserved() {
    let mut world = world();
    claim(
        &mut world,
        "data",
        json!({"spec": {"storageClassName": "static", "resources": {"requests": {"storage": "2Gi"}}}}),
    );
    world.pod("pod", mounting(&["data"]));
    volume(&mut world, "small", json!({}));
    assert_eq!(
        world.refusal(),
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    );
    volume(&mut world, "huge", json!({"spec": {"capacity": {"storage": "9Gi"}}}));
    volume(&mut world, "large", json!({"spec": {"capacity": {"storage": "3Gi"}}}));
    let plan = r#"VolumePlan { bind: [("large", ("default", "data"))], provision: [] }"#;
    assert_eq!(world.decisions(), [format!("pod => a {plan}")]);
    // Reserved at once, before the volume shows it.
    claim(
        &mut world,
        "more",
        json!({"spec": {"storageClassName": "static", "resources": {"requests": {"storage": "2Gi"}}}}),
    );
    let plan = r#"VolumePlan { bind: [("huge", ("default", "more"))], provision: [] }"#;
    assert_eq!(world.pod("second", mounting(&["more"])).decisions(), [format!("second => b {plan}")]);
}

#[test]
fn a_node_attaches_no_more_volumes_than_its_driver_says() {
    let mut world = world();
    for (name, count) in [("a", 1), ("b", 2)] {
        let csi_node = json!({"metadata": {"name": name}, "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "allocatable": {"count": count}}]}});
        world.scheduler.observe_csi_node(name, Some(parse(csi_node)));
    }
    for name in ["one", "two", "three"] {
        claim(&mut world, name, bound(name));
        volume(&mut world, name, json!({}));
    }
    assert_eq!(world.pod("pod", mounting(&["one", "two"])).feasible("pod"), ["b"]);
    // A volume that is attached already does not count twice.
    world.placed("pod", "b", mounting(&["one", "two"]));
    assert_eq!(world.pod("again", mounting(&["one"])).feasible("again"), ["a", "b"]);
    world.placed("again", "a", mounting(&["one"])).pod("third", mounting(&["three"]));
    assert_eq!(world.refusal(), "0/2 nodes are available: 2 node(s) exceed max volume count.");
}

#[test]
fn a_claim_for_one_pod_is_for_one_pod() {
    let mut world = world();
    let mut exclusive = bound("volume");
    merge(&mut exclusive, &json!({"spec": {"accessModes": ["ReadWriteOncePod"]}}));
    claim(&mut world, "data", exclusive);
    volume(&mut world, "volume", json!({}));
    assert_eq!(world.pod("pod", mounting(&["data"])).feasible("pod"), ["a", "b"]);
    world.placed("other", "a", mounting(&["data"]));
    assert_eq!(
        world.refusal(),
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode \
         already in-use by another pod."
    );
}

#[test]
fn a_claim_made_from_a_template_has_to_be_made_for_this_pod() {
    let mut world = world();
    let volumes = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]);
    world.pod("pod", json!({"spec": {"volumes": volumes}}));
    assert_eq!(
        world.refusal(),
        "0/2 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim \"pod-scratch\"."
    );
    let owner = |uid: &str| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "pod",
        "uid": uid, "controller": true}]}})
    };
    claim(&mut world, "pod-scratch", owner("other"));
    assert!(world.refusal().contains("was not created for pod default/pod (pod is not owner)"));
    claim(&mut world, "pod-scratch", owner("uid-pod"));
    assert_eq!(world.feasible("pod"), ["a", "b"]);
}
