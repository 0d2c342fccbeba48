//! 16.24: expiration, garbage collection, pod events, consistency and hydration of NodeClaims.

use api::names::metrics::{NODECLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED};
use serde_json::{Value, json};

use crate::support::Operated;

/// A claim of another cloud.
fn foreign() -> Value {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    json!({"spec": {"nodeClassRef": class}})
}

const CLASS_LABEL: &str = "karpenter.kwok.sh/kwoknodeclass";

fn expiring(after: &str) -> Value {
    json!({"spec": {"expireAfter": after}})
}

#[test]
fn a_claim_that_is_too_old_goes_and_is_counted_once() {
    let mut world = Operated::start();
    world.add_node("a", &expiring("30m"));
    world.add_node("b", &expiring("Never"));
    world.add_claim("foreign", &{
        let mut claim = foreign();
        claim["spec"]["expireAfter"] = json!("1m");
        claim
    });
    world.add_pod(
        "moves",
        "a",
        &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}),
    );
    let tolerations = json!([{"operator": "Exists"}]);
    let uid = world.node("a")["metadata"]["uid"].clone();
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid}]);
    world.add_pod(
        "stays",
        "a",
        &json!({
            "metadata": {"ownerReferences": owner}, "spec": {"tolerations": tolerations},
        }),
    );
    world.pass(29 * 60);
    assert!(world.claim("a")["metadata"]["deletionTimestamp"].is_null());
    world.pass(60);
    assert!(!world.claim("a")["metadata"]["deletionTimestamp"].is_null());
    world.pass(600);
    assert!(world.stays("moves"), "it is drained as gently as any other");
    for name in ["b", "foreign"] {
        assert!(world.claim(name)["metadata"]["deletionTimestamp"].is_null(), "{name}");
    }
    let series = ["expired", "pool", "on-demand", "", "graceful"];
    assert_eq!(world.metric(&NODECLAIMS_DISRUPTED, &series), 1);
    assert_eq!(world.metric(&PODS_DISRUPTION_INITIATED, &series), 1);
}

#[test]
fn claims_go_whose_instance_is_gone_unless_their_node_says_it_is_well() {
    let mut world = Operated::start();
    for name in ["dead", "well", "there"] {
        world.add_node(name, &json!({}));
    }
    *world.cloud.nodes_fail.lock() = true;
    world.add_claim("starting", &json!({}));
    world.pass(3);
    for name in ["dead", "there"] {
        let annotations = json!({"simulate.karpenter.sh/fail": "not-ready"});
        world.patch(&format!("/api/v1/nodes/{name}"), &json!({"metadata": {"annotations": annotations}}));
    }
    for name in ["dead", "well", "starting"] {
        world.cloud.lose(&format!("fake://{name}"));
    }
    world.cloud.list_failures.lock().push_back(cloud::Error::Other("down".to_owned()));
    world.pass(150);
    assert!(world.is_claim_gone("dead"));
    for name in ["well", "there", "starting"] {
        assert!(world.claim(name)["metadata"]["deletionTimestamp"].is_null(), "{name}");
    }
    let series = ["garbage_collected", "pool", "on-demand", "", "graceful"];
    assert_eq!(world.metric(&NODECLAIMS_DISRUPTED, &series), 1);
}

#[test]
fn many_dead_claims_go_at_once() {
    let mut world = Operated::start();
    let names: Vec<String> = (0..30).map(|index| format!("n{index}")).collect();
    for name in &names {
        world.add_claim(name, &json!({}));
    }
    for name in &names {
        world.until_initialized(name);
        world.cloud.lose(&format!("fake://{name}"));
        let annotations = json!({"simulate.karpenter.sh/fail": "not-ready"});
        world.patch(&format!("/api/v1/nodes/{name}"), &json!({"metadata": {"annotations": annotations}}));
    }
    world.pass(150);
    assert!(names.iter().all(|name| world.is_claim_gone(name)));
}

#[test]
fn claims_remember_when_pods_came_and_went() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    let noted = |world: &Operated| world.claim("a")["status"]["lastPodEventTime"].clone();
    assert_eq!(noted(&world), Value::Null);
    world.add_pod("p", "a", &json!({}));
    world.pass(2);
    let first = noted(&world);
    assert!(first.is_string());
    world.add_pod("q", "a", &json!({}));
    world.pass(2);
    assert_eq!(noted(&world), first, "once in ten seconds");
    world.pass(20);
    world.delete("/api/v1/namespaces/default/pods/q");
    world.pass(1);
    assert_ne!(noted(&world), first);
    let second = noted(&world);
    world.pass(60);
    world.lead();
    world.pass(60);
    assert_eq!(noted(&world), second, "another leader is no event");
    world.add_bare_node("lonely", &json!({}));
    world.add_pod("r", "lonely", &json!({}));
    world.pass(2);
}

#[test]
fn a_node_that_is_smaller_than_expected_is_reported() {
    let mut world = Operated::start();
    world.add_claim("foreign", &foreign());
    world.add_node("a", &json!({"spec": {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}}));
    world.pass(11 * 60);
    assert_eq!(world.said("a", "ConsistentStateFound"), "True ConsistentStateFound: ");
    world.patch("/api/v1/nodes/a/status", &json!({"status": {"capacity": {"memory": "8Gi"}}}));
    world.pass(11 * 60);
    assert_eq!(
        world.said("a", "ConsistentStateFound"),
        "False ConsistencyCheckFailed: Consistency Check Failed"
    );
    assert_eq!(
        world.events("FailedConsistencyCheck")[0],
        "a: expected 16Gi of resource memory, but found 8Gi (50.0% of expected)"
    );
    assert_eq!(world.condition("a", "Ready"), "True", "nothing else is said");
    assert!(world.claim("foreign")["status"].is_null());
}

#[test]
fn claims_and_nodes_say_which_node_class_they_have() {
    let mut world = Operated::start();
    let wrong = json!({"metadata": {"labels": {CLASS_LABEL: "other"}}});
    world.add_node("a", &wrong);
    let mut foreign = foreign();
    foreign["metadata"] = wrong["metadata"].clone();
    world.add_claim("foreign", &foreign);
    world.pass(2);
    let class = |object: &Value| object["metadata"]["labels"][CLASS_LABEL].clone();
    assert_eq!((class(&world.claim("a")), class(&world.node("a"))), (json!("default"), json!("default")));
    world.patch("/api/v1/nodes/a", &json!({"metadata": {"labels": {CLASS_LABEL: null}}}));
    world.patch("/apis/karpenter.sh/v1/nodeclaims/a", &json!({"metadata": {"labels": {CLASS_LABEL: null}}}));
    world.pass(2);
    assert_eq!((class(&world.claim("a")), class(&world.node("a"))), (json!("default"), json!("default")));
    assert_eq!(class(&world.claim("foreign")), "other");
}
