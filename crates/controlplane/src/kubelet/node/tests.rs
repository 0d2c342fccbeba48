//! Decisions about the status of nodes.

use k8s_openapi::api::core::v1::NodeCondition;

use super::*;
use crate::node::ready_status;
use crate::testing::{World, at};
use crate::time::time;

fn step(world: &mut World, options: &KubeletOptions, now: i64) -> Option<Timestamp> {
    let outcome = decide(&world.cache, &Key::cluster("n1"), options, at(now));
    world.perform(&outcome, at(now));
    outcome.again
}

fn ready(world: &World) -> Option<&str> {
    ready_status(world.cache.nodes.get(&Key::cluster("n1")).unwrap())
}

#[test]
fn a_node_becomes_ready_after_its_delay_and_reports_every_five_minutes() {
    let options = KubeletOptions { ready_after: Duration::from_secs(30), ..KubeletOptions::default() };
    let mut world =
        World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {gpu: '1'}}}"]);
    assert_eq!(step(&mut world, &options, 0), Some(at(30)));
    assert_eq!(ready(&world), None);
    step(&mut world, &options, 30);
    assert_eq!(ready(&world), Some("True"));
    assert_eq!(step(&mut world, &options, 31), Some(at(330)));
    let status = world.cache.nodes.get(&Key::cluster("n1")).unwrap().status.clone().unwrap();
    assert_eq!(status.capacity, status.allocatable);
    assert!(status.capacity.unwrap().contains_key("gpu"), "what the node came with stays");
    step(&mut world, &options, 330);
    let beat = ready_heartbeat(world.cache.nodes.get(&Key::cluster("n1")).unwrap()).unwrap().0;
    assert_eq!(beat, at(330));
}

#[test]
fn nodes_fail_on_request_and_recover() {
    let node = |fail: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n1, annotations: {{simulate.karpenter.sh/fail: {fail}}}}}}}"
        )
    };
    let options = KubeletOptions::default();
    let mut world = World::of(&[&node("never-ready")]);
    step(&mut world, &options, 10);
    assert_eq!(ready(&world), Some("False"));
    let mut patch = Outcome::default();
    let meta = world.cache.nodes.get(&Key::cluster("n1")).unwrap().metadata.clone();
    patch.patch(Kind::Node, &meta, json!({"metadata": {"annotations": null}}));
    world.perform(&patch, at(20));
    step(&mut world, &options, 20);
    assert_eq!(ready(&world), Some("True"));
    let mut world = World::of(&[&node("silent")]);
    assert_eq!(step(&mut world, &options, 10), None);
    assert_eq!(ready(&world), None);
}

#[test]
fn only_annotated_nodes_are_taken_if_so_asked() {
    let options =
        KubeletOptions { nodes: crate::options::NodeSelection::Annotated, ..KubeletOptions::default() };
    let mut world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}}"]);
    step(&mut world, &options, 10);
    assert_eq!(ready(&world), None);
    world.apply(
        "{apiVersion: v1, kind: Node, metadata: {name: n1, annotations: {kwok.x-k8s.io/node: fake}}}",
        at(10),
    );
    step(&mut world, &options, 20);
    assert_eq!(ready(&world), Some("True"));
}

#[test]
fn a_node_whose_condition_somebody_else_sets_keeps_it() {
    let mut world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1, labels: \
         {kwok.x-k8s.io/stage: unhealthy}}, status: {conditions: [{type: Ready, status: Unknown}]}}"]);
    step(&mut world, &KubeletOptions::default(), 10);
    assert_eq!(ready(&world), Some("Unknown"));
}

#[test]
fn a_node_keeps_its_boot_what_it_has_and_the_conditions_of_others() {
    let mut world = World::of(&[
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {phase: Pending, \
         capacity: {cpu: '1'}, allocatable: {cpu: 1900m, pods: '32'}, nodeInfo: {architecture: '', bootID: b, \
         containerRuntimeVersion: '', kernelVersion: '', kubeProxyVersion: '', kubeletVersion: '', machineID: '', \
         operatingSystem: '', osImage: '', systemUUID: ''}, conditions: [{type: Broken, status: 'True'}]}}",
    ]);
    step(&mut world, &KubeletOptions::default(), 10);
    step(&mut world, &KubeletOptions::default(), 400);
    let node = world.cache.nodes.get(&Key::cluster("n1")).unwrap();
    let status = node.status.clone().unwrap();
    assert_eq!(status.node_info.unwrap().boot_id, "b");
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let amounts = |list: Option<BTreeMap<String, Quantity>>| -> Vec<String> {
        list.unwrap_or_default().into_iter().map(|(name, amount)| format!("{name}={}", amount.0)).collect()
    };
    assert_eq!(amounts(status.capacity), ["cpu=1"]);
    assert_eq!(amounts(status.allocatable), ["cpu=1900m", "pods=32"]);
    assert_eq!(condition(node, "Broken").unwrap().status, "True");
    assert_eq!(ready(&world), Some("True"));
}

