//! What is decided about disruption, without a cluster.

mod cluster;
mod consolidating;
mod drifting;
mod empty;
mod emptying;
mod hindering;
mod keeping;
mod looping;
mod queued;
mod repairing;
mod replacing;
mod safety;
mod statics;

use std::collections::BTreeSet;
use std::sync::Arc;

use ::cluster::costs::Costs;
use ::cluster::instance_types::kwok;
use ::cluster::state::{Key, State};
use api::nodepool::DisruptionReason;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::budget::budgets;
use super::candidate::{Candidate, Found, Search, find};
use super::{Class, leftovers};
use crate::catalogue::Types;
use crate::testing::{node_objects, pod_object, pool_object, state};

mod decided {
    //! What methods decide about a state.

    use runtime::Settings;

    use super::*;
    use crate::disruption::decision::Decision;
    use crate::disruption::glance::{Look, glance};
    use crate::disruption::scene::Scene;
    use crate::disruption::{Method, Reason};

    /// What a method decides, with `TerminateFirstDrift` on or off, and what budgets leave.
    pub(super) fn by(
        method: &dyn Method,
        state: &State,
        types: &Types,
        terminate_first: bool,
    ) -> (Decision, usize) {
        let mut settings = Settings::default();
        settings.gates.static_capacity = true;
        settings.gates.terminate_first_drift = terminate_first;
        // That of repair has nothing to do with it.
        settings.gates.terminate_first_repair = !terminate_first;
        by_settings(method, state, types, settings)
    }

    /// As [`by`], with settings.
    pub(super) fn by_settings(
        method: &dyn Method,
        state: &State,
        types: &Types,
        settings: Settings,
    ) -> (Decision, usize) {
        by_types(method, state, (types, types), settings)
    }

    /// As [`by_settings`], where other types are known by the time that something is decided.
    pub(super) fn by_types(
        method: &dyn Method,
        state: &State,
        (types, later): (&Types, &Types),
        settings: Settings,
    ) -> (Decision, usize) {
        let none = BTreeSet::new();
        let look = Look {
            types,
            taken: &none,
            relied_on: &none,
            leaving: &none,
            costs: Costs::default(),
            now: now(),
        };
        let mut view = glance(state, [method], look).views.remove(0);
        let scene = Scene::new(state, later, &Arc::new(settings), &none, now());
        let decision = method.decide(&scene, view.candidates, &mut view.budgets);
        (decision, view.budgets.values().map(|budget| budget.left().min(1000)).sum())
    }

    /// Commands in a few words, then what users are told.
    pub(super) fn shown(decision: &Decision) -> Vec<String> {
        let commands = decision.commands.iter().map(|it| it.short_text(&it.candidates[0]));
        let notices = decision.notices.iter().filter(|it| it.event.reason == "DisruptionBlocked");
        commands.chain(notices.map(|it| format!("{}: {}", it.about.name, it.message))).collect()
    }

    /// Conditions of a claim that has drifted since a time.
    pub(super) fn drifted(since: &str) -> Value {
        let condition = |kind: &str, at: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at});
        let all =
            ["Launched", "Registered", "Initialized"].map(|kind| condition(kind, "2026-01-01T00:00:00Z"));
        json!({"status": {"conditions": [all[0], all[1], all[2], condition("Drifted", since)]}})
    }

    #[test]
    fn reasons_have_their_names() {
        let all = [
            DisruptionReason::Underutilized,
            DisruptionReason::Empty,
            DisruptionReason::Drifted,
            DisruptionReason::Unhealthy,
        ];
        assert_eq!(all.map(|it| Reason(it).text()), ["Underutilized", "Empty", "Drifted", "Unhealthy"]);
        assert_eq!(all.map(|it| Reason(it).lower()), ["underutilized", "empty", "drifted", "unhealthy"]);
    }
}

const NOW: &str = "2026-01-01T01:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn types() -> Types {
    [("p".into(), Arc::from(kwok::built_in()))].into()
}

fn found(state: &State, class: Class, queued: &[&str]) -> Found {
    let queued: BTreeSet<Box<str>> = queued.iter().map(|id| (*id).into()).collect();
    let types = types();
    find(
        state,
        Search {
            types: &types,
            queued: &queued,
            relied_on: &queued,
            class,
            costs: Costs::default(),
            now: now(),
        },
    )
}

