//! What pods are.

use serde_json::{Value, json};

use super::*;

fn pod(value: &Value) -> Pod {
    serde_json::from_value(value.clone()).unwrap()
}

fn unschedulable(mut value: Value) -> Value {
    value["status"]["conditions"] = json!([{"type": "PodScheduled", "reason": "Unschedulable"}]);
    value
}

fn owned(api_version: &str, kind: &str) -> Value {
    json!({"metadata": {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "x"}]}})
}

#[test]
fn a_pod_waits_once_the_scheduler_has_given_up() {
    for (value, expected) in [
        (unschedulable(json!({})), Ok(())),
        (unschedulable(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})), Ok(())),
        (json!({}), Err(NotPending::NotUnschedulable)),
        (
            json!({"status": {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}}),
            Err(NotPending::NotUnschedulable),
        ),
        (unschedulable(owned("apps/v1", "DaemonSet")), Err(NotPending::Daemon)),
        (unschedulable(owned("v1", "Node")), Err(NotPending::Static)),
        (unschedulable(owned("apps/v1", "ReplicaSet")), Ok(())),
        (
            unschedulable(json!({"status": {"nominatedNodeName": "n"}})),
            Err(NotPending::Nominated("n".into())),
        ),
    ] {
        assert_eq!(pending(&pod(&value), false), expected, "{value}");
    }
}

#[test]
fn pods_nobody_has_looked_at_wait_if_asked_for() {
    assert_eq!(pending(&pod(&json!({})), true), Ok(()));
    let gated = json!({"status": {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}});
    assert_eq!(pending(&pod(&gated), true), Err(NotPending::NotUnschedulable));
    let done = json!({"status": {"phase": "Succeeded"}});
    assert_eq!(pending(&pod(&done), true), Err(NotPending::NotUnschedulable));
    let held = json!({"spec": {"schedulingGates": [{"name": "example.com/gate"}]}});
    assert_eq!(pending(&pod(&held), true), Err(NotPending::Gated("example.com/gate".into())));
    for (scheduler, expected) in [
        ("default-scheduler", Ok(())),
        ("", Ok(())),
        ("volcano", Err(NotPending::OtherScheduler("volcano".into()))),
    ] {
        let unseen = json!({"spec": {"schedulerName": scheduler}});
        assert_eq!(pending(&pod(&unseen), true), expected, "{scheduler}");
        // Once it has been looked at, it does not matter by whom.
        assert_eq!(pending(&pod(&unschedulable(unseen)), true), Ok(()), "{scheduler}");
    }
}

const NOW: &str = "2026-01-01T00:10:00Z";

/// Which predicates hold for a pod at [`NOW`].
fn holds(value: &Value) -> Vec<&'static str> {
    let (pod, now) = (pod(value), NOW.parse().unwrap());
    let all = [
        ("terminal", is_terminal(&pod)),
        ("terminating", is_terminating(&pod)),
        ("active", is_active(&pod)),
        ("stuck", is_stuck_terminating(&pod, now)),
        ("reschedulable", is_reschedulable(&pod)),
        ("disruptable", is_disruptable(&pod, now)),
        ("evictable", is_evictable(&pod, now)),
        ("drainable", is_drainable(&pod, now)),
        ("waiting", is_waiting_eviction(&pod, now)),
    ];
    all.into_iter().filter(|(_, holds)| *holds).map(|(name, _)| name).collect()
}

#[track_caller]
fn check(value: &Value, expected: &str) {
    assert_eq!(holds(value).join(" "), expected, "{value}");
}

fn deleted(mut value: Value, at: &str) -> Value {
    value["metadata"]["deletionTimestamp"] = at.into();
    value
}

#[test]
fn a_pod_that_runs_moves_and_is_drained() {
    check(&json!({}), "active reschedulable disruptable evictable drainable waiting");
    check(&owned("apps/v1", "ReplicaSet"), "active reschedulable disruptable evictable drainable waiting");
}

#[test]
fn a_pod_that_is_done_holds_up_nothing() {
    check(&json!({"status": {"phase": "Succeeded"}}), "terminal disruptable drainable");
    check(&json!({"status": {"phase": "Failed"}}), "terminal disruptable drainable");
}

#[test]
fn a_pod_that_stops_is_waited_for_until_it_is_stuck() {
    check(&deleted(json!({}), NOW), "terminating disruptable drainable waiting");
    check(&deleted(json!({}), "2026-01-01T00:09:00Z"), "terminating disruptable drainable waiting");
    check(&deleted(json!({}), "2026-01-01T00:08:59Z"), "terminating stuck disruptable");
    let stateful = deleted(owned("apps/v1", "StatefulSet"), NOW);
    check(&stateful, "terminating reschedulable disruptable drainable waiting");
}

#[test]
fn daemons_are_drained_but_do_not_move_and_static_pods_do_neither() {
    check(&owned("apps/v1", "DaemonSet"), "active disruptable evictable drainable waiting");
    check(&owned("v1", "Node"), "active disruptable");
}

#[test]
fn a_protected_pod_holds_up_the_drain() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    check(&protected, "active reschedulable drainable waiting");
    check(&deleted(protected, NOW), "terminating disruptable drainable waiting");
}

#[test]
fn a_pod_that_tolerates_disruption_stays_to_the_end() {
    for toleration in [
        json!({"operator": "Exists"}),
        json!({"key": "karpenter.sh/disrupted", "operator": "Exists"}),
        json!({"key": "karpenter.sh/disrupted"}),
        json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}),
    ] {
        check(&json!({"spec": {"tolerations": [toleration]}}), "active reschedulable disruptable");
    }
    for toleration in [
        json!({"key": "karpenter.sh/disrupted", "value": "x"}),
        json!({"key": "other", "operator": "Exists"}),
        json!({"operator": "Exists", "effect": "NoExecute"}),
    ] {
        let expected = "active reschedulable disruptable evictable drainable waiting";
        check(&json!({"spec": {"tolerations": [toleration]}}), expected);
    }
}

#[test]
fn a_bound_pod_is_not_provisionable() {
    let mut value = unschedulable(json!({}));
    assert!(is_provisionable(&pod(&value)));
    value["spec"]["nodeName"] = "n".into();
    assert!(!is_provisionable(&pod(&value)));
}

#[test]
fn a_pod_outlasts_its_node_if_it_stops_later() {
    let deadline = NOW.parse().unwrap();
    assert!(!outlasts(&pod(&json!({})), deadline));
    assert!(!outlasts(&pod(&deleted(json!({}), NOW)), deadline));
    assert!(outlasts(&pod(&deleted(json!({}), "2026-01-01T00:10:01Z")), deadline));
}
