//! `karpenter plan`: what would be launched for a cluster, without touching it.

mod catalogue;
mod disruption;
mod given;
mod live;
mod overlays;
mod provider;
mod removal;
mod report;
mod rooms;
mod table;
mod warnings;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use api::provider::Provider;
use cluster::reason::Ignored;
use cluster::scheduler_config::SchedulerConfig;
use cluster::snapshot::{self, InstanceTypes};
use cluster::state::State;
use given::Given;
use operator::disruption::preview;
use overlays::Corrected;
use report::{Report, Timings};
use runtime::Settings;
use runtime::settings::{Gates, SettingsError};
use serde_json::Value;
use words::counted;

use crate::terminal;

/// Work out which nodes the pending pods of a cluster need, without touching it
#[derive(clap::Args)]
#[command(after_help = EXIT_STATUS)]
pub(crate) struct Args {
    /// What `kubectl get -o json` or `-o yaml` printed, or manifests: NodePools, pods, workloads, nodes and whatever
    /// else there is. A directory stands for all its YAML and JSON files, `-` for standard input; gzip is fine.
    /// Without files the cluster of the kubeconfig is asked
    #[arg(short, long = "file", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,
    /// The cluster's kubeconfig; without it, the cluster that this process is in, else that of the usual kubeconfig
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    kubeconfig: Option<String>,
    /// Go on without objects that are not understood, instead of failing
    #[arg(long)]
    ignore_unknown: bool,
    /// Work out which nodes would be disrupted now, and why the others stay. Broken nodes are repaired with the
    /// feature gate NodeRepair, by the provider's policies
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
    #[arg(long, value_name = "POD", conflicts_with_all = ["disruption", "remove_node"])]
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

/// What the exit status says.
const EXIT_STATUS: &str = "Exits with 0 if every pod has a place, with 2 if some have none, with 1 if the answer could \
    not be found, and with 64 if the command line is wrong. With --disruption, 0 stands for any answer.";

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
    let settings = settings(args, gates)?;
    let mut watch = Stopwatch::start();
    let given = Given::read(args, gates)?;
    let provider = given.provider();
    let types = catalogue::read(args.instance_types.as_deref(), provider)?;
    warnings::unsaid(provider, given.node_pools(), &types);
    let read = watch.lap();

    let (corrected, rooms) = (given.corrected(&types), given.rooms(gates));
    let choice = match &corrected {
        Some(Corrected { types, .. }) => InstanceTypes::ByPool(types),
        None => InstanceTypes::Same(&types),
    };
    let built = given.build(choice, &rooms, &settings, now());
    let snapshot = watch.lap();

    let plan = operator::provisioner::plan::plan(&built, &settings);
    let timings = Timings { read, snapshot, solve: watch.lap() };

    warnings::overlays(corrected.as_ref());
    rooms::warn(&rooms);
    refuse(args, &mistakes(&built.ignored))?;
    let ignored =
        built.ignored.iter().filter(|ignored| ignored.kind != "Pod" && !ignored.reason.is_mistake());
    warnings::ignored(ignored);
    let rejected = built
        .ignored
        .iter()
        .filter(|ignored| ignored.kind == "Pod" && ignored.reason.is_rejection())
        .map(|ignored| (warnings::object_name(ignored), ignored.reason.sentence()));
    let report = Report::new(&built.snapshot, plan, rejected, timings);
    let pending = !report.errors.is_empty();
    crate::print(&render(args, &report)?)?;
    Ok(if pending { ExitCode::from(PENDING) } else { ExitCode::SUCCESS })
}

/// Answers what would be disrupted, or what happens without a node.
fn disrupt(args: &Args) -> Result<ExitCode> {
    let gates = gates(args)?;
    let settings = Arc::new(settings(args, gates)?);
    let (state, overlays) = match Given::read(args, gates)? {
        Given::Cluster(state) => (*state, None),
        Given::Files(objects, provider) => {
            rooms::warn_ignored(&objects, gates);
            let overlays = objects.node_overlays.clone();
            (State::of_files(*objects, provider), Some(overlays))
        }
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
    let mut options = snapshot::Options::new(state.provider(), &[]);
    options.instance_types = InstanceTypes::ByPool(&types);
    refuse(args, &mistakes(&snapshot::build(&state, &options, now()).ignored))?;
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
        Output::Table => terminal::wrapped(&table()),
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
        scheduler_config: scheduler_config(args)?,
        ..Settings::default()
    })
}

fn scheduler_config(args: &Args) -> Result<SchedulerConfig> {
    SchedulerConfig::parse(&args.scheduler_config)
        .map_err(|error| crate::usage(format!("reading --scheduler-config: {error}")))
}

fn gates(args: &Args) -> Result<Gates> {
    let (gates, unknown) = Gates::parse(&args.feature_gates).map_err(|error| match error {
        SettingsError::Gates(why) => crate::usage(format!("--feature-gates: {why}")),
        other => crate::usage(other.to_string()),
    })?;
    match unknown.first() {
        Some(name) => Err(crate::usage(format!("--feature-gates: there is no feature {name}"))),
        None => Ok(gates),
    }
}

/// Objects that have no part in a plan because they are wrong. Pods are told with all that have no place.
fn mistakes(ignored: &[Ignored]) -> Vec<String> {
    let wrong = ignored.iter().filter(|ignored| ignored.kind != "Pod" && ignored.reason.is_mistake());
    wrong.map(|ignored| warnings::plain(&ignored.to_string())).collect()
}

/// Fails over what was not understood, unless it is to be ignored; then it is said.
fn refuse(args: &Args, mistakes: &[String]) -> Result<()> {
    if mistakes.is_empty() {
        return Ok(());
    }
    if args.ignore_unknown {
        for mistake in mistakes {
            warnings::say(&format!("warning: {mistake}"));
        }
        return Ok(());
    }
    let (count, them) = (counted(mistakes.len(), "object"), if mistakes.len() == 1 { "it" } else { "them" });
    bail!("{count} cannot be used; --ignore-unknown plans without {them}:\n  {}", mistakes.join("\n  "))
}

fn render(args: &Args, report: &Report) -> Result<String> {
    let Some(pod) = &args.explain else {
        return match args.output {
            Output::Table => Ok(terminal::wrapped(&table::overview(report))),
            Output::Json => serde_json::to_string(report).map(|text| text + "\n").context("printing JSON"),
            Output::Yaml => serde_saphyr::to_string(report).context("printing YAML"),
        };
    };
    let explained = report
        .explained(pod)
        .with_context(|| format!("no pod {pod:?} is to be placed; give NAMESPACE/NAME of a pending pod"))?;
    match args.output {
        Output::Table => Ok(terminal::wrapped(&table::explanation(&explained))),
        Output::Json => serde_json::to_string(&explained).map(|text| text + "\n").context("printing JSON"),
        Output::Yaml => serde_saphyr::to_string(&explained).context("printing YAML"),
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
