//! Where pods can go because of their volumes, and which volumes keep them from going anywhere.

use serde_json::{Value, json};

use crate::objects::{HOSTNAME, Pod, ZONE, need, spread, term, with};
use crate::volume_limits::{claim, class, disk, for_both, in_zones};
use crate::world::World;

/// 27.11-02
#[test]
fn volumes_that_are_in_one_of_several_zones_let_pods_keep_apart() {
    let pod = Pod::of("web").away_from(term(ZONE, "web"));
    let from_class = json!({"allowedTopologies": [
        {"matchLabelExpressions": [{"key": ZONE, "values": ["zone-1"]}]},
        {"matchLabelExpressions": [{"key": ZONE, "values": ["zone-2"]}]},
    ]});
    let either = json!([{"matchExpressions": [need(ZONE, "In", &["zone-1"])]},
                        {"matchExpressions": [need(ZONE, "In", &["zone-2"])]}]);
    for bound in [true, false] {
        let mut world = World::new();
        world.add(class("disks", from_class.clone()));
        world.node("there", json!({ZONE: "zone-1"}));
        world.running(Pod::of("web").away_from(term(ZONE, "web")).name("first"), "there");
        if bound {
            world.add(disk("disk", json!({"nodeAffinity": {"required": {"nodeSelectorTerms": either}}})));
            world.add(claim("data", json!({"volumeName": "disk"})));
        } else {
            world.add(claim("data", json!({"storageClassName": "disks"})));
        }
        world.pod(pod.clone().volume("data").name("second"));
        let round = world.provision();
        round.expect_all_placed();
        assert_eq!(world.domains(ZONE, "web").len(), 2);
        assert_eq!(round.values(0, ZONE), ["zone-2"]);
    }
}

/// 27.11-02
#[test]
fn an_alternative_that_only_names_the_host_of_a_local_disk_is_one_without_conditions() {
    for kind in ["local", "hostPath"] {
        let terms = json!([{"matchExpressions": [need(HOSTNAME, "In", &["gone"])]},
                           {"matchExpressions": [need(ZONE, "In", &["zone-9"])]}]);
        let mut world = World::new();
        let place =
            json!({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}, kind: {"path": "/data"}});
        world.add(disk("disk", place));
        world.change("PersistentVolume", "disk", json!({"spec": {"csi": null}}));
        world.add(claim("data", json!({"volumeName": "disk"})));
        world.pod(Pod::new().volume("data").name("web"));
        world.plan().expect_all_placed().expect_nodes(1);
    }
}

/// 27.11-02
#[test]
fn two_volumes_go_where_both_can_be() {
    let mut world = World::new();
    world.pool_requires("default", json!([need("rack", "In", &["left", "right"])]));
    let either = json!([{"matchExpressions": [need(ZONE, "In", &["zone-2"])]},
                        {"matchExpressions": [need(ZONE, "In", &["zone-1"]), need("rack", "In", &["left"])]}]);
    world.add(disk("wide", json!({"nodeAffinity": {"required": {"nodeSelectorTerms": either}}})));
    world.add(disk("narrow", in_zones(&["zone-1", "zone-3"])));
    world.add(claim("one", json!({"volumeName": "wide"})));
    world.add(claim("two", json!({"volumeName": "narrow"})));
    world.pod(Pod::new().volume("one").volume("two").name("web"));
    let round = world.plan();
    round.expect_all_placed().expect_nodes(1);
    assert_eq!(round.values(0, ZONE), ["zone-1"]);
    assert_eq!(round.values(0, "rack"), ["left"]);
}

/// 27.11-02
#[test]
fn two_volumes_that_cannot_be_together_keep_a_pod_waiting() {
    let mut world = World::new();
    for (name, zone) in [("one", "zone-1"), ("two", "zone-2")] {
        world.add(disk(name, in_zones(&[zone])));
        world.add(claim(name, json!({"volumeName": name})));
    }
    world.pod(Pod::new().volume("one").volume("two").name("web"));
    world.plan().expect_pending("web", "topology.kubernetes.io/zone DoesNotExist");
}

