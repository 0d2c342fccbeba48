//! 16.15: pools that weigh savings against the disturbance.

use api::names::metrics::{CONSOLIDATION_MOVES, CONSOLIDATION_SCORE};

use super::super::balanced::{Totals, approves, moves};
use super::*;
use crate::disruption::decision::{Cause, Measure};

/// A change of a pool that weighs, of on-demand nodes.
fn balanced() -> Value {
    let mut pool = on_demand();
    merge(&mut pool, &json!({"spec": {"disruption": {"consolidationPolicy": "Balanced"}}}));
    pool
}

fn world(types: Vec<InstanceType>) -> World {
    World::new(types, &balanced())
}

/// What approvals say, each as `object: message`.
fn approved(decision: &Decision) -> Vec<String> {
    let notices = decision.notices.iter().filter(|it| it.event.reason == "ConsolidationApproved");
    notices.map(|it| format!("{}: {}", it.about.name, it.message)).collect()
}

/// What is counted, as `decision pool policy`, and the scores, as `decision pool score`.
fn measured(decision: &Decision) -> Vec<String> {
    let shown = decision.measures.iter().filter_map(|it| match it {
        Measure::Add(metric, labels, by) if metric.name == CONSOLIDATION_MOVES.name => {
            Some(format!("{} {} {} {by}", labels[0], labels[1], labels[2]))
        }
        Measure::Observe(metric, labels, score) if metric.name == CONSOLIDATION_SCORE.name => {
            Some(format!("{} {} {score:.3}", labels[0], labels[1]))
        }
        _ => None,
    });
    shown.collect()
}

#[test]
fn a_node_that_is_far_too_large_is_replaced_and_users_are_told_why() {
    let decision = world(sizes()).node("n1", "s-8", OD, &["1"]).decide(Consolidation::Single);
    assert_eq!(done(&decision), ["replace n1 -> on-demand s-1 s-2 s-4"]);
    let text = "score 0.88 >= threshold 0.50 (k: 2, savings 87.5%, disruption 100.0%)";
    assert_eq!(approved(&decision), twice("n1", text));
    assert_eq!(measured(&decision), ["approved p Balanced 1", "approved p 0.875"]);
}

#[test]
fn half_of_the_price_is_enough_and_less_is_not() {
    let types = |price: f64| vec![usual("old", 4, 4.0), usual("new", 2, price)];
    let node = |price: f64| world(types(price)).node("n1", "old", OD, &["2"]).decide(Consolidation::Single);
    assert_eq!(done(&node(2.0)), ["replace n1 -> on-demand new"]);
    assert_eq!(measured(&node(2.0))[1], "approved p 0.500");
    let decision = node(3.0);
    assert_eq!(done(&decision), [""; 0]);
    assert!(decision.notices.is_empty() && decision.nothing);
    assert_eq!(measured(&decision), ["rejected p Balanced 1", "rejected p 0.250"]);
    // All others take it.
    let plain = World::on_demand(types(3.0)).node("n1", "old", OD, &["2"]).decide(Consolidation::Single);
    assert_eq!(done(&plain), ["replace n1 -> on-demand new"]);
    assert_eq!(measured(&plain), ["approved p WhenEmptyOrUnderutilized 1"]);
    assert!(approved(&plain).is_empty());
}

#[test]
fn the_last_node_of_a_pool_scores_one_if_it_goes() {
    let decision =
        world(sizes()).foreign("large", "8").node("n1", "s-4", OD, &["1"]).decide(Consolidation::Single);
    assert_eq!(done(&decision), ["delete n1"]);
    assert_eq!(measured(&decision)[1], "approved p 1.000");
}

#[test]
fn a_node_with_many_pods_is_not_worth_what_one_with_few_is() {
    let mut all =
        world(vec![usual("s-4", 4, 4.0)]).foreign("large", "8").node("n1", "s-4", OD, &["100m"; 20]);
    for name in ["n2", "n3", "n4"] {
        all = all.node(name, "s-4", OD, &["1"]);
    }
    let decision = all.decide(Consolidation::Single);
    assert_eq!(done(&decision), ["delete n2", "delete n3", "delete n4"]);
    // A quarter of the price for 21 of 27, or for 2 of 27.
    let measured = measured(&decision);
    assert!(measured.contains(&"rejected p 0.321".to_owned()), "{measured:?}");
    assert!(measured.contains(&"approved p 3.375".to_owned()), "{measured:?}");
}

