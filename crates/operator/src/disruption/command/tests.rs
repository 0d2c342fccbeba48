//! What is said of commands.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::names::labels::{CAPACITY_TYPE, ZONE};
use cluster::costs::Costs;
use cluster::instance_types::{InstanceType, kwok};
use serde_json::json;

use super::*;
use crate::catalogue::Types;
use crate::disruption::Class;
use crate::disruption::candidate::{Search, find};
use crate::disruption::emptiness::Emptiness;
use crate::disruption::scene::Scene;
use crate::provisioner::outcome::NewClaim;
use crate::testing::{node_objects, pod_object, pool, pool_object, state};

const TYPE: &str = "c-4x-amd64-linux";

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

/// So many nodes, each with two pods.
fn candidates(count: usize) -> Vec<Candidate> {
    let mut objects = vec![pool_object("p", &json!({})), pool_object("q", &json!({}))];
    for number in 1..=count {
        let (node, pool) = (format!("n{number}"), if number % 2 == 1 { "p" } else { "q" });
        objects.extend(node_objects(&node, pool, &json!({}), &json!({})));
        objects.extend(["a", "b"].map(|pod| pod_object(&format!("{node}-{pod}"), &node, &json!({}))));
    }
    let list: Arc<[InstanceType]> = kwok::built_in().into();
    let types = [("p".into(), Arc::clone(&list)), ("q".into(), list)].into();
    let (queued, costs) = (BTreeSet::new(), Costs::default());
    let search = Search {
        types: &types,
        queued: &queued,
        relied_on: &queued,
        class: Class::Graceful,
        costs,
        now: now(),
    };
    find(&state(&objects), search).candidates
}

/// A launch of one of some types, where labels have some values.
pub(in crate::disruption) fn launch(types: &[&str], restricted: &[(&str, &str)]) -> Launch {
    let scene = Scene::new(&state(&[]), &Types::new(), &Arc::default(), &BTreeSet::new(), now());
    let mut new = NewClaim::bare(Arc::new(pool("p", &json!({}))), scene.sets()).unwrap();
    new.types = types.iter().map(|name| (*name).to_owned()).collect();
    let mut launch = Launch::new(new, kwok::built_in().into(), &scene);
    for (key, value) in restricted {
        launch.restrict(key, [*value]);
    }
    launch
}

pub(in crate::disruption) fn command(count: usize, replacements: Vec<Launch>) -> Command {
    Command { replacements, ..Command::delete(&Emptiness, candidates(count), now()) }
}

/// The least that a type costs where labels have some values.
fn cheapest(name: &str, restricted: &[(&str, &str)]) -> f64 {
    let all = kwok::built_in();
    let offerings = &all.iter().find(|it| it.name == name).unwrap().offerings;
    let fitting =
        offerings.iter().filter(|it| restricted.iter().all(|(key, value)| it.value(key) == Some(value)));
    fitting.map(|it| it.price).min_by(f64::total_cmp).unwrap()
}

#[test]
fn a_command_is_one_line() {
    let line = |command: Command| command.text().replace(&*command.id, "ID");
    let price = candidates(1)[0].price;
    assert_eq!(
        line(command(2, vec![])),
        format!("Empty/ID: delete: nodepools=[p,q]: [n1, n2] (savings: ${:.2})", 2.0 * price)
    );
    let one = line(command(1, vec![launch(&[], &[])]));
    assert_eq!(
        one,
        format!("Empty/ID: replace: nodepools=[p]: [n1] -> [1 replacement] (savings: ${price:.2})")
    );
    let two = line(command(1, vec![launch(&[], &[]), launch(&[], &[])]));
    assert!(two.contains("[n1] -> [2 replacements] (savings"), "{two}");
    assert_eq!(line(command(0, vec![])), "Empty/ID: no-op: nodepools=[]: [] (savings: $0.00)");
}

#[test]
fn events_have_it_in_a_few_words() {
    let short = |command: Command| command.short_text(&command.candidates[0]);
    assert_eq!(short(command(1, vec![])), "delete: [n1]");
    assert_eq!(short(command(1, vec![launch(&[], &[])])), "replace: [n1] -> [1 replacement]");
    assert_eq!(short(command(3, vec![])), "delete: [n1] (part of 3-node consolidation)");
}

