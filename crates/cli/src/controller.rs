//! `karpenter controller`: the operator for a real cluster, as one process.
//!
//! It takes upstream's flags in Go's spelling, which `clap` does not speak, so its arguments are read by
//! [`runtime::Settings`].

#[cfg(feature = "aws")]
mod aws_start;
#[cfg(feature = "azure")]
mod azure_start;
#[cfg(any(feature = "aws", feature = "azure"))]
mod ca_bundle;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use api::names::flags;
use api::names::process::{
    HEALTH_CHECK_CLOUD_PROVIDER, HEALTH_CHECK_PING, READY_CHECK_CRD, READY_CHECK_MANAGER, READY_CHECK_PING,
};
use api::provider::{Provider, UnknownProvider};
use clock::Clock;
use cloud::{CloudProvider, Measured};
use cluster::instance_types::InstanceType;
use kube::client::ClientBuilder;
use kube::{Client, Config};
use kwok::Kwok;
use operator::Parts;
use runtime::controller::Controller;
use runtime::leader::{self, Candidate, Election, Ended};
use runtime::measure::MeasureLayer;
use runtime::metrics::{Build, Registry};
use runtime::serve::{self, Check, Pages, Server, find_crds};
use runtime::settings::Command;
use runtime::{Settings, logs};
use tokio::sync::{oneshot, watch};

use crate::terminal;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The revision of the source, where the build knows it.
pub(crate) const COMMIT: Option<&str> = option_env!("KARPENTER_COMMIT");

/// What the process itself must know before the settings can be read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Start {
    provider: Option<Provider>,
    kubeconfig: Option<String>,
    /// Everything else.
    rest: Vec<String>,
}

impl Start {
    /// Takes `--provider` and `--kubeconfig` out of the arguments.
    fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut start = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let name = argument.trim_start_matches('-');
            let (name, value) =
                name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value)));
            if !argument.starts_with('-') || !["provider", "kubeconfig"].contains(&name) {
                start.rest.push(argument);
                continue;
            }
            let value = value.map(str::to_owned).or_else(|| arguments.next());
            let value = value.ok_or_else(|| crate::usage(format!("flag --{name} needs a value")))?;
            if name == "provider" {
                let wrong = |error: UnknownProvider| crate::usage(error.to_string());
                start.provider = Some(value.parse().map_err(wrong)?);
            } else {
                start.kubeconfig = Some(value);
            }
        }
        Ok(start)
    }
}

