//! Nodes that are hardly used, in a cluster.

use api::names::metrics::{
    DISRUPTION_COVERAGE, DISRUPTION_DECISIONS, DISRUPTION_ELIGIBLE_NODES, DISRUPTION_FAILED_VALIDATIONS,
    DISRUPTION_QUEUE_FAILURES, NODECLAIMS_DISRUPTED, SCHEDULER_PENDING_PODS_BY_ZONE,
    SCHEDULER_SCHEDULING_DURATION, SCHEDULER_UNSCHEDULABLE_PODS,
};

use super::cluster::{CLAIMS, add_node, cluster, is_tainted, pod_asking, run};
use super::replacing::{bring_up, new_claims};
use super::*;
use crate::testing::Operated;

const POOL: &str = "/apis/karpenter.sh/v1/nodepools/default";

/// A cluster with nodes of four processors, each with a pod that asks for some, if any.
fn used(budget: &str, nodes: &[(&str, &str)]) -> Operated {
    let cluster = cluster(budget, &[]);
    for (node, cpu) in nodes {
        add_node(&cluster, node, &json!({}), &json!({}));
        if cpu.is_empty() {
            continue;
        }
        cluster.apply(&pod_asking(&format!("on-{node}"), node, cpu).to_string());
    }
    cluster
}

/// A change: a pod or a node that must not be disturbed.
fn protected(value: &str) -> Value {
    json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}})
}

fn decided(cluster: &Operated, labels: [&str; 3]) -> Option<f64> {
    cluster.context.metrics.value(&DISRUPTION_DECISIONS, &labels)
}

fn failed(cluster: &Operated, kind: &str) -> Option<f64> {
    cluster.context.metrics.value(&DISRUPTION_FAILED_VALIDATIONS, &[kind])
}

fn rejections(cluster: &Operated) -> Vec<String> {
    let told = cluster.context.events.published();
    let told = told.iter().filter(|event| &*event.reason == "ConsolidationRejected");
    told.map(|event| event.message.split(" (savings").next().unwrap().to_owned()).collect()
}

#[test]
fn a_node_whose_pods_fit_elsewhere_goes_after_fifteen_seconds() {
    let mut cluster = used("100%", &[("n1", "1"), ("n2", "2")]);
    run(&mut cluster, 14);
    assert!(!is_tainted(&cluster, "n1") && !is_tainted(&cluster, "n2"));
    run(&mut cluster, 12);
    assert!(is_tainted(&cluster, "n1") && !is_tainted(&cluster, "n2"));
    assert_eq!(cluster.claims().len(), 1);
    assert_eq!(decided(&cluster, ["delete", "underutilized", "single"]), Some(1.0));
    let labels = ["underutilized", "default", "spot", "when_empty_or_underutilized", "graceful"];
    assert_eq!(cluster.context.metrics.value(&NODECLAIMS_DISRUPTED, &labels), Some(1.0));
    let told = cluster.context.events.published();
    assert!(told.iter().any(|event| event.message == "Disrupting Node: Underutilized"));
}

#[test]
fn what_is_simulated_is_measured_as_it_is_for_pods_that_wait() {
    let measured = |cluster: &Operated| {
        let metrics = &cluster.context.metrics;
        let of = |metric| metrics.value(metric, &["disruption"]);
        (of(&SCHEDULER_SCHEDULING_DURATION), of(&SCHEDULER_UNSCHEDULABLE_PODS))
    };
    // Where there is nothing to look at, nothing is simulated.
    let mut cluster = used("100%", &[]);
    run(&mut cluster, 26);
    assert_eq!(measured(&cluster), (None, None));
    let mut cluster = used("100%", &[("n1", "1"), ("n2", "2")]);
    let mut vain = pod_asking("vain", "", "1000");
    vain["spec"].as_object_mut().unwrap().remove("nodeName");
    cluster.apply(&vain.to_string());
    let conditions = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    cluster
        .patch("/api/v1/namespaces/default/pods/vain/status", &json!({"status": {"conditions": conditions}}));
    run(&mut cluster, 14);
    let (decided, pods) = measured(&cluster);
    // For several nodes, and for single ones.
    assert_eq!((decided, pods), (Some(2.0), Some(1.0)));
    let page = cluster.block_on(async { cluster.context.metrics.page() });
    let depths = page.lines().filter(|line| {
        line.starts_with("karpenter_scheduler_queue_depth{controller=\"disruption\",") && line.ends_with(" 1")
    });
    assert_eq!(depths.count(), 1, "{page}");
    let zones = cluster.context.metrics.value(&SCHEDULER_PENDING_PODS_BY_ZONE, &["disruption", "flexible"]);
    assert_eq!(zones, Some(1.0));
    run(&mut cluster, 4);
    let (validated, _) = measured(&cluster);
    assert!(validated >= Some(3.0), "{validated:?}");
}

