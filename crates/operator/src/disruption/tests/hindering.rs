//! Nodes that cannot be drained any more once their replacement is up.

use embedded::faults::{Fault, Rule};

use super::cluster::{CLAIMS, add_node, cluster, is_tainted, pod_asking, run};
use super::decided::drifted;
use super::replacing::{bring_up, new_claims};
use super::*;
use crate::testing::{Operated, merge};

const POD: &str = "/api/v1/namespaces/default/pods/a";

/// A drifted node with a pod whose replacement is about to come up.
fn waiting(of_claim: &Value) -> (Operated, String) {
    let mut cluster = cluster("100%", &[]);
    let mut claim = drifted("2026-01-01T00:10:00Z");
    merge(&mut claim, of_claim);
    add_node(&cluster, "n1", &json!({}), &claim);
    let mut pod = pod_asking("a", "n1", "3");
    pod["metadata"]["labels"] = json!({"app": "a"});
    cluster.apply(&pod.to_string());
    run(&mut cluster, 10);
    let [new] = new_claims(&cluster).try_into().unwrap();
    assert!(is_tainted(&cluster, "n1"));
    (cluster, new)
}

fn protect(cluster: &Operated) {
    cluster.patch(POD, &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}));
}

fn budget(cluster: &Operated, spec: &Value) {
    let mut spec = spec.clone();
    spec["selector"] = json!({"matchLabels": {"app": "a"}});
    let object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"}, "spec": spec});
    cluster.apply(&object.to_string());
}

fn is_there(cluster: &Operated) -> bool {
    cluster.get("/apis/karpenter.sh/v1/nodeclaims/claim-n1").is_some()
}

fn blocked(cluster: &Operated) -> Vec<String> {
    let told = cluster.context.events.published();
    let told = told.iter().filter(|it| &*it.reason == "DisruptionBlocked" && &*it.about.name == "n1");
    told.map(|it| it.message.clone()).collect()
}

#[test]
fn a_node_whose_pod_asks_to_be_left_alone_meanwhile_is_as_before_and_nothing_is_left_of_its_replacement() {
    let (mut cluster, new) = waiting(&json!({}));
    protect(&cluster);
    bring_up(&cluster, &new);
    run(&mut cluster, 5);
    assert!(is_there(&cluster) && !is_tainted(&cluster, "n1"));
    assert_eq!(new_claims(&cluster), [""; 0]);
    assert_eq!(blocked(&cluster)[0], "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/a)");
    // It is no candidate for as long as its pod does not want.
    run(&mut cluster, 300);
    assert_eq!((new_claims(&cluster).len(), is_there(&cluster)), (0, true));
}

#[test]
fn a_node_that_is_protected_meanwhile_is_as_before_and_nothing_is_left_of_its_replacement() {
    // Whatever its pods say.
    for of_claim in [json!({}), json!({"spec": {"terminationGracePeriod": "1m"}})] {
        let (mut cluster, new) = waiting(&of_claim);
        let annotations = json!({"karpenter.sh/do-not-disrupt": "true"});
        cluster.patch("/api/v1/nodes/n1", &json!({"metadata": {"annotations": annotations}}));
        bring_up(&cluster, &new);
        run(&mut cluster, 5);
        assert!(is_there(&cluster) && !is_tainted(&cluster, "n1"));
        assert_eq!(new_claims(&cluster), [""; 0]);
        let text = "Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation";
        assert_eq!(blocked(&cluster)[0], text);
    }
}

#[test]
fn a_node_whose_replacement_is_lost_while_a_budget_keeps_it_is_as_before() {
    let (mut cluster, new) = waiting(&json!({}));
    budget(&cluster, &json!({"minAvailable": 1}));
    run(&mut cluster, 3);
    bring_up(&cluster, &new);
    run(&mut cluster, 10);
    assert!(is_tainted(&cluster, "n1"));
    cluster.delete(&format!("{CLAIMS}/{new}"));
    run(&mut cluster, 3);
    assert!(is_there(&cluster) && !is_tainted(&cluster, "n1"));
}

#[test]
fn a_node_whose_pods_have_only_so_much_time_goes_whatever_they_say() {
    let (mut cluster, new) = waiting(&json!({"spec": {"terminationGracePeriod": "1m"}}));
    protect(&cluster);
    bring_up(&cluster, &new);
    run(&mut cluster, 5);
    assert!(!is_there(&cluster));
}

#[test]
fn a_node_waits_for_a_budget_that_allows_nothing_at_the_moment() {
    let (mut cluster, new) = waiting(&json!({}));
    budget(&cluster, &json!({"minAvailable": 1}));
    run(&mut cluster, 3);
    bring_up(&cluster, &new);
    run(&mut cluster, 60);
    assert!(is_there(&cluster) && is_tainted(&cluster, "n1"));
    assert_eq!(new_claims(&cluster), [new]);
    assert_eq!(blocked(&cluster)[0], "Pdb prevents pod evictions (PodDisruptionBudget=[default/b])");
    budget(&cluster, &json!({"minAvailable": 0}));
    run(&mut cluster, 5);
    assert!(!is_there(&cluster));
}

#[test]
fn a_node_does_not_wait_for_a_budget_that_never_allows_anything() {
    let (mut cluster, new) = waiting(&json!({}));
    budget(&cluster, &json!({"maxUnavailable": 0}));
    run(&mut cluster, 3);
    bring_up(&cluster, &new);
    run(&mut cluster, 5);
    assert!(is_there(&cluster) && !is_tainted(&cluster, "n1"));
    assert_eq!(new_claims(&cluster), [""; 0]);
}

#[test]
fn of_empty_nodes_one_that_gets_a_pod_at_the_last_moment_stays_and_the_others_go() {
    let mut cluster = cluster("100%", &["n1", "n2"]);
    cluster.faults.set_rules(vec![Rule::on("delete", "nodeclaims", 1.0, Fault::InternalError)]);
    run(&mut cluster, 30);
    assert!(is_tainted(&cluster, "n1") && is_tainted(&cluster, "n2"));
    cluster.apply(&pod_asking("late", "n1", "4").to_string());
    cluster.faults.set_rules(Vec::new());
    run(&mut cluster, 5);
    assert!(is_there(&cluster) && !is_tainted(&cluster, "n1"));
    assert_eq!(cluster.claims().len(), 1);
}