/// A pod with a claim of some kind is not looked at, for a reason, while another pod is placed.
#[track_caller]
fn check_refused(prepare: impl Fn(&mut World), claim: Value, reason: &str) {
    for_both(|pod, name| {
        let mut world = World::new();
        world.unsupported.provisioners.insert("example.com/odd".into());
        world.unsupported.topology_keys.insert("example.com/rack".into());
        prepare(&mut world);
        world.add(with(claim.clone(), json!({"metadata": {"name": name}})));
        world.pod(pod);
        world.pod(Pod::new().name("other"));
        let round = world.plan();
        round.expect_ignored("web", reason).expect_nodes(1).expect_place("other");
        assert_eq!(round.ignored.len(), 1);
    });
}

/// 27.11-04
#[test]
fn drivers_and_topologies_that_the_cloud_does_not_know_are_refused() {
    let by_class = claim("data", json!({"storageClassName": "odd"}));
    check_refused(
        |world| world.add(class("odd", json!({"provisioner": "example.com/odd"}))),
        by_class.clone(),
        "provisioner is not supported",
    );
    check_refused(
        |world| world.add(disk("odd", json!({"csi": {"driver": "example.com/odd"}}))),
        claim("data", json!({"volumeName": "odd"})),
        "provisioner is not supported",
    );
    let rack = json!([{"matchLabelExpressions": [{"key": "example.com/rack", "values": ["1"]}]}]);
    check_refused(
        |world| world.add(class("odd", json!({"allowedTopologies": rack}))),
        by_class,
        "storage class uses unsupported topology key",
    );
}

/// 27.11-04
#[test]
fn volumes_that_are_not_ready_are_refused() {
    let deletion = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    check_refused(
        |world| world.add(class("eager", json!({"volumeBindingMode": "Immediate"}))),
        claim("data", json!({"storageClassName": "eager"})),
        "pvc with immediate volume binding mode must be bound",
    );
    check_refused(
        |world| world.add(disk("disk", json!({}))),
        with(claim("data", json!({"volumeName": "disk"})), deletion.clone()),
        "persistentvolumeclaim is being deleted",
    );
    check_refused(
        |world| world.add(with(disk("disk", json!({})), deletion.clone())),
        claim("data", json!({"volumeName": "disk"})),
        "persistentvolume is being deleted",
    );
    check_refused(
        |_| {},
        with(claim("data", json!({"volumeName": "gone"})), json!({"status": {"phase": "Lost"}})),
        "persistentvolumeclaim bound to non-existent persistentvolume",
    );
}

/// 27.11-04
#[test]
fn a_claim_is_bound_once_its_annotation_says_so() {
    let bound = claim("data", json!({"volumeName": "disk"}));
    let mut unbound = bound.clone();
    unbound["metadata"]["annotations"] = json!({});
    check_refused(|world| world.add(disk("disk", json!({}))), unbound, "pvc is considered unbound");
    let mut world = World::new();
    world.add(disk("disk", json!({})));
    world.add(bound);
    world.pod(Pod::new().volume("data").name("web"));
    world.plan().expect_all_placed().expect_nodes(1);
}

/// 27.11-05
#[test]
fn a_bound_claim_needs_no_class_and_an_unbound_one_does() {
    for class in ["gone", ""] {
        let mut world = World::new();
        world.add(disk("disk", json!({})));
        world.add(claim("data", json!({"volumeName": "disk", "storageClassName": class})));
        world.pod(Pod::new().volume("data").name("web"));
        world.plan().expect_all_placed().expect_nodes(1);
    }
    check_refused(|_| {}, claim("data", json!({"storageClassName": "gone"})), "failed to get storage class");
    check_refused(
        |_| {},
        claim("data", json!({"storageClassName": ""})),
        "unbound pvc must define a storage class",
    );
    check_refused(|_| {}, claim("data", json!({})), "unbound pvc must define a storage class");
}

