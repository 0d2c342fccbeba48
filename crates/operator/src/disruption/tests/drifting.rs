//! What is decided about drifted nodes.

use ::cluster::instance_types::{InstanceType, Offering};
use api::provider::Provider;
use api::shared::{Operator, Requirement};
use runtime::Settings;
use units::Resources;

use super::decided::{by, by_settings, drifted, shown};
use super::*;
use crate::disruption::Method;
use crate::disruption::drift::Drift;
use crate::disruption::glance::{Look, glance};
use crate::disruption::scene::Scene;
use crate::provisioner::Refusals;
use crate::testing::{merge, state_of};

const FIRST: &str = "2026-01-01T00:10:00Z";
const LATER: &str = "2026-01-01T00:20:00Z";

fn pod(name: &str, node: &str, cpu: &str) -> Value {
    let containers = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
    pod_object(name, node, &json!({"spec": {"containers": containers}}))
}

/// Nodes by name, each drifted since a time and with pods that ask for some processor.
fn cluster(budget: &str, nodes: &[(&str, Option<&str>, &[&str])]) -> Vec<Value> {
    let budgets = json!({"spec": {"disruption": {"budgets": [{"nodes": budget}]}}});
    let mut objects = vec![pool_object("p", &budgets)];
    for (name, since, pods) in nodes {
        objects.extend(node_objects(name, "p", &json!({}), &since.map_or(json!({}), drifted)));
        objects
            .extend(pods.iter().enumerate().map(|(number, cpu)| pod(&format!("{name}-{number}"), name, cpu)));
    }
    objects
}

fn decided(objects: &[Value]) -> Vec<String> {
    shown(&by(&Drift, &state(objects), &types(), false).0)
}

#[test]
fn a_drifted_node_goes_if_its_pods_fit_elsewhere_and_is_replaced_otherwise() {
    let fits = cluster("100%", &[("n1", Some(FIRST), &["1"]), ("n2", None, &["1"])]);
    assert_eq!(decided(&fits), ["delete: [n1]"]);
    let (decision, _) = by(&Drift, &state(&fits), &types(), false);
    assert_eq!(&*decision.commands[0].destinations[0].origin.provider_id, "kwok://n2");
    let full = cluster("100%", &[("n1", Some(FIRST), &["3"]), ("n2", None, &["3"])]);
    assert_eq!(decided(&full), ["replace: [n1] -> [1 replacement]"]);
}

#[test]
fn a_node_on_its_way_out_counts_in_the_limits_of_its_pool_until_it_is_gone() {
    let full = |limit: &str, of_other: &Value| {
        let mut objects = cluster("100%", &[("n1", Some(FIRST), &["3"])]);
        merge(&mut objects[0], &json!({"spec": {"limits": {"nodes": limit}}}));
        objects.extend(node_objects("n2", "p", &json!({}), of_other));
        objects.push(pod("n2-0", "n2", "3"));
        objects
    };
    let leaving = json!({"metadata": {"deletionTimestamp": LATER}});
    assert_eq!(decided(&full("3", &json!({}))), ["replace: [n1] -> [1 replacement]"]);
    let text = "n1: Not all pods would schedule, default/n1-0 => node limits have been exhausted for nodepool (NodePool=p) ";
    assert_eq!(decided(&full("2", &leaving)), [text.to_owned(), format!("claim-{text}")]);
    // The pod of the other one needs a node, too.
    assert_eq!(decided(&full("4", &leaving)), ["replace: [n1] -> [1 replacement]"]);
}

#[test]
fn only_nodes_that_drifted_and_whose_pool_is_not_fixed_are_looked_at() {
    let mut not = drifted(FIRST);
    not["status"]["conditions"][3]["status"] = "False".into();
    let mut objects = cluster("100%", &[("n1", None, &[])]);
    objects.extend(node_objects("n2", "p", &json!({}), &not));
    objects.push(pool_object("fixed", &json!({"spec": {"replicas": 1}})));
    objects.extend(node_objects("n3", "fixed", &json!({}), &drifted(FIRST)));
    assert!(decided(&objects).is_empty());
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let allowed = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "false"}}});
    objects.extend(node_objects("n4", "p", &protected, &drifted(FIRST)));
    objects.extend(node_objects("n5", "p", &allowed, &drifted(FIRST)));
    assert_eq!(decided(&objects), ["delete: [n5]"]);
}

