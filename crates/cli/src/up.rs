//! `karpenter up`: a Kubernetes cluster in this process, for trying things out.

mod decisions;
mod demo;
mod kubeconfig;
mod objects;
mod tell;
mod tls;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::provider::Provider;
use clock::Clock;
use cluster::instance_types::InstanceType;
use controlplane::{KubeletOptions, NodeSelection};
use embedded::Server;
use kwok::Kwok;
use operator::Parts;
use runtime::Settings;
use runtime::serve::{Pages, Server as Metrics};
use runtime::settings::Gates;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::signals::Signals;
use tell::{Known, Terminal};

/// Run a Kubernetes cluster with simulated nodes in this process; kubectl works against it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Apply these manifests first; `-` is standard input
    #[arg(short, long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to write the kubeconfig, a temporary file if not given; it goes away with the cluster, and one that
    /// is left of a cluster that was killed is replaced
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// The port of the API server on this machine; any free one if 0
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// How long simulated nodes take until they are ready
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    node_ready_after: u64,
    /// How long simulated pods take to start
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    pod_start: u64,
    /// A JSON file with the instance types that nodes can have; built-in ones if not given
    #[arg(long, value_name = "FILE")]
    instance_types: Option<PathBuf>,
    /// Features to switch on, such as StaticCapacity=true
    #[arg(long, value_name = "NAME=BOOL,...", default_value = "")]
    feature_gates: String,
    /// Play the walk-through: a NodePool, a deployment, a node that comes and goes
    #[arg(long)]
    demo: bool,
    /// Do not tell decisions
    #[arg(long)]
    quiet: bool,
    /// Write the controller's whole log, one JSON object per line; `-` is standard error
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let objects = objects::read(&args.files)?;
    let types = kwok::instance_types(args.instance_types.as_deref()).context("reading --instance-types")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // For the connections; the cluster's own controllers run in this thread.
        .worker_threads(1)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    runtime.block_on(up(args, &objects, types))?;
    // Connections that are still open end here and now.
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(ExitCode::SUCCESS)
}

async fn up(args: &Args, objects: &[objects::Source], types: Vec<InstanceType>) -> Result<()> {
    let (gates, unknown) = Gates::parse(&args.feature_gates).context("reading --feature-gates")?;
    if let Some(name) = unknown.first() {
        bail!("--feature-gates: there is no feature {name}");
    }
    // From here on a signal cannot end the process before it has cleared up.
    let mut signals = Signals::listen()?;
    if let Some(path) = &args.kubeconfig
        && kubeconfig::clear(path)?
    {
        crate::print(&format!("{} was left of a cluster that is gone; it is replaced.\n", path.display()))?;
    }
    let clock = Clock::system();
    let heard = tell::listen(args.quiet, args.log.as_deref(), clock)?;
    let server = Server::new(clock, &embedded::Options::of_cluster());
    for definition in api::crds::documents(Provider::Kwok) {
        objects::apply(&server, &definition.document, &definition.file_name)?;
    }
    objects::apply(&server, &objects::storage_class(), "the default StorageClass")?;
    for source in objects {
        objects::apply(&server, &source.object, &source.origin)?;
    }

    let listener = TcpListener::bind(("127.0.0.1", args.port))
        .await
        .with_context(|| format!("opening port {} on this machine", args.port))?;
    let address = listener.local_addr().context("reading the port")?;
    let identity = tls::Identity::generate()?;
    let kubeconfig = kubeconfig::Kubeconfig::write(args.kubeconfig.as_deref(), address, &identity)?;
    let client = kube::Client::new(server.service(), "default");
    let settings = Settings { gates, ..Settings::default() };
    let parts = Parts::new(client.clone(), Provider::Kwok, clock, settings);
    let facts = Known {
        cluster: parts.cluster.clone(),
        overlays: parts.overlays.clone(),
        types: types.clone().into(),
    };
    let kwok = Kwok::new(parts.api.clone(), parts.cluster.clone(), clock, 0, types);
    let kwok = kwok.with_overlays(parts.overlays.clone());
    let of_cloud = kwok.controllers(&parts.events, &parts.metrics);
    let metrics = std::net::TcpListener::bind(("127.0.0.1", 0)).context("opening a port for metrics")?;
    let metrics =
        Metrics::start(metrics, Pages::metrics(parts.metrics.clone(), false)).context("serving metrics")?;
    let (_leads, leading) = watch::channel(true);
    let (path, metrics) = (kubeconfig.path().display().to_string(), metrics.address().to_string());
    crate::print(&(greeting(&path, &address.to_string(), &metrics) + &hint(args, &path)))?;
    let terminal = Terminal::new(clock);
    let options = controlplane::Options {
        kubelet: Some(KubeletOptions {
            nodes: NodeSelection::All,
            ready_after: Duration::from_secs(args.node_ready_after),
            pod_start: Duration::from_secs(args.pod_start),
            ..KubeletOptions::default()
        }),
        ..controlplane::Options::default()
    };
    let acceptor = identity.acceptor()?;
    let token: Arc<str> = identity.token.as_str().into();
    tokio::select! {
        result = controlplane::run(client, clock, options) => match result {
            Ok(never) => match never {},
            Err(error) => Err(error).context("the cluster's controllers stopped"),
        },
        result = tls::serve(listener, acceptor, server.service(), token) => result,
        () = operator::run(parts.context(Arc::new(kwok)), of_cloud, leading) => Ok(()),
        result = demo::play(&server, &terminal), if args.demo => result,
        () = tell::tell(heard, facts, terminal.clone()) => Ok(()),
        () = signals.received() => Ok(()),
    }
}

fn greeting(kubeconfig: &str, address: &str, metrics: &str) -> String {
    format!(
        "Kubernetes is running in this process. Ctrl-C ends it and leaves nothing behind.

  kubeconfig  {kubeconfig}
  API server  https://{address}
  metrics     http://{metrics}/metrics

"
    )
}

/// What to do next.
fn hint(args: &Args, kubeconfig: &str) -> String {
    let look = "kubectl get pods,nodes,nodeclaims";
    if args.demo {
        return format!("Look at it in another terminal:\n\n  export KUBECONFIG={kubeconfig}\n  {look}\n\n");
    }
    let program = std::env::args().next().unwrap_or_else(|| "karpenter".to_owned());
    let told = if args.quiet { "" } else { "Decisions are told here as they happen.\n\n" };
    format!(
        "Try in another terminal:

  export KUBECONFIG={kubeconfig}
  {program} example nodepool inflate | kubectl apply -f -
  kubectl scale deployment inflate --replicas=5
  {look}

{told}"
    )
}
