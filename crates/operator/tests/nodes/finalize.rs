//! 16.22: the end of NodeClaims.

use std::time::Duration;

use api::names::metrics::{
    NODECLAIMS_INSTANCE_TERMINATION_DURATION, NODECLAIMS_TERMINATED, NODECLAIMS_TERMINATION_DURATION,
};
use cloud::Error;
use serde_json::json;

use crate::support::Operated;

#[test]
fn a_deleted_claim_takes_its_node_and_its_instance_with_it() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.delete_claim("a");
    world.until("the claim is gone", 30, |world| world.is_claim_gone("a"));
    assert!(world.node("a").is_null());
    assert_eq!(world.cloud.running(), 0);
    assert_eq!(world.metric(&NODECLAIMS_TERMINATED, &["pool", "on-demand", "zone-a"]), 1);
    assert_eq!(world.metric(&NODECLAIMS_TERMINATION_DURATION, &["pool"]), 1);
    assert_eq!(world.metric(&NODECLAIMS_INSTANCE_TERMINATION_DURATION, &["pool"]), 1);
}

#[test]
fn an_instance_is_asked_for_every_five_seconds_until_it_is_gone() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    *world.cloud.going.lock() = Duration::from_secs(18);
    world.add_claim("a", &json!({"metadata": {"annotations": {"odd": "0.1Gi"}}}));
    world.pass(3);
    world.delete_claim("a");
    world.pass(12);
    assert_eq!(world.condition("a", "InstanceTerminating"), "True");
    assert!((3..=4).contains(&world.cloud.terminations()));
    world.pass(12);
    assert!(world.is_claim_gone("a"));
    assert!((5..=6).contains(&world.cloud.terminations()));
}

#[test]
fn a_cloud_that_fails_is_asked_again() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    world.add_claim("a", &json!({}));
    world.pass(3);
    world.cloud.delete_failures.lock().extend(vec![Error::Other("down".to_owned()); 3]);
    world.delete_claim("a");
    world.pass(2);
    assert!(!world.is_claim_gone("a"));
    assert_eq!(world.condition("a", "InstanceTerminating"), "");
    world.until("the claim is gone", 30, |world| world.is_claim_gone("a"));
}

#[test]
fn all_nodes_of_an_instance_go_and_are_waited_for() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_bare_node(
        "twin",
        &json!({
            "metadata": {"finalizers": ["example.com/other"]}, "spec": {"providerID": "fake://a"},
        }),
    );
    world.add_bare_node("stranger", &json!({"metadata": {"finalizers": []}, "spec": {"providerID": ""}}));
    world.pass(3);
    world.delete_claim("a");
    world.until("both go", 20, |world| {
        world.node("a").is_null() && !world.node("twin")["metadata"]["deletionTimestamp"].is_null()
    });
    world.pass(60);
    assert!(!world.is_claim_gone("a"), "it waits for the twin");
    world.patch("/api/v1/nodes/twin", &json!({"metadata": {"finalizers": null}}));
    world.until("the claim is gone", 20, |world| world.is_claim_gone("a"));
    assert!(!world.node("stranger").is_null());
}

#[test]
fn a_claim_that_was_never_launched_goes_without_asking_the_cloud() {
    let mut world = Operated::start();
    world.cloud.create_failures.lock().extend(vec![Error::Other("broken".to_owned()); 100]);
    world.add_claim("a", &json!({}));
    world.pass(3);
    world.delete_claim("a");
    world.pass(2);
    assert!(world.is_claim_gone("a"));
    assert_eq!(world.cloud.terminations(), 0);
}

#[test]
fn an_instance_does_not_outlive_a_claim_that_is_deleted_while_it_is_launched() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    world.cloud.delete_claim_while_launching.store(true, std::sync::atomic::Ordering::Relaxed);
    world.add_claim("a", &json!({}));
    world.until("the claim is gone", 30, |world| world.is_claim_gone("a"));
    assert_eq!((world.cloud.launches(), world.cloud.running()), (1, 0));
}

#[test]
fn the_node_of_a_claim_that_never_registered_is_left_to_others() {
    let mut world = Operated::start();
    *world.cloud.nodes_fail.lock() = true;
    world.add_claim("a", &json!({}));
    world.pass(3);
    for name in ["x", "y"] {
        world.add_bare_node(name, &json!({"spec": {"providerID": "fake://a"}}));
    }
    world.pass(3);
    assert_eq!(world.condition("a", "Registered"), "False");
    world.delete_claim("a");
    world.until("the claim is gone", 20, |world| world.is_claim_gone("a"));
    assert!(world.node("x")["metadata"]["deletionTimestamp"].is_null());
}

#[test]
fn a_restart_in_the_middle_changes_nothing() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_budget("none", "p", &json!({"maxUnavailable": 0}));
    world.add_pod("p", "a", &json!({}));
    world.pass(3);
    *world.cloud.going.lock() = Duration::from_secs(20);
    world.delete_claim("a");
    world.pass(10);
    world.lead();
    world.pass(10);
    assert!(world.stays("p"));
    world.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/none");
    world.until("its instance goes", 30, |world| world.condition("a", "InstanceTerminating") == "True");
    world.lead();
    world.until("the claim is gone", 40, |world| world.is_claim_gone("a"));
    assert_eq!((world.cloud.launches(), world.cloud.running()), (1, 0));
}
