//! 16.9: what nodes are replaced by.

use super::*;

/// A pool that asks for a choice of so many types, besides more.
fn choice(of: u32, more: &[Value]) -> Value {
    let mut all = vec![json!({"key": TYPE, "operator": "Exists", "minValues": of})];
    all.extend_from_slice(more);
    requiring(&json!(all))
}

fn only(kind: &str) -> Value {
    json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]})
}

#[test]
fn a_node_is_replaced_by_whatever_is_cheaper_and_nothing_else() {
    let world = World::on_demand(sizes()).node("n1", "s-8", OD, &["2"]);
    assert_eq!(world.single(), ["replace n1 -> on-demand s-2 s-4"]);
    // What may become a spot node must not end up as a dearer one.
    let world = World::new(sizes(), &json!({})).node("n1", "s-4", OD, &["2"]);
    assert_eq!(world.single(), ["replace n1 -> spot s-2 s-4"]);
    let decision = world.decide(Consolidation::Single);
    let messages: Vec<&str> = decision.notices.iter().map(|it| &*it.message).collect();
    assert_eq!(messages, ["Consolidation candidate: replace: [n1] -> [1 replacement] (savings: $3.00)"; 2]);
    let requirements = &decision.commands[0].replacements[0].new.claim.spec.requirements;
    let bound = requirements.iter().find(|it| it.key == "karpenter.sh/capacity-type").unwrap();
    assert_eq!(bound.values, ["spot"]);
}

#[test]
fn a_spot_node_is_replaced_by_one_of_the_fifteen_cheapest() {
    let world = |count, type_: &str, pool: &Value| {
        World::new(flat(count), pool).spot_to_spot().node("n1", type_, SPOT, &["4"])
    };
    let names = |count: u32| -> String {
        (1..=count).map(|number| format!("t-{number:02}")).collect::<Vec<_>>().join(" ")
    };
    let fifteen = [format!("replace n1 -> spot {}", names(15))];
    let none = json!({});
    assert_eq!(world(16, "t-16", &none).single(), fifteen);
    assert_eq!(world(30, "t-30", &none).single(), fifteen);
    // Those who ask for more choice get it.
    assert_eq!(world(30, "t-30", &choice(16, &[])).single(), [format!("replace n1 -> spot {}", names(16))]);
    assert_eq!(world(30, "t-30", &choice(10, &[])).single(), fifteen);
}

#[test]
fn a_spot_node_stays_where_there_is_too_little_choice_or_it_is_not_wanted() {
    let world = |count, type_: &str| World::new(flat(count), &json!({})).node("n1", type_, SPOT, &["4"]);
    let few = |found: u32| {
        twice(
            "n1",
            &format!(
                "SpotToSpotConsolidation requires 15 cheaper instance type options than the current candidate to \
                 consolidate, got {found}"
            ),
        )
    };
    assert_eq!(world(15, "t-15").spot_to_spot().kept(), few(14));
    // It is among the fifteen cheapest itself.
    assert_eq!(world(30, "t-10").spot_to_spot().kept(), few(9));
    let off = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node";
    assert_eq!(world(30, "t-30").kept(), twice("n1", off));
}

#[test]
fn a_choice_that_a_pool_asks_for_is_not_given_up_for_money() {
    let text =
        format!("Filtering by price: minValues requirement is not met for label(s) (label(s)=[{TYPE}])");
    for best_effort in [false, true] {
        let mut od = World::new(sizes(), &choice(2, &[only(OD)])).node("n1", "s-4", OD, &["2"]);
        let mut spot =
            World::new(sizes(), &choice(2, &[only(SPOT)])).spot_to_spot().node("n1", "s-4", SPOT, &["2"]);
        for world in [&mut od, &mut spot] {
            if best_effort {
                world.settings.min_values_policy = runtime::settings::MinValuesPolicy::BestEffort;
            }
            assert_eq!(world.kept(), twice("n1", &text), "best effort: {best_effort}");
            assert_eq!(world.single(), [""; 0]);
        }
    }
}

#[test]
fn where_too_little_choice_is_left_besides_their_own_type_one_node_goes_instead_of_two() {
    let mut types = sizes();
    types.extend([usual("cheap-2", 2, 1.5), usual("s-3", 3, 3.0)]);
    let pool = choice(2, &[only(OD)]);
    let world = World::new(types, &pool).node("n1", "s-2", OD, &["1"]).node("n2", "s-2", OD, &["1"]);
    assert_eq!(world.multi(), [""; 0]);
    assert_eq!(world.single(), ["delete n1"]);
}

