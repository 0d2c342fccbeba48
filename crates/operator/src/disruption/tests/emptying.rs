//! What is decided about empty nodes.

use super::decided::{by, drifted};
use super::*;
use crate::disruption::Method;
use crate::disruption::budget::Budgets;
use crate::disruption::command::Command;
use crate::disruption::decision::{Cause, Decision};
use crate::disruption::emptiness::Emptiness;
use crate::disruption::scene::Scene;
use crate::testing::{Logged, merge};

/// Pools with a budget and so many empty nodes each.
fn pools(count: usize, nodes: usize, budget: &str) -> (State, Types) {
    let list: Arc<[_]> = kwok::built_in().into();
    let (mut objects, mut types) = (Vec::new(), Types::new());
    for pool in (0..count).map(|number| format!("p{number}")) {
        let budgets = json!({"spec": {"disruption": {"budgets": [{"nodes": budget}]}}});
        objects.push(pool_object(&pool, &budgets));
        for node in 0..nodes {
            objects.extend(node_objects(&format!("{pool}-n{node}"), &pool, &json!({}), &json!({})));
        }
        types.insert(pool.into(), Arc::clone(&list));
    }
    (state(&objects), types)
}

fn removed(decision: &Decision) -> Vec<&str> {
    assert!(decision.commands.len() <= 1, "they go together");
    decision.commands.iter().flat_map(|it| &it.candidates).map(Candidate::name).collect()
}

#[test]
fn every_pool_has_its_own_budget() {
    for (budget, of_each) in [("50%", 2), ("100%", 3), ("0%", 0), ("1", 1)] {
        let (state, types) = pools(10, 3, budget);
        let (decision, _) = by(&Emptiness, &state, &types, false);
        assert_eq!(removed(&decision).len(), 10 * of_each, "{budget}");
        // Where a budget is why, there is another look when it changes.
        assert_eq!(decision.nothing, of_each == 0);
    }
}

#[test]
fn what_saves_most_goes_first() {
    let small = json!({"metadata": {"labels": {"node.kubernetes.io/instance-type": "c-1x-amd64-linux"}}});
    let mut objects = vec![pool_object("p", &json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}))];
    objects.extend(node_objects("a", "p", &small, &json!({})));
    objects.extend(node_objects("b", "p", &json!({}), &json!({})));
    let (decision, _) = by(&Emptiness, &state(&objects), &types(), false);
    assert_eq!(removed(&decision), ["b"]);
}

fn goes(of_pool: &Value, of_node: &Value, of_claim: &Value) -> bool {
    let mut pool = pool_object("p", &json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}));
    merge(&mut pool, of_pool);
    let mut objects = vec![pool];
    objects.extend(node_objects("n1", "p", of_node, of_claim));
    !removed(&by(&Emptiness, &state(&objects), &types(), false).0).is_empty()
}

#[test]
fn nodes_stay_that_are_fixed_or_kept_for_others_or_protected() {
    let none = json!({});
    assert!(goes(&none, &none, &none));
    assert!(!goes(&json!({"spec": {"replicas": 1}}), &none, &none));
    let protected =
        |value: &str| json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}});
    assert!(!goes(&none, &protected("true"), &none));
    assert!(goes(&none, &protected("false"), &none));
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        assert!(goes(&json!({"spec": {"disruption": {"consolidationPolicy": policy}}}), &none, &none));
    }
    let (mut state, types) = pools(1, 2, "100%");
    state.set_buffer_pods([("kwok://p0-n0".into(), 1)].into());
    let (decision, _) = by(&Emptiness, &state, &types, false);
    assert_eq!(removed(&decision), ["p0-n1"]);
    state.set_buffer_pods([("kwok://p0-n0".into(), 0)].into());
    assert_eq!(removed(&by(&Emptiness, &state, &types, false).0).len(), 2);
}

#[test]
fn an_empty_node_that_has_drifted_goes() {
    let mut claim = drifted("2026-01-01T00:10:00Z");
    let consolidatable = json!({"type": "Consolidatable", "status": "True", "reason": "Consolidatable", "message": "",
        "lastTransitionTime": NOW});
    claim["status"]["conditions"].as_array_mut().unwrap().push(consolidatable.clone());
    assert!(goes(&json!({}), &json!({}), &claim));
    claim["status"]["conditions"][4]["status"] = "False".into();
    assert!(!goes(&json!({}), &json!({}), &claim));
}

#[test]
fn what_is_left_after_a_while_goes() {
    let (state, types) = pools(1, 3, "100%");
    let (mut decision, _) = by(&Emptiness, &state, &types, false);
    let command = decision.commands.remove(0);
    let none = BTreeSet::new();
    let scene = Scene::new(&state, &types, &Arc::default(), &none, now());
    let validate = |candidates: &[Candidate], budgets: &mut Budgets| {
        Emptiness.validate(&scene, command.clone(), candidates.to_vec(), budgets)
    };
    let all = &command.candidates;
    let budget = |nodes: &str| {
        let budgets_of_pool = json!({"spec": {"disruption": {"budgets": [{"nodes": nodes}]}}});
        let mut objects = vec![pool_object("p0", &budgets_of_pool)];
        for name in ["p0-n0", "p0-n1", "p0-n2"] {
            objects.extend(node_objects(name, "p0", &json!({}), &json!({})));
        }
        let state = crate::testing::state(&objects);
        budgets(&state, &state.state_nodes(), DisruptionReason::Empty, &none, now())
    };
    let left = |validated: Result<Command, _>| validated.map(|it: Command| it.candidates.len());
    assert_eq!(left(validate(all, &mut budget("100%"))), Ok(3));
    assert_eq!(left(validate(&all[1..], &mut budget("100%"))), Ok(2));
    assert_eq!(left(validate(all, &mut budget("1"))), Ok(1));
    let gone = validate(&[], &mut budget("100%")).unwrap_err();
    assert_eq!(gone.cause, Cause::Churn);
    assert_eq!(gone.message, "validating candidates, 3 candidates are no longer valid");
    assert_eq!(validate(all, &mut budget("0")).unwrap_err().cause, Cause::Budget);
}

#[test]
fn the_log_warns_of_pods_that_count_for_nothing_when_their_node_goes() {
    let worthless = json!({"spec": {"priority": -2_000_000_000}});
    let mut objects =
        vec![pool_object("p", &json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}))];
    objects.extend(node_objects("n1", "p", &json!({}), &json!({})));
    objects.extend(node_objects("n2", "p", &json!({}), &json!({})));
    objects.extend((0..7).map(|number| pod_object(&format!("a{number}"), "n1", &worthless)));
    let state = state(&objects);
    let (mut decision, _) = by(&Emptiness, &state, &types(), false);
    assert_eq!(removed(&decision), ["n1", "n2"]);
    let command = decision.commands.remove(0);
    let none = BTreeSet::new();
    let scene = Scene::new(&state, &types(), &Arc::default(), &none, now());
    let mut budgets = budgets(&state, &state.state_nodes(), DisruptionReason::Empty, &none, now());
    let logged = Logged::start();
    let candidates = command.candidates.clone();
    assert!(Emptiness.validate(&scene, command, candidates, &mut budgets).is_ok());
    let pods = "default/a0, default/a1, default/a2, default/a3, default/a4 and 2 other(s)";
    let message = "removing a node as empty on which pods run that cost nothing to evict";
    assert_eq!(logged.with(message), [format!("WARN message={message} Node=n1 pods={pods}")]);
}