#[test]
fn empty_nodes_go_first_and_together_then_the_one_that_drifted_first() {
    let nodes: [(&str, Option<&str>, &[&str]); 4] = [
        ("n1", Some(LATER), &["3"]),
        ("n2", Some(FIRST), &["3"]),
        ("n3", Some(LATER), &[]),
        ("n4", Some(LATER), &[]),
    ];
    assert_eq!(decided(&cluster("100%", &nodes)), ["delete: [n3]", "delete: [n4]"]);
    assert_eq!(decided(&cluster("1", &nodes)), ["delete: [n3]"]);
    assert_eq!(decided(&cluster("100%", &nodes[..2])), ["replace: [n2] -> [1 replacement]"]);
    assert!(decided(&cluster("0", &nodes)).is_empty());
}

#[test]
fn empty_nodes_go_even_if_their_pool_never_consolidates() {
    let mut objects = cluster("100%", &[("n1", Some(FIRST), &[])]);
    merge(&mut objects[0], &json!({"spec": {"disruption": {"consolidateAfter": "Never"}}}));
    assert_eq!(decided(&objects), ["delete: [n1]"]);
}

/// Objects of a buffer that keeps room for so many pods of one processor.
fn buffer(replicas: u32) -> [Value; 2] {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"podTemplateRef": {"name": "t"}, "replicas": replicas});
    [
        json!({"kind": "PodTemplate", "metadata": {"name": "t", "namespace": "default"},
            "template": {"spec": {"containers": [container]}}}),
        json!({"kind": "CapacityBuffer", "metadata": {"name": "b", "namespace": "default", "uid": "uid-of-b"},
            "spec": spec}),
    ]
}

#[test]
fn a_node_that_keeps_room_for_a_buffer_does_not_count_as_empty() {
    let decided = |replicas: u32, gate: bool, nodes: &[(&str, Option<&str>, &[&str])]| {
        let mut settings = Settings::default();
        settings.gates.capacity_buffer = gate;
        let objects = [cluster("100%", nodes), buffer(replicas).to_vec()].concat();
        shown(&by_settings(&Drift, &state(&objects), &types(), settings).0)
    };
    let alone: [(&str, Option<&str>, &[&str]); 1] = [("n1", Some(FIRST), &[])];
    assert_eq!(decided(3, true, &alone), ["replace: [n1] -> [1 replacement]"]);
    assert_eq!(decided(0, true, &alone), ["delete: [n1]"]);
    assert_eq!(decided(3, false, &alone), ["delete: [n1]"]);
    // Where another node has room for it, nothing is launched.
    assert_eq!(decided(3, true, &[("n1", Some(FIRST), &[]), ("n2", None, &[])]), ["delete: [n1]"]);
    // But none that goes itself: n1 keeps the room, so that n2 may go; and n1 has its turn afterwards.
    let both: [(&str, Option<&str>, &[&str]); 2] = [("n1", Some(FIRST), &[]), ("n2", Some(LATER), &[])];
    assert_eq!(decided(3, true, &both), ["delete: [n2]"]);
}

