//! What would be disrupted now.

use cluster::instance_types::kwok;
use serde_json::{Value, json};

use super::*;
use crate::testing::{node_objects, pod_object, pool_object, state};

const NOW: &str = "2026-01-01T01:00:00Z";

/// A pool `p` whose nodes may all go, and nodes of it with the processor that their pods ask for.
fn cluster(nodes: &[(&str, &[&str])], more: &[Value]) -> State {
    let disruption = json!({"consolidateAfter": "30s", "budgets": [{"nodes": "100%"}]});
    let mut objects = vec![pool_object("p", &json!({"spec": {"disruption": disruption}}))];
    for (node, pods) in nodes {
        objects.extend(node_objects(node, "p", &json!({}), &json!({})));
        for (number, cpu) in pods.iter().enumerate() {
            let containers = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
            let spec = json!({"spec": {"containers": containers}});
            objects.push(pod_object(&format!("{node}-{number}"), node, &spec));
        }
    }
    objects.extend_from_slice(more);
    state(&objects)
}

fn look(state: &State) -> Preview {
    look_with(state, Settings::default())
}

fn look_with(state: &State, settings: Settings) -> Preview {
    let types: Types = [("p".into(), Arc::from(kwok::built_in()))].into();
    preview(state, &types, &Arc::new(settings), NOW.parse().unwrap())
}

#[test]
fn nodes_that_can_go_are_named_with_what_is_saved() {
    let found = look(&cluster(&[("n1", &[]), ("n2", &["1"]), ("n3", &["1"])], &[]));
    let moves: Vec<_> = found.moves.iter().map(|it| (it.reason, it.decision, it.nodes.clone())).collect();
    assert_eq!(moves[0], ("Empty", "delete", vec!["n1".to_owned()]));
    assert_eq!(moves[1].0, "Underutilized");
    assert!(found.moves.iter().all(|it| it.savings > 0.0));
    let saved: f64 = found.moves.iter().map(|it| it.savings).sum();
    assert!(saved < found.price);
}

#[test]
fn what_keeps_a_node_is_told() {
    let mut protected = pod_object("kept", "n1", &json!({}));
    protected["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    let found = look(&cluster(&[("n1", &[])], &[protected]));
    assert!(found.moves.is_empty());
    assert_eq!(found.kept["n1"], "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/kept)");
}

#[test]
fn it_is_told_what_happens_without_a_node() {
    let state = cluster(&[("n1", &["1"]), ("n2", &["1"])], &[]);
    let types: Types = [("p".into(), Arc::from(kwok::built_in()))].into();
    let (settings, now) = (Arc::new(Settings::default()), NOW.parse().unwrap());
    let found = without_nodes(&state, &types, &settings, &["n1".to_owned()], now).unwrap();
    assert_eq!(found.moved, [("n2".to_owned(), vec!["default/n1-0".to_owned()])].into());
    assert!(found.launches.is_empty() && found.unplaced.is_empty());
    let unknown = without_nodes(&state, &types, &settings, &["n9".to_owned()], now).unwrap_err();
    assert_eq!(unknown, ["n9"]);
}

#[test]
fn a_node_that_keeps_room_for_a_buffer_stays_if_the_gate_is_on() {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let buffer = [
        json!({"kind": "PodTemplate", "metadata": {"name": "t", "namespace": "default"},
            "template": {"spec": {"containers": [container]}}}),
        json!({"kind": "CapacityBuffer", "metadata": {"name": "b", "namespace": "default", "uid": "uid-of-b"},
            "spec": {"podTemplateRef": {"name": "t"}, "replicas": 3}}),
    ];
    let state = cluster(&[("n1", &[]), ("n2", &[])], &buffer);
    let nodes = |found: &Preview| found.moves.iter().flat_map(|it| it.nodes.clone()).collect::<Vec<_>>();
    let mut settings = Settings::default();
    assert_eq!(nodes(&look_with(&state, settings.clone())), ["n1", "n2"]);
    settings.gates.capacity_buffer = true;
    let found = look_with(&state, settings);
    assert_eq!(nodes(&found), ["n2"]);
    assert_eq!(found.kept["n1"], "Node \"n1\" has buffer pods");
}

#[test]
fn a_node_that_a_pod_waits_for_is_not_empty() {
    let mut waiting = pod_object("w", "", &json!({}));
    waiting["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let found = look(&cluster(&[("n1", &[])], &[waiting]));
    assert!(found.moves.is_empty());
    assert_eq!(found.kept["n1"], "Node is nominated for a pending pod");
}
