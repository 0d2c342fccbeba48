//! Which broken nodes are repaired, and how.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloud::RepairPolicy;
use cluster::costs::Costs;
use cluster::instance_types::kwok;
use jiff::SignedDuration;
use runtime::Settings;
use serde_json::{Value, json};

use super::*;
use crate::catalogue::Types;
use crate::disruption::glance::{Look, glance};
use crate::testing::{merge, node_objects, pod_object, pool_object, state};

/// A time in minutes; it is minute 0 now.
fn minute(minute: i64) -> Timestamp {
    let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    now + SignedDuration::from_mins(minute)
}

fn rule(condition: &'static str, priority: u8, action: RepairAction, grace: Option<u64>) -> RepairPolicy {
    RepairPolicy {
        condition,
        status: "True",
        reason_pattern: ".*",
        toleration: Duration::from_mins(30),
        termination_grace_period: grace.map(Duration::from_secs),
        priority,
        action,
    }
}

fn repair() -> Repair {
    let fallback = RepairPolicy { reason_pattern: "", ..rule("Else", 0, RepairAction::Replace, None) };
    let rules = vec![
        fallback,
        rule("Bad", 10, RepairAction::Replace, None),
        rule("Worse", 90, RepairAction::Replace, Some(300)),
        rule("Dead", 10, RepairAction::Replace, Some(0)),
        rule("Stuck", 10, RepairAction::Reboot, Some(60)),
    ];
    Repair::new(Arc::new(Policies::compile(rules).unwrap()))
}

fn types() -> Types {
    [("p".into(), Arc::from(kwok::built_in()))].into()
}

/// What the Node says that has had a condition for some minutes.
fn broken(condition: &str, minutes: i64) -> Value {
    json!({"status": {"conditions": [
        {"type": "Ready", "status": "True"},
        {"type": condition, "status": "True", "reason": "Because",
            "lastTransitionTime": minute(-minutes).to_string()},
    ]}})
}

fn with(mut value: Value, change: &Value) -> Value {
    merge(&mut value, change);
    value
}

fn claim_condition(kind: &str, status: &str, since: i64) -> Value {
    json!({"type": kind, "status": status, "reason": kind, "message": "",
        "lastTransitionTime": minute(since).to_string()})
}

/// What was decided and told.
#[derive(Debug)]
struct Told {
    commands: Vec<Command>,
    eligible: usize,
    notices: Vec<String>,
}

impl Told {
    /// The commands, as `decision: [nodes]`.
    fn shown(&self) -> Vec<String> {
        let shown = self.commands.iter().map(|it| it.short_text(&it.candidates[0]));
        shown.collect()
    }
}

fn decide_with(settings: Settings, state: &State) -> Told {
    let (repair, types, none) = (repair(), types(), BTreeSet::new());
    let now = minute(0);
    let look =
        Look { types: &types, taken: &none, relied_on: &none, leaving: &none, costs: Costs::default(), now };
    let mut glance = glance(state, [&repair as &dyn Method], look);
    let mut view = glance.views.remove(0);
    let scene = Scene::new(state, &types, &Arc::new(settings), &none, now);
    let eligible = view.candidates.len();
    let decision = repair.decide(&scene, view.candidates, &mut view.budgets);
    let notices = glance.notices.into_iter().chain(decision.notices);
    let notices = notices.filter(|it| it.event.reason != "DoNotDisruptUntil");
    let notices = notices.map(|it| format!("{}: {}: {}", it.event.reason, it.about.name, it.message));
    Told { commands: decision.commands, eligible, notices: notices.collect() }
}

fn pool(change: &Value) -> Value {
    let ready = json!({"status": {"conditions": [claim_condition("Ready", "True", -600)]}});
    let all = json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}});
    pool_object("p", &with(with(ready, &all), change))
}

fn decide_in(pool: Value, nodes: &[Vec<Value>]) -> Told {
    let mut objects = vec![pool];
    objects.extend(nodes.concat());
    decide_with(Settings::default(), &state(&objects))
}

fn decide(nodes: &[Vec<Value>]) -> Told {
    decide_in(pool(&json!({})), nodes)
}

fn node(name: &str, of_node: &Value) -> Vec<Value> {
    node_objects(name, "p", of_node, &json!({})).to_vec()
}

fn node_with(name: &str, of_node: &Value, of_claim: &Value, pods: &[Value]) -> Vec<Value> {
    let mut objects = node_objects(name, "p", of_node, of_claim).to_vec();
    objects.extend_from_slice(pods);
    objects
}