/// A pool, a node of it with changes, and more objects.
fn one(of_node: &Value, of_claim: &Value, more: &[Value]) -> State {
    let [node, claim] = node_objects("n1", "p", of_node, of_claim);
    let mut objects = vec![pool_object("p", &json!({})), node, claim];
    objects.extend_from_slice(more);
    state(&objects)
}

fn candidate(of_claim: &Value, more: &[Value]) -> Candidate {
    let mut found = found(&one(&json!({}), of_claim, more), Class::Graceful, &[]);
    assert_eq!(found.candidates.len(), 1, "{:?}", found.notices);
    found.candidates.remove(0)
}

/// What users are told of the node, with `+` if it is a candidate nevertheless.
fn blocked(state: &State, class: Class) -> Vec<String> {
    let found = found(state, class, &[]);
    let mut texts: Vec<String> = found.candidates.iter().map(|it| format!("+{}", it.name())).collect();
    let notices = found.notices.iter().filter(|notice| notice.event.reason == "DisruptionBlocked");
    texts.extend(notices.map(|notice| format!("{}: {}", notice.about.name, notice.message)));
    texts
}

#[track_caller]
fn check_blocked(state: &State, text: &str) {
    let expected = [format!("n1: {text}"), format!("claim-n1: {text}")];
    assert_eq!(blocked(state, Class::Graceful), expected);
}

const UNINITIALIZED: fn() -> Value =
    || json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});

#[test]
fn a_node_that_is_quiet_and_ready_is_a_candidate() {
    let candidate = candidate(&json!({}), &[]);
    assert_eq!((candidate.name(), candidate.pool_name()), ("n1", "p"));
    assert!(candidate.is_empty() && candidate.price > 0.0);
}

#[test]
fn what_keeps_a_node_from_being_disrupted_is_told() {
    let none = json!({});
    check_blocked(&one(&UNINITIALIZED(), &none, &[]), "Node isn't initialized");
    let unregistered = json!({"metadata": {"labels": {
        "karpenter.sh/initialized": "false", "karpenter.sh/registered": "false",
    }}});
    check_blocked(&one(&unregistered, &none, &[]), "Node isn't initialized nor registered");
    let leaving = json!({"metadata": {"deletionTimestamp": NOW}});
    // Deletion comes before initialisation.
    check_blocked(&one(&UNINITIALIZED(), &leaving, &[]), "Node is deleting or marked for deletion");
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let text = "Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation";
    check_blocked(&one(&protected, &none, &[]), text);
    let condition = json!({"type": "Rebooting", "status": "True", "reason": "RebootRequested", "message": "",
        "lastTransitionTime": NOW});
    check_blocked(&one(&none, &json!({"status": {"conditions": [condition]}}), &[]), "Node is rebooting");
    let elsewhere = json!({"metadata": {"labels": {"karpenter.sh/nodepool": "q"}}});
    check_blocked(&one(&elsewhere, &none, &[]), "NodePool not found (NodePool=q)");
    let nowhere = json!({"metadata": {"labels": {"karpenter.sh/nodepool": ""}}});
    check_blocked(
        &one(&nowhere, &none, &[]),
        "Node doesn't have required label (label=karpenter.sh/nodepool)",
    );
}

#[test]
fn nodes_that_are_promised_or_given_up_are_left_alone() {
    let mut state = one(&json!({}), &json!({}), &[]);
    state.nominate("kwok://n1", now() + jiff::SignedDuration::from_secs(20));
    check_blocked(&state, "Node is nominated for a pending pod");
    state.mark_for_deletion(["kwok://n1"]);
    check_blocked(&state, "Node is deleting or marked for deletion");
    state.unmark_for_deletion(["kwok://n1"]);
    assert!(found(&state, Class::Graceful, &["kwok://n1"]).candidates.is_empty());
    assert!(found(&state, Class::Graceful, &["kwok://n1"]).notices.is_empty());
}

#[test]
fn a_node_that_is_to_take_pods_of_others_is_left_alone_unless_it_is_broken() {
    let state = one(&json!({}), &json!({}), &[]);
    let (types, none) = (types(), BTreeSet::new());
    let relied_on = BTreeSet::from(["kwok://n1".into()]);
    let found = |class| {
        let costs = Costs::default();
        find(&state, Search { types: &types, queued: &none, relied_on: &relied_on, class, costs, now: now() })
    };
    for class in [Class::Graceful, Class::Eventual] {
        let found = found(class);
        assert!(found.candidates.is_empty());
        assert_eq!(found.notices[0].message, "Node is to take pods of nodes that are being disrupted");
    }
    assert_eq!(found(Class::Repair).candidates.len(), 1);
}

