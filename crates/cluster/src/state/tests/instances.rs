//! Nodes and claims together, marks, nominations, the sync gate, and what makes another look worthwhile.

use super::*;
use crate::state_node::StateNode;

pub(super) fn claim(name: &str, pool: &str, provider_id: &str, more: &Value) -> Object {
    let mut value = json!({
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "labels": {"karpenter.sh/nodepool": pool},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        },
        "status": {"providerID": provider_id, "capacity": {"cpu": "4"}},
    });
    merge(&mut value, more);
    object(Kind::NodeClaim, &value)
}

pub(super) fn node(name: &str, provider_id: &str, labels: &Value) -> Object {
    let labels = labels.clone();
    object(
        Kind::Node,
        &json!({
            "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": labels},
            "spec": {"providerID": provider_id},
            "status": {"capacity": {"cpu": "5"}},
        }),
    )
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(json!({})), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

pub(super) fn apply(state: &mut State, object: Object) {
    state.observe(Seen::Applied(object));
}

pub(super) fn listed() -> State {
    State::awaiting(Provider::Kwok, &[])
}

fn at(text: &str) -> Timestamp {
    format!("2026-01-01T{text}Z").parse().unwrap()
}

fn deleting() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
}

const REGISTERED: &str = r#"{"karpenter.sh/nodepool": "p", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}"#;

fn registered() -> Value {
    serde_json::from_str(REGISTERED).unwrap()
}

#[test]
fn a_node_and_its_claim_are_one() {
    let mut state = listed();
    apply(&mut state, claim("c", "p", "kwok://n", &json!({})));
    assert_eq!(state.state_node("kwok://n").unwrap().name(), "c");
    apply(&mut state, node("n", "kwok://n", &registered()));
    apply(&mut state, node("other", "", &json!({})));
    let names: Vec<_> = state.state_nodes().iter().map(StateNode::name).collect();
    assert_eq!(names, ["n", "other"]);
    assert_eq!(state.state_node_named("n").unwrap().claim.unwrap().metadata.name.as_deref(), Some("c"));
    assert_eq!(state.state_node("other").unwrap().provider_id(), "other");
    assert!(state.state_node("").is_none() && state.state_node_named("c").is_none());
}

#[test]
fn what_is_not_complete_is_no_state_node() {
    let mut state = listed();
    apply(&mut state, claim("waits", "p", "", &json!({})));
    apply(
        &mut state,
        claim("foreign", "p", "aws://n", &json!({"spec": {"nodeClassRef": {"kind": "Other"}}})),
    );
    apply(&mut state, node("no-id", "", &json!({"karpenter.sh/nodepool": "p"})));
    apply(&mut state, node("no-type", "kwok://x", &json!({"karpenter.sh/nodepool": "p"})));
    assert!(state.state_nodes().is_empty());
    assert!(state.state_node("aws://n").is_none() && state.state_node("no-id").is_none());
    assert_eq!(state.joined().bystanders.len(), 2);
}

#[test]
fn of_two_claims_of_one_instance_the_first_counts() {
    let mut state = listed();
    apply(&mut state, claim("b", "p", "kwok://n", &json!({})));
    apply(&mut state, claim("a", "p", "kwok://n", &json!({})));
    assert_eq!((state.state_node("kwok://n").unwrap().name(), state.state_nodes()[0].name()), ("a", "a"));
    assert_eq!(state.joined().ignored.len(), 1);
}

#[test]
fn a_mark_holds_until_it_is_taken_back_or_the_instance_is_gone() {
    let mut state = listed();
    state.mark_for_deletion(["kwok://n"]);
    assert!(!state.is_marked("kwok://n"), "nothing is known of it");
    apply(&mut state, claim("c", "p", "kwok://n", &json!({})));
    state.mark_for_deletion(["kwok://n"]);
    apply(&mut state, node("n", "kwok://n", &registered()));
    assert!(state.state_node("kwok://n").unwrap().is_marked_for_deletion());
    assert!(state.state_nodes()[0].marked);
    state.unmark_for_deletion(["kwok://n"]);
    assert!(!state.state_node("kwok://n").unwrap().is_marked_for_deletion());
    state.mark_for_deletion(["kwok://n"]);
    state.gone(Kind::NodeClaim, &Key::cluster("c"), None);
    assert!(state.is_marked("kwok://n"), "the node is still there");
    state.gone(Kind::Node, &Key::cluster("n"), None);
    assert!(!state.is_marked("kwok://n"));
}

