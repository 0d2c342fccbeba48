//! Watches and answers meet in the state.

mod instances;
mod pods;
mod pools;

use serde_json::{Value, json};

use super::*;

fn object(kind: Kind, value: &Value) -> Object {
    kind.decode(&value.to_string()).unwrap()
}

fn pod(version: u64, node: &str) -> Object {
    let version = version.to_string();
    object(
        Kind::Pod,
        &json!({
            "metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": version},
            "spec": {"nodeName": node},
        }),
    )
}

fn state() -> State {
    State::awaiting(Provider::Kwok, &[Kind::Pod])
}

fn on(state: &State, node: &str) -> usize {
    state.pods_on(node).count()
}

#[test]
fn a_kind_is_known_once_it_was_listed_and_what_is_not_on_a_list_is_gone() {
    let mut state = state();
    state.observe(Seen::Listing(Kind::Pod));
    state.observe(Seen::Listed(pod(1, "n")));
    assert!(!state.is_listed());
    state.observe(Seen::Synced(Kind::Pod, 0));
    assert!(state.is_listed() && on(&state, "n") == 1);
    state.observe(Seen::Listing(Kind::Pod));
    let gone = state.observe(Seen::Synced(Kind::Pod, 0));
    assert!(gone.len() == 1 && gone[0].new.is_none() && on(&state, "n") == 0);
}

#[test]
fn a_list_of_a_server_that_lost_history_counts_although_it_looks_old() {
    let mut state = state();
    let list = |state: &mut State, object: Object, version| {
        state.observe(Seen::Listing(Kind::Pod));
        state.observe(Seen::Listed(object));
        state.observe(Seen::Synced(Kind::Pod, version))
    };
    list(&mut state, pod(90, "n"), 100);
    // A list that is as new as ever does not undo our own last write.
    assert!(state.answer(pod(105, "m")).is_some());
    list(&mut state, pod(90, "n"), 104);
    assert_eq!((on(&state, "n"), on(&state, "m")), (0, 1));
    // After a restore of etcd versions begin at an earlier one.
    let changes = list(&mut state, pod(50, "n"), 60);
    assert!(changes.len() == 1 && on(&state, "n") == 1);
    assert!(state.answer(pod(61, "m")).is_some(), "our own writes are believed from there on");
}

#[test]
fn a_kind_whose_watch_has_failed_keeps_its_objects_and_proves_nothing() {
    let mut state = state();
    let at = |second| Timestamp::from_second(second).unwrap();
    assert_eq!(state.doubt(&[Kind::Pod]).unwrap(), "Pod have not been listed");
    state.observe(Seen::Applied(pod(1, "n")));
    state.observe(Seen::Listing(Kind::Pod));
    state.observe(Seen::Listed(pod(1, "n")));
    state.observe(Seen::Synced(Kind::Pod, 1));
    assert_eq!(state.doubt(&[Kind::Pod]), None);
    state.set_stale(Kind::Pod, "404".to_owned(), at(60));
    state.set_stale(Kind::Pod, "503".to_owned(), at(90));
    let doubt = state.doubt(&[Kind::Node, Kind::Pod]).unwrap();
    assert_eq!(doubt, "the watch of Pod has failed since 1970-01-01T00:01:00Z: 503");
    assert!(state.doubt(&[Kind::Node]).is_none() && on(&state, "n") == 1);
    // The next list, or the server that takes up the watch again, makes it fresh.
    assert_eq!(state.set_fresh(Kind::Pod).unwrap().since, at(60));
    assert!(state.doubt(&[Kind::Pod]).is_none() && state.stale().len() == 0);
    // An object that cannot be read may be the one that is missed.
    let unreadable = Unreadable { uid: Box::default(), why: "why".to_owned() };
    state.observe(Seen::Unreadable(Kind::Pod, Key::new("default", "b"), unreadable));
    assert_eq!(state.doubt(&[Kind::Pod]).unwrap(), "Pod default/b cannot be read: why");
}

#[test]
fn an_answer_counts_at_once_and_what_a_watch_says_later_of_before_does_not() {
    let mut state = state();
    state.observe(Seen::Applied(pod(1, "")));
    assert!(state.answer(pod(5, "n")).is_some());
    assert!(state.observe(Seen::Applied(pod(3, "m"))).is_empty());
    assert_eq!((on(&state, "n"), on(&state, "m")), (1, 0));
    assert!(state.answer(pod(2, "m")).is_none(), "the watch is further already");
}

#[test]
fn an_answer_that_comes_after_the_deletion_does_not_bring_the_object_back() {
    let mut state = state();
    state.observe(Seen::Applied(pod(1, "n")));
    state.observe(Seen::Deleted(pod(7, "n")));
    assert!(state.answer(pod(6, "n")).is_none());
    assert!(state.pods.is_empty());
}

#[test]
fn an_accepted_deletion_is_not_forgotten_by_a_watch_that_lags() {
    let mut state = state();
    state.observe(Seen::Applied(pod(1, "n")));
    let key = Key::new("default", "a");
    assert!(state.doom(Kind::Pod, &key, "other", Timestamp::UNIX_EPOCH).is_none());
    assert!(state.doom(Kind::Pod, &key, "u", Timestamp::UNIX_EPOCH).is_some());
    state.observe(Seen::Applied(pod(2, "n")));
    assert!(state.pods.get(&key).unwrap().metadata.is_deleting());
    assert!(state.gone(Kind::Pod, &key, Some("other")).is_none());
    assert!(state.gone(Kind::Pod, &key, Some("u")).is_some());
}

