//! Pods that wait get nodes.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pod_spec, pool, with};
use crate::stage::{CLAIMS, NODES, Stage, is_true};

pub(super) fn pods_that_wait_get_a_node_and_the_node_goes_with_them(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("inflate", 0, "1")]));
    stage.scale("inflate", 5);
    stage.until_running("inflate", 5);
    assert_eq!(stage.nodes().len(), 1, "{}", stage.describe());
    stage.delete("/apis/apps/v1/namespaces/default/deployments/inflate");
    stage.until_nodes(0);
    stage.until("the claim is gone", Duration::from_mins(1), |stage| stage.list(CLAIMS).is_empty());
}

pub(super) fn small_pods_share_a_node(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[
        pool("default"),
        node_class(),
        deployment("a", 3, "300m"),
        deployment("b", 4, "200m"),
    ]));
    stage.until_running("a", 3);
    stage.until_running("b", 4);
    assert_eq!(stage.nodes().len(), 1, "{}", stage.describe());
}

/// A node that somebody else looks after.
fn own_node(name: &str, capacity: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kwok.x-k8s.io/node": "fake", "kwok-partition": "a"},
        },
        "status": {"capacity": capacity, "allocatable": capacity},
    })
}

pub(super) fn a_node_that_exists_is_used_before_one_is_launched(stage: &mut dyn Stage) {
    let node = own_node("own", &json!({"cpu": "4", "memory": "8Gi", "pods": "20"}));
    stage.apply(&manifest(&[pool("default"), node_class(), node]));
    stage.until("the node is ready", Duration::from_mins(1), |stage| {
        stage.get(&format!("{NODES}/own")).is_some_and(|node| is_true(&node, "Ready"))
    });
    stage.apply(&manifest(&[deployment("a", 2, "1")]));
    stage.until_running("a", 2);
    assert_eq!(stage.nodes().len(), 0, "{}", stage.describe());
}

pub(super) fn nodes_bear_what_their_pool_says(stage: &mut dyn Stage) {
    let marked = with(
        pool("default"),
        &json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}}}),
    );
    stage.apply(&manifest(&[marked, node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    let node = &stage.nodes()[0]["metadata"];
    assert_eq!((&node["labels"]["team"], &node["annotations"]["note"]), (&json!("a"), &json!("b")));
    for label in ["karpenter.sh/registered", "karpenter.sh/initialized"] {
        assert_eq!(node["labels"][label], "true", "{label}");
    }
    for label in [
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "karpenter.sh/capacity-type",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "karpenter.kwok.sh/kwoknodeclass",
    ] {
        assert!(node["labels"][label].is_string(), "{label}");
    }
    assert_eq!(node["finalizers"], json!(["karpenter.sh/termination"]));
    let claim = &stage.list(CLAIMS)[0]["metadata"];
    assert_eq!(claim["annotations"]["karpenter.sh/nodepool-hash-version"], "v3");
    assert_eq!(claim["ownerReferences"][0]["kind"], "NodePool");
}

pub(super) fn a_claim_is_ready_once_its_node_is(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    stage.until("the claim is ready", Duration::from_mins(1), |stage| {
        let claims = stage.list(CLAIMS);
        claims.len() == 1
            && ["Launched", "Registered", "Initialized", "Ready"].iter().all(|kind| is_true(&claims[0], kind))
    });
    let claim = &stage.list(CLAIMS)[0];
    let node = &stage.nodes()[0];
    assert_eq!(claim["status"]["nodeName"], node["metadata"]["name"]);
    assert_eq!(claim["status"]["providerID"], node["spec"]["providerID"]);
}

pub(super) fn a_node_waits_for_its_startup_taint(stage: &mut dyn Stage) {
    let taint = json!([{"key": "example.com/not-set-up", "effect": "NoSchedule"}]);
    let waiting = with(pool("default"), &json!({"spec": {"template": {"spec": {"startupTaints": taint}}}}));
    stage.apply(&manifest(&[waiting, node_class(), deployment("a", 1, "1")]));
    stage.until("the node is registered", Duration::from_mins(1), |stage| {
        stage.list(CLAIMS).first().is_some_and(|claim| is_true(claim, "Registered"))
    });
    stage.always("the node is not initialized, and the only one", Duration::from_secs(15), |stage| {
        stage.nodes().len() == 1 && !is_true(&stage.list(CLAIMS)[0], "Initialized")
    });
    let name = stage.nodes()[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    stage.patch(&format!("{NODES}/{name}"), &json!({"spec": {"taints": null}}));
    stage.until_running("a", 1);
    stage.until("the node is initialized", Duration::from_mins(1), |stage| {
        is_true(&stage.list(CLAIMS)[0], "Initialized")
    });
    assert_eq!(stage.nodes().len(), 1);
}

pub(super) fn a_hundred_pods_of_ten_deployments_run(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class()]));
    for number in 0..10 {
        stage.apply(&manifest(&[deployment(&format!("d{number}"), 10, &format!("{}m", 100 + 100 * number))]));
    }
    for number in 0..10 {
        stage.until_running(&format!("d{number}"), 10);
    }
}

