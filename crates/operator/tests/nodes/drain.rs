//! 16.19: how nodes are terminated, without a deadline.

use api::names::metrics::{NODES_LIFETIME_DURATION, NODES_TERMINATED, NODES_TERMINATION_DURATION};
use serde_json::{Value, json};

use crate::support::{Operated, merge};

fn protected() -> Value {
    json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}})
}

/// A pod that takes its time to stop.
fn slow(seconds: u64) -> Value {
    json!({
        "metadata": {"annotations": {"simulate.karpenter.sh/stop-after": format!("{seconds}s")}},
        "spec": {"terminationGracePeriodSeconds": seconds + 30},
    })
}

fn with(mut value: Value, change: &Value) -> Value {
    merge(&mut value, change);
    value
}

#[test]
fn a_node_goes_with_its_pods_its_instance_and_its_claim() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_pod("p", "a", &json!({}));
    world.pass(3);
    *world.cloud.going.lock() = std::time::Duration::from_secs(20);
    world.delete_node("a");
    world.until("its instance goes", 30, |world| world.condition("a", "InstanceTerminating") == "True");
    assert!(world.pod("p").is_null());
    assert_eq!(world.said("a", "Drained"), "True Drained: ");
    assert_eq!(world.said("a", "VolumesDetached"), "True VolumesDetached: ");
    assert_eq!(world.condition("a", "Ready"), "True", "what it was is not forgotten");
    let claim = world.claim("a");
    let generation = &claim["metadata"]["generation"];
    let conditions = claim["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|condition| condition["observedGeneration"] == *generation));
    world.until("everything is gone", 60, |world| world.is_claim_gone("a") && world.node("a").is_null());
    assert_eq!(world.cloud.running(), 0);
    assert_eq!(world.metric(&NODES_TERMINATED, &["pool", "zone-a"]), 1);
    assert_eq!(world.metric(&NODES_TERMINATION_DURATION, &["pool"]), 1);
    assert_eq!(world.metric(&NODES_LIFETIME_DURATION, &["pool"]), 1);
}

#[test]
fn nodes_go_without_a_claim_and_with_two() {
    let mut world = Operated::start();
    world.add_bare_node("lonely", &json!({}));
    world.add_node("a", &json!({}));
    world.add_claim("b", &json!({}));
    world.pass(5);
    world.patch("/apis/karpenter.sh/v1/nodeclaims/b/status", &json!({"status": {"providerID": "fake://a"}}));
    world.pass(5);
    world.delete_node("lonely");
    world.delete_node("a");
    world.pass(30);
    assert!(world.node("lonely").is_null() && world.node("a").is_null());
    assert!(!world.is_claim_gone("a"), "nobody knows which claim was meant");
    assert_eq!(world.cloud.terminations(), 0);
}

#[test]
fn nodes_of_others_are_left_alone() {
    let mut world = Operated::start();
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "other", "finalizers": ["karpenter.sh/termination"]},
    });
    world.apply(&node.to_string());
    world.pass(3);
    world.delete_node("other");
    world.pass(60);
    let node = world.node("other");
    assert!(!node["metadata"]["deletionTimestamp"].is_null());
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    assert!(taints.iter().all(|taint| taint["key"] != "karpenter.sh/disrupted"));
}

#[test]
fn many_nodes_go_at_the_same_time() {
    let mut world = Operated::start();
    let names: Vec<String> = (0..10).map(|index| format!("n{index}")).collect();
    for name in &names {
        world.add_claim(name, &json!({}));
    }
    for name in &names {
        world.until_initialized(name);
        world.add_pod(&format!("p-{name}"), name, &json!({}));
    }
    world.pass(3);
    for name in &names {
        world.delete_node(name);
    }
    world.until("all are gone", 60, |world| world.list("/api/v1/nodes").is_empty());
    world.pass(10);
    assert!(names.iter().all(|name| world.is_claim_gone(name)));
    assert_eq!(world.cloud.running(), 0);
    // Every pod was evicted, none simply vanished with its node.
    let evicted = world.events("Evicted");
    let is_evicted = |name: &String| evicted.iter().any(|told| told.starts_with(&format!("p-{name}: ")));
    assert!(names.iter().all(is_evicted), "{evicted:?}");
}

