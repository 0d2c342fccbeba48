//! What is decided about nodes that are to be booted again.

use std::sync::Arc;
use std::time::Duration;

use cluster::objects::{Node, Pod};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::decide::{Failure, Step, bound, decide};
use super::{is_worn_out, tightened};
use crate::testing::{claim, merge};
use api::nodeclaim::NodeClaim;

fn at(second: i64) -> Timestamp {
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(second)
}

/// A claim whose reboot was requested at second 0, with annotations.
fn rebooting(reason: &str, annotations: &Value) -> NodeClaim {
    let condition = |kind: &str, status: &str, reason: &str, since: i64| {
        json!({"type": kind, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": at(since).to_string()})
    };
    claim(
        "c",
        &json!({
            "metadata": {"annotations": annotations},
            "status": {"providerID": "kwok://n", "conditions": [
                condition("Rebooting", "True", reason, 0),
                condition("Initialized", "Unknown", "Rebooting", -100_000),
            ]},
        }),
    )
}

fn requested(annotations: &Value) -> NodeClaim {
    rebooting("RebootRequested", annotations)
}

fn issued(annotations: &Value) -> NodeClaim {
    rebooting("RebootIssued", annotations)
}

/// A fenced node of a boot, with changes.
fn node(boot: &str, change: &Value) -> Node {
    let mut node = json!({
        "metadata": {"name": "n", "resourceVersion": "1"},
        "spec": {"providerID": "kwok://n",
            "taints": [{"key": "karpenter.sh/rebooting", "effect": "NoSchedule"}]},
        "status": {"nodeInfo": {"bootID": boot}, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    merge(&mut node, change);
    serde_json::from_value(node).unwrap()
}

fn pod() -> Arc<Pod> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}})).unwrap())
}

fn step(claim: &NodeClaim, node: Option<&Node>, pods: &[Arc<Pod>], second: i64) -> Step {
    decide(claim, node, pods.iter(), at(second))
}

const GRACE: &str = "karpenter.sh/reboot-termination-grace-period";
const BOOT: &str = "karpenter.sh/reboot-pre-boot-id";
const ISSUE: &str = "karpenter.sh/reboot-issue-time";
const HISTORY: &str = "karpenter.sh/reboot-history";

fn failure(step: Step) -> Failure {
    match step {
        Step::Fail(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_done_for_claims_that_go_or_are_not_rebooting() {
    let mut over = requested(&json!({}));
    over.status.as_mut().unwrap().conditions[0].status = api::shared::ConditionStatus::False;
    assert!(matches!(step(&over, Some(&node("a", &json!({}))), &[], 0), Step::Nothing));
    assert!(matches!(step(&claim("c", &json!({})), None, &[], 0), Step::Nothing));
    let mut going = requested(&json!({}));
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)));
    assert!(matches!(step(&going, Some(&node("a", &json!({}))), &[], 0), Step::Nothing));
}

#[test]
fn new_pods_are_kept_away_first() {
    let open = node("a", &json!({"spec": {"taints": []}}));
    assert!(matches!(step(&requested(&json!({})), Some(&open), &[pod()], 0), Step::Fence));
}

#[test]
fn a_node_is_drained_for_five_seconds_at_least() {
    let (claim, node) = (requested(&json!({GRACE: "1s"})), node("a", &json!({})));
    assert!(matches!(step(&claim, Some(&node), &[], 0), Step::Wait(wait) if wait == Duration::from_secs(5)));
    assert!(matches!(step(&claim, Some(&node), &[pod()], 4), Step::Evict { .. }));
    assert!(matches!(step(&claim, Some(&node), &[pod()], 5), Step::Begin { .. }));
    assert!(matches!(step(&requested(&json!({})), Some(&node), &[], 4), Step::Wait(_)));
    assert!(matches!(step(&requested(&json!({})), Some(&node), &[], 5), Step::Begin { .. }));
}

