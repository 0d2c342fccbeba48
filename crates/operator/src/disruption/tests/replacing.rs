//! Drifted nodes are replaced, in a cluster.

use std::time::Duration;

use api::names::metrics::{
    DISRUPTION_DECISIONS, DISRUPTION_DECISIONS_BY_NODEPOOL, DISRUPTION_ELIGIBLE_NODES,
    DISRUPTION_QUEUE_FAILURES, NODECLAIMS_CREATED, NODECLAIMS_DISRUPTED, NODEPOOLS_ALLOWED_DISRUPTIONS,
    NODEPOOLS_NODES_CONSUMING_BUDGETS,
};
use embedded::faults::{Fault, Rule};

use super::cluster::{CLAIMS, add_node, cluster, is_tainted, pod_asking, run};
use super::decided::drifted;
use super::*;
use crate::testing::{Operated, merge};

const SINCE: &str = "2026-01-01T00:10:00Z";

/// A cluster with some drifted nodes, each with a pod that asks for three of its four processors.
fn drifting(budget: &str, nodes: &[&str]) -> Operated {
    let cluster = cluster(budget, &[]);
    for node in nodes {
        add_node(&cluster, node, &json!({}), &drifted(SINCE));
        cluster.apply(&pod_asking(&format!("on-{node}"), node, "3").to_string());
    }
    cluster
}

/// The claims that are not of the nodes that were there at first.
pub(super) fn new_claims(cluster: &Operated) -> Vec<String> {
    let names = cluster.claims().into_iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| !name.starts_with("claim-")).collect()
}

/// Makes a claim one of a node that is up.
pub(super) fn bring_up(cluster: &Operated, claim: &str) {
    let id = format!("kwok://{claim}");
    cluster.patch(&format!("{CLAIMS}/{claim}/status"), &json!({"status": {"providerID": id}}));
    let mut conditions = drifted(SINCE)["status"]["conditions"].as_array().unwrap().clone();
    conditions.truncate(3);
    cluster.patch(&format!("{CLAIMS}/{claim}/status"), &json!({"status": {"conditions": conditions}}));
}

fn told(cluster: &Operated, text: &str) -> bool {
    cluster.context.events.published().iter().any(|event| event.message == text)
}

#[test]
fn a_drifted_node_goes_once_its_replacement_is_up() {
    let mut cluster = drifting("100%", &["n1"]);
    run(&mut cluster, 5);
    let [new] = new_claims(&cluster).try_into().unwrap();
    assert!(is_tainted(&cluster, "n1"));
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "True Drifted");
    run(&mut cluster, 120);
    assert_eq!(cluster.claims().len(), 2);
    assert!(is_tainted(&cluster, "n1"));
    assert!(told(&cluster, "Launching NodeClaim: Drifted"));
    assert!(told(&cluster, "Waiting on readiness to continue disruption"));
    bring_up(&cluster, &new);
    run(&mut cluster, 3);
    assert_eq!(new_claims(&cluster), [new]);
    assert_eq!(cluster.claims().len(), 1);
    assert!(told(&cluster, "Disrupting Node: Drifted") && told(&cluster, "Disrupting NodeClaim: Drifted"));
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_QUEUE_FAILURES, &["replace", "drifted", ""]), None);
    assert_eq!(metrics.value(&DISRUPTION_DECISIONS, &["replace", "drifted", ""]), Some(1.0));
    let by_pool = ["default", "replace", "drifted", ""];
    assert_eq!(metrics.value(&DISRUPTION_DECISIONS_BY_NODEPOOL, &by_pool), Some(1.0));
    assert_eq!(metrics.value(&NODECLAIMS_CREATED, &["drifted", "default", "false"]), Some(1.0));
    let labels = ["drifted", "default", "spot", "", "graceful"];
    assert_eq!(metrics.value(&NODECLAIMS_DISRUPTED, &labels), Some(1.0));
}

