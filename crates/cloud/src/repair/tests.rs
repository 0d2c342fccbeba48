//! What policies say about nodes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use RepairAction::{Reboot, Replace};

fn policy(condition: &'static str, pattern: &'static str, action: RepairAction) -> RepairPolicy {
    RepairPolicy {
        condition,
        status: "True",
        reason_pattern: pattern,
        toleration: Duration::from_mins(30),
        termination_grace_period: None,
        priority: 0,
        action,
    }
}

fn fallback() -> RepairPolicy {
    RepairPolicy { toleration: Duration::ZERO, ..policy("Else", "", Replace) }
}

fn minute(minute: i64) -> Timestamp {
    let start: Timestamp = "2026-01-05T09:00:00Z".parse().unwrap();
    start + SignedDuration::from_mins(minute)
}

/// A node that was created at minute 0, with conditions as (type, status, reason, minute).
fn node(conditions: &[(&str, &str, &str, i64)]) -> Node {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, reason, since)| {
            json!({"type": kind, "status": status, "reason": reason,
                "lastTransitionTime": minute(*since).to_string()})
        })
        .collect();
    let metadata = json!({"name": "n", "creationTimestamp": minute(0).to_string()});
    serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap()
}

fn compiled(rules: &[RepairPolicy]) -> Policies {
    Policies::compile(rules.to_vec()).unwrap()
}

fn at(rules: &[RepairPolicy], node: &Node, minutes: i64) -> Option<Resolution> {
    resolve(&compiled(rules).matches(node), None, minute(minutes))
}

#[track_caller]
fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[track_caller]
fn refused(rules: Vec<RepairPolicy>, expected: &[&str]) {
    let error = Policies::compile(rules).unwrap_err().to_string();
    assert!(error.starts_with("node repair requires valid RepairPolicies, "), "{error}");
    for text in expected {
        assert!(error.contains(text), "{text:?} is not in {error:?}");
    }
}

#[test]
fn a_cloud_without_policies_cannot_repair() {
    assert_eq!(
        Policies::compile(Vec::new()).unwrap_err().to_string(),
        "node repair requires the cloud provider to define RepairPolicies, but it defines none"
    );
}

#[test]
fn everything_that_is_wrong_with_policies_is_named() {
    let wrong = RepairPolicy { condition: "", status: "Perhaps", priority: 101, ..policy("", "(", Replace) };
    refused(
        vec![fallback(), wrong],
        &[
            "validating repair policy for condition status \"Perhaps\", policy[1]=",
            " has an empty condition type (condition=)",
            " has invalid condition status \"Perhaps\" (condition=)",
            " has priority 101 outside the supported range [0, 100] (condition=)",
            " has invalid reason regex, ",
        ],
    );
}

#[test]
fn exactly_one_policy_is_for_all_else_and_it_replaces() {
    refused(vec![policy("A", "a", Replace)], &["repair policy set must define one default fallback"]);
    refused(
        vec![fallback(), policy("A", "", Replace)],
        &["repair policy set has multiple default fallbacks: Else=True, A=True"],
    );
    refused(
        vec![policy("A", "", Reboot)],
        &["default fallback policy A=True must use action \"ReplaceNode\""],
    );
    assert!(Policies::compile(vec![fallback(), policy("A", ".*", Reboot)]).is_ok());
}

#[test]
fn a_condition_that_no_policy_is_about_is_ignored() {
    let rules = [fallback(), policy("Bad", "x", Replace)];
    for condition in [("Other", "True", "x", 0), ("Bad", "False", "x", 0), ("Bad", "Unknown", "x", 0)] {
        let node = node(&[condition]);
        assert!(compiled(&rules).matches(&node).is_empty(), "{condition:?}");
        assert!(!compiled(&rules).is_broken(&node), "{condition:?}");
    }
    assert!(compiled(&rules).is_broken(&node(&[("Bad", "True", "y", 0)])));
}

#[test]
fn every_pattern_that_fits_counts_and_the_policy_for_all_else_only_when_none_does() {
    let rules = [fallback(), policy("Bad", "XID", Reboot), policy("Bad", "48", Replace)];
    let matched = |reason: &str| -> Vec<(&'static str, bool)> {
        let node = node(&[("Bad", "True", reason, 0)]);
        let policies = compiled(&rules);
        policies.matches(&node).iter().map(|it| (it.policy.reason_pattern, it.is_fallback)).collect()
    };
    assert_eq!(matched("XID48"), [("XID", false), ("48", false)]);
    assert_eq!(matched("AnXIDError"), [("XID", false)]);
    assert_eq!(matched("Nothing"), [("", true)]);
    assert_eq!(matched(""), [("", true)]);
}

