//! Which pods go first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::names::metrics::{POD_DELETION_COST_PENDING_NODES, POD_DELETION_COST_WRITES};
use cluster::instance_types::kwok;
use cluster::state::State;
use embedded::faults::{Fault, Rule};
use jiff::Timestamp;
use runtime::Settings;
use runtime::queue::{Backoff, Queue};
use serde_json::{Value, json};
use testkit::World;

use super::rank::{Write, plan};
use super::writes::Writes;
use crate::catalogue::Types;
use crate::testing::{Logged, NODE_POOL, Operated, merge, node_objects, pod_object, pool_object, state};

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn types() -> Types {
    [("p".into(), Arc::from(kwok::built_in())), ("q".into(), Arc::from(kwok::built_in()))].into()
}

fn pool(name: &str, disruption: &Value) -> Value {
    let all = json!({"budgets": [{"nodes": "100%"}]});
    let mut pool = pool_object(name, &json!({"spec": {"disruption": all}}));
    merge(&mut pool["spec"]["disruption"], disruption);
    pool
}

/// A pod of a controller, with changes.
fn pod(name: &str, node: &str, kind: (&str, &str), change: &Value) -> Value {
    let owner = json!({"apiVersion": kind.0, "kind": kind.1, "name": "o", "uid": "u", "controller": true});
    let mut pod = pod_object(name, node, &json!({"metadata": {"ownerReferences": [owner]}}));
    merge(&mut pod, change);
    pod
}

const REPLICA_SET: (&str, &str) = ("apps/v1", "ReplicaSet");

/// A node of a pool with one pod of a ReplicaSet, which bears its name.
fn node(name: &str, pool: &str, of_node: &Value, of_claim: &Value) -> Vec<Value> {
    let mut objects = node_objects(name, pool, of_node, of_claim).to_vec();
    objects.push(pod(&format!("pod-{name}"), name, REPLICA_SET, &json!({})));
    objects
}

fn plain(name: &str) -> Vec<Value> {
    node(name, "p", &json!({}), &json!({}))
}

fn condition(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": kind, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
}

/// What pods should say from now on, by name.
fn written(state: &State) -> BTreeMap<String, Option<i32>> {
    let writes = plan(state, &types(), now()).writes;
    writes.into_iter().map(|write| (write.pod.name.to_string(), write.cost)).collect()
}

#[track_caller]
fn check(objects: &[Vec<Value>], expected: &[(&str, Option<i32>)]) {
    let mut all = vec![pool("p", &json!({})), pool("q", &json!({}))];
    all.extend(objects.concat());
    let expected: BTreeMap<String, Option<i32>> =
        expected.iter().map(|(name, cost)| (format!("pod-{name}"), *cost)).collect();
    assert_eq!(written(&state(&all)), expected);
}

/// The pod of a node says something already.
fn marked(mut objects: Vec<Value>, cost: &str) -> Vec<Value> {
    objects[2]["metadata"]["annotations"] = json!({COST: cost});
    objects
}

#[test]
fn nodes_that_save_most_go_first() {
    // More pods cost more, so less is saved for what it costs.
    let mut busy = plain("a");
    busy.push(pod("pod-b", "a", REPLICA_SET, &json!({})));
    check(&[busy, plain("z")], &[("z", Some(-2)), ("a", Some(-1)), ("b", Some(-1))]);
    check(&[plain("c"), plain("a"), plain("b")], &[("a", Some(-3)), ("b", Some(-2)), ("c", Some(-1))]);
}

#[test]
fn drifted_nodes_go_before_others_but_not_those_of_static_pools() {
    let drifted = node("z", "p", &json!({}), &condition("Drifted"));
    check(&[plain("a"), drifted.clone()], &[("z", Some(-2)), ("a", Some(-1))]);
    let mut all = vec![pool_object(
        "p",
        &json!({"spec": {
        "replicas": 2, "disruption": {"budgets": [{"nodes": "100%"}]}}}),
    )];
    all.extend(plain("a"));
    all.extend(drifted);
    let expected: BTreeMap<String, Option<i32>> =
        [("pod-a".to_owned(), Some(-2)), ("pod-z".to_owned(), Some(-1))].into();
    assert_eq!(written(&state(&all)), expected);
}

