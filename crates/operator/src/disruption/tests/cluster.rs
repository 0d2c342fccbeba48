//! Emptiness in a cluster.

use std::time::Duration;

use api::names::metrics::{
    DISRUPTION_DECISIONS, DISRUPTION_ELIGIBLE_NODES, DISRUPTION_FAILED_VALIDATIONS, NODECLAIMS_DISRUPTED,
    NODEPOOLS_ALLOWED_DISRUPTIONS,
};
use embedded::faults::{Fault, Rule};
use serde_json::{Value, json};

use crate::testing::{NODE_POOL, Operated, node_objects};

pub(super) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

/// A cluster with a pool and some nodes of it, all of them quiet.
pub(super) fn cluster(budget: &str, nodes: &[&str]) -> Operated {
    cluster_by(budget, nodes, super::super::controllers)
}

/// As [`cluster`], with these controllers of disruption.
pub(super) fn cluster_by(
    budget: &str,
    nodes: &[&str],
    controllers: impl FnOnce(&crate::Context) -> Vec<runtime::controller::Controller>,
) -> Operated {
    let cluster = Operated::by(|context| {
        let mut all = controllers(context);
        all.extend(crate::node_pool::controllers(context));
        all
    });
    let disruption = format!("spec:\n  disruption: {{budgets: [{{nodes: '{budget}'}}]}}\n  template");
    cluster.apply(&NODE_POOL.replace("spec:\n  template", &disruption));
    for node in nodes {
        add_node(&cluster, node, &json!({}), &json!({}));
    }
    cluster
}

pub(super) fn add_node(cluster: &Operated, name: &str, of_node: &Value, of_claim: &Value) {
    for (mut object, version) in
        node_objects(name, "default", of_node, of_claim).into_iter().zip(["v1", "karpenter.sh/v1"])
    {
        object["apiVersion"] = version.into();
        object["metadata"].as_object_mut().unwrap().remove("uid");
        cluster.apply(&object.to_string());
    }
}

pub(super) fn pod(name: &str, node: &str) -> String {
    pod_asking(name, node, "0").to_string()
}

/// A pod on a node that asks for some processor.
pub(super) fn pod_asking(name: &str, node: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i", "resources": resources}]},
    })
}

pub(super) fn is_tainted(cluster: &Operated, node: &str) -> bool {
    let node = cluster.get(&format!("/api/v1/nodes/{node}")).unwrap();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().any(|taint| taint["key"] == "karpenter.sh/disrupted")
}

pub(super) fn run(cluster: &mut Operated, seconds: u64) {
    cluster.run_for(Duration::from_secs(seconds));
}

#[test]
fn an_empty_node_goes_after_fifteen_seconds() {
    let mut cluster = cluster("100%", &["n1", "n2"]);
    cluster.apply(&pod("a", "n2"));
    run(&mut cluster, 14);
    assert_eq!(cluster.claims().len(), 2);
    assert!(!is_tainted(&cluster, "n1"));
    run(&mut cluster, 12);
    assert_eq!(cluster.claims().len(), 1);
    assert!(is_tainted(&cluster, "n1") && !is_tainted(&cluster, "n2"));
    let told = cluster.context.events.published();
    let told: Vec<&str> = told.iter().map(|event| &*event.message).collect();
    assert!(told.contains(&"Disrupting Node: Empty") && told.contains(&"Disrupting NodeClaim: Empty"));
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_DECISIONS, &["delete", "empty", "empty"]), Some(1.0));
    let labels = ["empty", "default", "spot", "when_empty_or_underutilized", "graceful"];
    assert_eq!(metrics.value(&NODECLAIMS_DISRUPTED, &labels), Some(1.0));
}

#[test]
fn several_empty_nodes_go_together_as_far_as_the_budget_allows() {
    let mut cluster = cluster("2", &["n1", "n2", "n3"]);
    run(&mut cluster, 30);
    assert_eq!(cluster.claims().len(), 1);
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_DECISIONS, &["delete", "empty", "empty"]), Some(1.0));
    assert_eq!(metrics.value(&NODEPOOLS_ALLOWED_DISRUPTIONS, &["default", "empty"]), Some(2.0));
    run(&mut cluster, 60);
    assert_eq!(cluster.claims().len(), 0);
}

#[test]
fn a_budget_of_nothing_keeps_all_nodes_and_users_are_told() {
    let mut cluster = cluster("0", &["n1"]);
    run(&mut cluster, 60);
    assert_eq!(cluster.claims().len(), 1);
    let told = cluster.context.events.published();
    let text = "No allowed disruptions for disruption reason Empty due to blocking budget";
    assert!(told.iter().any(|event| event.message == text));
    assert_eq!(cluster.context.metrics.value(&DISRUPTION_ELIGIBLE_NODES, &["empty"]), Some(1.0));
    // Once it allows something, the node goes.
    let change = json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    run(&mut cluster, 30);
    assert_eq!(cluster.claims().len(), 0);
}