#[test]
fn pods_are_waited_for_until_the_bound_and_for_ever_without_one() {
    let node = node("a", &json!({}));
    let bounded = requested(&json!({GRACE: "1m0s"}));
    let Step::Evict { pods, deadline, again } = step(&bounded, Some(&node), &[pod()], 50) else { panic!() };
    assert_eq!((pods.len(), deadline, again), (1, Some(at(60)), Duration::from_secs(10)));
    assert!(matches!(step(&bounded, Some(&node), &[pod()], 60), Step::Begin { .. }));
    let unbounded = requested(&json!({}));
    let Step::Evict { deadline, again, .. } = step(&unbounded, Some(&node), &[pod()], 90_000) else {
        panic!()
    };
    assert_eq!((deadline, again), (None, Duration::from_secs(15)));
}

#[test]
fn without_any_time_for_pods_the_provider_is_asked_at_once() {
    let Step::Begin { boot, history } =
        step(&requested(&json!({GRACE: "0s"})), Some(&node("a", &json!({}))), &[pod()], 0)
    else {
        panic!()
    };
    assert_eq!((&*boot, &*history), ("a", "2026-01-05T09:00:00Z"));
}

#[test]
fn a_boot_without_an_identity_is_written_down_too() {
    // N3: an empty one is one.
    let node = node("", &json!({}));
    let claim = requested(&json!({GRACE: "0s"}));
    assert!(matches!(step(&claim, Some(&node), &[], 0), Step::Begin { boot, .. } if boot.is_empty()));
    let begun = requested(&json!({GRACE: "0s", BOOT: "", ISSUE: at(0).to_string()}));
    let Step::Ask { operation } = step(&begun, Some(&node), &[pod()], 1) else { panic!() };
    assert_eq!(operation, "uid-of-c-1767603600000000000-");
}

#[test]
fn the_same_reboot_is_always_the_same_operation_and_another_one_is_another() {
    let node = node("a", &json!({}));
    let claim = requested(&json!({BOOT: "a", ISSUE: at(10).to_string()}));
    for second in [10, 100] {
        let Step::Ask { operation } = step(&claim, Some(&node), &[], second) else { panic!() };
        assert_eq!(operation, "uid-of-c-1767603600000000000-a");
    }
}

#[test]
fn a_boot_that_changed_while_nobody_looked_is_not_asked_for_again() {
    let claim = requested(&json!({BOOT: "a", ISSUE: at(10).to_string()}));
    assert!(matches!(step(&claim, Some(&node("b", &json!({}))), &[], 20), Step::Accept));
}

#[test]
fn the_provider_has_five_minutes_to_accept_also_across_restarts() {
    // N5: since when it is asked is written down.
    let claim = requested(&json!({BOOT: "a", ISSUE: at(100).to_string()}));
    let node = node("a", &json!({}));
    assert!(matches!(step(&claim, Some(&node), &[], 399), Step::Ask { .. }));
    let failed = failure(step(&claim, Some(&node), &[], 400));
    assert_eq!(failed.result, "provider_error");
    assert_eq!(failed.text, "reboot was not issued within the issuance timeout");
    // One that another release has begun gets its time from now on.
    let foreign = requested(&json!({BOOT: "a"}));
    assert!(matches!(step(&foreign, Some(&node), &[], 5000), Step::Begin { boot, .. } if boot == "a"));
}

#[test]
fn a_node_that_is_missing_is_waited_for_a_while() {
    let claim = requested(&json!({}));
    assert!(matches!(step(&claim, None, &[], 299), Step::Wait(wait) if wait == Duration::from_secs(1)));
    assert_eq!(failure(step(&claim, None, &[], 300)).result, "provider_error");
    let claim = issued(&json!({BOOT: "a", ISSUE: at(0).to_string()}));
    assert!(matches!(step(&claim, None, &[], 1199), Step::Wait(_)));
    assert_eq!(failure(step(&claim, None, &[], 1200)).result, "recovery_timeout");
}

#[test]
fn a_node_has_twenty_minutes_to_come_back_from_when_the_provider_accepted() {
    // N17: not from when the node was last initialized, which was long ago.
    let claim = issued(&json!({BOOT: "a", ISSUE: at(600).to_string()}));
    let node = node("a", &json!({}));
    assert!(
        matches!(step(&claim, Some(&node), &[], 1799), Step::Wait(wait) if wait == Duration::from_secs(1))
    );
    let failed = failure(step(&claim, Some(&node), &[], 1800));
    assert_eq!(failed.result, "recovery_timeout");
    assert_eq!(failed.text, "node did not recover within the observation window");
}