/// A pod that needs a node of its own.
fn pod(name: &str, node: &str, change: &Value) -> Value {
    let large = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}});
    pod_object(name, node, &with(large, change))
}

fn protected() -> Value {
    json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
}

#[test]
fn an_empty_node_is_deleted_and_one_with_pods_is_replaced() {
    assert_eq!(decide(&[node("a", &broken("Bad", 60))]).shown(), ["delete: [a]"]);
    let full = node_with("a", &broken("Bad", 60), &json!({}), &[pod("x", "a", &json!({}))]);
    let told = decide(std::slice::from_ref(&full));
    assert_eq!(told.shown(), ["replace: [a] -> [1 replacement]"]);
    // Where its pods fit elsewhere nothing is launched.
    assert_eq!(decide(&[full, node("b", &json!({}))]).shown(), ["delete: [a]"]);
}

#[test]
fn a_node_is_left_alone_as_long_as_its_condition_is_tolerated() {
    assert_eq!(decide(&[node("a", &broken("Bad", 29))]).eligible, 0);
    assert_eq!(decide(&[node("a", &broken("Bad", 30))]).eligible, 1);
    assert_eq!(decide(&[node("a", &broken("Fine", 300))]).eligible, 0);
}

#[test]
fn a_pattern_that_fits_comes_before_the_policy_for_all_else() {
    let told = decide(&[node("a", &broken("Bad", 60))]);
    let resolution = &told.commands[0].candidates[0].repaired.as_ref().unwrap().resolution;
    assert_eq!((&*resolution.condition, resolution.is_fallback, resolution.pattern), ("Bad", false, ".*"));
}

#[test]
fn a_node_that_must_not_be_repaired_says_so_but_only_if_it_would_be() {
    let keep = json!({"metadata": {"annotations": {"karpenter.sh/do-not-repair": "true"}}});
    let told = decide(&[node("a", &with(broken("Bad", 60), &keep))]);
    let text = r#"repair is blocked through the "karpenter.sh/do-not-repair" annotation"#;
    assert_eq!(
        told.notices,
        [format!("DisruptionBlocked: a: {text}"), format!("DisruptionBlocked: claim-a: {text}")]
    );
    assert_eq!((told.eligible, told.commands.len()), (0, 0));
    assert!(decide(&[node("a", &with(broken("Bad", 10), &keep))]).notices.is_empty());
    let not_quite = json!({"metadata": {"annotations": {"karpenter.sh/do-not-repair": "yes"}}});
    assert_eq!(decide(&[node("a", &with(broken("Bad", 60), &not_quite))]).commands.len(), 1);
}

#[test]
fn protection_of_a_node_from_disruption_does_not_count() {
    assert_eq!(decide(&[node("a", &with(broken("Bad", 60), &protected()))]).shown(), ["delete: [a]"]);
}

