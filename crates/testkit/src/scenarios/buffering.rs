//! Buffers keep room for pods to come.

use std::time::Duration;

use serde_json::{Value, json};

use super::manifests::{deployment, manifest, node_class, pod_spec, pool, with};
use crate::stage::{CLAIMS, PODS, Stage, condition, is_true};

const BUFFERS: &str = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers";
const GATE: &str = "CapacityBuffer=true";

fn template(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(cpu)},
    })
}

fn buffer(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    })
}

fn of_template(name: &str, replicas: usize) -> Value {
    json!({"podTemplateRef": {"name": name}, "replicas": replicas})
}

fn status(stage: &dyn Stage, name: &str) -> Value {
    stage.get(&format!("{BUFFERS}/{name}")).unwrap_or_default()
}

/// Waits until all the room of a buffer is there.
#[track_caller]
fn until_kept(stage: &mut dyn Stage, name: &str) {
    stage.until(&format!("the room of {name} is there"), Duration::from_mins(2), |stage| {
        is_true(&status(stage, name), "Provisioning")
    });
}

/// A cluster with room for three pods of a core.
fn with_room(stage: &mut dyn Stage) {
    stage.set_gates(GATE);
    let objects =
        [pool("default"), node_class(), template("spare", "1"), buffer("b", &of_template("spare", 3))];
    stage.apply(&manifest(&objects));
    stage.until_nodes(1);
    until_kept(stage, "b");
}

pub(super) fn room_is_kept_taken_at_once_and_kept_anew(stage: &mut dyn Stage) {
    with_room(stage);
    assert!(stage.list(PODS).is_empty(), "{}", stage.describe());
    stage.always("the empty node stays", Duration::from_mins(1), |stage| stage.nodes().len() == 1);
    let room = stage.nodes()[0]["metadata"]["name"].clone();
    stage.apply(&manifest(&[deployment("a", 3, "1")]));
    stage.until("the pods run", Duration::from_secs(10), |stage| stage.running("a") == 3);
    assert_eq!(json!(stage.nodes_of("a")), json!([room]), "{}", stage.describe());
    stage.until_nodes(2);
    until_kept(stage, "b");
    stage.delete(&format!("{BUFFERS}/b"));
    stage.until_nodes(1);
    assert_eq!(stage.running("a"), 3, "{}", stage.describe());
    stage.delete("/apis/apps/v1/namespaces/default/deployments/a");
    stage.until_nodes(0);
    let is_virtual = |event: &Value| {
        event["involvedObject"]["name"].as_str().is_some_and(|name| name.starts_with("capacity-buffer-"))
    };
    assert!(!stage.list("/api/v1/events").iter().any(is_virtual), "{}", stage.describe());
}

pub(super) fn room_goes_with_its_buffer(stage: &mut dyn Stage) {
    with_room(stage);
    stage.delete(&format!("{BUFFERS}/b"));
    stage.until_nodes(0);
    stage.until("the claim is gone", Duration::from_mins(1), |stage| stage.list(CLAIMS).is_empty());
}

pub(super) fn room_in_percent_follows_its_deployment(stage: &mut dyn Stage) {
    stage.set_gates(GATE);
    let spec = json!({"scalableRef": {"kind": "Deployment", "name": "a"}, "percentage": 50});
    stage.apply(&manifest(&[pool("default"), node_class(), deployment("a", 3, "1"), buffer("b", &spec)]));
    stage.until_running("a", 3);
    let keeps = |stage: &dyn Stage, count: u64| status(stage, "b")["status"]["replicas"] == json!(count);
    stage.until("there is room for two", Duration::from_mins(1), |stage| keeps(stage, 2));
    until_kept(stage, "b");
    stage.scale("a", 10);
    stage.until_running("a", 10);
    stage.until("there is room for five", Duration::from_mins(1), |stage| keeps(stage, 5));
    until_kept(stage, "b");
    stage.scale("a", 0);
    stage.until("there is room for none", Duration::from_mins(1), |stage| keeps(stage, 0));
    stage.until_nodes(0);
}

pub(super) fn a_buffer_without_its_template_says_so_and_others_work(stage: &mut dyn Stage) {
    stage.set_gates(GATE);
    let refused =
        with(buffer("odd", &json!({})), &json!({"spec": {"scalableRef": {"kind": "Job", "name": "x"}}}));
    stage.apply(&manifest(&[
        pool("default"),
        node_class(),
        template("spare", "1"),
        buffer("missing", &of_template("nobody", 2)),
        refused,
        buffer("works", &of_template("spare", 1)),
    ]));
    until_kept(stage, "works");
    let said = |stage: &dyn Stage, name: &str| {
        let ready = condition(&status(stage, name), "ReadyForProvisioning").clone();
        (ready["reason"].as_str().unwrap_or_default().to_owned(), ready["status"] == "False")
    };
    stage.until("they say what is wrong", Duration::from_mins(1), |stage| {
        said(stage, "missing") == ("PodTemplateNotFound".to_owned(), true)
            && said(stage, "odd") == ("ResolutionFailed".to_owned(), true)
    });
    stage.apply(&manifest(&[template("nobody", "1")]));
    until_kept(stage, "missing");
}

pub(super) fn buffers_that_come_and_go_quickly_leave_nothing(stage: &mut dyn Stage) {
    stage.set_gates(GATE);
    stage.apply(&manifest(&[pool("default"), node_class(), template("spare", "1")]));
    for round in 0..10 {
        let name = format!("b{}", round % 3);
        stage.apply(&manifest(&[buffer(&name, &of_template("spare", 2 + round))]));
        stage.pass(Duration::from_millis(300 * round as u64));
        stage.delete(&format!("{BUFFERS}/{name}"));
    }
    stage.until_nodes(0);
    stage.until("no claim is left", Duration::from_mins(2), |stage| stage.list(CLAIMS).is_empty());
    stage.always("nothing comes back", Duration::from_mins(1), |stage| {
        stage.list(CLAIMS).is_empty() && stage.nodes().is_empty()
    });
}

pub(super) fn room_stays_while_the_operator_is_replaced(stage: &mut dyn Stage) {
    with_room(stage);
    let name = stage.nodes()[0]["metadata"]["name"].clone();
    for _ in 0..3 {
        stage.kill_operator();
        stage.pass(Duration::from_secs(5));
        stage.start_operator();
        stage.always("the node stays", Duration::from_secs(40), |stage| {
            let nodes = stage.nodes();
            nodes.len() == 1 && nodes[0]["metadata"]["name"] == name && stage.list(CLAIMS).len() == 1
        });
    }
}