#[test]
fn pods_that_are_done_or_stop_are_told_nothing_about_their_protection() {
    let annotations = json!({"karpenter.sh/do-not-disrupt": "soon"});
    let told = |mut change: Value| {
        change["metadata"]["annotations"] = annotations.clone();
        let pod = pod_object("a", "n1", &change);
        found(&one(&json!({}), &json!({}), &[pod]), Class::Graceful, &[]).notices.len()
    };
    assert_eq!(told(json!({})), 1);
    assert_eq!(told(json!({"status": {"phase": "Succeeded"}})), 0);
    assert_eq!(told(json!({"metadata": {"deletionTimestamp": NOW}})), 0);
}

#[test]
fn nodes_without_a_claim_are_none_of_ours_and_claims_without_a_node_say_so() {
    let [node, claim] = node_objects("n1", "p", &json!({}), &json!({}));
    let pool = pool_object("p", &json!({}));
    assert!(blocked(&state(&[pool.clone(), node]), Class::Graceful).is_empty());
    let told = blocked(&state(&[pool, claim]), Class::Graceful);
    assert_eq!(told, ["claim-n1: Nodeclaim does not have an associated node"]);
}

#[test]
fn protected_pods_keep_their_node_unless_it_has_only_so_much_time() {
    let annotations = json!({"karpenter.sh/do-not-disrupt": "true"});
    let pod = pod_object("a", "n1", &json!({"metadata": {"annotations": annotations}}));
    let text = "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/a)";
    let plain = one(&json!({}), &json!({}), std::slice::from_ref(&pod));
    check_blocked(&plain, text);
    assert_eq!(blocked(&plain, Class::Eventual).len(), 2);
    let hurried = json!({"spec": {"terminationGracePeriod": "0s"}});
    let hurried = one(&json!({}), &hurried, &[pod]);
    check_blocked(&hurried, text);
    assert_eq!(blocked(&hurried, Class::Eventual), ["+n1"]);
}

#[test]
fn pods_that_go_anyway_do_not_keep_their_node() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    for change in [
        json!({"metadata": {"deletionTimestamp": NOW}}),
        json!({"status": {"phase": "Succeeded"}}),
        json!({"status": {"phase": "Failed"}}),
    ] {
        let mut pod = pod_object("a", "n1", &protected);
        crate::testing::merge(&mut pod, &change);
        candidate(&json!({}), &[pod]);
    }
}

fn budget(name: &str, allowed: i32) -> Value {
    json!({
        "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}}, "status": {"disruptionsAllowed": allowed},
    })
}

#[test]
fn budgets_of_pods_keep_their_node() {
    let pod = pod_object("a", "n1", &json!({}));
    let none = json!({});
    check_blocked(
        &one(&none, &none, &[pod.clone(), budget("b1", 0)]),
        "Pdb prevents pod evictions (PodDisruptionBudget=[default/b1])",
    );
    check_blocked(
        &one(&none, &none, &[pod.clone(), budget("b1", 1), budget("b2", 1)]),
        "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[default/b1 default/b2])",
    );
    candidate(&none, &[pod, budget("b1", 1)]);
}

#[test]
fn users_are_told_what_the_protection_of_a_pod_comes_to() {
    let pod = |value: &str| {
        let annotations = json!({"karpenter.sh/do-not-disrupt": value});
        pod_object(
            "a",
            "n1",
            &json!({
                "metadata": {"annotations": annotations}, "status": {"startTime": "2026-01-01T00:00:00Z"},
            }),
        )
    };
    for (value, reason) in [
        ("2h", Some("DoNotDisruptUntil")),
        ("30m", Some("DoNotDisruptGracePeriodElapsed")),
        ("soon", Some("InvalidDoNotDisruptAnnotation")),
        ("true", None),
    ] {
        let found = found(&one(&json!({}), &json!({}), &[pod(value)]), Class::Graceful, &[]);
        let told = found.notices.iter().find(|notice| *notice.about.name == *"a");
        assert_eq!(told.map(|notice| notice.event.reason), reason, "{value}");
    }
}

