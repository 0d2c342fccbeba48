//! The embedded cluster as a whole, in virtual time.

use std::time::Duration;

use controlplane::KubeletOptions;
use serde_json::json;
use testkit::World;

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {topology.kubernetes.io/zone: ZONE, kubernetes.io/hostname: NAME}}
status: {capacity: {cpu: 4, memory: 16Gi, pods: 110}, allocatable: {cpu: 4, memory: 16Gi, pods: 110}}
";

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx, resources: {requests: {cpu: 500m}}}]}
";

fn add_node(world: &World, name: &str, zone: &str) {
    world.apply(&NODE.replace("NAME", name).replace("ZONE", zone));
}

#[test]
fn a_deployment_runs_and_goes_with_its_pods() {
    let mut world = World::new(1);
    add_node(&world, "a", "z1");
    add_node(&world, "b", "z2");
    world.apply(WEB);
    world.run_until("all pods run", Duration::from_mins(1), |world| world.running() == 5);
    let deployment = world.get("/apis/apps/v1/namespaces/default/deployments/web").unwrap();
    assert_eq!(deployment["status"]["readyReplicas"], 5);
    world.patch("/apis/apps/v1/namespaces/default/deployments/web", &json!({"spec": {"replicas": 2}}));
    world.run_until("three are gone", Duration::from_mins(1), |world| world.pods().len() == 2);
    world.delete("/apis/apps/v1/namespaces/default/deployments/web");
    world.run_until("all are gone", Duration::from_mins(1), |world| world.pods().is_empty());
}

#[test]
fn a_pod_without_a_node_waits_and_says_why() {
    let mut world = World::new(1);
    add_node(&world, "a", "z1");
    world.apply(
        "{apiVersion: v1, kind: Pod, metadata: {name: big, namespace: default}, spec: {containers: \
         [{name: c, image: i, resources: {requests: {cpu: 8}}}]}}",
    );
    world.run_for(Duration::from_secs(30));
    world.expect_pending("big", "1 Insufficient cpu");
}

#[test]
fn a_pod_is_bound_only_when_its_node_has_said_that_it_is_ready() {
    let kubelet = KubeletOptions { ready_after: Duration::from_secs(15), ..KubeletOptions::default() };
    let mut world = World::builder(1).kubelet(kubelet).start();
    world
        .apply("{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 4, pods: 9}}}");
    world
        .apply("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}");
    world.run_for(Duration::from_secs(14));
    world.expect_pending("p", "untolerated taint(s)");
    world.run_for(Duration::from_secs(5));
    world.expect_running("p");
    let node = world.get("/api/v1/nodes/a").expect("the node is there");
    assert!(node["spec"]["taints"].is_null(), "{node}");
}

#[test]
fn a_pod_whose_devices_are_not_claimed_does_not_run() {
    let mut world = World::new(1);
    add_node(&world, "a", "z1");
    for (name, node) in [("waits", ""), ("bound", "nodeName: a, ")] {
        world.apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{{node}containers: [{{name: c, image: i}}], \
             resourceClaims: [{{name: gpu, resourceClaimName: gpu}}]}}}}"
        ));
    }
    world.run_for(Duration::from_mins(10));
    assert_eq!(world.running(), 0, "{}", world.describe());
    let why = "resourceclaim.resource.k8s.io \"gpu\" not found";
    let told = |event: &serde_json::Value| {
        event["involvedObject"]["name"] == "waits"
            && event["message"].as_str().is_some_and(|text| text.contains(why))
    };
    assert!(world.list("/api/v1/events").iter().any(told));
    world.apply(
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: gpu}, spec: {devices: {requests: \
         [{name: gpu, exactly: {deviceClassName: gpu}}]}}}",
    );
    world.run_for(Duration::from_secs(5));
    world.expect_pending("waits", "1 cannot allocate all claims");
    let claim = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu";
    world.patch(&format!("{claim}/status"), &json!({"status": {"allocation": {}}}));
    world.run_for(Duration::from_secs(5));
    world.expect_running("waits");
    world.expect_running("bound");
}
