//! 16.13: what pods ask for and what else goes on is respected.

use super::*;

const ZONE: &str = "topology.kubernetes.io/zone";

fn in_zone(zone: &str) -> Value {
    json!({"metadata": {"labels": {ZONE: zone}}})
}

#[test]
fn a_replacement_comes_where_pods_are_spread_to() {
    let spread = json!({"spec": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}]}});
    let mut world = World::on_demand(sizes());
    for (name, zone, type_) in [("n1", "test-zone-a", "s-1"), ("n2", "test-zone-b", "s-8")] {
        world = world.node_of("p", name, (type_, OD), &[], &in_zone(zone), &in_zone(zone));
        world = world.with(pod(&format!("{name}-0"), name, "1", &spread));
    }
    let decision = world.decide(Consolidation::Single);
    assert_eq!(done(&decision), ["replace n2 -> on-demand s-1 s-2 s-4"]);
    let requirements = &decision.commands[0].replacements[0].new.claim.spec.requirements;
    let zones = requirements.iter().find(|it| it.key == ZONE).unwrap();
    assert_eq!(zones.values, ["test-zone-b"]);
}

/// Nodes of the cheapest type with much room, each with a pod that has something against the others or not.
fn apart(affinity: &Value) -> World {
    let world = World::on_demand(vec![usual("s-4", 4, 4.0)]);
    ["n1", "n2", "n3"].into_iter().fold(world, |world, name| {
        let change = json!({"spec": {"affinity": affinity}});
        world.node("x", "s-4", OD, &[]).node(name, "s-4", OD, &[]).with(pod(
            &format!("{name}-0"),
            name,
            "1",
            &change,
        ))
    })
}

#[test]
fn pods_that_keep_apart_stay_apart() {
    let term =
        json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}});
    let required = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let mut world = apart(&required);
    // The empty node would have room for one; others are of no use.
    world.objects.retain(|it| it["metadata"]["name"] != "x" && it["metadata"]["name"] != "claim-x");
    assert_eq!(world.single(), [""; 0]);
    assert_eq!(world.multi(), [""; 0]);
    world = apart(&json!({}));
    assert_eq!(world.multi(), ["delete n1 n2 n3"]);
}

#[test]
fn wishes_of_pods_keep_nodes_unless_they_are_not_read() {
    let term =
        json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}});
    let wished = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": term}]}});
    let mut world = apart(&wished);
    world.objects.retain(|it| it["metadata"]["name"] != "x" && it["metadata"]["name"] != "claim-x");
    assert_eq!(world.single(), [""; 0]);
    world.settings.preference_policy = runtime::settings::PreferencePolicy::Ignore;
    assert_eq!(world.single(), ["delete n1", "delete n3"], "both pods are on the other one");
    // A large node may be replaced by a small one that is not what its pod wishes for.
    let wish = json!({"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": TYPE, "operator": "In", "values": ["s-8"]}]}}]}}}});
    let mut world = World::on_demand(sizes()).node("n1", "s-8", OD, &[]).with(pod("n1-0", "n1", "2", &wish));
    assert_eq!(world.single(), [""; 0]);
    world.settings.preference_policy = runtime::settings::PreferencePolicy::Ignore;
    assert_eq!(world.single(), ["replace n1 -> on-demand s-2 s-4"]);
}

#[test]
fn nothing_is_launched_for_pods_that_wait_anyway() {
    let world = World::on_demand(sizes()).node("n1", "s-8", OD, &["2", "6"]).node("n2", "s-8", OD, &["2"]);
    let world = world.with(waiting_pod("w", "7"));
    let decision = world.decide(Consolidation::Single);
    assert_eq!(done(&decision), ["replace n2 -> on-demand s-2 s-4"]);
    assert_eq!(decision.commands[0].replacements[0].new.pods.len(), 1);
}

#[test]
fn a_node_that_was_launched_for_pods_of_another_is_left_alone_until_they_are_there() {
    let mut world = World::on_demand(sizes()).node("n1", "s-8", OD, &["1"]);
    assert_eq!(world.single().len(), 1);
    world.nominated.push("kwok://n1");
    assert_eq!(world.single(), [""; 0]);
    assert!(world.view(Consolidation::Single).candidates.is_empty());
}

