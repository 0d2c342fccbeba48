//! 16.10: which nodes go because others have room for their pods.

use super::*;

/// Two nodes of the cheapest type that are half used: one of them can go, and nothing cheaper can come.
fn halves() -> World {
    World::on_demand(vec![usual("s-4", 4, 4.0)]).node("n1", "s-4", OD, &["1"]).node("n2", "s-4", OD, &["1"])
}

#[test]
fn the_node_with_the_fewest_pods_goes() {
    let world = World::on_demand(sizes()).node("n1", "s-4", OD, &["1", "1"]).node("n2", "s-4", OD, &["1"]);
    assert_eq!(world.single(), ["delete n2"]);
}

#[test]
fn nodes_of_others_have_room_too() {
    let alone = World::on_demand(sizes()).node("n1", "s-1", OD, &["1"]);
    assert_eq!(alone.single(), [""; 0]);
    assert_eq!(alone.foreign("other", "4").single(), ["delete n1"]);
}

#[test]
fn what_protects_pods_and_nodes_decides_which_node_goes() {
    assert_eq!(halves().single(), ["delete n1"]);
    assert_eq!(halves().with(pod_budget("n1", 0, &json!({}))).single(), ["delete n2"]);
    let elsewhere = json!({"metadata": {"namespace": "elsewhere"}});
    assert_eq!(halves().with(pod_budget("n1", 0, &elsewhere)).single(), ["delete n1"]);
    assert_eq!(halves().with(pod("n1-0", "n1", "1", &protected("true"))).single(), ["delete n2"]);
    // What cannot be understood protects nobody.
    assert_eq!(halves().with(pod("n1-0", "n1", "1", &protected("soon"))).single(), ["delete n1"]);
    let guarded = halves().node_of("p", "n1", ("s-4", OD), &["1"], &protected("true"), &json!({}));
    assert_eq!(guarded.single(), ["delete n2"]);
}

#[test]
fn a_grace_period_is_no_reason_to_disturb_protected_pods() {
    let hurried = json!({"spec": {"terminationGracePeriod": "1m"}});
    let world = halves().node_of("p", "n1", ("s-4", OD), &["1"], &json!({}), &hurried);
    assert_eq!(world.single(), ["delete n1"]);
    assert_eq!(world.clone().with(pod_budget("n1", 0, &json!({}))).single(), ["delete n2"]);
    assert_eq!(world.with(pod("n1-0", "n1", "1", &protected("true"))).single(), ["delete n2"]);
}

#[test]
fn protection_for_a_while_ends() {
    let mut change = protected("90m");
    merge(&mut change, &json!({"status": {"startTime": "2026-01-01T00:00:00Z"}}));
    let world = halves().with(pod("n1-0", "n1", "1", &change));
    assert_eq!(world.single(), ["delete n2"]);
    assert_eq!(world.at("2026-01-01T01:30:01Z").single(), ["delete n1"]);
}

#[test]
fn a_node_stays_whose_pods_would_go_to_one_that_is_not_up() {
    let starting = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    let world = World::on_demand(sizes()).node("n1", "s-1", OD, &["1"]);
    let world = world.node_of("p", "n2", ("s-4", OD), &[], &starting, &json!({}));
    let why = "would schedule against uninitialized nodeclaim/claim-n2, node/n2";
    let text = format!("Not all pods would schedule, default/n1-0 => {why} ");
    assert_eq!(world.kept(), twice("n1", &text));
    assert_eq!(world.single(), [""; 0]);
}

#[test]
fn nodes_that_are_up_are_tried_before_a_hundred_that_are_not() {
    let starting = json!({"metadata": {"labels": {"karpenter.sh/initialized": "false"}}});
    let mut world = World::on_demand(sizes()).node("n1", "s-1", OD, &["1"]).foreign("z", "4");
    for number in 0..100 {
        let name = format!("a{number}");
        world = world.node_of("p", &name, ("s-4", OD), &[], &starting, &json!({}));
    }
    assert_eq!(world.single(), ["delete n1"]);
}

