//! Pools that ask for choice: how many different values of a label a claim must leave open.

use engine::options::MinValues;
use serde_json::{Value, json};

use crate::objects::{ARCH, CPUS, INSTANCE_TYPE, Pod, ZONE, need, need_choice};
use crate::world::{Round, World, machine, with_arch};

/// Machines with so many processors each, in a pool with requirements.
fn world(cpus: &[u32], requirements: Value) -> World {
    let mut world = World::empty();
    world.types = cpus.iter().map(|cpu| machine(&format!("m-{cpu}"), *cpu, *cpu)).collect();
    world.pool("default", json!({}));
    world.pool_requires("default", requirements);
    world
}

/// Two pods that fit together only on the largest of the machines with 2, 4 and 8 processors.
fn two_pods_under(requirements: Value) -> Round {
    let mut world = world(&[2, 4, 8], requirements);
    world.pods(2, "web", &Pod::new().cpu("1800m"));
    world.plan()
}

/// The pods do not share a node, because only one type would be left.
#[track_caller]
fn check_apart(requirements: Value, types: &[&[&str]]) {
    let round = two_pods_under(requirements);
    round.expect_all_placed().expect_nodes(types.len());
    assert_eq!(round.types, types);
}

/// 27.10-01
#[test]
fn pods_share_a_node_only_if_enough_types_are_left() {
    let alone: &[&str] = &["m-2", "m-4"];
    check_apart(json!([need_choice(INSTANCE_TYPE, "In", &["m-2", "m-4"], 2)]), &[alone, alone]);
    // Without the demand they do.
    check_apart(json!([need(INSTANCE_TYPE, "In", &["m-2", "m-4"])]), &[&["m-4"]]);
}

/// 27.10-02
#[test]
fn the_demand_holds_for_every_operator_that_leaves_values_open() {
    let all: &[&str] = &["m-2", "m-4", "m-8"];
    let small: &[&str] = &["m-2", "m-4"];
    check_apart(json!([need_choice(CPUS, "Gt", &["1"], 3)]), &[all, all]);
    check_apart(json!([need_choice(CPUS, "Lt", &["8"], 2)]), &[small, small]);
    check_apart(json!([need_choice(CPUS, "Gte", &["2"], 3)]), &[all, all]);
    check_apart(json!([need_choice(CPUS, "Gt", &["1"], 2), need(CPUS, "Lt", &["8"])]), &[small, small]);
    check_apart(
        json!([need_choice(INSTANCE_TYPE, "Exists", &[], 2), need(INSTANCE_TYPE, "In", &["m-2", "m-4"])]),
        &[small, small],
    );
}

/// 27.10-02
#[test]
fn of_several_demands_on_a_label_the_largest_counts() {
    let all: &[&str] = &["m-2", "m-4", "m-8"];
    let demands = |first, second| {
        json!([
            need_choice(INSTANCE_TYPE, "In", &["m-2", "m-4", "m-8"], first),
            need_choice(INSTANCE_TYPE, "NotIn", &["m-16"], second),
        ])
    };
    check_apart(demands(3, 1), &[all, all]);
    check_apart(demands(1, 3), &[all, all]);
    check_apart(demands(2, 1), &[&["m-4", "m-8"]]);
    let round = two_pods_under(demands(1, 3));
    assert_eq!(round.requirement(0, INSTANCE_TYPE)[0]["minValues"], 3);
}

/// 27.10-02
#[test]
fn demands_on_several_labels_hold_together() {
    let demands = |types, sizes| {
        json!([need_choice(INSTANCE_TYPE, "Exists", &[], types), need_choice(CPUS, "Exists", &[], sizes)])
    };
    let all: &[&str] = &["m-2", "m-4", "m-8"];
    check_apart(demands(1, 3), &[all, all]);
    check_apart(demands(3, 1), &[all, all]);
    check_apart(demands(2, 2), &[&["m-4", "m-8"]]);
}

/// 27.10-03
#[test]
fn a_pod_that_narrows_the_choice_too_far_is_told_which_label() {
    let mut world = world(&[2, 4, 8], json!([need_choice(INSTANCE_TYPE, "Exists", &[], 2)]));
    world.pod(Pod::new().require(json!([need(CPUS, "Gt", &["4"])])).name("web"));
    world.pod(Pod::new().require(json!([need(CPUS, "Gt", &["2"])])).name("modest"));
    let round = world.plan();
    round.expect_pending(
        "web",
        "minValues requirement is not met for label(s) (label(s)=[node.kubernetes.io/instance-type])",
    );
    round.expect_place("modest");
}

/// 27.10-03
#[test]
fn a_pool_that_leaves_fewer_values_than_it_demands_gets_no_nodes() {
    let check = |requirements: Value, placed: usize| {
        let mut world = world(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], requirements);
        world.pods(2, "web", &Pod::new());
        world.plan().expect_placed(placed);
    };
    check(json!([need_choice(CPUS, "Lt", &["2"], 2)]), 0);
    check(json!([need_choice(CPUS, "Lt", &["3"], 2)]), 2);
    check(json!([need_choice(INSTANCE_TYPE, "Exists", &[], 11)]), 0);
    check(json!([need_choice(INSTANCE_TYPE, "Exists", &[], 10)]), 2);
}

