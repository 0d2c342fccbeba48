//! 16.22: finalizer, launch and initialization of NodeClaims.

use api::names::metrics::{NODECLAIMS_DISRUPTED, NODES_CREATED};
use cloud::Error;
use cluster::state::Key;
use runtime::{Again, Settings};
use serde_json::{Value, json};

use crate::log::Logged;
use crate::support::{FakeCloud, FakeHook, Operated};

/// A claim of another cloud.
fn foreign() -> Value {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"});
    json!({"spec": {"nodeClassRef": class}})
}

#[test]
fn a_claim_becomes_a_node() {
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    let claim = world.claim("a");
    assert_eq!(claim["metadata"]["finalizers"], json!(["karpenter.sh/termination"]));
    let labels = &claim["metadata"]["labels"];
    assert_eq!(labels["karpenter.sh/nodepool"], "pool", "the claim's own labels win");
    assert_eq!(labels["topology.kubernetes.io/zone"], "zone-a");
    assert_eq!(claim["metadata"]["annotations"]["cloud.example/annotated"], "true");
    let status = &claim["status"];
    assert_eq!((&status["providerID"], &status["imageID"]), (&json!("fake://a"), &json!("image-1")));
    assert_eq!((&status["nodeName"], &status["allocatable"]["cpu"]), (&json!("a"), &json!("3900m")));
    for condition in ["Launched", "Registered", "Initialized", "Ready"] {
        assert_eq!(world.said("a", condition), format!("True {condition}: "));
    }
    assert_eq!(world.cloud.launches(), 1);
    assert_eq!(world.metric(&NODES_CREATED, &["pool", "zone-a"]), 1);
    assert_eq!(world.node("a")["metadata"]["labels"]["karpenter.sh/initialized"], "true");
}

#[test]
fn claims_of_other_clouds_are_left_alone() {
    let mut world = Operated::start();
    world.add_claim("a", &foreign());
    world.pass(30 * 60);
    let claim = world.claim("a");
    assert!(claim["metadata"]["finalizers"].is_null() && claim["status"].is_null());
    assert_eq!(world.cloud.launches(), 0);
    world.delete_claim("a");
    assert!(world.is_claim_gone("a"));
}

#[test]
fn a_claim_without_capacity_goes_at_once() {
    let mut world = Operated::start();
    for name in ["expected", "elsewhere"] {
        world.add_pod(name, "", &json!({}));
    }
    world.pass(2);
    world.context.cluster.update(|state| state.record_claim(&Key::new("default", "expected"), "a"));
    world.cloud.create_failures.lock().push_back(Error::InsufficientCapacity("none left".to_owned()));
    world.add_claim("a", &json!({}));
    world.pass(2);
    assert!(world.is_claim_gone("a"));
    assert_eq!((world.cloud.launches(), world.cloud.terminations()), (0, 0));
    assert_eq!(
        world.events("InsufficientCapacityError"),
        [
            "a: NodeClaim a event: insufficient capacity, none left",
            "expected: NodeClaim a nominated for this pod failed to launch: insufficient capacity, none left",
        ]
    );
    assert_eq!(
        world.metric(&NODECLAIMS_DISRUPTED, &["insufficient_capacity", "pool", "", "", "graceful"]),
        1
    );
}

#[test]
fn only_pods_that_still_wait_are_told_that_there_is_no_capacity_and_not_all_at_once() {
    let mut world = Operated::start();
    let many: Vec<String> = (0..12).map(|number| format!("many-{number:02}")).collect();
    for name in many.iter().map(String::as_str).chain(["done", "leaving"]) {
        world.add_pod(name, "", &json!({}));
    }
    world.add_pod("bound", "elsewhere", &json!({}));
    world.pass(2);
    let path = |name: &str| format!("/api/v1/namespaces/default/pods/{name}");
    world.patch(&format!("{}/status", path("done")), &json!({"status": {"phase": "Succeeded"}}));
    world.patch(&path("leaving"), &json!({"metadata": {"finalizers": ["test/stays"]}}));
    world.delete(&path("leaving"));
    world.pass(1);
    world.context.cluster.update(|state| {
        for name in many.iter().map(String::as_str).chain(["bound", "done", "leaving"]) {
            state.record_claim(&Key::new("default", name), "a");
        }
    });
    world.cloud.create_failures.lock().push_back(Error::InsufficientCapacity("none left".to_owned()));
    world.add_claim("a", &json!({}));
    world.pass(2);
    let told = world.events("InsufficientCapacityError");
    assert!(told.iter().all(|text| text.starts_with("a: ") || text.starts_with("many-")), "{told:?}");
    assert_eq!(told.len(), 1 + 10);
}

#[test]
fn a_claim_whose_node_class_is_not_ready_goes_at_once() {
    let mut world = Operated::start();
    world.cloud.create_failures.lock().push_back(Error::NodeClassNotReady("not yet".to_owned()));
    world.add_claim("a", &json!({"spec": {"terminationGracePeriod": "1m"}}));
    world.pass(2);
    assert!(world.is_claim_gone("a"));
    assert_eq!(world.metric(&NODECLAIMS_DISRUPTED, &["nodeclass_not_ready", "pool", "", "", "eventual"]), 1);
    assert!(world.events("InsufficientCapacityError").is_empty());
}