#[test]
fn what_is_left_of_several_nodes_is_weighed_again() {
    let all = |guarded: &[&str]| {
        let mut all =
            world(vec![usual("s-4", 4, 4.0)]).foreign("large", "8").node("n1", "s-4", OD, &["100m"; 20]);
        for name in ["n2", "n3", "n4"] {
            let change = protected(if guarded.contains(&name) { "true" } else { "false" });
            all = all.node_of("p", name, ("s-4", OD), &["1"], &change, &json!({}));
        }
        all
    };
    let planned = all(&[]).decide(Consolidation::Multi).commands.remove(0);
    assert_eq!(planned.candidates.len(), 4);
    // Half of the price for 23 of 27 is enough, a quarter for 21 is not.
    let left = all(&["n2", "n3"]).validate(Consolidation::Multi, &planned).unwrap();
    assert_eq!(left.candidates.len(), 2);
    let invalid = all(&["n2", "n3", "n4"]).validate(Consolidation::Multi, &planned).unwrap_err();
    assert_eq!(invalid.cause, Cause::Churn);
    assert_eq!(invalid.message, "validating candidates, what is left of them is not worth it");
}

#[test]
fn pods_that_are_done_or_about_to_go_are_no_part_of_what_a_pool_would_cost_to_disrupt() {
    let done = json!({"status": {"phase": "Succeeded"}});
    let stops = json!({"metadata": {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 30}});
    for change in [done, stops] {
        // Whether the other node could go or not.
        for guarded in ["true", "false"] {
            let mut world = world(sizes()).foreign("large", "8").node("n1", "s-4", OD, &["1"]);
            world = world.node_of("p", "n2", ("s-4", OD), &["1"], &protected(guarded), &json!({}));
            for name in ["d1", "d2", "d3"] {
                world = world.with(pod(name, "n2", "100m", &change));
            }
            let told = approved(&world.decide(Consolidation::Single));
            assert!(told[0].ends_with("savings 50.0%, disruption 50.0%)"), "{told:?}");
        }
    }
}

#[test]
fn all_nodes_of_a_pool_count_also_those_that_stay_and_those_whose_price_is_not_known() {
    let plain = |world: World| world.foreign("large", "8").node("n1", "s-4", OD, &["1"]);
    let text = |world: &World| {
        let decision = world.decide(Consolidation::Single);
        let told = approved(&decision);
        told[0].split_once("(k: 2, ").unwrap().1.to_owned()
    };
    let guarded =
        plain(world(sizes())).node_of("p", "n2", ("s-4", OD), &["1"], &protected("true"), &json!({}));
    assert_eq!(text(&guarded), "savings 50.0%, disruption 50.0%)");
    let unknown = plain(world(sizes())).node("n2", "x", OD, &["1"]);
    assert_eq!(text(&unknown), "savings 100.0%, disruption 50.0%)");
    // What cannot be bought any more costs what it costs; what has no price costs nothing.
    let mut types = sizes();
    types[2].offerings.iter_mut().for_each(|it| it.available = false);
    assert_eq!(text(&plain(world(types)).node("n2", "s-4", OD, &["1"])), "savings 50.0%, disruption 50.0%)");
    let mut types = sizes();
    types[3].offerings.iter_mut().for_each(|it| it.price = f64::NAN);
    assert_eq!(text(&plain(world(types)).node("n2", "s-8", OD, &["1"])), "savings 100.0%, disruption 50.0%)");
}

#[test]
fn a_pool_that_costs_nothing_saves_nothing() {
    let mut types = vec![usual("s-4", 4, 4.0)];
    types[0].offerings.iter_mut().for_each(|it| it.price = 0.0);
    let world = world(types).foreign("large", "8").node("n1", "s-4", OD, &["1"]);
    assert_eq!(world.single(), [""; 0]);
}

#[test]
fn only_what_may_be_bought_counts_as_saved() {
    // As a spot node the new one would cost half.
    let world = world(vec![usual("old", 4, 4.0), usual("new", 2, 3.0)]).node("n1", "old", OD, &["2"]);
    assert_eq!(world.single(), [""; 0]);
}

/// A full node of each of two pools, one three times as dear as the other, and something larger for a price that has
/// room for both.
fn two_pools(price: f64, of_other: &Value) -> World {
    let types = vec![usual("s-2", 2, 2.0), usual("s-3", 3, 6.0), usual("s-5", 5, price)];
    let world = world(types).pool("q", of_other).node("n1", "s-2", OD, &["2"]);
    world.node_of("q", "n2", ("s-3", OD), &["3"], &json!({}), &json!({}))
}

#[test]
fn pools_share_what_is_saved_and_all_of_them_must_approve() {
    let decision = two_pools(2.0, &balanced()).decide(Consolidation::Multi);
    assert_eq!(decision.commands.len(), 1);
    // 6 are saved: 1.5 for the one, of 2, and 4.5 for the other, of 6.
    let text = "score 0.75 >= threshold 0.50 (k: 2, savings 75.0%, disruption 100.0%)";
    assert_eq!(approved(&decision), [format!("p: {text}"), format!("q: {text}")]);
    let counted = ["approved p Balanced 1", "approved q Balanced 1", "approved p 0.750", "approved q 0.750"];
    assert_eq!(measured(&decision), counted);
    // Too little for one that weighs is too little.
    let decision = two_pools(6.0, &on_demand()).decide(Consolidation::Multi);
    assert!(decision.commands.is_empty() && approved(&decision).is_empty());
    let counted = ["rejected p Balanced 1", "rejected q WhenEmptyOrUnderutilized 1", "rejected p 0.250"];
    assert_eq!(measured(&decision), counted);
}

