//! Scales a real control plane up with one controller after the other, and tells what each needed.
//!
//! `scale_up NAME=PROGRAM...`: a program is upstream's kwok controller, or ours if its file is called `karpenter`.
//! `NAME=PROGRAM:FLAG,FLAG` gives it flags, so that two settings of one program can be compared.
//! Everything else is the same: API server, scheduler and controllers are the real ones, KWOK plays the machines.
//! `PODS` and `DEPLOYMENTS` say how much is created, `QPS` how many requests a second the controller manager may send (20
//! unless set, so that 1,000 pods take 50 s to exist), and `RUNS` how often each controller does it; the means are told,
//! too. With `TIMELINE=1` it prints second by second how many pods and nodes there were. With `DOWN_TO=70` all deployments
//! are then scaled to 70 % and consolidation is switched on, until the nodes stay the same. With `UP_BY=PROGRAM` all begin
//! that with the same nodes and pods, which that program has made, so that what they save does not depend on what they
//! launched.

#![expect(clippy::print_stdout, reason = "this is its result")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use api::provider::Provider;
use cluster::costs::price_by_labels;
use cluster::instance_types::kwok;
use e2e::{Component, ControlPlane, Saved};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::Value;
use testkit::workload::workload;
use tokio::runtime::Runtime;

/// The clock ticks of `/proc/*/stat` per second, on every Linux there is.
const TICKS: f64 = 100.0;
/// How long a controller may take.
const PATIENCE: Duration = Duration::from_mins(15);
/// How long nodes must stay the same.
const STILL: Duration = Duration::from_secs(90);

/// What a controller needed to scale up.
#[derive(Clone)]
struct Up {
    /// Until the last pod existed, before which nobody can be done.
    floor: f64,
    seconds: f64,
    cpu: f64,
    memory: u64,
    nodes: usize,
    price: f64,
}

/// How much there is.
#[derive(Clone, Copy)]
struct Size {
    pods: usize,
    deployments: usize,
}

/// What came of scaling down.
struct Down {
    /// Until nothing changed any more; nothing if it did to the end.
    seconds: Option<f64>,
    cpu: f64,
    memory: u64,
    nodes: usize,
    price: (f64, f64),
    evictions: u64,
}

fn main() -> Result<()> {
    let controllers: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let size = Size { pods: number("PODS", 1000), deployments: number("DEPLOYMENTS", 30) };
    let down_to = std::env::var("DOWN_TO").ok().and_then(|value| value.parse().ok());
    let (mut ups, mut downs) = (Vec::new(), Vec::new());
    let mut saved = None;
    if let Ok(program) = std::env::var("UP_BY") {
        let cluster = Cluster::start(None)?;
        let (up, running) = scale_up(&cluster, &program, size)?;
        up.print(&program);
        ups.push((program, up));
        drop(running);
        saved = Some(Arc::new(cluster.end()?));
    }
    let runs = number("RUNS", 1);
    for controller in std::iter::repeat_n(&controllers, runs).flatten() {
        let Some((name, program)) = controller.split_once('=') else {
            bail!("{controller:?} is no controller: expected NAME=PROGRAM");
        };
        let cluster = Cluster::start(saved.as_ref())?;
        let running = if saved.is_some() {
            start(&cluster.plane, program)?
        } else {
            let (up, running) = scale_up(&cluster, program, size)?;
            up.print(name);
            ups.push((name.to_owned(), up));
            running
        };
        if let Some(percent) = down_to {
            downs.push(scale_down(&cluster.plane, running.0.id(), size, percent)?.line(name));
        }
    }
    println!(
        "\n{} pods of {} deployments, from their creation until all run:\n",
        size.pods, size.deployments
    );
    println!(
        "| controller | last pod exists | all run | processor time | memory at most | nodes | $/h |\n\
         |---|---|---|---|---|---|---|"
    );
    for (name, up) in &ups {
        up.print(name);
    }
    if runs > 1 {
        for controller in &controllers {
            let name = controller.split('=').next().unwrap_or_default();
            let own: Vec<Up> = ups.iter().filter(|(of, _)| of == name).map(|(_, up)| up.clone()).collect();
            Up::mean(&own).print(&format!("{name}, mean"));
        }
    }
    if let Some(percent) = down_to {
        println!("\nScaled to {percent} %, until the nodes stay the same for {STILL:?}:\n");
        println!(
            "| controller | time | nodes left | $/h before | $/h after | evictions | for each $/h saved | processor \
             time | memory |"
        );
        println!("|---|---|---|---|---|---|---|---|---|\n{}", downs.join("\n"));
    }
    Ok(())
}

impl Up {
    /// Prints a row of the table.
    fn print(&self, name: &str) {
        let Self { floor, seconds, cpu, memory, nodes, price } = self;
        println!(
            "| {name} | {floor:.1} s | {seconds:.1} s | {cpu:.1} s | {memory} MB | {nodes} | {price:.2} |"
        );
    }

