//! Metrics of a cluster.

use std::time::Duration;

use api::names::metrics::{NODEPOOLS_LIMIT, NODEPOOLS_USAGE};
use serde_json::{Value, json};

use crate::testing::{NODE_POOL, Operated, node_objects};

fn cluster() -> Operated {
    let cluster = Operated::by(|context| {
        let mut all = super::controllers(context);
        all.extend(crate::node_pool::controllers(context));
        all
    });
    cluster.apply(NODE_POOL);
    cluster
}

fn add_node(cluster: &Operated) {
    let [mut node, mut claim] = node_objects("n1", "default", &json!({}), &json!({}));
    node["apiVersion"] = "v1".into();
    claim["apiVersion"] = "karpenter.sh/v1".into();
    claim["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    for object in [&mut node, &mut claim] {
        object["metadata"].as_object_mut().unwrap().remove("uid");
        cluster.apply(&object.to_string());
    }
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
    })
}

/// Lines of the page of metrics that begin so.
fn lines(cluster: &Operated, start: &str) -> Vec<String> {
    let page = cluster.block_on(async { cluster.context.metrics.page() });
    page.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
}

fn has(cluster: &Operated, start: &str, parts: &[&str]) -> bool {
    lines(cluster, start).iter().any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn nodes_pods_and_pools_are_told_while_they_are_there() {
    let mut cluster = cluster();
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &json!({"spec": {"limits": {"cpu": "100"}}}));
    add_node(&cluster);
    cluster.apply(&pod("a").to_string());
    cluster.run_for(Duration::from_secs(20));
    let node = ["node_name=\"n1\"", "managed=\"true\"", "nodepool=\"default\"", "resource_type=\"cpu\""];
    assert!(has(&cluster, "karpenter_nodes_allocatable{", &node));
    assert!(has(&cluster, "karpenter_nodes_total_pod_requests{", &[node[0], node[3], "} 1"]));
    assert!(has(&cluster, "karpenter_nodes_current_lifetime_seconds{", &node[..3]));
    assert!(has(&cluster, "karpenter_cluster_utilization_percent{", &["resource_type=\"cpu\"} 25"]));
    assert!(has(&cluster, "karpenter_pods_state{", &["name=\"a\"", "phase=\"Running\"", "node=\"n1\""]));
    assert!(has(&cluster, "karpenter_pods_startup_duration_seconds_count", &[" 1"]));
    assert!(has(&cluster, "karpenter_cluster_state_synced", &[" 1"]));
    assert!(has(&cluster, "karpenter_cluster_state_node_count", &[" 1"]));
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&NODEPOOLS_LIMIT, &["cpu", "default"]), Some(100.0));
    assert_eq!(metrics.value(&NODEPOOLS_USAGE, &["cpu", "default"]), Some(4.0));
    assert!(has(&cluster, "karpenter_nodepools_cost_total{", &["nodepool=\"default\""]));
    cluster.delete("/api/v1/namespaces/default/pods/a");
    cluster.delete("/api/v1/nodes/n1");
    cluster.delete("/apis/karpenter.sh/v1/nodepools/default");
    cluster.run_for(Duration::from_mins(2));
    for start in ["karpenter_nodes_allocatable{", "karpenter_pods_state{", "karpenter_nodepools_limit{"] {
        assert!(lines(&cluster, start).is_empty(), "{start} {:?}", lines(&cluster, start));
    }
}

#[test]
fn a_pod_that_waits_is_told_to_wait() {
    let mut cluster = cluster();
    cluster.apply(&pod("a").to_string());
    let mut asking = pod("b");
    asking["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    cluster.apply(&asking.to_string());
    cluster.run_for(Duration::from_secs(65));
    for (name, dynamic) in [("a", "false"), ("b", "true")] {
        let labels = [format!("name=\"{name}\""), format!("dynamic_resources=\"{dynamic}\"")];
        let start = "karpenter_pods_unbound_time_seconds{";
        assert!(has(&cluster, start, &labels.each_ref().map(String::as_str)), "{name}");
    }
    assert!(has(&cluster, "karpenter_pods_unstarted_time_seconds{", &["name=\"a\""]));
    for name in ["a", "b"] {
        cluster.delete(&format!("/api/v1/namespaces/default/pods/{name}"));
    }
    cluster.run_for(Duration::from_secs(5));
    assert!(lines(&cluster, "karpenter_pods_unbound_time_seconds{").is_empty());
}

#[test]
fn conditions_are_told_and_so_is_how_they_change() {
    let mut cluster = cluster();
    cluster.run_for(Duration::from_secs(12));
    let ready = ["name=\"default\"", "type=\"Ready\"", "status=\"True\""];
    assert!(has(&cluster, "operator_nodepool_status_condition_count{", &ready));
    assert!(has(&cluster, "operator_status_condition_count{", &[ready[0], ready[1], "kind=\"NodePool\""]));
    cluster.delete("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default");
    cluster.run_for(Duration::from_secs(12));
    assert!(!has(&cluster, "operator_nodepool_status_condition_count{", &ready));
    let counted = ["type=\"Ready\"", "status=\"False\"", "reason=\"UnhealthyDependents\""];
    assert!(has(&cluster, "operator_nodepool_status_condition_transitions_total{", &counted));
    let left = ["type=\"Ready\"", "status=\"True\"", "to_status=\"False\""];
    assert!(has(&cluster, "operator_nodepool_status_condition_transition_seconds_count{", &left));
    let told = cluster.context.events.published();
    let text = "Status condition transitioned, Type: NodeClassReady, Status: True -> False, Reason: NodeClassNotFound, Message: NodeClass not found on cluster";
    assert!(told.iter().any(|event| &*event.reason == "NodeClassReady" && event.message == text));
}

#[test]
fn an_object_on_its_way_out_is_told_until_it_is_gone() {
    let mut cluster = cluster();
    add_node(&cluster);
    cluster.run_for(Duration::from_secs(12));
    let path = "/apis/karpenter.sh/v1/nodeclaims/claim-n1";
    cluster.delete(path);
    cluster.run_for(Duration::from_secs(31));
    let start = "operator_nodeclaim_termination_current_time_seconds{";
    assert!(has(&cluster, start, &["name=\"claim-n1\"", "karpenter_sh_nodepool=\"default\""]));
    cluster.patch(path, &json!({"metadata": {"finalizers": []}}));
    cluster.run_for(Duration::from_secs(2));
    assert!(lines(&cluster, start).is_empty());
    assert!(has(&cluster, "operator_nodeclaim_termination_duration_seconds_count{", &["} 1"]));
    let told = cluster.context.events.published();
    assert!(told.iter().any(|event| event.message == "Finalized karpenter.sh/termination"));
}
