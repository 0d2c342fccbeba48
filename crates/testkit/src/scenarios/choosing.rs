//! Pods and pools say what they want.

use serde_json::{Value, json};

use super::manifests::{deployment, deployment_with, manifest, node_class, pool, with};
use crate::stage::Stage;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn selected(name: &str, key: &str, value: &str) -> Value {
    deployment_with(name, 1, "1", &json!({"nodeSelector": {key: value}}))
}

fn apart(name: &str, kind: &str, key: &str) -> Value {
    let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}});
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

pub(super) fn one_pod_per_node_needs_as_many_nodes(stage: &mut dyn Stage) {
    let alone = deployment_with("a", 3, "100m", &apart("a", "podAntiAffinity", HOST));
    stage.apply(&manifest(&[pool("default"), node_class(), alone]));
    stage.until_running("a", 3);
    assert_eq!((stage.nodes_of("a").len(), stage.nodes().len()), (3, 3), "{}", stage.describe());
}

pub(super) fn pods_with_the_same_host_port_are_apart(stage: &mut dyn Stage) {
    let mut same = deployment("a", 2, "100m");
    same["spec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"containerPort": 80, "hostPort": 8080}]);
    stage.apply(&manifest(&[pool("default"), node_class(), same]));
    stage.until_running("a", 2);
    assert_eq!((stage.nodes_of("a").len(), stage.nodes().len()), (2, 2), "{}", stage.describe());
}

pub(super) fn a_pod_chooses_its_zone(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), selected("a", ZONE, "test-zone-c")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", ZONE), "test-zone-c");
}

pub(super) fn a_pod_chooses_its_architecture(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), selected("a", "kubernetes.io/arch", "arm64")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", "kubernetes.io/arch"), "arm64");
}

pub(super) fn a_pod_chooses_its_capacity_type(stage: &mut dyn Stage) {
    let both =
        json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "on-demand"]}]);
    let mixed = with(pool("default"), &json!({"spec": {"template": {"spec": {"requirements": both}}}}));
    let capacity = "karpenter.sh/capacity-type";
    stage.apply(&manifest(&[
        mixed,
        node_class(),
        selected("a", capacity, "on-demand"),
        selected("b", capacity, "spot"),
    ]));
    for (app, kind) in [("a", "on-demand"), ("b", "spot")] {
        stage.until_running(app, 1);
        assert_eq!(stage.label_of_node(app, capacity), kind);
    }
}

pub(super) fn pods_are_spread_over_zones(stage: &mut dyn Stage) {
    let spread = json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }]});
    stage.apply(&manifest(&[pool("default"), node_class(), deployment_with("a", 4, "1", &spread)]));
    stage.until_running("a", 4);
    let mut zones: Vec<String> =
        stage.nodes().iter().map(|node| node["metadata"]["labels"][ZONE].to_string()).collect();
    zones.sort();
    zones.dedup();
    assert_eq!(zones.len(), 4, "{}", stage.describe());
}

pub(super) fn pods_that_want_to_be_together_are(stage: &mut dyn Stage) {
    let together = deployment_with("a", 3, "1", &apart("a", "podAffinity", ZONE));
    stage.apply(&manifest(&[pool("default"), node_class(), together]));
    stage.until_running("a", 3);
    let mut zones: Vec<String> =
        stage.nodes().iter().map(|node| node["metadata"]["labels"][ZONE].to_string()).collect();
    zones.dedup();
    assert_eq!(zones.len(), 1, "{}", stage.describe());
}

pub(super) fn a_wish_that_cannot_be_granted_is_dropped(stage: &mut dyn Stage) {
    let wish = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["nowhere"]}]}},
    ]}}});
    stage.apply(&manifest(&[pool("default"), node_class(), deployment_with("a", 1, "1", &wish)]));
    stage.until_running("a", 1);
}

pub(super) fn tainted_nodes_take_only_pods_that_tolerate_it(stage: &mut dyn Stage) {
    let taint = json!([{"key": "team", "value": "a", "effect": "NoSchedule"}]);
    let tainted =
        with(pool("tainted"), &json!({"spec": {"weight": 10, "template": {"spec": {"taints": taint}}}}));
    let tolerant = deployment_with(
        "a",
        1,
        "1",
        &json!({
            "tolerations": [{"key": "team", "operator": "Equal", "value": "a"}],
            "nodeSelector": {"karpenter.sh/nodepool": "tainted"},
        }),
    );
    stage.apply(&manifest(&[tainted, pool("plain"), node_class(), tolerant, deployment("b", 1, "1")]));
    for (app, pool) in [("a", "tainted"), ("b", "plain")] {
        stage.until_running(app, 1);
        assert_eq!(stage.label_of_node(app, "karpenter.sh/nodepool"), pool);
    }
}

pub(super) fn the_heavier_pool_comes_first(stage: &mut dyn Stage) {
    let heavy = with(pool("heavy"), &json!({"spec": {"weight": 50}}));
    let light = with(pool("light"), &json!({"spec": {"weight": 1}}));
    stage.apply(&manifest(&[light, heavy, pool("none"), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", "karpenter.sh/nodepool"), "heavy");
}

pub(super) fn the_instance_type_can_be_required(stage: &mut dyn Stage) {
    let one = json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m-8x-arm64-linux"]}]);
    let only = with(pool("default"), &json!({"spec": {"template": {"spec": {"requirements": one}}}}));
    stage.apply(&manifest(&[only, node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", "node.kubernetes.io/instance-type"), "m-8x-arm64-linux");
}

/// A pod with a claim of a class.
fn with_volume(name: &str) -> Value {
    let volumes = json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]});
    deployment_with(name, 1, "1", &volumes)
}

fn claim(class: &str, volume: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "storageClassName": class, "volumeName": volume, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

pub(super) fn a_claimed_volume_decides_about_the_zone(stage: &mut dyn Stage) {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "zonal"},
        "provisioner": "example.com/disks", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["test-zone-b"]}]}],
    });
    stage.apply(&manifest(&[pool("default"), node_class(), class, claim("zonal", None), with_volume("a")]));
    // Nobody makes the volume here, so the pod does not start; its node is in the right zone all the same.
    stage.until_nodes(1);
    assert_eq!(stage.nodes()[0]["metadata"]["labels"][ZONE], "test-zone-b", "{}", stage.describe());
}

pub(super) fn a_volume_that_exists_decides_about_the_zone(stage: &mut dyn Stage) {
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
        "spec": {
            "storageClassName": "made-by-hand", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
            "csi": {"driver": "disks.example.com", "volumeHandle": "1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": ZONE, "operator": "In", "values": ["test-zone-d"]},
            ]}]}},
        },
    });
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "made-by-hand"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    });
    let bound = claim("made-by-hand", Some("disk"));
    stage.apply(&manifest(&[pool("default"), node_class(), class, volume, bound, with_volume("a")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", ZONE), "test-zone-d");
}
