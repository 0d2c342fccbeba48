//! 16.21: repair as older releases did it.

use std::time::Duration;

use api::provider::Provider;
use cluster::state::{Kind, Seen};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;

fn minute(minute: i64) -> Timestamp {
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    start + SignedDuration::from_mins(minute)
}

fn rule(condition: &'static str, pattern: &'static str, action: RepairAction) -> RepairPolicy {
    RepairPolicy {
        condition,
        status: "False",
        reason_pattern: pattern,
        toleration: Duration::from_mins(30),
        termination_grace_period: None,
        priority: 0,
        action,
    }
}

fn rules() -> Vec<Policy> {
    policies(vec![
        rule("Ready", "", RepairAction::Replace),
        rule("Disk", "^Lost", RepairAction::Replace),
        rule("Gpu", ".*", RepairAction::Reboot),
    ])
}

/// Nodes as (name, pool, condition, status, reason, since minute).
type Row<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, i64);

fn state(rows: &[Row<'_>]) -> State {
    let mut state = State::awaiting(Provider::Kwok, &[]);
    for (name, pool, kind, status, reason, since) in rows {
        let labels = if pool.is_empty() { json!({}) } else { json!({"karpenter.sh/nodepool": pool}) };
        let condition: Value = json!({"type": kind, "status": status, "reason": reason,
            "lastTransitionTime": minute(*since).to_string()});
        let node = json!({"metadata": {"name": name, "labels": labels},
            "spec": {"providerID": format!("kwok://{name}")}, "status": {"conditions": [condition]}});
        state.observe(Seen::Applied(Kind::Node.decode(&node.to_string()).unwrap()));
    }
    state
}

fn about(rows: &[Row<'_>], now: i64) -> Decision {
    let state = state(rows);
    decide(state.nodes.named(rows[0].0).unwrap(), &state, &rules(), minute(now))
}

#[test]
fn a_node_goes_once_its_condition_has_lasted_too_long() {
    let broken = [("a", "p", "Ready", "False", "", 0)];
    assert_eq!(about(&broken, 30), Decision::Repair("Ready".into()));
    assert_eq!(about(&broken, 27), Decision::Later(Duration::from_mins(3)));
}

#[test]
fn other_conditions_statuses_and_actions_do_not_count() {
    for row in [
        ("a", "p", "Network", "False", "", 0),
        ("a", "p", "Ready", "True", "", 0),
        ("a", "p", "Ready", "Unknown", "", 0),
        ("a", "p", "Gpu", "False", "", 0),
    ] {
        assert_eq!(about(&[row], 100), Decision::Nothing, "{row:?}");
    }
}

#[test]
fn a_pattern_must_fit_the_reason_and_there_is_no_fallback() {
    assert_eq!(about(&[("a", "p", "Disk", "False", "LostIt", 0)], 60), Decision::Repair("Disk".into()));
    assert_eq!(about(&[("a", "p", "Disk", "False", "Full", 0)], 60), Decision::Nothing);
}

#[test]
fn the_earliest_of_several_conditions_counts() {
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "a"}, "status": {"conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": minute(10).to_string()},
        {"type": "Disk", "status": "False", "reason": "Lost", "lastTransitionTime": minute(5).to_string()},
    ]}}))
    .unwrap();
    assert_eq!(first_due(&node, &rules()), Some((minute(35), "Disk")));
}

#[test]
fn too_many_broken_nodes_of_a_pool_or_of_the_cluster_stop_repair() {
    let broken = |name, pool| (name, pool, "Ready", "False", "", 0);
    let well = |name, pool| (name, pool, "Ready", "True", "", 0);
    let one_of_three = [broken("a", "p"), well("b", "p"), well("c", "p")];
    assert_eq!(about(&one_of_three, 60), Decision::Repair("Ready".into()));
    let two_of_three = [broken("a", "p"), broken("b", "p"), well("c", "p")];
    assert_eq!(about(&two_of_three, 60), Decision::Blocked(Blocked::Pool));
    // Those of other pools do not count for a node of a pool, but for one without.
    let elsewhere = [broken("a", "p"), broken("b", "q"), broken("c", "q")];
    assert_eq!(about(&elsewhere, 60), Decision::Repair("Ready".into()));
    let standalone = [broken("a", ""), broken("b", "q"), broken("c", "q")];
    assert_eq!(about(&standalone, 60), Decision::Blocked(Blocked::Cluster));
}

#[test]
fn a_pattern_that_cannot_be_read_fits_nothing_and_stops_nobody() {
    let policies =
        policies(vec![rule("Ready", "(", RepairAction::Replace), rule("Disk", "", RepairAction::Replace)]);
    let known: Vec<&str> = policies.iter().map(|policy| policy.rule.condition).collect();
    assert_eq!(known, ["Disk"]);
}