#[test]
fn a_pool_that_approves_is_told_even_if_another_one_does_not() {
    // The node of p has many pods, and is a small part of its pool.
    let mut crowded = two_pools(2.0, &balanced());
    crowded.objects.retain(|it| it["metadata"]["name"] != "n1-0");
    for number in 0..10 {
        crowded = crowded.with(pod(&format!("n1-{number}"), "n1", "200m", &json!({})));
    }
    for number in 0..9 {
        let name = format!("m{number}");
        crowded = crowded.node_of("p", &name, ("s-2", OD), &["2"], &protected("true"), &json!({}));
    }
    let decision = crowded.decide(Consolidation::Multi);
    assert_eq!(done(&decision), [""; 0]);
    let text = "score 0.75 >= threshold 0.50 (k: 2, savings 75.0%, disruption 100.0%)";
    assert_eq!(approved(&decision), [format!("q: {text}")]);
    let measured = measured(&decision);
    assert_eq!(measured[..2], ["rejected p Balanced 1", "rejected q Balanced 1"]);
    assert_eq!(measured[3], "approved q 0.750");
}

#[test]
fn several_nodes_that_are_hardly_used_go_together() {
    let nodes = ["n1", "n2", "n3", "n4"];
    let all = nodes.into_iter().fold(world(sizes()), |world, name| world.node(name, "s-4", OD, &["1"]));
    let decision = all.decide(Consolidation::Multi);
    assert_eq!(done(&decision), ["delete n1 n2 n3"]);
    let text = "score 1.00 >= threshold 0.50 (k: 2, savings 75.0%, disruption 75.0%)";
    assert_eq!(approved(&decision), [format!("p: {text}")]);
}

#[test]
fn nobody_is_told_of_approval_where_budgets_allow_nothing() {
    let closed = {
        let mut pool = balanced();
        merge(&mut pool, &json!({"spec": {"disruption": {"budgets": [{"nodes": "0%"}]}}}));
        World::new(sizes(), &pool)
    };
    let world = closed.node("n1", "s-8", OD, &["1"]).node("n2", "s-8", OD, &["1"]);
    for method in [Consolidation::Multi, Consolidation::Single] {
        let decision = world.decide(method);
        assert!(decision.commands.is_empty() && approved(&decision).is_empty() && decision.nothing);
    }
}

#[test]
fn an_empty_node_goes_before_one_that_is_hardly_used() {
    let mut pool = balanced();
    merge(&mut pool, &json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}));
    let world = World::new(sizes(), &pool).node("n1", "s-4", OD, &["1"]).node("n2", "s-4", OD, &[]);
    let settings = Arc::new(Settings::default());
    let found = crate::disruption::preview::preview(&world.state(), &world.types, &settings, None, world.now);
    let moves: Vec<_> = found.moves.iter().map(|it| (it.reason, it.nodes.join(" "))).collect();
    assert_eq!(moves, [("Empty", "n2".to_owned())]);
}

#[test]
fn pods_are_moved_where_they_fit_and_a_new_node_comes_where_they_do_not() {
    let large = || world(sizes()).node("n1", "s-8", OD, &["2"]);
    assert_eq!(large().foreign("other", "2").single(), ["delete n1"]);
    assert_eq!(large().foreign("other", "1").single(), ["replace n1 -> on-demand s-2 s-4"]);
}

#[test]
fn pools_of_which_nothing_is_known_approve_of_nothing_and_are_told_nothing() {
    let world = world(sizes()).node("n1", "s-8", OD, &["1"]);
    let (candidates, unknown) = (world.view(Consolidation::Single).candidates, Totals::default());
    assert!(!approves(&candidates, &[0], 7.0, &unknown));
    let told = moves(&candidates, &[0], 7.0, &unknown);
    assert_eq!((told.notices.len(), told.measures.len()), (0, 1));
    let known = Totals::new(&world.scene(), &candidates);
    assert!(approves(&candidates, &[0], 7.0, &known));
    // Nothing at all is nothing to approve of.
    assert!(!approves(&candidates, &[], 7.0, &known));
}

#[test]
fn nodes_that_are_well_used_stay_and_nobody_is_told() {
    let world = world(sizes()).node("n1", "s-4", OD, &["2", "2"]).node("n2", "s-4", OD, &["3", "1"]);
    for method in [Consolidation::Multi, Consolidation::Single] {
        let decision = world.decide(method);
        assert!(decision.commands.is_empty() && approved(&decision).is_empty(), "{method:?}");
    }
}

#[test]
fn of_several_that_are_worth_it_the_best_goes_where_one_may() {
    let mut pool = balanced();
    merge(&mut pool, &json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}));
    let world = World::new(sizes(), &pool).foreign("large", "100");
    let world = world.node("n1", "s-2", OD, &["1"]).node("n2", "s-8", OD, &["1"]);
    assert_eq!(world.single(), ["delete n2"]);
}