#[test]
fn pods_and_load_balancers_are_kept_away_before_anything_else() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_pod("p", "a", &protected());
    world.pass(3);
    world.delete_node("a");
    world.pass(30);
    let node = world.node("a");
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    assert_eq!(node["metadata"]["labels"][label], "karpenter");
    let taint = json!({"key": "karpenter.sh/disrupted", "effect": "NoSchedule"});
    assert!(node["spec"]["taints"].as_array().unwrap().contains(&taint));
    assert!(!world.claim("a")["metadata"]["deletionTimestamp"].is_null(), "the claim goes with its node");
    assert_eq!(world.said("a", "Drained"), "Unknown Draining: Draining");
    assert_eq!(world.cloud.terminations(), 0);
    assert_eq!(world.events("FailedDraining"), ["a: Failed to drain node, 1 pods are waiting to be evicted"]);
}

#[test]
fn pods_that_belong_to_the_node_stay_until_it_is_gone() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    let uid = world.node("a")["metadata"]["uid"].clone();
    let tolerating = |operator: &str| json!({"spec": {"tolerations": [{"key": "karpenter.sh/disrupted", "operator": operator}]}});
    world.add_pod("exists", "a", &tolerating("Exists"));
    world.add_pod("equal", "a", &tolerating("Equal"));
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid}]);
    world.add_pod("static", "a", &json!({"metadata": {"ownerReferences": owner}}));
    let cordoned = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
    world.add_pod("cordoned", "a", &json!({"spec": {"tolerations": cordoned}}));
    world.add_pod("plain", "a", &json!({}));
    let done = json!({"metadata": {"annotations": {"simulate.karpenter.sh/complete-after": "1s"}}});
    let done = with(done, &json!({"spec": {"restartPolicy": "Never"}}));
    world.add_pod("done", "a", &done);
    world.pass(5);
    assert_eq!(world.pod("done")["status"]["phase"], "Succeeded");
    *world.cloud.going.lock() = std::time::Duration::from_mins(1);
    world.delete_node("a");
    world.until("its instance goes", 30, |world| world.condition("a", "InstanceTerminating") == "True");
    for name in ["exists", "equal", "static", "done"] {
        assert!(world.stays(name), "{name}");
    }
    for name in ["cordoned", "plain"] {
        assert!(world.pod(name).is_null(), "{name}");
    }
}

#[test]
fn the_unimportant_go_first_and_each_turn_waits_for_the_one_before() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    let daemon_set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"d": "d"}},
            "template": {
                "metadata": {"labels": {"d": "d"}},
                // On no node: the pods of this test only say that they belong to it.
                "spec": {"nodeSelector": {"none": "none"}, "containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    world.apply(&daemon_set.to_string());
    let set = world.get("/apis/apps/v1/namespaces/default/daemonsets/d").unwrap();
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": set["metadata"]["uid"]}]);
    let critical = json!({"spec": {"priorityClassName": "system-node-critical"}});
    let daemon = json!({"metadata": {"ownerReferences": owner}});
    world.add_pod("first", "a", &slow(10));
    world.add_pod("second", "a", &with(slow(10), &daemon));
    world.add_pod("third", "a", &with(slow(10), &critical));
    world.add_pod("fourth", "a", &with(with(slow(10), &daemon), &critical));
    world.pass(3);
    world.delete_node("a");
    for going in ["first", "second", "third", "fourth"] {
        world.pass(5);
        assert!(!world.pod(going).is_null() && !world.stays(going), "{going} stops");
        for later in ["first", "second", "third", "fourth"].iter().skip_while(|name| **name != going).skip(1)
        {
            assert!(world.stays(later), "{later} stays while {going} stops");
        }
        world.until("it has stopped", 20, |world| world.pod(going).is_null());
    }
    world.until("the node is gone", 30, |world| world.node("a").is_null());
}

#[test]
fn nobody_waits_for_pods_of_a_machine_that_is_gone() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_node("b", &json!({}));
    world.add_pod("on-a", "a", &protected());
    world.add_pod("on-b", "b", &protected());
    world.pass(3);
    world.cloud.lose("fake://a");
    world.cloud.lose("fake://b");
    // Its kubelet still says that all is well, so its pods run.
    world.delete_node("b");
    world.pass(30);
    assert!(!world.node("b").is_null() && world.stays("on-b"));
    world.patch(
        "/api/v1/nodes/a",
        &json!({"metadata": {"annotations": {"simulate.karpenter.sh/fail": "not-ready"}}}),
    );
    world.pass(15);
    world.delete_node("a");
    world.pass(3);
    assert!(world.node("a").is_null());
    world.until("the claim is gone", 10, |world| world.is_claim_gone("a"));
}

