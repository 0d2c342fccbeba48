//! `karpenter crds`, run as a user runs it.

use std::process::{Command, Output, Stdio};

fn karpenter(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_karpenter")).args(arguments).output().expect("running karpenter")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("YAML is text")
}

/// The names of the definitions that a provider prints.
fn names(provider: &str) -> Vec<String> {
    let text = stdout(&karpenter(&["crds", "--provider", provider]));
    text.split("---\n")
        .map(|document| {
            let name = document.lines().find_map(|line| line.strip_prefix("  name: "));
            name.expect("a definition has a name").to_owned()
        })
        .collect()
}

#[test]
fn each_provider_has_the_core_kinds_and_its_node_class() {
    for (provider, node_class) in [
        ("kwok", "kwoknodeclasses.karpenter.kwok.sh"),
        ("aws", "ec2nodeclasses.karpenter.k8s.aws"),
        ("azure", "aksnodeclasses.karpenter.azure.com"),
    ] {
        let expected = [
            "capacitybuffers.autoscaling.x-k8s.io",
            node_class,
            "nodeclaims.karpenter.sh",
            "nodeoverlays.karpenter.sh",
            "nodepools.karpenter.sh",
        ];
        assert_eq!(names(provider), expected);
    }
}

#[test]
fn simulated_nodes_are_the_default() {
    assert_eq!(stdout(&karpenter(&["crds"])), stdout(&karpenter(&["crds", "--provider", "kwok"])));
}

#[test]
fn the_label_rules_of_providers_are_not_mixed() {
    let text = stdout(&karpenter(&["crds", "--provider", "aws"]));
    assert!(text.contains("karpenter.k8s.aws"));
    assert!(!text.contains("karpenter.azure.com") && !text.contains("karpenter.kwok.sh"));
}

#[test]
fn an_unknown_provider_is_refused_with_what_is_accepted() {
    let output = karpenter(&["crds", "--provider", "gcp"]);
    assert_eq!(output.status.code(), Some(64));
    let error = String::from_utf8(output.stderr).expect("an error is text");
    assert!(error.contains(r#"unknown provider "gcp": expected kwok, aws or azure"#), "{error}");
}

#[test]
fn definitions_are_written_into_a_directory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("new");
    stdout(&karpenter(&["crds", "--directory", path.to_str().expect("a UTF-8 path")]));
    let mut files: Vec<String> = std::fs::read_dir(&path)
        .expect("the directory was created")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a UTF-8 name"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 5);
    assert_eq!(files[0], "autoscaling.x-k8s.io_capacitybuffers.yaml");
}

#[test]
fn a_directory_that_cannot_be_made_is_named_in_the_error() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let path = file.path().join("below");
    let output = karpenter(&["crds", "--directory", path.to_str().expect("a UTF-8 path")]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).expect("an error is text");
    assert!(error.starts_with(&format!("error: creating {}: ", path.display())), "{error}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_karpenter"))
        .args(["crds", "--provider", "azure"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starting karpenter");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("waiting for karpenter");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
