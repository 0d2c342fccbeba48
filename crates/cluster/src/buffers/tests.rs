//! What buffers keep room for, and how plans see it.

use api::provider::Provider;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::eligibility::is_provisionable;
use crate::instance_types::kwok;
use crate::snapshot::{Built, Options, Origin, build};
use crate::state::Seen;

fn container(cpu: &str) -> Value {
    json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}})
}

fn template(cpu: &str) -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container(cpu)]}})
}

fn pod_template(name: &str, template: &Value) -> (Kind, Value) {
    let metadata = json!({"name": name, "namespace": "default", "generation": 3});
    (Kind::PodTemplate, json!({"metadata": metadata, "template": template}))
}

fn workload(kind: Kind, name: &str, replicas: &Value) -> (Kind, Value) {
    let spec = json!({"replicas": replicas, "template": template("1")});
    (kind, json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}))
}

fn buffer(name: &str, spec: &Value) -> (Kind, Value) {
    let metadata = json!({"name": name, "namespace": "default", "uid": format!("uid-of-{name}")});
    (Kind::CapacityBuffer, json!({"metadata": metadata, "spec": spec}))
}

fn state(objects: &[(Kind, Value)]) -> State {
    let mut state = State::awaiting(Provider::Kwok, Kind::ALL);
    for (kind, object) in objects {
        state.observe(Seen::Applied(kind.decode(&object.to_string()).unwrap()));
    }
    state
}

fn of_template(name: &str) -> Value {
    json!({"podTemplateRef": {"name": name}})
}

fn of_workload(group: &str, kind: &str, name: &str) -> Value {
    json!({"scalableRef": {"apiGroup": group, "kind": kind, "name": name}})
}

fn with(mut spec: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

/// How many pods a buffer with this spec keeps room for, or why it keeps none.
fn resolved(objects: &[(Kind, Value)], spec: &Value) -> Result<u32, Unresolved> {
    let state = state(&[objects, &[buffer("b", spec)]].concat());
    let buffer = state.capacity_buffers.values().next().unwrap();
    resolve(&state, buffer).map(|resolved| resolved.replicas)
}

fn workloads(replicas: &Value) -> [(Kind, Value); 3] {
    [Kind::Deployment, Kind::StatefulSet, Kind::ReplicaSet].map(|kind| workload(kind, "w", replicas))
}

#[test]
fn a_buffer_is_resolved_by_a_pod_template() {
    let state = state(&[
        pod_template("t", &template("2")),
        buffer("b", &with(of_template("t"), &json!({"replicas": 3}))),
    ]);
    let buffer = state.capacity_buffers.values().next().unwrap();
    let resolved = resolve(&state, buffer).unwrap();
    assert_eq!((resolved.replicas, resolved.pod_template_generation), (3, Some(3)));
    assert_eq!(resolved.template.metadata.labels.text("app"), "a");
    assert_eq!(resolved.template.spec.containers.len(), 1);
}

#[test]
fn a_buffer_is_resolved_by_a_workload_of_each_kind() {
    for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
        for group in ["", "apps"] {
            let spec = with(of_workload(group, kind, "w"), &json!({"percentage": 50}));
            assert_eq!(resolved(&workloads(&json!(5)), &spec), Ok(3), "{group}/{kind}");
        }
    }
}

#[test]
fn a_workload_that_does_not_say_has_one_pod() {
    for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
        let spec = with(of_workload("", kind, "w"), &json!({"percentage": 300}));
        assert_eq!(resolved(&workloads(&Value::Null), &spec), Ok(3), "{kind}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let unresolved = |spec: &Value| {
        let unresolved = resolved(&[], spec).unwrap_err();
        (unresolved.reason(), unresolved.to_string())
    };
    let of_template = with(of_template("t"), &json!({"replicas": 1}));
    let expected = ("PodTemplateNotFound", "PodTemplate \"t\" not found".to_owned());
    assert_eq!(unresolved(&of_template), expected);
    for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
        let expected = ("ScalableRefNotFound", format!("{kind}.apps \"w\" not found"));
        assert_eq!(unresolved(&of_workload("", kind, "w")), expected);
    }
    let expected = "Neither podTemplateRef nor scalableRef is set";
    assert_eq!(unresolved(&json!({})), ("ResolutionFailed", expected.to_owned()));
}

