//! 16.12: several nodes at once.

use super::*;

/// Larger types are cheaper than several small ones.
fn bulk() -> Vec<InstanceType> {
    [(2, 2.0), (4, 3.0), (8, 4.0)].map(|(cpu, price)| usual(&format!("s-{cpu}"), cpu, price)).to_vec()
}

fn three(kinds: [&str; 3], pool: &Value) -> World {
    let nodes = ["n1", "n2", "n3"].into_iter().zip(kinds);
    nodes.fold(World::new(bulk(), pool).spot_to_spot(), |world, (name, kind)| {
        world.node(name, "s-2", kind, &["2"])
    })
}

#[test]
fn three_nodes_become_one() {
    assert_eq!(three([OD; 3], &on_demand()).multi(), ["replace n1 n2 n3 -> on-demand s-8"]);
    assert_eq!(three([SPOT; 3], &json!({})).multi(), ["replace n1 n2 n3 -> spot s-8"]);
    // Those that save more come first.
    assert_eq!(three([OD, SPOT, OD], &json!({})).multi(), ["replace n1 n3 n2 -> spot s-8"]);
}

#[test]
fn spot_nodes_are_merged_only_where_that_is_wanted() {
    let mut world = three([SPOT; 3], &json!({}));
    world.settings.gates.spot_to_spot_consolidation = false;
    assert_eq!(world.multi(), [""; 0]);
}

#[test]
fn two_nodes_do_not_become_one_of_the_same_kind_but_one_goes() {
    let world = World::on_demand(sizes()).node("n1", "s-2", OD, &["1"]).node("n2", "s-2", OD, &["1"]);
    assert_eq!(world.multi(), [""; 0]);
    assert_eq!(world.single(), ["delete n1"]);
}

#[test]
fn all_nodes_that_others_have_room_for_go_together() {
    let nodes = ["n1", "n2", "n3", "n4"];
    let world =
        nodes.into_iter().fold(World::on_demand(sizes()), |world, name| world.node(name, "s-4", OD, &["1"]));
    assert_eq!(world.multi(), ["delete n1 n2 n3"]);
    let decision = world.decide(Consolidation::Multi);
    // Nothing is told of nodes that go and have no successor.
    assert!(decision.notices.is_empty());
    assert!(!decision.nothing);
    let savings: f64 = decision.commands.iter().map(Command::savings).sum();
    assert!((savings - 12.0).abs() < 1e-9);
}

#[test]
fn what_saves_more_is_done_of_deleting_some_and_replacing_all() {
    let world = |types: &[InstanceType]| {
        let world = World::on_demand(types.to_vec()).node("n1", "s-2", OD, &["500m"]);
        world.node("n2", "s-2", OD, &["500m"]).node("n3", "s-2", OD, &["1"])
    };
    let mut types = vec![usual("s-2", 2, 2.0)];
    assert_eq!(world(&types).multi(), ["delete n1 n2"]);
    types.push(usual("c-2", 2, 1.5));
    assert_eq!(world(&types).multi(), ["replace n1 n2 n3 -> on-demand c-2"]);
}

#[test]
fn users_are_told_what_several_nodes_may_become() {
    let decision = three([OD; 3], &on_demand()).decide(Consolidation::Multi);
    let message = "Consolidation candidate: replace: [n1] (part of 3-node consolidation) (savings: $2.00)";
    let told: Vec<_> = decision.notices.iter().filter(|it| it.message == message).collect();
    assert_eq!((decision.notices.len(), told.len()), (6, 2));
}

#[test]
fn what_several_nodes_become_is_not_the_cheapest_of_their_own_types() {
    // Dear ones and a small one become something smaller than the small one, or nothing.
    let types = || {
        let all = [("nano", 1.0), ("small", 2.0), ("xl", 4.0), ("2xl", 8.0)];
        all.map(|(name, price)| usual(name, 4, price)).to_vec()
    };
    let world = World::on_demand(types()).node("n1", "2xl", OD, &["2"]);
    let world = world.node("n2", "2xl", OD, &["1"]).node("n3", "small", OD, &["1"]);
    assert_eq!(world.multi(), ["replace n1 n2 n3 -> on-demand nano"]);
}

#[test]
fn however_many_nodes_there_are_all_of_them_are_looked_at() {
    // there is no end before the end, so nothing is called settled that nobody has looked at.
    let nodes = |used: &str| {
        let world = World::on_demand(vec![usual("s-1", 1, 1.0)]).foreign("large", "200");
        (0..150).fold(world, |world, number| world.node(&format!("n{number:03}"), "s-1", OD, &[used]))
    };
    let decision = nodes("1").decide(Consolidation::Multi);
    assert_eq!(decision.commands.iter().map(|it| it.candidates.len()).collect::<Vec<_>>(), [150]);
    // The last one alone could go: the others ask for what only their own node has.
    let own = json!({"spec": {"nodeSelector": {"no-such-label": "x"}}});
    let stuck = (0..149).fold(nodes("1"), |world, number| {
        let name = format!("n{number:03}");
        world.with(pod(&format!("{name}-0"), &name, "1", &own))
    });
    let decision = stuck.decide(Consolidation::Multi);
    assert!(decision.commands.is_empty());
    assert_eq!(stuck.single(), ["delete n149"]);
}
