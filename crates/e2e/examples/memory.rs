//! How much memory `karpenter up` keeps: `cargo run --release -p karpenter-e2e --example memory PROGRAM`.
//!
//! A hundred nodes and a thousand pods of ten deployments; everything is read half a minute after all pods run, and
//! again after the real kubectl has listed them.

#![expect(clippy::print_stdout, reason = "this is its result")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use e2e::poll;
use e2e::tools::{self, Tool};
use serde_json::{Value, json};

const NODES: usize = 100;
const DEPLOYMENTS: usize = 10;
const PODS: usize = 1000;
const REST: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    let Some(program) = std::env::args().nth(1) else { bail!("which program? expected its path") };
    let directory = tempfile::tempdir()?;
    let objects = directory.path().join("objects.json");
    fs::write(&objects, objects_of_cluster().to_string())?;
    let kubeconfig = directory.path().join("kubeconfig");
    #[expect(clippy::disallowed_methods, reason = "this is what is measured")]
    let begin = Instant::now();
    let child = Command::new(&program)
        .args(["up", "--file"])
        .arg(&objects)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    let running = Running(child);
    poll("the cluster answers", Duration::from_secs(30), || Ok(kubectl(&kubeconfig, &["version"]).ok()))?;
    println!("kubectl has its first answer {:.2} s after the start", begin.elapsed().as_secs_f64());
    for number in 0..DEPLOYMENTS {
        kubectl(&kubeconfig, &["rollout", "status", &format!("deployment/app-{number}"), "--timeout=3m"])?;
    }
    println!("all pods run after {:.1} s", begin.elapsed().as_secs_f64());
    sleep(REST);
    running.tell("at rest")?;
    kubectl(&kubeconfig, &["get", "pods"])?;
    running.tell("after kubectl get pods")?;
    sleep(REST);
    running.tell("half a minute later")
}

/// A program that ends with this value.
struct Running(Child);

impl Running {
    fn tell(&self, when: &str) -> Result<()> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let megabytes = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let line = line.with_context(|| format!("the system does not tell {name}"))?;
            let kibibytes: f64 = line.split_whitespace().next().unwrap_or_default().parse()?;
            Ok(kibibytes * 1024.0 / 1e6)
        };
        let [all, data, program] = [megabytes("VmRSS:")?, megabytes("RssAnon:")?, megabytes("RssFile:")?];
        println!("{when}: {all:.1} MB resident ({data:.1} MB data, {program:.1} MB program)");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(tools::path(Tool::Kubectl)?)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .context("starting kubectl")?;
    if !output.status.success() {
        bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn objects_of_cluster() -> Value {
    let nodes = (0..NODES).map(|number| {
        let name = format!("node-{number:03}");
        let room = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
            "status": {"capacity": room, "allocatable": room},
        })
    });
    let deployments = (0..DEPLOYMENTS).map(|number| {
        let labels = json!({"app": format!("app-{number}")});
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": format!("app-{number}"), "namespace": "default"},
            "spec": {
                "replicas": PODS / DEPLOYMENTS,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{
                        "name": "app",
                        "image": "registry.k8s.io/pause:3.10",
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    }]},
                },
            },
        })
    });
    json!({"apiVersion": "v1", "kind": "List", "items": nodes.chain(deployments).collect::<Vec<Value>>()})
}