#[test]
fn how_many_nodes_were_looked_at_is_told() {
    let coverage =
        |cluster: &Operated, kind: &str| cluster.context.metrics.value(&DISRUPTION_COVERAGE, &[kind]);
    let mut cluster = used("1", &[("n1", "1"), ("n2", "2"), ("n3", "3")]);
    let finalizers = json!({"metadata": {"finalizers": ["test/stays"]}});
    cluster.patch(&format!("{CLAIMS}/claim-n1"), &finalizers);
    cluster.patch(POOL, &json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}));
    run(&mut cluster, 10);
    assert_eq!(["multi", "single"].map(|kind| coverage(&cluster, kind)), [Some(1.0); 2]);
    cluster.patch(POOL, &json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}));
    run(&mut cluster, 40);
    // The first one goes, and the others of its pool are left alone meanwhile.
    assert!(is_tainted(&cluster, "n1"));
    assert_eq!(["multi", "single"].map(|kind| coverage(&cluster, kind)), [Some(0.0); 2]);
}

/// A cluster with a node that is too large for its pod.
fn too_large() -> Operated {
    let cluster = cluster("100%", &[]);
    let on_demand = json!({"metadata": {"labels": {"karpenter.sh/capacity-type": "on-demand"}}});
    add_node(&cluster, "n1", &on_demand, &on_demand);
    cluster.apply(&pod_asking("a", "n1", "500m").to_string());
    cluster
}

#[test]
fn a_pool_in_which_no_cheaper_node_comes_up_is_left_alone_for_longer_each_time() {
    let mut cluster = too_large();
    let mut launched = Vec::new();
    for minute in 0..60 {
        run(&mut cluster, 60);
        if let [new] = new_claims(&cluster).as_slice()
            && !launched.iter().any(|(_, name)| name == new)
        {
            launched.push((minute, new.clone()));
        }
    }
    let waits: Vec<i32> = launched.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    // Ten minutes each until it is given up, and 1, 2, 4 and 8 minutes in between.
    assert!(launched.len() == 5 && waits.is_sorted() && waits[0] >= 11 && waits[3] >= 18, "{launched:?}");
}

#[test]
fn a_replacement_that_is_lost_counts_for_the_kind_of_consolidation() {
    // not for what was done.
    let mut cluster = too_large();
    run(&mut cluster, 26);
    cluster.delete(&format!("{CLAIMS}/{}", new_claims(&cluster)[0]));
    run(&mut cluster, 5);
    let labels = ["replace", "underutilized", "single"];
    assert_eq!(cluster.context.metrics.value(&DISRUPTION_QUEUE_FAILURES, &labels), Some(1.0));
    assert!(!is_tainted(&cluster, "n1"));
}

#[test]
fn a_node_that_is_too_large_goes_when_a_cheaper_one_is_up() {
    let mut cluster = too_large();
    run(&mut cluster, 14);
    assert!(new_claims(&cluster).is_empty());
    run(&mut cluster, 12);
    let [new] = new_claims(&cluster).try_into().unwrap();
    assert!(is_tainted(&cluster, "n1"));
    assert_eq!(cluster.claims().len(), 2);
    bring_up(&cluster, &new);
    run(&mut cluster, 3);
    assert_eq!(new_claims(&cluster), [new]);
    assert_eq!(cluster.claims().len(), 1);
    assert_eq!(decided(&cluster, ["replace", "underutilized", "single"]), Some(1.0));
}

#[test]
fn what_took_the_place_of_others_says_until_when_it_pays_for_itself() {
    let mut cluster = cluster("100%", &[]);
    let on_demand = json!({"metadata": {"labels": {"karpenter.sh/capacity-type": "on-demand"}}});
    add_node(&cluster, "n1", &on_demand, &on_demand);
    cluster.apply(&pod_asking("a", "n1", "500m").to_string());
    run(&mut cluster, 26);
    let [new] = new_claims(&cluster).try_into().unwrap();
    let noted = |cluster: &Operated| {
        let claim = cluster.ours(&format!("nodeclaims/{new}"));
        claim["metadata"]["annotations"]["karpenter.sh/nodeclaim-payback-timestamp"].clone()
    };
    run(&mut cluster, 120);
    assert_eq!(noted(&cluster), Value::Null);
    bring_up(&cluster, &new);
    run(&mut cluster, 3);
    let until: jiff::Timestamp = noted(&cluster).as_str().unwrap().parse().unwrap();
    let left = until.duration_since(cluster.now()).as_secs();
    assert!((1..3600).contains(&left), "{left} s");
    // It has its time, whatever happens later.
    run(&mut cluster, 60);
    assert_eq!(noted(&cluster), until.to_string());
}

