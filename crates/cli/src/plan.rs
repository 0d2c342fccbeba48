//! `karpenter plan`: what would be launched for a cluster, without touching it.

mod catalogue;
mod disruption;
mod live;
mod overlays;
mod provider;
mod removal;
mod report;
mod rooms;
mod table;
mod warnings;
mod words;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use api::provider::Provider;
use cluster::file::{self, Contents};
use cluster::scheduler_config::SchedulerConfig;
use cluster::snapshot::{self, InstanceTypes};
use cluster::state::State;
use engine::options::{MinValues, Options, Preferences, Reserved};
use operator::disruption::preview;
use overlays::Corrected;
use provider::Pool;
use report::{Report, Timings};
use runtime::Settings;
use runtime::settings::Gates;
use serde_json::Value;

/// Work out which nodes a cluster's pending pods need, from what `kubectl get -o json` or `-o yaml` printed
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Cluster file: NodePools, pods, nodes and whatever else there is; `-` is standard input, gzip is fine
    #[arg(short, long = "file", value_name = "FILE", num_args = 1.., required_unless_present_any = ["disruption", "remove_node"])]
    files: Vec<PathBuf>,
    /// Work out which nodes would be disrupted now, and why the others stay; without files, of the cluster that
    /// the kubeconfig names. Broken nodes are repaired with the feature gate NodeRepair, by the provider's policies
    #[arg(long)]
    disruption: bool,
    /// Work out what happens without a node, whatever keeps it; may be repeated. Exits with 2 if pods have no place
    #[arg(long, value_name = "NODE", conflicts_with = "disruption")]
    remove_node: Vec<String>,
    /// Feature gates, such as `CapacityBuffer=true,SpotToSpotConsolidation=true`
    #[arg(long, value_name = "GATES", env = "FEATURE_GATES", default_value = "")]
    feature_gates: String,
    /// Whose nodes: kwok, aws or azure; as the NodeClasses of the NodePools say if not given
    #[arg(long, value_name = "NAME")]
    provider: Option<Provider>,
    /// Instance types in the format of upstream's kwok provider; for simulated nodes, 144 built-in types if not given
    #[arg(long, value_name = "FILE")]
    instance_types: Option<PathBuf>,
    /// What to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Explain one pod, given as NAMESPACE/NAME
    #[arg(long, value_name = "POD")]
    explain: Option<String>,
    /// Whether wishes of pods count
    #[arg(long, value_enum, default_value_t = PreferencePolicy::Respect, env = "PREFERENCE_POLICY", ignore_case = true)]
    preference_policy: PreferencePolicy,
    /// What happens where a pool asks for more choice than there is
    #[arg(long, value_enum, default_value_t = MinValuesPolicy::Strict, env = "MIN_VALUES_POLICY", ignore_case = true)]
    min_values_policy: MinValuesPolicy,
    /// Topology spread that the scheduler gives to pods without their own, as YAML or JSON
    #[arg(long, value_name = "YAML", env = "SCHEDULER_CONFIG", default_value = "")]
    scheduler_config: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For people
    Table,
    /// For programs
    Json,
    /// For programs, and readable
    Yaml,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PreferencePolicy {
    /// They are kept as long as they can be
    Respect,
    /// They are not read
    Ignore,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum MinValuesPolicy {
    /// No node is launched
    Strict,
    /// The demand is lowered to what there is
    BestEffort,
}

/// Some pods fit nowhere.
const PENDING: u8 = 2;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.disruption || !args.remove_node.is_empty() {
        return disrupt(args);
    }
    let gates = gates(args)?;
    let mut watch = Stopwatch::start();
    let contents = read(&args.files)?;
    let provider = provider_of(args, &contents)?;
    let types = catalogue::read(args.instance_types.as_deref(), provider)?;
    warnings::unsaid(provider, &contents.objects.node_pools, &types);
    let scheduler_config =
        SchedulerConfig::parse(&args.scheduler_config).context("reading --scheduler-config")?;
    let read = watch.lap();

    let corrected = Corrected::of_files(&contents.objects, &types, provider);
    let rooms = rooms::of_files(&contents.objects, gates);
    let mut options = snapshot::Options::new(provider, &types);
    if let Some(Corrected { types, .. }) = &corrected {
        options.instance_types = InstanceTypes::ByPool(types);
    }
    options.scheduler_config = scheduler_config;
    options.accept_unseen_pods = true;
    options.rooms = &rooms;
    let built = snapshot::build(&contents.objects, &options, now());
    let snapshot = watch.lap();

    let plan = engine::solve::solve(&built.snapshot, &solve_options(args));
    let timings = Timings { read, snapshot, solve: watch.lap() };

    warnings::of_files(&contents);
    warnings::overlays(corrected.as_ref());
    rooms::warn(&rooms);
    warnings::ignored(built.ignored.iter().filter(|ignored| ignored.kind != "Pod"));
    let rejected = built
        .ignored
        .iter()
        .filter(|ignored| ignored.kind == "Pod" && ignored.reason.is_rejection())
        .map(|ignored| (warnings::object_name(ignored), ignored.reason.to_string()));
    let report = Report::new(&built.snapshot, plan, rejected, timings);
    let pending = !report.errors.is_empty();
    crate::print(&render(args, &report)?)?;
    Ok(if pending { ExitCode::from(PENDING) } else { ExitCode::SUCCESS })
}

