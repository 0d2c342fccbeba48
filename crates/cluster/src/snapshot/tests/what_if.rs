//! Snapshots from the state: the same as from files, with marks, removed nodes and types by pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::instance_types::InstanceType;
use crate::state::{Kind, Seen, State};

fn state(objects: &[(Kind, Value)]) -> State {
    let mut state = State::awaiting(Provider::Kwok, &[]);
    for (kind, value) in objects {
        state.observe(Seen::Applied(kind.decode(&value.to_string()).unwrap()));
    }
    state
}

fn node_pool(name: &str) -> (Kind, Value) {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let spec =
        json!({"template": {"spec": {"requirements": [], "nodeClassRef": class}}, "limits": {"cpu": "10"}});
    (Kind::NodePool, json!({"metadata": {"name": name}, "spec": spec}))
}

fn claim(name: &str) -> (Kind, Value) {
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    let metadata = json!({"name": name, "labels": {"karpenter.sh/nodepool": "p"}});
    let status = json!({
        "providerID": format!("kwok://{name}"), "capacity": {"cpu": "4"}, "allocatable": {"cpu": "4", "pods": "9"},
    });
    let value = json!({
        "metadata": metadata, "spec": {"requirements": [], "nodeClassRef": class}, "status": status,
    });
    (Kind::NodeClaim, value)
}

fn node(name: &str) -> (Kind, Value) {
    let labels = json!({
        "karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
    });
    let status = json!({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4", "pods": "9"}});
    let spec = json!({"providerID": format!("kwok://{name}")});
    (Kind::Node, json!({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}))
}

fn bound(name: &str, node: &str, more: &Value) -> (Kind, Value) {
    let mut metadata = json!({"name": name, "namespace": "default", "uid": name});
    for (key, value) in more.as_object().unwrap() {
        metadata[key] = value.clone();
    }
    let resources = json!({"requests": {"cpu": "1"}});
    let spec = json!({"nodeName": node, "containers": [{"name": "c", "resources": resources}]});
    (Kind::Pod, json!({"metadata": metadata, "spec": spec}))
}

fn waiting(name: &str) -> (Kind, Value) {
    let (kind, mut value) = bound(name, "", &json!({}));
    value["status"]["conditions"] = json!([{"type": "PodScheduled", "reason": "Unschedulable"}]);
    (kind, value)
}

fn protected() -> Value {
    json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}})
}

/// Two nodes with a pod each that can move and one that cannot, and a pod that waits.
fn two_nodes() -> State {
    state(&[
        node_pool("p"),
        claim("a"),
        node("a"),
        claim("b"),
        node("b"),
        bound("on-a", "a", &json!({})),
        bound("on-b", "b", &json!({})),
        bound("stays-on-a", "a", &protected()),
        waiting("waits"),
    ])
}