#[test]
fn a_pod_that_comes_meanwhile_and_must_not_be_disturbed_saves_its_node_until_it_leaves() {
    let mut cluster = used("100%", &[("n1", "1"), ("n2", "2")]);
    run(&mut cluster, 10);
    let mut late = pod_asking("late", "n1", "100m");
    crate::testing::merge(&mut late, &protected("true"));
    cluster.apply(&late.to_string());
    cluster.patch("/api/v1/nodes/n2", &protected("true"));
    run(&mut cluster, 60);
    assert!(!is_tainted(&cluster, "n1") && !is_tainted(&cluster, "n2"));
    assert_eq!(failed(&cluster, "single"), Some(1.0));
    assert_eq!(rejections(&cluster), ["Consolidation rejected: delete: [n1], reason: churn"; 2]);
    // It was not taken as settled: it goes once it may.
    cluster.delete("/api/v1/namespaces/default/pods/late");
    run(&mut cluster, 30);
    assert!(is_tainted(&cluster, "n1"));
}

#[test]
fn a_budget_that_is_used_up_meanwhile_is_obeyed_and_tried_again() {
    let mut cluster = used("100%", &[("n1", "1"), ("n2", "2")]);
    run(&mut cluster, 10);
    cluster.patch(POOL, &json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}));
    run(&mut cluster, 30);
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(failed(&cluster, "single"), Some(1.0));
    assert_eq!(rejections(&cluster), ["Consolidation rejected: delete: [n1], reason: budget"; 2]);
    cluster.patch(POOL, &json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}));
    run(&mut cluster, 30);
    assert!(is_tainted(&cluster, "n1"));
}

#[test]
fn a_node_that_turns_out_to_be_better_waits_as_well() {
    let mut cluster = used("1", &[("n1", "500m"), ("n2", "500m"), ("n3", "1")]);
    cluster.patch("/api/v1/nodes/n3", &protected("true"));
    for (pod, node) in [("a", "n1"), ("b", "n2"), ("c", "n2")] {
        cluster.apply(&pod_asking(pod, node, "500m").to_string());
    }
    run(&mut cluster, 10);
    for pod in ["b", "c"] {
        cluster.delete(&format!("/api/v1/namespaces/default/pods/{pod}"));
    }
    run(&mut cluster, 15);
    assert_eq!(["n1", "n2"].map(|node| is_tainted(&cluster, node)), [false, false]);
    run(&mut cluster, 15);
    assert_eq!(["n1", "n2"].map(|node| is_tainted(&cluster, node)), [false, true]);
    assert_eq!(rejections(&cluster), Vec::<String>::new());
}

#[test]
fn a_node_goes_no_sooner_than_fifteen_seconds_after_it_was_chosen() {
    let nodes = [("n1", "500m"), ("n2", "500m"), ("n3", "1"), ("n4", "500m")];
    let mut cluster = used("1", &nodes);
    cluster.patch("/api/v1/nodes/n3", &protected("true"));
    for (pod, node) in [("a", "n1"), ("b", "n2"), ("c", "n2"), ("d", "n4"), ("e", "n4"), ("f", "n4")] {
        let mut pod = pod_asking(pod, node, "500m");
        if pod["metadata"]["name"] == "f" {
            let cheap = json!({"controller.kubernetes.io/pod-deletion-cost": "-100000000"});
            pod["metadata"]["annotations"] = cheap;
        }
        cluster.apply(&pod.to_string());
    }
    let delete = |cluster: &Operated, pods: &[&str]| {
        for pod in pods {
            cluster.delete(&format!("/api/v1/namespaces/default/pods/{pod}"));
        }
    };
    run(&mut cluster, 10);
    delete(&cluster, &["b", "c"]);
    run(&mut cluster, 15);
    assert_eq!(nodes.map(|(node, _)| is_tainted(&cluster, node)), [false; 4]);
    // The second node waits instead of the first one. Now a third one is the best.
    delete(&cluster, &["on-n4", "d", "e"]);
    run(&mut cluster, 15);
    assert_eq!(nodes.map(|(node, _)| is_tainted(&cluster, node)), [false, true, false, false]);
}

#[test]
fn several_nodes_go_together_and_count_together_when_they_do_not() {
    let nodes = [("n1", "1"), ("n2", "1"), ("n3", "1")];
    let mut cluster = used("100%", &nodes);
    run(&mut cluster, 14);
    assert!(nodes.iter().all(|(name, _)| !is_tainted(&cluster, name)));
    run(&mut cluster, 12);
    assert_eq!(decided(&cluster, ["delete", "underutilized", "multi"]), Some(1.0));
    assert_eq!(nodes.map(|(name, _)| is_tainted(&cluster, name)), [true, true, false]);
    let mut cluster = used("100%", &nodes);
    run(&mut cluster, 10);
    cluster.patch(POOL, &json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}));
    run(&mut cluster, 30);
    assert_eq!(failed(&cluster, "multi"), Some(2.0));
    assert_eq!(decided(&cluster, ["delete", "underutilized", "multi"]), None);
    assert_eq!(rejections(&cluster).len(), 4);
}

