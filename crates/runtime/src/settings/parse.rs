//! From flags and variables to settings.

use ::cluster::scheduler_config::SchedulerConfig;
use api::names::flags::{self, Flag};
use api::provider::Provider;

use super::flags::{Read, SettingsError, Values, help, of_provider};
use super::{Command, Gates, LogLevel, MinValuesPolicy, OfProvider, PreferencePolicy, Settings};

/// What Kubernetes' clients use when they are told zero.
const ZERO_QPS: u32 = 5;
const ZERO_BURST: u32 = 10;

pub(super) fn parse(
    provider: Provider,
    arguments: impl IntoIterator<Item = String>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Command, SettingsError> {
    let own = of_provider(provider);
    let known: Vec<&'static Flag> = flags::ALL.iter().chain(own).collect();
    match Values::read(&known, arguments, environment)? {
        Read::Help => Ok(Command::Help(help(&known))),
        Read::Values(values) => settings(&values, own).map(|settings| Command::Run(Box::new(settings))),
    }
}

fn settings(values: &Values, own: &'static [Flag]) -> Result<Settings, SettingsError> {
    let log_level = one_of(values, &flags::LOG_LEVEL, |text| match text {
        "" | "info" => Some(LogLevel::Info),
        "debug" => Some(LogLevel::Debug),
        "error" => Some(LogLevel::Error),
        _ => None,
    })?;
    let preference_policy = one_of(values, &flags::PREFERENCE_POLICY, |text| match text {
        "Respect" => Some(PreferencePolicy::Respect),
        "Ignore" => Some(PreferencePolicy::Ignore),
        _ => None,
    })?;
    let min_values_policy = one_of(values, &flags::MIN_VALUES_POLICY, |text| match text {
        "Strict" => Some(MinValuesPolicy::Strict),
        "BestEffort" => Some(MinValuesPolicy::BestEffort),
        _ => None,
    })?;
    let (gates, unknown_gates) = Gates::parse(values.text(&flags::FEATURE_GATES))?;
    let scheduler_config = SchedulerConfig::parse(values.text(&flags::SCHEDULER_CONFIG))
        .map_err(|error| SettingsError::SchedulerConfig(error.to_string()))?;
    Ok(Settings {
        metrics_port: port(values, &flags::METRICS_PORT)?,
        health_probe_port: port(values, &flags::HEALTH_PROBE_PORT)?,
        kube_client_qps: rate(values, &flags::KUBE_CLIENT_QPS, ZERO_QPS),
        kube_client_burst: rate(values, &flags::KUBE_CLIENT_BURST, ZERO_BURST),
        enable_profiling: values.switch(&flags::ENABLE_PROFILING),
        disable_leader_election: values.switch(&flags::DISABLE_LEADER_ELECTION),
        disable_cluster_state_observability: values.switch(&flags::DISABLE_CLUSTER_STATE_OBSERVABILITY),
        leader_election_name: values.text(&flags::LEADER_ELECTION_NAME).to_owned(),
        leader_election_namespace: values.text(&flags::LEADER_ELECTION_NAMESPACE).to_owned(),
        cpu_requests: values.integer(&flags::CPU_REQUESTS),
        batch_max_duration: values.duration(&flags::BATCH_MAX_DURATION),
        batch_idle_duration: values.duration(&flags::BATCH_IDLE_DURATION),
        preference_policy,
        min_values_policy,
        ignore_dra_requests: values.switch(&flags::IGNORE_DRA_REQUESTS),
        legacy_node_repair: values.switch(&flags::LEGACY_NODE_REPAIR),
        log_level,
        log_output_paths: list(values, &flags::LOG_OUTPUT_PATHS),
        log_error_output_paths: list(values, &flags::LOG_ERROR_OUTPUT_PATHS),
        gates,
        unknown_gates,
        scheduler_config,
        provider: OfProvider(values.of(own)),
    })
}

fn one_of<T>(values: &Values, flag: &Flag, read: impl Fn(&str) -> Option<T>) -> Result<T, SettingsError> {
    let value = values.text(flag);
    read(value).ok_or_else(|| SettingsError::Invalid { variable: flag.env, value: value.to_owned() })
}

fn port(values: &Values, flag: &Flag) -> Result<u16, SettingsError> {
    let value = values.integer(flag);
    u16::try_from(value).map_err(|_| SettingsError::Invalid { variable: flag.env, value: value.to_string() })
}

/// A negative rate means that there is no limit.
fn rate(values: &Values, flag: &Flag, zero: u32) -> u32 {
    match values.integer(flag) {
        0 => zero,
        rate => u32::try_from(rate).unwrap_or(u32::MAX),
    }
}

fn list(values: &Values, flag: &Flag) -> Vec<String> {
    values.text(flag).split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::*;

    fn command(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Command, SettingsError> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        parse(Provider::Kwok, arguments.iter().map(|argument| (*argument).to_owned()), &variable)
    }

    #[track_caller]
    fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Settings {
        match command(arguments, variables) {
            Ok(Command::Run(settings)) => *settings,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        let parsed = run(&[], &[]);
        let defaults = Settings { provider: parsed.provider.clone(), ..Settings::default() };
        assert_eq!(format!("{parsed:?}"), format!("{defaults:?}"));
        assert_eq!(parsed.of_provider(&flags::kwok::INSTANCE_TYPES_FILE_PATH), "");
    }

    #[test]
    fn flags_are_spelled_as_in_go_and_beat_variables() {
        let variables = [("METRICS_PORT", "1"), ("HEALTH_PROBE_PORT", "2"), ("ENABLE_PROFILING", "T")];
        let arguments = [
            "-metrics-port",
            "0x10",
            "--kube-client-qps=-1",
            "-disable-leader-election",
            "--disable-controller-warmup=false",
            "--batch-max-duration",
            "1m30s",
            "--cpu-requests=-5",
            "-instance-types-file-path=types.json",
            "ignored",
            "--nonsense",
        ];
        let settings = run(&arguments, &variables);
        assert_eq!((settings.metrics_port, settings.health_probe_port), (16, 2));
        assert!(settings.enable_profiling && settings.disable_leader_election);
        assert_eq!(settings.batch_max_duration, Duration::from_secs(90));
        assert_eq!((settings.kube_client_qps, settings.cpu_requests), (u32::MAX, -5));
        assert_eq!(settings.of_provider(&flags::kwok::INSTANCE_TYPES_FILE_PATH), "types.json");
    }

    #[test]
    fn a_variable_that_cannot_be_read_counts_as_not_set() {
        let variables = [
            ("METRICS_PORT", "many"),
            ("ENABLE_PROFILING", "yes"),
            ("BATCH_IDLE_DURATION", "5"),
            ("LEADER_ELECTION_NAME", ""),
            ("LOG_OUTPUT_PATHS", "stdout, /var/log/a"),
        ];
        let settings = run(&[], &variables);
        assert_eq!((settings.metrics_port, settings.enable_profiling), (8080, false));
        assert_eq!(settings.batch_idle_duration, Duration::from_secs(1));
        assert_eq!(settings.leader_election_name, "");
        assert_eq!(settings.log_output_paths, ["stdout", "/var/log/a"]);
    }

    #[test]
    fn a_wrong_setting_stops_the_process_with_one_sentence() {
        let variables = [("LOG_LEVEL", "loud")];
        let mut lines = vec![command(&[], &variables).unwrap_err().to_string()];
        for arguments in [
            &["--metrics-port=x"][..],
            &["--metrics-port"],
            &["--metrics-port=70000"],
            &["--enable-profiling=1"],
            &["--batch-max-duration", "10"],
            &["--cpu-requests=99999999999999999999"],
            &["--nonsense"],
            &["---x"],
            &["--preference-policy=ignore"],
            &["--min-values-policy="],
            &["--feature-gates=A"],
            &["--scheduler-config=a: b"],
            &["--scheduler-config={podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}}"],
        ] {
            lines.push(command(arguments, &[]).unwrap_err().to_string());
        }
        expect![[r#"
            validating cli flags / env vars, invalid LOG_LEVEL "loud"
            parsing flags, invalid value "x" for flag -metrics-port: parse error
            parsing flags, flag needs an argument: -metrics-port
            validating cli flags / env vars, invalid METRICS_PORT "70000"
            parsing flags, invalid value "1" for flag -enable-profiling: "1" is not a valid value, must be true or false
            parsing flags, invalid value "10" for flag -batch-max-duration: parse error
            parsing flags, invalid value "99999999999999999999" for flag -cpu-requests: value out of range
            parsing flags, flag provided but not defined: -nonsense
            parsing flags, bad flag syntax: ---x
            validating cli flags / env vars, invalid PREFERENCE_POLICY "ignore"
            validating cli flags / env vars, invalid MIN_VALUES_POLICY ""
            parsing feature gates, "A" is no pair; expected NAME=true or NAME=false
            parsing scheduler config, decoding scheduler config, unknown field `a`, expected one of podTopologySpread at line 1, column 1
            parsing scheduler config, validating scheduler config, podTopologySpread.defaultConstraints[0].maxSkew must be greater than 0"#]].assert_eq(&lines.join("\n"));
    }

    #[test]
    fn workers_grow_with_the_processor() {
        let workers = |cpu_requests| Settings { cpu_requests, ..Settings::default() }.workers(10, 1000);
        let rows =
            [(500, 10), (1000, 10), (1500, 26), (15_000, 244), (60_000, 1000), (100_000, 1000), (0, 10)];
        for (millis, expected) in rows {
            assert_eq!(workers(millis), expected, "{millis}m");
        }
    }

    #[test]
    fn help_lists_every_flag() {
        for word in ["-h", "--help", "-help"] {
            let Ok(Command::Help(text)) = command(&[word], &[]) else { panic!("no help for {word}") };
            for flag in flags::ALL.iter().chain(flags::kwok::ALL) {
                assert!(
                    text.contains(&format!("--{}", flag.flag)) && text.contains(flag.env),
                    "{}",
                    flag.flag
                );
            }
        }
    }

    #[test]
    fn the_flags_of_a_provider_are_its_own() {
        let aws = parse(Provider::Aws, ["--cluster-name=c".to_owned()], &|_| None).unwrap();
        let Command::Run(settings) = aws else { panic!("{aws:?}") };
        assert_eq!(settings.of_provider(&flags::aws::CLUSTER_NAME), "c");
        assert_eq!(settings.of_provider(&flags::aws::VM_MEMORY_OVERHEAD_PERCENT), "0.075");
        assert!(command(&["--cluster-name=c"], &[]).is_err());
    }

    #[test]
    fn what_is_set_for_a_provider_is_not_shown() {
        let token = "--kubelet-bootstrap-token=abcdef.0123456789abcdef".to_owned();
        let azure = parse(Provider::Azure, [token], &|_| None).unwrap();
        let shown = format!("{azure:?}");
        assert!(shown.contains("kubelet-bootstrap-token") && !shown.contains("0123456789abcdef"), "{shown}");
        let Command::Run(settings) = azure else { panic!("{shown}") };
        assert_eq!(settings.of_provider(&flags::azure::KUBELET_BOOTSTRAP_TOKEN), "abcdef.0123456789abcdef");
    }
}