#[test]
fn nodes_that_go_already_come_before_all_others_whatever_protects_them() {
    let taint = json!({"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
        "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    check(
        &[plain("a"), node("b", "p", &taint, &json!({})), node("c", "p", &json!({}), &leaving)],
        &[("a", Some(-1)), ("b", Some(i32::MIN)), ("c", Some(i32::MIN))],
    );
    let mut objects = vec![pool("p", &json!({}))];
    objects.extend(plain("a"));
    let mut state = state(&objects);
    state.mark_for_deletion(["kwok://a"]);
    assert_eq!(written(&state), [("pod-a".to_owned(), Some(i32::MIN))].into());
}

#[test]
fn nodes_of_others_are_left_alone() {
    let mut unmanaged = plain("a");
    unmanaged.remove(1);
    unmanaged[0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    check(&[unmanaged], &[]);
}

#[test]
fn pods_of_nodes_that_are_kept_say_nothing() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    let unknown = json!({"metadata": {"labels": {"node.kubernetes.io/instance-type": "unheard-of"}}});
    let mut pinned = marked(plain("c"), "-5");
    pinned.push(pod("bare", "c", ("apps/v1", "StatefulSet"), &json!({})));
    let mut blocked = marked(plain("d"), "7");
    blocked.push(pod("kept", "d", ("batch/v1", "Job"), &protected));
    let mut budgeted = marked(plain("f"), "7");
    budgeted[2]["metadata"]["labels"] = json!({"app": "f"});
    budgeted.push(json!({
        "kind": "PodDisruptionBudget", "metadata": {"name": "f", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "f"}}}, "status": {"disruptionsAllowed": 0},
    }));
    check(
        &[
            marked(node("a", "p", &protected, &json!({})), "1"),
            marked(node("b", "p", &unknown, &json!({})), "1"),
            pinned,
            blocked,
            // It says nothing already.
            node("e", "p", &protected, &json!({})),
            budgeted,
        ],
        &[("a", None), ("b", None), ("c", None), ("d", None), ("f", None)],
    );
}

#[test]
fn only_pods_that_run_pin_a_node() {
    // N8: those that are done do not.
    let mut done = plain("a");
    done.push(pod("done", "a", ("apps/v1", "StatefulSet"), &json!({"status": {"phase": "Succeeded"}})));
    let mut bare = pod_object("bare", "a", &json!({"status": {"phase": "Failed"}}));
    bare["metadata"]["ownerReferences"] = json!([]);
    done.push(bare);
    done.push(pod(
        "system",
        "a",
        ("apps/v1", "StatefulSet"),
        &json!({"metadata": {"namespace": "kube-system"}}),
    ));
    for (number, kind) in [("batch/v1", "Job"), ("apps/v1", "DaemonSet")].into_iter().enumerate() {
        done.push(pod(&format!("other-{number}"), "a", kind, &json!({})));
    }
    check(&[done], &[("a", Some(-1))]);
}

#[test]
fn nodes_that_are_never_consolidated_are_kept_unless_they_have_drifted() {
    let mut all = vec![pool("p", &json!({"consolidateAfter": "Never"}))];
    all.extend(marked(plain("a"), "3"));
    all.extend(node("b", "p", &json!({}), &condition("Drifted")));
    let expected: BTreeMap<String, Option<i32>> =
        [("pod-a".to_owned(), None), ("pod-b".to_owned(), Some(-1))].into();
    assert_eq!(written(&state(&all)), expected);
}

#[test]
fn budgets_of_each_pool_decide_how_many_are_ranked() {
    let one = json!({"budgets": [{"nodes": "1"}]});
    let mut all = vec![pool("p", &one), pool("q", &json!({}))];
    for name in ["a", "b"] {
        all.extend(marked(plain(name), "9"));
        all.extend(node(&format!("q{name}"), "q", &json!({}), &json!({})));
    }
    let expected: BTreeMap<String, Option<i32>> = [
        ("pod-a".to_owned(), Some(-3)),
        ("pod-b".to_owned(), None),
        ("pod-qa".to_owned(), Some(-2)),
        ("pod-qb".to_owned(), Some(-1)),
    ]
    .into();
    assert_eq!(written(&state(&all)), expected);
}