#[test]
fn a_reboot_succeeds_with_a_new_boot_that_is_ready() {
    let claim = issued(&json!({BOOT: "a", ISSUE: at(0).to_string()}));
    let labels = json!({"metadata": {"labels": {"karpenter.sh/initialized": "true"}}});
    let open = json!({"spec": {"taints": []}});
    let dark =
        json!({"spec": {"taints": []}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let next = |boot, change: &Value| step(&claim, Some(&node(boot, change)), &[], 60);
    assert!(matches!(next("a", &labels), Step::Unlabel));
    assert!(matches!(next("a", &open), Step::Wait(_)));
    assert!(matches!(next("b", &json!({})), Step::Unfence));
    assert!(matches!(next("b", &dark), Step::Wait(wait) if wait == Duration::from_secs(15)));
    assert!(matches!(next("b", &open), Step::Succeed));
}

#[test]
fn a_request_that_makes_no_sense_says_why() {
    let said =
        |text: &str| failure(step(&requested(&json!({GRACE: text})), Some(&node("a", &json!({}))), &[], 0));
    assert!(
        said("soon")
            .text
            .starts_with("invalid reboot request: parsing reboot termination grace period \"soon\": ")
    );
    assert_eq!(
        said("-1s").text,
        "invalid reboot request: reboot termination grace period must be non-negative, got \"-1s\""
    );
    assert!(said("-1s").is_invalid());
    assert_eq!(bound(&requested(&json!({GRACE: "1m0s"}))), Ok(Some(SignedDuration::from_mins(1))));
}

#[test]
fn the_provider_refuses_in_two_ways() {
    let text = |error: cloud::Error| Failure::refused(&error).text;
    assert_eq!(text(cloud::Error::RebootNotImplemented), "reboot not implemented by the cloud provider");
    assert_eq!(
        text(cloud::Error::RebootFailed("no permission".to_owned())),
        "reboot rejected by the cloud provider: no permission"
    );
}

#[test]
fn two_reboots_within_a_day_are_enough() {
    let hours = |hours: &[i64]| {
        let times: Vec<String> = hours.iter().map(|hour| at(hour * 3600).to_string()).collect();
        requested(&json!({HISTORY: times.join(",")}))
    };
    assert!(!is_worn_out(&requested(&json!({})), at(0)));
    assert!(!is_worn_out(&hours(&[0]), at(3600)));
    assert!(is_worn_out(&hours(&[0, 1]), at(23 * 3600)));
    // What is a day old does not count any more.
    assert!(!is_worn_out(&hours(&[0, 1]), at(24 * 3600)));
    assert!(!is_worn_out(&requested(&json!({HISTORY: "yesterday,often"})), at(0)));
}

#[test]
fn a_reboot_is_remembered_once_and_what_is_old_is_forgotten() {
    let times = [at(-25 * 3600), at(-3600), at(0)].map(|time| time.to_string()).join(",");
    let claim = requested(&json!({GRACE: "0s", HISTORY: times}));
    let Step::Begin { history, .. } = step(&claim, Some(&node("a", &json!({}))), &[], 10) else { panic!() };
    assert_eq!(history, "2026-01-05T08:00:00Z,2026-01-05T09:00:00Z");
}

#[test]
fn a_deadline_is_only_ever_brought_forward() {
    const KEY: &str = "karpenter.sh/nodeclaim-termination-timestamp";
    let within = SignedDuration::from_secs(60);
    let change = |annotations: &Value| {
        let change = tightened(&requested(annotations), within, at(0))?;
        Some(change["metadata"]["annotations"][KEY].as_str()?.to_owned())
    };
    assert_eq!(change(&json!({})).as_deref(), Some("2026-01-05T09:01:00Z"));
    assert_eq!(change(&json!({KEY: at(100).to_string()})).as_deref(), Some("2026-01-05T09:01:00Z"));
    assert_eq!(change(&json!({KEY: at(60).to_string()})), None);
    assert_eq!(change(&json!({KEY: at(10).to_string()})), None);
    assert_eq!(change(&json!({KEY: "noon"})).as_deref(), Some("2026-01-05T09:01:00Z"));
}