#[test]
fn every_way_to_disrupt_has_its_word() {
    let plain = command(1, vec![]);
    let first = Command { kind: Kind::TerminateFirst("why"), ..plain.clone() };
    let reboot = Command { kind: Kind::Reboot, ..plain.clone() };
    assert_eq!((first.decision(), reboot.decision()), ("terminate-first", "reboot"));
    assert_eq!((first.savings() - plain.savings(), reboot.savings()), (0.0, 0.0));
    assert_eq!(command(1, vec![launch(&[], &[])]).decision(), "replace");
}

#[test]
fn savings_are_what_nodes_cost_less_the_least_that_replacements_do() {
    let price = candidates(1)[0].price;
    let saved = |launches: Vec<Launch>| price - command(1, launches).savings();
    let same = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    same(saved(vec![launch(&[TYPE], &[])]), cheapest(TYPE, &[]));
    let on_demand = [(CAPACITY_TYPE, "on-demand")];
    same(saved(vec![launch(&[TYPE], &on_demand)]), cheapest(TYPE, &on_demand));
    assert!(cheapest(TYPE, &on_demand) > cheapest(TYPE, &[]));
    let zone = [(ZONE, "test-zone-b")];
    same(saved(vec![launch(&[TYPE], &zone)]), cheapest(TYPE, &zone));
    let two = vec![launch(&[TYPE], &[]), launch(&[TYPE], &on_demand)];
    same(saved(two), cheapest(TYPE, &[]) + cheapest(TYPE, &on_demand));
    same(saved(vec![launch(&[], &[])]), 0.0);
    same(saved(vec![launch(&["no-such-type"], &[])]), 0.0);
}

#[test]
fn the_log_says_what_goes_and_what_comes() {
    let many: Vec<String> = kwok::built_in().into_iter().map(|it| it.name).take(7).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let one = command(2, vec![launch(&many, &[])]);
    assert_eq!(one.pod_count(), 4);
    assert_eq!(
        one.shown_nodes()[0],
        json!({"Node": {"name": "n1"}, "NodeClaim": {"name": "claim-n1"}, "instance-type": TYPE, "capacity-type": "spot"})
    );
    let shown = one.shown_replacements();
    assert_eq!(shown[0]["capacity-type"], "reserved");
    assert_eq!(shown[0]["instance-types"], format!("{} and 2 other(s)", many[..5].join(", ")));
    let spot = launch(&many, &[(CAPACITY_TYPE, "spot")]);
    assert_eq!(spot.capacity_type(), "spot");
    assert_eq!(
        command(1, vec![spot.clone(), spot]).shown_replacements()[0],
        json!({"capacity-type": "spot"})
    );
}

#[test]
fn the_node_and_its_claim_are_told() {
    let price = candidates(1)[0].price;
    let told = |notices: Vec<Notice>| -> Vec<String> {
        notices
            .into_iter()
            .map(|it| format!("{} {}: {}", it.event.reason, it.about.name, it.message))
            .collect()
    };
    let text = format!("Consolidation candidate: delete: [n1] (savings: ${price:.2})");
    assert_eq!(
        told(command(1, vec![]).candidate_notices()),
        [format!("ConsolidationCandidate n1: {text}"), format!("ConsolidationCandidate claim-n1: {text}")]
    );
    let rejected = told(command(2, vec![]).rejected_notices(Cause::Churn));
    assert_eq!(rejected.len(), 4);
    let savings = 2.0 * price;
    let text =
        "ConsolidationRejected n1: Consolidation rejected: delete: [n1] (part of 2-node consolidation)";
    assert_eq!(rejected[0], format!("{text}, reason: churn (savings: ${savings:.2})"));
}

#[test]
fn a_reservation_that_is_used_up_does_not_make_a_new_node_cheaper() {
    let usual = launch(&[TYPE], &[]).price();
    assert!(usual > 0.0);
    for (left, expected) in [(1, 0.0), (0, usual)] {
        let mut types = kwok::built_in();
        let offerings = &mut types.iter_mut().find(|it| it.name == TYPE).unwrap().offerings;
        let mut reserved = offerings[0].clone();
        let kind = reserved.requirements.iter_mut().find(|it| it.key == CAPACITY_TYPE).unwrap();
        kind.values = vec!["reserved".to_owned()];
        (reserved.price, reserved.reservation_capacity) = (0.0, left);
        offerings.push(reserved);
        let mut launch = launch(&[TYPE], &[]);
        launch.catalogue = types.into();
        let command = command(1, vec![launch]);
        let saved = command.candidates[0].price - expected;
        assert!((command.savings() - saved).abs() < 1e-9, "{left}");
    }
}
