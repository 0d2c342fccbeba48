//! 16.11: what was decided must still be right after a while.

use std::time::Duration;

use jiff::SignedDuration;

use super::*;
use crate::disruption::decision::Cause;

/// One node that is too large for its pod.
fn large() -> World {
    World::on_demand(sizes()).node("n1", "s-8", OD, &["2"])
}

/// Nodes of three pods of one processor each, and room for all of them elsewhere.
fn several() -> World {
    let nodes = ["n1", "n2", "n3"];
    let world = World::on_demand(vec![usual("s-1", 1, 1.0)]).foreign("large", "4");
    nodes.into_iter().fold(world, |world, name| world.node(name, "s-1", OD, &["1"]))
}

fn command(world: &World, method: Consolidation) -> Command {
    let mut commands = world.decide(method).commands;
    assert_eq!(commands.len(), 1);
    commands.remove(0)
}

/// Why a command does not hold, if it does not.
fn wrong(world: &World, command: &Command) -> Option<Cause> {
    let method = if command.candidates.len() > 1 { Consolidation::Multi } else { Consolidation::Single };
    world.validate(method, command).err().map(|invalid| invalid.cause)
}

#[test]
fn everything_waits_for_fifteen_seconds() {
    for method in [Consolidation::Multi, Consolidation::Single] {
        assert_eq!(method.patience(), Duration::from_secs(15));
    }
}

#[test]
fn what_has_not_changed_is_done_as_it_was_decided() {
    let planned = command(&large(), Consolidation::Single);
    let valid = large().validate(Consolidation::Single, &planned).unwrap();
    assert_eq!(
        (valid.id, valid.replacements[0].new.types.clone()),
        (planned.id, planned.replacements[0].new.types.clone())
    );
    let planned = command(&several(), Consolidation::Multi);
    let valid = several().validate(Consolidation::Multi, &planned).unwrap();
    assert_eq!(valid.candidates.len(), 3);
    assert_eq!(valid.destinations.len(), 1);
}

#[test]
fn a_node_is_not_replaced_if_other_types_would_be_needed_now() {
    let planned = command(&large(), Consolidation::Single);
    // More has come onto the node.
    assert_eq!(wrong(&large().with(pod("late", "n1", "2", &json!({}))), &planned), Some(Cause::Scheduling));
    // One of the types has gone.
    let mut world = large();
    let fewer: Vec<_> = sizes().into_iter().filter(|it| it.name != "s-2").collect();
    world.types.insert("p".into(), fewer.into());
    assert_eq!(wrong(&world, &planned), Some(Cause::Scheduling));
    // Somewhere else there is room now.
    assert_eq!(wrong(&large().foreign("other", "4"), &planned), Some(Cause::Scheduling));
}

#[test]
fn a_node_is_not_deleted_if_there_is_no_room_any_more() {
    let world = World::on_demand(vec![usual("s-4", 4, 4.0)]).node("n1", "s-4", OD, &["2"]).node(
        "n2",
        "s-4",
        OD,
        &["2"],
    );
    let planned = command(&world, Consolidation::Single);
    assert_eq!(wrong(&world, &planned), None);
    assert_eq!(
        wrong(&world.clone().with(pod("late", "n2", "1", &json!({}))), &planned),
        Some(Cause::Scheduling)
    );
    assert_eq!(wrong(&world.with(pod("late", "n1", "1", &json!({}))), &planned), Some(Cause::Scheduling));
}

#[test]
fn what_comes_meanwhile_and_must_not_be_disturbed_is_not() {
    let deletes =
        World::on_demand(vec![usual("s-4", 4, 4.0)]).node("n1", "s-4", OD, &["1"]).foreign("large", "8");
    for world in [large(), deletes] {
        let planned = command(&world, Consolidation::Single);
        let guarded = world.clone().with(pod("late", "n1", "100m", &protected("true")));
        assert_eq!(wrong(&guarded, &planned), Some(Cause::Churn));
        let budgeted = world.clone().with(pod_budget("n1", 0, &json!({})));
        assert_eq!(wrong(&budgeted, &planned), Some(Cause::Churn));
        let guarded = world.clone().node_of("p", "n1", ("s-8", OD), &["2"], &protected("true"), &json!({}));
        assert_eq!(wrong(&guarded, &planned), Some(Cause::Churn));
        let invalid = guarded.validate(Consolidation::Single, &planned).unwrap_err();
        assert_eq!(invalid.message, "validating candidates, 1 candidates are no longer valid");
        // Pods are expected on it.
        let mut promised = world;
        promised.nominated.push("kwok://n1");
        assert_eq!(wrong(&promised, &planned), Some(Cause::Churn));
    }
}

#[test]
fn budgets_still_count() {
    let none = json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}});
    let two = json!({"spec": {"disruption": {"budgets": [{"nodes": "2"}]}}});
    let pool = |change: &Value| {
        let mut pool = pool_object("p", &on_demand());
        merge(&mut pool, change);
        pool
    };
    let planned = command(&large(), Consolidation::Single);
    assert_eq!(wrong(&large().with(pool(&none)), &planned), Some(Cause::Budget));
    let planned = command(&several(), Consolidation::Multi);
    assert_eq!(wrong(&several().with(pool(&two)), &planned), Some(Cause::Budget));
}

