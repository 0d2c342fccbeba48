//! How fast the operator is on large clusters: real time, with the API server in the same process.
//!
//! `cargo run --release -p karpenter-operator --example figures`

#![expect(clippy::print_stdout, reason = "this is its result")]

#[path = "../tests/support/whole.rs"]
mod whole;

use std::time::Duration;

use api::provider::Provider;
use clock::Clock;
use embedded::Server;
use http::Method;
use runtime::Settings;
use serde_json::{Value, json};
use tokio::time::Instant;

const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";

/// A cluster with a pool, some nodes full of pods, and some pods that wait.
struct Fleet {
    server: Server,
    clock: Clock,
}

impl Fleet {
    fn new() -> Self {
        let clock = Clock::system();
        let fleet = Self { server: Server::new(clock, &embedded::Options::default()), clock };
        for definition in api::crds::documents(Provider::Kwok) {
            fleet.apply(&definition.document);
        }
        let pool = include_str!("../../../examples/kwok/nodepool.yaml").replace("cpu: 1000", "cpu: 1000000");
        let documents: Vec<Value> = serde_saphyr::from_multiple(&pool).expect("the example is YAML");
        for document in &documents {
            fleet.apply(document);
        }
        fleet
    }

    fn apply(&self, object: &Value) {
        if let Err(refusal) = self.server.apply(object, "figures") {
            panic!("{}", refusal.message);
        }
    }

    fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let (code, answer) = self.server.send(method, path, "application/merge-patch+json", body);
        assert!(code.is_success(), "{path}: {answer}");
        answer
    }

    /// Adds a node with fifteen pods that leave no room.
    fn add_node(&self, number: usize) {
        let name = format!("node-{number}");
        let resources = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""});
        self.apply(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}));
        let status = json!({"capacity": resources, "allocatable": resources, "conditions": [ready]});
        self.send(Method::PATCH, &format!("/api/v1/nodes/{name}/status"), &json!({"status": status}));
        for pod in 0..15 {
            let running = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
            self.add_pod(&format!("pod-{number}-{pod}"), Some(&name), "260m", &running);
        }
    }

    /// Adds a pod that the scheduler has given up.
    fn add_waiting(&self, name: &str, cpu: &str) {
        let why = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        self.add_pod(name, None, cpu, &json!({"phase": "Pending", "conditions": [why]}));
    }

    fn add_pod(&self, name: &str, node: Option<&str>, cpu: &str, status: &Value) {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": cpu}},
            "spec": {"nodeName": node, "containers": [{
                "name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu}},
            }]},
        }));
        let path = format!("/api/v1/namespaces/default/pods/{name}/status");
        self.send(Method::PATCH, &path, &json!({"status": status}));
    }

    fn claims(&self) -> usize {
        self.send(Method::GET, CLAIMS, &Value::Null)["items"].as_array().map_or(0, Vec::len)
    }

    fn operate(&self) {
        let client = kube::Client::new(self.server.service(), "default");
        tokio::spawn(whole::operate(client, self.clock, Settings::default(), 1));
    }

    /// How long it takes until there are claims.
    async fn until_claimed(&self) -> Duration {
        let start = Instant::now();
        while self.claims() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        start.elapsed()
    }
}

/// The memory of this process in megabytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|text| text.parse::<u64>().ok()).unwrap_or_default() / 1024
}

async fn one_pod_in_a_large_cluster() {
    let fleet = Fleet::new();
    for number in 0..1000 {
        fleet.add_node(number);
    }
    fleet.operate();
    // Until it has read the cluster, and the pool is ready.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let mut times = Vec::new();
    for number in 0..5 {
        let before = fleet.claims();
        fleet.add_waiting(&format!("late-{number}"), "3");
        let start = Instant::now();
        while fleet.claims() == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        times.push(start.elapsed().saturating_sub(Duration::from_secs(1)).as_millis());
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    println!(
        "1,000 nodes, 15,000 pods: from a pod that waits to its NodeClaim, beyond the second of the batch: {times:?} ms"
    );
}

async fn many_pods_at_the_start() {
    let fleet = Fleet::new();
    for number in 0..500 {
        fleet.add_node(number);
    }
    for number in 0..14_800 {
        fleet.add_waiting(&format!("waiting-{number}"), ["500m", "1", "1500m", "2"][number % 4]);
    }
    let before = memory();
    fleet.operate();
    let time = fleet.until_claimed().await;
    println!("500 nodes, 14,800 pods that wait: first NodeClaim {} ms after the start", time.as_millis());
    tokio::time::sleep(Duration::from_secs(20)).await;
    println!(
        "memory: {before} MB with the API server alone, {} MB with the operator, {} claims",
        memory(),
        fleet.claims()
    );
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    runtime.block_on(one_pod_in_a_large_cluster());
    drop(runtime);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    runtime.block_on(many_pods_at_the_start());
}