#[test]
fn a_nomination_lasts_for_its_window_and_is_extended_by_the_next() {
    let window = nomination_window(SignedDuration::from_secs(10));
    assert_eq!(window, SignedDuration::from_secs(20));
    assert_eq!(nomination_window(SignedDuration::from_secs(1)), SignedDuration::from_secs(10));
    let mut state = listed();
    apply(&mut state, node("n", "kwok://n", &registered()));
    state.nominate("kwok://n", at("00:00:20"));
    state.nominate("kwok://unknown", at("00:00:20"));
    assert!(
        state.is_nominated("kwok://n", at("00:00:19")) && !state.is_nominated("kwok://n", at("00:00:20"))
    );
    assert!(!state.is_nominated("kwok://unknown", at("00:00:19")));
    state.nominate("kwok://n", at("00:00:30"));
    state.nominate("kwok://n", at("00:00:25"));
    apply(&mut state, claim("c", "p", "kwok://n", &json!({})));
    assert!(state.state_nodes()[0].is_nominated(at("00:00:29")));
}

#[test]
fn decisions_wait_for_claims_that_are_about_to_be_launched() {
    let mut state = State::awaiting(Provider::Kwok, &[Kind::Pod]);
    assert!(!state.is_synced(at("00:00:00")));
    state.observe(Seen::Synced(Kind::Pod, 0));
    assert!(state.is_synced(at("00:00:00")));
    state.answer(claim("c", "p", "", &json!({"metadata": {"resourceVersion": "1"}})));
    assert!(!state.is_synced(at("00:01:00")), "it counts at once");
    state.answer(claim("c", "p", "kwok://n", &json!({"metadata": {"resourceVersion": "2"}})));
    assert!(state.is_synced(at("00:01:00")));
}

#[test]
fn one_claim_does_not_stop_the_cluster_for_ever() {
    let mut state = listed();
    apply(&mut state, claim("slow", "p", "", &json!({})));
    assert!(!state.is_synced(at("00:05:00")));
    let sync = state.sync(at("00:05:01"));
    assert!(sync.is_synced() && sync.launching.is_empty());
    assert_eq!(sync.overdue[0].metadata.name.as_deref(), Some("slow"));
    state.set_launch_timeout(SignedDuration::from_mins(1));
    assert!(state.is_synced(at("00:01:01")));
    apply(&mut state, claim("slow", "p", "", &deleting()));
    assert!(state.is_synced(at("00:00:00")), "it will never be launched");
    apply(&mut state, claim("foreign", "p", "", &json!({"spec": {"nodeClassRef": {"kind": "Other"}}})));
    assert!(state.is_synced(at("00:00:00")));
    apply(&mut state, claim("broken", "p", "", &json!({})));
    state.observe(Seen::Unreadable(Kind::NodeClaim, Key::cluster("broken"), "why".into()));
    assert!(state.is_synced(at("00:00:00")));
    assert_eq!(state.unreadable().len(), 1);
}