#[test]
fn a_node_whose_replacement_is_lost_is_as_before_and_left_alone_for_a_minute() {
    let mut cluster = drifting("100%", &["n1"]);
    run(&mut cluster, 5);
    cluster.delete(&format!("{CLAIMS}/{}", new_claims(&cluster)[0]));
    run(&mut cluster, 5);
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "");
    assert!(!cluster.context.cluster.read().is_marked("kwok://n1"));
    let failures = cluster.context.metrics.value(&DISRUPTION_QUEUE_FAILURES, &["replace", "drifted", ""]);
    assert_eq!(failures, Some(1.0));
    run(&mut cluster, 50);
    assert_eq!(cluster.claims().len(), 1);
    assert_eq!(cluster.context.metrics.value(&DISRUPTION_ELIGIBLE_NODES, &["drifted"]), Some(1.0));
    run(&mut cluster, 25);
    assert_eq!(new_claims(&cluster).len(), 1);
    assert!(is_tainted(&cluster, "n1"));
}

#[test]
fn a_replacement_that_never_comes_up_is_given_up_after_ten_minutes_and_deleted() {
    let mut cluster = drifting("100%", &["n1"]);
    run(&mut cluster, 9 * 60);
    assert!(is_tainted(&cluster, "n1"));
    run(&mut cluster, 80);
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(cluster.claims().len(), 1);
    assert!(!cluster.context.cluster.read().is_marked("kwok://n1"));
}

#[test]
fn a_replacement_on_which_only_the_pods_that_stay_were_expected_goes() {
    for waits in [false, true] {
        let mut cluster = drifting("100%", &["n1"]);
        run(&mut cluster, 5);
        let [new] = new_claims(&cluster).try_into().unwrap();
        let id = format!("kwok://{new}");
        cluster.patch(&format!("{CLAIMS}/{new}/status"), &json!({"status": {"providerID": id}}));
        cluster.apply(&pod_asking("waits", "", "1").to_string());
        run(&mut cluster, 9 * 60 + 50);
        // So does the provisioner while it sees the node as leaving.
        let until = cluster.context.now() + jiff::SignedDuration::from_secs(60);
        cluster.context.cluster.update(|state| {
            state.nominate(&id, until);
            let name = if waits { "waits" } else { "on-n1" };
            state.record_claim(&::cluster::state::Key::new("default", name), &new);
        });
        run(&mut cluster, 20);
        assert!(!is_tainted(&cluster, "n1"));
        assert_eq!(new_claims(&cluster).len(), usize::from(waits), "{waits}");
    }
}

#[test]
fn a_replacement_that_has_pods_by_then_is_kept() {
    let mut cluster = drifting("100%", &["n1"]);
    run(&mut cluster, 5);
    let [new] = new_claims(&cluster).try_into().unwrap();
    let id = format!("kwok://{new}");
    cluster.patch(&format!("{CLAIMS}/{new}/status"), &json!({"status": {"providerID": id}}));
    let [mut node, _] = node_objects("late", "default", &json!({"spec": {"providerID": id}}), &json!({}));
    merge(
        &mut node,
        &json!({"apiVersion": "v1", "metadata": {"labels": {"karpenter.sh/initialized": "false"}}}),
    );
    node["metadata"].as_object_mut().unwrap().remove("uid");
    cluster.apply(&node.to_string());
    cluster.apply(&pod_asking("early", "late", "1").to_string());
    run(&mut cluster, 10 * 60 + 10);
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(new_claims(&cluster), [new]);
}

#[test]
fn replacements_that_cannot_be_created_leave_everything_as_it_was() {
    let mut cluster = drifting("100%", &["n1"]);
    cluster.faults.set_rules(vec![Rule::on("create", "nodeclaims", 1.0, Fault::InternalError)]);
    run(&mut cluster, 5);
    assert!(!is_tainted(&cluster, "n1"));
    assert_eq!(cluster.condition("nodeclaims/claim-n1", "DisruptionReason"), "");
    cluster.faults.set_rules(Vec::new());
    run(&mut cluster, 50);
    assert_eq!(cluster.claims().len(), 1);
    run(&mut cluster, 20);
    assert_eq!(cluster.claims().len(), 2);
}

