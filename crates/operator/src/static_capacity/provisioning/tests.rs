//! 16.26, 27.20: what static pools lack.

use cluster::state::{Kind, Seen};
use serde_json::{Value, json};

use super::*;
use crate::static_capacity::tests::{claim_object, static_pool};
use crate::testing::{merge, pool_object, state};

fn step(objects: &[Value]) -> String {
    say(&decide(&mut state(objects), "p"))
}

fn say(step: &Step) -> String {
    match step {
        Step::Create(Create { count, lacks_more: false, .. }) => format!("create {count}"),
        Step::Create(Create { count, .. }) => format!("create {count} first"),
        other => format!("{other:?}"),
    }
}

fn claims(count: usize) -> impl Iterator<Item = Value> {
    (0..count).map(|number| claim_object(&format!("c{number}"), "p", &json!({})))
}

fn with_claims(pool: Value, count: usize) -> Vec<Value> {
    [pool].into_iter().chain(claims(count)).collect()
}

#[test]
fn pools_that_are_not_for_it_are_left_alone() {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    let foreign = json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}});
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let mut unready = static_pool(3, &json!({}));
    unready["status"]["conditions"][0]["status"] = "False".into();
    for (what, pool) in [
        ("foreign", static_pool(3, &foreign)),
        ("deleting", static_pool(3, &deleting)),
        ("not ready", unready),
        ("not looked at", pool_object("p", &json!({"spec": {"replicas": 3}}))),
        ("dynamic", {
            let mut dynamic = static_pool(3, &json!({}));
            dynamic["spec"].as_object_mut().unwrap().remove("replicas");
            dynamic
        }),
        ("another", pool_object("other", &json!({}))),
    ] {
        assert_eq!(step(&[pool]), "Ignore", "{what}");
    }
}

#[test]
fn what_is_missing_is_created_and_nothing_else() {
    for (replicas, known, expected) in [
        (0, 0, "Enough"),
        (3, 0, "create 3"),
        (3, 2, "create 1"),
        (3, 3, "Enough"),
        (3, 5, "Enough"),
        (500, 0, "create 500"),
        (1000, 0, "create 500 first"),
        (1000, 500, "create 500"),
        (i64::MAX, 0, "create 500 first"),
        (i64::MAX, 700, "create 300 first"),
        (i64::MAX, 1000, "Wait"),
    ] {
        assert_eq!(
            step(&with_claims(static_pool(replicas, &json!({})), known)),
            expected,
            "{replicas} {known}"
        );
    }
}

#[test]
fn a_negative_number_of_nodes_is_none() {
    assert_eq!(step(&[static_pool(-3, &json!({}))]), "Enough");
}

#[test]
fn claims_that_go_do_not_count_as_nodes_but_still_need_room() {
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let objects = |limit: Value| {
        let limits = json!({"spec": {"limits": limit}});
        let mut all = with_claims(static_pool(3, &limits), 2);
        all.push(claim_object("going", "p", &going));
        all
    };
    assert_eq!(step(&objects(json!({}))), "create 1");
    assert_eq!(step(&objects(json!({"nodes": "4"}))), "create 1");
    assert_eq!(step(&objects(json!({"nodes": "3"}))), "AtLimit");
}

#[test]
fn a_limit_is_never_exceeded_and_only_nodes_count() {
    for (limit, known, expected) in [
        (json!({"nodes": "2"}), 0, "create 2"),
        (json!({"nodes": "2"}), 1, "create 1"),
        (json!({"nodes": "2"}), 2, "AtLimit"),
        (json!({"nodes": "1"}), 2, "AtLimit"),
        (json!({"nodes": "2500m"}), 0, "create 2"),
        (json!({"nodes": "-1"}), 0, "AtLimit"),
        (json!({"nodes": "0"}), 0, "AtLimit"),
        (json!({"nodes": "9e15"}), 0, "create 3"),
        (json!({"cpu": "0"}), 0, "create 3"),
    ] {
        let pool = static_pool(3, &json!({"spec": {"limits": limit}}));
        assert_eq!(step(&with_claims(pool, known)), expected, "{limit} {known}");
    }
}