#[test]
fn a_node_whose_pods_must_stay_needs_a_bound() {
    let pods = [pod("x", "a", &protected())];
    let unbounded = node_with("a", &broken("Bad", 60), &json!({}), &pods);
    let told = decide(&[unbounded]);
    let text = "repair requires a termination grace period to bypass blocking pods";
    assert_eq!(
        told.notices,
        [format!("DisruptionBlocked: a: {text}"), format!("DisruptionBlocked: claim-a: {text}")]
    );
    assert!(told.commands.is_empty());
    // With a bound, there is room for them elsewhere before they are forced.
    let by_policy = node_with("a", &broken("Worse", 60), &json!({}), &pods);
    assert_eq!(decide(&[by_policy]).shown(), ["replace: [a] -> [1 replacement]"]);
    let grace = json!({"spec": {"terminationGracePeriod": "10m"}});
    let by_claim = node_with("a", &broken("Bad", 60), &grace, &pods);
    assert_eq!(decide(&[by_claim]).shown(), ["replace: [a] -> [1 replacement]"]);
    let budget = json!({"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "a"}}}});
    let kept = node_with("a", &broken("Worse", 60), &json!({}), &[pod("x", "a", &json!({})), budget]);
    assert_eq!(decide(&[kept]).shown(), ["replace: [a] -> [1 replacement]"]);
}

#[test]
fn pods_have_as_long_as_the_policy_and_the_claim_allow() {
    let bound = |condition: &str, of_claim: &Value| {
        let told = decide(&[node_with("a", &broken(condition, 60), of_claim, &[])]);
        told.commands[0].candidates[0].drain_bound.map(|bound| bound.to_string())
    };
    let of_claim = |text: &str| json!({"spec": {"terminationGracePeriod": text}});
    assert_eq!(bound("Bad", &of_claim("1h")), None, "the claim says so by itself");
    assert_eq!(bound("Worse", &json!({})).as_deref(), Some("5m0s"));
    assert_eq!(bound("Worse", &of_claim("1h")).as_deref(), Some("5m0s"));
    assert_eq!(bound("Worse", &of_claim("10s")).as_deref(), Some("10s"));
    assert_eq!(bound("Dead", &of_claim("10s")).as_deref(), Some("0s"));
}

#[test]
fn a_budget_of_zero_stops_repair_of_nodes_that_count_in_it() {
    let budgets = |nodes: &str, reasons: Option<&str>| {
        let reasons = reasons.map_or(json!(null), |reason| json!([reason]));
        pool(&json!({"spec": {"disruption": {"budgets": [{"nodes": nodes, "reasons": reasons}]}}}))
    };
    let nodes = [node("a", &broken("Bad", 60))];
    assert!(decide_in(budgets("0", None), &nodes).commands.is_empty());
    assert!(decide_in(budgets("0", Some("Unhealthy")), &nodes).commands.is_empty());
    assert_eq!(decide_in(budgets("0", Some("Drifted")), &nodes).shown(), ["delete: [a]"]);
    let uninitialized = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    let nodes = [node("a", &with(broken("Bad", 60), &uninitialized))];
    assert_eq!(decide_in(budgets("0", None), &nodes).shown(), ["delete: [a]"]);
}

#[test]
fn nodes_that_are_not_ready_do_not_use_up_the_budget_of_repair() {
    let one = pool(&json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}));
    let mut dark = broken("Bad", 60);
    dark["status"]["conditions"][0]["status"] = json!("False");
    let healthy = ["b", "c", "d", "e", "f"].map(|name| node(name, &json!({})));
    let mut nodes = vec![node("a", &dark)];
    nodes.extend(healthy);
    assert_eq!(decide_in(one, &nodes).shown(), ["delete: [a]"]);
}

#[test]
fn nodes_that_never_registered_and_those_that_pods_are_expected_on_are_left_alone() {
    let unregistered = json!({"metadata": {"labels": {
        "karpenter.sh/initialized": "false", "karpenter.sh/registered": "false"}}});
    assert_eq!(decide(&[node("a", &with(broken("Bad", 60), &unregistered))]).eligible, 0);
    let nominated = |change: &Value| {
        let mut objects = vec![pool(&json!({}))];
        objects.extend(node("a", &with(broken("Bad", 60), change)));
        let mut state = state(&objects);
        state.nominate("kwok://a", minute(10));
        decide_with(Settings::default(), &state).eligible
    };
    assert_eq!(nominated(&json!({})), 0);
    let uninitialized = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    assert_eq!(nominated(&uninitialized), 1, "it never gets ready for them");
}

#[test]
fn too_many_broken_nodes_of_a_pool_stop_repair_and_everything_that_it_concerns_says_so() {
    let healthy = |name| node(name, &json!({}));
    // Those count, too, whose condition is still tolerated.
    let told = decide(&[node("a", &broken("Bad", 60)), node("b", &broken("Bad", 1)), healthy("c")]);
    let text = r#"more than 20% of nodes in nodepool "p" are unhealthy"#;
    let expected = ["a", "claim-a", "p"].map(|name| format!("NodeRepairBlocked: {name}: {text}"));
    assert_eq!((told.notices, told.commands.len(), told.eligible), (expected.to_vec(), 0, 1));
    let told = decide(&[node("a", &broken("Bad", 60)), healthy("b"), healthy("c")]);
    assert_eq!(told.shown(), ["delete: [a]"]);
    let uninitialized = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    let starting = with(broken("Bad", 60), &uninitialized);
    assert!(decide(&[node("a", &starting), node("b", &starting), healthy("c")]).commands.is_empty());
}

/// Enough healthy nodes that the breaker lets `broken` of them be broken.
fn among_healthy(mut nodes: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    nodes.extend((0..20).map(|number| node(&format!("z{number}"), &json!({}))));
    nodes
}

#[test]
fn the_most_urgent_node_comes_first_and_one_at_a_time() {
    let first = |nodes: Vec<Vec<Value>>| decide(&among_healthy(nodes)).shown();
    let priority = vec![node("a", &broken("Bad", 60)), node("b", &broken("Worse", 60))];
    assert_eq!(first(priority), ["delete: [b]"]);
    // One that has waited for two hours is more urgent than a higher priority.
    let starving = vec![node("a", &broken("Bad", 30 + 120)), node("b", &broken("Worse", 30 + 60))];
    assert_eq!(first(starving), ["delete: [a]"]);
    let equal = vec![node("b", &broken("Bad", 60)), node("a", &broken("Bad", 60))];
    assert_eq!(first(equal), ["delete: [a]"]);
    let busy = node_with("a", &broken("Bad", 60), &json!({}), &[pod("x", "a", &json!({}))]);
    assert_eq!(first(vec![busy, node("b", &broken("Bad", 60))]), ["delete: [b]"]);
}

