//! Buffers in a cluster.

use std::time::Duration;

use api::names::metrics::{
    DISRUPTION_ELIGIBLE_NODES, SCHEDULER_PENDING_PODS_BY_ZONE, SCHEDULER_UNSCHEDULABLE_PODS,
};
use embedded::faults::{Fault, Rule};
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;

use crate::testing::{NODE_POOL, Operated, merge, node_objects};

const BUFFERS: &str = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

fn settings(capacity_buffer: bool) -> Settings {
    let mut settings = Settings::default();
    settings.gates.capacity_buffer = capacity_buffer;
    settings
}

fn cluster() -> Operated {
    let cluster = Operated::with(World::new(1), settings(true), |context| {
        let mut all = crate::provisioner::controllers(context);
        all.extend(crate::node_pool::controllers(context));
        all.extend(crate::metrics::controllers(context));
        all
    });
    cluster.apply(NODE_POOL);
    cluster
}

fn template(name: &str, cpu: &str) -> String {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
    json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}},
    })
    .to_string()
}

fn buffer(name: &str, change: &Value) -> String {
    let mut buffer = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "t"}, "replicas": 3},
    });
    merge(&mut buffer, change);
    buffer.to_string()
}

fn run(cluster: &mut Operated, seconds: u64) {
    cluster.run_for(Duration::from_secs(seconds));
}

/// A condition of a buffer as `Status Reason: message`.
fn said(cluster: &Operated, name: &str, kind: &str) -> String {
    let buffer = cluster.get(&format!("{BUFFERS}/{name}")).unwrap();
    let all = buffer["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    all.iter()
        .find(|condition| condition["type"] == kind)
        .map(|it| format!("{} {}: {}", text(&it["status"]), text(&it["reason"]), text(&it["message"])))
        .unwrap_or_default()
}

/// Pretends that the cloud has launched a claim with eight cores.
fn launch(cluster: &Operated, claim: &Value) -> String {
    let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
    let amounts = json!({"cpu": "8", "memory": "16Gi", "pods": "100", "ephemeral-storage": "20Gi"});
    let labels = json!({
        "node.kubernetes.io/instance-type": "c-8x-amd64-linux", "topology.kubernetes.io/zone": "test-zone-a",
        "karpenter.sh/capacity-type": "spot", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    cluster.patch(&format!("{CLAIMS}/{name}"), &json!({"metadata": {"labels": labels}}));
    let status = json!({"providerID": format!("kwok://{name}"), "capacity": amounts, "allocatable": amounts});
    cluster.patch(&format!("{CLAIMS}/{name}/status"), &json!({"status": status}));
    name
}

#[test]
fn room_is_launched_counted_and_given_back_without_any_pod() {
    let mut cluster = cluster();
    cluster.apply(&template("t", "1"));
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 5);
    assert_eq!(
        said(&cluster, "b", "ReadyForProvisioning"),
        "True Resolved: Pod template resolved successfully"
    );
    let text = "False RequiresNewCapacity: 3/3 virtual pods required new capacity, 0 failed";
    assert_eq!(said(&cluster, "b", "Provisioning"), text);
    let claims = cluster.claims();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["spec"]["resources"]["requests"]["cpu"], "3");
    let status = &cluster.get(&format!("{BUFFERS}/b")).unwrap()["status"];
    assert_eq!((&status["replicas"], &status["podTemplateRef"]["name"]), (&json!(3), &json!("t")));
    assert_eq!(status["podTemplateGeneration"], 1);
    // It is known whose the instance is as soon as there is one.
    let name = launch(&cluster, &claims[0]);
    run(&mut cluster, 5);
    let text = "True FitsExistingCapacity: All 3 virtual pods fit on existing capacity";
    assert_eq!(said(&cluster, "b", "Provisioning"), text);
    let id = format!("kwok://{name}");
    {
        let state = cluster.context.cluster.read();
        assert_eq!(state.buffer_pods(&id), 3);
        assert!(!state.is_nominated(&id, cluster.now()), "nobody comes");
    }
    cluster.delete(&format!("{BUFFERS}/b"));
    run(&mut cluster, 5);
    assert_eq!(cluster.context.cluster.read().buffer_pods(&id), 0);
    assert_eq!(cluster.claims().len(), 1);
    // Nobody has heard of pods that are not there.
    let told = cluster.context.events.published();
    assert!(told.iter().all(|event| !event.about.name.starts_with("capacity-buffer-")), "{told:?}");
    assert_eq!(
        cluster.context.metrics.value(&SCHEDULER_PENDING_PODS_BY_ZONE, &["provisioner", "flexible"]),
        None
    );
}

#[test]
fn a_buffer_that_fits_nowhere_says_so_and_hinders_nobody() {
    let mut cluster = cluster();
    cluster.apply(&template("huge", "1000"));
    cluster.apply(&template("t", "1"));
    cluster.apply(&buffer("huge", &json!({"spec": {"podTemplateRef": {"name": "huge"}, "replicas": 2}})));
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 5);
    let text = "False RequiresNewCapacity: 0/2 virtual pods required new capacity, 2 failed";
    assert_eq!(said(&cluster, "huge", "Provisioning"), text);
    let text = "False RequiresNewCapacity: 3/3 virtual pods required new capacity, 0 failed";
    assert_eq!(said(&cluster, "b", "Provisioning"), text);
    assert_eq!(cluster.claims().len(), 1);
    assert_eq!(cluster.context.metrics.value(&SCHEDULER_UNSCHEDULABLE_PODS, &["provisioner"]), Some(2.0));
    // Its users are told why, again after five minutes, and nobody else is.
    let told = |cluster: &Operated| -> Vec<(String, String)> {
        let published = cluster.context.events.published().into_iter();
        let failed = published.filter(|event| &*event.reason == "FailedScheduling");
        failed.map(|event| (event.about.name.to_string(), event.message)).collect()
    };
    let all = told(&cluster);
    assert!(all.len() == 1 && all[0].0 == "huge", "{all:?}");
    assert!(all[0].1.starts_with("Failed to keep room, for 2 of 2 pods, "), "{all:?}");
    assert!(all[0].1.contains("1,000 CPU"), "{all:?}");
    run(&mut cluster, 240);
    assert_eq!(told(&cluster).len(), 1);
    run(&mut cluster, 120);
    assert_eq!(told(&cluster).len(), 2);
}