#[test]
fn what_is_in_another_namespace_is_not_there() {
    let (kind, mut elsewhere) = pod_template("t", &template("1"));
    elsewhere["metadata"]["namespace"] = "other".into();
    let spec = with(of_template("t"), &json!({"replicas": 1}));
    assert!(resolved(&[(kind, elsewhere)], &spec).is_err());
}

#[test]
fn what_has_no_pods_that_we_know_is_refused() {
    for (group, kind) in
        [("batch", "Job"), ("", "DaemonSet"), ("argoproj.io", "Deployment"), ("apps", "deployment")]
    {
        let unresolved = resolved(&workloads(&json!(5)), &of_workload(group, kind, "w")).unwrap_err();
        assert_eq!(unresolved.reason(), "ResolutionFailed");
        let text = format!("unsupported scalableRef (apiGroup={group}, kind={kind}); expected Deployment, ");
        assert!(unresolved.to_string().starts_with(&text), "{unresolved}");
    }
}

#[test]
fn what_cannot_be_read_is_not_called_absent() {
    let mut state = state(&[buffer("b", &with(of_template("t"), &json!({"replicas": 1})))]);
    state.observe(Seen::Unreadable(Kind::PodTemplate, Key::new("default", "t"), "odd".into()));
    let unresolved = resolve(&state, state.capacity_buffers.values().next().unwrap()).unwrap_err();
    assert_eq!(unresolved.reason(), "ResolutionFailed");
    assert_eq!(unresolved.to_string(), "PodTemplate \"t\" cannot be read: odd");
}

#[test]
fn without_buffers_nobody_keeps_the_templates_of_sets() {
    let mut state = State::awaiting(Provider::Kwok, &[]);
    for (kind, object) in workloads(&json!(1)) {
        state.observe(Seen::Applied(kind.decode(&object.to_string()).unwrap()));
    }
    let key = Key::new("default", "w");
    assert!(state.replica_sets.get(&key).unwrap().spec.template.is_none());
    assert!(state.stateful_sets.get(&key).unwrap().spec.template.is_none());
}

/// How many pods of one core and 1Gi a buffer keeps room for, with a Deployment of ten.
#[track_caller]
fn check(asked: &Value, expected: u32) {
    let spec = with(of_workload("", "Deployment", "w"), asked);
    assert_eq!(resolved(&workloads(&json!(10)), &spec), Ok(expected), "{asked}");
}

#[test]
fn the_number_of_pods_is_what_is_asked_for_at_most_what_limits_allow() {
    check(&json!({"replicas": 4}), 4);
    check(&json!({"replicas": 4, "limits": {"cpu": "3"}}), 3);
    check(&json!({"replicas": 4, "limits": {"cpu": "30"}}), 4);
    check(&json!({"limits": {"cpu": "7500m"}}), 7);
    check(&json!({"percentage": 25}), 3);
    check(&json!({"replicas": 5, "percentage": 20}), 5);
    check(&json!({"replicas": 1, "percentage": 40}), 4);
    check(&json!({"replicas": 9, "percentage": 40, "limits": {"cpu": "6"}}), 6);
    check(&json!({"percentage": 1}), 1);
    check(&json!({}), 0);
    check(&json!({"replicas": 0}), 0);
}

#[test]
fn a_percentage_is_rounded_up() {
    let rows = [
        (10, 0, 0),
        (10, 1, 1),
        (10, 10, 1),
        (10, 11, 2),
        (10, 100, 10),
        (10, 250, 25),
        (3, 50, 2),
        (1, 1, 1),
    ];
    for (pods, percent, expected) in rows {
        assert_eq!(share(pods, percent), expected, "{percent} % of {pods}");
    }
    assert_eq!((share(0, 50), share(-1, 50), share(5, -1)), (0, 0, 0));
    assert_eq!(share(i32::MAX, i32::MAX), 46_116_860_141_324_207);
}

#[test]
fn a_percentage_of_nothing_is_nothing() {
    let spec = |more| with(of_workload("", "Deployment", "w"), &more);
    let none = workloads(&json!(0));
    assert_eq!(resolved(&none, &spec(json!({"percentage": 50}))), Ok(0));
    assert_eq!(resolved(&none, &spec(json!({"percentage": 50, "replicas": 2}))), Ok(2));
    // A workload that is scaled down does not cost as much as the limits allow.
    assert_eq!(resolved(&none, &spec(json!({"percentage": 50, "limits": {"cpu": "100"}}))), Ok(0));
}