#[test]
fn nobody_waits_for_claims_of_static_pools_that_cannot_be_launched() {
    let mut state = listed();
    let launched = |status: &str, reason: &str| {
        let condition = json!({
            "type": "Launched", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        json!({"status": {"conditions": [condition]}})
    };
    let pool = |name: &str, spec: Value| {
        let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
        let mut pool = json!({"metadata": {"name": name, "uid": name}, "spec": spec});
        pool["spec"]["template"] = json!({"spec": {"requirements": [], "nodeClassRef": class}});
        Kind::NodePool.decode(&pool.to_string()).unwrap()
    };
    apply(&mut state, pool("static", json!({"replicas": 2})));
    apply(&mut state, pool("dynamic", json!({})));
    apply(&mut state, claim("new", "static", "", &launched("Unknown", "AwaitingReconciliation")));
    assert!(!state.is_synced(at("00:01:00")), "it may have an instance any time");
    apply(&mut state, claim("new", "static", "", &launched("Unknown", "LaunchFailed")));
    let sync = state.sync(at("00:01:00"));
    assert!(sync.is_synced());
    assert_eq!(sync.failing[0].metadata.name.as_deref(), Some("new"));
    // Pods count on the others.
    apply(&mut state, claim("for-pods", "dynamic", "", &launched("Unknown", "LaunchFailed")));
    assert!(!state.is_synced(at("00:01:00")));
}

/// Whether a change makes another look for what can be consolidated worthwhile.
fn is_news(state: &mut State, change: impl FnOnce(&mut State)) -> bool {
    let before = state.consolidated_at(Timestamp::UNIX_EPOCH);
    change(state);
    !state.is_consolidated(before, Timestamp::UNIX_EPOCH)
}

#[test]
fn nodes_that_come_go_or_change_are_worth_another_look() {
    let state = &mut listed();
    assert!(is_news(state, |state| apply(state, claim("c", "p", "kwok://n", &json!({})))));
    assert!(!is_news(state, |state| apply(state, claim("c", "p", "kwok://n", &json!({})))));
    let starting = json!({"karpenter.sh/nodepool": "p", "node.kubernetes.io/instance-type": "t"});
    assert!(!is_news(state, |state| apply(state, node("n", "kwok://n", &starting))));
    assert!(is_news(state, |state| apply(state, node("n", "kwok://n", &registered()))));
    assert!(!is_news(state, |state| apply(state, node("n", "kwok://n", &registered()))));
    let Object::Node(known) = node("n", "kwok://n", &registered()) else { unreachable!() };
    let mut cordoned = Node::clone(&known);
    cordoned.spec.unschedulable = true;
    assert!(is_news(state, |state| apply(state, Object::Node(Arc::new(cordoned)))));
    assert!(is_news(state, |state| apply(state, node("n", "kwok://n", &registered()))));
    assert!(!is_news(state, |state| state.mark_for_deletion(["kwok://n"])), "until an object changes");
    assert!(is_news(state, |state| apply(state, node("n", "kwok://n", &registered()))));
    assert!(!is_news(state, |state| apply(state, claim("c", "p", "kwok://n", &deleting()))));
    assert!(is_news(state, |state| drop(state.gone(Kind::NodeClaim, &Key::cluster("c"), None))));
    assert!(is_news(state, |state| drop(state.gone(Kind::Node, &Key::cluster("n"), None))));
}

#[test]
fn pods_that_are_bound_or_done_or_go_are_worth_another_look() {
    let state = &mut listed();
    assert!(!is_news(state, |state| apply(state, pod(1, ""))));
    assert!(is_news(state, |state| apply(state, pod(2, "n"))));
    assert!(!is_news(state, |state| apply(state, pod(3, "n"))));
    let Object::Pod(known) = pod(4, "n") else { unreachable!() };
    let mut done = Pod::clone(&known);
    done.status.phase = crate::objects::pod::Phase::Succeeded;
    assert!(is_news(state, |state| apply(state, Object::Pod(Arc::new(done)))));
    assert!(is_news(state, |state| drop(state.observe(Seen::Deleted(pod(5, "n"))))));
}

#[test]
fn a_pool_that_is_new_changed_or_becomes_ready_is_worth_another_look() {
    let pool = |generation: i64, ready: &str| {
        let condition = json!({"type": "Ready", "status": ready, "reason": "r", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        object(
            Kind::NodePool,
            &json!({
                "metadata": {"name": "p", "generation": generation},
                "status": {"conditions": [condition]},
                "spec": {"template": {"spec": {
                    "requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"},
                }}},
            }),
        )
    };
    let state = &mut listed();
    assert!(is_news(state, |state| apply(state, pool(1, "True"))));
    assert!(!is_news(state, |state| apply(state, pool(1, "True"))));
    assert!(is_news(state, |state| apply(state, pool(2, "True"))));
    assert!(is_news(state, |state| apply(state, pool(2, "False"))));
    assert!(!is_news(state, |state| apply(state, pool(2, "Unknown"))));
    assert!(is_news(state, State::mark_unconsolidated));
}

#[test]
fn after_five_minutes_there_is_another_look_anyway() {
    let state = listed();
    let seen = state.consolidated_at(at("00:00:00"));
    assert!(state.is_consolidated(seen, at("00:04:59")) && !state.is_consolidated(seen, at("00:05:00")));
}

#[test]
fn buffer_pods_are_replaced_as_a_whole() {
    let mut state = listed();
    state.set_buffer_pods([("kwok://a".into(), 2)].into());
    state.set_buffer_pods([("kwok://b".into(), 1)].into());
    assert_eq!((state.buffer_pods("kwok://a"), state.buffer_pods("kwok://b")), (0, 1));
    let same = |state: &mut State| state.set_buffer_pods([("kwok://b".into(), 1)].into());
    assert!(!is_news(&mut state, same), "the same again is nothing new");
    assert!(is_news(&mut state, |state| state.set_buffer_pods([("kwok://b".into(), 0)].into())));
    assert_eq!(state.buffer_pods("kwok://b"), 0);
    state.set_buffer_pods(BTreeMap::new());
    assert_eq!((state.buffer_pods("kwok://b"), state.buffer_pods("unknown")), (0, 0));
    apply(&mut state, node("n", "kwok://n", &registered()));
    state.set_buffer_pods([("kwok://n".into(), 3)].into());
    state.gone(Kind::Node, &Key::cluster("n"), None);
    assert_eq!(state.buffer_pods("kwok://n"), 0, "it went with its node");
}

#[test]
fn a_node_and_a_claim_of_one_name_leave_nothing_behind() {
    let mut state = listed();
    apply(&mut state, claim("same", "p", "kwok://same", &json!({})));
    apply(&mut state, node("same", "kwok://same", &registered()));
    state.mark_for_deletion(["kwok://same"]);
    state.nominate("kwok://same", at("00:00:20"));
    assert_eq!(state.state_nodes().len(), 1);
    state.gone(Kind::Node, &Key::cluster("same"), None);
    assert_eq!((state.state_nodes().len(), state.node_claims.len()), (1, 1));
    state.gone(Kind::NodeClaim, &Key::cluster("same"), None);
    assert!(state.state_nodes().is_empty() && state.tracked.is_empty());
    assert!(state.marks.is_empty() && state.nominations.is_empty());
}
