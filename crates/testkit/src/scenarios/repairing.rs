//! Broken nodes are replaced or booted again.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pool, with};
use crate::stage::{CLAIMS, NODES, PODS, POOLS, Stage, is_true};

/// A cluster that repairs its nodes, with a Deployment `a` of one pod per node.
fn started(stage: &mut dyn Stage, replicas: usize) {
    stage.set_gates("NodeRepair=true");
    let apart = json!({"spec": {"template": {"spec": {"affinity": {"podAntiAffinity": {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}},
    ]}}}}}});
    stage.apply(&manifest(&[pool("default"), node_class(), with(deployment("a", replicas, "1"), &apart)]));
    stage.until_running("a", replicas);
}

/// A node has a bad condition from now on.
fn break_node(stage: &dyn Stage, name: &str, condition: &str) {
    let path = format!("{NODES}/{name}");
    let node = stage.get(&path).unwrap_or_default();
    let mut conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    // The time of the cluster, as far as can be seen from outside.
    let since = conditions.iter().filter_map(|it| it["lastHeartbeatTime"].as_str()).max();
    let since = since.unwrap_or_default().to_owned();
    conditions.retain(|it| it["type"] != condition);
    conditions
        .push(json!({"type": condition, "status": "True", "reason": "Simulated", "message": "it is broken",
        "lastTransitionTime": since, "lastHeartbeatTime": since}));
    stage.patch(&format!("{path}/status"), &json!({"status": {"conditions": conditions}}));
}

fn node_name(stage: &dyn Stage) -> String {
    stage.nodes_of("a").into_iter().next().unwrap_or_default()
}

fn is_tainted(node: &Value, key: &str) -> bool {
    node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(|taint| taint["key"] == key))
}

pub(super) fn a_broken_node_goes_once_its_replacement_is_there(stage: &mut dyn Stage) {
    started(stage, 1);
    let name = node_name(stage);
    let path = format!("{NODES}/{name}");
    break_node(stage, &name, "KWOKUnhealthy");
    stage.until("a replacement is launched", Duration::from_mins(2), |stage| stage.list(CLAIMS).len() == 2);
    let going = |stage: &dyn Stage| {
        stage.get(&path).is_none_or(|node| node["metadata"]["deletionTimestamp"].is_string())
    };
    stage.until("the broken node goes", Duration::from_mins(2), |stage| {
        let others = stage.nodes().into_iter().filter(|node| node["metadata"]["name"] != name.as_str());
        let is_ready = others.into_iter().any(|node| is_true(&node, "Ready"));
        assert!(is_ready || !going(stage), "it goes before its replacement is there\n{}", stage.describe());
        going(stage)
    });
    stage.until("the pod runs on the new node", Duration::from_mins(2), |stage| {
        stage.running("a") == 1 && stage.nodes().len() == 1 && stage.nodes_of("a") != [name.clone()]
    });
    stage.until("everybody is told", Duration::from_secs(10), |stage| {
        stage.has_event("DisruptionTerminating", &name, "Disrupting Node: Unhealthy")
    });
}

