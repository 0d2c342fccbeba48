//! 16.26, 27.20: what static pools have too many.

use cluster::state::Kind;
use serde_json::{Value, json};

use super::*;
use crate::static_capacity::tests::{claim_object, static_pool};
use crate::testing::{node_objects, pod_object, pool_object, state};

const NOW: &str = "2026-01-01T12:00:00Z";

/// The names of the claims that go, in the order in which they were chosen; nothing if the pool is left alone.
fn chosen(state: &State) -> Option<Vec<String>> {
    let decided = decide(state, "p", Costs::default(), NOW.parse().unwrap())?;
    Some(decided.iter().map(|claim| claim.metadata.name.clone().unwrap_or_default()).collect())
}

fn goes(objects: &[Value]) -> Option<Vec<String>> {
    chosen(&state(objects))
}

fn claims(count: usize) -> impl Iterator<Item = Value> {
    (0..count).map(|number| claim_object(&format!("c{number}"), "p", &json!({})))
}

#[test]
fn pools_that_are_not_for_it_are_left_alone() {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let foreign = json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}});
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    for pool in [static_pool(0, &foreign), static_pool(0, &deleting), pool_object("p", &json!({}))] {
        let objects: Vec<Value> = [pool].into_iter().chain(claims(2)).collect();
        assert_eq!(goes(&objects), None, "{}", objects[0]);
    }
}

#[test]
fn only_what_is_too_many_goes() {
    for (replicas, known, expected) in [(3, 0, 0), (3, 3, 0), (3, 5, 2), (0, 3, 3), (0, 0, 0)] {
        let pool = static_pool(replicas, &json!({}));
        let objects: Vec<Value> = [pool].into_iter().chain(claims(known)).collect();
        assert_eq!(goes(&objects).unwrap().len(), expected, "{replicas} {known}");
    }
}

#[test]
fn a_pool_that_is_not_ready_still_shrinks() {
    let mut pool = static_pool(1, &json!({}));
    pool["status"]["conditions"][0]["status"] = "False".into();
    let objects: Vec<Value> = [pool].into_iter().chain(claims(2)).collect();
    assert_eq!(goes(&objects).unwrap().len(), 1);
}

#[test]
fn claims_that_go_or_wait_for_their_replacement_are_not_counted() {
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let mut objects: Vec<Value> = [static_pool(2, &json!({}))].into_iter().chain(claims(2)).collect();
    objects.push(claim_object("going", "p", &going));
    assert_eq!(goes(&objects).unwrap(), [""; 0]);
    objects.push(claim_object("old", "p", &json!({})));
    let mut state = state(&objects);
    state.mark_pending_disruption(["old"]);
    assert_eq!(chosen(&state).unwrap(), [""; 0]);
    // whatever happens to the claim meanwhile, it does not count again, so that nothing is too many.
    let touched =
        claim_object("old", "p", &json!({"metadata": {"resourceVersion": "9", "labels": {"x": "y"}}}));
    state.observe(cluster::state::Seen::Applied(Kind::NodeClaim.decode(&touched.to_string()).unwrap()));
    assert_eq!(chosen(&state).unwrap(), [""; 0]);
}

/// Nodes of the pool, with pods on them.
fn cluster(replicas: i64, nodes: &[(&str, Vec<Value>)]) -> State {
    let mut objects = vec![static_pool(replicas, &json!({}))];
    for (name, pods) in nodes {
        let claim = json!({"metadata": {"name": name}});
        objects.extend(node_objects(&format!("node-{name}"), "p", &json!({}), &claim));
        objects.extend(pods.iter().cloned());
    }
    state(&objects)
}

fn pod(name: &str, node: &str, change: &Value) -> Value {
    pod_object(name, &format!("node-{node}"), change)
}

fn daemon(name: &str, node: &str, annotations: &Value) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}]);
    pod(name, node, &json!({"metadata": {"ownerReferences": owner, "annotations": annotations}}))
}

fn costing(name: &str, node: &str, cost: &str) -> Value {
    pod(name, node, &json!({"metadata": {"annotations": {"karpenter.sh/disruption-cost": cost}}}))
}

fn protected() -> Value {
    json!({"karpenter.sh/do-not-disrupt": "true"})
}

#[test]
fn claims_without_an_instance_go_first_then_nodes_without_pods_then_others() {
    let mut objects = vec![static_pool(0, &json!({}))];
    objects.extend(node_objects("busy", "p", &json!({}), &json!({"metadata": {"name": "a-busy"}})));
    objects.push(pod_object("w", "busy", &json!({})));
    objects.extend(node_objects("idle", "p", &json!({}), &json!({"metadata": {"name": "b-idle"}})));
    objects.push(claim_object("c-unlaunched", "p", &json!({})));
    assert_eq!(goes(&objects).unwrap(), ["c-unlaunched", "b-idle", "a-busy"]);
}

