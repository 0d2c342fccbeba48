//! `karpenter controller`: what it says when it cannot start.

use std::io::Write as _;
use std::process::Command;

const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"#;

/// What it says with these arguments and variables, in an environment that knows nothing of AWS.
fn said(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut kubeconfig = tempfile::NamedTempFile::new().expect("a temporary file");
    kubeconfig.write_all(KUBECONFIG.as_bytes()).expect("it can be written");
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["controller", "--provider", "aws", "--kubeconfig"])
        .arg(kubeconfig.path())
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .env("AWS_EC2_METADATA_DISABLED", "true")
        // Tests run side by side.
        .envs([("METRICS_PORT", "0"), ("HEALTH_PROBE_PORT", "0")])
        .envs(variables.iter().copied())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).expect("it is text")
}

const NAMED: &[&str] = &["--cluster-name", "c"];
const KEYS: [(&str, &str); 3] =
    [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];

#[test]
fn a_cluster_must_have_a_name() {
    assert_eq!(said(&[], &[]), "error: validating AWS options, missing field, cluster-name\n");
}

#[test]
fn somebody_must_say_where_we_are() {
    let text = said(NAMED, &[]);
    assert!(text.starts_with("error: no AWS region is known: set AWS_REGION"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn somebody_must_say_who_we_are() {
    let text = said(NAMED, &KEYS[..1]);
    assert!(text.starts_with("error: no AWS credentials can be used, "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_service_that_does_not_answer_is_named() {
    let mut variables = KEYS.to_vec();
    variables.push(("AWS_ENDPOINT_URL", "http://127.0.0.1:1"));
    let text = said(NAMED, &variables);
    assert!(
        text.starts_with("error: asking EC2 whether it answers: ec2:DescribeInstanceTypes, dispatch failure"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_kubeconfig_that_is_missing_is_said_once() {
    for arguments in [&["--kubeconfig", "/nowhere/config"][..], &[]] {
        let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
            .args(["controller", "--provider", "aws"])
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", "/nowhere/config")
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8(output.stderr).expect("it is text");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(text.matches("No such file").count(), 1, "{text}");
    }
}
