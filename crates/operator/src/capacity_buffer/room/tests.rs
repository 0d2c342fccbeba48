//! Where a plan puts virtual pods, and what buffers say about it.

use api::provider::Provider;
use cluster::buffers::{Unresolved, rooms};
use cluster::instance_types::kwok;
use cluster::snapshot::{self, Options};
use cluster::state::State;
use engine::solve::solve;
use serde_json::{Value, json};

use super::*;
use crate::testing::{merge, node_objects, pod_object, pool_object, state};

fn pod_template(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({
        "kind": "PodTemplate", "metadata": {"name": name, "namespace": "default"},
        "template": {"spec": {"containers": [{"name": "c", "resources": resources}]}},
    })
}

fn buffer(name: &str, template: &str, replicas: u32) -> Value {
    json!({
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": "default", "uid": name, "generation": 4, "resourceVersion": "7"},
        "spec": {"podTemplateRef": {"name": template}, "replicas": replicas},
    })
}

fn waiting(name: &str, cpu: &str) -> Value {
    let mut pod = pod_object(name, "", &json!({}));
    let resources = json!({"requests": {"cpu": cpu}});
    merge(
        &mut pod,
        &json!({
            "spec": {"containers": [{"name": "c", "resources": resources}]},
            "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]},
        }),
    );
    pod
}

fn placed(state: &State) -> (Vec<Room>, Placement) {
    let (types, rooms) = (kwok::built_in(), rooms(state));
    let mut options = Options::new(Provider::Kwok, &types);
    options.rooms = &rooms;
    let built = snapshot::build(state, &options, Timestamp::UNIX_EPOCH);
    let plan = solve(&built.snapshot, &engine::options::Options::default());
    let placement = placement(&built, &plan);
    (rooms, placement)
}

/// A pool with one node of four cores, and more objects.
fn cluster(more: &[Value]) -> State {
    let [node, claim] = node_objects("n1", "p", &json!({}), &json!({}));
    let mut objects = vec![pool_object("p", &json!({})), node, claim];
    objects.extend_from_slice(more);
    state(&objects)
}

fn said(room: &Room, placed: &Placed) -> String {
    let (status, reason, message) = provisioning(room, placed);
    format!("{status} {reason}: {message}")
}

#[test]
fn virtual_pods_are_on_nodes_that_exist_on_new_ones_or_nowhere() {
    let state = cluster(&[
        pod_template("two", "2"),
        pod_template("huge", "1000"),
        buffer("a", "two", 3),
        buffer("b", "huge", 2),
        buffer("c", "two", 0),
    ]);
    let (rooms, placement) = placed(&state);
    let placed = |position: usize| placement.buffers.get(&position).cloned().unwrap_or_default();
    assert_eq!((placed(0).existing, placed(0).new, placed(0).why), (2, 1, None));
    assert_eq!((placed(1).existing, placed(1).new), (0, 0));
    assert!(placed(1).why.unwrap().contains("the pod asks for 1,000 CPU"));
    assert_eq!(placement.instances, [("kwok://n1".into(), 2)].into());
    assert_eq!(placement.failed, 2);
    assert_eq!(placement.on_new_nodes.len(), 1);
    assert!(placement.on_new_nodes[0].starts_with("default/capacity-buffer-a-"));
    let texts: Vec<String> =
        rooms.iter().enumerate().map(|(position, room)| said(room, &placed(position))).collect();
    let expected = [
        "False RequiresNewCapacity: 1/3 virtual pods required new capacity, 0 failed",
        "False RequiresNewCapacity: 0/2 virtual pods required new capacity, 2 failed",
        "False BufferEmpty: Buffer has zero desired replicas",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_buffer_that_fits_says_so() {
    let (rooms, placement) = placed(&cluster(&[pod_template("one", "1"), buffer("a", "one", 3)]));
    let text = "True FitsExistingCapacity: All 3 virtual pods fit on existing capacity";
    assert_eq!(said(&rooms[0], &placement.buffers[&0]), text);
    assert_eq!((placement.failed, placement.on_new_nodes.len()), (0, 0));
}

#[test]
fn buffers_share_a_node_and_are_counted_together_on_it() {
    let (_, placement) =
        placed(&cluster(&[pod_template("one", "1"), buffer("a", "one", 1), buffer("b", "one", 2)]));
    assert_eq!(placement.instances, [("kwok://n1".into(), 3)].into());
    assert_eq!((placement.buffers[&0].existing, placement.buffers[&1].existing), (1, 2));
}

#[test]
fn real_pods_of_the_same_size_are_placed_first() {
    let state = cluster(&[
        pod_template("two", "2"),
        buffer("a", "two", 2),
        waiting("zz-first", "2"),
        waiting("zz-second", "2"),
    ]);
    let (_, placement) = placed(&state);
    assert_eq!((placement.buffers[&0].existing, placement.buffers[&0].new), (0, 2));
    assert_eq!(placement.instances, BTreeMap::new());
}

#[test]
fn pods_that_run_leave_less_room() {
    let mut on_node = pod_object("a", "n1", &json!({}));
    on_node["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "3"}});
    let (_, placement) = placed(&cluster(&[pod_template("two", "2"), buffer("a", "two", 1), on_node]));
    assert_eq!(placement.buffers[&0].new, 1);
}

#[test]
fn a_buffer_that_is_not_resolved_is_not_ready() {
    let (mut rooms, _) = placed(&cluster(&[buffer("a", "missing", 3)]));
    let text = "False NotReadyForProvisioning: Buffer is not ReadyForProvisioning";
    assert_eq!(said(&rooms[0], &Placed::default()), text);
    rooms[0].pods = Err(Unresolved::NoReference);
    assert_eq!(said(&rooms[0], &Placed::default()), text);
}

#[test]
fn the_condition_is_about_the_buffer_that_was_planned_for() {
    let (rooms, placement) = placed(&cluster(&[pod_template("one", "1"), buffer("a", "one", 3)]));
    let mut current = (*rooms[0].buffer).clone();
    current.metadata.generation = Some(5);
    let after = decide(&current, &rooms[0], &placement.buffers[&0], Timestamp::UNIX_EPOCH);
    let condition = &after.status.as_ref().unwrap().conditions[0];
    assert_eq!((condition.observed_generation, after.metadata.generation), (4, Some(5)));
    // The same again is no change.
    let again = decide(&after, &rooms[0], &placement.buffers[&0], Timestamp::MAX);
    assert_eq!(status::conditions(&after, &again), None);
    assert!(status::conditions(&current, &after).is_some());
}
