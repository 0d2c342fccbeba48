//! Pods of nodes that go away get a place elsewhere, unless nothing will come back or nothing can move.

use serde_json::{Value, json};

use crate::objects::{Pod, with};
use crate::world::{Round, World};

/// A cluster with a node of the type `large` that is being deleted.
fn leaving() -> World {
    let mut world = World::new();
    world.node("leaving", json!({"node.kubernetes.io/instance-type": "large"}));
    let deletion =
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["karpenter.sh/termination"]});
    world.change("Node", "leaving", json!({"metadata": deletion}));
    world
}

/// What is decided about one pod on a node that goes away.
fn decide(pod: Pod, budgets: &[Value]) -> Round {
    let mut world = leaving();
    for budget in budgets {
        world.add(budget.clone());
    }
    world.running(pod.name("web"), "leaving");
    world.plan()
}

#[track_caller]
fn check(pod: Pod, budgets: &[Value], moves: bool) {
    let round = decide(pod, budgets);
    assert_eq!(round.places.len(), usize::from(moves), "{round:?}");
    assert_eq!(round.claims.len(), usize::from(moves));
}

/// 27.12-01
#[test]
fn a_running_pod_gets_a_node_of_the_type_that_it_needs() {
    let round = decide(Pod::new().cpu("10"), &[]);
    round.expect_all_placed().expect_nodes(1);
    assert_eq!(round.types, [["arm", "large"]]);
}

/// 27.12-01
#[test]
fn the_node_that_goes_away_takes_no_pods_itself() {
    let mut world = leaving();
    world.pod(Pod::new().name("web"));
    let round = world.plan();
    assert_ne!(round.expect_place("web"), "leaving");
}

/// 27.12-01
#[test]
fn pods_that_will_not_come_back_get_no_node() {
    check(Pod::new(), &[], true);
    check(Pod::new().deleting(), &[], false);
    check(Pod::new().deleting().owned_by("apps/v1", "ReplicaSet", "web"), &[], false);
    check(Pod::new().owned_by("apps/v1", "ReplicaSet", "web"), &[], true);
    check(Pod::new().owned_by("apps/v1", "DaemonSet", "web"), &[], false);
    check(Pod::new().phase("Succeeded"), &[], false);
}

/// 27.12-01
#[test]
fn a_pod_that_keeps_its_name_comes_back_although_it_is_terminating() {
    check(Pod::new().deleting().owned_by("apps/v1", "StatefulSet", "web"), &[], true);
}

fn budget(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "default"},
        "spec": with(json!({"selector": {"matchLabels": {"app": "web"}}}), spec),
    })
}

/// 27.12-02
#[test]
fn a_budget_that_never_allows_anything_keeps_pods_where_they_are() {
    for spec in
        [json!({"maxUnavailable": 0}), json!({"maxUnavailable": "0%"}), json!({"minAvailable": "100%"})]
    {
        check(Pod::of("web"), &[budget("guard", spec.clone())], false);
        check(Pod::of("other"), &[budget("guard", spec)], true);
    }
    for spec in
        [json!({"maxUnavailable": 1}), json!({"maxUnavailable": "1%"}), json!({"minAvailable": "99%"})]
    {
        check(Pod::of("web"), &[budget("guard", spec)], true);
    }
    check(Pod::of("web"), &[], true);
}

/// 27.12-02
#[test]
fn a_pod_with_two_budgets_cannot_be_evicted_at_all() {
    let lenient = json!({"maxUnavailable": 1});
    check(Pod::of("web"), &[budget("one", lenient.clone()), budget("two", lenient)], false);
}

/// 27.12-02
#[test]
fn an_unhealthy_pod_moves_if_its_budget_lets_such_pods_go() {
    let unhealthy = |world: &mut World| {
        let conditions = json!([{"type": "Ready", "status": "False"}]);
        world.change("Pod", "web", json!({"status": {"conditions": conditions}}));
    };
    for (policy, moves) in [(Some("AlwaysAllow"), true), (Some("IfHealthyBudget"), false), (None, false)] {
        let mut world = leaving();
        let spec = json!({"maxUnavailable": 0, "unhealthyPodEvictionPolicy": policy});
        world.add(budget("guard", spec));
        world.running(Pod::of("web").name("web"), "leaving");
        world.plan().expect_placed(0);
        unhealthy(&mut world);
        world.plan().expect_placed(usize::from(moves));
    }
}

/// 27.12-02
#[test]
fn a_pod_that_asks_to_be_left_alone_is() {
    check(Pod::of("web").annotation("karpenter.sh/do-not-disrupt", "true"), &[], false);
    check(Pod::of("web").annotation("karpenter.sh/do-not-disrupt", "false"), &[], true);
}