/// Answers what would be disrupted, or what happens without a node.
fn disrupt(args: &Args) -> Result<ExitCode> {
    let gates = gates(args)?;
    let settings = Arc::new(settings(args, gates)?);
    let (state, overlays) = if args.files.is_empty() {
        let state = live::state(args.provider, gates)?;
        warnings::unreadable(&state);
        (state, None)
    } else {
        let contents = read(&args.files)?;
        let provider = provider_of(args, &contents)?;
        warnings::of_files(&contents);
        rooms::warn_ignored(&contents.objects, gates);
        let overlays = contents.objects.node_overlays.clone();
        (State::of_files(contents.objects, provider), Some(overlays))
    };
    let types = catalogue::read(args.instance_types.as_deref(), state.provider())?;
    warnings::unsaid(state.provider(), state.node_pools.values().map(AsRef::as_ref), &types);
    let corrected = Corrected::of_state(&state, overlays.as_deref(), &types);
    warnings::overlays(corrected.as_ref());
    if gates.capacity_buffer {
        rooms::warn(&cluster::buffers::rooms(&state));
    }
    let same_for_all = || {
        let names = state.node_pools.values().filter_map(|pool| pool.metadata.name.as_deref());
        names.map(|name| (name.into(), Arc::clone(&types))).collect()
    };
    let types = corrected.map_or_else(same_for_all, |corrected| corrected.types);
    warnings::of_nodes(&state, &types);
    if args.remove_node.is_empty() {
        let repair = gates.node_repair.then(|| provider::repair_policies(state.provider())).transpose()?;
        let found = preview::preview(&state, &types, &settings, repair, now());
        answer(args.output, || disruption::table(&found), || disruption::as_json(&found))?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = &args.remove_node;
    let found = preview::without_nodes(&state, &types, &settings, names, now()).map_err(|unknown| {
        let each: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        anyhow!(each.join("; "))
    })?;
    answer(args.output, || removal::table(names, &found), || removal::as_json(&found))?;
    Ok(if found.unplaced.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(PENDING) })
}

/// Prints an answer as it is asked for.
fn answer(output: Output, table: impl FnOnce() -> String, data: impl FnOnce() -> Value) -> Result<()> {
    let text = match output {
        Output::Table => table(),
        Output::Json => serde_json::to_string(&data()).context("printing JSON")? + "\n",
        Output::Yaml => serde_saphyr::to_string(&data()).context("printing YAML")?,
    };
    crate::print(&text)
}

fn settings(args: &Args, gates: Gates) -> Result<Settings> {
    Ok(Settings {
        gates,
        preference_policy: match args.preference_policy {
            PreferencePolicy::Respect => runtime::settings::PreferencePolicy::Respect,
            PreferencePolicy::Ignore => runtime::settings::PreferencePolicy::Ignore,
        },
        min_values_policy: match args.min_values_policy {
            MinValuesPolicy::Strict => runtime::settings::MinValuesPolicy::Strict,
            MinValuesPolicy::BestEffort => runtime::settings::MinValuesPolicy::BestEffort,
        },
        scheduler_config: SchedulerConfig::parse(&args.scheduler_config)
            .context("reading --scheduler-config")?,
        ..Settings::default()
    })
}

/// Whose nodes the NodePools of files have.
fn provider_of(args: &Args, contents: &Contents) -> Result<Provider> {
    let pools: Vec<Pool> = contents.objects.node_pools.iter().map(Pool::of).collect();
    provider::find(args.provider, &pools)
}

fn gates(args: &Args) -> Result<Gates> {
    let (gates, unknown) = Gates::parse(&args.feature_gates)?;
    if !unknown.is_empty() {
        bail!("unknown feature gates: {}", unknown.join(", "));
    }
    Ok(gates)
}

fn solve_options(args: &Args) -> Options {
    Options {
        preferences: match args.preference_policy {
            PreferencePolicy::Respect => Preferences::Respect,
            PreferencePolicy::Ignore => Preferences::Ignore,
        },
        min_values: match args.min_values_policy {
            MinValuesPolicy::Strict => MinValues::Strict,
            MinValuesPolicy::BestEffort => MinValues::BestEffort,
        },
        reserved: Reserved::Strict,
    }
}

fn read(files: &[PathBuf]) -> Result<Contents> {
    let mut all = Contents::default();
    for path in files {
        let contents = file::read(path).with_context(|| format!("reading {}", shown(path)))?;
        all.extend(contents);
    }
    if all.objects.is_empty() && !all.errors.is_empty() {
        let errors: Vec<String> = all.errors.iter().map(ToString::to_string).collect();
        bail!("no object could be read:\n  {}", errors.join("\n  "));
    }
    if all.objects.node_pools.is_empty() {
        bail!("the files contain {}", provider::NO_POOL);
    }
    Ok(all)
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

fn render(args: &Args, report: &Report) -> Result<String> {
    if let Some(pod) = &args.explain {
        return table::explanation(report, pod).with_context(|| {
            format!("no pod {pod:?} is to be placed; give NAMESPACE/NAME of a pending pod")
        });
    }
    match args.output {
        Output::Table => Ok(table::overview(report)),
        Output::Json => serde_json::to_string(report).map(|text| text + "\n").context("printing JSON"),
        Output::Yaml => serde_saphyr::to_string(report).context("printing YAML"),
    }
}

/// The one place of this command that looks at the clock.
#[expect(clippy::disallowed_methods, reason = "decisions get the time from here")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "the user is told how long it took")]
    fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start or the last lap.
    fn lap(&mut self) -> f64 {
        let elapsed = self.0.elapsed();
        *self = Self::start();
        elapsed.as_secs_f64() * 1000.0
    }
}