#[test]
fn a_pattern_for_anything_also_fits_an_empty_reason() {
    let rules = [fallback(), policy("Bad", ".*", Reboot)];
    let resolution = at(&rules, &node(&[("Bad", "True", "", 0)]), 30).unwrap();
    assert_eq!((resolution.action, resolution.is_fallback), (Reboot, false));
}

#[test]
fn a_condition_counts_from_its_transition_but_not_from_before_the_node_was_there() {
    let rules = [fallback(), policy("Bad", ".*", Replace)];
    let eligible = |node: &Node| compiled(&rules).matches(node)[0].eligible_at;
    assert_eq!(eligible(&node(&[("Bad", "True", "r", 7)])), minute(37));
    assert_eq!(eligible(&node(&[("Bad", "True", "r", -100)])), minute(30));
    let mut bare = serde_json::json!({"metadata": {"name": "n", "creationTimestamp": minute(0).to_string()}});
    bare["status"]["conditions"] = json!([{"type": "Bad", "status": "True"}]);
    assert_eq!(eligible(&serde_json::from_value(bare).unwrap()), minute(30));
}

#[test]
fn nothing_is_done_before_a_condition_has_lasted_as_long_as_it_is_tolerated() {
    let rules = [fallback(), policy("Bad", "r", Replace)];
    let node = node(&[("Bad", "True", "r", 0)]);
    assert_eq!(at(&rules, &node, 29), None);
    let resolution = at(&rules, &node, 30).unwrap();
    assert_eq!((resolution.action, resolution.eligible_at), (Replace, minute(30)));
    is_near(resolution.score, 0.0);
}

#[test]
fn after_a_reboot_a_condition_is_tolerated_anew() {
    let rules = [fallback(), policy("Bad", "r", Replace)];
    let (node, policies) = (node(&[("Bad", "True", "r", 0)]), compiled(&rules));
    let matches = policies.matches(&node);
    assert_eq!(resolve(&matches, Some(minute(100)), minute(129)), None);
    let resolution = resolve(&matches, Some(minute(100)), minute(131)).unwrap();
    assert_eq!(resolution.eligible_at, minute(130));
    assert_eq!(resolve(&matches, Some(minute(-100)), minute(30)).unwrap().eligible_at, minute(30));
}

#[test]
fn the_longest_broken_condition_makes_the_score_and_the_higher_priority_drives() {
    let rules = [
        fallback(),
        RepairPolicy { priority: 10, ..policy("Low", ".*", Replace) },
        RepairPolicy { priority: 90, ..policy("High", ".*", Replace) },
    ];
    let node = node(&[("Low", "True", "", 0), ("High", "True", "", 135)]);
    let resolution = at(&rules, &node, 180).unwrap();
    is_near(resolution.score, 6.0);
    assert_eq!(&*resolution.condition, "High");
}

#[test]
fn the_more_disruptive_action_drives_and_the_shortest_bound_counts() {
    let minutes = |minutes: u64| Some(Duration::from_mins(minutes));
    let rules = [
        fallback(),
        RepairPolicy { priority: 10, termination_grace_period: minutes(15), ..policy("Low", ".*", Replace) },
        RepairPolicy { priority: 90, termination_grace_period: minutes(5), ..policy("High", ".*", Reboot) },
    ];
    let node = node(&[("High", "True", "", 0), ("Low", "True", "", 135)]);
    let resolution = at(&rules, &node, 180).unwrap();
    assert_eq!((resolution.action, &*resolution.condition), (Replace, "Low"));
    is_near(resolution.score, 7.0);
    let bound = Bound { within: Duration::from_mins(5), condition: "High".into() };
    assert_eq!(resolution.bound, Some(bound));
}