#[test]
fn a_failed_launch_says_why_and_is_tried_again() {
    let mut world = Operated::start();
    {
        let mut failures = world.cloud.create_failures.lock();
        failures.push_back(Error::Create { reason: "Quota".to_owned(), message: "too many".to_owned() });
        failures.push_back(Error::Other("broken".to_owned()));
    }
    world.add_claim("a", &json!({}));
    world.run_for(std::time::Duration::from_millis(500));
    assert_eq!(world.said("a", "Launched"), "Unknown Quota: too many");
    world.pass(1);
    assert_eq!(world.said("a", "Launched"), "Unknown LaunchFailed: broken");
    world.until_initialized("a");
    assert_eq!(world.cloud.launches(), 1);
}

#[test]
fn an_instance_is_launched_once_even_if_the_status_cannot_be_written() {
    let mut world = Operated::start();
    world.cloud.change_claim_while_launching.store(true, std::sync::atomic::Ordering::Relaxed);
    world.add_claim("a", &json!({}));
    world.until_initialized("a");
    assert_eq!(world.cloud.launches(), 1);
    assert_eq!(world.claim("a")["metadata"]["labels"]["meanwhile"], "true");
}

#[test]
fn a_node_is_initialized_when_it_has_everything() {
    let cloud = FakeCloud::default();
    *cloud.node_change.lock() = json!({
        "metadata": {"annotations": {"simulate.karpenter.sh/fail": "never-ready"}},
        "spec": {"taints": [
            {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
            {"key": "readiness.k8s.io/network", "effect": "NoSchedule"},
        ]},
    });
    let mut world = Operated::with(testkit::World::new(1), cloud);
    let startup = json!([{"key": "example.com/starting", "value": "x", "effect": "NoSchedule"}]);
    let requests = json!({"requests": {"cpu": "1", "example.com/gpu": "1"}});
    world.add_claim("a", &json!({"spec": {"startupTaints": startup, "resources": requests}}));
    world.pass(10);
    let path = "/api/v1/nodes/a";
    assert_eq!(world.said("a", "Initialized"), "Unknown NodeNotReady: Node status is NotReady");
    world.patch(path, &json!({"metadata": {"annotations": {"simulate.karpenter.sh/fail": null}}}));
    world.pass(10);
    assert_eq!(
        world.said("a", "Initialized"),
        r#"Unknown StartupTaintsExist: StartupTaint "example.com/starting=x:NoSchedule" still exists"#
    );
    let ephemeral = json!({"key": "readiness.k8s.io/network", "effect": "NoSchedule"});
    world.patch(path, &json!({"spec": {"taints": [ephemeral]}}));
    world.pass(1);
    assert_eq!(
        world.said("a", "Initialized"),
        r#"Unknown KnownEphemeralTaintsExist: KnownEphemeralTaint "readiness.k8s.io/network:NoSchedule" still exists"#
    );
    world.patch(path, &json!({"spec": {"taints": []}}));
    world.pass(1);
    assert_eq!(
        world.said("a", "Initialized"),
        r#"Unknown ResourceNotRegistered: Resource "example.com/gpu" was requested but not registered"#
    );
    assert!(world.node("a")["metadata"]["labels"]["karpenter.sh/initialized"].is_null());
    world.patch(&format!("{path}/status"), &json!({"status": {"allocatable": {"example.com/gpu": "1"}}}));
    world.pass(1);
    assert_eq!(world.said("a", "Initialized"), "True Initialized: ");
    assert_eq!(world.node("a")["metadata"]["labels"]["karpenter.sh/initialized"], "true");
    assert!(world.node("a")["spec"]["taints"].is_null(), "startup taints do not come back");
}

#[test]
fn a_claim_is_not_initialized_before_it_is_registered() {
    let hook = FakeHook::pending("slow");
    let mut world =
        Operated::with(testkit::World::new(1), FakeCloud::with_hooks(std::slice::from_ref(&hook)));
    world.add_claim("a", &json!({}));
    world.pass(20);
    assert_eq!(
        world.said("a", "Initialized"),
        "Unknown AwaitingReconciliation: object is awaiting reconciliation"
    );
    hook.say(Ok(Again::No));
    world.until_initialized("a");
}

#[test]
fn a_node_waits_for_the_drivers_of_its_devices_unless_devices_are_ignored() {
    let drivers = json!({"karpenter.sh/requested-dra-drivers": "gpu.example.com"});
    let claim = json!({"metadata": {"annotations": drivers}});
    let mut ignoring = Operated::start();
    ignoring.add_node("a", &claim);
    let settings = Settings { ignore_dra_requests: false, ..Settings::default() };
    let mut world = Operated::with_settings(testkit::World::new(1), FakeCloud::default(), settings);
    world.add_claim("a", &claim);
    world.pass(20);
    assert_eq!(
        world.said("a", "Initialized"),
        "Unknown DRADriverPoolsNotPublished: DRA driver \"gpu.example.com\" has not published a complete resource pool"
    );
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com", "nodeName": "a", "devices": [{"name": "gpu-0"}],
            "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        },
    });
    world.apply(&slice.to_string());
    world.until_initialized("a");
}

#[test]
fn the_log_tells_what_pods_can_have_of_a_node() {
    let logged = Logged::start();
    let mut world = Operated::start();
    world.add_node("a", &json!({}));
    for message in ["launched nodeclaim", "initialized nodeclaim"] {
        let lines = logged.with(message);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("NodeClaim=a") && lines[0].contains("allocatable={\"cpu\":"), "{lines:?}");
    }
}
