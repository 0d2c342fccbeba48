//! What is decided about drifted nodes of pools with a fixed number of nodes.

use api::provider::Provider;
use runtime::Settings;

use super::decided::{by, by_types, drifted, shown};
use super::drifting::{full_beside_another, full_reservation, reserved_node, reserved_pool};
use super::*;
use crate::disruption::decision::Decision;
use crate::disruption::static_drift::StaticDrift;
use crate::testing::{Logged, state_of};

const SINCE: &str = "2026-01-01T00:10:00Z";

fn ready() -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": SINCE}]}})
}

/// A pool with so many nodes, all of them drifted.
fn pool_of(name: &str, nodes: usize, spec: &Value) -> Vec<Value> {
    let mut pool = pool_object(name, &json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}));
    crate::testing::merge(&mut pool, &ready());
    crate::testing::merge(&mut pool, &json!({"spec": spec}));
    let mut objects = vec![pool];
    for number in 0..nodes {
        objects.extend(node_objects(&format!("{name}{number}"), name, &json!({}), &drifted(SINCE)));
    }
    objects
}

fn both() -> Types {
    let types: Arc<[_]> = kwok::built_in().into();
    [("p".into(), Arc::clone(&types)), ("q".into(), types)].into()
}

fn decided(objects: &[Value], terminate_first: bool) -> Decision {
    by(&StaticDrift, &state(objects), &both(), terminate_first).0
}

fn replaced(objects: &[Value]) -> usize {
    let decision = decided(objects, false);
    for command in &decision.commands {
        assert_eq!(command.short_text(&command.candidates[0]).matches("replace").count(), 2);
        let launch = &command.replacements[0];
        assert!(launch.is_static() && launch.new.types.is_empty() && launch.price() == 0.0);
    }
    decision.commands.len()
}

#[test]
fn all_nodes_are_replaced_one_for_one_as_far_as_budgets_and_limits_allow() {
    assert_eq!(replaced(&pool_of("p", 5, &json!({"replicas": 5}))), 5);
    for (budget, expected) in [("3", 3), ("40%", 2), ("0", 0)] {
        let spec = json!({"replicas": 5, "disruption": {"budgets": [{"nodes": budget}]}});
        assert_eq!(replaced(&pool_of("p", 5, &spec)), expected, "{budget}");
    }
    for (limit, expected) in [("7", 2), ("6", 1), ("5", 0), ("4", 0)] {
        let spec = json!({"replicas": 5, "limits": {"nodes": limit}});
        assert_eq!(replaced(&pool_of("p", 5, &spec)), expected, "{limit}");
    }
}

#[test]
fn pools_do_not_depend_on_each_other() {
    let mut objects = pool_of("p", 2, &json!({"replicas": 2, "limits": {"nodes": "2"}}));
    objects.extend(pool_of("q", 3, &json!({"replicas": 3, "disruption": {"budgets": [{"nodes": "2"}]}})));
    assert_eq!(replaced(&objects), 2);
}

#[test]
fn a_pool_that_has_too_many_nodes_waits_until_some_are_gone() {
    assert_eq!(replaced(&pool_of("p", 6, &json!({"replicas": 5}))), 0);
    assert_eq!(replaced(&pool_of("p", 2, &json!({"replicas": 0}))), 0);
}

#[test]
fn what_is_under_way_counts() {
    let objects = pool_of("p", 5, &json!({"replicas": 5, "limits": {"nodes": "7"}}));
    let mut state = state(&objects);
    state.reserve("p", Some(7), 1);
    assert_eq!(by(&StaticDrift, &state, &both(), false).0.commands.len(), 1);
    state.reserve("p", Some(7), 1);
    assert_eq!(by(&StaticDrift, &state, &both(), false).0.commands.len(), 0);
}

#[test]
fn nodes_that_did_not_drift_or_are_protected_or_of_other_pools_stay() {
    let mut objects = pool_of("p", 0, &json!({"replicas": 3}));
    objects.extend(node_objects("a", "p", &json!({}), &json!({})));
    let mut not = drifted(SINCE);
    not["status"]["conditions"][3]["status"] = "False".into();
    objects.extend(node_objects("b", "p", &json!({}), &not));
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    objects.extend(node_objects("c", "p", &protected, &drifted(SINCE)));
    objects.extend(pool_of("q", 1, &json!({})));
    assert_eq!(replaced(&objects), 0);
}