#[test]
fn a_reboot_becomes_a_replacement_when_the_more_patient_policy_is_due() {
    let tolerated = |minutes: u64| Duration::from_mins(minutes);
    let rules = [
        fallback(),
        RepairPolicy { toleration: tolerated(10), ..policy("Gpu", "XID(48|63)", Reboot) },
        RepairPolicy { toleration: tolerated(30), ..policy("Gpu", "48Error$", Replace) },
    ];
    let node = node(&[("Gpu", "True", "NvidiaXID48Error", 0)]);
    assert_eq!(at(&rules, &node, 5), None);
    for minutes in [10, 29] {
        assert_eq!(at(&rules, &node, minutes).unwrap().action, Reboot, "{minutes}");
    }
    let resolution = at(&rules, &node, 35).unwrap();
    assert_eq!((resolution.action, resolution.eligible_at), (Replace, minute(30)));
    is_near(resolution.score, 25.0 / 30.0);
}

#[test]
fn while_a_pattern_fits_but_is_tolerated_the_policy_for_all_else_does_not_count() {
    let rules = [fallback(), policy("Bad", "r", Reboot)];
    assert_eq!(at(&rules, &node(&[("Bad", "True", "r", 0)]), 20), None);
    // Another reason is none that the pattern fits, so it counts at once.
    let other = at(&rules, &node(&[("Bad", "True", "x", 0)]), 20).unwrap();
    assert_eq!((other.action, other.is_fallback, other.pattern), (Replace, true, ""));
    assert_eq!((&*other.condition, &*other.status, &*other.reason), ("Bad", "True", "x"));
}

#[test]
fn a_new_reason_keeps_the_age_of_a_condition() {
    let rules = [fallback(), policy("Bad", "a", Replace), policy("Bad", "b", Replace)];
    let of = |reason: &str| at(&rules, &node(&[("Bad", "True", reason, 3)]), 60).unwrap().eligible_at;
    assert_eq!(of("a"), of("b"));
}

#[test]
fn equal_policies_are_told_apart_by_age_then_by_name() {
    let rules = [fallback(), policy("A", ".*", Replace), policy("B", ".*", Replace)];
    let older = at(&rules, &node(&[("A", "True", "", 5), ("B", "True", "", 0)]), 60).unwrap();
    assert_eq!(&*older.condition, "B");
    let same = at(&rules, &node(&[("B", "True", "", 0), ("A", "True", "", 0)]), 60).unwrap();
    assert_eq!(&*same.condition, "A");
}

#[test]
fn equal_bounds_are_told_apart_by_age_then_by_name() {
    let bounded = |condition| RepairPolicy {
        termination_grace_period: Some(Duration::from_mins(1)),
        ..policy(condition, ".*", Replace)
    };
    let rules = [fallback(), bounded("A"), bounded("B"), policy("C", ".*", Replace)];
    let source = |conditions: &[(&str, &str, &str, i64)]| {
        at(&rules, &node(conditions), 60).unwrap().bound.map(|bound| bound.condition.to_string())
    };
    assert_eq!(source(&[("A", "True", "", 5), ("B", "True", "", 0)]).as_deref(), Some("B"));
    assert_eq!(source(&[("B", "True", "", 0), ("A", "True", "", 0)]).as_deref(), Some("A"));
    assert_eq!(source(&[("C", "True", "", 0)]), None);
}

#[test]
fn policies_that_wait_or_do_not_match_do_not_make_a_node_more_urgent() {
    let rules = [
        fallback(),
        RepairPolicy { priority: 90, toleration: Duration::from_hours(9), ..policy("High", ".*", Replace) },
        RepairPolicy { priority: 10, ..policy("Low", ".*", Replace) },
    ];
    let node = node(&[("High", "True", "", 0), ("Low", "True", "", 0)]);
    is_near(at(&rules, &node, 30).unwrap().score, 1.0);
}

#[test]
fn only_the_order_of_priorities_matters() {
    let ranks = |low, high| -> Vec<f64> {
        let rules = [
            RepairPolicy { priority: low, ..fallback() },
            RepairPolicy { priority: high, ..policy("High", ".*", Replace) },
        ];
        let scored = |condition| at(&rules, &node(&[(condition, "True", "", 0)]), 30).unwrap();
        // The policy for all else has been due for half an hour.
        vec![scored("Else").score - 1.0, scored("High").score]
    };
    assert_eq!(ranks(0, 1), ranks(40, 90));
    assert_eq!(ranks(0, 1), [0.0, 1.0]);
}
