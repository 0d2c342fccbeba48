//! What the administrator can set about AWS.

use std::time::Duration;

use api::names::flags::{Flag, aws as flags};
use api::names::gates::AWS_NODE_CLASS_CEL;
use runtime::settings::Settings;
use units::GoDuration;

/// More often, AWS is not asked.
const LEAST_REFRESH: Duration = Duration::from_mins(1);

/// What the administrator set about AWS.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "switches are independent of each other")]
pub struct AwsSettings {
    /// Certificates by which nodes know the API server, in base64; the controller's own when absent.
    pub cluster_ca_bundle: Option<String>,
    /// The cluster's name.
    pub cluster_name: String,
    /// The address of the API server; asked from EKS when absent.
    pub cluster_endpoint: Option<String>,
    /// Whether services without an endpoint in the network are left alone.
    pub isolated_vpc: bool,
    /// Whether EKS is asked for the version of Kubernetes.
    pub eks_control_plane: bool,
    /// The share of the memory that the hypervisor takes.
    pub vm_memory_overhead_percent: f64,
    /// The name of the queue with interruptions, if they are handled.
    pub interruption_queue: Option<String>,
    /// How many network interfaces pods cannot use.
    pub reserved_enis: i64,
    /// Whether launches are not tried out to validate an EC2NodeClass.
    pub disable_dry_run: bool,
    /// Whether zones are avoided that traffic is shifted away from.
    pub enable_zonal_shift: bool,
    /// How often images are looked up.
    pub ami_refresh_interval: Duration,
    /// How often subnets are looked up.
    pub subnet_refresh_interval: Duration,
    /// Whether expressions in the kubelet's settings are evaluated.
    pub node_class_cel: bool,
    /// Features that were switched and that nobody knows; worth a log line.
    pub unknown_gates: Vec<String>,
}

/// Why the process cannot start with these settings. Everything that is wrong is named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("validating AWS options, {0}")]
pub struct InvalidSettings(String);

impl AwsSettings {
    /// Reads the provider's part of the settings.
    pub fn new(settings: &Settings) -> Result<Self, InvalidSettings> {
        let text = |flag: &Flag| Some(settings.of_provider(flag).to_owned()).filter(|text| !text.is_empty());
        let switch = |flag: &Flag| settings.of_provider(flag) == "true";
        let mut wrong = Vec::new();
        let (node_class_cel, unknown_gates) = gates(settings.of_provider(&flags::FEATURE_GATES), &mut wrong);
        let read = Self {
            cluster_ca_bundle: text(&flags::CLUSTER_CA_BUNDLE),
            cluster_name: text(&flags::CLUSTER_NAME).unwrap_or_default(),
            cluster_endpoint: text(&flags::CLUSTER_ENDPOINT),
            isolated_vpc: switch(&flags::ISOLATED_VPC),
            eks_control_plane: switch(&flags::EKS_CONTROL_PLANE),
            vm_memory_overhead_percent: settings
                .of_provider(&flags::VM_MEMORY_OVERHEAD_PERCENT)
                .parse()
                .unwrap_or_default(),
            interruption_queue: text(&flags::INTERRUPTION_QUEUE),
            reserved_enis: settings.of_provider(&flags::RESERVED_ENIS).parse().unwrap_or_default(),
            disable_dry_run: switch(&flags::DISABLE_DRY_RUN),
            enable_zonal_shift: switch(&flags::ENABLE_ZONAL_SHIFT),
            ami_refresh_interval: duration(settings.of_provider(&flags::AMI_REFRESH_INTERVAL)),
            subnet_refresh_interval: duration(settings.of_provider(&flags::SUBNET_REFRESH_INTERVAL)),
            node_class_cel,
            unknown_gates,
        };
        read.check(&mut wrong);
        if wrong.is_empty() { Ok(read) } else { Err(InvalidSettings(wrong.join("; "))) }
    }

    fn check(&self, wrong: &mut Vec<String>) {
        if self.cluster_name.is_empty() {
            wrong.push("missing field, cluster-name".to_owned());
        }
        if let Some(endpoint) = self.cluster_endpoint.as_deref().filter(|text| !is_absolute(text)) {
            wrong.push(format!("{endpoint:?} is not a valid cluster-endpoint URL, expected one with a host"));
        }
        if !self.vm_memory_overhead_percent.is_finite() || self.vm_memory_overhead_percent < 0.0 {
            wrong.push("vm-memory-overhead-percent cannot be negative".to_owned());
        }
        if self.reserved_enis < 0 {
            wrong.push("reserved-enis cannot be negative".to_owned());
        }
        for (flag, interval) in [
            (&flags::AMI_REFRESH_INTERVAL, self.ami_refresh_interval),
            (&flags::SUBNET_REFRESH_INTERVAL, self.subnet_refresh_interval),
        ] {
            if interval < LEAST_REFRESH {
                wrong.push(format!("{} must be at least 1m", flag.flag));
            }
        }
    }
}

