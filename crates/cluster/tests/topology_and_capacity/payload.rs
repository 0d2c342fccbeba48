//! What is written into NodeClaims.

use serde_json::{Value, json};

use crate::objects::{ARCH, CPUS, INSTANCE_TYPE, OS, Pod, ZONE, need};
use crate::world::{World, machine, one_of, with_resource};

fn one_pod(world: &mut World, pod: Pod) -> crate::world::Round {
    world.pod(pod.name("web"));
    let round = world.plan();
    round.expect_all_placed().expect_nodes(1);
    round
}

/// 27.9-01
#[test]
fn a_claim_names_its_pool_and_every_type_that_would_do() {
    let round = one_pod(&mut World::new(), Pod::new());
    assert_eq!(round.values(0, INSTANCE_TYPE), ["arm", "large", "medium", "small"]);
    assert_eq!(round.values(0, "karpenter.sh/nodepool"), ["default"]);
}

/// 27.9-01
#[test]
fn a_claim_keeps_the_requirements_that_its_pool_invented() {
    let mut world = World::new();
    let own = json!([need("size", "In", &["big", "huge"]), need("tier", "Exists", &[])]);
    world.pool_requires("default", own);
    let round = one_pod(&mut world, Pod::new());
    assert_eq!(round.values(0, "size"), ["big", "huge"]);
    assert_eq!(round.requirement(0, "tier")[0]["operator"], "Exists");
}

/// 27.9-01
#[test]
fn only_types_of_the_wanted_kind_are_named() {
    let mut world = World::new();
    let mut windows = machine("windows", 8, 8);
    windows.requirements.retain(|requirement| requirement.key != OS);
    windows.requirements.push(one_of(OS, &["windows"]));
    world.types.push(windows);
    world.types.push(with_resource(machine("gpu", 8, 8), "example.com/gpu", "2"));
    let check = |pool: Value, pod: Pod, expected: &[&str]| {
        let mut world = world.clone();
        world.pool_requires("default", pool);
        assert_eq!(one_pod(&mut world, pod).values(0, INSTANCE_TYPE), expected);
    };
    check(json!([need(ARCH, "In", &["arm64"])]), Pod::new(), &["arm"]);
    check(json!([need(OS, "In", &["windows"])]), Pod::new(), &["windows"]);
    check(json!([]), Pod::new().on(ARCH, "arm64"), &["arm"]);
    check(json!([]), Pod::new().on(OS, "windows"), &["windows"]);
    check(json!([]), Pod::new().requests(json!({"example.com/gpu": "1"})), &["gpu"]);
    check(json!([]), Pod::new().cpu("5"), &["arm", "gpu", "large", "windows"]);
}

/// 27.9-02
#[test]
fn a_claim_is_owned_by_its_pool_and_refers_to_its_node_class() {
    let claim = &one_pod(&mut World::new(), Pod::new()).claims[0];
    let owner = json!([{
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": "uid-default",
        "blockOwnerDeletion": true,
    }]);
    assert_eq!(claim["metadata"]["ownerReferences"], owner);
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    assert_eq!(claim["spec"]["nodeClassRef"], class);
}

/// 27.9-02
#[test]
fn a_claim_asks_for_what_its_pods_ask_for_and_for_their_number() {
    let mut world = World::new();
    world.types.push(with_resource(machine("gpu", 8, 8), "example.com/gpu", "2"));
    let pod = Pod::new().requests(json!({"cpu": "1", "memory": "1Mi", "example.com/gpu": "1"}));
    let claim = &one_pod(&mut world, pod).claims[0];
    let expected = json!({"cpu": "1", "memory": "1Mi", "example.com/gpu": "1", "pods": "1"});
    assert_eq!(claim["spec"]["resources"]["requests"], expected);
}

/// 27.9-02
#[test]
fn what_a_daemon_needs_is_added_once_for_all_pods_of_a_node() {
    let mut world = World::new();
    let container = json!({"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Mi"}}});
    world.add(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }));
    let pod = Pod::new().requests(json!({"cpu": "1", "memory": "1Mi"}));
    world.pods(2, "web", &pod);
    let round = world.plan();
    round.expect_all_placed().expect_nodes(1);
    let expected = json!({"cpu": "3", "memory": "3Mi", "pods": "3"});
    assert_eq!(round.claims[0]["spec"]["resources"]["requests"], expected);
    assert!(!round.types[0].contains(&"small".to_owned()), "{:?}", round.types[0]);
}

/// 27.9-03
#[test]
fn a_claim_has_the_labels_of_its_template_and_a_value_for_each_label_of_the_pool() {
    let mut world = World::new();
    let template = json!({"template": {"metadata": {"labels": {"team": "infra"}}, "spec": {"requirements": [
        need("chosen", "In", &["only"]),
        need("not-zero", "NotIn", &["0", "1"]),
        need("more", "Gt", &["4"]),
        need("less", "Lt", &["3"]),
        need("any", "Exists", &[]),
        need("none", "DoesNotExist", &[]),
    ]}}});
    world.change("NodePool", "default", json!({"spec": template}));
    let round = one_pod(&mut world, Pod::new());
    let labels = &round.claims[0]["metadata"]["labels"];
    let number = |key: &str| labels[key].as_str().expect("a label").parse::<u64>().expect("a number");
    assert_eq!(labels["team"], "infra");
    assert_eq!(labels["chosen"], "only");
    assert!(number("not-zero") > 1);
    assert!(number("more") > 4);
    assert!(number("less") < 3);
    assert!(labels["any"].is_string());
    assert_eq!(labels["none"], Value::Null);
}

/// 27.9-03
#[test]
fn labels_that_the_cloud_sets_are_not_written_as_labels() {
    let mut world = World::new();
    world.pool_requires("default", json!([need(CPUS, "Gt", &["1"]), need(ZONE, "In", &["zone-1"])]));
    let round = one_pod(&mut world, Pod::new());
    let labels = &round.claims[0]["metadata"]["labels"];
    for key in [CPUS, ZONE, INSTANCE_TYPE, ARCH, OS] {
        assert_eq!(labels[key], Value::Null, "{key}");
    }
    assert_eq!(round.values(0, ZONE), ["zone-1"]);
}

/// 27.9-03
#[test]
fn labels_of_kubernetes_domains_are_allowed() {
    let mut world = World::new();
    let keys = ["node-restriction.kubernetes.io/team", "node.kubernetes.io/team", "kops.k8s.io/team"];
    let requirements: Vec<Value> = keys.iter().map(|key| need(key, "In", &["a"])).collect();
    world.pool_requires("default", json!(requirements));
    let round = one_pod(&mut world, keys.iter().fold(Pod::new(), |pod, key| pod.on(key, "a")));
    for key in keys {
        assert_eq!(round.claims[0]["metadata"]["labels"][key], "a", "{key}");
    }
}

/// 27.9-03
#[test]
fn annotations_of_the_template_are_copied() {
    let mut world = World::new();
    let template = json!({"template": {"metadata": {"annotations": {"example.com/why": "because"}}}});
    world.change("NodePool", "default", json!({"spec": template}));
    let round = one_pod(&mut world, Pod::new());
    assert_eq!(round.claims[0]["metadata"]["annotations"]["example.com/why"], "because");
}