/// 27.10-03
#[test]
fn a_claim_whose_choice_is_lost_when_its_list_of_types_is_cut_is_given_up() {
    let mut world = World::empty();
    world.types = (0..600).map(|number| machine(&format!("m-{number:03}"), 4, 4)).collect();
    world.types.push(with_arch(machine("dear", 64, 512), "arm64"));
    world.pool("default", json!({}));
    world.pool_requires("default", json!([need_choice(ARCH, "Exists", &[], 2)]));
    world.pod(Pod::new().name("web"));
    let round = world.plan();
    round.expect_nodes(0).expect_pending("web", "couldn’t meet minValues requirements, validating minValues, minValues requirement is not met for label(s) (label(s)=[kubernetes.io/arch]) (NodePool=default)");
    // One type less, and the dear one is still in the list.
    world.types.remove(0);
    let round = world.plan();
    round.expect_all_placed().expect_nodes(1);
    assert_eq!(round.types[0].len(), 600);
}

/// 27.10-04
#[test]
fn a_demand_that_cannot_be_met_keeps_pods_waiting() {
    let check = |requirement: Value| {
        let mut world = world(&[2, 4], json!([requirement]));
        world.pod(Pod::new().name("web"));
        world.plan().expect_nodes(0).expect_placed(0);
    };
    check(need_choice(INSTANCE_TYPE, "In", &["m-2", "m-4", "m-8"], 3));
    check(need_choice(ZONE, "In", &["zone-1", "zone-2", "zone-3", "zone-4"], 4));
}

fn lenient(mut world: World) -> World {
    world.options.min_values = MinValues::BestEffort;
    world
}

const RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";

/// 27.10-04
#[test]
fn a_demand_that_may_be_lowered_is_lowered_to_what_there_is() {
    let types = need_choice(INSTANCE_TYPE, "In", &["m-2", "m-4", "m-8"], 3);
    let zones = need_choice(ZONE, "In", &["zone-1", "zone-4"], 2);
    let mut world = lenient(world(&[2, 4], json!([types, zones])));
    world.pod(Pod::new().name("web"));
    let round = world.plan();
    round.expect_all_placed().expect_nodes(1);
    assert_eq!(round.requirement(0, INSTANCE_TYPE)[0]["minValues"], 2);
    assert_eq!(round.requirement(0, ZONE)[0]["minValues"], 1);
    assert_eq!(round.claims[0]["metadata"]["annotations"][RELAXED], "true");
}

/// 27.10-04
#[test]
fn a_demand_that_is_met_is_left_alone() {
    let mut world = lenient(world(&[2, 4], json!([need_choice(INSTANCE_TYPE, "Exists", &[], 2)])));
    world.pod(Pod::new().name("web"));
    let round = world.plan();
    assert_eq!(round.requirement(0, INSTANCE_TYPE)[0]["minValues"], 2);
    assert_eq!(round.claims[0]["metadata"]["annotations"][RELAXED], "false");
}

/// 27.10-04
#[test]
fn a_demand_is_lowered_before_a_pool_of_less_weight_is_tried() {
    for other_demand in [1, 5] {
        let mut world = lenient(world(&[2, 4], json!([])));
        let demand = |count| json!({"template": {"spec": {"requirements": [need_choice(INSTANCE_TYPE, "Exists", &[], count)]}}});
        world.change("NodePool", "default", json!({"spec": demand(other_demand)}));
        world.pool("heavy", demand(3));
        world.change("NodePool", "heavy", json!({"spec": {"weight": 10}}));
        world.pod(Pod::new().name("web"));
        let round = world.plan();
        round.expect_all_placed().expect_nodes(1);
        assert_eq!(round.node_label(0, "karpenter.sh/nodepool"), "heavy");
        assert_eq!(round.claims[0]["metadata"]["annotations"][RELAXED], "true");
    }
}

/// 27.10-04
#[test]
fn only_values_that_are_still_allowed_are_a_choice() {
    // Every type is in three zones, but the pod leaves one.
    let demand = json!([need_choice(ZONE, "Exists", &[], 2)]);
    let mut strict = world(&[2, 4], demand);
    strict.pod(Pod::new().on(ZONE, "zone-1").name("web"));
    strict.plan().expect_pending("web", "label(s)=[topology.kubernetes.io/zone]");
    let round = lenient(strict).plan();
    round.expect_all_placed();
    assert_eq!(round.values(0, ZONE), ["zone-1"]);
    assert_eq!(round.requirement(0, ZONE)[0]["minValues"], 1);
    assert_eq!(round.claims[0]["metadata"]["annotations"][RELAXED], "true");
}

/// 27.10-03
#[test]
fn nothing_is_greater_than_the_greatest_number_and_then_no_choice_is_asked_for() {
    let greatest = i64::MAX.to_string();
    let mut world = world(&[2, 4], json!([need_choice("level", "Gt", &[&greatest], 2)]));
    world.pod(Pod::new().name("web"));
    let round = world.plan();
    round.expect_all_placed();
    let level = json!({"key": "level", "operator": "DoesNotExist"});
    assert_eq!(round.requirement(0, "level"), [&level]);
}
