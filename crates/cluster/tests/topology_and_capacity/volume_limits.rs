//! How many volumes a node can attach.

use serde_json::{Value, json};

use crate::objects::{Pod, ZONE, merge, need, with};
use crate::world::{Round, World, machine, with_resource};

/// A class of volumes that appear when a pod needs them.
pub(crate) fn class(name: &str, patch: Value) -> Value {
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer",
    });
    merge(&mut class, patch);
    class
}

/// A volume of a driver.
pub(crate) fn disk(name: &str, patch: Value) -> Value {
    let mut disk = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"csi": {"driver": "example.com/disk"}},
    });
    merge(&mut disk["spec"], patch);
    disk
}

/// A claim for a volume; if it names one, it has it.
pub(crate) fn claim(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": spec,
    })
}

/// The part of a volume that says in which zones it is.
pub(crate) fn in_zones(zones: &[&str]) -> Value {
    json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [need(ZONE, "In", zones)]}]}}})
}

/// Does the same for a pod `web` with a claim, and for one with a volume of its own; each comes with the name of
/// the claim.
pub(crate) fn for_both(check: impl Fn(Pod, &str)) {
    check(Pod::new().name("web").volume("data"), "data");
    check(Pod::new().name("web").own_volume("data"), "web-data");
}

/// A cluster with one large type and a node of it, `first`, that attaches so many volumes of a driver.
fn with_limit(driver: &str, limit: u32) -> World {
    let mut world = World::empty();
    world.types = vec![with_resource(machine("huge", 1024, 1024), "pods", "1024")];
    world.pool("default", json!({}));
    world.node("first", json!({}));
    let room = json!({"cpu": "1024", "memory": "1024Gi", "pods": "1024"});
    world.change("Node", "first", json!({"status": {"allocatable": room}}));
    world.add(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "first"},
        "spec": {"drivers": [{"name": driver, "nodeID": "1", "topologyKeys": null, "allocatable": {"count": limit}}]},
    }));
    world
}

/// How many pods went to the node `first`.
fn on_first(round: &Round) -> usize {
    round.places.values().filter(|node| *node == "first").count()
}

/// 27.11-01
#[test]
fn a_node_that_cannot_attach_more_volumes_is_full() {
    let mut world = with_limit("example.com/disk", 10);
    world.add(class("disks", json!({})));
    for number in 0..6 {
        let (one, two) = (format!("a-{number}"), format!("b-{number}"));
        for name in [&one, &two] {
            world.add(claim(name, json!({"storageClassName": "disks"})));
        }
        world.pod(Pod::new().volume(&one).volume(&two).name(&format!("web-{number}")));
    }
    let round = world.plan();
    round.expect_all_placed().expect_nodes(1);
    assert_eq!(on_first(&round), 5);
}

/// 27.11-01
#[test]
fn a_volume_that_many_pods_share_is_attached_once() {
    let mut world = with_limit("example.com/disk", 10);
    world.add(disk("disk", json!({})));
    world.add(claim("data", json!({"volumeName": "disk"})));
    world.pods(100, "web", &Pod::new().volume("data"));
    let round = world.plan();
    round.expect_all_placed().expect_nodes(0);
    assert_eq!(on_first(&round), 100);
}

/// 27.11-01
#[test]
fn a_volume_without_a_driver_counts_nowhere() {
    let mut world = with_limit("example.com/disk", 0);
    let nfs = json!({"csi": null, "nfs": {"server": "files.example.com", "path": "/data"}});
    world.add(disk("share", nfs));
    world.add(claim("data", json!({"volumeName": "share"})));
    world.pods(5, "web", &Pod::new().volume("data"));
    let round = world.plan();
    round.expect_all_placed().expect_nodes(0);
    assert_eq!(on_first(&round), 5);
}

/// Two pods with a volume each, and a node that attaches one: whether the volumes count against its driver.
#[track_caller]
fn check_counts(driver: &str, objects: &[Value], spec: impl Fn(usize) -> Value, counts: bool) {
    for own in [false, true] {
        let mut world = with_limit(driver, 1);
        for object in objects {
            world.add(object.clone());
        }
        for number in 0..2 {
            let pod = Pod::new().name(&format!("web-{number}"));
            let (pod, name) = if own {
                (pod.own_volume("data"), format!("web-{number}-data"))
            } else {
                (pod.volume(&format!("data-{number}")), format!("data-{number}"))
            };
            world.add(claim(&name, spec(number)));
            world.pod(pod);
        }
        let round = world.plan();
        round.expect_all_placed();
        assert_eq!(on_first(&round), if counts { 1 } else { 2 }, "volumes of the pods' own: {own}");
    }
}

/// 27.11-03
#[test]
fn volumes_of_a_class_count_whether_they_are_the_pods_own_or_not() {
    let classes = [class("disks", json!({})), class("others", json!({"provisioner": "example.com/other"}))];
    check_counts("example.com/disk", &classes, |_| json!({"storageClassName": "disks"}), true);
    check_counts("example.com/disk", &classes, |_| json!({"storageClassName": "others"}), false);
}

