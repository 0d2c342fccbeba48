//! The embedded cluster as a whole, in virtual time.

use std::time::Duration;

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
