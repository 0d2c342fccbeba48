//! Nodes that are no longer what their pool asks for are replaced.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, deployment_with, manifest, node_class, pool, with};
use crate::stage::{CLAIMS, NODES, POOLS, Stage};

/// Makes all nodes of the pool drift.
fn drift(stage: &dyn Stage) {
    let labels = json!({"spec": {"template": {"metadata": {"labels": {"team": "new"}}}}});
    stage.patch(&format!("{POOLS}/default"), &labels);
}

fn is_new(node: &Value) -> bool {
    node["metadata"]["labels"]["team"] == "new"
}

fn is_tainted(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().any(|taint| taint["key"] == "karpenter.sh/disrupted")
}

/// How many nodes are being disrupted.
fn disrupted(stage: &dyn Stage) -> usize {
    let claims = stage.list(CLAIMS);
    let leaving = |name: &Value| {
        claims.iter().any(|claim| {
            claim["status"]["nodeName"] == *name && !claim["metadata"]["deletionTimestamp"].is_null()
        })
    };
    stage.nodes().iter().filter(|node| is_tainted(node) || leaving(&node["metadata"]["name"])).count()
}

/// So many pods, each with a node of its own.
fn apart(replicas: usize) -> Value {
    let term =
        json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}});
    let rule = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    deployment_with("a", replicas, "1", &json!({"affinity": {"podAntiAffinity": rule}}))
}

pub(super) fn a_drifted_node_is_replaced_before_it_goes(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    let old = stage.nodes_of("a")[0].clone();
    drift(&*stage);
    stage.until("the old node goes", Duration::from_mins(2), |stage| {
        let node = stage.get(&format!("{NODES}/{old}"));
        let is_leaving = node.is_none_or(|node| !node["metadata"]["deletionTimestamp"].is_null());
        // Until then there is a place for its pod.
        let is_replaced = stage.nodes().iter().any(is_new);
        assert!(!is_leaving || is_replaced, "{}", stage.describe());
        is_leaving
    });
    stage.until("the pod runs on the new node", Duration::from_mins(2), |stage| {
        stage.running("a") == 1 && stage.nodes().len() == 1 && stage.nodes().iter().all(is_new)
    });
}

pub(super) fn drifted_nodes_are_replaced_as_fast_as_the_budget_allows(stage: &mut dyn Stage) {
    let budget = json!({"spec": {"disruption": {"budgets": [{"nodes": "2"}]}}});
    stage.apply(&manifest(&[with(pool("default"), &budget), node_class(), apart(5)]));
    stage.until_running("a", 5);
    stage.until_nodes(5);
    drift(&*stage);
    stage.until("all nodes are new", Duration::from_mins(8), |stage| {
        assert!(disrupted(stage) <= 2, "{}", stage.describe());
        stage.running("a") == 5 && stage.nodes().len() == 5 && stage.nodes().iter().all(is_new)
    });
}

pub(super) fn an_operator_that_is_killed_while_nodes_are_replaced_leaves_none_behind(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), apart(3)]));
    stage.until_running("a", 3);
    drift(&*stage);
    // Each time it gets a little further: to the taint, the claim, the launch, the deletion.
    for step in 1..14 {
        stage.pass(Duration::from_millis(400 * step));
        stage.kill_operator();
        stage.pass(Duration::from_millis(300));
        stage.start_operator();
    }
    stage.until("all nodes are new", Duration::from_mins(8), |stage| {
        stage.running("a") == 3 && stage.nodes().len() == 3 && stage.nodes().iter().all(is_new)
    });
    stage.until("no node is tainted", Duration::from_mins(1), |stage| !stage.nodes().iter().any(is_tainted));
    assert_eq!(stage.list(CLAIMS).len(), 3, "{}", stage.describe());
}

/// Waits until a node that was to be replaced is let go, while its pod stays where it is.
fn until_released(stage: &mut dyn Stage, old: &str) {
    let is_disrupted =
        |stage: &dyn Stage| stage.get(&format!("{NODES}/{old}")).is_some_and(|it| is_tainted(&it));
    stage.until("the node is to be replaced", Duration::from_mins(1), is_disrupted);
    stage.until("it is as before", Duration::from_mins(11), |stage| {
        assert_eq!(stage.nodes_of("a"), [old], "{}", stage.describe());
        assert_eq!(stage.running("a"), 1, "{}", stage.describe());
        !is_disrupted(stage)
    });
}

pub(super) fn a_node_whose_replacement_never_registers_is_as_before(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    let old = stage.nodes_of("a")[0].clone();
    stage.apply(&manifest(&[with(node_class(), &json!({"spec": {"nodeRegistrationDelay": "24h"}}))]));
    drift(&*stage);
    until_released(stage, &old);
    // It is tried again, and works once nodes come up.
    stage.apply(&manifest(&[with(node_class(), &json!({"spec": {"nodeRegistrationDelay": "0s"}}))]));
    stage.until("the pod runs on a new node", Duration::from_mins(30), |stage| {
        stage.running("a") == 1 && stage.nodes().len() == 1 && stage.nodes().iter().all(is_new)
    });
}

pub(super) fn a_node_whose_replacement_never_gets_ready_is_as_before(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    let old = stage.nodes_of("a")[0].clone();
    // Nobody takes the taint away.
    let taint = json!([{"key": "example.com/starting", "effect": "NoSchedule"}]);
    let change = json!({"spec": {"template": {"spec": {"startupTaints": taint}}}});
    stage.patch(&format!("{POOLS}/default"), &change);
    until_released(stage, &old);
    let is_old = |claim: &Value| claim["status"]["nodeName"] == *old;
    assert!(stage.list(CLAIMS).iter().any(is_old), "{}", stage.describe());
    // What nobody uses is not paid for: the pool is left alone for a minute.
    stage.pass(Duration::from_secs(30));
    assert!(stage.list(CLAIMS).iter().all(is_old), "{}", stage.describe());
}
