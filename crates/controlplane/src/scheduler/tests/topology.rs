//! Spread constraints, pod affinity and anti-affinity.

use serde_json::{Value, json};

use super::support::{World, merge, parse};

fn zone(name: &str) -> Value {
    json!({"metadata": {"labels": {"zone": name}}})
}

fn web(patch: Value) -> Value {
    let mut pod = json!({"metadata": {"labels": {"app": "web"}}});
    merge(&mut pod, &patch);
    pod
}

/// Two nodes in zone `x`, one in `y`, one without a zone.
fn zones() -> World {
    let mut world = World::default();
    world.node("x1", zone("x")).node("x2", zone("x")).node("y1", zone("y")).node("none", json!({}));
    world
}

fn spread(patch: Value) -> Value {
    let mut constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}});
    merge(&mut constraint, &patch);
    web(json!({"spec": {"topologySpreadConstraints": [constraint]}}))
}

#[test]
fn a_spread_constraint_keeps_domains_within_the_skew() {
    let mut world = zones();
    world.pod("pod", spread(json!({})));
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
    world.placed("one", "x1", web(json!({})));
    assert_eq!(world.feasible("pod"), ["y1"]);
    world.pod("pod", spread(json!({"maxSkew": 2})));
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
    world.placed("one", "x1", web(json!({"metadata": {"labels": {"app": "db"}}})));
    world.pod("pod", spread(json!({})));
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
}

#[test]
fn pods_that_are_leaving_or_in_other_namespaces_do_not_count_for_a_spread() {
    let mut world = zones();
    world.pod("pod", spread(json!({})));
    world.placed("one", "x1", web(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})));
    let other = json!({"metadata": {"name": "two", "namespace": "other", "labels": {"app": "web"}},
        "spec": {"nodeName": "x1", "containers": []}});
    world.scheduler.observe_pod(&("other".to_owned(), "two".to_owned()), Some(parse(other)));
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
}

#[test]
fn too_few_domains_count_as_if_an_empty_one_were_there() {
    let mut world = zones();
    world.placed("one", "x1", web(json!({}))).placed("two", "y1", web(json!({})));
    world.pod("pod", spread(json!({"minDomains": 2})));
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
    world.pod("pod", spread(json!({"minDomains": 3})));
    assert_eq!(world.feasible("pod"), [""; 0]);
}

#[test]
fn nodes_that_a_pod_cannot_use_count_only_if_the_policies_say_so() {
    let mut world = zones();
    world.node(
        "z1",
        json!({"metadata": {"labels": {"zone": "z", "disk": "hdd"}},
        "spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}),
    );
    world.placed("one", "x1", web(json!({}))).placed("two", "y1", web(json!({})));
    // The closed zone is empty and holds the others down until it is left out.
    world.pod("pod", spread(json!({})));
    assert_eq!(world.feasible("pod"), [""; 0]);
    world.pod("pod", spread(json!({"nodeTaintsPolicy": "Honor"})));
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);

    let mut choosy = spread(json!({}));
    choosy["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}]}}});
    world.pod("pod", choosy.clone());
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
    choosy["spec"]["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = json!("Ignore");
    world.pod("pod", choosy);
    assert_eq!(world.feasible("pod"), [""; 0]);
}

#[test]
fn match_label_keys_count_only_pods_with_the_same_value() {
    let mut world = zones();
    world.placed("one", "x1", web(json!({"metadata": {"labels": {"revision": "1"}}})));
    let mut pod = spread(json!({"matchLabelKeys": ["revision"]}));
    pod["metadata"]["labels"]["revision"] = json!("2");
    world.pod("pod", pod.clone());
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
    pod["metadata"]["labels"]["revision"] = json!("1");
    world.pod("pod", pod);
    assert_eq!(world.feasible("pod"), ["y1"]);
}

#[test]
fn a_spread_names_nodes_without_the_label_apart() {
    let mut world = zones();
    world
        .node("y1", json!({"metadata": {"labels": {"zone": "y"}}, "status": {"allocatable": {"pods": "0"}}}));
    world.placed("one", "x1", web(json!({}))).pod("pod", spread(json!({})));
    assert_eq!(
        world.refusal(),
        "0/4 nodes are available: 1 Too many pods, \
         1 node(s) didn't match pod topology spread constraints (missing required label), \
         2 node(s) didn't match pod topology spread constraints."
    );
}

fn near(kind: &str, term: Value) -> Value {
    let mut whole = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}});
    merge(&mut whole, &term);
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [whole]}}}})
}