/// 27.11-03
#[test]
fn the_class_is_the_one_that_the_claim_names_whichever_is_the_default() {
    // The API server writes the newest default class into a claim that names none, so a claim without a class
    // has no driver yet.
    let default = |name, provisioner, created| {
        let annotations = json!({"storageclass.kubernetes.io/is-default-class": "true"});
        let metadata = json!({"annotations": annotations, "creationTimestamp": created});
        class(name, json!({"provisioner": provisioner, "metadata": metadata}))
    };
    let classes = [
        default("old", "example.com/other", "2025-01-01T00:00:00Z"),
        default("new", "example.com/disk", "2026-01-01T00:00:00Z"),
    ];
    check_counts("example.com/disk", &classes, |_| json!({"storageClassName": "new"}), true);
    check_counts("example.com/disk", &classes, |_| json!({"storageClassName": "old"}), false);
    let mut world = with_limit("example.com/disk", 1);
    for class in classes {
        world.add(class);
    }
    world.add(claim("data", json!({})));
    world.pod(Pod::new().volume("data").name("web"));
    world.plan().expect_ignored("web", "unbound pvc must define a storage class");
}

/// 27.11-03
#[test]
fn volumes_of_the_old_plugin_count_against_the_driver_that_took_over() {
    let old_class = class("old", json!({"provisioner": "kubernetes.io/aws-ebs"}));
    check_counts("ebs.csi.aws.com", &[old_class], |_| json!({"storageClassName": "old"}), true);
    let old_disk = |number: usize| {
        let source = json!({"csi": null, "awsElasticBlockStore": {"volumeID": format!("vol-{number}")}});
        disk(&format!("disk-{number}"), source)
    };
    let named = |number: usize| json!({"volumeName": format!("disk-{number}")});
    check_counts("ebs.csi.aws.com", &[old_disk(0), old_disk(1)], named, true);
    check_counts("example.com/disk", &[old_disk(0), old_disk(1)], named, false);
}

/// A cluster whose types attach so many volumes, with pods of one volume each.
fn with_type_limits(limits: &[(&str, &[(&str, u32)])], pods: usize) -> World {
    let mut world = World::empty();
    for (size, (name, limits)) in (1u32..).zip(limits) {
        let mut type_ = with_resource(machine(name, 16 * size, 16), "pods", "100");
        type_.volume_limits = limits.iter().map(|(driver, limit)| ((*driver).to_owned(), *limit)).collect();
        world.types.push(type_);
    }
    world.pool("default", json!({}));
    world.add(class("disks", json!({})));
    for number in 0..pods {
        world.add(claim(&format!("data-{number}"), json!({"storageClassName": "disks"})));
        world.pod(Pod::new().volume(&format!("data-{number}")).name(&format!("web-{number}")));
    }
    world
}

/// 27.11-01
#[test]
fn new_nodes_are_as_many_as_the_limits_of_their_types_demand() {
    let round = with_type_limits(&[("one", &[("example.com/disk", 2)])], 5).plan();
    round.expect_all_placed();
    assert_eq!(round.sizes(), [2, 2, 1]);
    // A driver without a limit has none.
    let round = with_type_limits(&[("one", &[("example.com/other", 2)])], 5).plan();
    assert_eq!(round.sizes(), [5]);
    // Types that cannot attach the volumes are dropped.
    let limits: [(&str, &[(&str, u32)]); 2] =
        [("few", &[("example.com/disk", 2)]), ("many", &[("example.com/disk", 5)])];
    let round = with_type_limits(&limits, 5).plan();
    assert_eq!(round.types, [["many"]]);
}

/// 27.11-01
#[test]
fn a_pod_with_more_volumes_than_any_type_can_attach_waits() {
    let mut world = with_type_limits(&[("one", &[("example.com/disk", 2)])], 3);
    world.delete_pending();
    world.pod(Pod::new().volume("data-0").volume("data-1").volume("data-2").name("web"));
    let text = "would exceed volume limit for all instance type options \
                (provisioner=example.com/disk, volume-count=3, volume-limit=2)";
    world.plan().expect_pending("web", text);
    // If no driver alone is too much for all types, none is named.
    let limits: [(&str, &[(&str, u32)]); 2] =
        [("one", &[("example.com/disk", 0)]), ("two", &[("example.com/other", 0)])];
    let mut world = with_type_limits(&limits, 1);
    world.add(class("others", json!({"provisioner": "example.com/other"})));
    world.add(claim("other", json!({"storageClassName": "others"})));
    world.delete_pending();
    world.pod(Pod::new().volume("data-0").volume("other").name("web"));
    let text = &world.plan().pending["web"];
    assert_eq!(text, "would exceed volume limit for all instance type options");
}

/// 27.11-01
#[test]
fn a_node_has_the_limit_of_its_type_until_its_driver_names_one() {
    let check = |driver: Option<Value>, on_node: usize| {
        let mut world = with_type_limits(&[("one", &[("example.com/disk", 2)])], 5);
        let labels = json!({"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "one"});
        world.node("first", labels);
        if let Some(driver) = driver {
            let node =
                json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "first"}});
            let driver =
                with(json!({"name": "example.com/disk", "nodeID": "1", "topologyKeys": null}), driver);
            world.add(with(node, json!({"spec": {"drivers": [driver]}})));
        }
        let round = world.plan();
        round.expect_all_placed();
        assert_eq!(on_first(&round), on_node);
    };
    check(None, 2);
    check(Some(json!({"allocatable": {"count": 3}})), 3);
    check(Some(json!({})), 5);
    // Nor does a claim that is launched and has no node yet attach more.
    let mut world = with_type_limits(&[("one", &[("example.com/disk", 2)])], 5);
    let room = json!({"cpu": "8", "memory": "16Gi", "pods": "10"});
    world.add(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "first", "labels": {
            "karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "one"}},
        "spec": {"requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}},
        "status": {"providerID": "id-first", "capacity": room, "allocatable": room, "conditions": [
            {"type": "Launched", "status": "True", "reason": "Launched", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }));
    let round = world.plan();
    round.expect_all_placed();
    assert_eq!(on_first(&round), 2);
}
