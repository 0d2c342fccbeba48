//! Measures the embedded cluster: `cargo run --release -p karpenter-testkit --example figures`.
//!
//! With a number, only so many idle hours, once: for profilers.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::World;

/// The allocator of the binary, so that the figures are its figures.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    if let Some(hours) = std::env::args().nth(1).and_then(|hours| hours.parse().ok()) {
        let (took, writes, digest) = idle_hours(hours);
        return writeln!(out, "{hours} h: {took:.2?}, {writes} writes ({:016x})", digest.unwrap_or_default());
    }
    for figure in [pods, idle] {
        for line in figure() {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// How long something takes in real time, whatever the world's clock says.
fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "this measures real time")]
    let start = std::time::Instant::now();
    let result = act();
    (result, start.elapsed())
}

fn nodes(world: &World, count: usize) {
    for number in 0..count {
        let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("node-{number:04}"), "labels": {
                "topology.kubernetes.io/zone": format!("zone-{}", number % 3),
            }},
            "status": {"capacity": resources, "allocatable": resources},
        });
        world.apply(&node.to_string());
    }
}

fn deployment(number: usize, replicas: usize) -> Value {
    let name = format!("app-{number:03}");
    let container = json!({
        "name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    })
}

/// 10,000 pods from nothing to running, and how long a list of them takes.
fn pods() -> Vec<String> {
    let mut world = World::new(1);
    nodes(&world, 100);
    world.run_for(Duration::from_secs(10));
    let began = world.now();
    let ((), took) = timed(|| {
        for number in 0..100 {
            world.apply(&deployment(number, 100).to_string());
        }
        while running(&world) < 10_000 {
            world.run_for(Duration::from_secs(1));
            assert!(world.now().duration_since(began).as_hours() < 1, "{}", world.describe());
        }
    });
    let virtual_time = world.now().duration_since(began);
    let (bytes, list) = timed(|| {
        let request = http::Request::get("/api/v1/pods").body(kube::client::Body::empty());
        let client = world.client();
        world.block_on(async move {
            let response = client.send(request.expect("a request")).await.expect("an answer");
            let body = http_body_util::BodyExt::collect(response.into_body()).await.expect("a body");
            body.to_bytes().len()
        })
    });
    vec![
        format!("10,000 pods created, bound and running: {took:.2?} real, {virtual_time:#} virtual"),
        format!("list of 10,000 pods: {list:.2?}, {bytes} bytes"),
    ]
}

fn running(world: &World) -> usize {
    let list = world.get("/api/v1/pods?fieldSelector=status.phase%3DRunning&limit=1").unwrap_or_default();
    let shown = list["items"].as_array().map_or(0, Vec::len);
    // Field selectors hide the number of the rest, so all are counted when the first is there.
    if shown == 0 { 0 } else { world.running() }
}

/// A day of a cluster in which nothing happens but heartbeats.
fn idle() -> Vec<String> {
    let (first, writes, digest) = idle_hours(24);
    let (second, again, same) = idle_hours(24);
    assert_eq!((writes, digest), (again, same), "the same seed gives the same history");
    vec![format!(
        "24 virtual hours of 100 idle nodes: {first:.2?} and {second:.2?} real, {writes} writes, \
         the same history both times ({:016x})",
        digest.unwrap_or_default()
    )]
}

/// How long some hours take in which nothing happens, with the number of writes and their fingerprint.
fn idle_hours(hours: u64) -> (Duration, u64, Option<u64>) {
    let mut world = World::new(7);
    world.server().keep_digest();
    nodes(&world, 100);
    let ((), took) = timed(|| world.run_for(Duration::from_hours(hours)));
    (took, world.server().revision(), world.server().digest())
}
