//! What becomes of nodes that are repaired.

use std::time::Duration;

use ::cloud::repair::Policies;
use ::cloud::{RepairAction, RepairPolicy};
use api::names::metrics::{
    DISRUPTION_DECISIONS, NODECLAIMS_DISRUPTED, NODECLAIMS_UNHEALTHY_DISRUPTED, PODS_DISRUPTION_INITIATED,
};
use api::provider::Provider;
use embedded::faults::{Fault, Rule};
use parking_lot::Mutex;
use runtime::Settings;

use super::cluster::{add_node, cluster_by, is_tainted, pod_asking, run};
use super::drifting::{full_reservation, reserved_node, reserved_pool};
use super::replacing::{bring_up, new_claims};
use super::*;
use crate::disruption::Method;
use crate::disruption::command::Command;
use crate::disruption::decision::Decision;
use crate::disruption::glance::{Look, glance};
use crate::disruption::queue::{self, Commands};
use crate::disruption::repair::Repair;
use crate::disruption::scene::Scene;
use crate::testing::{Logged, Operated, merge, state_of};

const DEADLINE: &str = "karpenter.sh/nodeclaim-termination-timestamp";

fn repair() -> Repair {
    let rule = |condition, reason_pattern, seconds, action| RepairPolicy {
        condition,
        status: "True",
        reason_pattern,
        toleration: Duration::ZERO,
        termination_grace_period: Some(Duration::from_secs(seconds)),
        priority: 0,
        action,
    };
    let rules =
        vec![rule("Bad", "", 0, RepairAction::Replace), rule("Stuck", ".*", 60, RepairAction::Reboot)];
    Repair::new(Arc::new(Policies::compile(rules).unwrap()))
}

fn broken(condition: &str) -> Value {
    json!({"status": {"conditions": [
        {"type": "Ready", "status": "True"},
        {"type": condition, "status": "True", "reason": "Because", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]}})
}

fn decide(state: &State, types: &Types, settings: Settings, now: Timestamp) -> Decision {
    let (repair, none) = (repair(), BTreeSet::new());
    let look = Look { types, taken: &none, relied_on: &none, leaving: &none, costs: Costs::default(), now };
    let mut view = glance(state, [&repair as &dyn Method], look).views.remove(0);
    let scene = Scene::new(state, types, &Arc::new(settings), &none, now);
    repair.decide(&scene, view.candidates, &mut view.budgets)
}

/// A cluster with a broken node that has a pod, what repair decides about it, and who carries it out.
fn decided(condition: &str) -> (Operated, Arc<Commands>, Command) {
    let kept = Mutex::new(None);
    let mut cluster = cluster_by("100%", &[], |context| {
        let (commands, queue) = Commands::new(context);
        *kept.lock() = Some(Arc::clone(&commands));
        vec![queue::controller(context, commands, queue)]
    });
    add_node(&cluster, "n1", &broken(condition), &json!({"metadata": {"finalizers": ["test/stays"]}}));
    cluster.apply(&pod_asking("p", "n1", "3").to_string());
    run(&mut cluster, 2);
    let types = [("default".into(), Arc::from(kwok::built_in()))].into();
    let now = cluster.context.now();
    let mut decision = decide(&cluster.context.cluster.read(), &types, Settings::default(), now);
    assert_eq!(decision.commands.len(), 1, "{:?}", decision.notices);
    (cluster, kept.into_inner().unwrap(), decision.commands.remove(0))
}

fn annotation(cluster: &Operated, key: &str) -> Value {
    cluster.ours("nodeclaims/claim-n1")["metadata"]["annotations"][key].clone()
}

fn is_deleting(cluster: &Operated) -> bool {
    !cluster.ours("nodeclaims/claim-n1")["metadata"]["deletionTimestamp"].is_null()
}

#[test]
fn a_reboot_is_asked_for_once_and_the_node_stays() {
    let (mut cluster, commands, command) = decided("Stuck");
    assert_eq!(command.decision(), "reboot");
    for _ in 0..2 {
        cluster.block_on(commands.start(command.clone())).unwrap();
        run(&mut cluster, 2);
    }
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "Rebooting"), "True RebootRequested");
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "True Unhealthy");
    let claim = cluster.ours("nodeclaims/claim-n1");
    let conditions = claim["status"]["conditions"].as_array().unwrap();
    let rebooting = conditions.iter().find(|it| it["type"] == "Rebooting").unwrap();
    assert_eq!(rebooting["message"], "rebooting for Stuck/Because");
    assert_eq!(annotation(&cluster, "karpenter.sh/reboot-termination-grace-period"), "1m0s");
    assert!(!is_tainted(&cluster, "n1") && !is_deleting(&cluster));
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_DECISIONS, &["reboot", "unhealthy", ""]), Some(1.0));
    // The policy bounds the drain, the claim itself does not: the counters of all reasons tell of the claim.
    let labels = ["unhealthy", "default", "spot", "", "graceful"];
    assert_eq!(metrics.value(&NODECLAIMS_DISRUPTED, &labels), Some(1.0));
    assert_eq!(metrics.value(&PODS_DISRUPTION_INITIATED, &labels), Some(1.0));
    let labels = ["stuck", "default", "spot", "", "eventual"];
    assert_eq!(metrics.value(&NODECLAIMS_UNHEALTHY_DISRUPTED, &labels), Some(1.0));
}