#[test]
fn nothing_is_launched_for_a_node_that_cannot_be_tainted() {
    let mut cluster = drifting("100%", &["n1"]);
    cluster.faults.set_rules(vec![Rule::on("patch", "nodes", 1.0, Fault::InternalError)]);
    run(&mut cluster, 20);
    assert_eq!(cluster.claims().len(), 1);
    assert!(!is_tainted(&cluster, "n1") && !cluster.context.cluster.read().is_marked("kwok://n1"));
    let decided = cluster.context.metrics.value(&DISRUPTION_DECISIONS, &["replace", "drifted", ""]);
    assert_eq!(decided, None);
}

#[test]
fn a_drifted_node_that_needs_no_replacement_is_counted_as_deleted() {
    let mut cluster = cluster("100%", &["n2"]);
    add_node(&cluster, "n1", &json!({}), &drifted(SINCE));
    for node in ["n1", "n2"] {
        cluster.apply(&pod_asking(&format!("on-{node}"), node, "1").to_string());
    }
    run(&mut cluster, 5);
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_DECISIONS, &["delete", "drifted", ""]), Some(1.0));
    assert!(cluster.get(&format!("{CLAIMS}/claim-n1")).is_none());
}

/// Lets time pass in which new claims get an instance, but no node.
fn launched(cluster: &mut Operated, seconds: u64) {
    for _ in 0..seconds {
        for new in new_claims(cluster) {
            let status = json!({"status": {"providerID": format!("kwok://{new}")}});
            cluster.patch(&format!("{CLAIMS}/{new}/status"), &status);
        }
        run(cluster, 1);
    }
}

#[test]
fn what_budgets_allow_and_what_they_have_spent_is_told() {
    let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    let mut cluster = drifting("30%", &names.iter().map(String::as_str).collect::<Vec<_>>());
    run(&mut cluster, 2);
    let told = |cluster: &Operated| {
        let labels = ["default", "drifted"];
        let metrics = &cluster.context.metrics;
        (
            metrics.value(&NODEPOOLS_ALLOWED_DISRUPTIONS, &labels),
            metrics.value(&NODEPOOLS_NODES_CONSUMING_BUDGETS, &labels),
        )
    };
    assert_eq!(told(&cluster), (Some(3.0), Some(0.0)));
    launched(&mut cluster, 30);
    assert_eq!(told(&cluster), (Some(3.0), Some(3.0)));
    let decided = cluster.context.metrics.value(&DISRUPTION_DECISIONS, &["replace", "drifted", ""]);
    assert_eq!((decided, new_claims(&cluster).len()), (Some(3.0), 3));
}

#[test]
fn every_pool_is_told_what_its_own_budgets_allow_and_have_spent() {
    let mut cluster = drifting("100%", &[]);
    for (pool, budget) in [("p", "30%"), ("q", "1"), ("r", "0")] {
        let disruption = format!("spec:\n  disruption: {{budgets: [{{nodes: '{budget}'}}]}}\n  template");
        let text = crate::testing::NODE_POOL.replace("spec:\n  template", &disruption);
        cluster.apply(&text.replace("metadata: {name: default}", &format!("metadata: {{name: {pool}}}")));
        for number in 0..4 {
            let mut node = node_objects(&format!("{pool}{number}"), pool, &json!({}), &drifted(SINCE));
            for (object, version) in node.iter_mut().zip(["v1", "karpenter.sh/v1"]) {
                object["apiVersion"] = version.into();
                object["metadata"].as_object_mut().unwrap().remove("uid");
                cluster.apply(&object.to_string());
            }
            cluster.apply(
                &pod_asking(&format!("on-{pool}{number}"), &format!("{pool}{number}"), "3").to_string(),
            );
        }
    }
    let told = |cluster: &Operated| {
        ["p", "q", "r"].map(|pool| {
            let value = |metric| cluster.context.metrics.value(metric, &[pool, "drifted"]);
            (value(&NODEPOOLS_ALLOWED_DISRUPTIONS), value(&NODEPOOLS_NODES_CONSUMING_BUDGETS))
        })
    };
    run(&mut cluster, 2);
    let none = Some(0.0);
    assert_eq!(told(&cluster), [(Some(2.0), none), (Some(1.0), none), (none, none)]);
    launched(&mut cluster, 30);
    assert_eq!(told(&cluster), [(Some(2.0), Some(2.0)), (Some(1.0), Some(1.0)), (none, none)]);
}