#[test]
fn the_log_says_what_was_validated_and_why_it_does_not_hold() {
    let said = |world: &World, planned: &Command| {
        world.validate(Consolidation::Single, planned).unwrap_err().to_string()
    };
    let planned = command(&large(), Consolidation::Single);
    let none = json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}});
    let mut pool = pool_object("p", &on_demand());
    merge(&mut pool, &none);
    let budget = "validating candidates, a budget no longer allows the disruption";
    assert_eq!(said(&large().with(pool), &planned), budget);
    let late = pod("late", "n1", "100", &json!({}));
    let scheduling = "validating command, not all pods would schedule, default/late => ";
    assert!(said(&large().with(late), &planned).starts_with(scheduling));
    let other = "validating command, 0 new nodes are needed, not 1";
    assert_eq!(said(&large().foreign("other", "4"), &planned), other);
}

#[test]
fn nodes_that_only_go_may_become_fewer_but_a_new_node_is_for_all_of_them_or_none() {
    let guard = |world: World| world.node_of("p", "n1", ("s-1", OD), &["1"], &protected("true"), &json!({}));
    let planned = command(&several(), Consolidation::Multi);
    let left = guard(several()).validate(Consolidation::Multi, &planned).unwrap();
    let left: Vec<&str> = left.candidates.iter().map(Candidate::name).collect();
    assert_eq!(left, ["n2", "n3"]);
    let full = || {
        let world = World::on_demand(vec![usual("s-1", 1, 1.0), usual("s-2", 2, 1.5)]);
        world.node("n1", "s-1", OD, &["1"]).node("n2", "s-1", OD, &["1"])
    };
    let planned = command(&full(), Consolidation::Multi);
    assert_eq!(planned.decision(), "replace");
    assert_eq!(wrong(&full(), &planned), None);
    assert_eq!(wrong(&guard(full()), &planned), Some(Cause::Churn));
}

/// Room for two processors elsewhere, a node of four pods that have two, and a larger one with these pods.
fn rivals(of_large: &[&str]) -> World {
    let small = ["500m", "500m", "500m", "500m"];
    // Spot nodes are not replaced by others.
    let world = World::new(sizes(), &json!({})).foreign("room", "2");
    world.node("a", "s-4", SPOT, &small).node("b", "s-8", SPOT, of_large)
}

fn names(command: &Command) -> Vec<&str> {
    command.candidates.iter().map(Candidate::name).collect()
}

#[test]
fn another_node_goes_if_it_saves_more_for_what_it_costs_by_now() {
    let planned = command(&rivals(&["3", "3", "1"]), Consolidation::Single);
    assert_eq!(names(&planned), ["a"], "there is no room for the pods of the larger one");
    let valid = rivals(&["3", "3", "1"]).validate(Consolidation::Single, &planned).unwrap();
    assert_eq!(names(&valid), ["a"]);
    // Most pods of the larger one have stopped: now it is the one to go.
    let valid = rivals(&["1"]).validate(Consolidation::Single, &planned).unwrap();
    assert_eq!(names(&valid), ["b"]);
    let room: Vec<&str> = valid.destinations.iter().map(|it| &*it.origin.provider_id).collect();
    assert_eq!(room, ["kwok://a"], "what was to go stays, and takes its pod");
}

#[test]
fn a_node_that_has_just_become_consolidatable_takes_no_other_s_place() {
    let since = |seconds: i64| {
        let time = (NOW.parse::<Timestamp>().unwrap() - SignedDuration::from_secs(seconds)).to_string();
        let conditions = json!([
            {"type": "Consolidatable", "status": "True", "lastTransitionTime": time, "reason": "", "message": ""}
        ]);
        let claim = json!({"status": {"conditions": conditions}});
        rivals(&[]).node_of("p", "b", ("s-8", SPOT), &["1"], &json!({}), &claim)
    };
    let planned = command(&rivals(&["3", "3", "1"]), Consolidation::Single);
    for (seconds, goes) in [(9, "a"), (10, "b")] {
        let valid = since(seconds).validate(Consolidation::Single, &planned).unwrap();
        assert_eq!(names(&valid), [goes], "{seconds} s");
    }
}

#[test]
fn of_nodes_that_go_together_those_stay_for_which_there_are_better_ones() {
    let two = |of_large: &[&str]| rivals(of_large).foreign("more", "2").node("c", "s-4", SPOT, &["2"]);
    let planned = command(&two(&["3", "3", "1"]), Consolidation::Multi);
    assert_eq!(names(&planned), ["c", "a"]);
    let valid = two(&["1"]).validate(Consolidation::Multi, &planned).unwrap();
    assert_eq!(names(&valid), ["b", "c"], "as many as before, although there is room for all three");
}
