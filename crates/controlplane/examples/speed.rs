//! How fast and how small a simulated cluster is, API server included.
//!
//! `cargo run --release -p karpenter-controlplane --example speed -- idle 100 24` lets 100 nodes be idle for 24
//! hours of virtual time; `... -- pods 100 10000` starts 10,000 pods on 100 nodes.

use std::io::Write;
use std::time::Duration;

use clock::Clock;
use controlplane::{KubeletOptions, Options};
use embedded::Server;
use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: u64| args.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (nodes, amount) = (number(2, 100), number(3, 24));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let started = tokio::runtime::Handle::block_on(runtime.handle(), async { real_now() });
    runtime.block_on(async {
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let server = Server::new(clock, &embedded::Options::default());
        let client = kube::Client::new(server.service(), "default");
        let capacity: Value = json!({"cpu": "64", "memory": "256Gi", "pods": "250"});
        for number in 0..nodes {
            let node = json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("node-{number}"), "labels": {"topology.kubernetes.io/zone": "a"}},
            });
            server.apply(&node, "speed").map_err(|refusal| std::io::Error::other(refusal.message))?;
            let path = format!("/api/v1/nodes/node-{number}/status");
            let status = json!({"status": {"capacity": capacity, "allocatable": capacity}});
            server.send(http::Method::PATCH, &path, "application/merge-patch+json", &status);
        }
        let options = Options { kubelet: Some(KubeletOptions::default()), ..Options::default() };
        tokio::spawn(controlplane::run(client, clock, options));
        let mut out = std::io::stdout();
        if args.get(1).map(String::as_str) == Some("pods") {
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "replicas": amount, "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{
                            "name": "main", "image": "web", "resources": {"requests": {"cpu": "100m"}},
                        }]},
                    },
                },
            });
            server.apply(&deployment, "speed").map_err(|refusal| std::io::Error::other(refusal.message))?;
            let begin = clock.now();
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let path = "/apis/apps/v1/namespaces/default/deployments/web";
                let (_, web) = server.send(http::Method::GET, path, "", &Value::Null);
                let ready = web["status"]["readyReplicas"].as_u64().unwrap_or(0);
                if ready == amount || real_now() - started > 600.0 {
                    writeln!(out, "{ready} pods ready after {} of virtual time", clock.now() - begin)?;
                    break;
                }
            }
        } else {
            tokio::time::sleep(Duration::from_secs(amount * 3600)).await;
        }
        writeln!(out, "{:.1} s real, revision {}, {} objects", real_now() - started, server.revision(), server.object_count())?;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        for line in status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS")) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    })
}

/// Seconds of real time since the epoch.
fn real_now() -> f64 {
    #[expect(clippy::disallowed_methods, reason = "this measures real time")]
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