#[test]
fn a_pod_that_comes_in_time_saves_its_node() {
    let mut cluster = cluster("100%", &["n1"]);
    run(&mut cluster, 12);
    cluster.apply(&pod("a", "n1"));
    run(&mut cluster, 60);
    assert_eq!(cluster.claims().len(), 1);
    assert!(!is_tainted(&cluster, "n1"));
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_FAILED_VALIDATIONS, &["empty"]), Some(1.0));
    assert_eq!(metrics.value(&DISRUPTION_ELIGIBLE_NODES, &["empty"]), Some(0.0));
    // It goes once the pod is gone.
    cluster.delete("/api/v1/namespaces/default/pods/a");
    run(&mut cluster, 90);
    assert_eq!(cluster.claims().len(), 0);
}

#[test]
fn nodes_stay_that_are_not_quiet_or_whose_pool_never_consolidates() {
    let mut cluster = cluster("100%", &["n1"]);
    let path = format!("{CLAIMS}/claim-n1");
    let claim = cluster.get(&path).unwrap();
    let conditions: Vec<Value> = claim["status"]["conditions"].as_array().unwrap().clone();
    let quiet: Vec<&Value> = conditions.iter().filter(|it| it["type"] != "Consolidatable").collect();
    cluster.patch(&format!("{path}/status"), &json!({"status": {"conditions": quiet}}));
    run(&mut cluster, 60);
    assert_eq!(cluster.claims().len(), 1);
    let change = json!({"spec": {"disruption": {"consolidateAfter": "Never"}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    cluster.patch(&format!("{path}/status"), &json!({"status": {"conditions": conditions}}));
    run(&mut cluster, 60);
    assert_eq!(cluster.claims().len(), 1);
    let told = cluster.context.events.published();
    assert!(told.iter().any(|event| event.message == "NodePool \"default\" has consolidation disabled"));
}

#[test]
fn another_reason_why_a_node_stays_is_told_at_once_and_the_same_is_not() {
    //
    let mut cluster = cluster("100%", &["n1"]);
    let protected =
        |value: Option<&str>| json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}});
    cluster.patch("/api/v1/nodes/n1", &protected(Some("true")));
    run(&mut cluster, 40);
    let mut pod: Value = serde_json::from_str(&pod("a", "n1")).unwrap();
    crate::testing::merge(&mut pod, &protected(Some("true")));
    cluster.apply(&pod.to_string());
    cluster.patch("/api/v1/nodes/n1", &protected(None));
    run(&mut cluster, 40);
    let told = cluster.context.events.published();
    let of_node = told.iter().filter(|it| &*it.reason == "DisruptionBlocked" && &*it.about.name == "n1");
    let texts: Vec<&str> = of_node.map(|event| &*event.message).collect();
    let first = "Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation";
    let second = "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/a)";
    assert_eq!(texts, [first, second]);
}

#[test]
fn what_another_process_began_is_taken_back() {
    let mut cluster = cluster("0", &[]);
    let taints = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    add_node(&cluster, "n1", &json!({"spec": {"taints": taints}}), &json!({}));
    let path = format!("{CLAIMS}/claim-n1");
    let mut conditions = cluster.get(&path).unwrap()["status"]["conditions"].as_array().unwrap().clone();
    conditions
        .push(json!({"type": "DisruptionReason", "status": "True", "reason": "Empty", "message": "Empty",
        "lastTransitionTime": "2026-01-05T09:00:00Z"}));
    cluster.patch(&format!("{path}/status"), &json!({"status": {"conditions": conditions}}));
    run(&mut cluster, 15);
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "");
    assert_eq!(cluster.claims().len(), 1);
}

#[test]
fn a_command_that_cannot_be_carried_out_is_taken_back() {
    let mut cluster = cluster("100%", &["n1"]);
    cluster.faults.set_rules(vec![Rule::on("delete", "nodeclaims", 1.0, Fault::InternalError)]);
    run(&mut cluster, 30);
    assert!(is_tainted(&cluster, "n1"));
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "True Empty");
    assert!(cluster.context.cluster.read().is_marked("kwok://n1"));
    // Meanwhile somebody needs the node.
    cluster.apply(&pod("a", "n1"));
    cluster.run_for(Duration::from_mins(11));
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "");
    assert!(!cluster.context.cluster.read().is_marked("kwok://n1"));
    assert_eq!(cluster.claims().len(), 1);
}

#[test]
fn a_command_goes_on_when_the_server_recovers() {
    let mut cluster = cluster("100%", &["n1", "n2"]);
    cluster.faults.set_rules(vec![
        Rule::on("delete", "nodeclaims", 0.7, Fault::Unavailable),
        Rule::on("patch", "nodes", 0.5, Fault::Conflict),
    ]);
    run(&mut cluster, 120);
    cluster.faults.set_rules(Vec::new());
    run(&mut cluster, 60);
    assert_eq!(cluster.claims().len(), 0);
    let labels = ["empty", "default", "spot", "when_empty_or_underutilized", "graceful"];
    assert_eq!(cluster.context.metrics.value(&NODECLAIMS_DISRUPTED, &labels), Some(2.0));
}
