//! 16.8: why nodes are not even looked at.

use super::*;
use crate::disruption::methods;

/// All that every method tells about nodes that it does not accept.
fn all_told(world: &World) -> Vec<String> {
    let none = BTreeSet::new();
    let look = Look {
        types: &world.types,
        taken: &none,
        relied_on: &none,
        leaving: &none,
        costs: Costs::default(),
        now: world.now,
    };
    let methods = methods(world.settings.gates);
    let notices = glance(&world.state(), methods.iter().map(AsRef::as_ref), look).notices;
    let notices = notices.iter().filter(|it| it.event.reason == "Unconsolidatable");
    notices.map(|it| format!("{}: {}", it.about.name, it.message)).collect()
}

fn one(of_pool: &Value, labels: &Value) -> World {
    let change = json!({"metadata": {"labels": labels}});
    World::new(sizes(), of_pool).node_of("p", "n1", ("s-4", OD), &["1"], &change, &change)
}

#[test]
fn nothing_is_told_of_nodes_that_may_be_consolidated() {
    for policy in ["WhenEmptyOrUnderutilized", "Balanced"] {
        let pool = json!({"spec": {"disruption": {"consolidationPolicy": policy}}});
        let world = one(&pool, &json!({}));
        assert_eq!(all_told(&world), [""; 0]);
        assert_eq!(world.view(Consolidation::Single).candidates.len(), 1);
    }
}

#[test]
fn every_method_tells_node_and_claim_why_they_are_not_looked_at() {
    let (none, no_change) = (json!({}), json!({}));
    let when_empty = json!({"spec": {"disruption": {"consolidationPolicy": "WhenEmpty"}}});
    let never = json!({"spec": {"disruption": {"consolidateAfter": "Never"}}});
    for (pool, labels, count, text) in [
        (
            &when_empty,
            none.clone(),
            4,
            "NodePool \"p\" has consolidation policy WhenEmpty, but node is not empty",
        ),
        (&never, none, 6, "NodePool \"p\" has consolidation disabled"),
        (&no_change, json!({TYPE: "x-1"}), 4, "Instance Type \"x-1\" not found"),
        (
            &no_change,
            json!({"karpenter.sh/capacity-type": ""}),
            4,
            "Node does not have label \"karpenter.sh/capacity-type\"",
        ),
        (
            &no_change,
            json!({"topology.kubernetes.io/zone": ""}),
            4,
            "Node does not have label \"topology.kubernetes.io/zone\"",
        ),
    ] {
        let world = one(pool, &labels);
        let told = all_told(&world);
        assert_eq!(told.len(), count, "{told:?}");
        let expected = twice("n1", text);
        assert!(told.iter().all(|it| expected.contains(it)), "{told:?}");
        assert!(world.view(Consolidation::Multi).candidates.is_empty());
    }
}

#[test]
fn nodes_that_are_empty_busy_or_of_static_pools_are_left_to_others_without_a_word() {
    let busy = json!({"status": {"conditions": [{"type": "Consolidatable", "status": "False", "reason": "a",
        "message": "", "lastTransitionTime": NOW}]}});
    let unchanged = json!({});
    let holding = |world: World, pods: &[&str], claim: &Value| {
        world.node_of("p", "n1", ("s-4", OD), pods, &json!({}), claim)
    };
    let fixed = json!({"spec": {"replicas": 1}});
    for world in [
        holding(World::on_demand(sizes()), &[], &unchanged),
        holding(World::on_demand(sizes()), &["1"], &busy),
        // Its condition says that it could be.
        holding(World::new(sizes(), &fixed), &["1"], &unchanged),
    ] {
        for method in [Consolidation::Multi, Consolidation::Single] {
            assert!(world.view(method).candidates.is_empty());
        }
        assert_eq!(all_told(&world), [""; 0]);
    }
}

#[test]
fn a_node_that_keeps_room_for_a_buffer_is_in_no_command_unless_it_has_pods_of_its_own() {
    let types: Types = World::on_demand(sizes()).types;
    let goes = |state: &State| -> Vec<String> {
        let settings = Arc::new(Settings::default());
        let preview =
            crate::disruption::preview::preview(state, &types, &settings, None, NOW.parse().unwrap());
        preview.moves.into_iter().flat_map(|each| each.nodes).collect()
    };
    let empty = World::on_demand(sizes()).node("n1", "s-4", OD, &[]);
    let used = World::on_demand(sizes()).node("n1", "s-4", OD, &["1"]);
    let mut state = empty.state();
    state.set_buffer_pods([("kwok://n1".into(), 2)].into());
    assert_eq!(goes(&state), [""; 0]);
    // It goes once nobody keeps room any more.
    state.set_buffer_pods([].into());
    assert_eq!(goes(&state), ["n1"]);
    let mut state = used.state();
    state.set_buffer_pods([("kwok://n1".into(), 2)].into());
    assert_eq!(goes(&state), ["n1"]);
}
