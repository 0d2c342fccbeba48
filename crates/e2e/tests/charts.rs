//! The Helm charts, through the real Helm, on a real API server.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use e2e::ControlPlane;
use e2e::tools::{self, Tool};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/karpenter-crd");
const CONTROLLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/karpenter");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
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
fn the_charts_have_no_faults_that_helm_finds_and_can_be_packaged() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for chart in [CHART, CONTROLLER] {
        text(helm(&["lint", "--strict", chart])?)?;
        let into = folder.path().to_string_lossy();
        text(helm(&["package", chart, "--destination", &into])?)?;
    }
    assert_eq!(fs::read_dir(folder.path())?.count(), 2);
    Ok(())
}

/// The controller's chart for a provider, with what that provider requires.
fn controller(provider: &str, more: &[&str]) -> Result<String> {
    let provider = format!("provider={provider}");
    let mut arguments =
        vec!["template", "karpenter", CONTROLLER, "--namespace=karpenter", "--set", &provider];
    arguments.extend(["--set", "settings.clusterName=mine"]);
    arguments.extend(more);
    text(helm(&arguments)?)
}

#[test]
fn a_real_server_accepts_what_the_controllers_chart_renders_and_the_examples() -> Result<()> {
    let plane = ControlPlane::builder().start()?;
    plane.kubectl(&["create", "namespace", "karpenter"])?;
    for provider in PROVIDERS {
        let dry = ["apply", "--dry-run=server", "--filename=-"];
        plane.kubectl_with_input(&dry, &controller(provider, &[])?)?;
        let full = ["--values", &format!("{}/tests/charts/values.yaml", env!("CARGO_MANIFEST_DIR"))];
        let rendered = controller(provider, &full)?;
        // Its definition comes with the Prometheus operator.
        let known: Vec<&str> =
            rendered.split("---\n").filter(|part| !part.contains("kind: ServiceMonitor")).collect();
        assert_eq!(rendered.split("---\n").count(), known.len() + 1, "there is one ServiceMonitor");
        plane.kubectl_with_input(&dry, &known.join("---\n"))?;

        let crds = text(helm(&["template", CHART, "--set", &format!("provider={provider}")])?)?;
        plane.kubectl_with_input(&["apply", "--server-side", "--force-conflicts", "--filename=-"], &crds)?;
        plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
        let examples = format!("{EXAMPLES}/{provider}");
        plane.kubectl(&["apply", "--dry-run=server", "--filename", &examples])?;
    }
    plane.kubectl(&["apply", "--dry-run=server", "--filename", &format!("{EXAMPLES}/inflate.yaml")])?;
    Ok(())
}

#[test]
fn settings_reach_the_controller_as_upstreams_chart_writes_them() -> Result<()> {
    let rendered =
        controller("aws", &["--set", "settings.featureGates.nodeRepair=true", "--set", "logLevel=debug"])?;
    for expected in [
        "NodeRepair=true",
        "ReservedCapacity=true",
        "- name: CLUSTER_NAME\n              value: \"mine\"",
        "- name: LOG_LEVEL\n              value: \"debug\"",
        "- name: BATCH_IDLE_DURATION\n              value: \"1s\"",
        "- name: VM_MEMORY_OVERHEAD_PERCENT\n              value: \"0.075\"",
        "resources: [ec2nodeclasses, ec2nodeclasses/status]",
        "whenUnsatisfiable: DoNotSchedule",
    ] {
        assert!(rendered.contains(expected), "{expected} is not in\n{rendered}");
    }
    assert!(!controller("kwok", &[])?.contains("CLUSTER_NAME"));
    Ok(())
}

/// A part of what `karpenter configure --provider azure` writes.
const CONFIGURED: &str = r#"
provider: azure
replicas: 1
controller:
  env:
    - name: CLUSTER_NAME
      value: "walk"
    - name: NETWORK_PLUGIN_MODE
      value: ""