/// A drifted node whose pods need a new node each.
fn apart(cluster: &Operated) {
    add_node(cluster, "n1", &json!({}), &drifted(SINCE));
    for zone in ["a", "b", "c"] {
        let mut pod = pod_asking(zone, "n1", "1");
        let selector = json!({"topology.kubernetes.io/zone": format!("test-zone-{zone}")});
        merge(&mut pod, &json!({"spec": {"nodeSelector": selector}}));
        cluster.apply(&pod.to_string());
    }
}

#[test]
fn all_replacements_are_created_or_none() {
    let mut cluster = cluster("100%", &[]);
    cluster.faults.set_rules(vec![Rule::on("create", "nodeclaims", 0.5, Fault::InternalError)]);
    apart(&cluster);
    run(&mut cluster, 5);
    let created = cluster.context.metrics.value(&NODECLAIMS_CREATED, &["drifted", "default", "false"]);
    assert!(created.is_some_and(|created| created > 0.0 && created < 3.0), "{created:?}");
    assert_eq!(cluster.claims().len(), 1);
    assert!(!is_tainted(&cluster, "n1"));
}

#[test]
fn a_node_waits_for_all_of_its_replacements() {
    // In whatever order they come.
    for backwards in [false, true] {
        let mut cluster = cluster("100%", &[]);
        apart(&cluster);
        run(&mut cluster, 5);
        let mut new = new_claims(&cluster);
        assert_eq!(new.len(), 3);
        if backwards {
            new.reverse();
        }
        for claim in &new {
            assert!(is_tainted(&cluster, "n1"));
            assert_eq!(cluster.claims().len(), 4);
            bring_up(&cluster, claim);
            run(&mut cluster, 3);
        }
        assert_eq!(cluster.claims().len(), 3);
    }
}

#[test]
fn nodes_are_not_given_up_before_their_replacements_exist() {
    let mut cluster = drifting("100%", &["n1"]);
    let slow = Rule::on("create", "nodeclaims", 1.0, Fault::Delay(Duration::from_secs(30)));
    cluster.faults.set_rules(vec![slow]);
    run(&mut cluster, 10);
    // Whoever saw the node as leaving would launch another one for its pods.
    assert!(is_tainted(&cluster, "n1") && !cluster.context.cluster.read().is_marked("kwok://n1"));
    run(&mut cluster, 30);
    assert!(cluster.context.cluster.read().is_marked("kwok://n1"));
    assert_eq!(cluster.claims().len(), 2);
}

#[test]
fn drifted_nodes_are_replaced_one_after_the_other_and_never_more_than_the_budget_allows() {
    let mut cluster = drifting("2", &["n1", "n2", "n3", "n4"]);
    for _ in 0..120 {
        run(&mut cluster, 1);
        let names = ["n1", "n2", "n3", "n4"].into_iter();
        let claim = |name: &str| cluster.get(&format!("{CLAIMS}/claim-{name}"));
        let disrupted = names.filter(|name| claim(name).is_some() && is_tainted(&cluster, name)).count();
        assert!(disrupted <= 2, "{disrupted}");
        for new in new_claims(&cluster) {
            // A while after it was created.
            if cluster.ours(&format!("nodeclaims/{new}"))["status"]["providerID"].is_null() {
                run(&mut cluster, 1);
                bring_up(&cluster, &new);
            }
        }
    }
    assert_eq!(new_claims(&cluster).len(), 4);
    assert_eq!(cluster.claims().len(), 4);
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&DISRUPTION_DECISIONS, &["replace", "drifted", ""]), Some(4.0));
}