#[test]
fn a_grace_period_that_is_left_of_an_earlier_reboot_is_taken_away() {
    let (mut cluster, commands, mut command) = decided("Stuck");
    let key = "karpenter.sh/reboot-termination-grace-period";
    cluster.patch(
        "/apis/karpenter.sh/v1/nodeclaims/claim-n1",
        &json!({"metadata": {"annotations": {key: "3h0m0s"}}}),
    );
    run(&mut cluster, 1);
    command.candidates[0].drain_bound = None;
    cluster.block_on(commands.start(command)).unwrap();
    assert!(annotation(&cluster, key).is_null());
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "Rebooting"), "True RebootRequested");
}

#[test]
fn a_broken_node_gets_its_deadline_when_it_goes_and_not_before() {
    let (mut cluster, commands, command) = decided("Bad");
    assert_eq!(command.decision(), "replace");
    cluster.block_on(commands.start(command)).unwrap();
    run(&mut cluster, 60);
    let [new] = new_claims(&cluster).try_into().unwrap();
    assert!(is_tainted(&cluster, "n1"));
    assert!(!is_deleting(&cluster) && annotation(&cluster, DEADLINE).is_null());
    bring_up(&cluster, &new);
    run(&mut cluster, 5);
    assert!(is_deleting(&cluster) && annotation(&cluster, DEADLINE).is_string());
    let labels = ["bad", "default", "spot", "", "forceful"];
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&NODECLAIMS_UNHEALTHY_DISRUPTED, &labels), Some(1.0));
}

#[test]
fn a_deadline_that_somebody_else_was_faster_with_is_written_again() {
    let (mut cluster, commands, command) = decided("Bad");
    cluster.block_on(commands.start(command)).unwrap();
    cluster.faults.set_rules(vec![Rule::on("patch", "nodeclaims", 1.0, Fault::Conflict)]);
    bring_up(&cluster, &new_claims(&cluster)[0]);
    run(&mut cluster, 10);
    // Without it the node does not go.
    assert!(!is_deleting(&cluster) && annotation(&cluster, DEADLINE).is_null());
    assert!(is_tainted(&cluster, "n1"));
    cluster.faults.set_rules(vec![Rule::on("patch", "nodeclaims", 0.5, Fault::Conflict)]);
    run(&mut cluster, 15);
    assert!(is_deleting(&cluster) && annotation(&cluster, DEADLINE).is_string());
}

#[test]
fn a_replacement_that_never_comes_up_leaves_the_broken_node_as_it_was() {
    let (mut cluster, commands, command) = decided("Bad");
    cluster.block_on(commands.start(command)).unwrap();
    run(&mut cluster, 700);
    assert!(!is_deleting(&cluster) && annotation(&cluster, DEADLINE).is_null());
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "");
}

#[test]
fn a_broken_node_that_could_not_be_replaced_is_left_alone_and_others_are_not() {
    let (mut cluster, commands, command) = decided("Bad");
    let (broken, reason) = (command.candidates[0].clone(), command.reason);
    let other = Candidate { provider_id: "kwok://n2".into(), ..broken.clone() };
    cluster.block_on(commands.start(command)).unwrap();
    run(&mut cluster, 605);
    let now = cluster.context.now();
    assert!(!is_tainted(&cluster, "n1"));
    assert!(commands.is_paused(&broken, reason, now) && !commands.is_paused(&other, reason, now));
}