serviceAccount:
  name: "karpenter-sa"
  annotations:
    azure.workload.identity/client-id: "66666666-6666-6666-6666-666666666666"
podLabels:
  azure.workload.identity/use: "true"
settings:
  featureGates:
    staticCapacity: true
"#;

#[test]
fn values_that_configure_writes_for_azure_are_understood() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("karpenter-values.yaml");
    fs::write(&path, CONFIGURED)?;
    let rendered = text(helm(&["template", "karpenter", CONTROLLER, "--values", &path.to_string_lossy()])?)?;
    for expected in [
        "args: [controller, --provider, azure]",
        "- name: CLUSTER_NAME\n              value: walk",
        "- name: NETWORK_PLUGIN_MODE\n              value: \"\"",
        "azure.workload.identity/use: \"true\"",
        "azure.workload.identity/client-id: 66666666-6666-6666-6666-666666666666",
        "serviceAccountName: karpenter-sa",
        "StaticCapacity=true",
        // What AKS plans is read whatever else is set.
        "resourceNames: [upcoming-maintenance-window]",
    ] {
        assert!(rendered.contains(expected), "{expected} is not in\n{rendered}");
    }
    assert_eq!(rendered.matches("name: CLUSTER_NAME").count(), 1);
    Ok(())
}

#[test]
fn every_setting_of_the_aws_provider_is_a_value_of_the_chart() -> Result<()> {
    let values = [
        ("CLUSTER_CA_BUNDLE", "clusterCABundle", "Y2E="),
        ("CLUSTER_NAME", "clusterName", "other"),
        ("CLUSTER_ENDPOINT", "clusterEndpoint", "https://a.example"),
        ("ISOLATED_VPC", "isolatedVPC", "true"),
        ("EKS_CONTROL_PLANE", "eksControlPlane", "true"),
        ("VM_MEMORY_OVERHEAD_PERCENT", "vmMemoryOverheadPercent", "0.05"),
        ("INTERRUPTION_QUEUE", "interruptionQueue", "queue"),
        ("RESERVED_ENIS", "reservedENIs", "1"),
        ("DISABLE_DRY_RUN", "disableDryRun", "true"),
        ("ENABLE_ZONAL_SHIFT", "enableZonalShift", "true"),
        ("AMI_REFRESH_INTERVAL", "amiRefreshInterval", "5m"),
        ("SUBNET_REFRESH_INTERVAL", "subnetRefreshInterval", "2m"),
        ("AWS_FEATURE_GATES", "awsFeatureGates.nodeClassCEL", "true"),
    ];
    let sets: Vec<String> =
        values.iter().map(|(_, value, to)| format!("--set=settings.{value}={to}")).collect();
    let rendered = controller("aws", &sets.iter().map(String::as_str).collect::<Vec<_>>())?;
    for flag in api::names::flags::aws::ALL {
        let (variable, _, to) = values
            .iter()
            .find(|(variable, ..)| *variable == flag.env)
            .with_context(|| format!("the chart has no value for {}", flag.env))?;
        let to = if *variable == "AWS_FEATURE_GATES" { "NodeClassCEL=true" } else { to };
        let expected = format!("- name: {variable}\n              value: \"{to}\"");
        assert!(rendered.contains(&expected), "{expected} is not in\n{rendered}");
    }
    Ok(())
}

#[test]
fn the_controllers_chart_says_what_it_misses() -> Result<()> {
    for (set, expected) in [
        ("provider=gcp", r#"provider "gcp" is unknown: expected kwok, aws or azure"#),
        ("provider=aws", "settings.clusterName is required with provider aws"),
        ("provider=azure", "`karpenter configure --provider azure` writes all values"),
    ] {
        let output = helm(&["template", CONTROLLER, "--set", set])?;
        let error = String::from_utf8(output.stderr)?;
        assert!(!output.status.success() && error.contains(expected), "{error}");
    }
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