#[test]
fn daemons_and_pods_that_are_done_leave_a_node_empty_but_stateful_ones_come_back() {
    let owned = |kind: &str, more: Value| {
        let owners = json!([{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "u"}]);
        let mut pod = pod_object("a", "n1", &json!({"metadata": {"ownerReferences": owners}}));
        crate::testing::merge(&mut pod, &more);
        pod
    };
    let leaving = json!({"metadata": {"deletionTimestamp": NOW}});
    for (pod, empty) in [
        (owned("DaemonSet", json!({})), true),
        (owned("ReplicaSet", json!({})), false),
        (owned("ReplicaSet", leaving.clone()), true),
        (owned("StatefulSet", leaving), false),
        (pod_object("a", "n1", &json!({"spec": {"priority": -2_000_000_000}})), true),
    ] {
        assert_eq!(candidate(&json!({}), std::slice::from_ref(&pod)).is_empty(), empty, "{pod}");
    }
}

/// Nodes `n0`, `n1`, … of pool `p`, each with changes, and what its budgets allow.
fn allowed(nodes: &[(Value, Value)], budgets_of_pool: &Value, marked: &[&str]) -> (usize, i32, usize, usize) {
    let mut objects = vec![pool_object("p", &json!({"spec": {"disruption": {"budgets": budgets_of_pool}}}))];
    for (number, (of_node, of_claim)) in nodes.iter().enumerate() {
        objects.extend(node_objects(&format!("n{number}"), "p", of_node, of_claim));
    }
    let mut state = state(&objects);
    state.mark_for_deletion(marked.iter().copied());
    let all = budgets(&state, &state.state_nodes(), DisruptionReason::Empty, &BTreeSet::new(), now());
    let budget = &all["p"];
    (budget.nodes, budget.allowed, budget.disrupting, budget.left())
}

fn plain(count: usize) -> Vec<(Value, Value)> {
    vec![(json!({}), json!({})); count]
}

#[test]
fn budgets_count_nodes_that_are_up_and_those_that_are_not() {
    let ten = json!([{"nodes": "100%"}]);
    assert_eq!(allowed(&plain(10), &ten, &[]), (10, 10, 0, 10));
    assert_eq!(allowed(&plain(10), &ten, &["kwok://n0", "kwok://n1"]), (10, 10, 2, 8));
    let mut some = plain(10);
    some[0].0 = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    some[1].0 = json!({"status": {"conditions": []}});
    some[2].1 = json!({"metadata": {"deletionTimestamp": NOW}});
    assert_eq!(allowed(&some, &ten, &[]), (10, 10, 3, 7));
    let mut some = plain(10);
    some[0].0 = UNINITIALIZED();
    let terminating = json!({"type": "InstanceTerminating", "status": "True", "reason": "a", "message": "",
        "lastTransitionTime": NOW});
    some[1].1 = json!({"status": {"conditions": [terminating]}});
    assert_eq!(allowed(&some, &ten, &[]), (8, 8, 0, 8));
    // A node that is being booted again counts, although it is not initialised.
    let rebooting = json!({"type": "Rebooting", "status": "True", "reason": "a", "message": "",
        "lastTransitionTime": NOW});
    some[1] = (UNINITIALIZED(), json!({"status": {"conditions": [rebooting]}}));
    assert_eq!(allowed(&some, &ten, &[]), (9, 9, 1, 8));
}

#[test]
fn what_is_left_of_a_budget_is_never_negative_and_the_strictest_counts() {
    let marked = ["kwok://n0", "kwok://n1", "kwok://n2"];
    assert_eq!(allowed(&plain(5), &json!([{"nodes": "2"}]), &marked), (5, 2, 3, 0));
    assert_eq!(allowed(&plain(5), &json!([{"nodes": "2"}, {"nodes": "50%"}]), &[]).1, 2);
    let other = json!([{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "3"}]);
    assert_eq!(allowed(&plain(5), &other, &[]).1, 3);
    assert_eq!(allowed(&plain(5), &json!([{"nodes": "x"}, {"nodes": "3"}]), &[]).1, 0);
    assert_eq!(allowed(&plain(5), &json!([]), &[]).3, usize::try_from(i32::MAX).unwrap());
}

