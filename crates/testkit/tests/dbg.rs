//! dbg
use std::time::Duration;
use testkit::World;
#[test]
fn dbg() {
    let mut world = World::new(1);
    world.apply("{apiVersion: v1, kind: Node, metadata: {name: a}, status: {capacity: {cpu: 4, memory: 16Gi, pods: 110}, allocatable: {cpu: 4, memory: 16Gi, pods: 110}}}");
    world.apply("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: [{name: c, image: i}]}}");
    world.run_for(Duration::from_secs(60));
    println!("{:#}", world.get("/api/v1/nodes/a").unwrap());
    println!("{:#}", world.get("/api/v1/namespaces/default/pods/p").unwrap());
    for e in world.list("/api/v1/events") { println!("{} {}", e["reason"], e["message"]); }
    for n in world.list("/api/v1/namespaces") { println!("{}", n["metadata"]["name"]); }
    for n in world.list("/apis/coordination.k8s.io/v1/leases") { println!("{}", n); }
    let (c, b) = world.send(http::Method::PATCH, "/api/v1/namespaces/default/pods/p/status", "application/merge-patch+json", &serde_json::json!({"status": {"phase": "Running", "podIP": "10.0.0.1"}}));
    println!("{c} {b:#}");
}