fn build_with(state: &State, change: impl FnOnce(&mut Options<'_>)) -> Built {
    let types = kwok::built_in();
    let mut options = Options::new(Provider::Kwok, &types[..1]);
    change(&mut options);
    build(state, &options, Timestamp::UNIX_EPOCH)
}

fn to_place(built: &Built) -> Vec<(&str, Origin)> {
    let names = built.snapshot.pods.iter().map(|pod| &*pod.name);
    names.zip(built.pods.iter().copied()).collect()
}

fn open(built: &Built) -> Vec<&str> {
    built.snapshot.nodes.iter().filter(|node| node.open).map(|node| &*node.name).collect()
}

#[test]
fn the_state_gives_nodes_pods_and_where_they_come_from() {
    let built = build_with(&two_nodes(), |_| {});
    assert_eq!(to_place(&built), [("default/waits", Origin::Waiting)]);
    assert_eq!(open(&built), ["a", "b"]);
    let origin =
        NodeOrigin { provider_id: "kwok://a".into(), node: Some("a".into()), claim: Some("a".into()) };
    assert_eq!(built.nodes[0], origin);
    assert_eq!(built.ignored, []);
    let remaining = built.snapshot.pools[0].limits[0].remaining;
    assert_eq!(remaining, 2_000_000_000, "two nodes of four processors");
}

#[test]
fn pods_of_marked_nodes_move_and_the_nodes_do_not_count_for_limits() {
    let mut state = two_nodes();
    state.mark_for_deletion(["kwok://a"]);
    let built = build_with(&state, |_| {});
    assert_eq!(
        to_place(&built),
        [("default/waits", Origin::Waiting), ("default/on-a", Origin::DeletingNode)]
    );
    assert_eq!(open(&built), ["b"]);
    assert_eq!(built.snapshot.pools[0].limits[0].remaining, 6_000_000_000);
}

#[test]
fn pods_that_stay_are_there_in_case_their_node_goes() {
    let mut state = two_nodes();
    state.mark_for_deletion(["kwok://b"]);
    let in_case = ToPlace { in_case: true, ..ToPlace::default() };
    let built = build_with(&state, |options| options.to_place = in_case);
    let all = [
        ("default/waits", Origin::Waiting),
        ("default/on-b", Origin::DeletingNode),
        ("default/on-a", Origin::InCase),
        ("default/stays-on-a", Origin::InCase),
    ];
    assert_eq!(to_place(&built), all);
    let runs: Vec<_> = built.snapshot.pods.iter().filter_map(|pod| pod.runs).collect();
    assert!(runs.iter().all(|runs| runs.on == NodeId(0) && runs.counted));
    assert_eq!(runs.iter().map(|runs| runs.blocked).collect::<Vec<_>>(), [false, true]);
    let only = ToPlace { waiting: false, of_deleting_nodes: false, ..in_case };
    let built = build_with(&state, |options| options.to_place = only);
    assert_eq!(to_place(&built), all[2..]);
}

#[test]
fn a_claim_is_capacity_once_it_is_launched() {
    let (_, mut launched) = claim("c");
    let mut waits = launched.clone();
    waits["metadata"]["name"] = "d".into();
    waits["status"]["providerID"] = "".into();
    launched["metadata"]["name"] = "c".into();
    let state = state(&[node_pool("p"), (Kind::NodeClaim, launched), (Kind::NodeClaim, waits)]);
    let built = build_with(&state, |_| {});
    assert_eq!(open(&built), ["c"]);
    assert_eq!(
        built.nodes,
        [NodeOrigin { provider_id: "kwok://c".into(), node: None, claim: Some("c".into()) }]
    );
    assert_eq!(built.ignored.len(), 1);
}

#[test]
fn pools_choose_from_their_own_types_and_share_catalogues() {
    let state = state(&["a", "b", "c", "d", "e"].map(node_pool));
    let types = kwok::built_in();
    let (few, many): (Arc<[InstanceType]>, Arc<[InstanceType]>) = (types[..1].into(), types.into());
    let by_pool: BTreeMap<Box<str>, Arc<[InstanceType]>> = [
        ("a".into(), Arc::clone(&few)),
        ("b".into(), Arc::clone(&many)),
        ("c".into(), few),
        ("d".into(), Arc::from([])),
    ]
    .into();
    let options =
        Options { instance_types: InstanceTypes::ByPool(&by_pool), ..Options::new(Provider::Kwok, &[]) };
    let built = build(&state, &options, Timestamp::UNIX_EPOCH);
    let chosen = built.snapshot.pools.iter().map(|pool| {
        let catalogue = pool.catalogue.unwrap();
        (&*pool.name, catalogue.0, built.snapshot.catalogues[catalogue.index()].types.len())
    });
    assert_eq!(chosen.collect::<Vec<_>>(), [("c", 0, 1), ("b", 1, many.len()), ("a", 0, 1)]);
    let ignored: Vec<String> = built.ignored.iter().map(ToString::to_string).collect();
    let expected = ["e", "d"].map(|name| format!("NodePool {name}: there are no instance types for it"));
    assert_eq!(ignored, expected);
}

/// What is left of the processor of the first node, in millicores, and how many ports are taken.
fn left(state: &State) -> (i64, usize) {
    let built = build_with(state, |_| {});
    let node = &built.snapshot.nodes[0];
    (node.available.get(engine::intern::ResourceId::CPU), node.ports.len())
}

fn observe(state: &mut State, (kind, value): &(Kind, Value)) {
    state.observe(Seen::Applied(kind.decode(&value.to_string()).unwrap()));
}

#[test]
fn what_pods_use_does_not_depend_on_which_object_came_first() {
    let (kind, mut with_port) = bound("port", "a", &json!({}));
    with_port["spec"]["containers"][0]["ports"] = json!([{"hostPort": 80}]);
    let (_, mut done) = bound("done", "a", &json!({}));
    done["status"]["phase"] = "Succeeded".into();
    let objects = [claim("a"), node("a"), (kind, with_port), (kind, done), waiting("waits")];
    let expected = left(&state(&objects));
    let before = left(&state(&[claim("a"), node("a")]));
    assert_eq!((before.0 - expected.0, expected.1), (before.0 / 4, 1), "one of four cores, one port");
    // Every rotation, forwards and backwards, with everything said twice.
    for start in 0..objects.len() {
        let mut order: Vec<_> = objects[start..].iter().chain(&objects[..start]).collect();
        for _ in 0..2 {
            let mut state = state(&[]);
            for object in order.iter().chain(&order) {
                observe(&mut state, object);
            }
            assert_eq!(left(&state), expected);
            order.reverse();
        }
    }
}

#[test]
fn what_pods_use_is_exact_however_often_they_come_and_go() {
    let mut state = state(&[claim("a"), node("a")]);
    let (empty, _) = left(&state);
    let mut here = [false; 7];
    // Any sequence will do; this one visits every pod in no obvious order.
    for step in 0..100_usize {
        let number = step * step * 31 % 7;
        let name = format!("pod-{number}");
        if here[number] {
            state.gone(Kind::Pod, &crate::state::Key::new("default", &name), None);
        } else {
            let mut object = bound(&name, "a", &json!({"uid": format!("{name}-{step}")}));
            object.1["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
            observe(&mut state, &object);
            observe(&mut state, &object);
        }
        here[number] = !here[number];
        let pods = i64::try_from(here.iter().filter(|is_here| **is_here).count()).unwrap();
        assert_eq!(empty - left(&state).0, pods * (empty / 40), "step {step}");
    }
}

#[test]
fn a_pod_that_takes_the_name_of_another_counts_instead_of_it() {
    let mut state = state(&[claim("a"), node("a"), claim("b"), node("b"), bound("p", "a", &json!({}))]);
    let (_, mut other) = bound("p", "b", &json!({"uid": "other"}));
    other["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2"}});
    // Nobody has seen the first one go.
    observe(&mut state, &(Kind::Pod, other));
    let built = build_with(&state, |_| {});
    let cpu = |at: usize| built.snapshot.nodes[at].available.get(engine::intern::ResourceId::CPU);
    assert_eq!(cpu(1) * 2, cpu(0), "all of the first node, half of the second");
}