/// What is decided about a broken node of a reservation that is used up.
fn of_reservation(pool: &Value, labels: &Value, gate: bool) -> String {
    of_reservation_among(&full_reservation(), pool, labels, gate)
}

/// As [`of_reservation`], with other types.
fn of_reservation_among(types: &Types, pool: &Value, labels: &Value, gate: bool) -> String {
    let budgets = json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}});
    let mut pool = reserved_pool(pool);
    merge(&mut pool, &budgets);
    let mut node = reserved_node("n1", labels, &["1"]);
    merge(&mut node[0], &broken("Bad"));
    let state = state_of(Provider::Aws, &[vec![pool], node].concat());
    let mut settings = Settings::default();
    settings.gates.terminate_first_repair = gate;
    settings.gates.static_capacity = true;
    let decision = decide(&state, types, settings, now());
    let command = decision.commands.first().map(|it| it.short_text(&it.candidates[0]));
    let notice = decision.notices.first().map(|it| it.message.split(" =>").next().unwrap().to_owned());
    command.or(notice).unwrap_or_default()
}

#[test]
fn a_broken_node_that_holds_what_its_successor_needs_goes_first_if_the_gate_is_on() {
    let (dynamic, none) = (json!({}), json!({}));
    assert_eq!(of_reservation(&dynamic, &none, true), "terminate-first: [n1]");
    let blocked = "Not all pods would schedule, default/n1-0";
    assert_eq!(of_reservation(&dynamic, &none, false), blocked);
    let stale = json!({"karpenter.sh/capacity-type": "on-demand"});
    assert_eq!(of_reservation(&dynamic, &stale, true), blocked);
    // Its share of the limits is its successor's, too.
    let limited = json!({"spec": {"limits": {"nodes": "1"}}});
    assert_eq!(of_reservation(&limited, &none, true), "terminate-first: [n1]");
    assert_eq!(of_reservation(&limited, &none, false), blocked);
}

/// Changes of a pool that is ready and has one node.
fn fixed(limits: &Value) -> Value {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    json!({"spec": {"replicas": 1, "limits": limits}, "status": {"conditions": ready}})
}

#[test]
fn a_broken_node_of_a_static_pool_stays_while_nobody_knows_whether_its_reservations_are_full() {
    let unknown = Types::new();
    let full = fixed(&json!({"nodes": "1"}));
    let logged = Logged::start();
    assert_eq!(of_reservation_among(&unknown, &full, &json!({}), true), "");
    let message = "skipping repair candidate, failed checking capacity reservations";
    let error = "the instance types of the NodePool are not known";
    assert_eq!(logged.with(message), [format!("ERROR message={message} Node=n1 error={error}")]);
    // Where no node goes first, nobody has to know.
    let text = "static NodePool is at its node limit and cannot stage a replacement";
    assert_eq!(of_reservation_among(&unknown, &full, &json!({}), false), text);
}

#[test]
fn a_broken_node_of_a_static_pool_goes_first_if_it_holds_the_reservation() {
    let fixed = fixed(&json!({}));
    assert_eq!(of_reservation(&fixed, &json!({}), true), "terminate-first: [n1]");
    let other = json!({"karpenter.k8s.aws/capacity-reservation-id": "cr-2"});
    let text = "static NodePool's capacity reservations are full and cannot stage a replacement";
    assert_eq!(of_reservation(&fixed, &other, true), text);
    assert_eq!(of_reservation(&fixed, &json!({}), false), "replace: [n1] -> [1 replacement]");
    assert_eq!(of_reservation(&json!({"spec": {"replicas": 1}}), &json!({}), true), text);
}

#[test]
fn a_node_that_vanishes_while_it_boots_counts_as_disrupted() {
    // N18: it must not stop anybody from counting.
    let condition = json!({"type": "Rebooting", "status": "True", "reason": "RebootIssued", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let of_claim = json!({"status": {"conditions": [condition]}});
    let [_, claim] = node_objects("n1", "p", &json!({}), &of_claim);
    let state = state(&[pool_object("p", &json!({})), claim]);
    for reason in [DisruptionReason::Unhealthy, DisruptionReason::Empty] {
        let budgets = budgets(&state, &state.state_nodes(), reason, &BTreeSet::new(), now());
        assert_eq!((budgets["p"].nodes, budgets["p"].disrupting), (1, 1));
    }
}
