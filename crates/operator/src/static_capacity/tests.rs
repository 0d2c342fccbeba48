//! 16.26, 27.20: static pools in a cluster.

use std::time::Duration;

use api::names::controllers::NODE_CLAIM_LIFECYCLE;
use api::names::metrics::NODECLAIMS_CREATED;
use cluster::state::Key;
use embedded::faults::{Fault, Rule};
use futures::future::join_all;
use http::Method;
use runtime::Settings;
use runtime::controller::Again;
use runtime::settings::Gates;
use serde_json::{Value, json};
use testkit::World;

use super::provisioning;
use crate::testing::{NODE_POOL, Operated, merge, pool_object};

/// A static pool that is ready, with changes.
pub(super) fn static_pool(replicas: i64, change: &Value) -> Value {
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let mut pool =
        pool_object("p", &json!({"spec": {"replicas": replicas}, "status": {"conditions": [ready]}}));
    merge(&mut pool, change);
    pool
}

/// A claim of a pool that has no instance yet, with changes.
pub(super) fn claim_object(name: &str, pool: &str, change: &Value) -> Value {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut claim = json!({
        "kind": "NodeClaim",
        "metadata": {
            "name": name, "uid": format!("uid-of-{name}"), "labels": {"karpenter.sh/nodepool": pool},
        },
        "spec": {"requirements": [], "nodeClassRef": class},
    });
    merge(&mut claim, change);
    claim
}

/// A cluster with the controllers of pools, and with those of static ones if `at_work`.
fn cluster(at_work: bool) -> Operated {
    let gates = Gates { static_capacity: true, ..Gates::default() };
    let settings = Settings { gates, ..Settings::default() };
    Operated::with(World::new(1), settings, |context| {
        let mut all = crate::node_pool::controllers(context);
        if at_work {
            all.extend(super::controllers(context));
        }
        all
    })
}

fn manifest(replicas: u64, change: &Value) -> String {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"},
        "spec": {"replicas": replicas, "template": {"spec": {"requirements": [], "nodeClassRef": class}}},
    });
    merge(&mut pool, change);
    pool.to_string()
}

/// As `kubectl scale` does it.
fn scale(cluster: &Operated, replicas: u64) {
    let path = "/apis/karpenter.sh/v1/nodepools/p/scale";
    let change = json!({"spec": {"replicas": replicas}});
    let (code, answer) = cluster.send(Method::PATCH, path, "application/merge-patch+json", &change);
    assert!(code.is_success(), "{answer}");
    // Zero is not written.
    let told = answer["spec"]["replicas"].as_u64().unwrap_or_default();
    assert_eq!((answer["kind"].as_str(), told), (Some("Scale"), replicas));
}

fn pass(cluster: &mut Operated, seconds: u64) {
    cluster.run_for(Duration::from_secs(seconds));
}

#[test]
fn a_pool_is_filled_topped_up_and_emptied_as_it_is_scaled() {
    let mut cluster = cluster(true);
    cluster.apply(&manifest(0, &json!({})));
    pass(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 0);
    for (replicas, seconds) in [(3, 2), (5, 2), (5, 120), (1, 2), (0, 2), (2, 2)] {
        scale(&cluster, replicas);
        pass(&mut cluster, seconds);
        assert_eq!(cluster.claims().len() as u64, replicas, "after {seconds} s");
    }
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&NODECLAIMS_CREATED, &["provisioned", "p", "false"]), Some(7.0));
    assert_eq!(cluster.context.cluster.read().reserved("p"), 0);
    // A claim that somebody deletes is replaced.
    let name = cluster.claims()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.delete(&format!("/apis/karpenter.sh/v1/nodeclaims/{name}"));
    pass(&mut cluster, 61);
    let names: Vec<Value> = cluster.claims().iter().map(|claim| claim["metadata"]["name"].clone()).collect();
    assert!(names.len() == 2 && !names.contains(&name.into()), "{names:?}");
}

#[test]
fn a_pool_waits_until_it_is_ready() {
    let mut cluster = cluster(true);
    let class = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default";
    cluster.delete(class);
    cluster.apply(&manifest(2, &json!({})));
    pass(&mut cluster, 90);
    assert_eq!(cluster.claims().len(), 0);
    cluster.apply(crate::testing::NODE_CLASS);
    pass(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 2);
}