#[test]
fn a_percentage_means_nothing_for_a_pod_template() {
    let templates = [pod_template("t", &template("1"))];
    let spec = with(of_template("t"), &json!({"percentage": 50, "limits": {"cpu": "2"}}));
    assert_eq!(resolved(&templates, &spec), Ok(2));
    let spec = with(of_template("t"), &json!({"percentage": 50, "replicas": 1}));
    assert_eq!(resolved(&templates, &spec), Ok(1));
}

fn quantities(list: &Value) -> ResourceList {
    serde_json::from_value(list.clone()).unwrap()
}

#[test]
fn limits_count_whole_pods_of_the_scarcest_resource() {
    let rows = [
        (json!({"cpu": "10"}), json!({"cpu": "2"}), Some(5)),
        (json!({"cpu": "11"}), json!({"cpu": "2"}), Some(5)),
        (json!({"cpu": "1"}), json!({"cpu": "300m"}), Some(3)),
        (json!({"cpu": "100m"}), json!({"cpu": "200m"}), Some(0)),
        (json!({"memory": "10Gi"}), json!({"memory": "3Gi"}), Some(3)),
        (json!({"cpu": "10", "memory": "4Gi"}), json!({"cpu": "1", "memory": "1Gi"}), Some(4)),
        (json!({"cpu": "10", "nvidia.com/gpu": "4"}), json!({"cpu": "1"}), Some(10)),
        (json!({"nvidia.com/gpu": "4"}), json!({"cpu": "1"}), None),
        (json!({"cpu": "10"}), json!({"cpu": "0"}), None),
        (json!({"cpu": "0"}), json!({"cpu": "1"}), Some(0)),
        (json!({}), json!({"cpu": "1"}), None),
        (json!({"cpu": "-1"}), json!({"cpu": "1"}), Some(0)),
    ];
    for (limits, requests, expected) in rows {
        let asked: Resources =
            quantities(&requests).iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
        assert_eq!(allowed(&quantities(&limits), &asked), expected, "{limits} {requests}");
    }
}

#[test]
fn limits_are_held_against_all_that_a_pod_asks_for() {
    let sidecar = json!({"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}});
    let init = json!({"name": "i", "resources": {"requests": {"cpu": "6"}}});
    let rows = [
        (json!({"containers": [container("1")]}), 12),
        (json!({"containers": [container("1"), container("2")]}), 4),
        (json!({"containers": [container("2")], "initContainers": [sidecar]}), 4),
        (json!({"containers": [container("2")], "initContainers": [init]}), 2),
        (json!({"containers": [container("2")], "overhead": {"cpu": "1"}}), 4),
        (json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}]}), 4),
        (json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}), 3),
        (json!({"containers": [{"name": "c"}]}), 0),
        (json!({"containers": []}), 0),
    ];
    for (spec, expected) in rows {
        let templates = [pod_template("t", &json!({"spec": spec}))];
        let asked = with(of_template("t"), &json!({"limits": {"cpu": "12"}}));
        assert_eq!(resolved(&templates, &asked), Ok(expected), "{spec}");
    }
}

#[test]
fn a_limit_of_pods_is_so_many_pods() {
    let asking =
        |more: &Value| resolved(&[pod_template("t", &template("1"))], &with(of_template("t"), more)).unwrap();
    assert_eq!(asking(&json!({"replicas": 5, "limits": {"pods": "3"}})), 3);
    assert_eq!(asking(&json!({"limits": {"pods": "3"}})), 3);
    assert_eq!(asking(&json!({"limits": {"pods": "3", "cpu": "2"}})), 2);
}

#[test]
fn more_room_than_anybody_has_is_refused() {
    for asked in [json!({"replicas": i32::MAX}), json!({"limits": {"cpu": "200k"}})] {
        let spec = with(of_workload("", "Deployment", "w"), &asked);
        let unresolved = resolved(&workloads(&json!(1)), &spec).unwrap_err();
        assert_eq!(unresolved.reason(), "ResolutionFailed");
        assert!(unresolved.to_string().ends_with("cannot be kept, only for 100000"), "{unresolved}");
    }
}

