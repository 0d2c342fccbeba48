//! Nodes leave gracefully.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pod_spec, pool, with};
use crate::stage::{CLAIMS, NODES, PODS, POOLS, Stage};

/// A pod of its own.
fn pod(name: &str, change: &Value) -> Value {
    let plain = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": pod_spec("100m"),
    });
    with(plain, change)
}

fn node_of(stage: &dyn Stage, app: &str) -> String {
    format!("{NODES}/{}", stage.nodes_of(app).into_iter().next().unwrap_or_default())
}

pub(super) fn a_deleted_node_is_drained_in_order(stage: &mut dyn Stage) {
    // Each takes a while to stop, so that the order can be seen.
    let slow = json!({
        "metadata": {"annotations": {"simulate.karpenter.sh/stop-after": "4s"}},
        "spec": {"terminationGracePeriodSeconds": 10},
    });
    let critical = with(
        pod("critical", &slow),
        &json!({"metadata": {"namespace": "kube-system"}, "spec": {"priorityClassName": "system-cluster-critical"}}),
    );
    stage.apply(&manifest(&[pool("default"), node_class(), pod("plain", &slow), critical]));
    stage.until_running("plain", 1);
    let important = "/api/v1/namespaces/kube-system/pods/critical";
    stage.until("the critical pod runs", Duration::from_mins(1), |stage| {
        stage.get(important).is_some_and(|pod| pod["status"]["phase"] == "Running")
    });
    assert_eq!(stage.nodes().len(), 1, "{}", stage.describe());
    let node = node_of(stage, "plain");
    stage.delete(&node);
    let leaving = |pod: Option<Value>| pod.is_none_or(|pod| pod["metadata"]["deletionTimestamp"].is_string());
    stage.until("the plain pod leaves", Duration::from_mins(1), |stage| {
        leaving(stage.get(&format!("{PODS}/plain")))
    });
    assert!(!leaving(stage.get(important)), "the critical pod goes last\n{}", stage.describe());
    stage.until("the plain pod is gone", Duration::from_mins(1), |stage| {
        stage.get(&format!("{PODS}/plain")).is_none()
    });
    stage.until("the node is gone", Duration::from_mins(2), |stage| stage.get(&node).is_none());
    assert!(stage.get(important).is_none());
    stage.until("its claim, too", Duration::from_mins(1), |stage| stage.list(CLAIMS).is_empty());
}

pub(super) fn a_deleted_claim_takes_its_node_along(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), pod("a", &json!({}))]));
    stage.until_running("a", 1);
    let claim = stage.list(CLAIMS)[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    stage.delete(&format!("{CLAIMS}/{claim}"));
    stage.until_nodes(0);
    stage.until("all is gone", Duration::from_mins(1), |stage| {
        stage.list(CLAIMS).is_empty() && stage.pods("a").is_empty()
    });
}

pub(super) fn a_deleted_pool_takes_its_nodes_along(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), pod("a", &json!({}))]));
    stage.until_running("a", 1);
    stage.delete(&format!("{POOLS}/default"));
    stage.until_nodes(0);
    stage.until("its claims are gone", Duration::from_mins(1), |stage| stage.list(CLAIMS).is_empty());
}

pub(super) fn a_budget_of_pods_holds_up_the_drain_until_it_allows_it(stage: &mut dyn Stage) {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "a"}}},
    });
    stage.apply(&manifest(&[pool("default"), node_class(), budget, deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    let node = node_of(stage, "a");
    let name = stage.nodes_of("a")[0].clone();
    stage.delete(&node);
    stage.until("it says why it waits", Duration::from_mins(1), |stage| {
        stage.has_event("FailedDraining", &name, "Failed to drain node, ")
    });
    stage.always("the pod runs where it is", Duration::from_secs(10), |stage| {
        stage.nodes_of("a") == [name.clone()] && stage.running("a") == 1
    });
    stage.patch(
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets/a",
        &json!({"spec": {"maxUnavailable": 1}}),
    );
    stage.until("the node is gone", Duration::from_mins(2), |stage| stage.get(&node).is_none());
    stage.until("the pod runs elsewhere", Duration::from_mins(2), |stage| {
        stage.running("a") == 1 && stage.nodes_of("a") != [name.clone()]
    });
}

pub(super) fn the_grace_period_of_a_node_ends_all_waiting(stage: &mut dyn Stage) {
    let short =
        with(pool("default"), &json!({"spec": {"template": {"spec": {"terminationGracePeriod": "20s"}}}}));
    let protected = pod("a", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    stage.apply(&manifest(&[short, node_class(), protected]));
    stage.until_running("a", 1);
    let node = node_of(stage, "a");
    stage.delete(&node);
    stage.always("the pod is left alone for a while", Duration::from_secs(10), |stage| {
        stage.running("a") == 1
    });
    stage.until("the node is gone", Duration::from_mins(1), |stage| stage.get(&node).is_none());
}

pub(super) fn a_leaving_node_takes_no_pods_and_no_traffic(stage: &mut dyn Stage) {
    let protected = pod("a", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    stage.apply(&manifest(&[pool("default"), node_class(), protected]));
    stage.until_running("a", 1);
    let path = node_of(stage, "a");
    stage.delete(&path);
    stage.until("the node is tainted", Duration::from_mins(1), |stage| {
        let node = stage.get(&path).unwrap_or_default();
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().any(|taint| taint["key"] == "karpenter.sh/disrupted" && taint["effect"] == "NoSchedule")
            && node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"]
                == "karpenter"
    });
    stage.delete(&format!("{PODS}/a"));
    stage.until_nodes(0);
}

pub(super) fn an_old_node_is_replaced(stage: &mut dyn Stage) {
    let short = with(pool("default"), &json!({"spec": {"template": {"spec": {"expireAfter": "40s"}}}}));
    stage.apply(&manifest(&[short, node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    let old = stage.nodes_of("a");
    // The next one shall live.
    stage.apply(&manifest(&[pool("default")]));
    stage.until("the pod runs on another node", Duration::from_mins(3), |stage| {
        stage.running("a") == 1 && stage.nodes_of("a") != old && stage.nodes().len() == 1
    });
}

pub(super) fn a_pod_that_must_not_be_disrupted_holds_up_the_drain(stage: &mut dyn Stage) {
    let protected = pod("a", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    stage.apply(&manifest(&[pool("default"), node_class(), protected]));
    stage.until_running("a", 1);
    let path = node_of(stage, "a");
    stage.delete(&path);
    stage.always("the pod runs", Duration::from_secs(10), |stage| stage.running("a") == 1);
    stage.patch(
        &format!("{PODS}/a"),
        &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": null}}}),
    );
    stage.until_nodes(0);
}
