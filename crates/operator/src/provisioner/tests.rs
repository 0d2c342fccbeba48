//! The provisioner in a cluster.

use std::time::Duration;

use api::names::metrics::{
    NODECLAIMS_CREATED, PODS_SCHEDULING_DECISION_DURATION, SCHEDULER_IGNORED_PODS, SCHEDULER_QUEUE_DEPTH,
    SCHEDULER_SCHEDULING_DURATION, SCHEDULER_UNSCHEDULABLE_PODS,
};
use cluster::state::Key;
use runtime::Settings;
use runtime::settings::MinValuesPolicy;
use serde_json::{Value, json};
use testkit::World;

use crate::testing::{NODE_POOL, Operated, merge};

fn cluster() -> Operated {
    let cluster = Operated::by(|context| {
        let mut all = super::controllers(context);
        all.extend(crate::node_pool::controllers(context));
        all
    });
    cluster.apply(NODE_POOL);
    cluster
}

fn pod(name: &str, cpu: &str, change: &Value) -> String {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
    });
    merge(&mut pod, change);
    pod.to_string()
}

fn run(cluster: &mut Operated, seconds: u64) {
    cluster.run_for(Duration::from_secs(seconds));
}

/// The events about an object, as `Reason: message`.
fn told(cluster: &Operated, name: &str) -> Vec<String> {
    let published = cluster.context.events.published();
    let about = published.iter().filter(|event| *event.about.name == *name);
    about.map(|event| format!("{}: {}", event.reason, event.message)).collect()
}

/// Pretends that the cloud has launched a claim.
fn launch(cluster: &Operated, claim: &Value) -> String {
    launch_with(cluster, claim, "8")
}

/// As [`launch`], on a node with some processors.
fn launch_with(cluster: &Operated, claim: &Value, cpu: &str) -> String {
    let name = claim["metadata"]["name"].as_str().unwrap().to_owned();
    let amounts = json!({"cpu": cpu, "memory": "16Gi", "pods": "100", "ephemeral-storage": "20Gi"});
    let labels = json!({
        "node.kubernetes.io/instance-type": format!("c-{cpu}x-amd64-linux"), "topology.kubernetes.io/zone": "test-zone-a",
        "karpenter.sh/capacity-type": "spot", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    let path = format!("/apis/karpenter.sh/v1/nodeclaims/{name}");
    cluster.patch(&path, &json!({"metadata": {"labels": labels}}));
    let status = json!({"providerID": format!("kwok://{name}"), "capacity": amounts, "allocatable": amounts});
    cluster.patch(&format!("{path}/status"), &json!({"status": status}));
    name
}

#[test]
fn a_pod_without_a_node_gets_a_claim() {
    let mut cluster = cluster();
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 4);
    let claims = cluster.claims();
    assert_eq!(claims.len(), 1);
    let claim = &claims[0];
    let name = claim["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("default-"));
    assert_eq!(claim["metadata"]["labels"]["karpenter.sh/nodepool"], "default");
    assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "NodePool");
    assert_eq!(claim["spec"]["resources"]["requests"]["cpu"], "1");
    assert_eq!(told(&cluster, "a"), [format!("Nominated: Pod should schedule on: nodeclaim/{name}")]);
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&NODECLAIMS_CREATED, &["provisioned", "default", "false"]), Some(1.0));
    assert_eq!(metrics.value(&SCHEDULER_SCHEDULING_DURATION, &["provisioner"]), Some(1.0));
    assert_eq!(metrics.value(&PODS_SCHEDULING_DECISION_DURATION, &[]), Some(1.0));
    let state = cluster.context.cluster.read();
    let record = state.pod_record(&Key::new("default", "a")).unwrap();
    assert_eq!(record.claim.as_deref(), Some(name));
    assert!(record.schedulable.is_some() && record.schedulable_in_healthy_pool.is_none());
}

#[test]
fn pods_that_come_together_share_a_claim() {
    let mut cluster = cluster();
    for number in 0..10 {
        cluster.apply(&pod(&format!("a{number}"), "100m", &json!({})));
    }
    run(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 1);
}

