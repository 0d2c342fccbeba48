//! What the administrator can set, by flags or by the environment. Entry: [`Settings::parse`].

mod flags;
mod gates;
mod parse;

use std::collections::BTreeMap;
use std::time::Duration;

use api::names::flags::Flag;
use api::provider::Provider;

pub use flags::SettingsError;

/// What the command line asks for.
#[derive(Clone, Debug)]
pub enum Command {
    /// To run with these settings.
    Run(Box<Settings>),
    /// To explain the flags with this text.
    Help(String),
}

/// The least severe log lines that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What is worth knowing.
    #[default]
    Info,
    /// What went wrong.
    Error,
}

/// Whether wishes of pods count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreferencePolicy {
    /// They are kept as long as they can be.
    #[default]
    Respect,
    /// They are not read.
    Ignore,
}

/// What happens where a pool asks for more choice than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinValuesPolicy {
    /// No node is launched.
    #[default]
    Strict,
    /// The demand is lowered to what there is.
    BestEffort,
}

/// Features that are switched on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "switches are independent of each other")]
pub struct Gates {
    /// Replaces or reboots nodes that the provider's repair policies find broken.
    pub node_repair: bool,
    /// Uses capacity that is reserved, before any other.
    pub reserved_capacity: bool,
    /// Replaces spot nodes with cheaper spot nodes.
    pub spot_to_spot_consolidation: bool,
    /// Corrects prices and capacities with NodeOverlays.
    pub node_overlay: bool,
    /// Keeps NodePools with `replicas` at that number of nodes.
    pub static_capacity: bool,
    /// Keeps spare capacity for CapacityBuffers.
    pub capacity_buffer: bool,
    /// Terminates a drifted node first when its replacement needs the capacity that it holds.
    pub terminate_first_drift: bool,
    /// Terminates a broken node first when its replacement needs the capacity that it holds.
    pub terminate_first_repair: bool,
    /// Makes ReplicaSets delete pods first from nodes that are to go.
    pub pod_deletion_cost_management: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            node_repair: false,
            reserved_capacity: true,
            spot_to_spot_consolidation: false,
            node_overlay: false,
            static_capacity: false,
            capacity_buffer: false,
            terminate_first_drift: false,
            terminate_first_repair: false,
            pod_deletion_cost_management: false,
        }
    }
}

/// The provider's own settings by flag. Some of them are secret, so that only names are ever shown.
#[derive(Clone, Default)]
pub struct OfProvider(BTreeMap<&'static str, String>);

impl std::fmt::Debug for OfProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// All settings of the core.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches are independent of each other")]
pub struct Settings {
    /// Port of metrics and profiles.
    pub metrics_port: u16,
    /// Port of liveness and readiness.
    pub health_probe_port: u16,
    /// Requests per second to the API server in the long run.
    pub kube_client_qps: u32,
    /// Requests to the API server at once.
    pub kube_client_burst: u32,
    /// Whether profiles are served.
    pub enable_profiling: bool,
    /// Whether there is no election.
    pub disable_leader_election: bool,
    /// Whether there are no metrics of pods, nodes and pools, and no events of conditions.
    pub disable_cluster_state_observability: bool,
    /// The name of the Lease.
    pub leader_election_name: String,
    /// The namespace of the Lease; the pod's own when empty.
    pub leader_election_namespace: String,
    /// The processor request in thousandths.
    pub cpu_requests: i64,
    /// How long pending pods are collected at most.
    pub batch_max_duration: Duration,
    /// How long no pod must have come before a decision.
    pub batch_idle_duration: Duration,
    /// Whether wishes of pods count.
    pub preference_policy: PreferencePolicy,
    /// Whether `minValues` may be relaxed.
    pub min_values_policy: MinValuesPolicy,
    /// Whether pods with resource claims are left alone.
    pub ignore_dra_requests: bool,
    /// Whether nodes are repaired as older releases did.
    pub legacy_node_repair: bool,
    /// The least severe log lines that are written.
    pub log_level: LogLevel,
    /// Where log lines are written: `stdout`, `stderr` or files.
    pub log_output_paths: Vec<String>,
    /// Where the logger writes its own errors.
    pub log_error_output_paths: Vec<String>,
    /// Features that are switched on or off.
    pub gates: Gates,
    /// Features that were switched and that nobody knows; worth a log line.
    pub unknown_gates: Vec<String>,
    /// How the cluster's scheduler is configured.
    pub scheduler_config: ::cluster::scheduler_config::SchedulerConfig,
    /// The provider's own settings by flag; see [`Settings::of_provider`].
    pub provider: OfProvider,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            metrics_port: 8080,
            health_probe_port: 8081,
            kube_client_qps: 200,
            kube_client_burst: 300,
            enable_profiling: false,
            disable_leader_election: false,
            disable_cluster_state_observability: false,
            leader_election_name: "karpenter-leader-election".to_owned(),
            leader_election_namespace: String::new(),
            cpu_requests: 1000,
            batch_max_duration: Duration::from_secs(10),
            batch_idle_duration: Duration::from_secs(1),
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            ignore_dra_requests: true,
            legacy_node_repair: false,
            log_level: LogLevel::default(),
            log_output_paths: vec!["stdout".to_owned()],
            log_error_output_paths: vec!["stderr".to_owned()],
            gates: Gates::default(),
            unknown_gates: Vec::new(),
            scheduler_config: ::cluster::scheduler_config::SchedulerConfig::default(),
            provider: OfProvider::default(),
        }
    }
}

impl Settings {
    /// Reads the command line, without the program's name, and the environment. Flags beat variables.
    pub fn parse(
        provider: Provider,
        arguments: impl IntoIterator<Item = String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Command, SettingsError> {
        parse::parse(provider, arguments, &environment)
    }

    /// The value of one of the provider's flags; empty if it was neither set nor has a default. It is of the
    /// flag's kind.
    pub fn of_provider(&self, flag: &Flag) -> &str {
        self.provider.0.get(flag.flag).map(String::as_str).or(flag.default).unwrap_or_default()
    }

    /// How many keys a controller looks at at the same time: from `least` on one core to `most` on sixty.
    pub fn workers(&self, least: usize, most: usize) -> usize {
        let millis = if self.cpu_requests <= 0 { 1000 } else { self.cpu_requests };
        let cores = usize::try_from(millis.unsigned_abs().div_ceil(1000)).unwrap_or(usize::MAX);
        (((most - least).saturating_mul(cores - 1)) / 59 + least).clamp(least, most)
    }

    /// How long a node is kept for pods that were promised it.
    pub fn nomination_window(&self) -> Duration {
        (self.batch_max_duration * 2).max(Duration::from_secs(10))
    }
}
