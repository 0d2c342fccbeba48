//! 16.20: the eviction queue.

use api::names::metrics::{NODES_DRAINED, PODS_DRAINED, PODS_EVICTION_REQUESTS};
use serde_json::json;

use crate::support::Operated;

#[test]
fn an_eviction_is_told_and_counted() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_bare_node("lonely", &json!({}));
    world.add_budget("enough", "p", &json!({"minAvailable": 0}));
    world.add_pod("p", "a", &json!({}));
    world.add_pod("q", "lonely", &json!({}));
    world.pass(5);
    world.delete_node("a");
    world.delete_node("lonely");
    world.until("both are gone", 30, |world| world.node("a").is_null() && world.node("lonely").is_null());
    let mut told = world.events("Evicted");
    told.sort();
    assert_eq!(told, ["p: Evicted pod: Forceful Termination", "q: Evicted pod: "]);
    assert_eq!(world.metric(&PODS_EVICTION_REQUESTS, &["200"]), 2);
    assert_eq!(world.metric(&PODS_DRAINED, &["Forceful Termination"]), 1);
    assert_eq!(world.metric(&PODS_DRAINED, &[""]), 1);
    assert_eq!(world.metric(&NODES_DRAINED, &["pool"]), 1);
}

#[test]
fn an_eviction_says_why_its_node_is_disrupted() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_pod("p", "a", &json!({}));
    world.pass(3);
    let mut conditions = world.claim("a")["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(json!({
        "type": "DisruptionReason", "status": "True", "reason": "Underutilized", "message": "Underutilized",
        "lastTransitionTime": "2026-01-05T09:00:00Z",
    }));
    let status = json!({"status": {"conditions": conditions}});
    world.patch("/apis/karpenter.sh/v1/nodeclaims/a/status", &status);
    world.delete_claim("a");
    world.until("the node is gone", 30, |world| world.node("a").is_null());
    assert_eq!(world.events("Evicted"), ["p: Evicted pod: Underutilized"]);
    assert_eq!(world.metric(&PODS_DRAINED, &["Underutilized"]), 1);
}

#[test]
fn a_budget_holds_a_drain_up_until_it_allows_more() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_budget("none", "p", &json!({"maxUnavailable": 0}));
    world.add_pod("p", "a", &json!({}));
    world.pass(3);
    world.delete_node("a");
    world.pass(60);
    assert!(world.stays("p"));
    let refused = world.metric(&PODS_EVICTION_REQUESTS, &["429"]);
    assert!((8..20).contains(&refused), "it is asked ever less often: {refused}");
    let told = world.events("FailedDraining");
    let expected = "a: Failed to drain node, evicting pod violates a PDB (Pod=default/p)".to_owned();
    assert!(told.contains(&expected), "{told:?}");
    world.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/none");
    world.until("the node is gone", 30, |world| world.node("a").is_null());
}

#[test]
fn two_budgets_for_one_pod_hold_a_drain_up() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    for name in ["one", "two"] {
        world.add_budget(name, "p", &json!({"maxUnavailable": 1}));
    }
    world.add_pod("p", "a", &json!({}));
    world.pass(3);
    world.delete_node("a");
    world.pass(30);
    assert!(world.stays("p") && world.metric(&PODS_EVICTION_REQUESTS, &["500"]) > 0);
    let told = world.events("FailedDraining");
    let expected =
        "a: Failed to drain node, eviction does not support multiple PDBs (Pod=default/p)".to_owned();
    assert!(told.contains(&expected), "{told:?}");
}

#[test]
fn a_pod_that_must_stay_is_forgotten_when_its_node_is_gone() {
    // N13
    let mut world = Operated::start();
    world.add_bare_node("lonely", &json!({}));
    world.add_budget("none", "p", &json!({"maxUnavailable": 0}));
    world.add_pod("p", "lonely", &json!({}));
    world.pass(3);
    world.delete_node("lonely");
    world.pass(10);
    assert!(world.metric(&PODS_EVICTION_REQUESTS, &["429"]) > 0);
    world.patch("/api/v1/nodes/lonely", &json!({"metadata": {"finalizers": null}}));
    world.until("the node is gone", 5, |world| world.node("lonely").is_null());
    // It is asked once more, after ten seconds at most.
    world.pass(11);
    let asked = world.metric(&PODS_EVICTION_REQUESTS, &["429"]);
    world.pass(25);
    assert_eq!(world.metric(&PODS_EVICTION_REQUESTS, &["429"]), asked);
    assert!(world.stays("p"), "somebody else has evicted it");
}

#[test]
fn a_deadline_that_comes_later_turns_an_eviction_into_a_deletion() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_budget("none", "p", &json!({"maxUnavailable": 0}));
    world.add_pod("p", "a", &json!({"spec": {"terminationGracePeriodSeconds": 5}}));
    world.pass(3);
    world.delete_node("a");
    world.pass(60);
    assert!(world.stays("p"));
    let now = world.now().to_string();
    let annotations = json!({"karpenter.sh/nodeclaim-termination-timestamp": now});
    world.patch("/apis/karpenter.sh/v1/nodeclaims/a", &json!({"metadata": {"annotations": annotations}}));
    world.pass(3);
    assert!(!world.stays("p"));
    assert!(world.events("Disrupted")[0].contains("The pod was granted 1 seconds"));
    assert_eq!(world.metric(&PODS_DRAINED, &["Forceful Termination"]), 1);
    world.until("the node is gone", 20, |world| world.node("a").is_null());
}

#[test]
fn a_pod_that_comes_back_under_the_same_name_elsewhere_is_left_alone() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_node("b", &json!({}));
    world.add_budget("none", "p", &json!({"maxUnavailable": 0}));
    world.add_pod("p", "a", &json!({"spec": {"terminationGracePeriodSeconds": 0}}));
    world.pass(3);
    world.delete_node("a");
    world.pass(10);
    world.delete("/api/v1/namespaces/default/pods/p");
    world.add_pod("p", "b", &json!({}));
    world.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/none");
    world.until("the node is gone", 30, |world| world.node("a").is_null());
    assert!(world.stays("p"));
    assert!(world.events("Evicted").is_empty());
}