#[test]
fn a_pool_whose_new_nodes_take_no_pods_keeps_its_own_and_others_have_their_turn() {
    let mut objects = cluster("100%", &[("n1", Some(FIRST), &["3"])]);
    objects.push(pool_object("q", &json!({})));
    objects.extend(node_objects("n2", "q", &json!({}), &drifted(LATER)));
    objects.push(pod("n2-0", "n2", "3"));
    for (position, pool) in [(3, "p"), (7, "q")] {
        merge(&mut objects[position], &json!({"spec": {"nodeSelector": {"karpenter.sh/nodepool": pool}}}));
    }
    let (state, list) = (state(&objects), Arc::from(kwok::built_in()));
    let types = [("p".into(), Arc::clone(&list)), ("q".into(), list)].into();
    let spoiled = Refusals::of_pool(state.node_pools.named("p").unwrap(), now());
    let scene = || Scene::new(&state, &types, &Arc::default(), &BTreeSet::new(), now());
    let decide = |scene: &Scene| {
        let none = BTreeSet::new();
        let look = Look {
            types: &types,
            taken: &none,
            relied_on: &none,
            leaving: &none,
            costs: Costs::default(),
            now: now(),
        };
        let mut view = glance(&state, [&Drift as &dyn Method], look).views.remove(0);
        Drift.decide(scene, view.candidates, &mut view.budgets)
    };
    assert_eq!(shown(&decide(&scene())), ["replace: [n1] -> [1 replacement]"]);
    let decision = decide(&scene().knowing(spoiled));
    let told = shown(&decision);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], "replace: [n2] -> [1 replacement]");
    assert!(told[1].starts_with("n1: Node \"spoiled\" of NodePool \"p\" was launched for pods"), "{told:?}");
    // That may be over at any time.
    assert!(!decision.nothing);
}

#[test]
fn a_node_that_cannot_be_replaced_says_so_and_the_next_one_has_its_turn() {
    let mut objects = cluster("100%", &[("n1", Some(FIRST), &["1"]), ("n2", Some(LATER), &["3500m"])]);
    merge(&mut objects[3], &json!({"spec": {"nodeSelector": {"no-such-label": "x"}}}));
    let shown = decided(&objects);
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert_eq!(shown[0], "replace: [n2] -> [1 replacement]");
    assert!(shown[1].starts_with("n1: Not all pods would schedule, default/n1-0 => "), "{shown:?}");
    assert!(shown[2].starts_with("claim-n1: Not all pods would schedule, "), "{shown:?}");
    // If there is no next one, there is no need to look again.
    let (decision, _) = by(&Drift, &state(&objects[..4]), &types(), false);
    assert!(decision.commands.is_empty() && decision.nothing);
}

#[test]
fn a_node_can_need_several_replacements() {
    let mut objects = cluster("100%", &[("n1", Some(FIRST), &[])]);
    for zone in ["a", "b", "c"] {
        let mut pod = pod(zone, "n1", "1");
        let selector = json!({"topology.kubernetes.io/zone": format!("test-zone-{zone}")});
        merge(&mut pod, &json!({"spec": {"nodeSelector": selector}}));
        objects.push(pod);
    }
    assert_eq!(decided(&objects), ["replace: [n1] -> [3 replacements]"]);
}

#[test]
fn what_cannot_be_evicted_needs_no_replacement() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let never = json!({
        "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "maxUnavailable": 0},
        "status": {"disruptionsAllowed": 0},
    });
    for (change, more) in [(&protected, None), (&json!({}), Some(&never))] {
        let mut kept = pod("a", "n1", "3");
        merge(&mut kept, change);
        let mut claim = drifted(FIRST);
        let objects = |claim: &Value| {
            let mut objects = cluster("100%", &[("n2", None, &["3"])]);
            objects.extend(node_objects("n1", "p", &json!({}), claim));
            objects.push(kept.clone());
            objects.extend(more.cloned());
            objects
        };
        assert!(decided(&objects(&claim)).is_empty());
        merge(&mut claim, &json!({"spec": {"terminationGracePeriod": "5m"}}));
        assert_eq!(decided(&objects(&claim)), ["delete: [n1]"]);
        // Where they could not be anywhere else afterwards, they keep their node.
        let mut bound = objects(&claim);
        let nowhere = json!({"topology.kubernetes.io/zone": "gone"});
        let kept = bound.iter_mut().find(|it| it["kind"] == "Pod" && it["metadata"]["name"] == "a").unwrap();
        kept["spec"]["nodeSelector"] = nowhere;
        assert!(decided(&bound)[0].starts_with("n1: Not all pods would schedule, default/a => "), "{change}");
    }
}