fn duration(text: &str) -> Duration {
    let nanos = text.parse::<GoDuration>().unwrap_or_default().as_nanos();
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

/// Whether a text is an address with a scheme and a host.
fn is_absolute(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_word)
        && !host.is_empty()
        && !host.contains(char::is_whitespace)
}

/// Whether expressions are evaluated, and which gates nobody knows.
fn gates(text: &str, wrong: &mut Vec<String>) -> (bool, Vec<String>) {
    let (mut on, mut unknown) = (AWS_NODE_CLASS_CEL.default, Vec::new());
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let pair = item.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        let switched = pair.and_then(|(name, value)| Some((name, switch(value)?)));
        match switched {
            Some((name, value)) if name == AWS_NODE_CLASS_CEL.name => on = value,
            Some((name, _)) => unknown.push(name.to_owned()),
            None => {
                wrong.push(format!("aws-feature-gates has {item:?}, expected a name, = and true or false"));
            }
        }
    }
    (on, unknown)
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use api::provider::Provider;
    use runtime::settings::Command;

    use super::*;

    fn read(arguments: &[&str], variables: &[(&str, &str)]) -> Result<AwsSettings, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        match Settings::parse(Provider::Aws, arguments, variable) {
            Ok(Command::Run(settings)) => AwsSettings::new(&settings).map_err(|error| error.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_but_the_name_of_the_cluster_has_a_default() {
        let settings = read(&["--cluster-name=c"], &[]).unwrap();
        let expected = AwsSettings {
            cluster_ca_bundle: None,
            cluster_name: "c".to_owned(),
            cluster_endpoint: None,
            isolated_vpc: false,
            eks_control_plane: false,
            vm_memory_overhead_percent: 0.075,
            interruption_queue: None,
            reserved_enis: 0,
            disable_dry_run: false,
            enable_zonal_shift: false,
            ami_refresh_interval: LEAST_REFRESH,
            subnet_refresh_interval: LEAST_REFRESH,
            node_class_cel: false,
            unknown_gates: Vec::new(),
        };
        assert_eq!(settings, expected);
        assert_eq!(read(&[], &[]), Err("validating AWS options, missing field, cluster-name".to_owned()));
    }

    #[test]
    fn flags_beat_variables_and_variables_that_cannot_be_read_count_as_not_set() {
        let variables = [
            ("CLUSTER_NAME", "v"),
            ("CLUSTER_CA_BUNDLE", "Y2E="),
            ("CLUSTER_ENDPOINT", "https://a.example"),
            ("ISOLATED_VPC", "true"),
            ("EKS_CONTROL_PLANE", "1"),
            ("VM_MEMORY_OVERHEAD_PERCENT", "much"),
            ("INTERRUPTION_QUEUE", "q"),
            ("RESERVED_ENIS", "2"),
            ("DISABLE_DRY_RUN", "true"),
            ("ENABLE_ZONAL_SHIFT", "true"),
            ("AMI_REFRESH_INTERVAL", "5m"),
            ("SUBNET_REFRESH_INTERVAL", "2m"),
            ("AWS_FEATURE_GATES", "NodeClassCEL=true,Other=false"),
        ];
        let settings = read(&["--cluster-name=f", "--reserved-enis=3"], &variables).unwrap();
        assert_eq!((settings.cluster_name.as_str(), settings.reserved_enis), ("f", 3));
        assert!((settings.vm_memory_overhead_percent - 0.075).abs() < f64::EPSILON);
        assert!(settings.isolated_vpc && settings.eks_control_plane && settings.disable_dry_run);
        assert!(settings.enable_zonal_shift && settings.node_class_cel);
        assert_eq!(settings.interruption_queue.as_deref(), Some("q"));
        assert_eq!(settings.ami_refresh_interval, Duration::from_mins(5));
        assert_eq!(settings.unknown_gates, ["Other"]);
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let error = read(
            &[
                "--cluster-endpoint=00000000000000000000000.gr7.us-west-2.eks.amazonaws.com",
                "--vm-memory-overhead-percent=-0.01",
                "--reserved-enis=-1",
                "--ami-refresh-interval=59s",
                "--subnet-refresh-interval=0s",
                "--aws-feature-gates=NodeClassCEL",
            ],
            &[],
        )
        .unwrap_err();
        for part in [
            "cluster-name",
            "cluster-endpoint",
            "vm-memory-overhead-percent",
            "reserved-enis",
            "ami-refresh-interval",
            "subnet-refresh-interval",
            "aws-feature-gates",
        ] {
            assert!(error.contains(part), "{error}");
        }
        for endpoint in ["https://", "://a", "a b://c", "https:///path"] {
            assert!(!is_absolute(endpoint), "{endpoint}");
        }
    }
}