#[test]
fn where_all_buffers_ask_for_too_much_the_smaller_ones_keep_their_room() {
    let asking =
        |name: &str, replicas: u32| buffer(name, &with(of_template("t"), &json!({"replicas": replicas})));
    let all = [
        pod_template("t", &template("1")),
        asking("a-mistake", 99_999),
        asking("b", 3),
        asking("c", 60_000),
        asking("d", 39_997),
    ];
    let rooms = rooms(&state(&all));
    let kept: Vec<u32> = rooms.iter().map(Room::replicas).collect();
    assert_eq!(kept, [0, 3, 60_000, 39_997]);
    let why = rooms[0].pods.as_ref().unwrap_err().to_string();
    assert_eq!(
        why,
        "room for 99999 pods cannot be kept: the smaller buffers keep room for 100000, and all together for 100000 \
         at most"
    );
}

#[test]
fn virtual_pods_are_numbered_and_the_same_every_time() {
    let state = state(&[
        pod_template("t", &template("1")),
        buffer("b", &with(of_template("t"), &json!({"replicas": 2}))),
    ]);
    for _ in 0..2 {
        let rooms = rooms(&state);
        assert_eq!((rooms.len(), rooms[0].replicas()), (1, 2));
        assert_eq!(
            (rooms[0].pod_name(1), rooms[0].pod_uid(2)),
            ("capacity-buffer-b-1".into(), "uid-of-b-2".into())
        );
    }
    let room = &rooms(&state)[0];
    let pod = &room.pods.as_ref().unwrap().pod;
    assert_eq!((&*pod.metadata.namespace, pod.metadata.labels.text("app")), ("default", "a"));
    let annotations: Vec<(&str, &str)> = pod.metadata.annotations.iter().map(|(k, v)| (k, &**v)).collect();
    let expected = [
        ("karpenter.sh/capacity-buffer-fake-pod", "true"),
        ("karpenter.sh/capacity-buffer-name", "b"),
        ("karpenter.sh/capacity-buffer-namespace", "default"),
    ];
    assert_eq!(annotations, expected);
    assert_eq!(pod.spec.priority, Some(-2_147_483_648));
    assert!(is_provisionable(pod));
}

#[test]
fn virtual_pods_need_no_volumes_and_choose_no_node() {
    let spec = json!({
        "nodeName": "n", "nodeSelector": {"a": "b"}, "containers": [container("1")],
        "volumes": [
            {"name": "claimed", "persistentVolumeClaim": {"claimName": "v"}},
            {"name": "made", "ephemeral": {}},
            {"name": "empty", "emptyDir": {}},
        ],
        "tolerations": [{"operator": "Exists"}],
    });
    let state = state(&[
        pod_template("t", &json!({"spec": spec})),
        buffer("b", &with(of_template("t"), &json!({"replicas": 1}))),
    ]);
    let rooms = rooms(&state);
    let pod = &rooms[0].pods.as_ref().unwrap().pod;
    assert!(pod.spec.volumes.is_empty() && pod.spec.node_name.is_empty());
    assert_eq!((pod.spec.node_selector.text("a"), pod.spec.tolerations.len()), ("b", 1));
    // The template itself is as it was.
    let template = state.pod_templates.values().next().unwrap();
    assert_eq!(template.template.spec.volumes.len(), 2);
}

#[test]
fn only_buffers_that_are_ready_and_ask_for_something_keep_room() {
    let (kind, mut leaving) = buffer("leaving", &with(of_template("t"), &json!({"replicas": 2})));
    leaving["metadata"]["deletionTimestamp"] = "2026-01-05T09:00:00Z".into();
    let state = state(&[
        pod_template("t", &template("1")),
        buffer("ready", &with(of_template("t"), &json!({"replicas": 2}))),
        buffer("zero", &with(of_template("t"), &json!({"replicas": 0}))),
        buffer("limits-of-nothing", &with(of_template("t"), &json!({"limits": {"nvidia.com/gpu": "1"}}))),
        buffer("missing", &with(of_template("other"), &json!({"replicas": 2}))),
        buffer("no-reference", &json!({"replicas": 2})),
        (kind, leaving),
    ]);
    let rooms = rooms(&state);
    let kept: Vec<(&str, u32)> =
        rooms.iter().map(|room| (room.buffer.metadata.name.as_deref().unwrap(), room.replicas())).collect();
    let expected = [("limits-of-nothing", 0), ("missing", 0), ("no-reference", 0), ("ready", 2), ("zero", 0)];
    assert_eq!(kept, expected);
    assert!(rooms[1].pods.is_err() && rooms[2].pods.is_err() && rooms[4].pods.is_ok());
}