#[test]
fn users_are_told_of_a_template_that_makes_no_sense() {
    let mut cluster = cluster();
    let term = json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    let mut odd: Value = serde_json::from_str(&template("t", "1")).unwrap();
    merge(&mut odd, &json!({"template": {"spec": {"affinity": affinity}}}));
    cluster.apply(&odd.to_string());
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 5);
    let told = cluster.context.events.published();
    let told: Vec<&str> = told
        .iter()
        .filter(|it| &*it.about.name == "b" && &*it.reason == "FailedScheduling")
        .map(|it| &*it.message)
        .collect();
    assert!(told.len() == 1 && told[0].starts_with("Failed to keep room, "), "{told:?}");
}

#[test]
fn one_of_many_buffers_follows_its_workload_at_once() {
    let mut cluster = cluster();
    cluster.apply(&template("t", "1"));
    for number in 0..600 {
        cluster.apply(&buffer(&format!("b{number}"), &json!({"spec": {"replicas": 0}})));
    }
    let spec = json!({
        "replicas": 1, "selector": {"matchLabels": {"app": "w"}},
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    });
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "default"}, "spec": spec,
    });
    cluster.apply(&workload.to_string());
    let mut follows: Value = serde_json::from_str(&buffer("follows", &json!({}))).unwrap();
    let reference = json!({"apiGroup": "apps", "kind": "Deployment", "name": "w"});
    follows["spec"] = json!({"scalableRef": reference, "percentage": 100});
    cluster.apply(&follows.to_string());
    run(&mut cluster, 300);
    let replicas = |cluster: &Operated| {
        cluster.get(&format!("{BUFFERS}/follows")).unwrap()["status"]["replicas"].clone()
    };
    assert_eq!(replicas(&cluster), 1);
    let path = "/apis/apps/v1/namespaces/default/deployments/w";
    cluster.patch(path, &json!({"spec": {"replicas": 4}}));
    run(&mut cluster, 3);
    assert_eq!(replicas(&cluster), 4);
}

#[test]
fn a_buffer_waits_for_its_template_and_loses_it_again() {
    let mut cluster = cluster();
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 5);
    let missing = "False PodTemplateNotFound: PodTemplate \"t\" not found";
    assert_eq!(said(&cluster, "b", "ReadyForProvisioning"), missing);
    // That was not an error, and the provisioner was told.
    let not_ready = "False NotReadyForProvisioning: Buffer is not ReadyForProvisioning";
    assert_eq!(said(&cluster, "b", "Provisioning"), not_ready);
    cluster.apply(&template("t", "1"));
    run(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 1);
    let name = launch(&cluster, &cluster.claims()[0]);
    run(&mut cluster, 5);
    let id = format!("kwok://{name}");
    assert_eq!(cluster.context.cluster.read().buffer_pods(&id), 3);
    cluster.delete("/api/v1/namespaces/default/podtemplates/t");
    run(&mut cluster, 5);
    assert_eq!(said(&cluster, "b", "ReadyForProvisioning"), missing);
    assert_eq!(said(&cluster, "b", "Provisioning"), not_ready);
    assert_eq!(cluster.context.cluster.read().buffer_pods(&id), 0);
}