#[test]
fn a_node_whose_pods_have_no_place_says_so_and_the_next_one_has_its_turn() {
    let giant = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9k"}}}]}});
    let stuck = node_with("a", &broken("Worse", 60), &json!({}), &[pod_object("x", "a", &giant)]);
    let told = decide(&among_healthy(vec![stuck, node("b", &broken("Bad", 60))]));
    assert_eq!(told.shown(), ["delete: [b]"]);
    assert!(
        told.notices[0].starts_with("DisruptionBlocked: a: Not all pods would schedule, default/x => "),
        "{:?}",
        told.notices
    );
}

#[test]
fn a_node_is_booted_again_twice_a_day_and_replaced_then() {
    let told = decide(&[node("a", &broken("Stuck", 60))]);
    assert_eq!(told.shown(), ["reboot: [a]"]);
    assert!(!told.commands[0].candidates[0].repaired.as_ref().unwrap().is_escalated);
    assert!(told.commands[0].savings().abs() < 1e-9);
    let history = |hours: &[i64]| {
        let times: Vec<String> = hours.iter().map(|hours| minute(-60 * hours).to_string()).collect();
        json!({"metadata": {"annotations": {"karpenter.sh/reboot-history": times.join(",")}}})
    };
    let after = |hours: &[i64]| decide(&[node_with("a", &broken("Stuck", 60), &history(hours), &[])]);
    assert_eq!(after(&[3]).shown(), ["reboot: [a]"]);
    assert_eq!(after(&[3, 25]).shown(), ["reboot: [a]"]);
    let told = after(&[3, 5]);
    assert_eq!(told.shown(), ["delete: [a]"]);
    let repaired = told.commands[0].candidates[0].repaired.clone().unwrap();
    assert!(repaired.is_escalated);
    assert_eq!(&*repaired.resolution.condition, "Stuck");
    assert_eq!(told.commands[0].shown_nodes()[0]["reboot-escalated"], true);
}

#[test]
fn after_a_reboot_a_condition_is_tolerated_anew() {
    let ended =
        |since: i64| json!({"status": {"conditions": [claim_condition("Rebooting", "False", -since)]}});
    let uninitialized = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    for change in [json!({}), uninitialized] {
        let broken = with(broken("Bad", 600), &change);
        assert_eq!(decide(&[node_with("a", &broken, &ended(29), &[])]).eligible, 0);
        assert_eq!(decide(&[node_with("a", &broken, &ended(31), &[])]).eligible, 1);
    }
    let rebooting = json!({"status": {"conditions": [claim_condition("Rebooting", "True", -300)]}});
    assert_eq!(decide(&[node_with("a", &broken("Bad", 600), &rebooting, &[])]).eligible, 0);
}

#[test]
fn nodes_without_a_pool_say_that_they_need_one_if_they_are_broken() {
    // N1: not of nodes that are well.
    let alone = json!({"metadata": {"labels": {"karpenter.sh/nodepool": ""}}});
    let told = decide(&[node("a", &with(broken("Bad", 60), &alone))]);
    let text = "repair requires a NodePool to construct and budget a safe replacement";
    assert_eq!(
        told.notices,
        [format!("DisruptionBlocked: a: {text}"), format!("DisruptionBlocked: claim-a: {text}")]
    );
    assert!(told.commands.is_empty());
    assert!(decide(&[node("a", &alone)]).notices.is_empty());
    assert!(decide(&[node("a", &with(broken("Bad", 3), &alone))]).notices.is_empty());
}

#[test]
fn a_node_of_a_pool_without_known_types_can_be_repaired() {
    // N11: what it is does not matter if it goes or is booted again.
    let other = json!({"metadata": {"labels": {"karpenter.sh/nodepool": "q"}}});
    let budgets = json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}});
    // Nothing is launched from the other pool either.
    let pools = [pool(&json!({"spec": {"limits": {"nodes": "0"}}})), pool_object("q", &budgets)];
    let decide = |condition: &str, more: &[Value]| {
        let of_node = with(broken(condition, 60), &other);
        let node = node_with("a", &of_node, &json!({}), &[pod("x", "a", &json!({}))]);
        decide_with(Settings::default(), &state(&[&pools[..], &node, more].concat()))
    };
    assert_eq!(decide("Stuck", &[]).shown(), ["reboot: [a]"]);
    assert_eq!(decide("Bad", &node("b", &json!({}))).shown(), ["delete: [a]"]);
    let told = decide("Bad", &[]);
    assert!(told.commands.is_empty());
    let text = "DisruptionBlocked: a: Not all pods would schedule, default/x => ";
    assert!(told.notices[0].starts_with(text), "{:?}", told.notices);
}