/// Runs the controller with arguments as upstream takes them.
pub(crate) fn run(arguments: impl IntoIterator<Item = String>) -> Result<ExitCode> {
    let start = Start::read(arguments)?;
    // Neither help nor what is wrong with the flags needs a cluster.
    if start.rest.iter().any(|argument| ["-h", "--h", "-help", "--help"].contains(&&**argument)) {
        let provider = start.provider.unwrap_or(Provider::Kwok);
        if let Command::Help(flags) = settings(provider, &start.rest)? {
            crate::print(&terminal::wrapped_to(&help(start.provider, &flags), terminal::help_width()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    check(&start)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(start_controller(start))
}

/// All flags: those of this program and those of the original.
fn help(provider: Option<Provider>, flags: &str) -> String {
    let whose = match provider {
        Some(provider) => format!("These are the flags with --provider {provider}."),
        None => {
            "These are the flags with --provider kwok; add --provider aws or azure to see theirs.".to_owned()
        }
    };
    format!(
        "Launch and remove the nodes of a cluster; takes the flags of the original controller\n\n\
         Usage: karpenter controller [--provider NAME] [--kubeconfig FILE] [FLAGS]\n\n\
         Where nodes are launched, and for which cluster:\n  \
         --provider string\n        Whose nodes: kwok, aws or azure; as the CRDs of the cluster say if not given\n  \
         --kubeconfig string\n        The cluster's kubeconfig; if not given, the cluster that this process is in, \
         else that of the usual kubeconfig\n\n\
         {flags}\n{whose}\n"
    )
}

/// What flags and the environment say.
fn settings(provider: Provider, arguments: &[String]) -> Result<Command> {
    Settings::parse(provider, arguments.iter().cloned(), environment)
        .map_err(|error| crate::usage(error.to_string()))
}

/// Fails if the flags are wrong whatever the cluster says. If it is to say whose nodes it has, they must be right for
/// one of the providers.
fn check(start: &Start) -> Result<()> {
    let providers = start.provider.map_or(Provider::ALL.to_vec(), |provider| vec![provider]);
    let mut wrong = Vec::new();
    for provider in providers {
        match settings(provider, &start.rest) {
            Ok(Command::Run(settings)) if provider == Provider::Kwok => {
                return simulated(&settings).map(drop);
            }
            Ok(_) => return Ok(()),
            Err(error) => wrong.push(error),
        }
    }
    // A provider that knows the flag says most about it.
    let known = wrong.iter().position(|error| !error.to_string().contains("not defined"));
    Err(wrong.swap_remove(known.unwrap_or_default()))
}

/// The instance types of simulated nodes.
fn simulated(settings: &Settings) -> Result<Vec<InstanceType>> {
    let file = settings.of_provider(&flags::kwok::INSTANCE_TYPES_FILE_PATH);
    Ok(kwok::instance_types((!file.is_empty()).then(|| file.as_ref()))?)
}

async fn start_controller(start: Start) -> Result<ExitCode> {
    let config = config(start.kubeconfig.as_deref()).await?;
    // Its requests must not wait behind those of the controllers.
    let election = Client::try_from(config.clone()).context("making a client for the leader election")?;
    let provider = match start.provider {
        Some(provider) => provider,
        None => infer(&election).await?,
    };
    let Command::Run(settings) = settings(provider, &start.rest)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let clock = Clock::system();
    logs::install(&settings, COMMIT, clock).map_err(|error| anyhow!(error))?;
    for gate in &settings.unknown_gates {
        tracing::info!(gate, "ignoring unknown feature gate");
    }
    let metrics = Registry::for_provider(provider);
    metrics.begin(Build { version: VERSION, commit: COMMIT.unwrap_or_default(), compiler: "rust" });
    metrics.collect_process(None);
    let client = ClientBuilder::try_from(config.clone())
        .context("making a client for the cluster")?
        .with_layer(&MeasureLayer::new(&metrics))
        .build();
    let parts = Parts::measured(client, provider, clock, *settings, metrics);
    // Before the cloud is asked for anything: a process that waits for an answer is alive.
    let started = Started::default();
    let _servers = serve(&parts, provider, &started)?;
    let (cloud, of_cloud) = cloud(&parts, provider, &config).await?;
    started.set(&cloud);
    operate(&parts, cloud, of_cloud, election).await
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The cluster: as asked for, else the one that this process is in, else that of the kubeconfig.
async fn config(kubeconfig: Option<&str>) -> Result<Config> {
    let mut config = crate::connect::config(kubeconfig, "--kubeconfig names another file").await?;
    // A refused eviction must be known at once; everything else is tried again by its controller.
    config.default_retry = false;
    let agent = format!("karpenter/{VERSION}").parse().context("naming this program")?;
    config.headers.push((http::header::USER_AGENT, agent));
    Ok(config)
}

/// The provider whose NodeClass the cluster knows.
async fn infer(client: &Client) -> Result<Provider> {
    let groups = client.list_api_groups().await.context("asking the cluster for its kinds")?;
    let known: Vec<Provider> = Provider::ALL
        .into_iter()
        .filter(|provider| groups.groups.iter().any(|group| group.name == provider.node_class().group))
        .collect();
    match known[..] {
        [provider] => Ok(provider),
        [] => bail!(
            "the cluster knows no NodeClass: install the chart karpenter-crd, or say --provider kwok, aws or azure"
        ),
        _ => {
            let names: Vec<&str> = known.iter().map(|provider| provider.as_str()).collect();
            bail!("the cluster knows the NodeClasses of {}: say which with --provider", names.join(" and "))
        }
    }
}

/// The cloud, and the controllers that belong to it.
async fn cloud(
    parts: &Parts,
    provider: Provider,
    config: &Config,
) -> Result<(Arc<dyn CloudProvider>, Vec<Controller>)> {
    let (cloud, of_cloud): (Arc<dyn CloudProvider>, Vec<Controller>) = match provider {
        Provider::Kwok => {
            let types = simulated(&parts.settings)?;
            let kwok = Kwok::new(parts.api.clone(), parts.cluster.clone(), parts.clock, seed(), types);
            let kwok = kwok.with_overlays(parts.overlays.clone());
            let controllers = kwok.controllers(&parts.events, &parts.metrics);
            (Arc::new(kwok), controllers)
        }
        #[cfg(feature = "aws")]
        Provider::Aws => aws_start::start(parts, ca_bundle::of(config)).await?,
        #[cfg(feature = "azure")]
        Provider::Azure => azure_start::start(parts, ca_bundle::of(config)).await?,
        #[cfg(not(all(feature = "aws", feature = "azure")))]
        other => {
            let _ = config;
            bail!("provider {other} is not in this build")
        }
    };
    Ok((Arc::new(Measured::new(cloud, parts.metrics.clone())), of_cloud))
}

/// What random numbers begin with.
fn seed() -> u64 {
    u64::from(std::process::id())
}

async fn operate(
    parts: &Parts,
    cloud: Arc<dyn CloudProvider>,
    of_cloud: Vec<Controller>,
    election: Client,
) -> Result<ExitCode> {
    let (clock, settings) = (parts.clock, &parts.settings);
    // A mistake in what counts as broken must not wait for the first broken node.
    operator::repair_policies(settings, &*cloud).map_err(|error| anyhow!(error))?;
    let context = parts.context(cloud);
    if settings.disable_leader_election {
        let (_leads, leading) = watch::channel(true);
        tokio::select! {
            () = operator::run(context, of_cloud, leading) => {}
            result = crate::interrupted() => result?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let candidate = Candidate {
        name: settings.leader_election_name.clone(),
        namespace: leader::namespace(&settings.leader_election_namespace).map_err(|error| anyhow!(error))?,
        identity: leader::identity().context("finding out who this process is")?,
    };
    let election = Election::new(election, clock, candidate, seed(), &parts.metrics);
    let leads = election.leads();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut electing = tokio::spawn(election.run(async {
        let _ = stopped.await;
    }));
    tokio::select! {
        // What is under way ends here, before anybody else may begin.
        () = operator::run(context, of_cloud, leads) => {}
        result = crate::interrupted() => result?,
        ended = &mut electing => match ended.context("the leader election broke off")? {
            Ended::Lost => bail!("leader election lost"),
            Ended::Released => return Ok(ExitCode::SUCCESS),
        },
    }
    // Another replica leads as soon as the lease is given back.
    drop(stop);
    electing.await.context("the leader election broke off")?;
    Ok(ExitCode::SUCCESS)
}

/// The cloud, once it has been asked for all that the start needs.
#[derive(Clone, Default)]
struct Started(Arc<OnceLock<Arc<dyn CloudProvider>>>);

impl Started {
    fn set(&self, cloud: &Arc<dyn CloudProvider>) {
        self.0.get_or_init(|| Arc::clone(cloud));
    }

    /// Whether the cloud is alive. One that is still being asked is.
    fn liveness(&self) -> Result<(), String> {
        self.0.get().map_or(Ok(()), |cloud| cloud.liveness())
    }
}

/// Metrics, liveness and readiness, on threads of their own.
fn serve(parts: &Parts, provider: Provider, started: &Started) -> Result<[Server; 2]> {
    let Parts { cluster, settings, metrics, .. } = parts;
    let (found, crds) = watch::channel(false);
    tokio::spawn(find_crds(parts.api.client().clone(), found));
    let cluster = cluster.clone();
    let ready = vec![
        Check::new(READY_CHECK_MANAGER, move || {
            if cluster.is_listed() { Ok(()) } else { Err("the cluster has not been read yet".to_owned()) }
        }),
        Check::new(READY_CHECK_CRD, move || {
            if *crds.borrow() {
                Ok(())
            } else {
                Err("the definitions of NodePool and NodeClaim are missing".to_owned())
            }
        }),
        Check::ping(READY_CHECK_PING),
    ];
    let health = Pages::health(live(provider, started), ready);
    let start = |port, pages| {
        let listener = serve::listen(port).with_context(|| format!("opening port {port}"))?;
        Server::start(listener, pages).with_context(|| format!("answering on port {port}"))
    };
    let profiling = settings.enable_profiling;
    Ok([
        start(settings.metrics_port, Pages::metrics(metrics.clone(), profiling))?,
        start(settings.health_probe_port, health)?,
    ])
}

/// What must hold for the process to be left alone. Only Azure's provider has something of its own to say.
fn live(provider: Provider, started: &Started) -> Vec<Check> {
    let mut all = vec![Check::ping(HEALTH_CHECK_PING)];
    if provider == Provider::Azure {
        let started = started.clone();
        all.push(Check::new(HEALTH_CHECK_CLOUD_PROVIDER, move || started.liveness()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Start> {
        Start::read(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn provider_and_kubeconfig_are_taken_out_in_any_spelling() {
        let start =
            read(&["-provider=aws", "--metrics-port", "1", "--kubeconfig", "k", "-log-level=debug"]).unwrap();
        assert_eq!(start.provider, Some(Provider::Aws));
        assert_eq!(start.kubeconfig.as_deref(), Some("k"));
        assert_eq!(start.rest, ["--metrics-port", "1", "-log-level=debug"]);
    }

    #[test]
    fn a_provider_that_does_not_exist_is_refused_with_those_that_do() {
        let error = read(&["--provider", "gcp"]).unwrap_err().to_string();
        assert_eq!(error, r#"unknown provider "gcp": expected kwok, aws or azure"#);
        assert_eq!(read(&["--provider"]).unwrap_err().to_string(), "flag --provider needs a value");
    }
}