/// A node of a type that is cheapest, and another one of a pool that waits for so long, busy five minutes ago.
fn beside_a_busy_one(consolidate_after: &str, type_: &str, used: &str) -> World {
    let mut pool = on_demand();
    merge(&mut pool, &json!({"spec": {"disruption": {"consolidateAfter": consolidate_after}}}));
    let busy = json!({"status": {"lastPodEventTime": "2026-01-01T00:55:00Z", "conditions": [
        {"type": "Initialized", "status": "True", "reason": "Initialized", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let world = World::on_demand(sizes()).pool("q", &pool).node("n1", type_, OD, &[used]);
    world.node_of("q", "n2", ("s-4", OD), &["1"], &json!({}), &busy)
}

#[test]
fn pods_are_not_moved_to_a_node_that_was_busy_lately() {
    let world = beside_a_busy_one("10m", "s-1", "1");
    assert_eq!(world.single(), [""; 0]);
    assert_eq!(world.kept(), twice("n1", "Can't replace with a cheaper node"));
    assert_eq!(world.at("2026-01-01T01:05:00Z").single(), ["delete n1"]);
    // Where nodes are never consolidated, nobody waits for them to be quiet.
    assert_eq!(beside_a_busy_one("Never", "s-1", "1").single(), ["delete n1"]);
    // Nor does it keep a new node from coming.
    assert_eq!(beside_a_busy_one("10m", "s-8", "2").single(), ["replace n1 -> on-demand s-2 s-4"]);
}

#[test]
fn pods_that_wait_in_vain_do_not_keep_anybody() {
    assert_eq!(halves().with(waiting_pod("w", "1000")).single(), ["delete n1"]);
    // Those that run and would have no place do.
    let picky = json!({"spec": {"nodeSelector": {"no-such-label": "x"}}});
    let world = halves().with(pod("n1-0", "n1", "1", &picky));
    assert_eq!(world.single(), ["delete n2"]);
    let kept = world.kept();
    assert!(kept[0].starts_with("n1: Not all pods would schedule, default/n1-0 => "), "{kept:?}");
}

#[test]
fn pods_of_a_node_that_goes_anyway_and_have_no_place_do_not_keep_anybody() {
    //
    let picky = json!({"spec": {"nodeSelector": {"no-such-label": "x"}}});
    let world = halves().node("n3", "s-4", OD, &["1"]).node("gone", "s-4", OD, &[]);
    let mut world = world.with(pod("gone-0", "gone", "1", &picky));
    world.leaving = vec!["kwok://gone"];
    assert_eq!(world.single(), ["delete n1", "delete n3"]);
    assert_eq!(world.multi(), ["delete n1 n2"]);
}

#[test]
fn a_pool_that_is_broken_keeps_nobody() {
    let mut broken = halves().pool(
        "q",
        &requiring(&json!([{"key": "karpenter.sh/capacity-type",
        "operator": "In", "values": ["no-such-type"]}])),
    );
    assert_eq!(broken.single(), ["delete n1"]);
    broken.types.insert("q".into(), Arc::from([]));
    assert_eq!(broken.single(), ["delete n1"]);
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "a",
        "message": "broken", "lastTransitionTime": NOW}]}});
    assert_eq!(halves().pool("q", &unready).single(), ["delete n1"]);
}

#[test]
fn whatever_pods_ask_for_in_vain_is_told_of_each_node() {
    let term = |zone: &str| {
        json!({"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
        {"key": TYPE, "operator": "NotIn", "values": [format!("not-in-{zone}")]}]})
    };
    let affinity = |number: usize| {
        let terms = [term(&format!("zone-{number}")), term(&format!("other-{number}"))];
        let wish = json!([{"weight": 1, "preference": term(&format!("wish-{number}"))}]);
        json!({"spec": {"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
            "preferredDuringSchedulingIgnoredDuringExecution": wish,
        }}}})
    };
    let mut world = World::on_demand(sizes());
    for number in 0..40 {
        let name = format!("n{number:02}");
        world = world.node(&name, "s-4", OD, &[]).with(pod(&name, &name, "1", &affinity(number)));
    }
    let kept = world.kept();
    assert_eq!(kept.len(), 80);
    for (number, text) in kept.iter().step_by(2).enumerate() {
        let name = format!("n{number:02}");
        let start = format!("{name}: Not all pods would schedule, default/{name} => no instance type met ");
        assert!(text.starts_with(&start), "{text}");
        assert!(
            text.contains(&format!("other-{number}")) || text.contains(&format!("zone-{number}")),
            "{text}"
        );
    }
}