/// A type of so many processors that can be had out of a reservation, and otherwise for its usual price.
fn reserved(name: &str, cpu: u32, price: f64, left: u32) -> InstanceType {
    let mut kind = usual(name, cpu, price);
    let mut offering =
        super::kind(name, cpu, &[("reserved", "test-zone-a", price / 1000.0)]).offerings.remove(0);
    let mut id = offering.requirements[0].clone();
    id.key = "karpenter.k8s.aws/capacity-reservation-id".to_owned();
    id.values = vec![format!("cr-{name}")];
    offering.requirements.push(id);
    offering.reservation_capacity = left;
    kind.offerings.push(offering);
    kind
}

fn on_aws(types: Vec<InstanceType>, name: &str, kind: &str, used: &str) -> World {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let pool = json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}});
    let mut world = World { provider: Provider::Aws, ..World::new(types, &pool) };
    let mut node = json!({});
    if kind == "reserved" {
        let id = format!("cr-{name}");
        node = json!({"metadata": {"labels": {"karpenter.k8s.aws/capacity-reservation-id": id}}});
    }
    world = world.node_of("p", "n1", (name, kind), &[used], &node, &json!({"spec": {"nodeClassRef": class}}));
    world
}

#[test]
fn what_is_reserved_costs_least() {
    let types = |left| vec![reserved("m-2", 2, 2.0, left), reserved("m-4", 4, 4.0, left)];
    assert_eq!(on_aws(types(3), "m-4", "reserved", "2").single(), ["replace n1 -> reserved m-2"]);
    for kind in [OD, SPOT] {
        let found = on_aws(types(3), "m-4", kind, "4").spot_to_spot().single();
        assert_eq!(found, ["replace n1 -> reserved m-4"], "{kind}");
    }
    // What is used up is no bargain.
    assert_eq!(on_aws(types(0), "m-4", "reserved", "2").single(), [""; 0]);
}

/// A change of a pool: what is reserved, or on demand.
fn reserved_or_not() -> Value {
    requiring(
        &json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved", "on-demand"]}]),
    )
}

#[test]
fn a_place_in_a_reservation_is_a_bargain_for_one_node_only() {
    // Two nodes that are full, of a type of which one more can be had out of a reservation.
    let mut world = on_aws(vec![reserved("m-4", 4, 4.0, 1)], "m-4", OD, "4");
    let class = world.objects[0]["spec"]["template"]["spec"]["nodeClassRef"].clone();
    merge(&mut world.objects[0], &reserved_or_not());
    let claim = json!({"spec": {"nodeClassRef": class}});
    let world = world.node_of("p", "n2", ("m-4", OD), &["4"], &json!({}), &claim);
    assert_eq!(world.single(), ["replace n1 -> reserved m-4"]);
    // A pod that waits anyway takes it.
    assert_eq!(world.with(waiting_pod("w", "4")).single(), [""; 0]);
}

/// A large node with a pod, in a cluster that keeps room for pods of one processor.
fn with_room(replicas: u32) -> World {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let mut world = World::on_demand(sizes()).node("n1", "s-8", OD, &["1"]);
    world.settings.gates.capacity_buffer = true;
    world
        .with(json!({"kind": "PodTemplate", "metadata": {"name": "t", "namespace": "default"},
            "template": {"spec": {"containers": [container]}}}))
        .with(json!({"kind": "CapacityBuffer", "metadata": {"name": "b", "namespace": "default", "uid": "uid-of-b"},
            "spec": {"podTemplateRef": {"name": "t"}, "replicas": replicas}}))
}

#[test]
fn a_replacement_has_room_for_what_a_buffer_keeps() {
    let decision = with_room(3).decide(Consolidation::Single);
    assert_eq!(done(&decision), ["replace n1 -> on-demand s-4"]);
    // There is nothing cheaper that has as much room.
    assert_eq!(with_room(5).single(), [""; 0]);
    assert_eq!(with_room(0).single(), ["replace n1 -> on-demand s-1 s-2 s-4"]);
}
