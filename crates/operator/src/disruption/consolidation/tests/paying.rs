//! Nodes that have yet to pay for themselves.

use super::*;
use crate::disruption::preview::preview;

/// A change of a claim: it pays for itself until then.
fn paying(until: &str) -> Value {
    json!({"metadata": {"annotations": {"karpenter.sh/nodeclaim-payback-timestamp": until}}})
}

/// A node that is too large, and pays for itself until a quarter past one.
fn large() -> World {
    let claim = paying("2026-01-01T01:15:00Z");
    World::on_demand(sizes()).node_of("p", "n1", ("s-8", OD), &["2"], &json!({}), &claim)
}

#[test]
fn a_node_that_replaced_others_is_not_replaced_before_it_has_paid_for_itself() {
    let why = "Can't replace before 2026-01-01T01:15:00Z, until then the node pays for what its own launch has cost";
    let world = large();
    assert_eq!(world.single(), [""; 0]);
    assert_eq!(world.kept(), twice("n1", why));
    let (settings, state) = (Arc::new(world.settings.clone()), world.state());
    let shown = preview(&state, &world.types, &settings, None, world.now);
    assert_eq!(shown.kept["n1"].to_string(), why);
    assert_eq!(large().at("2026-01-01T01:15:00Z").single(), ["replace n1 -> on-demand s-2 s-4"]);
}

#[test]
fn a_node_that_has_yet_to_pay_for_itself_still_makes_way_where_others_have_room() {
    let world = large().node("n2", "s-8", OD, &["6"]);
    assert_eq!(world.single(), ["delete n1"]);
}

#[test]
fn a_node_that_has_yet_to_pay_for_itself_is_not_merged_with_others_into_a_new_one() {
    let full = |world: World, name: &str| world.node(name, "s-4", OD, &["3"]);
    let held = |until: &str| {
        World::on_demand(sizes()).node_of("p", "n0", ("s-4", OD), &["3"], &json!({}), &paying(until))
    };
    let (before, after) = (held("2026-01-01T01:15:00Z"), held("2026-01-01T00:59:00Z"));
    let cheap = |mut world: World| {
        let mut types = world.types["p"].to_vec();
        types.push(usual("cheap-8", 8, 5.0));
        world.types.insert("p".into(), types.into());
        world
    };
    assert_eq!(cheap(full(before, "n1")).multi(), [""; 0]);
    assert_eq!(cheap(full(after, "n1")).multi(), ["replace n0 n1 -> on-demand cheap-8"]);
}
