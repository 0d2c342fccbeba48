//! NodePools in a cluster.

use std::time::Duration;

use serde_json::json;

use super::registration_health::Health;
use crate::testing::{Logged, NODE_POOL, Operated, node_objects};

const NODE: &str = "
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {karpenter.sh/nodepool: default, karpenter.sh/registered: 'true', karpenter.sh/initialized: 'true',
    node.kubernetes.io/instance-type: c-4x-amd64-linux}
spec: {providerID: kwok://n1}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}, allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
";

const CLAIM: &str = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: c, labels: {karpenter.sh/nodepool: default}}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
status: {providerID: 'kwok://n1', capacity: {cpu: 3, memory: 8Gi, pods: 100}, allocatable: {cpu: 3}}
";

const POOL: &str = "nodepools/default";

fn cluster() -> Operated {
    let mut cluster = Operated::by(super::controllers);
    cluster.apply(NODE_POOL);
    cluster.settle();
    cluster
}

#[test]
fn a_sound_pool_becomes_ready_and_is_stamped() {
    let cluster = cluster();
    assert_eq!(cluster.condition(POOL, "Ready"), "True Ready");
    assert_eq!(cluster.condition(POOL, "NodeRegistrationHealthy"), "Unknown AwaitingReconciliation");
    let pool = cluster.ours(POOL);
    assert_eq!(pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash"], "12745407319442031341");
    assert_eq!(pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash-version"], "v3");
    assert_eq!(pool["status"]["nodes"], 0);
    assert_eq!(pool["status"]["resources"]["cpu"], "0");
}

#[test]
fn a_pool_follows_its_node_class_and_its_own_changes() {
    let mut cluster = cluster();
    let class = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default";
    cluster.delete(class);
    cluster.settle();
    assert_eq!(cluster.condition(POOL, "NodeClassReady"), "False NodeClassNotFound");
    assert_eq!(cluster.condition(POOL, "Ready"), "False UnhealthyDependents");
    cluster.apply(crate::testing::NODE_CLASS);
    cluster.settle();
    assert_eq!(cluster.condition(POOL, "Ready"), "True Ready");
    let taints =
        json!([{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]);
    let change = json!({"spec": {"template": {"spec": {"taints": taints}}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    cluster.settle();
    assert_eq!(cluster.condition(POOL, "ValidationSucceeded"), "False NodePoolValidationFailed");
    let annotations = &cluster.ours(POOL)["metadata"]["annotations"];
    assert_ne!(annotations["karpenter.sh/nodepool-hash"], "12745407319442031341");
}

#[test]
fn a_pool_of_another_cloud_is_left_alone() {
    let mut cluster = Operated::by(super::controllers);
    let foreign = NODE_POOL.replace("karpenter.kwok.sh", "karpenter.example.com");
    cluster.apply(&foreign.replace("KWOKNodeClass", "Other"));
    cluster.settle();
    let pool = cluster.ours(POOL);
    assert!(pool["status"]["conditions"].is_null() && pool["metadata"]["annotations"].is_null(), "{pool}");
}

#[test]
fn a_pool_has_what_its_claims_have_until_their_nodes_know_better() {
    let mut cluster = cluster();
    cluster.apply(CLAIM);
    cluster.settle();
    let counted = |cluster: &Operated| {
        let status = &cluster.ours(POOL)["status"];
        (status["nodes"].as_i64().unwrap(), status["resources"]["cpu"].as_str().unwrap().to_owned())
    };
    assert_eq!(counted(&cluster), (1, "3".to_owned()));
    cluster.apply(NODE);
    cluster.settle();
    assert_eq!(counted(&cluster), (1, "4".to_owned()));
    cluster.delete("/apis/karpenter.sh/v1/nodeclaims/c");
    cluster.delete("/api/v1/nodes/n1");
    cluster.settle();
    assert_eq!(counted(&cluster), (0, "0".to_owned()));
}

#[test]
fn pools_are_counted_apart() {
    let mut cluster = cluster();
    cluster.apply(&NODE_POOL.replace("name: default}\nspec", "name: other}\nspec"));
    let fixed = NODE_POOL.replace("name: default}\nspec:", "name: fixed}\nspec:\n  replicas: 1");
    cluster.apply(&fixed);
    for (name, pool) in [("a", "default"), ("b", "default"), ("c", "other"), ("d", "fixed")] {
        let claim = CLAIM
            .replace("name: c,", &format!("name: {name},"))
            .replace("kwok://n1", &format!("kwok://{name}"));
        cluster.apply(&claim.replace("nodepool: default", &format!("nodepool: {pool}")));
    }
    cluster.settle();
    let nodes = |pool: &str| cluster.ours(&format!("nodepools/{pool}"))["status"]["nodes"].clone();
    assert_eq!([nodes("default"), nodes("other"), nodes("fixed")], [json!(2), json!(1), json!(1)]);
}

#[test]
fn a_budget_that_cannot_be_read_affects_its_own_pool_only_and_is_logged_once() {
    let logged = Logged::start();
    let mut cluster = Operated::by(|context| {
        let mut all = super::controllers(context);
        all.extend(crate::disruption::controllers(context));
        all.extend(crate::provisioner::controllers(context));
        all
    });
    let wrong = "spec:\n  disruption: {budgets: [{nodes: '1'}, {nodes: '1', schedule: '99 99 * * xyz', duration: 1h}]}";
    cluster.apply(&NODE_POOL.replace("spec:\n  template", &format!("{wrong}\n  template")));
    cluster.apply(&NODE_POOL.replace("name: default}\nspec", "name: other}\nspec"));
    for (name, pool) in [("n1", "default"), ("n2", "other")] {
        let objects = node_objects(name, pool, &json!({}), &json!({}));
        for (mut object, version) in objects.into_iter().zip(["v1", "karpenter.sh/v1"]) {
            object["apiVersion"] = version.into();
            object["metadata"].as_object_mut().unwrap().remove("uid");
            cluster.apply(&object.to_string());
        }
    }
    cluster.run_for(Duration::from_mins(2));
    assert_eq!(cluster.condition(POOL, "Ready"), "True Ready");
    assert_eq!(cluster.condition(POOL, "BudgetsValid"), "False InvalidBudgets");
    assert_eq!(cluster.condition("nodepools/other", "BudgetsValid"), "");
    // Only the other pool loses its empty node.
    let names = |cluster: &Operated| -> Vec<String> {
        cluster.claims().iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&cluster), ["claim-n1"]);
    // Pods of this pool get their nodes.
    cluster.apply(
        &json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "default"},
            "spec": {"nodeSelector": {"karpenter.sh/nodepool": "default"}, "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "6"}}},
            ]},
        })
        .to_string(),
    );
    cluster.run_for(Duration::from_secs(20));
    assert_eq!(cluster.claims().len(), 2);
    let lines = logged.with("detected disruption budget errors");
    assert!(lines.len() == 1 && lines[0].contains("99 99 * * xyz"), "{lines:#?}");
    let told = cluster.context.events.published();
    let told: Vec<&str> =
        told.iter().filter(|it| &*it.reason == "InvalidBudgets").map(|it| &*it.message).collect();
    assert!(told.len() == 1 && told[0].contains("budgets[1].schedule"), "{told:?}");
    // Once it can be read, the pool looks like any other and its nodes may go.
    cluster.patch(
        "/apis/karpenter.sh/v1/nodepools/default",
        &json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}),
    );
    cluster.settle();
    assert_eq!(cluster.condition(POOL, "BudgetsValid"), "");
    assert_eq!(logged.with("disruption budgets can be read again").len(), 1);
}

