//! Scales a real control plane up with one controller after the other, and tells what each needed.
//!
//! `scale_up NAME=PROGRAM...`: a program is upstream's kwok controller, or ours if its file is called `karpenter`.
//! Everything else is the same: API server, scheduler and controllers are the real ones, machines are played by
//! our simulator in this process. `PODS` and `DEPLOYMENTS` say how much is created.

#![expect(clippy::print_stdout, reason = "this is its result")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use api::provider::Provider;
use clock::Clock;
use controlplane::{KubeletOptions, NodeSelection, Options};
use e2e::ControlPlane;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The clock ticks of `/proc/*/stat` per second, on every Linux there is.
const TICKS: f64 = 100.0;
/// How long a controller may take.
const PATIENCE: Duration = Duration::from_mins(15);

/// What a controller needed.
struct Outcome {
    seconds: f64,
    cpu: f64,
    memory: u64,
    nodes: usize,
}

fn main() -> Result<()> {
    let controllers: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (pods, deployments) = (number("PODS", 1000), number("DEPLOYMENTS", 30));
    let mut lines = Vec::new();
    for controller in &controllers {
        let Some((name, program)) = controller.split_once('=') else {
            bail!("{controller:?} is no controller: expected NAME=PROGRAM");
        };
        let Outcome { seconds, cpu, memory, nodes } = scale_up(Path::new(program), pods, deployments)?;
        let line = format!("| {name} | {seconds:.1} s | {cpu:.1} s | {memory} MB | {nodes} |");
        println!("{line}");
        lines.push(line);
    }
    println!("\n{pods} pods of {deployments} deployments, from their creation until all run:\n");
    println!("| controller | time | processor time | memory at most | nodes |\n|---|---|---|---|---|");
    println!("{}", lines.join("\n"));
    Ok(())
}

/// A program that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn scale_up(program: &Path, pods: usize, deployments: usize) -> Result<Outcome> {
    let plane = ControlPlane::start()?;
    for definition in api::crds::documents(Provider::Kwok) {
        plane.kubectl_with_input(
            &["apply", "--server-side", "--filename=-"],
            &definition.document.to_string(),
        )?;
    }
    plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
    let runtime = Runtime::new()?;
    let client = runtime.block_on(client(&plane))?;
    runtime.spawn(async move {
        let options = Options {
            scheduler: false,
            workloads: false,
            node_lifecycle: false,
            kubelet: Some(KubeletOptions { nodes: NodeSelection::Annotated, ..KubeletOptions::default() }),
            events: false,
            ..Options::default()
        };
        let _ = controlplane::run(client, Clock::system(), options).await;
    });
    let pool = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kwok/nodepool.yaml"))?;
    // No limit, and nothing that goes away while it is measured.
    let pool =
        pool.replace("cpu: 1000", "cpu: 100000").replace("consolidateAfter: 30s", "consolidateAfter: Never");
    plane.kubectl_with_input(&["apply", "--filename=-"], &pool)?;

    let running = start(&plane, program)?;
    let process = running.0.id();
    // Let it read the cluster first, as in production.
    sleep(Duration::from_secs(10));
    let idle = processor_time(process)?;
    plane.kubectl_with_input(&["create", "--filename=-"], &workload(pods, deployments).to_string())?;
    #[expect(clippy::disallowed_methods, reason = "this is what is measured")]
    let begin = Instant::now();
    loop {
        let phases = plane.kubectl(&["get", "pods", "--output=jsonpath={.items[*].status.phase}"])?;
        if phases.split(' ').filter(|phase| *phase == "Running").count() == pods {
            break;
        }
        if begin.elapsed() > PATIENCE {
            bail!(
                "after {PATIENCE:?} not all pods run: {:?}",
                phases.split(' ').filter(|phase| *phase == "Running").count()
            );
        }
        sleep(Duration::from_millis(500));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let nodes = plane.kubectl(&["get", "nodes", "--output=name"])?.lines().count();
    Ok(Outcome { seconds, cpu: processor_time(process)? - idle, memory: memory(process)?, nodes })
}

fn start(plane: &ControlPlane, program: &Path) -> Result<Running> {
    let mut command = Command::new(program);
    if program.file_name().is_some_and(|name| name == "karpenter") {
        command.args(["controller", "--provider", "kwok"]);
    }
    command
        .env("KUBECONFIG", plane.kubeconfig_path())
        .env("DISABLE_LEADER_ELECTION", "true")
        .env("METRICS_PORT", "18080")
        .env("HEALTH_PROBE_PORT", "18081")
        .env("LOG_LEVEL", "error")
        .env("SYSTEM_NAMESPACE", "kube-system")
        .stdout(Stdio::null());
    Ok(Running(command.spawn().with_context(|| format!("starting {}", program.display()))?))
}

/// Deployments of many sizes; a third is spread over zones, a third over nodes.
fn workload(pods: usize, deployments: usize) -> Value {
    let items: Vec<Value> = (0..deployments)
        .map(|number| {
            let name = format!("d{number}");
            let replicas = pods / deployments + usize::from(number < pods % deployments);
            let cpu = [100, 250, 500, 750, 1000, 2000][number % 6];
            let memory = [128, 512, 1024, 4096][number % 4];
            let key = match number % 3 {
                0 => Some("topology.kubernetes.io/zone"),
                1 => Some("kubernetes.io/hostname"),
                _ => None,
            };
            let spread: Vec<Value> = key
                .map(|key| {
                    json!({
                        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"app": name}},
                    })
                })
                .into_iter()
                .collect();
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {
                            "topologySpreadConstraints": spread,
                            "containers": [{
                                "name": "main", "image": "registry.k8s.io/pause:3.10",
                                "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}},
                            }],
                        },
                    },
                },
            })
        })
        .collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

async fn client(plane: &ControlPlane) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_path())?;
    Ok(Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)?)
}

/// The processor time of a process in seconds.
fn processor_time(process: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may contain anything; numbers follow it.
    let numbers: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().filter_map(|at| numbers.get(*at)?.parse::<f64>().ok()).sum();
    Ok(ticks / TICKS)
}

/// The most memory that a process has had, in megabytes.
fn memory(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("there is no VmHWM")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse::<u64>()? / 1024)
}