#[test]
fn nothing_is_asked_for_twice() {
    let mut cluster = cluster();
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 60);
    // Nobody has launched the claim, and everybody waits for it.
    assert_eq!(cluster.claims().len(), 1);
    cluster.apply(&pod("b", "1", &json!({})));
    run(&mut cluster, 30);
    assert_eq!(cluster.claims().len(), 1);
    let name = launch(&cluster, &cluster.claims()[0]);
    run(&mut cluster, 30);
    // Both pods fit on what is on its way.
    assert_eq!(cluster.claims().len(), 1);
    assert!(told(&cluster, "b").contains(&format!("Nominated: Pod should schedule on: nodeclaim/{name}")));
    let state = cluster.context.cluster.read();
    assert!(state.is_nominated(&format!("kwok://{name}"), cluster.now()));
}

#[test]
fn a_pod_that_fits_nowhere_is_told_why_and_others_are_not_held_up() {
    let mut cluster = cluster();
    for number in 0..5 {
        cluster.apply(&pod(&format!("small{number}"), "1", &json!({})));
    }
    for number in 0..10 {
        cluster.apply(&pod(&format!("huge{number}"), "1000", &json!({})));
    }
    run(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 1);
    let told = told(&cluster, "huge0");
    assert!(
        told[0].starts_with(
            "FailedScheduling: Failed to schedule pod, NodePool default: the pod asks for 1,000 CPU"
        ),
        "{told:?}"
    );
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&SCHEDULER_UNSCHEDULABLE_PODS, &["provisioner"]), Some(10.0));
    assert_eq!(metrics.value(&SCHEDULER_IGNORED_PODS, &[]), Some(0.0));
}

#[test]
fn a_pod_that_asks_for_what_cannot_be_is_ignored_and_told() {
    let mut cluster = cluster();
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]);
    cluster.apply(&pod("wrong", "1", &json!({"spec": {"volumes": volumes}})));
    let opted_out = json!([{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": opted_out}],
    }}});
    cluster.apply(&pod("other", "1", &json!({"spec": {"affinity": affinity}})));
    run(&mut cluster, 15);
    assert_eq!(cluster.claims().len(), 0);
    assert_eq!(
        told(&cluster, "wrong")[0],
        "FailedScheduling: Failed to schedule pod, PersistentVolumeClaim \"missing\" not found; create it"
    );
    assert!(told(&cluster, "other").is_empty());
    assert_eq!(cluster.context.metrics.value(&SCHEDULER_IGNORED_PODS, &[]), Some(2.0));
    // To leave a pod alone is a decision, and each pod is first decided about once.
    assert_eq!(cluster.context.metrics.value(&PODS_SCHEDULING_DECISION_DURATION, &[]), Some(2.0));
}

#[test]
fn a_pod_with_a_volume_that_the_cloud_does_not_support_is_ignored_and_told() {
    let mut cluster = cluster();
    for class in ["odd.example.com", "usual.example.com"] {
        let name = class.split('.').next().unwrap();
        cluster.apply(
            &json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": class, "volumeBindingMode": "WaitForFirstConsumer",
            })
            .to_string(),
        );
        cluster.apply(&json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "storageClassName": name, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }).to_string());
        let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
        cluster.apply(&pod(name, "1", &json!({"spec": {"volumes": volumes}})));
    }
    run(&mut cluster, 15);
    let odd = told(&cluster, "odd");
    assert!(odd[0].starts_with("FailedScheduling: ") && odd[0].contains("odd.example.com"), "{odd:?}");
    assert_eq!(cluster.context.metrics.value(&SCHEDULER_IGNORED_PODS, &[]), Some(1.0));
    assert_eq!(cluster.claims().len(), 1);
    assert!(told(&cluster, "usual")[0].starts_with("Nominated: "));
}

#[test]
fn pools_that_are_not_ready_get_no_nodes() {
    let mut cluster = cluster();
    cluster.delete("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default");
    run(&mut cluster, 2);
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 30);
    assert_eq!(cluster.claims().len(), 0);
    assert_eq!(
        told(&cluster, "a")[0],
        "FailedScheduling: Failed to schedule pod, NodePool default: it is not ready: NodeClass not found on cluster; \
         kubectl describe nodepool default shows its conditions"
    );
    // That nothing can be done for a pod is a decision, too.
    let decisions = cluster.context.metrics.value(&PODS_SCHEDULING_DECISION_DURATION, &[]);
    assert_eq!(decisions, Some(1.0));
    cluster.apply(crate::testing::NODE_CLASS);
    run(&mut cluster, 15);
    assert_eq!(cluster.claims().len(), 1);
    let decisions = cluster.context.metrics.value(&PODS_SCHEDULING_DECISION_DURATION, &[]);
    assert_eq!(decisions, Some(1.0), "the first decision about a pod counts");
}

