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
    let stamp = json!({"metadata": {"annotations": {
        "karpenter.sh/nodepool-hash": "2", "karpenter.sh/nodepool-hash-version": "v3",
    }}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &stamp);
    cluster.settle();
    assert_eq!(cluster.condition("nodeclaims/c", "Drifted"), "True NodePoolDrifted");
    let event = json!({"status": {"lastPodEventTime": cluster.now().to_string()}});
    cluster.patch("/apis/karpenter.sh/v1/nodeclaims/c/status", &event);
    cluster.settle();
    assert_eq!(cluster.condition("nodeclaims/c", "Consolidatable"), "");
}