#[test]
fn a_buffer_that_asks_for_nothing_is_empty() {
    let mut cluster = cluster();
    cluster.apply(&template("t", "1"));
    cluster.apply(&buffer("b", &json!({"spec": {"replicas": 0}})));
    run(&mut cluster, 5);
    assert_eq!(said(&cluster, "b", "Provisioning"), "False BufferEmpty: Buffer has zero desired replicas");
    assert_eq!(cluster.claims().len(), 0);
}

#[test]
fn a_buffer_follows_the_scale_of_its_workload() {
    let mut cluster = cluster();
    let spec = json!({"replicas": 0, "selector": {"matchLabels": {"app": "w"}}, "template": {
        "metadata": {"labels": {"app": "w"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
    }});
    let workload = |kind: &str| {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": "default"}, "spec": spec})
            .to_string()
    };
    let of = |kind: &str| {
        json!({"spec": {"podTemplateRef": null, "replicas": null, "percentage": 50,
            "scalableRef": {"kind": kind, "name": "w"}}})
    };
    for (kind, name) in [("Deployment", "d"), ("StatefulSet", "s"), ("ReplicaSet", "r")] {
        cluster.apply(&buffer(name, &of(kind)));
    }
    run(&mut cluster, 2);
    let missing = "False ScalableRefNotFound: StatefulSet.apps \"w\" not found";
    assert_eq!(said(&cluster, "s", "ReadyForProvisioning"), missing);
    for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
        cluster.apply(&workload(kind));
    }
    run(&mut cluster, 2);
    let replicas = |cluster: &Operated, name: &str| {
        cluster.get(&format!("{BUFFERS}/{name}")).unwrap()["status"]["replicas"].clone()
    };
    for (plural, name) in [("deployments", "d"), ("statefulsets", "s"), ("replicasets", "r")] {
        assert_eq!(replicas(&cluster, name), 0, "{plural}");
        let path = format!("/apis/apps/v1/namespaces/default/{plural}/w");
        cluster.patch(&path, &json!({"spec": {"replicas": 5}}));
        run(&mut cluster, 2);
        assert_eq!(replicas(&cluster, name), 3, "{plural}");
        cluster.delete(&path);
        run(&mut cluster, 2);
        assert!(
            said(&cluster, name, "ReadyForProvisioning").starts_with("False ScalableRefNotFound"),
            "{plural}"
        );
    }
}

#[test]
fn a_status_that_cannot_be_written_wakes_nobody() {
    let mut cluster = cluster();
    cluster.apply(&template("t", "1"));
    run(&mut cluster, 2);
    cluster.faults.set_rules(vec![Rule::on("patch", "capacitybuffers", 1.0, Fault::Conflict)]);
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 20);
    assert_eq!(said(&cluster, "b", "ReadyForProvisioning"), "");
    assert_eq!(cluster.claims().len(), 0);
    cluster.faults.set_rules(vec![Rule::on("patch", "capacitybuffers", 1.0, Fault::InternalError)]);
    run(&mut cluster, 20);
    assert_eq!(cluster.claims().len(), 0);
    cluster.faults.set_rules(Vec::new());
    run(&mut cluster, 70);
    assert_eq!(cluster.claims().len(), 1);
    assert!(said(&cluster, "b", "ReadyForProvisioning").starts_with("True Resolved"));
}

#[test]
fn room_that_somebody_else_took_is_kept_anew_within_half_a_minute() {
    let mut cluster = cluster();
    cluster.apply(&template("t", "2"));
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 5);
    let name = launch(&cluster, &cluster.claims()[0]);
    run(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 1);
    // The instance has room for four pods of two cores.
    let labels = json!({
        "karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
    });
    let amounts = json!({"cpu": "8", "memory": "16Gi", "pods": "100"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels},
        "spec": {"providerID": format!("kwok://{name}")}, "status": {"capacity": amounts, "allocatable": amounts},
    });
    cluster.apply(&node.to_string());
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"nodeName": "n", "containers": [container]},
    });
    cluster.apply(&pod.to_string());
    run(&mut cluster, 35);
    assert_eq!(cluster.claims().len(), 2);
    assert_eq!(cluster.context.cluster.read().buffer_pods(&format!("kwok://{name}")), 2);
}

#[test]
fn without_the_gate_nobody_looks_at_buffers() {
    let mut cluster = Operated::with(World::new(1), settings(false), crate::provisioner::controllers);
    cluster.apply(NODE_POOL);
    cluster.apply(&template("t", "1"));
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 60);
    assert!(cluster.context.cluster.is_listed());
    assert!(cluster.context.cluster.read().capacity_buffers.is_empty());
    assert_eq!(said(&cluster, "b", "ReadyForProvisioning"), "");
    assert_eq!(cluster.claims().len(), 0);
}

