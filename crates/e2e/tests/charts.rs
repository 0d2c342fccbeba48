//! The Helm charts, through the real Helm, on a real API server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use e2e::ControlPlane;
use e2e::tools::{self, Tool};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/karpenter-crd");
const PROVIDERS: [&str; 3] = ["kwok", "aws", "azure"];

fn helm(arguments: &[&str]) -> Result<Output> {
    Command::new(tools::path(Tool::Helm)?).args(arguments).output().context("running helm")
}

fn text(output: Output) -> Result<String> {
    ensure!(output.status.success(), "helm failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// The definitions of a provider as they are committed, in the order of their names.
fn committed(provider: &str) -> Result<Vec<String>> {
    let mut paths: Vec<_> = fs::read_dir(Path::new(CHART).join("files").join(provider))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    paths.iter().map(|path| Ok(fs::read_to_string(path)?)).collect()
}

#[test]
fn the_chart_has_no_faults_that_helm_finds() -> Result<()> {
    text(helm(&["lint", "--strict", CHART])?)?;
    Ok(())
}

#[test]
fn the_chart_renders_exactly_the_definitions_of_the_provider() -> Result<()> {
    for provider in PROVIDERS {
        let set = format!("provider={provider}");
        let rendered =
            text(helm(&["template", CHART, "--set", &set, "--set", "additionalAnnotations=null"])?)?;
        let mut documents: Vec<&str> = rendered
            .split("---\n")
            .map(|document| {
                document.trim_start_matches("# Source: karpenter-crd/templates/crds.yaml\n").trim()
            })
            .filter(|document| !document.is_empty())
            .collect();
        documents.sort_unstable();
        let committed = committed(provider)?;
        let mut expected: Vec<&str> = committed.iter().map(|document| document.trim()).collect();
        expected.sort_unstable();
        assert_eq!(documents.len(), expected.len(), "{provider}");
        for (rendered, committed) in documents.iter().zip(expected) {
            assert!(*rendered == committed, "{provider}: expected\n{committed}\n\ngot\n{rendered}");
        }
    }
    Ok(())
}

#[test]
fn annotations_are_put_on_every_definition_and_keep_them_on_uninstall() -> Result<()> {
    let rendered = text(helm(&["template", CHART, "--set", "additionalAnnotations.team=infra"])?)?;
    let definitions = rendered.matches("kind: CustomResourceDefinition").count();
    assert_eq!(definitions, 5);
    assert_eq!(rendered.matches("\n    helm.sh/resource-policy: keep\n").count(), definitions);
    assert_eq!(rendered.matches("\n    team: infra\n").count(), definitions);
    Ok(())
}

#[test]
fn an_unknown_provider_is_refused_with_what_is_accepted() -> Result<()> {
    let output = helm(&["template", CHART, "--set", "provider=gcp"])?;
    assert!(!output.status.success());
    let error = String::from_utf8(output.stderr)?;
    assert!(error.contains(r#"provider "gcp" is unknown: expected kwok, aws or azure"#), "{error}");
    Ok(())
}

#[test]
fn the_chart_installs_upgrades_to_another_provider_and_leaves_the_definitions_behind() -> Result<()> {
    let plane = ControlPlane::builder().start()?;
    let run = |arguments: &[&str]| text(plane.command(Tool::Helm)?.args(arguments).output()?);
    run(&["install", "crds", CHART, "--set", "provider=kwok"])?;
    plane.kubectl(&["wait", "--for=condition=Established", "crd/kwoknodeclasses.karpenter.kwok.sh"])?;
    run(&["upgrade", "crds", CHART, "--set", "provider=aws"])?;
    plane.kubectl(&["wait", "--for=condition=Established", "crd/ec2nodeclasses.karpenter.k8s.aws"])?;
    run(&["uninstall", "crds"])?;
    let left = plane.kubectl(&["get", "crds", "--output=name"])?;
    assert_eq!(left.lines().count(), 6, "{left}");
    Ok(())
}