#[test]
fn drifted_nodes_and_others_are_ranked_within_the_budgets_of_their_reasons() {
    for (reason, drifted, normal) in [("Drifted", None, Some(-1)), ("Underutilized", Some(-1), None)] {
        let closed = json!({"budgets": [{"nodes": "0", "reasons": [reason]}, {"nodes": "100%"}]});
        let mut all = vec![pool("p", &closed)];
        all.extend(marked(node("d", "p", &json!({}), &condition("Drifted")), "9"));
        all.extend(marked(plain("n"), "9"));
        let expected = [("pod-d".to_owned(), drifted), ("pod-n".to_owned(), normal)].into();
        assert_eq!(written(&state(&all)), expected, "{reason}");
    }
}

#[test]
fn nodes_that_are_kept_wait_until_there_is_time_for_them() {
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    for (ranked, is_written) in [(49, true), (50, false)] {
        let mut all = vec![pool("p", &json!({}))];
        all.extend(marked(node("a", "p", &protected, &json!({})), "9"));
        // The last ones have drifted, and others have not.
        for number in 0..ranked {
            let claim = if number < 40 { json!({}) } else { condition("Drifted") };
            all.extend(node(&format!("n{number:02}"), "p", &json!({}), &claim));
        }
        let written = written(&state(&all));
        assert_eq!((written.len(), written.contains_key("pod-a")), (50, is_written));
    }
}

#[test]
fn fifty_nodes_are_written_to_at_once_besides_those_that_go() {
    let leaving = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let mut all = vec![pool("p", &json!({}))];
    for number in 0..60 {
        let name = format!("n{number:02}");
        // The first ten say already what they should.
        let objects = plain(&name);
        all.extend(if number < 10 { marked(objects, &(number - 60).to_string()) } else { objects });
        all.extend(node(&format!("x{number:02}"), "p", &json!({}), &leaving));
    }
    let plan = plan(&state(&all), &types(), now());
    assert_eq!((plan.total, plan.disrupted, plan.ranked), (120, 60, 60));
    assert_eq!(plan.writes.len(), 110);
    assert_eq!(plan.pending, [("p".into(), 110)].into());
    let mut more = all.clone();
    more.extend(plain("zz"));
    // Everybody moves up by one, so that there is more to write than fits.
    assert_eq!(super::rank::plan(&state(&more), &types(), now()).writes.len(), 60 + 50);
}

#[test]
fn pods_of_others_than_replica_sets_are_not_written_to() {
    let mut objects = plain("a");
    objects.push(pod("job", "a", ("batch/v1", "Job"), &json!({})));
    let mut shared = pod("shared", "a", REPLICA_SET, &json!({}));
    shared["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    shared["metadata"]["namespace"] = json!("kube-system");
    objects.push(shared);
    check(&[objects], &[("a", Some(-1))]);
}

fn gated() -> Settings {
    let mut settings = Settings::default();
    settings.gates.pod_deletion_cost_management = true;
    settings
}

/// A cluster with a pool, a node and a pod of a ReplicaSet on it.
fn cluster(settings: Settings) -> Operated {
    let cluster = Operated::with(World::builder(1).without_scheduler().start(), settings, |context| {
        super::controllers(context)
    });
    cluster.apply(&NODE_POOL.replace(
        "spec:\n  template",
        "spec:\n  disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}\n  template",
    ));
    for (mut object, version) in
        node_objects("a", "default", &json!({}), &json!({})).into_iter().zip(["v1", "karpenter.sh/v1"])
    {
        object["apiVersion"] = version.into();
        object["metadata"].as_object_mut().unwrap().remove("uid");
        cluster.apply(&object.to_string());
    }
    let replicas = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "r"}}, "template": {
            "metadata": {"labels": {"app": "r"}},
            "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]},
        }},
    });
    cluster.apply(&replicas.to_string());
    cluster
}

