//! `karpenter doctor` as a process of its own, with moto as AWS.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::{Command, Output};

use e2e::Moto;
use serde_json::Value;

use crate::ours::ours;

/// What is told to look AWS over, as people do it at their desk.
pub(crate) struct Doctor<'a> {
    pub(crate) moto: &'a Moto,
    pub(crate) kubeconfig: &'a str,
    pub(crate) arguments: &'a [&'a str],
    /// What is different in the environment; nothing where the value is empty.
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl Doctor<'_> {
    pub(crate) fn run(&self) -> Output {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(ours().unwrap());
        command.args(["doctor", "--provider", "aws"]).args(self.arguments);
        command.env_clear().env("HOME", home.path()).env("KUBECONFIG", self.kubeconfig);
        command.envs(self.moto.environment());
        for (name, value) in self.environment {
            match *value {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        command.output().unwrap()
    }

    /// The exit code and the report.
    #[track_caller]
    pub(crate) fn report(&self) -> (Option<i32>, Report) {
        let arguments = [self.arguments, &["--output", "json"]].concat();
        let Self { moto, kubeconfig, environment, .. } = *self;
        let output = Doctor { moto, kubeconfig, arguments: &arguments, environment }.run();
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), Report(report))
    }
}

/// What was found.
pub(crate) struct Report(Value);

impl Report {
    /// What came out how: what it is about and what is said, a line each.
    pub(crate) fn of_level(&self, level: &str) -> Vec<String> {
        let checks = self.0["checks"].as_array().unwrap().iter().filter(|check| check["level"] == level);
        let text = |check: &Value, field: &str| check[field].as_str().unwrap().to_owned();
        checks.map(|check| format!("{}: {}", text(check, "about"), text(check, "message"))).collect()
    }

    #[track_caller]
    pub(crate) fn has(&self, level: &str, start: &str) {
        let found = self.of_level(level);
        assert!(found.iter().any(|line| line.starts_with(start)), "{start}: {:#}", self.0);
    }
}

const NOWHERE: &str = "/nowhere/config";
const USUAL: &[&str] = &["--cluster-name", "walk", "--interruption-queue", "walk"];

#[test]
fn an_aws_that_is_well_is_looked_over_without_a_cluster_that_answers() {
    let moto = Moto::start("walk", "1.36").unwrap();
    let before = moto.state().unwrap();
    let usual = Doctor { moto: &moto, kubeconfig: NOWHERE, arguments: USUAL, environment: &[] };
    let (code, report) = usual.report();
    assert_eq!(report.of_level("bad"), Vec::<String>::new());
    assert_eq!(code, Some(0));
    report.has("good", "credentials: account 123456789012, ");
    report.has("good", "cluster walk: EKS knows it, ");
    report.has("good", "Kubernetes: version 1.36");
    report.has("good", "policy discovery: ");
    report.has("good", "policy interruption: 3 actions are allowed");
    report.has("good", "interruption queue walk: ");
    report.has("good", "quota L-1216C47A: 0 of 640 vCPUs are used, ");
    let unknown = "objects of the cluster: nothing is known of EC2NodeClasses, no cluster is known: ";
    report.has("warning", unknown);
    let text = String::from_utf8(usual.run().stdout).unwrap();
    assert!(text.starts_with("AWS, region us-east-1, cluster walk\n\n✓ credentials: "), "{text}");
    // Lines are as wide as the terminal.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("--kubeconfig names another file").count(), 1, "{text}");
    assert_eq!(moto.state().unwrap(), before, "nothing is changed");
}

#[test]
fn what_is_wrong_with_a_desk_is_said() {
    let moto = Moto::start("walk", "1.36").unwrap();
    let usual = Doctor { moto: &moto, kubeconfig: NOWHERE, arguments: USUAL, environment: &[] };

    let (code, elsewhere) = Doctor { environment: &[("AWS_REGION", "eu-west-1")], ..usual }.report();
    assert_eq!(code, Some(1));
    elsewhere.has("bad", "cluster walk: eks:DescribeCluster, ResourceNotFoundException: ");
    elsewhere.has("bad", "interruption queue walk: there is no such queue in this region");

    let (code, misspelt) = Doctor { arguments: &["--cluster-name", "wolk"], ..usual }.report();
    assert_eq!(code, Some(1));
    misspelt.has("bad", "cluster wolk: ");
    misspelt.has("warning", "Kubernetes: its version is not known");
    misspelt.has("warning", "interruption queue: none is set");

    let no_keys = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    let nobody = Doctor { environment: &no_keys, ..usual }.run();
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert_eq!((nobody.status.code(), nobody.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.starts_with("error: no AWS credentials can be used, "), "{said}");
    assert!(said.lines().count() == 1 && !said.contains("  "), "{said}");
}

#[test]
fn a_cluster_that_does_not_answer_is_said_and_aws_is_looked_over() {
    let moto = Moto::start("walk", "1.36").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let kubeconfig = r#"{
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]
    }"#;
    std::fs::write(&file, kubeconfig).unwrap();
    let doctor =
        Doctor { moto: &moto, kubeconfig: file.to_str().unwrap(), arguments: USUAL, environment: &[] };
    let (code, report) = doctor.report();
    assert_eq!(code, Some(0));
    report.has("warning", "objects of the cluster: nothing is known of EC2NodeClasses, ");
    report.has("good", "cluster walk: EKS knows it, ");
}
