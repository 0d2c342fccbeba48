//! `karpenter smoke`: a smoke test of a cluster and its cloud account. It launches a spot and an on-demand node, drains
//! and deletes them, and reports.

mod instances;
mod manifests;
mod objects;
mod report;

use std::future::Future;
use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use api::provider::Provider;
use clock::Clock;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use manifests::{CAPACITY_TYPES, LABEL, Smoke};
use objects::{NODE_CLAIMS, NODE_POOLS, NODES, Objects, condition, is_true, text};
use report::{NodeReport, Report, Step};

use crate::controller::VERSION;
use crate::{connect, signals::Signals};

/// How often the cluster is asked how far things are.
const INTERVAL: Duration = Duration::from_secs(2);
/// How many events a report shows.
const SHOWN_EVENTS: usize = 20;

/// Launch one spot and one on-demand node in a cluster, remove them again, and report what happened
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose nodes: kwok, aws or azure
    #[arg(long, value_name = "NAME")]
    provider: Provider,
    /// The NodeClass of the nodes; it must be ready
    #[arg(long, value_name = "NAME", default_value = "default")]
    node_class: String,
    /// The cluster's kubeconfig; without it, the cluster that this process is in, else that of the usual kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// The namespace of the two pods
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// The image of the two pods; it has to run without arguments
    #[arg(long, value_name = "IMAGE", default_value = "registry.k8s.io/pause:3.10")]
    image: String,
    /// The processors that both nodes may have together, the limit of the NodePool
    #[arg(long, value_name = "CPUS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    max_cpu: u32,
    /// How long to wait for nodes to come, and again for them to go, in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=50))]
    timeout: u64,
    /// Azure: the resource group of the nodes, to look for machines that are left
    #[arg(long, value_name = "NAME", env = "AZURE_NODE_RESOURCE_GROUP", default_value = "")]
    node_resource_group: String,
    /// Print what would be done and created, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before nodes are launched
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Where the report is written, besides standard output
    #[arg(long, value_name = "FILE")]
    report: Option<std::path::PathBuf>,
    /// The form of the report
    #[arg(short, long, value_enum, default_value_t = Output::Markdown)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For people, and for issues
    Markdown,
    /// For programs
    Json,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let started = Clock::system().now();
    let smoke = Smoke {
        provider: args.provider,
        name: format!("{LABEL}-{:x}", started.as_second()),
        node_class: args.node_class.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone(),
        max_cpu: args.max_cpu,
    };
    if args.dry_run {
        crate::print(&crate::terminal::wrapped(&smoke.announcement()))?;
        for object in std::iter::once(smoke.node_pool()).chain(CAPACITY_TYPES.map(|it| smoke.pod(it))) {
            let yaml = serde_saphyr::to_string(&object).context("writing an object as YAML")?;
            crate::print(&format!("---\n{yaml}"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    tell(&crate::terminal::wrapped(&smoke.announcement()));
    if !args.yes && !agreed()? {
        bail!("nothing was done; --yes launches nodes without asking");
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting up")?;
    let report = runtime.block_on(test(args, smoke, started))?;
    let written = match args.output {
        Output::Markdown => report.markdown(),
        Output::Json => serde_json::to_string_pretty(&report).context("printing the report as JSON")? + "\n",
    };
    if let Some(path) = &args.report {
        std::fs::write(path, &written).with_context(|| format!("writing {}", path.display()))?;
    }
    crate::print(&written)?;
    Ok(if report.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether somebody at a terminal says yes.
fn agreed() -> Result<bool> {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        return Ok(false);
    }
    tell("Launch these nodes? [y/N] ");
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("reading the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Progress goes to standard error, so that standard output is the report.
#[expect(clippy::print_stderr, reason = "this is where people follow the test")]
fn tell(text: &str) {
    eprint!("{text}");
}

/// A test that is under way.
struct Test<'a> {
    args: &'a Args,
    smoke: Smoke,
    objects: Objects,
    report: Report,
}

/// Runs the test. Whatever happens, what it has created is deleted; only a cluster that cannot be asked at all is an
/// error.
async fn test(args: &Args, smoke: Smoke, started: Timestamp) -> Result<Report> {
    let mut signals = Signals::listen()?;
    let config = connect::config(args.kubeconfig.as_deref(), "--kubeconfig names another file").await?;
    let client = connect::client(config).await?;
    let version = client.apiserver_version().await.context("asking for the version")?;
    let report = Report {
        version: VERSION,
        provider: smoke.provider.as_str(),
        kubernetes: version.git_version,
        node_pool: smoke.name.clone(),
        node_class: smoke.node_class.clone(),
        started: started.to_string(),
        steps: Vec::new(),
        nodes: Vec::new(),
        hints: Vec::new(),
    };
    let mut test = Test { args, smoke, objects: Objects(client), report };
    tokio::select! {
        biased;
        () = signals.received() => {
            let error = Some("interrupted".to_owned());
            test.report.steps.push(Step { name: "signal".to_owned(), seconds: 0.0, error });
        }
        () = test.launch() => {}
    }
    test.clean_up().await;
    Ok(test.report)
}

impl Test<'_> {
    /// Launches the nodes and waits for their pods to run.
    async fn launch(&mut self) {
        if self.step("NodeClass is ready", Self::check_class).await
            && self.step("NodePool created and ready", Self::create_pool).await
            && self.step("pods created", Self::create_pods).await
        {
            let came = self.step("both pods run, their nodes are initialized", Self::until_running).await;
            self.report.nodes = self.nodes().await.unwrap_or_default();
            if !came {
                self.report.hints = self.hints().await;
            }
        }
    }

    /// Drains and deletes the nodes, and looks for what is left. Every step is tried, whatever became of the others.
    async fn clean_up(&mut self) {
        self.step("NodeClaims deleted: nodes drained, instances terminated", Self::delete_claims).await;
        self.step("pods deleted", Self::delete_pods).await;
        self.step("NodePool deleted", Self::delete_pool).await;
        self.step("nothing is left", Self::look_for_leftovers).await;
    }

    /// Does a step, and notes what came of it; whether it went well.
    async fn step<'t, F>(
        &'t mut self,
        name: &str,
        step: impl FnOnce(&'t Smoke, &'t Objects, &'t Args) -> F,
    ) -> bool
    where
        F: Future<Output = Result<()>> + 't,
    {
        tell(&format!("{name} ... "));
        let (begin, steps) = (Instant::now(), &mut self.report.steps);
        let result = step(&self.smoke, &self.objects, self.args).await;
        let error = result.as_ref().err().map(crate::in_one_line);
        let seconds = begin.elapsed().as_secs_f64();
        tell(&format!("{} ({seconds:.0} s)\n", error.as_deref().unwrap_or("ok")));
        steps.push(Step { name: name.to_owned(), seconds, error });
        result.is_ok()
    }

    async fn check_class(smoke: &Smoke, objects: &Objects, _: &Args) -> Result<()> {
        let kind = smoke.provider.node_class();
        let path = format!("/apis/{}/{}/{}/{}", kind.group, kind.version, kind.plural, smoke.node_class);
        let Some(class) = objects.get(&path).await? else {
            bail!("there is no {} {}; --node-class names another", kind.kind, smoke.node_class);
        };
        // Simulated nodes have classes without conditions.
        match condition(&class, "Ready") {
            Some(ready) if ready["status"] != "True" => {
                bail!("{} {} is not ready: {}", kind.kind, smoke.node_class, text(ready, "/message"))
            }
            _ => Ok(()),
        }
    }

    async fn create_pool(smoke: &Smoke, objects: &Objects, args: &Args) -> Result<()> {
        objects.create(NODE_POOLS, &smoke.node_pool()).await?;
        let path = format!("{NODE_POOLS}/{}", smoke.name);
        until(args, "the NodePool is not ready; does the controller run?", async || {
            Ok(objects.get(&path).await?.is_some_and(|pool| is_true(&pool, "Ready")))
        })
        .await
    }

    async fn create_pods(smoke: &Smoke, objects: &Objects, _: &Args) -> Result<()> {
        for capacity_type in CAPACITY_TYPES {
            objects.create(&pods(&smoke.namespace), &smoke.pod(capacity_type)).await?;
        }
        Ok(())
    }

    async fn until_running(smoke: &Smoke, objects: &Objects, args: &Args) -> Result<()> {
        until(args, "not all pods run on initialized nodes", async || {
            let pods = objects.of_test(&pods(&smoke.namespace), &smoke.name).await?;
            if let Some(failed) = pods.iter().find(|pod| pod["status"]["phase"] == "Failed") {
                bail!(
                    "pod {} has failed: {}",
                    text(failed, "/metadata/name"),
                    text(failed, "/status/message")
                );
            }
            let running = pods.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
            let claims = objects.of_test(NODE_CLAIMS, &smoke.name).await?;
            let initialized = claims.iter().filter(|claim| is_true(claim, "Initialized")).count();
            Ok(running == CAPACITY_TYPES.len() && initialized == CAPACITY_TYPES.len())
        })
        .await
    }

    async fn delete_claims(smoke: &Smoke, objects: &Objects, args: &Args) -> Result<()> {
        for claim in objects.of_test(NODE_CLAIMS, &smoke.name).await? {
            objects.delete(&format!("{NODE_CLAIMS}/{}", text(&claim, "/metadata/name"))).await?;
        }
        until(args, "NodeClaims or Nodes are still there", async || {
            let claims = objects.of_test(NODE_CLAIMS, &smoke.name).await?;
            Ok(claims.is_empty() && objects.of_test(NODES, &smoke.name).await?.is_empty())
        })
        .await
    }

    async fn delete_pods(smoke: &Smoke, objects: &Objects, args: &Args) -> Result<()> {
        let path = pods(&smoke.namespace);
        for pod in objects.of_test(&path, &smoke.name).await? {
            objects.delete(&format!("{path}/{}", text(&pod, "/metadata/name"))).await?;
        }
        until(args, "pods are still there", async || {
            Ok(objects.of_test(&path, &smoke.name).await?.is_empty())
        })
        .await
    }

    async fn delete_pool(smoke: &Smoke, objects: &Objects, args: &Args) -> Result<()> {
        let path = format!("{NODE_POOLS}/{}", smoke.name);
        objects.delete(&path).await?;
        until(args, "the NodePool is still there", async || Ok(objects.get(&path).await?.is_none())).await
    }

    async fn look_for_leftovers(smoke: &Smoke, objects: &Objects, args: &Args) -> Result<()> {
        let left = leftovers(smoke, objects).await?;
        if !left.is_empty() {
            bail!("still there: {}", left.join(", "));
        }
        let group = &args.node_resource_group;
        let unasked =
            || format!("objects are gone; instances of {} could not be asked for", smoke.provider.as_str());
        // The cloud takes a while to forget them.
        let mut last = Vec::new();
        let gone = until(args, "instances are still there", async || {
            last = instances::left(smoke.provider, &smoke.name, group).await.with_context(unasked)?;
            Ok(last.is_empty())
        });
        let gone = gone.await;
        if last.is_empty() { gone } else { Err(anyhow!("still there: {}", last.join(", "))) }
    }

    /// The nodes that came, and when.
    async fn nodes(&self) -> Result<Vec<NodeReport>> {
        let pods = self.objects.of_test(&pods(&self.smoke.namespace), &self.smoke.name).await?;
        let claims = self.objects.of_test(NODE_CLAIMS, &self.smoke.name).await?;
        Ok(claims.iter().map(|claim| node_report(claim, &pods)).collect())
    }

    /// Conditions and events of everything that belongs to the test.
    async fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        let Smoke { name, namespace, .. } = &self.smoke;
        let mut of_test = vec![name.clone()];
        for (kind, path) in [("NodeClaim", NODE_CLAIMS.to_owned()), ("Pod", pods(namespace))] {
            for object in self.objects.of_test(&path, name).await.unwrap_or_default() {
                let of = text(&object, "/metadata/name");
                of_test.push(of.to_owned());
                let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
                for bad in all.iter().filter(|condition| condition["status"] != "True") {
                    let (type_, message) = (text(bad, "/type"), text(bad, "/message"));
                    hints.push(format!("{kind} {of}: {type_} is {}, {message}", text(bad, "/status")));
                }
            }
        }
        let events = self.objects.list("/api/v1/events").await.unwrap_or_default();
        let of_test =
            events.iter().filter(|event| of_test.iter().any(|it| it == text(event, "/involvedObject/name")));
        hints.extend(of_test.take(SHOWN_EVENTS).map(|event| {
            let object = text(event, "/involvedObject/name");
            format!("event of {object}: {} {}", text(event, "/reason"), text(event, "/message"))
        }));
        hints
    }
}

/// Objects of the test that are still there.
async fn leftovers(smoke: &Smoke, objects: &Objects) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for (kind, path) in [
        ("NodePool", NODE_POOLS.to_owned()),
        ("NodeClaim", NODE_CLAIMS.to_owned()),
        ("Node", NODES.to_owned()),
        ("Pod", pods(&smoke.namespace)),
    ] {
        let found = objects.of_test(&path, &smoke.name).await?;
        left.extend(found.iter().map(|object| format!("{kind} {}", text(object, "/metadata/name"))));
    }
    Ok(left)
}

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// Asks again and again, until something is so.
async fn until(args: &Args, otherwise: &str, mut is_so: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(args.timeout * 60);
    loop {
        if is_so().await? {
            return Ok(());
        }
        if Instant::now() >= end {
            bail!("{otherwise} after {} minutes", args.timeout);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// A node, with the times that its NodeClaim and its pod bear.
fn node_report(claim: &Value, pods: &[Value]) -> NodeReport {
    let time = |text: &str| text.parse::<Timestamp>().ok().map(Timestamp::as_second);
    let node = text(claim, "/status/nodeName");
    let pod = pods.iter().find(|pod| !node.is_empty() && text(pod, "/spec/nodeName") == node);
    let begin = pod.and_then(|pod| time(text(pod, "/metadata/creationTimestamp")));
    let since = |object: &Value, type_: &str| {
        let condition = condition(object, type_).filter(|condition| condition["status"] == "True")?;
        Some(time(text(condition, "/lastTransitionTime"))? - begin?)
    };
    let label = |key: &str| claim["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
    NodeReport {
        node_claim: text(claim, "/metadata/name").to_owned(),
        capacity_type: label(api::names::labels::CAPACITY_TYPE),
        instance_type: label(api::names::labels::INSTANCE_TYPE),
        zone: label(api::names::labels::ZONE),
        provider_id: text(claim, "/status/providerID").to_owned(),
        launched: since(claim, "Launched"),
        registered: since(claim, "Registered"),
        initialized: since(claim, "Initialized"),
        pod_running: pod.and_then(|pod| since(pod, "Ready")),
    }
}
