//! `karpenter doctor`: what it says when it cannot ask.

use std::process::{Command, Output};

fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let home = tempfile::tempdir().expect("a temporary directory");
    Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .arg("doctor")
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .env("KUBECONFIG", "/nowhere/config")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(variables.iter().copied())
        .output()
        .expect("it runs")
}

/// What it says when nothing could be asked: one line.
#[track_caller]
fn complaint(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = doctor(arguments, variables);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

const AWS: &[&str] = &["--provider", "aws", "--cluster-name", "c"];

#[test]
fn without_a_region_nothing_can_be_asked() {
    let text = complaint(AWS, &[]);
    assert!(text.starts_with("error: no AWS region is known: set AWS_REGION"), "{text}");
}

#[test]
fn an_aws_that_does_not_answer_is_said_once() {
    let variables = [
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
    ];
    let text = complaint(AWS, &variables);
    assert!(
        text.starts_with("error: asking AWS who we are: sts:GetCallerIdentity, dispatch failure"),
        "{text}"
    );
}

#[test]
fn providers_that_cannot_be_looked_over_are_named() {
    let text = complaint(&["--provider", "kwok", "--cluster-name", "c"], &[]);
    assert_eq!(text, "error: there is nothing to look over for provider kwok: expected aws or azure\n");
}

#[test]
fn without_a_subscription_azure_cannot_be_asked() {
    let text = complaint(&["--provider", "azure", "--cluster-name", "c"], &[]);
    assert!(text.starts_with("error: no Azure subscription is known: set --subscription"), "{text}");
}

#[test]
fn a_mode_that_does_not_exist_is_named() {
    let arguments = ["--provider", "azure", "--cluster-name", "c", "--provision-mode", "other"];
    assert_eq!(complaint(&arguments, &[]), "error: provision mode \"other\" is unknown\n");
}
