//! Empty nodes go, unless something speaks against it.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pool, with};
use crate::stage::{NODES, POOLS, Stage};

/// A node that nobody needs any more, of a pool with something changed.
fn emptied(stage: &mut dyn Stage, change: &Value, before: impl FnOnce(&dyn Stage)) {
    stage.apply(&manifest(&[with(pool("default"), change), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    before(&*stage);
    stage.delete("/apis/apps/v1/namespaces/default/deployments/a");
    stage.until("the pod is gone", Duration::from_mins(1), |stage| stage.pods("a").is_empty());
}

fn stays(stage: &mut dyn Stage) {
    stage.always("the node stays", Duration::from_secs(40), |stage| stage.nodes().len() == 1);
}

pub(super) fn an_empty_node_stays_while_it_may_not_be_consolidated(stage: &mut dyn Stage) {
    emptied(stage, &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}), |_| {});
    stays(stage);
    stage.patch(&format!("{POOLS}/default"), &json!({"spec": {"disruption": {"consolidateAfter": "5s"}}}));
    stage.until_nodes(0);
}

pub(super) fn a_protected_node_stays(stage: &mut dyn Stage) {
    emptied(stage, &json!({}), |stage| {
        let name = &stage.nodes_of("a")[0];
        let annotations = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        stage.patch(&format!("{NODES}/{name}"), &annotations);
    });
    stays(stage);
}

pub(super) fn a_budget_of_zero_keeps_empty_nodes(stage: &mut dyn Stage) {
    emptied(stage, &json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}), |_| {});
    stays(stage);
    stage.until("it says why", Duration::from_mins(1), |stage| {
        stage.has_event("DisruptionBlocked", "default", "No allowed disruptions")
    });
    stage.patch(
        &format!("{POOLS}/default"),
        &json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}),
    );
    stage.until_nodes(0);
}

pub(super) fn an_empty_node_that_gets_a_pod_stays(stage: &mut dyn Stage) {
    emptied(stage, &json!({"spec": {"disruption": {"consolidateAfter": "10s"}}}), |_| {});
    stage.pass(Duration::from_secs(3));
    stage.apply(&manifest(&[deployment("b", 1, "100m")]));
    stage.until_running("b", 1);
    stays(stage);
    assert_eq!(stage.running("b"), 1, "{}", stage.describe());
}

pub(super) fn a_pool_counts_what_it_has(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 3, "1")]));
    stage.until_running("a", 3);
    let nodes = |stage: &dyn Stage| {
        stage.get(&format!("{POOLS}/default")).unwrap_or_default()["status"]["nodes"].clone()
    };
    stage.until("one node is counted", Duration::from_mins(1), |stage| nodes(stage) == json!(1));
    let pool = stage.get(&format!("{POOLS}/default")).unwrap_or_default();
    let cpu = stage.label_of_node("a", "karpenter.kwok.sh/instance-cpu");
    assert_eq!(pool["status"]["resources"]["nodes"], "1", "{pool}");
    assert!(!cpu.is_empty() && pool["status"]["resources"]["cpu"].is_string(), "{pool}");
    stage.delete("/apis/apps/v1/namespaces/default/deployments/a");
    stage.until("none is counted", Duration::from_mins(2), |stage| nodes(stage) == json!(0));
}