#[test]
fn pods_that_are_gone_keep_nobody_away() {
    let apart = |rule: &str, name: &str| {
        let term = json!({"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"});
        let term =
            if rule.starts_with("required") { term } else { json!({"weight": 1, "podAffinityTerm": term}) };
        let (kind, mut pod) = bound(name, "a", &json!({}));
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {rule: [term]}});
        (kind, pod)
    };
    let guards = |state: &State| build_with(state, |_| {}).snapshot.guards.len();
    let mut state = state(&[
        claim("a"),
        node("a"),
        apart("requiredDuringSchedulingIgnoredDuringExecution", "required"),
        apart("preferredDuringSchedulingIgnoredDuringExecution", "preferred"),
    ]);
    assert_eq!(guards(&state), 1);
    let key = crate::state::Key::new("default", "required");
    let mut without_node = two_nodes();
    observe(&mut without_node, &apart("requiredDuringSchedulingIgnoredDuringExecution", "required"));
    without_node.gone(Kind::Node, &crate::state::Key::cluster("a"), None);
    assert_eq!(guards(&without_node), 0);
    without_node.gone(Kind::Pod, &key, None);
    assert_eq!(guards(&without_node), 0);
    state.gone(Kind::Pod, &key, None);
    assert_eq!(guards(&state), 0);
}

#[test]
fn a_waiting_pod_is_nominated_for_the_node_of_the_claim_it_was_planned_on() {
    let mut state = two_nodes();
    let of_waiting = |state: &State| {
        let built = build(state, &Options::new(Provider::Kwok, &[]), Timestamp::UNIX_EPOCH);
        let pod = built.snapshot.pods.iter().find(|pod| &*pod.name == "default/waits").unwrap().nominated;
        pod.map(|node| built.nodes[node.index()].claim.clone().unwrap())
    };
    assert_eq!(of_waiting(&state), None);
    state.record_claim(&Key::new("default", "waits"), "b");
    assert_eq!(of_waiting(&state).as_deref(), Some("b"));
    state.record_claim(&Key::new("default", "waits"), "gone");
    assert_eq!(of_waiting(&state), None);
}