fn said(cluster: &Operated) -> Vec<String> {
    let said = |pod: &Value| pod["metadata"]["annotations"][COST].as_str().unwrap_or("-").to_owned();
    cluster.pods().iter().map(said).collect()
}

#[test]
fn pods_are_told_once_a_minute_if_the_gate_is_on() {
    let logged = Logged::start();
    let mut on = cluster(gated());
    on.run_for(Duration::from_secs(70));
    assert_eq!(said(&on), ["-1"]);
    assert_eq!(on.context.metrics.value(&POD_DELETION_COST_WRITES, &["updated"]), Some(1.0));
    let looks = || {
        ["completed node ranking", "no changes detected, skipping pod deletion cost update"]
            .map(|text| logged.with(&format!("DEBUG message={text}")).len())
    };
    let [ranked, skipped] = looks();
    on.run_for(Duration::from_mins(20));
    assert_eq!(on.context.metrics.value(&POD_DELETION_COST_WRITES, &["updated"]), Some(1.0));
    assert_eq!(on.context.metrics.value(&POD_DELETION_COST_PENDING_NODES, &["default"]), None);
    // Without a change, nodes are ranked every five minutes.
    assert_eq!(looks(), [ranked + 4, skipped + 16]);
    let mut off = cluster(Settings::default());
    off.run_for(Duration::from_mins(3));
    assert_eq!(said(&off), ["-"]);
}

/// The queue alone, with one pod that is to say -7.
fn asked(cluster: &Operated) -> (Arc<Writes>, Write) {
    let context = &cluster.context;
    let writes = Arc::new(Writes::new(context, Arc::new(Queue::new(Backoff::DEFAULT))));
    let pod = {
        let state = context.cluster.read();
        state.pods.values().next().cloned().expect("there is a pod")
    };
    let write =
        Write { pod: cluster::state::Watched::key(&*pod), uid: pod.metadata.uid.clone(), cost: Some(-7) };
    (writes, write)
}

fn work(cluster: &Operated, writes: &Arc<Writes>, write: &Write) -> bool {
    use runtime::controller::Reconcile;
    cluster.block_on(async { writes.reconcile(&write.pod).await }).is_ok()
}

#[test]
fn what_was_asked_for_last_counts_and_what_is_so_already_is_not_written() {
    let mut cluster = cluster(Settings::default());
    cluster.run_for(Duration::from_secs(5));
    let (writes, write) = asked(&cluster);
    writes.add(vec![Write { cost: Some(3), ..write.clone() }, write.clone()]);
    assert_eq!(writes.len(), 1);
    assert!(work(&cluster, &writes, &write));
    assert_eq!(said(&cluster), ["-7"]);
    writes.add(vec![write.clone()]);
    assert!(work(&cluster, &writes, &write));
    let count = |result| cluster.context.metrics.value(&POD_DELETION_COST_WRITES, &[result]);
    assert_eq!((count("updated"), count("skipped_unchanged")), (Some(1.0), Some(1.0)));
    assert_eq!(writes.len(), 0);
}

#[test]
fn pods_that_changed_or_are_gone_are_forgotten_and_other_failures_tried_again() {
    let mut cluster = cluster(Settings::default());
    cluster.run_for(Duration::from_secs(5));
    let (writes, write) = asked(&cluster);
    let count = |result| cluster.context.metrics.value(&POD_DELETION_COST_WRITES, &[result]);
    let other = Write { uid: "another".into(), ..write.clone() };
    writes.add(vec![other]);
    assert!(work(&cluster, &writes, &write));
    assert_eq!((count("skipped_notfound"), writes.len()), (Some(1.0), 0));
    cluster.faults.set_rules(vec![Rule::on("patch", "pods", 1.0, Fault::TooManyRequests)]);
    writes.add(vec![write.clone()]);
    assert!(!work(&cluster, &writes, &write));
    assert_eq!((count("error"), writes.len()), (Some(1.0), 1));
    cluster.faults.set_rules(vec![Rule::on("patch", "pods", 1.0, Fault::Conflict)]);
    assert!(work(&cluster, &writes, &write));
    assert_eq!((count("skipped_conflict"), writes.len()), (Some(1.0), 0));
    assert_eq!(said(&cluster), ["-"]);
}