#[test]
fn repair_is_not_kept_from_work_by_what_it_is_for() {
    let down = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let mut objects = vec![pool_object("p", &json!({}))];
    objects.extend(node_objects("n0", "p", &down, &json!({})));
    let state = state(&objects);
    let disrupting =
        |reason| budgets(&state, &state.state_nodes(), reason, &BTreeSet::new(), now())["p"].disrupting;
    assert_eq!(disrupting(DisruptionReason::Unhealthy), 0);
    assert_eq!(disrupting(DisruptionReason::Drifted), 1);
}

#[test]
fn what_waits_takes_of_the_budget() {
    let mut objects = vec![pool_object("p", &json!({"spec": {"disruption": {"budgets": [{"nodes": "2"}]}}}))];
    for name in ["n0", "n1", "n2"] {
        objects.extend(node_objects(name, "p", &json!({}), &json!({})));
    }
    let mut state = state(&objects);
    let leaving = BTreeSet::from(["kwok://n0".into()]);
    let left = |state: &State| {
        budgets(state, &state.state_nodes(), DisruptionReason::Empty, &leaving, now())["p"].left()
    };
    assert_eq!(left(&state), 1);
    // Once it is under way it counts once.
    state.mark_for_deletion(["kwok://n0"]);
    assert_eq!(left(&state), 1);
}

#[test]
fn marks_that_nobody_needs_are_taken_back() {
    let taint = json!({"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}});
    let reason = json!({"type": "DisruptionReason", "status": "True", "reason": "Empty", "message": "Empty",
        "lastTransitionTime": NOW});
    let condition = json!({"status": {"conditions": [reason]}});
    let left = |of_node: &Value, of_claim: &Value, queued: &[&str]| {
        let queued: BTreeSet<Box<str>> = queued.iter().map(|id| (*id).into()).collect();
        let leftovers = leftovers::decide(&one(of_node, of_claim, &[]), &queued);
        (leftovers.nodes.len(), leftovers.claims.len())
    };
    assert_eq!(left(&taint, &condition, &[]), (1, 1));
    assert_eq!(left(&taint, &condition, &["kwok://n1"]), (0, 0));
    assert_eq!(left(&json!({}), &json!({}), &[]), (0, 0));
    let mut leaving = condition.clone();
    leaving["metadata"] = json!({"deletionTimestamp": NOW});
    assert_eq!(left(&taint, &leaving, &[]), (0, 0));
    let mut starting = taint.clone();
    starting["metadata"] = UNINITIALIZED()["metadata"].clone();
    assert_eq!(left(&starting, &condition, &[]), (1, 0));
    // What says why a node is booted again is nobody's leftover.
    let mut rebooting = condition.clone();
    let reboot = json!({"type": "Rebooting", "status": "True", "reason": "RebootIssued", "message": "",
        "lastTransitionTime": NOW});
    rebooting["status"]["conditions"].as_array_mut().unwrap().push(reboot);
    assert_eq!(left(&json!({}), &rebooting, &[]), (0, 0));
    let state = one(&taint, &condition, &[]);
    let leftovers = leftovers::decide(&state, &BTreeSet::new());
    assert_eq!((&leftovers.nodes[0], &leftovers.claims[0]), (&Key::cluster("n1"), &Key::cluster("claim-n1")));
}

#[test]
fn nothing_but_its_own_veto_and_missing_parts_keep_a_node_from_repair() {
    let pod =
        pod_object("a", "n1", &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let mut state = one(&protected, &json!({}), &[pod]);
    let repairable = |state: &State| found(state, Class::Repair, &[]).candidates;
    let candidate = &repairable(&state)[0];
    assert!(candidate.initialized);
    let text = "pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/a)";
    assert_eq!(candidate.blocked.as_deref(), Some(text));
    state.nominate("kwok://n1", now() + jiff::SignedDuration::from_secs(20));
    assert!(repairable(&state).is_empty());
    let mut starting = one(&UNINITIALIZED(), &json!({}), &[]);
    starting.nominate("kwok://n1", now() + jiff::SignedDuration::from_secs(20));
    assert!(!repairable(&starting)[0].initialized);
    let unregistered = json!({"metadata": {"labels": {
        "karpenter.sh/initialized": "false", "karpenter.sh/registered": "false",
    }}});
    assert!(repairable(&one(&unregistered, &json!({}), &[])).is_empty());
}