#[test]
fn a_process_believes_what_the_condition_of_a_pool_says_of_its_nodes() {
    for (status, expected) in [("False", Health::Unhealthy), ("True", Health::Healthy)] {
        let mut cluster = cluster();
        let uid = cluster.ours(POOL)["metadata"]["uid"].as_str().unwrap().to_owned();
        assert_eq!(cluster.context.registrations.health(&uid), Health::Unknown);
        // As if another process had written it before this one began.
        let mut conditions = cluster.ours(POOL)["status"]["conditions"].as_array().unwrap().clone();
        let health = conditions.iter_mut().find(|it| it["type"] == "NodeRegistrationHealthy").unwrap();
        health["status"] = status.into();
        health["reason"] = "Written".into();
        let change = json!({"status": {"conditions": conditions}});
        cluster.patch("/apis/karpenter.sh/v1/nodepools/default/status", &change);
        cluster.settle();
        assert_eq!(cluster.context.registrations.health(&uid), expected);
        assert!(cluster.condition(POOL, "NodeRegistrationHealthy").starts_with(status));
    }
}

#[test]
fn values_that_do_not_exist_are_logged_once_where_others_do() {
    let mut cluster = Operated::by(super::controllers);
    let logged = Logged::start();
    let values = json!(["spot", "sport"]);
    let requirements = json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": values}]);
    cluster.apply(NODE_POOL);
    let change = json!({"spec": {"template": {"spec": {"requirements": requirements}}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    cluster.settle();
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &json!({"metadata": {"labels": {"a": "b"}}}));
    cluster.settle();
    let lines = logged.with("values that do not exist");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("ERROR") && lines[0].contains("values=karpenter.sh/capacity-type=sport"),
        "{lines:?}"
    );
    assert_eq!(cluster.condition(POOL, "ValidationSucceeded"), "True ValidationSucceeded");
}
