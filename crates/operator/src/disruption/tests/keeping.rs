//! What keeps nodes from being disrupted, and what does not.

use super::*;
use crate::testing::merge;

/// What belongs to something.
fn owned(api_version: &str, kind: &str) -> Value {
    let owner = json!({"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u"});
    json!({"metadata": {"ownerReferences": [owner]}})
}

fn pod_with(change: &Value) -> Value {
    let mut pod = pod_object("a", "n1", &json!({}));
    merge(&mut pod, change);
    pod
}

#[test]
fn pods_of_every_kind_that_ask_for_it_keep_their_node() {
    let text = "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/a)";
    for mut change in [json!({}), owned("v1", "Node"), owned("apps/v1", "DaemonSet")] {
        merge(&mut change, &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
        check_blocked(&one(&json!({}), &json!({}), &[pod_with(&change)]), text);
    }
}

#[test]
fn budgets_of_pods_count_for_daemons_but_not_for_pods_that_are_not_evicted() {
    let text = "Pdb prevents pod evictions (PodDisruptionBudget=[default/b])";
    for change in [json!({}), owned("apps/v1", "DaemonSet")] {
        check_blocked(&one(&json!({}), &json!({}), &[pod_with(&change), budget("b", 0)]), text);
    }
    for change in [
        owned("v1", "Node"),
        json!({"status": {"phase": "Succeeded"}}),
        json!({"status": {"phase": "Failed"}}),
        json!({"metadata": {"deletionTimestamp": NOW}}),
    ] {
        candidate(&json!({}), &[pod_with(&change), budget("b", 0)]);
    }
}

#[test]
fn budgets_of_pods_do_not_count_where_the_node_has_only_so_much_time_and_must_go() {
    let hurried = json!({"spec": {"terminationGracePeriod": "5m"}});
    let more = [pod_with(&json!({})), budget("b", 0)];
    assert_eq!(blocked(&one(&json!({}), &hurried, &more), Class::Eventual), ["+n1"]);
    assert_eq!(blocked(&one(&json!({}), &hurried, &more), Class::Graceful).len(), 2);
    assert_eq!(blocked(&one(&json!({}), &json!({}), &more), Class::Eventual).len(), 2);
}

#[test]
fn nodes_whose_labels_are_missing_or_unknown_can_be_disrupted_all_the_same() {
    for (key, value) in [
        ("karpenter.sh/capacity-type", ""),
        ("topology.kubernetes.io/zone", ""),
        ("node.kubernetes.io/instance-type", ""),
        ("node.kubernetes.io/instance-type", "unheard-of"),
    ] {
        let labels = json!({"metadata": {"labels": {key: value}}});
        let found = found(&one(&labels, &labels, &[]), Class::Graceful, &[]);
        assert_eq!(found.candidates.len(), 1, "{key}");
        assert!(found.candidates[0].price.abs() < 1e-9, "nobody knows what it costs");
    }
}

#[test]
fn nodes_of_others_do_not_count_in_budgets() {
    let mut objects =
        vec![pool_object("p", &json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}))];
    for name in ["n0", "n1"] {
        objects.extend(node_objects(name, "p", &json!({}), &json!({})));
    }
    // It only bears the label.
    objects.push(node_objects("n2", "p", &json!({}), &json!({}))[0].clone());
    let state = state(&objects);
    let all = budgets(&state, &state.state_nodes(), DisruptionReason::Empty, &BTreeSet::new(), now());
    assert_eq!((all["p"].nodes, all["p"].allowed), (2, 2));
}
