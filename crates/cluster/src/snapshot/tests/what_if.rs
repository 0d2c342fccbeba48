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
fn what_if_nodes_were_gone() {
    let mut state = two_nodes();
    state.mark_for_deletion(["kwok://b"]);
    let removed = |options: &mut Options<'_>| options.removed = ["kwok://a".into()].into();
    let on_a = ("default/on-a", Origin::RemovedNode);
    let built = build_with(&state, |options| {
        removed(options);
    });
    let all = [("default/waits", Origin::Waiting), on_a, ("default/on-b", Origin::DeletingNode)];
    assert_eq!(to_place(&built), all);
    assert!(open(&built).is_empty());
    let built = build_with(&state, |options| {
        removed(options);
        options.to_place = ToPlace { waiting: false, of_deleting_nodes: false, ..ToPlace::default() };
    });
    assert_eq!(to_place(&built), [on_a]);
    assert_eq!(built.snapshot.running.iter().map(|each| each.count).sum::<i32>(), 2, "the others stay");
    let built = build_with(&state, |options| {
        removed(options);
        options.to_place.blocked_of_removed_nodes = true;
    });
    assert!(to_place(&built).contains(&("default/stays-on-a", Origin::RemovedNode)));
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
