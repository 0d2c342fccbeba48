//! Nodes that are not needed go, and nodes that are too dear are replaced.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, deployment_with, manifest, node_class, pool, with};
use crate::stage::{NODES, Stage};

/// A pool that is consolidated, all of it at once if need be.
fn consolidated() -> Value {
    let disruption = json!({
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}],
    });
    with(pool("default"), &json!({"spec": {"disruption": disruption}}))
}

/// How many processors the types of the nodes have. Simulated nodes themselves have only what was asked for.
fn processors(stage: &dyn Stage) -> Vec<u64> {
    let label = |node: &Value| node["metadata"]["labels"]["karpenter.kwok.sh/instance-cpu"].clone();
    let number = |node: &Value| label(node).as_str().and_then(|cpu| cpu.parse().ok());
    stage.nodes().iter().filter_map(number).collect()
}

pub(super) fn a_node_that_is_too_large_is_replaced_by_a_cheaper_one(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[consolidated(), node_class(), deployment("a", 12, "1")]));
    stage.until_running("a", 12);
    assert!(processors(stage).iter().sum::<u64>() >= 12, "{}", stage.describe());
    stage.scale("a", 1);
    stage.until("one small node is left", Duration::from_mins(4), |stage| {
        processors(stage).as_slice() == [2] && stage.running("a") == 1
    });
}

/// Pods with a node of their own each.
fn apart(name: &str, replicas: usize) -> Value {
    let selector = json!({"matchLabels": {"app": name}});
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector});
    let rule = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    deployment_with(name, replicas, "500m", &json!({"affinity": {"podAntiAffinity": rule}}))
}

pub(super) fn nodes_whose_pods_fit_elsewhere_go_together(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[consolidated(), node_class(), apart("a", 4)]));
    stage.until_running("a", 4);
    stage.apply(&manifest(&[deployment("b", 4, "100m")]));
    stage.until_running("b", 4);
    assert_eq!(stage.nodes().len(), 4, "{}", stage.describe());
    stage.scale("a", 1);
    stage.until("one node is left", Duration::from_mins(5), |stage| {
        stage.nodes().len() == 1 && stage.running("a") == 1 && stage.running("b") == 4
    });
}

pub(super) fn a_node_with_a_pod_that_must_not_be_disrupted_stays(stage: &mut dyn Stage) {
    let protected = json!({"spec": {"template": {"metadata": {"annotations": {
        "karpenter.sh/do-not-disrupt": "true",
    }}}}});
    stage.apply(&manifest(&[consolidated(), node_class(), with(apart("a", 2), &protected)]));
    stage.until_running("a", 2);
    let before = stage.nodes_of("a");
    stage.pass(Duration::from_mins(2));
    let mut after = stage.nodes_of("a");
    after.sort();
    let mut before: Vec<String> = before.into_iter().collect();
    before.sort();
    assert_eq!(after, before, "{}", stage.describe());
    for node in &before {
        let node = stage.get(&format!("{NODES}/{node}")).unwrap_or_default();
        assert!(node["spec"]["taints"].is_null(), "{node}");
    }
}