    /// The mean of several runs; of memory, the most.
    fn mean(runs: &[Self]) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let mean = |value: fn(&Self) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
        Self {
            floor: mean(|run| run.floor),
            seconds: mean(|run| run.seconds),
            cpu: mean(|run| run.cpu),
            memory: runs.iter().map(|run| run.memory).max().unwrap_or_default(),
            nodes: runs.iter().map(|run| run.nodes).sum::<usize>() / runs.len().max(1),
            price: mean(|run| run.price),
        }
    }
}

impl Down {
    /// A row of the table, which is also told at once.
    fn line(&self, name: &str) -> String {
        let Self { seconds, cpu, memory, nodes, price: (before, after), evictions } = self;
        let time = seconds.map_or("not within 15 min".to_owned(), |seconds| format!("{seconds:.0} s"));
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let each = *evictions as f64 / (before - after);
        let line = format!(
            "| {name} | {time} | {nodes} | {before:.2} | {after:.2} | {evictions} | {each:.1} | {cpu:.1} s | {memory} MB |"
        );
        println!("{line}");
        line
    }
}

/// A control plane whose machines KWOK plays.
struct Cluster {
    plane: ControlPlane,
    runtime: Runtime,
}

impl Cluster {
    /// With nothing but our definitions and a pool, or with what another one knew.
    fn start(saved: Option<&Arc<Saved>>) -> Result<Self> {
        let mut builder = ControlPlane::builder().with_scheduler().with_controller_manager().with_kwok();
        if let Ok(qps) = std::env::var("QPS") {
            for flag in ["--kube-api-qps", "--kube-api-burst"] {
                builder = builder.arg(Component::ControllerManager, &format!("{flag}={qps}"));
            }
        }
        let plane = match saved {
            Some(saved) => builder.with_state_of(saved).start()?,
            None => builder.start()?,
        };
        for definition in api::crds::documents(Provider::Kwok) {
            let document = definition.document.to_string();
            plane.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &document)?;
        }
        plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
        // Nothing goes away while pods come.
        plane.kubectl_with_input(&["apply", "--filename=-"], &pool("Never")?)?;
        Ok(Self { plane, runtime: Runtime::new()? })
    }

    /// Ends it, and keeps what it knows.
    fn end(self) -> Result<Saved> {
        self.plane.save()
    }
}

/// The pool of the examples without a limit, whose nodes may go after a time.
fn pool(consolidate_after: &str) -> Result<String> {
    let pool = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/kwok/nodepool.yaml"))?;
    let after = format!("consolidateAfter: {consolidate_after}");
    Ok(pool.replace("cpu: 1000", "cpu: 100000").replace("consolidateAfter: 30s", &after))
}

/// A program that ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates the pods and lets a controller find nodes for them. It goes on.
fn scale_up(cluster: &Cluster, program: &str, size: Size) -> Result<(Up, Running)> {
    let (plane, Size { pods, deployments }) = (&cluster.plane, size);
    let running = start(plane, program)?;
    let process = running.0.id();
    let idle = processor_time(process)?;
    plane.kubectl_with_input(&["create", "--filename=-"], &workload(pods, deployments).to_string())?;
    #[expect(clippy::disallowed_methods, reason = "this is what is measured")]
    let begin = Instant::now();
    let (floor, seconds) = cluster.runtime.block_on(async {
        let all_run = until_all_run(client(plane).await?, pods, begin);
        tokio::time::timeout(PATIENCE, all_run).await.context("not all pods run in time")?
    })?;
    let nodes = plane.kubectl(&["get", "nodes", "--output=name"])?.lines().count();
    let (cpu, memory, price) = (processor_time(process)? - idle, memory(process)?, price(plane)?);
    if std::env::var_os("TIMELINE").is_some() {
        print_timeline(plane)?;
    }
    Ok((Up { floor, seconds, cpu, memory, nodes, price }, running))
}

/// Watches pods until all run; in how many seconds all existed, and in how many all ran.
async fn until_all_run(client: Client, pods: usize, begin: Instant) -> Result<(f64, f64)> {
    let mut events = watcher(Api::<Pod>::default_namespaced(client), watcher::Config::default()).boxed();
    let (mut is_running, mut floor) = (BTreeMap::<String, bool>::new(), None);
    while let Some(event) = events.next().await {
        if let Event::Apply(pod) | Event::InitApply(pod) = event? {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            is_running.insert(pod.name_any(), phase == Some("Running"));
        }
        let seconds = begin.elapsed().as_secs_f64();
        if is_running.len() == pods {
            let floor = *floor.get_or_insert(seconds);
            if is_running.values().all(|running| *running) {
                return Ok((floor, seconds));
            }
        }
    }
    bail!("the watch has ended")
}