#[test]
fn where_several_cannot_go_together_any_more_one_does() {
    let nodes = [("n1", "1"), ("n2", "1"), ("n3", "1")];
    let mut cluster = used("100%", &nodes);
    run(&mut cluster, 10);
    // There is room for one of them only from now on.
    cluster.apply(&pod_asking("late", "n3", "2").to_string());
    run(&mut cluster, 60);
    assert_eq!(decided(&cluster, ["delete", "underutilized", "multi"]), None);
    assert_eq!(decided(&cluster, ["delete", "underutilized", "single"]), Some(1.0));
    assert_eq!(rejections(&cluster).len(), 4);
    assert!(rejections(&cluster)[0].ends_with("reason: scheduling"));
    // What the scheduler thinks is no fault of the nodes.
    assert_eq!(failed(&cluster, "multi"), None);
}

#[test]
fn nodes_count_while_their_pods_may_be_moved() {
    let mut cluster = used("0", &[("n1", "1")]);
    cluster.patch("/api/v1/namespaces/default/pods/on-n1", &protected("true"));
    run(&mut cluster, 12);
    let eligible =
        |cluster: &Operated| cluster.context.metrics.value(&DISRUPTION_ELIGIBLE_NODES, &["underutilized"]);
    assert_eq!(eligible(&cluster), Some(0.0));
    cluster.patch("/api/v1/namespaces/default/pods/on-n1", &protected("false"));
    run(&mut cluster, 15);
    assert_eq!(eligible(&cluster), Some(1.0));
}

#[test]
fn several_nodes_that_become_one_are_counted_together() {
    let mut cluster = cluster("100%", &[]);
    let on_demand = json!({"metadata": {"labels": {"karpenter.sh/capacity-type": "on-demand"}}});
    for node in ["n1", "n2", "n3"] {
        add_node(&cluster, node, &on_demand, &on_demand);
        cluster.apply(&pod_asking(&format!("on-{node}"), node, "1500m").to_string());
    }
    run(&mut cluster, 26);
    assert_eq!(decided(&cluster, ["replace", "underutilized", "multi"]), Some(1.0));
    assert_eq!(new_claims(&cluster).len(), 1);
    assert!(["n1", "n2", "n3"].iter().all(|node| is_tainted(&cluster, node)));
}

#[test]
fn whatever_comes_in_between_counts_for_each_node_and_is_looked_at_again() {
    // Nodes with what their pods ask for, and how many of them are to go.
    let kinds = [
        ("empty", "empty", &[("n1", "")][..], 1.0),
        ("underutilized", "single", &[("n1", "1"), ("n2", "2")], 1.0),
        ("underutilized", "multi", &[("n1", "1"), ("n2", "1"), ("n3", "1")], 2.0),
    ];
    let budget = |nodes: &str| json!({"spec": {"disruption": {"budgets": [{"nodes": nodes}]}}});
    for (reason, kind, nodes, count) in kinds {
        for cause in ["budget", "churn", "nomination"] {
            let mut cluster = used("100%", nodes);
            run(&mut cluster, 10);
            let protect = |cluster: &Operated, value: &str| {
                for (node, _) in nodes {
                    cluster.patch(&format!("/api/v1/nodes/{node}"), &protected(value));
                }
            };
            match cause {
                "budget" => drop(cluster.patch(POOL, &budget("0"))),
                "churn" => protect(&cluster, "true"),
                _ => {
                    let until = cluster.now() + jiff::SignedDuration::from_secs(30);
                    cluster.context.cluster.update(|state| {
                        for (node, _) in nodes {
                            state.nominate(&format!("kwok://{node}"), until);
                        }
                    });
                }
            }
            run(&mut cluster, 12);
            assert_eq!(failed(&cluster, kind), Some(count), "{kind} {cause}");
            assert_eq!(decided(&cluster, ["delete", reason, kind]), None, "{kind} {cause}");
            // It was not taken as settled.
            match cause {
                "budget" => drop(cluster.patch(POOL, &budget("100%"))),
                "churn" => protect(&cluster, "false"),
                _ => run(&mut cluster, 20),
            }
            run(&mut cluster, 40);
            assert_eq!(decided(&cluster, ["delete", reason, kind]), Some(1.0), "{kind} {cause}");
        }
    }
}
