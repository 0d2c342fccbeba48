//! What a node and its claim are together.

use serde_json::{Value, json};

use super::*;

fn claim(value: &Value) -> NodeClaim {
    let mut claim = json!({
        "metadata": {
            "name": "c", "labels": {"karpenter.sh/nodepool": "of-claim", "only": "claim"},
            "annotations": {"karpenter.sh/do-not-disrupt": "true"},
        },
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "n"},
            "taints": [{"key": "own", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "boot", "value": "a", "effect": "NoExecute"}],
        },
        "status": {
            "providerID": "kwok://n",
            "capacity": {"cpu": "4", "memory": "8Gi"}, "allocatable": {"cpu": "3", "memory": "7Gi"},
        },
    });
    merge(&mut claim, value);
    serde_json::from_value(claim).unwrap()
}

fn node(labels: &Value, taints: &Value) -> Node {
    let mut node = json!({
        "metadata": {"name": "n", "labels": {"karpenter.sh/nodepool": "of-node", "kubernetes.io/hostname": "h"}},
        "spec": {"providerID": "kwok://n", "taints": taints},
        "status": {"capacity": {"cpu": "5", "memory": "0"}, "allocatable": {"cpu": "5"}},
    });
    merge(&mut node["metadata"]["labels"], labels);
    serde_json::from_value(node).unwrap()
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

fn both<'a>(node: &'a Node, claim: &'a NodeClaim) -> StateNode<'a> {
    StateNode { node: Some(node), claim: Some(claim), ..StateNode::default() }
}

fn condition(type_: &str) -> Value {
    let since = "2026-01-01T00:00:00Z";
    json!({"status": {"conditions": [
        {"type": type_, "status": "True", "reason": "r", "message": "", "lastTransitionTime": since},
    ]}})
}

fn keys(state: &StateNode<'_>) -> Vec<Box<str>> {
    state.taints().into_iter().map(|taint| taint.key).collect()
}

#[test]
fn the_claim_speaks_until_the_node_is_registered() {
    let claim = claim(&json!({}));
    let alone = StateNode { claim: Some(&claim), ..StateNode::default() };
    let joined = node(&json!({}), &json!([]));
    let unregistered = both(&joined, &claim);
    for state in [alone, unregistered] {
        assert!(state.is_managed() && !state.is_registered() && !state.is_initialized());
        assert_eq!((state.name(), state.pool(), state.hostname()), ("c", "of-claim", "c"));
        assert_eq!((state.label("only"), state.provider_id()), ("claim", "kwok://n"));
        assert!(state.is_protected());
        assert_eq!(keys(&state), ["own".into()]);
    }
    let joined = node(&json!({"karpenter.sh/registered": "true"}), &json!([]));
    let registered = both(&joined, &claim);
    assert!(registered.is_registered() && !registered.is_initialized());
    assert_eq!((registered.name(), registered.pool(), registered.hostname()), ("n", "of-node", "h"));
    assert!(registered.label("only").is_empty() && !registered.is_protected());
    assert!(keys(&registered).is_empty());
}

#[test]
fn a_node_without_a_claim_is_taken_as_it_is() {
    let node = node(&json!({}), &json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]));
    let state = StateNode { node: Some(&node), ..StateNode::default() };
    assert!(!state.is_managed() && state.is_registered() && state.is_initialized());
    assert_eq!(keys(&state), ["node.kubernetes.io/not-ready".into()]);
}

#[test]
fn the_claim_fills_the_gaps_until_the_node_is_initialised() {
    let claim = claim(&json!({}));
    let amounts = |state: StateNode<'_>| {
        let capacity = state.capacity();
        [capacity.amount("cpu"), capacity.amount("memory"), state.allocatable().amount("memory")]
            .map(|amount| amount.to_string())
    };
    let alone = StateNode { claim: Some(&claim), ..StateNode::default() };
    assert_eq!(amounts(alone), ["4", "8Gi", "7Gi"]);
    let joined = node(&json!({"karpenter.sh/registered": "true"}), &json!([]));
    assert_eq!(amounts(both(&joined, &claim)), ["5", "8Gi", "7Gi"]);
    let joined =
        node(&json!({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}), &json!([]));
    assert_eq!(amounts(both(&joined, &claim)), ["5", "0", "0"]);
    assert_eq!(both(&joined, &claim).capacity().amount("nodes").to_string(), "1");
}

#[test]
fn taints_that_go_away_by_themselves_do_not_count_while_a_node_starts() {
    let taints = json!([
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        {"key": "readiness.k8s.io/x", "effect": "PreferNoSchedule"},
        {"key": "x/readiness.k8s.io/", "effect": "NoSchedule"},
        {"key": "boot", "value": "b", "effect": "NoExecute"},
        {"key": "boot", "value": "b", "effect": "NoSchedule"},
        {"key": "karpenter.sh/rebooting", "effect": "NoSchedule"},
    ]);
    let claim = claim(&json!({}));
    let starting = node(&json!({"karpenter.sh/registered": "true"}), &taints);
    let left = ["node.kubernetes.io/unreachable", "x/readiness.k8s.io/", "boot", "karpenter.sh/rebooting"];
    assert_eq!(keys(&both(&starting, &claim)), left.map(Box::from));
    let labels = json!({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"});
    assert_eq!(keys(&both(&node(&labels, &taints), &claim)).len(), 7);
}

#[test]
fn a_node_that_boots_again_counts_as_one_that_comes_back() {
    let claim = claim(&condition("Rebooting"));
    let labels = json!({"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"});
    let taints = json!([
        {"key": "karpenter.sh/rebooting", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
        {"key": "web", "effect": "NoSchedule"},
    ]);
    let node = node(&labels, &taints);
    assert!(both(&node, &claim).is_rebooting());
    // N16: it takes pods that wait, but nobody moves pods to it.
    assert!(both(&node, &claim).is_initialized() && !both(&node, &claim).is_settled());
    assert_eq!(keys(&both(&node, &claim)), ["web".into()]);
}

#[test]
fn the_claim_decides_whether_a_node_is_on_its_way_out() {
    let deleted: Node = serde_json::from_value(
        json!({"metadata": {"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    )
    .unwrap();
    let alone = StateNode { node: Some(&deleted), ..StateNode::default() };
    assert!(alone.is_deleting());
    let stays = claim(&json!({}));
    let state = both(&deleted, &stays);
    assert!(!state.is_marked_for_deletion());
    assert!(StateNode { marked: true, ..state }.is_marked_for_deletion());
    let goes = claim(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert!(both(&deleted, &goes).is_deleting());
    let terminating = claim(&condition("InstanceTerminating"));
    assert!(
        both(&deleted, &terminating).is_deleting() && both(&deleted, &terminating).is_instance_terminating()
    );
}

#[test]
fn a_node_is_one_node_whoever_speaks_for_it() {
    let (node, claim) = (node(&json!({}), &json!([])), claim(&json!({})));
    let alone = StateNode { node: Some(&node), ..StateNode::default() };
    let promised = StateNode { claim: Some(&claim), ..StateNode::default() };
    for state in [alone, promised, both(&node, &claim)] {
        assert_eq!(state.capacity().amount("nodes").value(), 1);
    }
}