#[test]
fn conditions_of_buffers_are_metrics_and_events() {
    let mut cluster = cluster();
    cluster.apply(&buffer("b", &json!({})));
    run(&mut cluster, 12);
    cluster.apply(&template("t", "1"));
    run(&mut cluster, 12);
    let page = cluster.block_on(async { cluster.context.metrics.page() });
    let has = |start: &str, parts: &[&str]| {
        page.lines().any(|line| line.starts_with(start) && parts.iter().all(|part| line.contains(part)))
    };
    let own = "operator_capacitybuffer_status_condition_count{";
    assert!(has(
        own,
        &["namespace=\"default\"", "name=\"b\"", "type=\"ReadyForProvisioning\"", "reason=\"Resolved\""]
    ));
    assert!(has(own, &["type=\"Ready\"", "status=\"Unknown\"", "reason=\"AwaitingReconciliation\""]));
    let shared = ["group=\"autoscaling.x-k8s.io\"", "kind=\"CapacityBuffer\"", "type=\"Provisioning\""];
    assert!(has("operator_status_condition_count{", &shared));
    assert!(has(
        "operator_capacitybuffer_status_condition_transitions_total{",
        &["type=\"ReadyForProvisioning\""]
    ));
    let told = cluster.context.events.published();
    let text = "Status condition transitioned, Type: ReadyForProvisioning, Status: False -> True, Reason: Resolved, \
                Message: Pod template resolved successfully";
    assert!(told.iter().any(|event| &*event.about.name == "b" && event.message == text), "{told:?}");
}

/// A cluster with disruption and nodes, on which virtual pods are said to be.
fn empty_nodes(nodes: &[&str]) -> Operated {
    let cluster = Operated::with(World::new(1), settings(true), |context| {
        let mut all = crate::disruption::controllers(context);
        all.extend(crate::node_pool::controllers(context));
        all
    });
    let disruption = "spec:\n  disruption: {budgets: [{nodes: '100%'}]}\n  template";
    cluster.apply(&NODE_POOL.replace("spec:\n  template", disruption));
    for node in nodes {
        for (mut object, version) in
            node_objects(node, "default", &json!({}), &json!({})).into_iter().zip(["v1", "karpenter.sh/v1"])
        {
            object["apiVersion"] = version.into();
            object["metadata"].as_object_mut().unwrap().remove("uid");
            cluster.apply(&object.to_string());
        }
    }
    cluster
}

fn set_counts(cluster: &Operated, counts: &[(&str, u32)]) {
    let counts = counts.iter().map(|(node, count)| (format!("kwok://{node}").into(), *count)).collect();
    cluster.context.cluster.update(|state| state.set_buffer_pods(counts));
}

fn left(cluster: &Operated) -> Vec<String> {
    let names = cluster.claims();
    names.iter().map(|claim| claim["metadata"]["name"].as_str().unwrap().replace("claim-", "")).collect()
}

#[test]
fn virtual_pods_protect_their_nodes_from_emptiness_and_no_others() {
    let mut cluster = empty_nodes(&["n1", "n2", "n3"]);
    set_counts(&cluster, &[("n1", 1), ("n2", 4)]);
    run(&mut cluster, 60);
    assert_eq!(left(&cluster), ["n1", "n2"]);
    let told = cluster.context.events.published();
    let blocked = told.iter().filter(|event| &*event.reason == "Unconsolidatable");
    assert!(blocked.clone().any(|event| event.message == "Node \"n1\" has buffer pods"));
    assert_eq!(cluster.context.metrics.value(&DISRUPTION_ELIGIBLE_NODES, &["empty"]), Some(0.0));
    // They go when nothing is kept there any more, whether that is said or not.
    set_counts(&cluster, &[("n1", 0)]);
    run(&mut cluster, 60);
    assert!(left(&cluster).is_empty());
}

#[test]
fn a_node_with_real_and_virtual_pods_is_not_empty() {
    let mut cluster = empty_nodes(&["n1"]);
    set_counts(&cluster, &[("n1", 1)]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    });
    cluster.apply(&pod.to_string());
    run(&mut cluster, 60);
    assert_eq!(left(&cluster), ["n1"]);
    set_counts(&cluster, &[]);
    run(&mut cluster, 60);
    assert_eq!(left(&cluster), ["n1"]);
    cluster.delete("/api/v1/namespaces/default/pods/a");
    run(&mut cluster, 90);
    assert!(left(&cluster).is_empty());
}

#[test]
fn room_that_is_kept_meanwhile_saves_a_node_that_was_about_to_go() {
    let mut cluster = empty_nodes(&["n1"]);
    run(&mut cluster, 10);
    set_counts(&cluster, &[("n1", 2)]);
    run(&mut cluster, 60);
    assert_eq!(left(&cluster), ["n1"]);
}