#[test]
fn of_nodes_without_pods_those_go_first_that_never_took_any() {
    // As after a restart, which forgets which of them was to be replaced by which.
    let starting = json!({"metadata": {"name": "c-starting"}, "status": {"conditions": [
        {"type": "Initialized", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}});
    let mut objects = vec![static_pool(1, &json!({}))];
    objects.extend(node_objects("a", "p", &json!({}), &json!({"metadata": {"name": "a-idle"}})));
    objects.extend(node_objects("b", "p", &json!({}), &json!({"metadata": {"name": "b-idle"}})));
    objects.extend(node_objects("c", "p", &json!({}), &starting));
    assert_eq!(goes(&objects).unwrap(), ["c-starting", "a-idle"]);
}

#[test]
fn nodes_that_have_only_daemons_or_finished_pods_are_empty() {
    let finished = json!({"status": {"phase": "Succeeded"}});
    let state = cluster(
        1,
        &[
            ("a", vec![pod("w", "a", &json!({}))]),
            ("b", vec![daemon("d", "b", &json!({})), pod("done", "b", &finished)]),
        ],
    );
    assert_eq!(chosen(&state).unwrap(), ["b"]);
}

#[test]
fn what_costs_least_goes_first_and_what_is_protected_last() {
    // Two pods, one pod, a cheap one, and one that asks to be left alone although it costs nothing.
    let state = cluster(
        0,
        &[
            ("a", vec![pod("a1", "a", &json!({})), pod("a2", "a", &json!({}))]),
            ("b", vec![pod("b1", "b", &json!({}))]),
            ("c", vec![costing("c1", "c", "-100000000")]),
            ("d", vec![pod("d1", "d", &json!({"metadata": {"annotations": protected()}}))]),
            ("e", vec![daemon("e1", "e", &protected())]),
            ("f", vec![daemon("f1", "f", &json!({}))]),
        ],
    );
    assert_eq!(chosen(&state).unwrap(), ["f", "c", "b", "a", "d", "e"]);
}

#[test]
fn of_nodes_with_the_same_pods_the_one_that_expires_sooner_goes_first() {
    let with_age = |name: &str, created: &str| {
        let claim = json!({
            "metadata": {"name": name, "creationTimestamp": created}, "spec": {"expireAfter": "24h"},
        });
        node_objects(&format!("node-{name}"), "p", &json!({}), &claim)
    };
    let mut objects = vec![static_pool(1, &json!({}))];
    objects.extend(with_age("a", "2026-01-01T11:00:00Z"));
    objects.extend(with_age("b", "2026-01-01T01:00:00Z"));
    objects.extend([pod("a1", "a", &json!({})), pod("b1", "b", &json!({}))]);
    assert_eq!(goes(&objects).unwrap(), ["b"]);
}

#[test]
fn protection_that_has_elapsed_counts_no_more() {
    let until = |value: &str| {
        json!({
            "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}},
            "status": {"startTime": "2026-01-01T11:00:00Z"},
        })
    };
    let state = cluster(
        1,
        &[
            ("a", vec![pod("a1", "a", &until("2h"))]),
            ("b", vec![pod("b1", "b", &until("30m")), pod("b2", "b", &json!({}))]),
        ],
    );
    assert_eq!(chosen(&state).unwrap(), ["b"]);
}

#[test]
fn it_looks_again_when_pools_change_their_size_and_when_claims_come() {
    let state = state(&[static_pool(1, &json!({}))]);
    let touched = |old: Option<Value>, new: Option<Value>| {
        let decode = |object: Value| {
            let kind = if object["kind"] == "NodePool" { Kind::NodePool } else { Kind::NodeClaim };
            kind.decode(&object.to_string()).unwrap()
        };
        let queue = Queue::new(Backoff::DEFAULT);
        touch(&Change { old: old.map(decode), new: new.map(decode) }, &state, &queue);
        queue.depth()
    };
    let pool = |replicas: i64| Some(static_pool(replicas, &json!({})));
    let claim = |pool: &str| Some(claim_object("c", pool, &json!({})));
    assert_eq!((touched(None, pool(1)), touched(pool(2), pool(1)), touched(pool(1), pool(1))), (1, 1, 0));
    assert_eq!(
        (touched(None, claim("p")), touched(claim("p"), claim("p")), touched(claim("p"), None)),
        (1, 0, 0)
    );
    assert_eq!(touched(None, claim("other")), 0);
}