#[test]
fn an_instance_that_nobody_can_ask_for_is_not_taken_for_gone() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_pod("p", "a", &protected());
    world.patch(
        "/api/v1/nodes/a",
        &json!({"metadata": {"annotations": {"simulate.karpenter.sh/fail": "not-ready"}}}),
    );
    world.pass(15);
    world.cloud.get_failures.lock().extend(vec![cloud::Error::Other("down".to_owned()); 1000]);
    world.delete_node("a");
    world.pass(60);
    assert!(!world.node("a").is_null());
}

#[test]
fn pods_that_never_stop_are_waited_for_a_minute() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.add_pod("stuck", "a", &json!({"spec": {"terminationGracePeriodSeconds": 10}}));
    world.pass(3);
    let annotations = json!({"simulate.karpenter.sh/fail": "silent"});
    world.patch("/api/v1/nodes/a", &json!({"metadata": {"annotations": annotations}}));
    world.delete_node("a");
    world.pass(65);
    assert!(!world.node("a").is_null() && !world.stays("stuck"));
    world.pass(30);
    assert!(world.node("a").is_null());
}

#[test]
fn a_drain_takes_five_seconds_even_if_there_is_nothing_to_drain() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    world.delete_node("a");
    world.pass(4);
    assert_eq!((world.cloud.terminations(), world.condition("a", "Drained")), (0, "Unknown".to_owned()));
    world.until("the node is gone", 10, |world| world.node("a").is_null());
}

#[test]
fn volumes_of_pods_that_leave_are_waited_for() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    let attachment = |name: &str, volume: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name},
            "spec": {"attacher": "csi", "nodeName": "a", "source": {"persistentVolumeName": volume}},
        })
    };
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "kept", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "volumeName": "kept-volume",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    world.apply(&claim.to_string());
    world.apply(&attachment("kept", "kept-volume").to_string());
    world.apply(&attachment("left", "left-volume").to_string());
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}]);
    let tolerations = json!([{"operator": "Exists"}]);
    world.add_pod("stays", "a", &json!({"spec": {"tolerations": tolerations, "volumes": volumes}}));
    world.pass(3);
    world.delete_node("a");
    world.pass(30);
    assert_eq!(
        world.said("a", "VolumesDetached"),
        "Unknown AwaitingVolumeDetachment: AwaitingVolumeDetachment"
    );
    assert_eq!(
        world.events("AwaitingVolumeDetachment"),
        ["a: Awaiting deletion of bound volumeattachments (left)"]
    );
    assert_eq!(world.cloud.terminations(), 0);
    world.delete("/apis/storage.k8s.io/v1/volumeattachments/left");
    world.until("the node is gone", 20, |world| world.node("a").is_null());
}

#[test]
fn pods_are_evicted_when_their_protection_ends() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    for (name, value) in [("one", "1m"), ("two", "2m"), ("forever", "true"), ("nonsense", "soon")] {
        let annotations = json!({"karpenter.sh/do-not-disrupt": value});
        world.add_pod(name, "a", &json!({"metadata": {"annotations": annotations}}));
    }
    world.pass(5);
    world.delete_node("a");
    world.pass(20);
    assert_eq!(["one", "two", "forever"].map(|name| world.stays(name)), [true; 3]);
    assert!(world.pod("nonsense").is_null());
    assert!(world.events("InvalidDoNotDisruptAnnotation")[0].contains("ignoring annotation"));
    assert_eq!(world.events("DoNotDisruptUntil").len(), 2);
    world.pass(60);
    assert_eq!(["one", "two", "forever"].map(|name| world.stays(name)), [false, true, true]);
    world.pass(60);
    assert_eq!(["one", "two", "forever"].map(|name| world.stays(name)), [false, false, true]);
    world.pass(600);
    assert!(world.stays("forever"));
    let annotations = json!({"karpenter.sh/do-not-disrupt": null});
    world
        .patch("/api/v1/namespaces/default/pods/forever", &json!({"metadata": {"annotations": annotations}}));
    world.until("the node is gone", 20, |world| world.node("a").is_null());
}