#[test]
fn pods_are_found_by_their_node_or_as_those_without() {
    let mut state = state();
    state.observe(Seen::Applied(pod(1, "")));
    assert_eq!((state.unbound_pods().count(), on(&state, "")), (1, 0));
    state.observe(Seen::Applied(pod(2, "n")));
    assert_eq!((state.unbound_pods().count(), on(&state, "n")), (0, 1));
    state.observe(Seen::Applied(pod(3, "n")));
    assert_eq!(state.pods_on("n").next().unwrap().metadata.resource_version, 3);
    state.observe(Seen::Applied(pod(4, "m")));
    assert_eq!((on(&state, "n"), on(&state, "m")), (0, 1));
    state.observe(Seen::Deleted(pod(5, "m")));
    assert_eq!(on(&state, "m"), 0);
}

#[test]
fn what_pods_mean_for_their_node_follows_every_change_and_clones_have_their_own() {
    let costly = |version: u64, node: &str| {
        let mut pod = json!({
            "metadata": {"name": "b", "namespace": "default", "uid": "v", "resourceVersion": version.to_string()},
            "spec": {"nodeName": node},
        });
        pod["metadata"]["annotations"] = json!({"karpenter.sh/disruption-cost": "134217728"});
        object(Kind::Pod, &pod)
    };
    let seen = |state: &State, node: &str| {
        let load = state.load_of(node, Costs::default());
        (load.moved.len(), load.speaking.len(), load.moving, load.evicting)
    };
    let mut state = state();
    assert_eq!(seen(&state, "n"), (0, 0, 1.0, 0.0));
    state.observe(Seen::Applied(pod(1, "n")));
    assert_eq!(seen(&state, "n"), (1, 0, 2.0, 1.0));
    let before = state.clone();
    state.observe(Seen::Applied(costly(2, "n")));
    assert_eq!(seen(&state, "n"), (2, 1, 4.0, 3.0));
    assert_eq!(seen(&before, "n"), (1, 0, 2.0, 1.0));
    // what is written to the node and its claim changes nothing of it.
    let spec = json!({"requirements": [], "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}});
    for version in ["3", "4"] {
        let metadata = json!({"name": "n", "uid": "u", "resourceVersion": version});
        let node = json!({"metadata": metadata, "spec": {"providerID": "kwok://n"}});
        state.observe(Seen::Applied(object(Kind::Node, &node)));
        let claim = json!({"metadata": metadata, "spec": spec, "status": {"providerID": "kwok://n"}});
        state.observe(Seen::Applied(object(Kind::NodeClaim, &claim)));
        assert_eq!(seen(&state, "n"), (2, 1, 4.0, 3.0));
    }
    state.observe(Seen::Applied(costly(3, "m")));
    assert_eq!((seen(&state, "n"), seen(&state, "m")), ((1, 0, 2.0, 1.0), (1, 1, 3.0, 2.0)));
    state.observe(Seen::Deleted(pod(4, "n")));
    assert_eq!(seen(&state, "n"), (0, 0, 1.0, 0.0));
}

#[test]
fn costs_that_are_read_in_another_way_are_not_those_that_were_kept() {
    let mut state = state();
    let annotations = json!({"controller.kubernetes.io/pod-deletion-cost": "134217728"});
    let metadata = json!({"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "1",
        "annotations": annotations});
    let pod = json!({"metadata": metadata, "spec": {"nodeName": "n"}});
    state.observe(Seen::Applied(object(Kind::Pod, &pod)));
    for pod_deletion_cost in [true, false, true] {
        assert_eq!(state.load_of("n", Costs { pod_deletion_cost }).evicting > 1.0, pod_deletion_cost);
    }
}

#[test]
fn an_object_that_cannot_be_understood_is_set_aside_until_it_can_be_or_is_gone() {
    let mut state = state();
    let key = Key::new("default", "a");
    let unreadable = |key: &Key| Seen::Unreadable(Kind::Pod, key.clone(), "why".into());
    state.observe(Seen::Applied(pod(1, "n")));
    state.observe(unreadable(&key));
    assert!(state.has_unreadable(Kind::Pod) && !state.has_unreadable(Kind::Node) && on(&state, "n") == 0);
    state.observe(Seen::Applied(pod(2, "n")));
    assert!(!state.has_unreadable(Kind::Pod));
    state.observe(unreadable(&key));
    state.gone(Kind::Pod, &key, None);
    assert!(!state.has_unreadable(Kind::Pod));
    state.observe(unreadable(&key));
    state.observe(Seen::Listing(Kind::Pod));
    state.observe(unreadable(&Key::new("default", "b")));
    state.observe(Seen::Synced(Kind::Pod, 0));
    let left: Vec<_> = state.unreadable().map(|(_, key, _)| key.to_string()).collect();
    assert_eq!(left, ["default/b"], "the other was not on the list");
}

#[test]
fn claims_and_nodes_find_each_other_unless_there_are_several() {
    let mut state = state();
    let claim = |name: &str| {
        object(
            Kind::NodeClaim,
            &json!({
                "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "p"}},
                "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}},
                "status": {"providerID": "kwok://n"},
            }),
        )
    };
    let node = object(Kind::Node, &json!({"metadata": {"name": "n"}, "spec": {"providerID": "kwok://n"}}));
    state.observe(Seen::Applied(claim("c")));
    state.observe(Seen::Applied(node));
    let node = Arc::clone(state.nodes.named("n").unwrap());
    let found = Arc::clone(state.claim_of_node(&node).unwrap());
    assert_eq!(found.metadata.name.as_deref(), Some("c"));
    assert!(state.node_of_claim(&found).is_some());
    assert_eq!(state.claims_of_pool("p").count(), 1);
    state.observe(Seen::Applied(claim("d")));
    assert!(state.claim_of_node(&node).is_none());
}