pub(super) fn a_node_that_needs_a_reboot_is_drained_booted_and_used_again(stage: &mut dyn Stage) {
    started(stage, 1);
    let name = node_name(stage);
    let path = format!("{NODES}/{name}");
    let boot =
        |stage: &dyn Stage| stage.get(&path).unwrap_or_default()["status"]["nodeInfo"]["bootID"].clone();
    let before = boot(stage);
    let pod = stage.pods("a")[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    break_node(stage, &name, "KWOKRebootRequired");
    stage.until("new pods are kept away", Duration::from_mins(2), |stage| {
        is_tainted(&stage.get(&path).unwrap_or_default(), "karpenter.sh/rebooting")
    });
    stage.until("it is booted", Duration::from_mins(2), |stage| boot(stage) != before);
    assert!(stage.get(&format!("{PODS}/{pod}")).is_none(), "it is drained first\n{}", stage.describe());
    // What was wrong is cured.
    let healthy: Vec<Value> = stage.get(&path).unwrap_or_default()["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|it| it["type"] != "KWOKRebootRequired")
        .cloned()
        .collect();
    stage.patch(&format!("{path}/status"), &json!({"status": {"conditions": healthy}}));
    stage.until("it is used again", Duration::from_mins(2), |stage| {
        let node = stage.get(&path).unwrap_or_default();
        stage.running("a") == 1
            && stage.nodes_of("a") == [name.clone()]
            && node["metadata"]["labels"]["karpenter.sh/initialized"] == "true"
            && !is_tainted(&node, "karpenter.sh/rebooting")
    });
    let claims = stage.list(CLAIMS);
    assert_eq!(claims.len(), 1, "nothing was launched for it\n{}", stage.describe());
    stage.until("the claim says so", Duration::from_mins(1), |stage| {
        let claim = stage.list(CLAIMS).into_iter().next().unwrap_or_default();
        let rebooting = crate::stage::condition(&claim, "Rebooting");
        rebooting["reason"] == "RebootSucceeded"
            && crate::stage::condition(&claim, "DisruptionReason").is_null()
            && is_true(&claim, "Initialized")
    });
}

pub(super) fn a_node_that_must_not_be_repaired_stays(stage: &mut dyn Stage) {
    started(stage, 1);
    let name = node_name(stage);
    let path = format!("{NODES}/{name}");
    let keep = |value: Value| json!({"metadata": {"annotations": {"karpenter.sh/do-not-repair": value}}});
    stage.patch(&path, &keep("true".into()));
    break_node(stage, &name, "KWOKUnhealthy");
    stage.until("it says why it stays", Duration::from_mins(2), |stage| {
        let text = r#"repair is blocked through the "karpenter.sh/do-not-repair" annotation"#;
        stage.has_event("DisruptionBlocked", &name, text)
    });
    stage.always("it stays", Duration::from_secs(30), |stage| {
        stage.list(CLAIMS).len() == 1 && stage.nodes_of("a") == [name.clone()]
    });
    stage.patch(&path, &keep(Value::Null));
    stage.until("it is replaced", Duration::from_mins(3), |stage| {
        stage.running("a") == 1 && stage.nodes_of("a") != [name.clone()]
    });
}

pub(super) fn too_many_broken_nodes_stop_repair(stage: &mut dyn Stage) {
    started(stage, 3);
    let names = stage.nodes_of("a");
    break_node(stage, &names[0], "KWOKUnhealthy");
    break_node(stage, &names[1], "KWOKUnhealthy");
    stage.until("everything that it concerns says so", Duration::from_mins(2), |stage| {
        let text = r#"more than 20% of nodes in nodepool "default" are unhealthy"#;
        ["default", &names[0], &names[1]].iter().all(|name| stage.has_event("NodeRepairBlocked", name, text))
    });
    stage.always("all nodes stay", Duration::from_secs(30), |stage| {
        stage.list(CLAIMS).len() == 3 && stage.nodes_of("a") == names
    });
    // One of them recovers, and one of three is not too many.
    let path = format!("{NODES}/{}", names[1]);
    let conditions = stage.get(&path).unwrap_or_default()["status"]["conditions"].clone();
    let healthy: Vec<&Value> =
        conditions.as_array().into_iter().flatten().filter(|it| it["type"] != "KWOKUnhealthy").collect();
    stage.patch(&format!("{path}/status"), &json!({"status": {"conditions": healthy}}));
    stage.until("the other is replaced", Duration::from_mins(3), |stage| {
        stage.running("a") == 3 && stage.nodes().len() == 3 && !stage.nodes_of("a").contains(&names[0])
    });
}

pub(super) fn a_budget_of_zero_keeps_broken_nodes(stage: &mut dyn Stage) {
    started(stage, 1);
    let name = node_name(stage);
    let budgets = |nodes: &str, reasons: Value| json!({"spec": {"disruption": {"budgets": [{"nodes": nodes, "reasons": reasons}]}}});
    stage.patch(&format!("{POOLS}/default"), &budgets("0", json!(["Unhealthy"])));
    break_node(stage, &name, "KWOKUnhealthy");
    stage.until("it says why", Duration::from_mins(2), |stage| {
        stage.has_event(
            "DisruptionBlocked",
            "default",
            "No allowed disruptions for disruption reason Unhealthy",
        )
    });
    stage.always("it stays", Duration::from_secs(30), |stage| stage.nodes_of("a") == [name.clone()]);
    // A budget for other reasons does not pace repair.
    stage.patch(&format!("{POOLS}/default"), &budgets("0", json!(["Empty", "Drifted", "Underutilized"])));
    stage.until("it is replaced", Duration::from_mins(3), |stage| {
        stage.running("a") == 1 && stage.nodes_of("a") != [name.clone()]
    });
}