#[test]
fn a_pod_that_asks_for_a_restricted_label_is_counted_and_timed_once() {
    let mut cluster = cluster();
    cluster.apply(&pod("wrong", "1", &json!({"spec": {"nodeSelector": {"karpenter.sh/nope": "x"}}})));
    run(&mut cluster, 30);
    assert_eq!(cluster.claims().len(), 0);
    let metrics = &cluster.context.metrics;
    assert_eq!(metrics.value(&SCHEDULER_IGNORED_PODS, &[]), Some(1.0));
    assert_eq!(metrics.value(&PODS_SCHEDULING_DECISION_DURATION, &[]), Some(1.0));
    let record = cluster.context.cluster.read().pod_record(&Key::new("default", "wrong")).cloned().unwrap();
    assert!(record.schedulable.is_none() && record.claim.is_none());
}

#[test]
fn a_claim_that_demands_less_choice_than_its_pool_is_counted_as_relaxed() {
    let settings = Settings { min_values_policy: MinValuesPolicy::BestEffort, ..Settings::default() };
    let mut cluster = Operated::with(World::new(1), settings, |context| {
        let mut all = super::controllers(context);
        all.extend(crate::node_pool::controllers(context));
        all
    });
    let demand = json!([{"key": "topology.kubernetes.io/zone", "operator": "Exists", "minValues": 40}]);
    cluster.apply(NODE_POOL);
    let change = json!({"spec": {"template": {"spec": {"requirements": demand}}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    run(&mut cluster, 1);
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 5);
    let claims = cluster.claims();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["metadata"]["annotations"]["karpenter.sh/nodeclaim-min-values-relaxed"], "true");
    let created =
        |relaxed| cluster.context.metrics.value(&NODECLAIMS_CREATED, &["provisioned", "default", relaxed]);
    assert_eq!((created("true"), created("false")), (Some(1.0), None));
}

#[test]
fn a_pool_whose_requirements_leave_nothing_says_so() {
    let mut cluster = cluster();
    let requirements = json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["s390x"]}]);
    let change = json!({"spec": {"template": {"spec": {"requirements": requirements}}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    run(&mut cluster, 2);
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 5);
    let text = "NodePool requirements filtered out all compatible available instance types";
    assert!(told(&cluster, "default").contains(&format!("NoCompatibleInstanceTypes: {text}")));
}

#[test]
fn limits_stop_new_nodes() {
    let mut cluster = cluster();
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &json!({"spec": {"limits": {"cpu": "4"}}}));
    run(&mut cluster, 1);
    cluster.apply(&pod("a", "5", &json!({})));
    cluster.apply(&pod("b", "3", &json!({})));
    run(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 1);
    let told = told(&cluster, "a");
    assert!(
        told[0]
            .starts_with("FailedScheduling: Failed to schedule pod, NodePool default: its limit of 4 CPU "),
        "{told:?}"
    );
}

#[test]
fn a_cloud_that_does_not_answer_is_asked_again() {
    let mut cluster = cluster();
    *cluster.cloud.types_error.lock() = Some(cloud::Error::Other("no answer".to_owned()));
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 15);
    assert_eq!(cluster.claims().len(), 0);
    *cluster.cloud.types_error.lock() = None;
    run(&mut cluster, 15);
    assert_eq!(cluster.claims().len(), 1);
}

#[test]
fn pods_do_not_go_to_a_pool_of_less_weight_because_the_cloud_is_late() {
    let mut cluster = cluster();
    let light = NODE_POOL.replace("name: default}\nspec:", "name: light}\nspec:");
    cluster.apply(&light);
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &json!({"spec": {"weight": 10}}));
    *cluster.cloud.broken_pool.lock() = Some("default".to_owned());
    *cluster.cloud.types_error.lock() = Some(cloud::Error::Timeout("no answer".to_owned()));
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 12);
    assert_eq!(cluster.claims().len(), 0);
    *cluster.cloud.types_error.lock() = None;
    // Nobody waits for the reminder of the pod.
    run(&mut cluster, 12);
    let claims = cluster.claims();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0]["metadata"]["labels"]["karpenter.sh/nodepool"], "default");
    // What cannot be had for another reason hides nothing.
    let name = launch(&cluster, &claims[0]);
    *cluster.cloud.types_error.lock() = Some(cloud::Error::Other("broken".to_owned()));
    cluster.apply(&pod("b", "8", &json!({})));
    run(&mut cluster, 12);
    let others: Vec<Value> =
        cluster.claims().into_iter().filter(|it| it["metadata"]["name"] != *name).collect();
    assert_eq!(others.len(), 1);
    assert_eq!(others[0]["metadata"]["labels"]["karpenter.sh/nodepool"], "light");
}