pub(super) fn pods_that_are_deleted_before_the_launch_leave_no_node(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 3, "1")]));
    stage.pass(Duration::from_millis(500));
    stage.delete("/apis/apps/v1/namespaces/default/deployments/a");
    stage.until("no pods", Duration::from_mins(1), |stage| stage.pods("a").is_empty());
    stage.pass(Duration::from_secs(15));
    stage.until_nodes(0);
    assert!(stage.list(CLAIMS).is_empty());
}

pub(super) fn nodes_that_register_late_take_their_pods(stage: &mut dyn Stage) {
    let late = with(node_class(), &json!({"spec": {"nodeRegistrationDelay": "20s"}}));
    stage.apply(&manifest(&[pool("default"), late, deployment("a", 2, "1")]));
    stage.until("there is a claim", Duration::from_secs(30), |stage| stage.list(CLAIMS).len() == 1);
    stage.until_running("a", 2);
    assert_eq!(stage.list(CLAIMS).len(), 1, "{}", stage.describe());
}

pub(super) fn the_overhead_of_daemons_is_counted(stage: &mut dyn Stage) {
    let daemon = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": pod_spec("1")},
        },
    });
    stage.apply(&manifest(&[pool("default"), node_class(), daemon]));
    stage.pass(Duration::from_secs(1));
    stage.apply(&manifest(&[deployment("a", 1, "1500m")]));
    stage.until_running("a", 1);
    stage.until_running("agent", 1);
    assert_eq!(stage.nodes().len(), 1, "{}", stage.describe());
    assert_eq!(stage.label_of_node("a", "karpenter.kwok.sh/instance-cpu"), "4");
}

pub(super) fn daemons_with_limit_ranges_are_counted(stage: &mut dyn Stage) {
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]},
    });
    let bare = json!({"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]});
    let daemon = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": bare},
        },
    });
    // A pod of the DaemonSet shows what they really ask for.
    let full = own_node("own", &json!({"cpu": "1", "memory": "1Gi", "pods": "5"}));
    stage.apply(&manifest(&[pool("default"), node_class(), range, full, daemon]));
    stage.until_running("agent", 1);
    stage.apply(&manifest(&[deployment("a", 1, "1500m")]));
    stage.until_running("a", 1);
    stage.until_running("agent", 2);
    assert_eq!(stage.label_of_node("a", "karpenter.kwok.sh/instance-cpu"), "4", "{}", stage.describe());
}

pub(super) fn pods_of_a_stateful_set_run(stage: &mut dyn Stage) {
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 2, "serviceName": "db", "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": pod_spec("1")},
        },
    });
    stage.apply(&manifest(&[pool("default"), node_class(), set]));
    stage.until_running("db", 2);
}

pub(super) fn a_job_ends_and_its_node_goes(stage: &mut dyn Stage) {
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work", "namespace": "default"},
        "spec": {"template": {
            "metadata": {"labels": {"app": "work"}, "annotations": {"simulate.karpenter.sh/complete-after": "5s"}},
            "spec": with(pod_spec("1"), &json!({"restartPolicy": "Never"})),
        }},
    });
    stage.apply(&manifest(&[pool("default"), node_class(), job]));
    stage.until("the job is done", Duration::from_mins(2), |stage| {
        let pods = stage.pods("work");
        pods.len() == 1 && pods[0]["status"]["phase"] == "Succeeded"
    });
    stage.until_nodes(0);
}
