//! Conditions of claims, decided and in a cluster.

use std::time::Duration;

use api::conditions::HasConditions;
use serde_json::json;

use super::*;
use crate::testing::{NODE_POOL, Operated, claim, pool};

const CLAIM: &str = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: c
  labels: {karpenter.sh/nodepool: default, kubernetes.io/os: linux}
  annotations: {karpenter.sh/nodepool-hash: '1', karpenter.sh/nodepool-hash-version: v3}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
status:
  providerID: kwok://c
  conditions:
  - {type: Launched, status: 'True', reason: Launched, message: '', lastTransitionTime: '2026-01-05T09:00:00Z'}
  - {type: Registered, status: 'True', reason: Registered, message: '', lastTransitionTime: '2026-01-05T09:00:00Z'}
  - {type: Initialized, status: 'True', reason: Initialized, message: '', lastTransitionTime: '2026-01-05T09:00:00Z'}
";

fn initialized() -> NodeClaim {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let all = [condition("Launched"), condition("Registered"), condition("Initialized")];
    claim("c", &json!({"status": {"conditions": all}}))
}

#[test]
fn both_conditions_come_and_go_in_one_pass() {
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let (marked, again) =
        decide(&initialized(), &pool("p", &json!({})), Some(&Drift::Yes("Why".to_owned())), now);
    let drifted = marked.condition("Drifted").unwrap();
    assert_eq!((&*drifted.reason, &*drifted.message), ("Why", "Why"));
    assert!(marked.is_true("Consolidatable"));
    assert_eq!(again, Again::After(Duration::from_mins(5)));
    let never = pool("p", &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
    let (cleared, _) = decide(&marked, &never, Some(&Drift::No), now);
    assert!(cleared.condition("Drifted").is_none() && cleared.condition("Consolidatable").is_none());
}

#[test]
fn the_claim_is_looked_at_again_when_it_will_have_been_quiet() {
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let patient = pool("p", &json!({"spec": {"disruption": {"consolidateAfter": "3m"}}}));
    let (after, again) = decide(&initialized(), &patient, Some(&Drift::No), now);
    assert!(after.condition("Consolidatable").is_none());
    assert_eq!(again, Again::After(Duration::from_mins(2)));
}

#[test]
fn claims_of_static_pools_are_not_consolidated_and_unlaunched_ones_do_not_drift() {
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let fixed = pool("p", &json!({"spec": {"replicas": 1}}));
    let (after, _) = decide(&initialized(), &fixed, Some(&Drift::NotLaunched), now);
    assert!(after.condition("Consolidatable").is_none() && after.condition("Drifted").is_none());
    // Without a verdict drift stays as it was.
    let (drifted, _) = decide(&initialized(), &fixed, Some(&Drift::Yes("Why".to_owned())), now);
    assert!(decide(&drifted, &fixed, None, now).0.is_true("Drifted"));
}

#[test]
fn claims_in_a_cluster_are_marked() {
    let mut cluster = Operated::by(controllers);
    cluster.apply(
        &NODE_POOL.replace("spec:\n  template", "spec:\n  disruption: {consolidateAfter: 1m}\n  template"),
    );
    cluster.apply(CLAIM);
    cluster.settle();
    assert_eq!(cluster.condition("nodeclaims/c", "Consolidatable"), "");
    cluster.run_for(Duration::from_mins(1));
    assert_eq!(cluster.condition("nodeclaims/c", "Consolidatable"), "True Consolidatable");
    assert_eq!(cluster.condition("nodeclaims/c", "Drifted"), "");
    stamp(&cluster, "2");
    cluster.settle();
    assert_eq!(cluster.condition("nodeclaims/c", "Drifted"), "True NodePoolDrifted");
    let event = json!({"status": {"lastPodEventTime": cluster.now().to_string()}});
    cluster.patch("/apis/karpenter.sh/v1/nodeclaims/c/status", &event);
    cluster.settle();
    assert_eq!(cluster.condition("nodeclaims/c", "Consolidatable"), "");
}

/// The claim of [`CLAIM`] under another name, with something replaced.
fn named(name: &str, from: &str, to: &str) -> String {
    assert!(CLAIM.contains(from));
    let claim = CLAIM.replace("name: c\n", &format!("name: {name}\n"));
    claim.replace("kwok://c", &format!("kwok://{name}")).replace(from, to)
}

fn drifted(cluster: &Operated, claim: &str) -> String {
    cluster.condition(&format!("nodeclaims/{claim}"), "Drifted")
}

/// Changes what the pool asks of labels.
fn require(cluster: &Operated, key: &str, values: &[&str]) {
    let requirement = json!({"key": key, "operator": "In", "values": values});
    let change = json!({"spec": {"template": {"spec": {"requirements": [requirement]}}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
}

fn stamp(cluster: &Operated, hash: &str) {
    let stamp = json!({"metadata": {"annotations": {
        "karpenter.sh/nodepool-hash": hash, "karpenter.sh/nodepool-hash-version": "v3",
    }}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &stamp);
}

#[test]
fn the_cloud_is_asked_after_the_pool_and_drift_ends_when_nobody_says_so_any_more() {
    let mut cluster = Operated::by(controllers);
    *cluster.cloud.drift.lock() = Some("CloudDrifted".to_owned());
    cluster.apply(NODE_POOL);
    cluster.apply(CLAIM);
    cluster.settle();
    assert_eq!(drifted(&cluster, "c"), "True CloudDrifted");
    require(&cluster, "kubernetes.io/os", &["windows"]);
    cluster.settle();
    assert_eq!(drifted(&cluster, "c"), "True RequirementsDrifted");
    stamp(&cluster, "2");
    cluster.settle();
    assert_eq!(drifted(&cluster, "c"), "True NodePoolDrifted");
    // Whatever the reason, it is as old as it was.
    let since = |cluster: &Operated| {
        let claim = cluster.ours("nodeclaims/c");
        let all = claim["status"]["conditions"].as_array().unwrap().clone();
        all.iter().find(|it| it["type"] == "Drifted").unwrap()["lastTransitionTime"].clone()
    };
    let first = since(&cluster);
    stamp(&cluster, "1");
    cluster.settle();
    assert_eq!((drifted(&cluster, "c"), since(&cluster)), ("True RequirementsDrifted".to_owned(), first));
    require(&cluster, "kubernetes.io/os", &["linux"]);
    *cluster.cloud.drift.lock() = None;
    cluster.run_for(Duration::from_mins(5) + Duration::from_secs(5));
    assert_eq!(drifted(&cluster, "c"), "");
}

#[test]
fn a_claim_drifts_when_its_instance_type_is_no_longer_offered() {
    let mut cluster = Operated::by(controllers);
    cluster.apply(NODE_POOL);
    let labels = "os: linux, node.kubernetes.io/instance-type: c-4x-amd64-linux, karpenter.sh/capacity-type: spot, \
        topology.kubernetes.io/zone: test-zone-a";
    cluster.apply(&named("offered", "os: linux", labels));
    cluster.apply(&named("gone", "os: linux", &labels.replace("c-4x", "c-5x")));
    cluster.run_for(Duration::from_mins(55));
    // Catalogues may be a little behind.
    assert_eq!((drifted(&cluster, "offered"), drifted(&cluster, "gone")), (String::new(), String::new()));
    cluster.run_for(Duration::from_mins(11));
    assert_eq!(drifted(&cluster, "offered"), "");
    assert_eq!(drifted(&cluster, "gone"), "True InstanceTypeNotFound");
    // What was found is looked up again after half an hour.
    let mut types = cluster.cloud.types.lock().to_vec();
    types.retain(|each| each.name != "c-4x-amd64-linux");
    *cluster.cloud.types.lock() = types.into();
    cluster.run_for(Duration::from_mins(36));
    assert_eq!(drifted(&cluster, "offered"), "True InstanceTypeNotFound");
}

#[test]
fn only_the_claims_that_a_change_of_the_pool_concerns_drift() {
    let mut cluster = Operated::by(controllers);
    cluster.apply(NODE_POOL);
    cluster.apply(&named("linux", "os: linux", "os: linux"));
    cluster.apply(&named("windows", "os: linux", "os: windows"));
    require(&cluster, "kubernetes.io/os", &["linux", "windows"]);
    cluster.settle();
    assert_eq!((drifted(&cluster, "linux"), drifted(&cluster, "windows")), (String::new(), String::new()));
    require(&cluster, "kubernetes.io/os", &["linux"]);
    cluster.settle();
    assert_eq!(drifted(&cluster, "linux"), "");
    assert_eq!(drifted(&cluster, "windows"), "True RequirementsDrifted");
}

#[test]
fn claims_of_others_and_claims_without_a_pool_are_left_alone() {
    let mut cluster = Operated::by(controllers);
    *cluster.cloud.drift.lock() = Some("CloudDrifted".to_owned());
    let pool =
        NODE_POOL.replace("spec:\n  template", "spec:\n  disruption: {consolidateAfter: 0s}\n  template");
    cluster.apply(&pool);
    let foreign = "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}";
    let ours = "{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}";
    cluster.apply(&named("foreign", ours, foreign));
    cluster.apply(&named("lost", "karpenter.sh/nodepool: default", "karpenter.sh/nodepool: gone"));
    cluster.apply(&named("alone", "karpenter.sh/nodepool: default, ", ""));
    cluster.apply(CLAIM);
    cluster.settle();
    for name in ["foreign", "lost", "alone"] {
        assert_eq!(drifted(&cluster, name), "", "{name}");
        assert_eq!(cluster.condition(&format!("nodeclaims/{name}"), "Consolidatable"), "", "{name}");
    }
    assert_eq!(drifted(&cluster, "c"), "True CloudDrifted");
    assert_eq!(cluster.condition("nodeclaims/c", "Consolidatable"), "True Consolidatable");
}

#[test]
fn what_is_not_launched_any_more_has_not_drifted() {
    for status in ["Unknown", "False"] {
        let mut cluster = Operated::by(controllers);
        *cluster.cloud.drift.lock() = Some("CloudDrifted".to_owned());
        cluster.apply(NODE_POOL);
        cluster.apply(CLAIM);
        cluster.settle();
        assert_eq!(drifted(&cluster, "c"), "True CloudDrifted");
        let claim = cluster.ours("nodeclaims/c");
        let mut conditions = claim["status"]["conditions"].as_array().unwrap().clone();
        conditions.iter_mut().find(|it| it["type"] == "Launched").unwrap()["status"] = status.into();
        let change = json!({"status": {"conditions": conditions}});
        cluster.patch("/apis/karpenter.sh/v1/nodeclaims/c/status", &change);
        cluster.settle();
        assert_eq!(drifted(&cluster, "c"), "", "{status}");
    }
}