/// 27.11-06
#[test]
fn a_pod_with_a_broken_volume_is_ignored_and_the_others_are_not() {
    for (spec, reason) in [
        (None, "PersistentVolumeClaim \"data\" not found"),
        (Some(json!({"storageClassName": "gone"})), "StorageClass.storage.k8s.io \"gone\" not found"),
        (Some(json!({"volumeName": "gone"})), "PersistentVolume \"gone\" not found"),
    ] {
        let mut world = World::new();
        if let Some(spec) = spec {
            world.add(claim("data", spec));
        }
        world.pod(Pod::new().volume("data").name("broken"));
        world.pods(2, "fine", &Pod::new());
        let round = world.plan();
        round.expect_ignored("broken", reason).expect_placed(2);
        assert_eq!(round.ignored.len(), 1);
    }
}

/// 27.11-07
#[test]
fn the_zones_of_a_class_and_of_the_pod_are_combined() {
    for_both(|pod, name| {
        let mut world = World::new();
        let zones = json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-1", "zone-3"]}]}]);
        world.add(class("zonal", json!({"allowedTopologies": zones})));
        world.add(claim(name, json!({"storageClassName": "zonal"})));
        let mut other = world.clone();
        world.pod(pod.clone().require(json!([need(ZONE, "In", &["zone-2", "zone-3"])])));
        let round = world.plan();
        round.expect_all_placed();
        assert_eq!(round.values(0, ZONE), ["zone-3"]);
        other.pod(pod.on(ZONE, "zone-2"));
        other.plan().expect_pending("web", "incompatible volume requirements");
    });
}

/// 27.11-07
#[test]
fn the_zone_of_a_bound_volume_is_where_its_pod_goes() {
    for_both(|pod, name| {
        let mut world = World::new();
        world.add(disk("disk", in_zones(&["zone-3"])));
        world.add(claim(name, json!({"volumeName": "disk"})));
        let mut other = world.clone();
        world.pod(pod.clone());
        let round = world.plan();
        round.expect_all_placed();
        assert_eq!(round.values(0, ZONE), ["zone-3"]);
        other.pod(pod.on(ZONE, "zone-1"));
        other.plan().expect_pending("web", "incompatible volume requirements");
    });
}

/// 27.11-08
#[test]
fn a_disk_of_one_host_does_not_hold_its_pod_there_but_that_of_a_driver_does() {
    let affinity = json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [need(HOSTNAME, "In", &["gone"])]}]}});
    for (kind, placed) in [("local", true), ("hostPath", true), ("csi", false)] {
        for_both(|pod, name| {
            let mut world = World::new();
            let mut disk = disk("disk", json!({"nodeAffinity": affinity}));
            disk["spec"]["csi"] = Value::Null;
            disk["spec"][kind] = json!({"path": "/data", "driver": "example.com/disk"});
            world.add(disk);
            world.add(claim(name, json!({"volumeName": "disk"})));
            world.pod(pod);
            world.plan().expect_placed(usize::from(placed));
        });
    }
}

/// 27.11-09
#[test]
fn a_volume_decides_about_the_zone_of_a_pod_that_would_spread() {
    let rule = with(spread(ZONE, 1, "web"), json!({"minDomains": 3}));
    let mut world = World::new();
    for zone in ["zone-1", "zone-2", "zone-3"] {
        world.node(&format!("in-{zone}"), json!({ZONE: zone}));
        world.running(Pod::of("web").name(&format!("pod-{zone}")), &format!("in-{zone}"));
    }
    world.add(disk("disk", in_zones(&["zone-1"])));
    world.add(claim("data", json!({"volumeName": "disk"})));
    world.pod(Pod::of("web").spread(rule).volume("data").name("web"));
    world.provision().expect_all_placed();
    assert_eq!(
        world.domains(ZONE, "web"),
        [("zone-1", 2), ("zone-2", 1), ("zone-3", 1)].map(|(z, n)| (z.to_owned(), n)).into()
    );
}