#[test]
fn a_budget_of_pods_that_are_not_ready_keeps_a_drifted_node() {
    // 16.28
    let sick = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let objects = |policy: Value| {
        let mut objects = cluster("100%", &[("n1", Some(FIRST), &["1"]), ("n2", None, &[])]);
        merge(&mut objects[3], &sick);
        let mut budget = super::budget("b", 0);
        budget["spec"]["unhealthyPodEvictionPolicy"] = policy;
        objects.push(budget);
        objects
    };
    let text = "Pdb prevents pod evictions (PodDisruptionBudget=[default/b])";
    for policy in [json!(null), json!("IfHealthyBudget")] {
        assert!(decided(&objects(policy.clone())).is_empty());
        let told = blocked(&state(&objects(policy)), Class::Eventual);
        assert_eq!(told, ["+n2".to_owned(), format!("n1: {text}"), format!("claim-n1: {text}")]);
    }
    assert_eq!(decided(&objects(json!("AlwaysAllow"))), ["delete: [n1]"]);
}

#[test]
fn a_protection_that_has_a_duration_ends_with_it_and_the_longest_counts() {
    let protected = |name: &str, time: &str| {
        let mut pod = pod(name, "n1", "1");
        let change = json!({
            "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": time}},
            "status": {"startTime": "2026-01-01T00:00:00Z"},
        });
        merge(&mut pod, &change);
        pod
    };
    for (times, goes) in [(["30m", "59m"], true), (["30m", "61m"], false), (["30m", "soon"], true)] {
        let mut objects = cluster("100%", &[("n1", Some(FIRST), &[]), ("n2", None, &[])]);
        objects.extend([protected("a", times[0]), protected("b", times[1])]);
        assert_eq!(decided(&objects).len(), usize::from(goes), "{times:?}");
    }
}

#[test]
fn so_many_nodes_go_as_budgets_allow() {
    let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    let nodes: Vec<_> = names.iter().map(|name| (name.as_str(), Some(FIRST), &[][..])).collect();
    let (decision, left) = by(&Drift, &state(&cluster("30%", &nodes)), &types(), false);
    assert_eq!((decision.commands.len(), left), (3, 0));
}

#[test]
fn every_pool_has_its_own_budget() {
    let types: Arc<[_]> = kwok::built_in().into();
    let mut objects = Vec::new();
    let pools: Vec<String> = (0..10).map(|number| format!("p{number}")).collect();
    for pool in &pools {
        objects.push(pool_object(pool, &json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}})));
        for node in 0..3 {
            objects.extend(node_objects(&format!("{pool}-{node}"), pool, &json!({}), &drifted(FIRST)));
        }
    }
    let types = pools.iter().map(|pool| (pool.as_str().into(), Arc::clone(&types))).collect();
    let (decision, left) = by(&Drift, &state(&objects), &types, false);
    let mut of = decision.commands.iter().map(|it| it.candidates[0].pool_name()).collect::<Vec<_>>();
    of.sort_unstable();
    assert_eq!((of, left), (pools.iter().map(String::as_str).collect(), 0));
}

#[test]
fn a_drifted_node_goes_although_it_could_be_consolidated() {
    let mut claim = drifted(FIRST);
    let quiet = json!({"type": "Consolidatable", "status": "True", "reason": "Consolidatable", "message": "",
        "lastTransitionTime": FIRST});
    claim["status"]["conditions"].as_array_mut().unwrap().push(quiet);
    let mut objects = cluster("100%", &[("n2", None, &["1"])]);
    objects.extend(node_objects("n1", "p", &json!({}), &claim));
    objects.push(pod("a", "n1", "1"));
    assert_eq!(decided(&objects), ["delete: [n1]"]);
}