#[test]
fn claims_are_made_of_the_template() {
    let mut cluster = cluster(true);
    cluster.apply(&manifest(
        1,
        &json!({"spec": {"template": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/owner": "me"}},
            "spec": {
                "requirements": [
                    {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Gt", "values": ["3"]},
                    {"key": "example.com/tier", "operator": "In", "values": ["b", "a"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2},
                ],
                "taints": [{"key": "dedicated", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "start", "effect": "NoExecute"}],
                "expireAfter": "48h", "terminationGracePeriod": "1h0m0s",
            },
        }}}),
    ));
    pass(&mut cluster, 5);
    let claims = cluster.claims();
    let (claim, pool) = (&claims[0], cluster.ours("nodepools/p"));
    let metadata = &claim["metadata"];
    assert!(metadata["name"].as_str().unwrap().starts_with("p-"));
    assert_eq!(
        metadata["labels"],
        json!({
            "team": "a", "example.com/tier": "a", "karpenter.sh/nodepool": "p",
            "karpenter.kwok.sh/kwoknodeclass": "default",
        })
    );
    let annotations = &metadata["annotations"];
    assert_eq!(annotations["example.com/owner"], "me");
    let hash = "karpenter.sh/nodepool-hash";
    assert_eq!(annotations[hash], pool["metadata"]["annotations"][hash]);
    assert_eq!(metadata["ownerReferences"][0]["uid"], pool["metadata"]["uid"]);
    let spec = &claim["spec"];
    for field in ["taints", "startupTaints", "expireAfter", "terminationGracePeriod", "nodeClassRef"] {
        assert_eq!(spec[field], pool["spec"]["template"]["spec"][field], "{field}");
    }
    // Neither types nor capacity types are chosen, nothing is requested, and bounds are written as they are compared.
    let written = |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
    let mut any = json!({"key": "node.kubernetes.io/instance-type", "operator": "Exists"});
    any["minValues"] = 2.into();
    assert_eq!(
        spec["requirements"],
        json!([
            written("example.com/tier", "In", &["a", "b"]),
            written("karpenter.kwok.sh/instance-cpu", "Gte", &["4"]),
            written("karpenter.kwok.sh/kwoknodeclass", "In", &["default"]),
            written("karpenter.sh/nodepool", "In", &["p"]),
            any,
            written("team", "In", &["a"]),
        ])
    );
    assert!(spec["resources"]["requests"].as_object().is_none_or(serde_json::Map::is_empty), "{spec}");
}

#[test]
fn a_limit_holds_and_the_rest_comes_when_it_is_raised() {
    let mut cluster = cluster(true);
    cluster.apply(&manifest(5, &json!({"spec": {"limits": {"nodes": "3"}}})));
    pass(&mut cluster, 60);
    assert_eq!((cluster.claims().len(), cluster.context.cluster.read().reserved("p")), (3, 0));
    let (context, key) = (cluster.context.clone(), Key::cluster("p"));
    assert_eq!(cluster.block_on(provisioning::reconcile(&context, &key)).ok(), Some(Again::secs(30)));
    let raised = json!({"spec": {"limits": {"nodes": "4"}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/p", &raised);
    pass(&mut cluster, 90);
    assert_eq!(cluster.claims().len(), 4);
}

#[test]
fn a_thousand_nodes_are_asked_for_once() {
    let mut cluster = cluster(true);
    cluster.apply(&manifest(1000, &json!({})));
    pass(&mut cluster, 30);
    assert_eq!(cluster.claims().len(), 1000);
}

#[test]
fn a_typing_error_costs_some_claims_which_go_when_it_is_mended() {
    let mut cluster = cluster(true);
    cluster.apply(&manifest(i64::MAX as u64, &json!({})));
    // No claim gets an instance here, so that no more are made than may wait for one.
    pass(&mut cluster, 120);
    assert_eq!((cluster.claims().len(), cluster.context.cluster.read().reserved("p")), (1000, 0));
    cluster.patch("/apis/karpenter.sh/v1/nodepools/p", &json!({"spec": {"replicas": 3}}));
    pass(&mut cluster, 30);
    assert_eq!((cluster.claims().len(), cluster.context.cluster.read().reserved("p")), (3, 0));
}

#[test]
fn one_look_creates_one_batch() {
    let mut cluster = cluster(false);
    cluster.apply(&manifest(9_000_000_000, &json!({})));
    pass(&mut cluster, 5);
    let (context, key) = (cluster.context.clone(), Key::cluster("p"));
    let again = cluster.block_on(provisioning::reconcile(&context, &key));
    assert_eq!(again.ok(), Some(Again::After(Duration::ZERO)));
    assert_eq!((cluster.claims().len(), context.cluster.read().reserved("p")), (500, 0));
}

#[test]
fn fifty_at_the_same_time_exceed_neither_the_limit_nor_the_replicas() {
    for (replicas, limit, expected) in [(20, "10", 10), (10, "20", 10)] {
        let mut cluster = cluster(false);
        cluster.apply(&manifest(replicas, &json!({"spec": {"limits": {"nodes": limit}}})));
        pass(&mut cluster, 5);
        let (context, key) = (cluster.context.clone(), Key::cluster("p"));
        let results = cluster
            .block_on(async { join_all((0..50).map(|_| provisioning::reconcile(&context, &key))).await });
        assert!(results.iter().all(Result::is_ok));
        assert_eq!((cluster.claims().len(), context.cluster.read().reserved("p")), (expected, 0));
    }
}

#[test]
fn what_fails_is_tried_again_and_keeps_no_room() {
    let mut cluster = cluster(false);
    cluster.apply(&manifest(2, &json!({"spec": {"limits": {"nodes": "2"}}})));
    pass(&mut cluster, 5);
    let (context, key) = (cluster.context.clone(), Key::cluster("p"));
    cluster.faults.set_rules(vec![Rule::on("create", "nodeclaims", 1.0, Fault::InternalError)]);
    let failed = cluster.block_on(provisioning::reconcile(&context, &key));
    assert!(failed.is_err());
    assert_eq!((cluster.claims().len(), context.cluster.read().reserved("p")), (0, 0));
    cluster.faults.set_rules(Vec::new());
    assert!(cluster.block_on(provisioning::reconcile(&context, &key)).is_ok());
    assert_eq!(cluster.claims().len(), 2);
}

#[test]
fn claims_that_cannot_be_deleted_now_are_deleted_later() {
    let mut cluster = cluster(true);
    cluster.apply(&manifest(2, &json!({})));
    pass(&mut cluster, 5);
    cluster.faults.set_rules(vec![Rule::on("delete", "nodeclaims", 1.0, Fault::InternalError)]);
    scale(&cluster, 1);
    pass(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 2);
    cluster.faults.set_rules(Vec::new());
    pass(&mut cluster, 15);
    assert_eq!(cluster.claims().len(), 1);
}

#[test]
fn nothing_happens_unless_the_feature_is_on() {
    let mut cluster = Operated::by(|context| {
        let mut all = crate::node_pool::controllers(context);
        all.extend(super::controllers(context));
        all
    });
    cluster.apply(&manifest(2, &json!({})));
    pass(&mut cluster, 120);
    assert_eq!(cluster.claims().len(), 0);
}

/// Pretends that the cloud has launched a claim with eight cores, whatever it answers.
fn launch(cluster: &Operated, claim: &Value) {
    let name = claim["metadata"]["name"].as_str().unwrap();
    let path = format!("/apis/karpenter.sh/v1/nodeclaims/{name}");
    let labels = json!({
        "node.kubernetes.io/instance-type": "c-8x-amd64-linux", "topology.kubernetes.io/zone": "test-zone-a",
        "karpenter.sh/capacity-type": "spot", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    cluster.patch(&path, &json!({"metadata": {"labels": labels}}));
    let amounts = json!({"cpu": "8", "memory": "16Gi", "pods": "100", "ephemeral-storage": "20Gi"});
    let launched = json!({
        "type": "Launched", "status": "True", "reason": "Launched", "message": "",
        "lastTransitionTime": cluster.now().to_string(),
    });
    let status = json!({
        "providerID": format!("kwok://{name}"), "capacity": amounts, "allocatable": amounts, "conditions": [launched],
    });
    cluster.patch(&format!("{path}/status"), &json!({"status": status}));
}

#[test]
fn a_pool_whose_nodes_cannot_be_launched_keeps_no_pod_waiting() {
    let gates = Gates { static_capacity: true, ..Gates::default() };
    let settings = Settings { gates, ..Settings::default() };
    let mut cluster = Operated::with(World::new(1), settings, |context| {
        let mut all = crate::node_pool::controllers(context);
        all.extend(super::controllers(context));
        all.extend(crate::provisioner::controllers(context));
        // What becomes of claims without instances, but not of those without nodes.
        let of_claims = crate::node_claim::controllers(context).into_iter();
        all.extend(of_claims.filter(|each| each.name == NODE_CLAIM_LIFECYCLE));
        all
    });
    // Every launch fails here, for reasons that may pass.
    cluster.apply(&manifest(2, &json!({})));
    cluster.apply(NODE_POOL);
    pass(&mut cluster, 20);
    assert_eq!(cluster.claims().len(), 2);
    let mut launched = Vec::new();
    for minute in 0..12 {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("w{minute}"), "namespace": "default"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "5"}}}]},
        });
        cluster.apply(&pod.to_string());
        pass(&mut cluster, 15);
        let claims = cluster.claims();
        let new: Vec<&Value> = claims
            .iter()
            .filter(|it| it["metadata"]["labels"]["karpenter.sh/nodepool"] == "default")
            .filter(|it| !launched.contains(&it["metadata"]["name"]))
            .collect();
        assert_eq!(new.len(), 1, "in minute {minute}");
        launch(&cluster, new[0]);
        launched.push(new[0]["metadata"]["name"].clone());
        pass(&mut cluster, 45);
    }
}