#[test]
fn conditions_and_boots_of_others_survive_heartbeats() {
    let options = KubeletOptions::default();
    let mut world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}}"]);
    step(&mut world, &options, 10);
    let node = |world: &World| world.cache.nodes.get(&Key::cluster("n1")).unwrap().clone();
    let known = node(&world);
    let mut conditions = known.status.as_ref().unwrap().conditions.clone().unwrap();
    for name in ["KWOKUnhealthy", "KWOKRebootRequired"] {
        conditions.push(NodeCondition {
            type_: name.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(time(at(20))),
            ..NodeCondition::default()
        });
    }
    let mut patch = Outcome::default();
    let status = json!({"conditions": conditions, "nodeInfo": {"bootID": "kwok-op"}});
    patch.patch_status(Kind::Node, &known.metadata, json!({"status": status}));
    world.perform(&patch, at(20));
    for now in [330, 700, 1100] {
        step(&mut world, &options, now);
        let status = node(&world).status.clone().unwrap();
        for name in ["KWOKUnhealthy", "KWOKRebootRequired"] {
            let condition = condition(&node(&world), name).cloned().unwrap();
            assert_eq!((&*condition.status, condition.last_transition_time), ("True", Some(time(at(20)))));
        }
        assert_eq!(status.node_info.unwrap().boot_id, "kwok-op");
        assert_eq!(ready_heartbeat(&node(&world)).unwrap().0, at(now));
    }
}

#[test]
fn a_node_whose_state_somebody_else_tells_is_left_alone() {
    let options = KubeletOptions::default();
    let pinned = "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kwok.x-k8s.io/stage: unhealthy}}, \
        status: {conditions: [{type: Ready, status: 'False'}]}}";
    let mut world = World::of(&[pinned]);
    step(&mut world, &options, 1000);
    assert_eq!(ready(&world), Some("False"));
}

fn conditions(world: &World) -> Vec<String> {
    let node = world.cache.nodes.get(&Key::cluster("n1")).unwrap();
    let all = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
    all.iter().map(|one| format!("{}={}", one.type_, one.status)).collect()
}

fn annotate(world: &mut World, change: &serde_json::Value, now: i64) {
    let meta = world.cache.nodes.get(&Key::cluster("n1")).unwrap().metadata.clone();
    let mut patch = Outcome::default();
    patch.patch(Kind::Node, &meta, json!({"metadata": {"annotations": change}}));
    world.perform(&patch, at(now));
    step(world, &KubeletOptions::default(), now);
}

#[test]
fn a_node_reports_the_conditions_that_it_is_asked_for_while_it_is() {
    let mut world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}}"]);
    step(&mut world, &KubeletOptions::default(), 10);
    let healthy = ["MemoryPressure=False", "DiskPressure=False", "PIDPressure=False", "Ready=True"];
    assert_eq!(conditions(&world), healthy);
    annotate(&mut world, &json!({simulate::CONDITIONS: "KWOKUnhealthy=True, MemoryPressure"}), 20);
    assert_eq!(
        conditions(&world),
        [
            "MemoryPressure=True",
            "DiskPressure=False",
            "PIDPressure=False",
            "Ready=True",
            "KWOKUnhealthy=True"
        ]
    );
    annotate(&mut world, &json!({simulate::CONDITIONS: null}), 30);
    assert_eq!(conditions(&world), healthy);
}

#[test]
fn a_reboot_cures_what_was_asked_for() {
    let mut world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}}"]);
    let options = KubeletOptions::default();
    step(&mut world, &options, 10);
    annotate(&mut world, &json!({simulate::CONDITIONS: "KWOKRebootRequired=True"}), 20);
    assert!(conditions(&world).contains(&"KWOKRebootRequired=True".to_owned()));
    let meta = world.cache.nodes.get(&Key::cluster("n1")).unwrap().metadata.clone();
    let mut boot = Outcome::default();
    boot.patch_status(Kind::Node, &meta, json!({"status": {"nodeInfo": {"bootID": "another"}}}));
    world.perform(&boot, at(30));
    step(&mut world, &options, 30);
    step(&mut world, &options, 30);
    assert!(!conditions(&world).contains(&"KWOKRebootRequired=True".to_owned()));
    let node = world.cache.nodes.get(&Key::cluster("n1")).unwrap();
    assert_eq!(crate::object::annotation(&node.metadata, simulate::CONDITIONS), None);
}

#[test]
fn a_request_that_is_not_understood_is_told_on_the_node() {
    let mut world = World::of(&["{apiVersion: v1, kind: Node, metadata: {name: n1}}"]);
    step(&mut world, &KubeletOptions::default(), 10);
    annotate(&mut world, &json!({simulate::CONDITIONS: "Broken=yes", simulate::FAIL: "notready"}), 20);
    let node = world.cache.nodes.get(&Key::cluster("n1")).unwrap();
    let message = crate::node::condition(node, "SimulationInvalid").unwrap().message.clone().unwrap();
    assert_eq!(
        message,
        "simulate.karpenter.sh/conditions: \"Broken=yes\" is not a type with a status, as KWOKUnhealthy=True, False \
         or Unknown; simulate.karpenter.sh/fail: \"notready\" is none of never-ready, not-ready and silent"
    );
    assert_eq!(ready(&world), Some("True"));
}