#[test]
fn a_pool_without_room_says_so_or_lets_a_node_go_first() {
    let at_limit =
        json!({"replicas": 2, "limits": {"nodes": "2"}, "disruption": {"budgets": [{"nodes": "1"}]}});
    let objects = pool_of("p", 2, &at_limit);
    let text = "static NodePool is at its node limit and cannot stage a replacement";
    let blocked = [format!("p0: {text}"), format!("claim-p0: {text}")];
    assert_eq!(shown(&decided(&objects, false)), blocked);
    let first = decided(&objects, true);
    assert_eq!(shown(&first), ["terminate-first: [p0]"]);
    let why = crate::disruption::command::Kind::TerminateFirst("static-at-limit");
    assert_eq!(first.commands[0].kind, why);
    // A pool that gets no other node keeps what it has.
    let mut unready = objects.clone();
    unready[0]["status"]["conditions"][0]["status"] = "False".into();
    assert_eq!(shown(&decided(&unready, true)), blocked);
    let mut leaving = objects;
    leaving[0]["metadata"]["deletionTimestamp"] = SINCE.into();
    assert_eq!(shown(&decided(&leaving, true)), blocked);
}

#[test]
fn a_pool_whose_reservations_are_used_up_lets_those_go_first_that_hold_them() {
    let spec = json!({"replicas": 2, "disruption": {"budgets": [{"nodes": "100%"}]}});
    let mut pool = reserved_pool(&ready());
    crate::testing::merge(&mut pool, &json!({"spec": spec}));
    let stale = json!({"karpenter.k8s.aws/capacity-reservation-id": "cr-9"});
    let mut objects = vec![pool];
    objects.extend(reserved_node("n1", &stale, &[]));
    objects.extend(reserved_node("n2", &json!({}), &["1"]));
    let decide = |objects: &[Value], gate| {
        shown(&by(&StaticDrift, &state_of(Provider::Aws, objects), &full_reservation(), gate).0)
    };
    let text = "static NodePool's capacity reservations are full and cannot stage a replacement";
    let expected = ["terminate-first: [n2]".to_owned(), format!("n1: {text}"), format!("claim-n1: {text}")];
    assert_eq!(decide(&objects, true), expected);
    // Where only one may go it is one that holds a place, whatever the names.
    objects[0]["spec"]["disruption"]["budgets"] = json!([{"nodes": "1"}]);
    assert_eq!(decide(&objects, true), ["terminate-first: [n2]"]);
    objects[0]["spec"]["disruption"]["budgets"] = json!([{"nodes": "100%"}]);
    // Without the gate nobody looks at reservations.
    assert_eq!(decide(&objects, false).len(), 2);
    assert!(decide(&objects, false)[0].starts_with("replace: "));
    // What the template does not admit does not count, whatever is left of it.
    let of = |types: &Types, objects: &[Value]| {
        shown(&by(&StaticDrift, &state_of(Provider::Aws, objects), types, true).0)
    };
    assert!(of(&full_beside_another(), &objects)[0].starts_with("replace: "));
    let only = json!([{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m.large"]}]);
    objects[0]["spec"]["template"]["spec"]["requirements"] = only;
    assert_eq!(of(&full_beside_another(), &objects), expected);
    // A template that nothing on offer fits is no matter of reservations.
    let elsewhere = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["nowhere"]}]);
    objects[0]["spec"]["template"]["spec"]["requirements"] = elsewhere;
    assert!(decide(&objects, true)[0].starts_with("replace: "));
}

#[test]
fn a_pool_whose_types_nobody_knows_is_passed_over_and_others_are_not() {
    let mut pool = reserved_pool(&ready());
    crate::testing::merge(&mut pool, &json!({"spec": {"replicas": 1}}));
    let mut objects = vec![pool.clone()];
    objects.extend(reserved_node("n1", &json!({}), &[]));
    pool["metadata"]["name"] = "q".into();
    objects.push(pool);
    let mut node = reserved_node("n2", &json!({"karpenter.sh/nodepool": "q"}), &[]);
    node[1]["metadata"]["labels"]["karpenter.sh/nodepool"] = "q".into();
    objects.extend(node);
    let mut types = full_reservation();
    types.insert("q".into(), Arc::clone(&types["p"]));
    let later: Types = [("q".into(), Arc::clone(&types["q"]))].into();
    let mut settings = Settings::default();
    settings.gates.static_capacity = true;
    settings.gates.terminate_first_drift = true;
    let logged = Logged::start();
    let state = state_of(Provider::Aws, &objects);
    let (decision, _) = by_types(&StaticDrift, &state, (&types, &later), settings);
    assert_eq!(shown(&decision), ["terminate-first: [n2]"]);
    let message = "skipping static nodepool, failed checking capacity reservations";
    let error = "the instance types of the NodePool are not known";
    assert_eq!(logged.with(message), [format!("ERROR message={message} NodePool=p error={error}")]);
}