#[test]
fn a_claim_that_waits_for_its_replacement_is_not_replaced_again() {
    let mut state = state(&with_claims(static_pool(3, &json!({})), 3));
    state.mark_pending_disruption(["c0"]);
    assert_eq!(say(&decide(&mut state, "p")), "Enough");
    // Another controller is about to create the replacement.
    assert_eq!(state.reserve("p", None, 1), 1);
    let scaled = static_pool(4, &json!({"metadata": {"resourceVersion": "2"}}));
    state.observe(Seen::Applied(Kind::NodePool.decode(&scaled.to_string()).unwrap()));
    assert_eq!(say(&decide(&mut state, "p")), "create 1");
}

#[test]
fn what_is_about_to_be_created_is_not_asked_for_again() {
    let mut state = state(&[static_pool(3, &json!({}))]);
    assert_eq!(say(&decide(&mut state, "p")), "create 3");
    assert_eq!(say(&decide(&mut state, "p")), "Enough");
    state.release("p", 3);
    assert_eq!(say(&decide(&mut state, "p")), "create 3");
}

#[test]
fn nothing_happens_before_the_cluster_is_known() {
    let mut state = State::awaiting(api::provider::Provider::Kwok, &[Kind::Node]);
    let pool = Kind::NodePool.decode(&static_pool(3, &json!({})).to_string()).unwrap();
    state.observe(Seen::Applied(pool));
    assert_eq!(say(&decide(&mut state, "p")), "Wait");
}

/// The keys that a change concerns.
fn touched(old: Option<Value>, new: Option<Value>) -> usize {
    let state = state(&[static_pool(1, &json!({}))]);
    let decode = |object: Value| {
        let kind = if object["kind"] == "NodePool" { Kind::NodePool } else { Kind::NodeClaim };
        kind.decode(&object.to_string()).unwrap()
    };
    let queue = Queue::new(Backoff::DEFAULT);
    touch(&Change { old: old.map(decode), new: new.map(decode) }, &state, &queue);
    queue.depth()
}

#[test]
fn it_looks_again_when_pools_come_change_their_size_or_become_ready() {
    let pool = |replicas: i64, ready: &str| {
        let mut pool = static_pool(replicas, &json!({}));
        pool["status"]["conditions"][0]["status"] = ready.into();
        Some(pool)
    };
    let labelled = || {
        let mut changed = static_pool(1, &json!({}));
        merge(&mut changed, &json!({"metadata": {"labels": {"a": "b"}}}));
        Some(changed)
    };
    assert_eq!(touched(None, pool(1, "True")), 1);
    assert_eq!(touched(pool(1, "True"), pool(2, "True")), 1);
    assert_eq!(touched(pool(1, "False"), pool(1, "True")), 1);
    assert_eq!(touched(pool(1, "True"), pool(1, "False")), 0);
    assert_eq!(touched(pool(1, "True"), labelled()), 0);
    assert_eq!(touched(pool(1, "True"), None), 0);
    let dynamic = || Some(pool_object("p", &json!({})));
    assert_eq!((touched(None, dynamic()), touched(dynamic(), dynamic())), (0, 0));
}

#[test]
fn it_looks_again_when_claims_of_static_pools_go() {
    let launched = json!({"status": {"providerID": "kwok://c"}});
    let claim = |pool: &str| Some(claim_object("c", pool, &launched));
    let going = || {
        let mut going = claim_object("c", "p", &launched);
        merge(&mut going, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        Some(going)
    };
    assert_eq!(touched(claim("p"), going()), 1);
    assert_eq!(touched(going(), None), 1);
    assert_eq!(touched(claim("p"), None), 1);
    assert_eq!(
        (touched(None, claim("p")), touched(claim("p"), claim("p")), touched(going(), going())),
        (0, 0, 0)
    );
    assert_eq!(touched(claim("other"), None), 0);
    // What could not be launched is not tried again without end.
    assert_eq!(touched(Some(claim_object("c", "p", &json!({}))), None), 0);
}