#[test]
fn pods_of_a_node_that_goes_get_another_one() {
    let mut cluster = cluster();
    run(&mut cluster, 1);
    let [mut node, mut claim] = crate::testing::node_objects("n1", "default", &json!({}), &json!({}));
    node["apiVersion"] = "v1".into();
    claim["apiVersion"] = "karpenter.sh/v1".into();
    for object in [&mut node, &mut claim] {
        object["metadata"].as_object_mut().unwrap().remove("uid");
    }
    claim["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    cluster.apply(&node.to_string());
    cluster.apply(&claim.to_string());
    cluster.apply(&pod("a", "1", &json!({"spec": {"nodeName": "n1"}})));
    run(&mut cluster, 15);
    assert_eq!(cluster.claims().len(), 1);
    cluster.delete("/apis/karpenter.sh/v1/nodeclaims/claim-n1");
    let taints = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    cluster.patch("/api/v1/nodes/n1", &json!({"spec": {"taints": taints}}));
    run(&mut cluster, 5);
    assert_eq!(cluster.claims().len(), 2);
}

#[test]
fn the_queue_is_as_deep_as_the_pods_that_are_left() {
    let mut cluster = cluster();
    cluster.apply(&pod("small", "1", &json!({})));
    cluster.apply(&pod("huge", "1000", &json!({})));
    run(&mut cluster, 4);
    let page = cluster.block_on(async { cluster.context.metrics.page() });
    let depths: Vec<&str> =
        page.lines().filter(|line| line.starts_with(SCHEDULER_QUEUE_DEPTH.name)).collect();
    assert_eq!(depths.len(), 1, "{depths:?}");
    assert!(depths[0].contains("controller=\"provisioner\"") && depths[0].ends_with(" 1"), "{depths:?}");
    assert!(!page.contains("karpenter_scheduler_unfinished_work_seconds{"), "nobody is at work");
}

#[test]
fn three_pods_are_three_first_decisions() {
    let mut cluster = cluster();
    for name in ["a", "b", "c"] {
        cluster.apply(&pod(name, "1000", &json!({})));
    }
    run(&mut cluster, 30);
    assert_eq!(cluster.context.metrics.value(&PODS_SCHEDULING_DECISION_DURATION, &[]), Some(3.0));
}

#[test]
fn a_claim_that_vanishes_before_its_launch_is_asked_for_again() {
    let mut cluster = cluster();
    cluster.apply(&pod("a", "1", &json!({})));
    run(&mut cluster, 4);
    let first = cluster.claims()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.delete(&format!("/apis/karpenter.sh/v1/nodeclaims/{first}"));
    run(&mut cluster, 15);
    let claims = cluster.claims();
    assert_eq!(claims.len(), 1);
    assert_ne!(claims[0]["metadata"]["name"], first.as_str());
}

#[test]
fn a_claim_that_is_full_does_not_wait_for_the_end_of_the_batch() {
    let mut cluster = cluster();
    let requirements = json!([{"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}]);
    let change = json!({"spec": {"template": {"spec": {"requirements": requirements}}}});
    cluster.patch("/apis/karpenter.sh/v1/nodepools/default", &change);
    run(&mut cluster, 1);
    let mut claims = Vec::new();
    for number in 0..12 {
        cluster.apply(&pod(&format!("a{number}"), "1500m", &json!({})));
        cluster.run_for(Duration::from_millis(700));
        for claim in cluster.claims() {
            if claim["status"]["providerID"].is_null() {
                launch_with(&cluster, &claim, "4");
            }
        }
        claims.push(cluster.claims().len());
    }
    run(&mut cluster, 5);
    // Two pods fill a node of four processors. The window is open until the last of them has come.
    assert!(claims[3] > 0 && claims[3] < 4, "{claims:?}");
    assert!(claims.iter().zip(1..).all(|(claims, pods)| *claims <= pods / 2), "{claims:?}");
    assert_eq!(cluster.claims().len(), 6);
    let records = cluster.context.cluster.read();
    let nominated = (0..12).filter(|number| {
        let record = records.pod_record(&Key::new("default", &format!("a{number}")));
        record.is_some_and(|record| record.claim.is_some())
    });
    assert_eq!(nominated.count(), 12);
}