/// Prints how many pods and nodes there were after each second, by the times that the objects themselves bear.
fn print_timeline(plane: &ControlPlane) -> Result<()> {
    let list = |kind: &str| -> Result<Vec<Value>> {
        let list: Value = serde_json::from_str(&plane.kubectl(&["get", kind, "--output=json"])?)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    };
    let seconds = |time: &Value| Some(time.as_str()?.parse::<Timestamp>().ok()?.as_second());
    let became = |object: &Value, condition: &str| {
        let conditions = object["status"]["conditions"].as_array()?;
        seconds(&conditions.iter().find(|known| known["type"] == condition)?["lastTransitionTime"])
    };
    let (pods, claims, nodes) = (list("pods")?, list("nodeclaims")?, list("nodes")?);
    let created = |objects: &[Value]| -> Vec<i64> {
        objects.iter().filter_map(|object| seconds(&object["metadata"]["creationTimestamp"])).collect()
    };
    let times = [
        created(&pods),
        created(&claims),
        nodes.iter().filter_map(|node| became(node, "Ready")).collect(),
        pods.iter().filter_map(|pod| became(pod, "PodScheduled")).collect(),
        pods.iter().filter_map(|pod| became(pod, "Ready")).collect(),
    ];
    let begin = times[0].iter().min().copied().unwrap_or_default();
    let end = times.iter().flatten().max().copied().unwrap_or_default();
    println!("second: pods, claims, ready nodes, bound pods, running pods");
    for second in begin..=end {
        let counts =
            times.iter().map(|times| times.iter().filter(|time| **time <= second).count().to_string());
        println!("{:>4}: {}", second - begin, counts.collect::<Vec<_>>().join(" "));
    }
    Ok(())
}

/// Scales all deployments to a part and lets the controller consolidate.
fn scale_down(plane: &ControlPlane, process: u32, size: Size, percent: usize) -> Result<Down> {
    let idle = processor_time(process)?;
    let before = price(plane)?;
    plane.kubectl_with_input(&["apply", "--filename=-"], &pool("0s")?)?;
    for number in 0..size.deployments {
        let all = size.pods / size.deployments + usize::from(number < size.pods % size.deployments);
        let replicas = format!("--replicas={}", all * percent / 100);
        plane.kubectl(&["scale", &format!("deployment/d{number}"), &replicas])?;
    }
    #[expect(clippy::disallowed_methods, reason = "this is what is measured")]
    let begin = Instant::now();
    let (mut known, mut changed) = (String::new(), 0.0);
    let seconds = loop {
        let found = plane.kubectl(&[
            "get",
            "nodes,nodeclaims",
            "--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp} {.spec.taints} {end}",
        ])?;
        let now = begin.elapsed().as_secs_f64();
        if found != known {
            (known, changed) = (found, now);
            println!("{now:.0} s: {:.2} $/h after {} evictions", price(plane)?, evictions()?);
        }
        if now - changed > STILL.as_secs_f64() {
            break Some(changed);
        }
        if begin.elapsed() > PATIENCE {
            break None;
        }
        sleep(Duration::from_secs(2));
    };
    let nodes = plane.kubectl(&["get", "nodes", "--output=name"])?.lines().count();
    let price = (before, price(plane)?);
    let (cpu, memory) = (processor_time(process)? - idle, memory(process)?);
    Ok(Down { seconds, cpu, memory, nodes, price, evictions: evictions()? })
}

/// What all nodes cost per hour.
fn price(plane: &ControlPlane) -> Result<f64> {
    let nodes: Value = serde_json::from_str(&plane.kubectl(&["get", "nodes", "--output=json"])?)?;
    let nodes = nodes["items"].as_array().context("there is no list of nodes")?;
    let types = kwok::built_in();
    let price = |node: &Value| {
        price_by_labels(|key| node["metadata"]["labels"][key].as_str().unwrap_or_default(), &types)
    };
    Ok(nodes.iter().map(price).sum())
}

/// How many evictions the controller has counted.
fn evictions() -> Result<u64> {
    let mut connection = TcpStream::connect("127.0.0.1:18080")?;
    connection.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    connection.read_to_string(&mut text)?;
    let counted = text.lines().filter(|line| line.contains("_eviction_requests_total{"));
    let successes = counted.filter(|line| line.contains("code=\"200\""));
    let numbers = successes.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    Ok(numbers.sum::<f64>() as u64)
}

fn start(plane: &ControlPlane, program: &str) -> Result<Running> {
    let (program, flags) = program.split_once(':').unwrap_or((program, ""));
    let mut command = Command::new(program);
    if Path::new(program).file_name().is_some_and(|name| name == "karpenter") {
        command.args(["controller", "--provider", "kwok"]);
    }
    command
        .args(flags.split(',').filter(|flag| !flag.is_empty()))
        .env("KUBECONFIG", plane.kubeconfig_path())
        .env("DISABLE_LEADER_ELECTION", "true")
        .env("METRICS_PORT", "18080")
        .env("HEALTH_PROBE_PORT", "18081")
        .env("LOG_LEVEL", "error")
        .env("SYSTEM_NAMESPACE", "kube-system")
        .stdout(Stdio::null());
    let running = Running(command.spawn().with_context(|| format!("starting {program}"))?);
    // Let it read the cluster first, as in production.
    sleep(Duration::from_secs(10));
    Ok(running)
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
