//! v1.15: nodes are booted again.

use std::sync::atomic::Ordering;

use api::names::metrics::{NODES_REBOOT_DURATION, NODES_REBOOT_RECOVERY_DURATION, NODES_REBOOTS};
use cloud::Error;
use embedded::faults::{Fault, Rule};
use serde_json::{Value, json};

use crate::support::Operated;

const CLAIM: &str = "/apis/karpenter.sh/v1/nodeclaims/a";
const GRACE: &str = "karpenter.sh/reboot-termination-grace-period";
const BOOT: &str = "karpenter.sh/reboot-pre-boot-id";

/// Asks for a reboot of the node `a`, as repair does.
fn request(world: &Operated, grace: Option<&str>) {
    world.patch(CLAIM, &json!({"metadata": {"annotations": {GRACE: grace}}}));
    let mut conditions = world.claim("a")["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "Rebooting");
    conditions.push(json!({
        "type": "Rebooting", "status": "True", "reason": "RebootRequested", "message": "rebooting for Gpu/XID48",
        "lastTransitionTime": world.now().to_string(),
    }));
    world.patch(&format!("{CLAIM}/status"), &json!({"status": {"conditions": conditions}}));
}

/// A cluster with one node, `a`.
fn started() -> Operated {
    with_node(Operated::start())
}

fn with_node(mut world: Operated) -> Operated {
    world.add_node("a", &json!({}));
    world
}

fn reboots(world: &Operated) -> usize {
    world.cloud.reboots.lock().len()
}

fn is_fenced(world: &Operated) -> bool {
    let node = world.node("a");
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().any(|taint| taint["key"] == "karpenter.sh/rebooting" && taint["effect"] == "NoSchedule")
}

fn annotation(world: &Operated, key: &str) -> Value {
    world.claim("a")["metadata"]["annotations"][key].clone()
}

#[test]
fn a_node_is_fenced_drained_booted_and_used_again() {
    let mut world = started();
    world.add_pod("p", "a", &json!({}));
    world.pass(3);
    request(&world, Some("1m0s"));
    world.pass(2);
    assert!(is_fenced(&world));
    assert!(!world.stays("p"), "it is evicted");
    assert_eq!(reboots(&world), 0, "a drain takes five seconds at least");
    world.until("it is back", 60, |world| {
        world.condition("a", "Initialized") == "True" && reboots(world) == 1
    });
    assert_eq!(world.said("a", "Rebooting"), "False RebootSucceeded: node rebooted and rejoined the cluster");
    assert!(!is_fenced(&world));
    assert_eq!(world.node("a")["metadata"]["labels"]["karpenter.sh/initialized"], "true");
    assert!(annotation(&world, BOOT).is_null());
    assert_eq!(annotation(&world, GRACE), "1m0s", "as upstream leaves it");
    assert_eq!(
        world.events("RebootObserved"),
        ["a: New boot observed (bootID changed); awaiting node readiness"]
    );
    assert_eq!(world.metric(&NODES_REBOOTS, &["succeeded"]), 1);
    assert_eq!(world.metric(&NODES_REBOOT_DURATION, &["succeeded"]), 1);
    assert_eq!(world.metric(&NODES_REBOOT_RECOVERY_DURATION, &[]), 1);
}

#[test]
fn a_node_is_drained_for_five_seconds_even_if_it_is_empty() {
    let mut world = started();
    request(&world, Some("1m0s"));
    world.pass(4);
    assert_eq!(reboots(&world), 0);
    world.pass(3);
    assert_eq!(reboots(&world), 1);
}

#[test]
fn without_time_for_pods_the_node_is_booted_at_once_and_they_stay() {
    let mut world = started();
    world.add_pod("p", "a", &json!({}));
    world.pass(3);
    request(&world, Some("0s"));
    world.pass(1);
    assert_eq!(reboots(&world), 1);
    world.pass(20);
    assert!(world.stays("p"));
    assert!(world.events("Evicted").is_empty());
}

#[test]
fn protected_pods_survive_the_bound_and_are_not_deleted() {
    let mut world = started();
    world.add_budget("none", "p", &json!({"maxUnavailable": 0}));
    world.add_pod("p", "a", &json!({}));
    world.add_pod("q", "a", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    world.pass(3);
    request(&world, Some("1m0s"));
    world.pass(55);
    assert_eq!(reboots(&world), 0);
    world.pass(10);
    assert_eq!(reboots(&world), 1);
    world.pass(120);
    assert!(world.stays("p") && world.stays("q"));
    assert_eq!(world.condition("a", "Initialized"), "True");
    let refused = world.events("FailedDraining").len();
    world.pass(600);
    assert_eq!(world.events("FailedDraining").len(), refused, "nobody asks them any more");
}

#[test]
fn without_a_bound_pods_are_waited_for() {
    let mut world = started();
    world.add_pod("q", "a", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    world.pass(3);
    request(&world, None);
    world.pass(1800);
    assert_eq!((reboots(&world), world.stays("q")), (0, true));
    let free = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": null}}});
    world.patch("/api/v1/namespaces/default/pods/q", &free);
    world.until("it is back", 60, |world| world.metric(&NODES_REBOOTS, &["succeeded"]) == 1);
}

#[test]
fn the_old_boot_does_not_initialize_and_the_node_is_out_of_use_until_the_new_one_does() {
    let mut world = started();
    world.cloud.boots_fail.store(true, Ordering::Relaxed);
    request(&world, Some("0s"));
    world.pass(30);
    assert_eq!(world.said("a", "Rebooting"), "True RebootIssued: rebooting for Gpu/XID48");
    assert_eq!(world.said("a", "Initialized"), "Unknown Rebooting: node is rebooting");
    assert!(world.node("a")["metadata"]["labels"]["karpenter.sh/initialized"].is_null());
    assert!(is_fenced(&world));
    // Somebody else puts the label back.
    let label = json!({"metadata": {"labels": {"karpenter.sh/initialized": "true"}}});
    world.patch("/api/v1/nodes/a", &label);
    world.pass(2);
    assert!(world.node("a")["metadata"]["labels"]["karpenter.sh/initialized"].is_null());
}

#[test]
fn a_node_that_does_not_come_back_is_given_up() {
    let mut world = started();
    world.cloud.boots_fail.store(true, Ordering::Relaxed);
    request(&world, Some("0s"));
    world.pass(1190);
    assert!(!world.is_claim_gone("a"));
    world.until("it is gone", 60, |world| world.is_claim_gone("a"));
    assert_eq!(world.events("RebootFailed"), ["a: node did not recover within the observation window"]);
    assert_eq!(world.metric(&NODES_REBOOTS, &["recovery_timeout"]), 1);
}

#[test]
fn a_provider_that_fails_is_asked_again_for_five_minutes_with_the_same_operation() {
    let mut world = started();
    let failing = |count| (0..count).map(|_| Error::Other("busy".to_owned())).collect();
    *world.cloud.reboot_failures.lock() = failing(3);
    request(&world, Some("0s"));
    world.pass(10);
    assert_eq!(reboots(&world), 1);
    let mut world = started();
    *world.cloud.reboot_failures.lock() = failing(1000);
    request(&world, Some("0s"));
    world.pass(60);
    assert_eq!(world.said("a", "Rebooting"), "True RebootRequested: rebooting for Gpu/XID48");
    world.until("it is given up", 400, |world| world.is_claim_gone("a"));
    assert_eq!(world.events("RebootFailed"), ["a: reboot was not issued within the issuance timeout"]);
}

#[test]
fn a_provider_that_refuses_is_not_asked_again() {
    for (error, text) in [
        (Error::RebootNotImplemented, "reboot not implemented by the cloud provider"),
        (Error::RebootFailed("forbidden".to_owned()), "reboot rejected by the cloud provider: forbidden"),
        (
            Error::NotFound("gone".to_owned()),
            "reboot rejected by the cloud provider: nodeclaim not found, gone",
        ),
    ] {
        let mut world = started();
        world.cloud.reboot_failures.lock().push_back(error);
        request(&world, Some("0s"));
        world.until("it is given up", 30, |world| world.is_claim_gone("a"));
        assert_eq!(world.events("RebootFailed"), [format!("a: {text}")]);
        assert_eq!(world.metric(&NODES_REBOOTS, &["provider_error"]), 1);
    }
}

#[test]
fn a_failed_reboot_leaves_pods_no_more_time_than_it_had_itself() {
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "spec": {"terminationGracePeriodSeconds": 1}});
    let refused = |grace: Option<&str>, before: Option<&str>| {
        let mut world = started();
        world.add_pod("p", "a", &protected);
        world.pass(3);
        world.patch(CLAIM, &json!({"metadata": {"annotations": {key: before}}}));
        world.cloud.reboot_failures.lock().push_back(Error::RebootNotImplemented);
        request(&world, grace);
        if grace.is_none() {
            world.pass(3);
            world.patch(CLAIM, &json!({"metadata": {"annotations": {BOOT: world.node("a")["status"]["nodeInfo"]["bootID"]}}}));
        }
        world.until("it is given up", 700, |world| {
            !world.claim("a")["metadata"]["deletionTimestamp"].is_null()
        });
        annotation(&world, key)
    };
    assert!(refused(Some("30s"), None).is_string());
    let early = "2026-01-05T09:00:59Z";
    assert_eq!(refused(Some("10m"), Some(early)), early, "it is never put off");
    assert_ne!(refused(Some("10s"), Some("2026-02-05T09:00:00Z")), "2026-02-05T09:00:00Z");
    assert!(refused(None, None).is_null(), "nobody said that pods must hurry");
}

#[test]
fn a_request_that_makes_no_sense_is_refused_and_the_node_is_kept() {
    let mut world = started();
    request(&world, Some("soon"));
    world.pass(5);
    assert!(world.said("a", "Rebooting").starts_with(
        "False RebootFailed: invalid reboot request: parsing reboot termination grace period \"soon\": "
    ));
    assert!(!is_fenced(&world));
    assert_eq!((reboots(&world), world.metric(&NODES_REBOOTS, &["invalid_request"])), (0, 1));
    assert_eq!(world.condition("a", "Initialized"), "True");
}

#[test]
fn a_second_reboot_is_another_operation() {
    let mut world = started();
    for count in 1..=2 {
        request(&world, Some("0s"));
        world.until("it is back", 60, |world| world.metric(&NODES_REBOOTS, &["succeeded"]) == count);
        world.until_initialized("a");
        world.pass(5);
    }
    let operations = world.cloud.reboots.lock().clone();
    assert!(operations.len() == 2 && operations[0] != operations[1], "{operations:?}");
    let history = annotation(&world, "karpenter.sh/reboot-history");
    assert_eq!(history.as_str().unwrap().split(',').count(), 2, "{history}");
}

#[test]
fn a_restart_neither_boots_twice_nor_gives_more_time() {
    let mut world = started();
    world.cloud.boots_fail.store(true, Ordering::Relaxed);
    request(&world, Some("0s"));
    world.pass(5);
    assert_eq!(reboots(&world), 1);
    for _ in 0..4 {
        world.lead();
        world.pass(240);
    }
    assert_eq!(reboots(&world), 1);
    assert!(!world.is_claim_gone("a"));
    world.lead();
    world.until("it is given up", 300, |world| world.is_claim_gone("a"));
}

#[test]
fn a_boot_that_changed_while_nobody_looked_is_not_asked_for_again() {
    let mut world = started();
    let boot = json!({"metadata": {"annotations": {BOOT: "another boot", "karpenter.sh/reboot-issue-time": world.now().to_string()}}});
    world.patch(CLAIM, &boot);
    request(&world, Some("0s"));
    world.until("it is back", 60, |world| world.metric(&NODES_REBOOTS, &["succeeded"]) == 1);
    assert_eq!(reboots(&world), 0);
}

#[test]
fn a_node_that_vanishes_before_the_reboot_is_given_up_after_five_minutes() {
    let mut world = started();
    world.add_pod("q", "a", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    world.pass(3);
    request(&world, None);
    world.pass(2);
    world.patch("/api/v1/nodes/a", &json!({"metadata": {"finalizers": null}}));
    world.delete_node("a");
    world.pass(200);
    assert!(world.claim("a")["metadata"]["deletionTimestamp"].is_null());
    world.until("it is given up", 200, |world| world.is_claim_gone("a"));
}

#[test]
fn a_deletion_that_fails_is_tried_again_and_told_once() {
    let mut world = started();
    world.cloud.boots_fail.store(true, Ordering::Relaxed);
    request(&world, Some("0s"));
    world.pass(5);
    world.faults.set_rules(vec![Rule::on("delete", "nodeclaims", 1.0, Fault::InternalError)]);
    world.pass(22 * 60);
    assert!(world.claim("a")["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(world.metric(&NODES_REBOOTS, &["recovery_timeout"]), 0, "it is not over yet");
    assert!(world.events("RebootFailed").is_empty());
    world.faults.set_rules(Vec::new());
    world.until("it is given up", 90, |world| world.is_claim_gone("a"));
    assert_eq!(world.metric(&NODES_REBOOTS, &["recovery_timeout"]), 1);
    assert_eq!(world.events("RebootFailed").len(), 1);
}

#[test]
fn a_success_is_counted_once_however_late_the_cluster_tells_of_it() {
    // Watches break after each event, and lists show the past.
    let mut world = with_node(Operated::faulty(vec![
        Rule::on("watch", "nodeclaims", 1.0, Fault::CutWatch { after: 1 }),
        Rule::on("list", "nodeclaims", 1.0, Fault::StaleRead { behind: 4 }),
    ]));
    request(&world, Some("0s"));
    world.until("it is back", 180, |world| world.metric(&NODES_REBOOTS, &["succeeded"]) > 0);
    world.pass(120);
    assert_eq!((reboots(&world), world.metric(&NODES_REBOOTS, &["succeeded"])), (1, 1));
    assert_eq!(world.metric(&NODES_REBOOT_RECOVERY_DURATION, &[]), 1);
}

#[test]
fn a_claim_that_is_deleted_while_its_node_boots_goes_as_any_other() {
    let mut world = started();
    world.cloud.boots_fail.store(true, Ordering::Relaxed);
    request(&world, Some("0s"));
    world.pass(5);
    world.delete_claim("a");
    world.until("it is gone", 60, |world| world.is_claim_gone("a"));
    assert!(world.events("RebootFailed").is_empty());
}

#[test]
fn claims_of_another_cloud_are_left_alone() {
    // N4.
    let mut world = started();
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    world.add_claim("b", &json!({"spec": {"nodeClassRef": class}}));
    let conditions = json!([{"type": "Rebooting", "status": "True", "reason": "RebootRequested", "message": "",
        "lastTransitionTime": world.now().to_string()}]);
    world.patch(
        "/apis/karpenter.sh/v1/nodeclaims/b/status",
        &json!({"status": {"conditions": conditions, "providerID": "aws://b"}}),
    );
    world.pass(900);
    assert!(!world.is_claim_gone("b") && reboots(&world) == 0);
}
