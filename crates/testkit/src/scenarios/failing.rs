//! What cannot be done is told, and hinders nobody else.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pool, with};
use crate::stage::{CLAIMS, NODES, POOLS, Stage, condition, is_true};

pub(super) fn a_pod_that_fits_nowhere_says_so_and_hinders_nobody(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[
        pool("default"),
        node_class(),
        deployment("huge", 1, "9999"),
        deployment("a", 1, "1"),
    ]));
    stage.until_running("a", 1);
    let huge = stage.pods("huge")[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    stage.until("there is an event", Duration::from_mins(1), |stage| {
        stage.has_event("FailedScheduling", &huge, "Failed to schedule pod, ")
    });
    assert_eq!(stage.list(CLAIMS).len(), 1, "{}", stage.describe());
}

pub(super) fn limits_hold(stage: &mut dyn Stage) {
    let limited = with(pool("default"), &json!({"spec": {"limits": {"cpu": "2"}}}));
    stage.apply(&manifest(&[limited, node_class(), deployment("a", 4, "900m")]));
    stage.until("some run", Duration::from_mins(1), |stage| stage.running("a") > 0);
    stage.always("the limit holds", Duration::from_secs(15), |stage| {
        let total: u64 = stage
            .nodes()
            .iter()
            .filter_map(|node| {
                node["metadata"]["labels"]["karpenter.kwok.sh/instance-cpu"].as_str()?.parse::<u64>().ok()
            })
            .sum();
        total <= 2 && stage.running("a") < 4
    });
}

pub(super) fn a_limit_of_nodes_holds(stage: &mut dyn Stage) {
    let limited = with(pool("default"), &json!({"spec": {"limits": {"nodes": "1"}}}));
    let mut apart = deployment("a", 2, "1");
    apart["spec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"containerPort": 80, "hostPort": 80}]);
    stage.apply(&manifest(&[limited, node_class(), apart]));
    stage.until("one runs", Duration::from_mins(1), |stage| stage.running("a") == 1);
    stage.always("there is one node", Duration::from_secs(15), |stage| {
        stage.list(CLAIMS).len() == 1 && stage.running("a") == 1
    });
}

pub(super) fn restricted_labels_are_refused(stage: &mut dyn Stage) {
    for key in ["karpenter.sh/custom", "kubernetes.io/hostname", "karpenter.sh/nodepool"] {
        let requirement = json!([{"key": key, "operator": "In", "values": ["a"]}]);
        let wrong =
            with(pool("wrong"), &json!({"spec": {"template": {"spec": {"requirements": requirement}}}}));
        let (code, answer) = stage.send(Method::POST, POOLS, "application/json", &wrong);
        assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY, "{key}: {answer}");
    }
}

/// A value that the definition admits and validation at run time does not.
fn invalid(name: &str) -> Value {
    let requirement =
        json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["borrowed"]}]);
    with(pool(name), &json!({"spec": {"weight": 100, "template": {"spec": {"requirements": requirement}}}}))
}

pub(super) fn an_invalid_pool_says_so_and_hinders_nobody(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[invalid("wrong"), pool("default"), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    assert_eq!(stage.label_of_node("a", "karpenter.sh/nodepool"), "default");
    let wrong = stage.get(&format!("{POOLS}/wrong")).unwrap_or_default();
    let validation = condition(&wrong, "ValidationSucceeded");
    assert_eq!(
        (&validation["status"], &validation["reason"]),
        (&json!("False"), &json!("NodePoolValidationFailed"))
    );
    assert_eq!(condition(&wrong, "Ready")["status"], "False");
}

fn says(stage: &dyn Stage, reason: &str) -> bool {
    let pool = stage.get(&format!("{POOLS}/default")).unwrap_or_default();
    condition(&pool, "NodeClassReady")["reason"] == reason && condition(&pool, "Ready")["status"] == "False"
}

pub(super) fn a_missing_node_class_is_told_and_waited_for(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), deployment("a", 1, "1")]));
    stage.until("the pool says so", Duration::from_mins(1), |stage| says(stage, "NodeClassNotFound"));
    stage.always("nothing is launched", Duration::from_secs(5), |stage| stage.list(CLAIMS).is_empty());
    stage.apply(&manifest(&[node_class()]));
    stage.until_running("a", 1);
}

pub(super) fn a_node_class_that_is_not_ready_is_told_and_waited_for(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[node_class()]));
    let class = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default/status";
    let ready = |status: &str| {
        json!({"status": {"conditions": [{
            "type": "Ready", "status": status, "reason": "Checked", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}})
    };
    stage.patch(class, &ready("False"));
    stage.apply(&manifest(&[pool("default"), deployment("a", 1, "1")]));
    stage.until("the pool says so", Duration::from_mins(1), |stage| says(stage, "Checked"));
    stage.always("nothing is launched", Duration::from_secs(5), |stage| stage.list(CLAIMS).is_empty());
    stage.patch(class, &ready("True"));
    stage.until_running("a", 1);
}

pub(super) fn a_node_that_never_registers_is_given_up_and_replaced(stage: &mut dyn Stage) {
    let never = with(node_class(), &json!({"spec": {"nodeRegistrationDelay": "24h"}}));
    stage.apply(&manifest(&[pool("default"), never, deployment("a", 1, "1")]));
    stage.until("there is a claim", Duration::from_mins(1), |stage| stage.list(CLAIMS).len() == 1);
    let first = stage.list(CLAIMS)[0]["metadata"]["name"].clone();
    stage.pass(Duration::from_mins(14));
    assert_eq!(stage.list(CLAIMS)[0]["metadata"]["name"], first);
    stage.apply(&manifest(&[with(node_class(), &json!({"spec": {"nodeRegistrationDelay": "0s"}}))]));
    stage.until("another claim is there instead", Duration::from_mins(3), |stage| {
        let claims = stage.list(CLAIMS);
        claims.len() == 1 && claims[0]["metadata"]["name"] != first
    });
    stage.until_running("a", 1);
}

pub(super) fn an_instance_that_vanishes_takes_its_claim_along(stage: &mut dyn Stage) {
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 1, "1")]));
    stage.until_running("a", 1);
    stage.until("the claim is ready", Duration::from_mins(1), |stage| {
        is_true(&stage.list(CLAIMS)[0], "Ready")
    });
    let lost = stage.list(CLAIMS)[0]["metadata"]["name"].clone();
    let node = format!("{NODES}/{}", stage.nodes_of("a")[0]);
    // Somebody removes it behind the operator's back.
    stage.kill_operator();
    stage.patch(&node, &json!({"metadata": {"finalizers": null}}));
    stage.delete(&node);
    stage.until("the node is gone", Duration::from_mins(1), |stage| stage.get(&node).is_none());
    stage.start_operator();
    stage.until("the claim is gone", Duration::from_mins(4), |stage| {
        stage.list(CLAIMS).iter().all(|claim| claim["metadata"]["name"] != lost)
    });
    stage.until("the pod runs elsewhere", Duration::from_mins(5), |stage| {
        stage.running("a") == 1 && stage.nodes().len() == 1
    });
}