/// A type that can only be had out of a reservation, and what else it can be had for.
fn reserved(available: bool, left: u32, more: &[(&str, f64)]) -> Types {
    let within = |key: &str, value: &str| Requirement {
        key: key.to_owned(),
        operator: Operator::In,
        values: vec![value.to_owned()],
        min_values: None,
    };
    let zone = within("topology.kubernetes.io/zone", "test-zone-a");
    let offer = |kind: &str, price: f64| Offering {
        requirements: vec![within("karpenter.sh/capacity-type", kind), zone.clone()],
        price,
        available: true,
        ..Offering::default()
    };
    let mut first = Offering { available, reservation_capacity: left, ..offer("reserved", 0.0) };
    first.requirements.push(within("karpenter.k8s.aws/capacity-reservation-id", "cr-1"));
    let amounts = [("cpu", "4"), ("memory", "8Gi"), ("pods", "100")];
    let kind = InstanceType {
        name: "m.large".to_owned(),
        requirements: vec![
            within("node.kubernetes.io/instance-type", "m.large"),
            within("kubernetes.io/arch", "amd64"),
            within("kubernetes.io/os", "linux"),
        ],
        offerings: std::iter::once(first)
            .chain(more.iter().map(|(kind, price)| offer(kind, *price)))
            .collect(),
        capacity: amounts
            .iter()
            .map(|(name, amount)| (*name, amount.parse().unwrap()))
            .collect::<Resources>(),
        ..InstanceType::default()
    };
    [("p".into(), Arc::from([kind]))].into()
}

/// A drifted node of a reservation, with pods that ask for some processor.
pub(super) fn reserved_node(name: &str, labels: &Value, pods: &[&str]) -> Vec<Value> {
    let class = json!({"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}}});
    let mut own = json!({"karpenter.sh/capacity-type": "reserved", "node.kubernetes.io/instance-type": "m.large",
        "karpenter.k8s.aws/capacity-reservation-id": "cr-1"});
    merge(&mut own, labels);
    let mut claim = drifted(FIRST);
    merge(&mut claim, &class);
    let mut objects = node_objects(name, "p", &json!({"metadata": {"labels": own}}), &claim).to_vec();
    objects.extend(pods.iter().enumerate().map(|(number, cpu)| pod(&format!("{name}-{number}"), name, cpu)));
    objects
}

pub(super) fn reserved_pool(change: &Value) -> Value {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"});
    let mut pool = pool_object("p", &json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}}));
    merge(&mut pool, change);
    pool
}

pub(super) fn full_reservation() -> Types {
    reserved(true, 0, &[])
}

/// As [`full_reservation`], and another type whose reservation has launches left.
pub(super) fn full_beside_another() -> Types {
    let mut other = reserved(true, 3, &[])["p"][0].clone();
    other.name = "x.large".to_owned();
    other.requirements[0].values = vec!["x.large".to_owned()];
    [("p".into(), full_reservation()["p"].iter().cloned().chain([other]).collect())].into()
}

fn with_name(mut object: Value, name: &str) -> Value {
    object["metadata"]["name"] = name.into();
    object
}

fn reserved_decision(types: &Types, labels: &Value, pods: &[&str], gate: bool) -> String {
    decision_of(types, &json!({}), reserved_node("n1", labels, pods), gate)
}

/// What is decided about nodes of a pool with changes, in a few words.
fn decision_of(types: &Types, of_pool: &Value, nodes: Vec<Value>, gate: bool) -> String {
    let mut pool = reserved_pool(&json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}));
    merge(&mut pool, of_pool);
    let objects = [vec![pool], nodes].concat();
    let (decision, _) = by(&Drift, &state_of(Provider::Aws, &objects), types, gate);
    let first = shown(&decision).into_iter().next().unwrap_or_default();
    first.split(" =>").next().unwrap_or_default().to_owned()
}

