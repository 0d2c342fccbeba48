//! 16.19: how nodes are terminated that have a terminationGracePeriod.

use serde_json::{Value, json};

use crate::support::Operated;

fn grace(period: &str) -> Value {
    json!({"spec": {"terminationGracePeriod": period}})
}

fn protected(seconds: u64) -> Value {
    json!({
        "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "spec": {"terminationGracePeriodSeconds": seconds},
    })
}

#[test]
fn the_deadline_is_written_down_and_told() {
    let mut world = Operated::start();
    world.add_node("a", &grace("5m"));
    world.add_pod("p", "a", &protected(60));
    world.pass(3);
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    assert!(world.claim("a")["metadata"]["annotations"][key].is_null());
    world.delete_claim("a");
    world.pass(2);
    let claim = world.claim("a");
    let deleted: jiff::Timestamp = claim["metadata"]["deletionTimestamp"].as_str().unwrap().parse().unwrap();
    let deadline: jiff::Timestamp = claim["metadata"]["annotations"][key].as_str().unwrap().parse().unwrap();
    assert_eq!(deadline.duration_since(deleted).as_secs(), 300);
    let message = format!("a: All pods will be deleted by {deadline}");
    assert_eq!(
        world.events("TerminationGracePeriodExpiring"),
        [&*message; 2],
        "on the claim and on the node"
    );
}

#[test]
fn a_deadline_that_is_there_already_is_kept() {
    let mut world = Operated::start();
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    world.add_node("a", &grace("5m"));
    world.add_pod("p", "a", &protected(1));
    let early = "2026-01-05T09:01:00Z";
    world.patch("/apis/karpenter.sh/v1/nodeclaims/a", &json!({"metadata": {"annotations": {key: early}}}));
    world.delete_claim("a");
    world.pass(5);
    assert_eq!(world.claim("a")["metadata"]["annotations"][key], early);
    world.pass(60);
    assert!(world.is_claim_gone("a"));
}

#[test]
fn a_deadline_that_is_no_time_does_not_keep_a_node_for_ever() {
    let mut world = Operated::start();
    let key = "karpenter.sh/nodeclaim-termination-timestamp";
    world.add_node("a", &json!({}));
    world.patch("/apis/karpenter.sh/v1/nodeclaims/a", &json!({"metadata": {"annotations": {key: "noon"}}}));
    world.delete_node("a");
    world.until("the node is gone", 20, |world| world.node("a").is_null());
    assert!(world.events("FailedDraining")[0].contains(r#""noon" is not a time"#));
}

#[test]
fn a_pod_that_needs_all_the_time_there_is_is_deleted_at_once() {
    let mut world = Operated::start();
    world.add_node("a", &grace("5m"));
    world.add_budget("none", "p", &json!({"maxUnavailable": 0}));
    world.add_pod("p", "a", &protected(300));
    world.pass(3);
    world.delete_claim("a");
    world.pass(4);
    assert!(!world.stays("p"));
    let told = world.events("Disrupted");
    assert!(told[0].contains("of its 300 terminationGracePeriodSeconds. This bypasses the PDB"), "{told:?}");
    assert!(world.events("Evicted").is_empty());
}

#[test]
fn a_pod_is_deleted_as_late_as_possible() {
    let mut world = Operated::start();
    world.add_node("a", &grace("5m"));
    world.add_pod("p", "a", &protected(60));
    world.pass(3);
    world.delete_claim("a");
    world.pass(230);
    assert!(world.stays("p"));
    world.pass(15);
    assert!(!world.stays("p"));
    world.until("the node is gone", 70, |world| world.node("a").is_null());
}

#[test]
fn the_important_are_not_kept_waiting_when_time_runs_out() {
    let mut world = Operated::start();
    world.add_node("a", &grace("2m"));
    world.add_pod("first", "a", &protected(10));
    let mut critical = protected(110);
    critical["spec"]["priorityClassName"] = json!("system-cluster-critical");
    critical["metadata"]["annotations"]["simulate.karpenter.sh/stop-after"] = json!("60s");
    world.add_pod("critical", "a", &critical);
    world.pass(3);
    world.delete_claim("a");
    world.pass(20);
    assert_eq!((world.stays("first"), world.stays("critical")), (true, false));
}

#[test]
fn a_pod_that_would_stop_too_late_is_told_to_hurry() {
    let mut world = Operated::start();
    world.add_node("a", &grace("5m"));
    let slow = json!({
        "metadata": {"annotations": {"simulate.karpenter.sh/stop-after": "1h"}},
        "spec": {"terminationGracePeriodSeconds": 3600},
    });
    world.add_pod("p", "a", &slow);
    world.pass(3);
    world.delete("/api/v1/namespaces/default/pods/p");
    world.pass(2);
    assert_eq!(world.pod("p")["metadata"]["deletionGracePeriodSeconds"], 3600);
    world.delete_claim("a");
    world.pass(5);
    let left = world.pod("p")["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap();
    assert!((290..=300).contains(&left), "{left}");
    world.until("the node is gone", 320, |world| world.node("a").is_null());
}

#[test]
fn volumes_are_not_waited_for_after_the_deadline() {
    let mut world = Operated::start();
    world.add_node("a", &grace("1m"));
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "v"},
        "spec": {"attacher": "csi", "nodeName": "a", "source": {"persistentVolumeName": "v"}},
    });
    world.apply(&attachment.to_string());
    world.pass(3);
    *world.cloud.going.lock() = std::time::Duration::from_mins(1);
    world.delete_claim("a");
    world.pass(50);
    assert!(world.said("a", "VolumesDetached").starts_with("Unknown"));
    world.pass(20);
    assert_eq!(
        world.said("a", "VolumesDetached"),
        "False TerminationGracePeriodElapsed: TerminationGracePeriodElapsed"
    );
    world.until("the node is gone", 70, |world| world.node("a").is_null());
}
