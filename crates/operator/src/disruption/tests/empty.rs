//! 16.5: which empty nodes go.

use std::time::Duration;

use api::names::metrics::{DISRUPTION_DECISIONS, DISRUPTION_ELIGIBLE_NODES};
use serde_json::{Value, json};

use crate::testing::{NODE_POOL, Operated, merge, node_objects};

/// A cluster with pools whose budgets allow so much.
fn cluster(pools: &[&str], budget: &str) -> Operated {
    let cluster = Operated::by(|context| {
        let mut all = super::super::controllers(context);
        all.extend(crate::node_pool::controllers(context));
        all
    });
    for pool in pools {
        let disruption = format!(
            "spec:\n  disruption: {{consolidationPolicy: WhenEmpty, budgets: [{{nodes: '{budget}'}}]}}\n  template"
        );
        let pool = NODE_POOL.replace("{name: default}\nspec", &format!("{{name: {pool}}}\nspec"));
        cluster.apply(&pool.replace("spec:\n  template", &disruption));
    }
    cluster
}

fn add_node(cluster: &Operated, name: &str, pool: &str, of_node: &Value, of_claim: &Value) {
    let versions = ["v1", "karpenter.sh/v1"];
    for (mut object, version) in node_objects(name, pool, of_node, of_claim).into_iter().zip(versions) {
        object["apiVersion"] = version.into();
        object["metadata"].as_object_mut().unwrap().remove("uid");
        cluster.apply(&object.to_string());
    }
}

fn add_pod(cluster: &Operated, name: &str, node: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    });
    cluster.apply(&pod.to_string());
}

fn run(cluster: &mut Operated, seconds: u64) {
    cluster.run_for(Duration::from_secs(seconds));
}

/// How many claims each pool has left.
fn left(cluster: &Operated, pools: &[&str]) -> Vec<usize> {
    let claims = cluster.claims();
    let of = |pool: &&str| {
        claims.iter().filter(|it| it["metadata"]["labels"]["karpenter.sh/nodepool"] == **pool).count()
    };
    pools.iter().map(of).collect()
}

const POOLS: [&str; 10] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"];

#[test]
fn budgets_count_in_each_pool() {
    for (budget, expected) in [("50%", 1), ("100%", 0), ("0%", 3), ("3", 0)] {
        let mut cluster = cluster(&POOLS, budget);
        for pool in POOLS {
            for number in 0..3 {
                add_node(&cluster, &format!("{pool}-{number}"), pool, &json!({}), &json!({}));
            }
        }
        // One round: fifteen seconds of patience, and what comes before and after.
        run(&mut cluster, 22);
        assert_eq!(left(&cluster, &POOLS), [expected; 10], "{budget}");
        let decided = cluster.context.metrics.value(&DISRUPTION_DECISIONS, &["delete", "empty", "empty"]);
        assert_eq!(decided, (expected < 3).then_some(1.0), "{budget}: all in one command");
    }
}

#[test]
fn a_node_counts_once_its_pod_is_gone() {
    let mut cluster = cluster(&["default"], "0");
    add_node(&cluster, "n1", "default", &json!({}), &json!({}));
    add_pod(&cluster, "a", "n1");
    run(&mut cluster, 12);
    let eligible = |cluster: &Operated| cluster.context.metrics.value(&DISRUPTION_ELIGIBLE_NODES, &["empty"]);
    assert_eq!(eligible(&cluster), Some(0.0));
    cluster.delete("/api/v1/namespaces/default/pods/a");
    run(&mut cluster, 45);
    assert_eq!(eligible(&cluster), Some(1.0));
}

#[test]
fn what_a_node_says_decides_whether_it_goes() {
    let mut cluster = cluster(&["default"], "100%");
    let annotated =
        |value: &str| json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}});
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let conditions = |consolidatable: &[Value]| {
        let mut all = ["Launched", "Registered", "Initialized"].map(|kind| condition(kind, "True")).to_vec();
        all.extend_from_slice(consolidatable);
        json!({"status": {"conditions": all}})
    };
    add_node(&cluster, "protected", "default", &annotated("true"), &json!({}));
    add_node(&cluster, "unprotected", "default", &annotated("false"), &json!({}));
    add_node(&cluster, "busy", "default", &json!({}), &conditions(&[condition("Consolidatable", "False")]));
    add_node(&cluster, "unknown", "default", &json!({}), &conditions(&[]));
    let drifted = conditions(&[condition("Consolidatable", "True"), condition("Drifted", "True")]);
    add_node(&cluster, "drifted", "default", &json!({}), &drifted);
    add_node(&cluster, "used", "default", &json!({}), &json!({}));
    add_pod(&cluster, "a", "used");
    run(&mut cluster, 60);
    let mut left: Vec<String> = cluster
        .claims()
        .iter()
        .map(|claim| claim["metadata"]["name"].as_str().unwrap().replace("claim-", ""))
        .collect();
    left.sort();
    assert_eq!(left, ["busy", "protected", "unknown", "used"]);
}

#[test]
fn nodes_of_static_pools_stay() {
    let mut cluster = cluster(&[], "");
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "fixed"},
        "spec": {"replicas": 1, "template": {"spec": {"requirements": []}}},
    });
    let class = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"});
    merge(&mut pool, &json!({"spec": {"template": {"spec": {"nodeClassRef": class}}}}));
    cluster.apply(&pool.to_string());
    add_node(&cluster, "n1", "fixed", &json!({}), &json!({}));
    run(&mut cluster, 60);
    assert_eq!(left(&cluster, &["fixed"]), [1]);
}