#[test]
fn affinity_wants_the_domain_of_a_matching_pod() {
    let mut world = zones();
    world.placed("one", "x1", web(json!({}))).pod("pod", near("podAffinity", json!({})));
    assert_eq!(world.feasible("pod"), ["x1", "x2"]);
    world.pod("pod", near("podAffinity", json!({"topologyKey": "kubernetes.io/hostname"})));
    assert_eq!(world.feasible("pod"), ["x1"]);
    world.delete("one");
    assert_eq!(world.refusal(), "0/4 nodes are available: 4 node(s) didn't match pod affinity rules.");
}

#[test]
fn the_first_pod_that_wants_its_own_kind_near_goes_anywhere_with_the_label() {
    let mut world = zones();
    world.pod("pod", web(near("podAffinity", json!({}))));
    assert_eq!(world.feasible("pod"), ["x1", "x2", "y1"]);
    world.placed("one", "y1", web(json!({})));
    assert_eq!(world.feasible("pod"), ["y1"]);
}

#[test]
fn anti_affinity_holds_in_both_directions() {
    let mut world = zones();
    world.placed("one", "x1", web(json!({}))).pod("pod", near("podAntiAffinity", json!({})));
    assert_eq!(world.feasible("pod"), ["none", "y1"]);
    world.placed("one", "x1", near("podAntiAffinity", json!({}))).pod("pod", web(json!({})));
    assert_eq!(world.feasible("pod"), ["none", "y1"]);
    world.pod("pod", json!({}));
    assert_eq!(world.feasible("pod"), ["none", "x1", "x2", "y1"]);
}

#[test]
fn anti_affinity_is_reported_by_whose_it_is() {
    let mut world = World::default();
    world
        .node("x1", zone("x"))
        .placed("one", "x1", web(json!({})))
        .pod("pod", near("podAntiAffinity", json!({})));
    assert_eq!(world.refusal(), "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.");
    let mut world = World::default();
    world
        .node("x1", zone("x"))
        .placed("one", "x1", near("podAntiAffinity", json!({})))
        .pod("pod", web(json!({})));
    assert_eq!(
        world.refusal(),
        "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."
    );
}

#[test]
fn terms_look_into_the_namespaces_they_name_or_select() {
    let mut world = zones();
    for (name, team) in [("default", "none"), ("other", "a")] {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
        world.scheduler.observe_namespace(name, Some(parse(namespace)));
    }
    let other = json!({"metadata": {"name": "one", "namespace": "other", "labels": {"app": "web"}},
        "spec": {"nodeName": "x1", "containers": []}});
    world.scheduler.observe_pod(&("other".to_owned(), "one".to_owned()), Some(parse(other)));
    let mut feasible = |term: Value| world.pod("pod", near("podAffinity", term)).feasible("pod");
    assert_eq!(feasible(json!({})), [""; 0]);
    assert_eq!(feasible(json!({"namespaces": ["other"]})), ["x1", "x2"]);
    assert_eq!(feasible(json!({"namespaceSelector": {}})), ["x1", "x2"]);
    assert_eq!(feasible(json!({"namespaceSelector": {"matchLabels": {"team": "a"}}})), ["x1", "x2"]);
    assert_eq!(feasible(json!({"namespaceSelector": {"matchLabels": {"team": "b"}}})), [""; 0]);
}

#[test]
fn label_keys_of_a_term_ask_for_the_same_or_another_value() {
    let mut world = zones();
    world.placed("one", "x1", web(json!({"metadata": {"labels": {"revision": "1"}}})));
    world.placed("two", "y1", web(json!({"metadata": {"labels": {"revision": "2"}}})));
    let mut feasible = |keys: &str| {
        let mut pod = near("podAffinity", json!({keys: ["revision"]}));
        merge(&mut pod, &json!({"metadata": {"labels": {"revision": "1"}}}));
        world.pod("pod", pod).feasible("pod")
    };
    assert_eq!(feasible("matchLabelKeys"), ["x1", "x2"]);
    assert_eq!(feasible("mismatchLabelKeys"), ["y1"]);
}