#[test]
fn room_follows_what_buffers_and_templates_become() {
    let mut state = state(&[
        pod_template("t", &template("1")),
        buffer("a", &with(of_template("t"), &json!({"replicas": 1}))),
        buffer("b", &with(of_template("t"), &json!({"replicas": 2}))),
    ]);
    let replicas = |state: &State| rooms(state).iter().map(Room::replicas).collect::<Vec<_>>();
    assert_eq!(replicas(&state), [1, 2]);
    let apply = |state: &mut State, (kind, object): (Kind, Value)| {
        state.observe(Seen::Applied(kind.decode(&object.to_string()).unwrap()));
    };
    apply(&mut state, buffer("a", &with(of_template("t"), &json!({"replicas": 5}))));
    assert_eq!(replicas(&state), [5, 2]);
    apply(&mut state, pod_template("t", &template("7")));
    let cpu = |room: &Room| requests::of_pod(&room.pods.as_ref().unwrap().pod).amount("cpu").value();
    assert_eq!(rooms(&state).iter().map(cpu).collect::<Vec<_>>(), [7, 7]);
    state.gone(Kind::CapacityBuffer, &Key::new("default", "a"), None);
    assert_eq!(replicas(&state), [2]);
    state.gone(Kind::PodTemplate, &Key::new("default", "t"), None);
    assert_eq!(replicas(&state), [0]);
}

fn built(state: &State) -> Built {
    let types = kwok::built_in();
    let rooms = rooms(state);
    let mut options = Options::new(Provider::Kwok, &types[..1]);
    options.rooms = &rooms;
    build(state, &options, Timestamp::UNIX_EPOCH)
}

#[test]
fn a_snapshot_has_virtual_pods_after_all_others() {
    let pod = json!({
        "metadata": {"name": "real", "namespace": "default", "uid": "z", "creationTimestamp": "2026-01-05T09:00:00Z",
            "labels": {"app": "a"}},
        "spec": {"containers": [container("1")]},
        "status": {"conditions": [{"type": "PodScheduled", "reason": "Unschedulable"}]},
    });
    let built = built(&state(&[
        pod_template("t", &template("1")),
        buffer("b", &with(of_template("t"), &json!({"replicas": 2}))),
        (Kind::Pod, pod),
    ]));
    let pods: Vec<(&str, Origin)> =
        built.snapshot.pods.iter().map(|pod| &*pod.name).zip(built.pods.iter().copied()).collect();
    let expected = [
        ("default/real", Origin::Waiting),
        ("default/capacity-buffer-b-1", Origin::Buffer(0)),
        ("default/capacity-buffer-b-2", Origin::Buffer(0)),
    ];
    assert_eq!(pods, expected);
    let [real, first, second] = &built.snapshot.pods[..] else { panic!("three pods") };
    // Nothing tells them apart but that real pods come first.
    assert_eq!((real.class, first.class), (first.class, second.class));
    assert!(real.created < first.created && first.created == second.created && first.uid < second.uid);
}

#[test]
fn a_template_that_makes_no_sense_spoils_no_other_buffer() {
    let expressions = json!([{"key": "a", "operator": "Nonsense", "values": []}]);
    let terms = json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    let built = built(&state(&[
        pod_template("bad", &json!({"spec": {"containers": [container("1")], "affinity": affinity}})),
        pod_template("good", &template("1")),
        buffer("bad", &with(of_template("bad"), &json!({"replicas": 1}))),
        buffer("good", &with(of_template("good"), &json!({"replicas": 1}))),
    ]));
    assert_eq!(built.pods, [Origin::Buffer(1)]);
    let ignored: Vec<String> = built.ignored.iter().map(ToString::to_string).collect();
    assert_eq!(ignored.len(), 1);
    assert!(ignored[0].starts_with("CapacityBuffer default/bad: "), "{}", ignored[0]);
}

#[test]
fn virtual_pods_are_placed_whatever_their_template_asks_of_volumes_and_labels() {
    let spec = json!({
        "containers": [container("1")], "nodeSelector": {"karpenter.sh/forbidden": "x"},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}],
    });
    let built = built(&state(&[
        pod_template("t", &json!({"spec": spec})),
        buffer("b", &with(of_template("t"), &json!({"replicas": 1}))),
    ]));
    assert_eq!((built.pods, built.ignored), (vec![Origin::Buffer(0)], vec![]));
}