#[test]
fn a_node_that_holds_the_reservation_that_its_successor_needs_goes_first() {
    let blocked = "n1: Not all pods would schedule, default/n1-0";
    let none = json!({});
    let full = reserved(true, 0, &[]);
    assert_eq!(reserved_decision(&full, &none, &["1"], true), "terminate-first: [n1]");
    assert_eq!(reserved_decision(&full, &none, &["1"], false), blocked);
    // Where there is another way, it is taken.
    let replaced = "replace: [n1] -> [1 replacement]";
    assert_eq!(reserved_decision(&reserved(true, 0, &[("on-demand", 1.0)]), &none, &["1"], true), replaced);
    assert_eq!(reserved_decision(&reserved(true, 1, &[]), &none, &["1"], true), replaced);
    // So is a pool of less weight.
    let mut types = full.clone();
    types.insert("q".into(), Arc::clone(&reserved(true, 0, &[("on-demand", 1.0)])["p"]));
    let other = with_name(reserved_pool(&json!({"spec": {"weight": 1}})), "q");
    let mut objects = vec![reserved_pool(&json!({"spec": {"weight": 10}})), other];
    objects.extend(reserved_node("n1", &none, &["1"]));
    let (decision, _) = by(&Drift, &state_of(Provider::Aws, &objects), &types, true);
    assert_eq!(shown(&decision), [replaced]);
    assert_eq!(decision.commands[0].replacements[0].pool(), "q");
    // One place is not enough for more, and one that is not to be had is none.
    assert_eq!(reserved_decision(&full, &none, &["3", "3"], true), blocked);
    assert_eq!(reserved_decision(&reserved(false, 0, &[]), &none, &["1"], true), blocked);
    // A label alone is no reservation.
    let stale = json!({"karpenter.sh/capacity-type": "on-demand"});
    assert_eq!(reserved_decision(&full, &stale, &["1"], true), blocked);
}

#[test]
fn a_node_that_goes_first_brings_no_replacement_and_says_why() {
    let mut objects = vec![reserved_pool(&json!({}))];
    objects.extend(reserved_node("n1", &json!({}), &["1"]));
    let (decision, left) = by(&Drift, &state_of(Provider::Aws, &objects), &full_reservation(), true);
    let command = &decision.commands[0];
    assert!(command.replacements.is_empty());
    assert_eq!(command.kind, crate::disruption::command::Kind::TerminateFirst("no-reserved-capacity"));
    assert_eq!(left, 0);
}

#[test]
fn what_goes_first_leaves_its_share_of_the_limits_to_its_successor() {
    let limited = |limits: Value, gate: bool| {
        let node = reserved_node("n1", &json!({}), &["1"]);
        decision_of(&full_reservation(), &json!({"spec": {"limits": limits}}), node, gate)
    };
    let blocked = "n1: Not all pods would schedule, default/n1-0";
    for limits in [json!({"nodes": "1"}), json!({"cpu": "4"}), json!({"nodes": "1", "memory": "8Gi"})] {
        assert_eq!(limited(limits.clone(), true), "terminate-first: [n1]", "{limits}");
        assert_eq!(limited(limits.clone(), false), blocked, "{limits}");
    }
    // What is too much already stays too much.
    for limits in [json!({"nodes": "0"}), json!({"cpu": "3"})] {
        assert_eq!(limited(limits.clone(), true), blocked, "{limits}");
    }
}

#[test]
fn pods_that_object_can_have_the_reservation_of_their_node_after_it() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let decide = |pods: &[&str], gate: bool| {
        let mut node = reserved_node("n1", &json!({}), pods);
        merge(&mut node[1], &json!({"spec": {"terminationGracePeriod": "5m"}}));
        merge(&mut node[2], &protected);
        decision_of(&full_reservation(), &json!({}), node, gate)
    };
    let blocked = "n1: Not all pods would schedule, default/n1-0";
    assert_eq!(decide(&["1", "1"], true), "terminate-first: [n1]");
    assert_eq!(decide(&["1", "1"], false), blocked);
    // Alone, it needs nothing before its node goes.
    assert_eq!(decide(&["1"], true), "delete: [n1]");
    assert_eq!(decide(&["1"], false), blocked);
    assert_eq!(decide(&["3", "3"], true), blocked, "one place is not enough for both");
}