fn static_pool(replicas: i64, limit: Option<u64>, change: &Value) -> Value {
    let limits = limit.map_or(json!(null), |limit| json!({"nodes": limit.to_string()}));
    pool(&with(json!({"spec": {"replicas": replicas, "limits": limits}}), change))
}

fn first() -> Settings {
    let mut settings = Settings::default();
    settings.gates.terminate_first_repair = true;
    settings.gates.static_capacity = true;
    settings
}

fn decide_static(settings: Settings, pool: Value, of_node: &Value) -> Told {
    let mut objects = vec![pool];
    objects.extend(node("a", of_node));
    decide_with(settings, &state(&objects))
}

#[test]
fn nodes_of_static_pools_are_replaced_one_for_one_within_their_limit() {
    let broken = broken("Bad", 60);
    let told = decide_static(Settings::default(), static_pool(1, None, &json!({})), &broken);
    assert_eq!(told.shown(), ["replace: [a] -> [1 replacement]"]);
    let told = decide_static(Settings::default(), static_pool(1, Some(2), &json!({})), &broken);
    assert_eq!(told.shown(), ["replace: [a] -> [1 replacement]"]);
    let told = decide_static(Settings::default(), static_pool(1, Some(1), &json!({})), &broken);
    let text = "static NodePool is at its node limit and cannot stage a replacement";
    assert_eq!(told.notices[0], format!("DisruptionBlocked: a: {text}"));
    assert!(told.commands.is_empty());
    // It has one too many anyway.
    let told = decide_static(Settings::default(), static_pool(0, None, &json!({})), &broken);
    assert_eq!((told.commands.len(), told.notices.len()), (0, 0));
}

#[test]
fn a_node_of_a_full_static_pool_goes_first_if_the_gate_is_on() {
    let broken = broken("Bad", 60);
    let told = decide_static(first(), static_pool(1, Some(1), &json!({})), &broken);
    assert_eq!(told.shown(), ["terminate-first: [a]"]);
    assert_eq!(told.commands[0].kind, Kind::TerminateFirst("static-at-limit"));
    let unready = json!({"status": {"conditions": [claim_condition("Ready", "False", -600)]}});
    let told = decide_static(first(), static_pool(1, Some(1), &unready), &broken);
    assert!(told.commands.is_empty() && told.notices.len() == 2);
    let leaving = json!({"metadata": {"deletionTimestamp": minute(-1).to_string()}});
    let told = decide_static(first(), static_pool(1, Some(1), &leaving), &broken);
    assert!(told.commands.is_empty());
    // Where nobody looks after static pools, nobody would bring it back.
    let mut off = first();
    off.gates.static_capacity = false;
    let told = decide_static(off, static_pool(1, Some(1), &json!({})), &broken);
    let text = "static NodePool is at its node limit and cannot stage a replacement";
    assert_eq!((told.commands.len(), &*told.notices[0]), (0, &*format!("DisruptionBlocked: a: {text}")));
    // Only the gate of repair counts.
    let mut of_drift = Settings::default();
    of_drift.gates.terminate_first_drift = true;
    let told = decide_static(of_drift, static_pool(1, Some(1), &json!({})), &broken);
    assert!(told.commands.is_empty());
}

#[test]
fn policies_are_needed_only_where_nodes_are_repaired_by_them() {
    let cloud = crate::testing::FakeCloud::default();
    let gated = |gate: bool, legacy: bool| {
        let mut settings = Settings { legacy_node_repair: legacy, ..Settings::default() };
        settings.gates.node_repair = gate;
        policies(&settings, &cloud)
    };
    assert!(matches!(gated(false, false), Ok(None)));
    assert!(matches!(gated(true, true), Ok(None)));
    assert_eq!(
        gated(true, false).unwrap_err(),
        "node repair requires the cloud provider to define RepairPolicies, but it defines none"
    );
    *cloud.policies.lock() = vec![rule("Bad", 0, RepairAction::Replace, None)];
    assert_eq!(
        gated(true, false).unwrap_err(),
        "node repair requires valid RepairPolicies, repair policy set must define one default fallback"
    );
}
