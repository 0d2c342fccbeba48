//! `karpenter configure`: what it says when it cannot ask.

use std::process::Command;

/// What it says: one line.
#[track_caller]
fn complaint(arguments: &[&str]) -> String {
    let home = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .arg("configure")
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let files = std::fs::read_dir(home.path()).expect("it is there").count();
    assert_eq!(files, 0, "nothing is written");
    let text = String::from_utf8(output.stderr).expect("it is text");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn the_cluster_and_its_resource_group_must_be_named() {
    let text = complaint(&["--provider", "azure", "karpenter"]);
    let start =
        "error: the name of the cluster and its resource group are missing: expected CLUSTER RESOURCE-GROUP";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn the_documented_arguments_are_taken_and_without_a_subscription_azure_cannot_be_asked() {
    let text = complaint(&["--provider", "azure", "karpenter", "karpenter", "karpenter-sa", "karpentermsi"]);
    assert!(text.starts_with("error: no Azure subscription is known"), "{text}");
    let text = complaint(&["--provider", "azure", "--cluster-name", "c", "--resource-group", "rg"]);
    assert!(text.starts_with("error: no Azure subscription is known"), "{text}");
}

#[test]
fn providers_that_need_no_values_are_named() {
    let text = complaint(&["--provider", "kwok"]);
    assert_eq!(text, "error: there is nothing to configure for provider kwok: expected azure\n");
}
