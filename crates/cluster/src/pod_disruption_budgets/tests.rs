//! What budgets keep where it is.

use serde_json::{Value, json};

use super::*;

fn pod(value: &Value) -> Pod {
    serde_json::from_value(value.clone()).unwrap()
}

fn owned(api_version: &str, kind: &str) -> Value {
    json!({"metadata": {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": "x"}]}})
}

#[track_caller]
fn check_moves(pod_value: &Value, budgets: &[Value], expected: bool) {
    let mut value = json!({"metadata": {"name": "a", "labels": {"app": "a"}}});
    merge(&mut value, pod_value);
    let budgets: Vec<PodDisruptionBudget> = budgets
        .iter()
        .map(|spec| {
            let mut spec = spec.clone();
            spec["selector"] = json!({"matchLabels": {"app": "a"}});
            serde_json::from_value(json!({"spec": spec})).unwrap()
        })
        .collect();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(Budgets::new(&budgets).may_move(&pod(&value), now), expected, "{value} {budgets:?}");
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(json!({})), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[test]
fn pods_of_deleting_nodes_move_if_they_come_back() {
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let with = |mut value: Value| {
        merge(&mut value, &going);
        value
    };
    check_moves(&json!({}), &[], true);
    check_moves(&going, &[], false);
    check_moves(&with(owned("apps/v1", "ReplicaSet")), &[], false);
    check_moves(&with(owned("apps/v1", "StatefulSet")), &[], true);
    check_moves(&owned("apps/v1", "DaemonSet"), &[], false);
    check_moves(&owned("v1", "Node"), &[], false);
    check_moves(&json!({"status": {"phase": "Failed"}}), &[], false);
}

#[test]
fn protected_pods_stay() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    check_moves(&protected, &[], false);
    let mut going = owned("apps/v1", "StatefulSet");
    merge(&mut going, &protected);
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    check_moves(&going, &[], true);
}

#[test]
fn budgets_that_allow_nothing_block() {
    for spec in
        [json!({"maxUnavailable": 0}), json!({"maxUnavailable": "0%"}), json!({"minAvailable": "100%"})]
    {
        check_moves(&json!({}), std::slice::from_ref(&spec), false);
    }
    let generous = json!({"maxUnavailable": 1});
    check_moves(&json!({}), std::slice::from_ref(&generous), true);
    check_moves(&json!({}), &[generous.clone(), generous], false);
    check_moves(&json!({}), &[json!({"minAvailable": 100})], true);
}

#[test]
fn unhealthy_pods_may_go_if_the_budget_says_so() {
    let sick = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let strict = json!({"maxUnavailable": 0});
    let lenient = json!({"maxUnavailable": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"});
    check_moves(&sick, &[strict], false);
    check_moves(&sick, std::slice::from_ref(&lenient), true);
    check_moves(&json!({}), &[lenient], false);
}

#[test]
fn pods_that_are_not_evicted_are_not_blocked() {
    let tolerant =
        json!({"spec": {"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]}});
    check_moves(&tolerant, &[json!({"maxUnavailable": 0})], true);
    let other = json!({"spec": {"tolerations": [{"key": "karpenter.sh/disrupted", "value": "x"}]}});
    check_moves(&other, &[json!({"maxUnavailable": 0})], false);
}

/// What blocks a pod at present, of budgets with these specs and numbers of allowed disruptions.
fn blocked_now(pod_value: &Value, budgets: &[(Value, i32)]) -> Option<String> {
    let mut value = json!({"metadata": {"name": "a", "labels": {"app": "a"}}});
    merge(&mut value, pod_value);
    let budgets: Vec<PodDisruptionBudget> = budgets
        .iter()
        .enumerate()
        .map(|(index, (spec, allowed))| {
            let mut spec = spec.clone();
            spec["selector"] = json!({"matchLabels": {"app": "a"}});
            let metadata = json!({"name": format!("b{index}"), "namespace": "default"});
            let status = json!({"disruptionsAllowed": allowed});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
        })
        .collect();
    let pod = pod(&value);
    let blocked = Budgets::new(&budgets).first_blocked([&pod], Timestamp::UNIX_EPOCH);
    blocked.map(|(_, blocked)| blocked.to_string())
}

#[test]
fn a_budget_that_allows_nothing_at_present_blocks_a_node() {
    let spec = json!({"maxUnavailable": 1});
    assert_eq!(
        blocked_now(&json!({}), &[(spec.clone(), 0)]).as_deref(),
        Some("pdb prevents pod evictions (PodDisruptionBudget=[default/b0])")
    );
    assert_eq!(blocked_now(&json!({}), &[(spec.clone(), 1)]), None);
    let strict = json!({"maxUnavailable": 0});
    assert_eq!(blocked_now(&json!({}), &[(strict, 1)]), None, "only what is allowed now counts");
    let other = json!({"metadata": {"labels": {"app": "b"}}});
    assert_eq!(blocked_now(&other, &[(spec.clone(), 0)]), None);
    let elsewhere = json!({"metadata": {"namespace": "other"}});
    assert_eq!(blocked_now(&elsewhere, &[(spec, 0)]), None);
}

#[test]
fn several_budgets_block_whatever_they_allow() {
    let spec = json!({"maxUnavailable": 1});
    assert_eq!(
        blocked_now(&json!({}), &[(spec.clone(), 1), (spec, 1)]).as_deref(),
        Some("eviction does not support multiple PDBs (PodDisruptionBudget(s)=[default/b0 default/b1])")
    );
}

#[test]
fn a_budget_that_lets_unhealthy_pods_go_does_not_block_them() {
    let sick = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let lenient = json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"});
    assert_eq!(blocked_now(&sick, &[(lenient.clone(), 0)]), None);
    assert!(blocked_now(&json!({}), &[(lenient, 0)]).is_some());
    assert!(blocked_now(&sick, &[(json!({}), 0)]).is_some());
}

#[test]
fn pods_that_nobody_creates_again_need_room_in_their_budget_all_at_once() {
    let alone = json!({"metadata": {"name": "a", "labels": {"app": "a"}}});
    let mut owned = owned("apps/v1", "ReplicaSet");
    merge(&mut owned, &alone);
    let blocked = |pods: &[&Value], allowed: i32, policy: &str| {
        let budget: PodDisruptionBudget = serde_json::from_value(json!({
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "unhealthyPodEvictionPolicy": policy},
            "status": {"disruptionsAllowed": allowed},
        }))
        .unwrap();
        let pods: Vec<Pod> = pods.iter().map(|value| pod(value)).collect();
        Budgets::new([&budget]).first_outnumbered(&pods, Timestamp::UNIX_EPOCH).is_some()
    };
    assert!(!blocked(&[&alone, &alone], 2, ""));
    assert!(blocked(&[&alone, &alone, &alone], 2, ""));
    // Others come back elsewhere, one after the other.
    assert!(!blocked(&[&owned, &owned, &owned], 1, ""));
    assert!(!blocked(&[&owned, &owned, &alone], 1, ""));
    let mut sick = alone.clone();
    merge(&mut sick, &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}));
    assert!(blocked(&[&alone, &sick], 1, "") && !blocked(&[&alone, &sick], 1, "AlwaysAllow"));
}