#[test]
fn a_pool_without_types_disturbs_nobody() {
    let plain = World::on_demand(sizes()).node("n1", "s-8", OD, &["2"]);
    let mut world = plain.clone().pool("q", &json!({"spec": {"weight": 100}}));
    world.types.insert("q".into(), Arc::from([]));
    assert_eq!(world.single(), plain.single());
    world.types.remove("q");
    assert_eq!(world.single(), plain.single());
    assert_eq!(plain.single(), ["replace n1 -> on-demand s-2 s-4"]);
}

#[test]
fn what_protects_pods_decides_which_node_is_replaced() {
    for (kind, gate) in [(OD, false), (SPOT, true)] {
        let mut types = flat(20);
        types.extend(sizes());
        let world = World::new(types, &requiring(&json!([only(kind)])));
        let mut world = world.node("n1", "t-20", kind, &["4"]).node("n2", "t-20", kind, &["4"]);
        world.settings.gates.spot_to_spot_consolidation = gate;
        let replaced = |world: &World| -> Vec<String> {
            let decision = world.decide(Consolidation::Single);
            let all = decision.commands.iter().inspect(|it| assert_eq!(it.decision(), "replace"));
            all.flat_map(|it| &it.candidates).map(|it| it.name().to_owned()).collect()
        };
        assert_eq!(replaced(&world), ["n1", "n2"]);
        assert_eq!(replaced(&world.clone().with(pod_budget("n1", 0, &json!({})))), ["n2"]);
        let elsewhere = json!({"metadata": {"namespace": "elsewhere"}});
        assert_eq!(replaced(&world.clone().with(pod_budget("n1", 0, &elsewhere))), ["n1", "n2"]);
        let sick = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let lenient = json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}});
        let lenient = pod_budget("n1", 0, &lenient);
        assert_eq!(replaced(&world.clone().with(lenient.clone())), ["n2"]);
        let pod_n1 = |change: &Value| pod("n1-0", "n1", "4", change);
        assert_eq!(replaced(&world.clone().with(lenient).with(pod_n1(&sick))), ["n1", "n2"]);
        assert_eq!(replaced(&world.clone().with(pod_n1(&protected("true")))), ["n2"]);
        let guarded = world.node_of("p", "n1", ("t-20", kind), &["4"], &protected("true"), &json!({}));
        assert_eq!(replaced(&guarded), ["n2"]);
    }
}

#[test]
fn a_replacement_must_be_cheaper_wherever_it_is_launched() {
    let types = || {
        let (a, b) = ("test-zone-a", "test-zone-b");
        vec![kind("old", 2, &[(OD, a, 0.5)]), kind("new", 2, &[(OD, a, 0.6), (SPOT, a, 1.0), (SPOT, b, 0.2)])]
    };
    let kept = twice("n1", "Can't replace with a cheaper node");
    for pool in [json!({}), requiring(&json!([only(SPOT)])), on_demand()] {
        assert_eq!(World::new(types(), &pool).node("n1", "old", OD, &["2"]).kept(), kept, "{pool}");
    }
    // Where it is bound to the cheap zone, it is.
    let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-b"]});
    let world = World::new(types(), &requiring(&json!([only(SPOT), zone]))).node("n1", "old", OD, &["2"]);
    assert_eq!(world.single(), ["replace n1 -> spot new"]);
    // What cannot be had is no bargain.
    let mut types = types();
    types[1].offerings[2].available = false;
    assert_eq!(World::new(types, &json!({})).node("n1", "old", OD, &["2"]).kept(), kept);
}

#[test]
fn nobody_is_removed_for_whom_two_would_have_to_come() {
    let types = vec![usual("s-2", 2, 1.0), usual("old", 4, 9.0)];
    let mut world = World::on_demand(types).node("n1", "old", OD, &["2", "2"]);
    // The type itself cannot be had any more.
    let mut types = world.types["p"].to_vec();
    types[1].offerings.iter_mut().for_each(|it| it.available = false);
    world.types.insert("p".into(), types.into());
    assert_eq!(world.kept(), twice("n1", "Can't remove without creating 2 candidates"));
}
