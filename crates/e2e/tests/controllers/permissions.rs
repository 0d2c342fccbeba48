//! Our controller needs no more than its chart allows it.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::tools::{self, Tool};
use testkit::scenarios::ALL;
use testkit::stage::Stage as _;

use crate::cluster::{Cluster, Controller};
use crate::real::Machines;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/karpenter");
const NAMESPACE: &str = "karpenter";

/// What the chart says about permissions.
fn permissions() -> Result<String> {
    let output = Command::new(tools::path(Tool::Helm)?)
        .args(["template", "karpenter", CHART, "--namespace", NAMESPACE, "--set", "provider=kwok"])
        .output()
        .context("running helm")?;
    ensure!(output.status.success(), "helm failed: {}", String::from_utf8_lossy(&output.stderr));
    let kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    let kinds = kinds.map(|kind| format!("\nkind: {kind}\n"));
    let rendered = String::from_utf8(output.stdout)?;
    let chosen: Vec<&str> =
        rendered.split("---\n").filter(|part| kinds.iter().any(|kind| part.contains(kind))).collect();
    ensure!(chosen.len() >= 8, "the chart has lost permissions:\n{rendered}");
    Ok(chosen.join("---\n"))
}

#[test]
fn the_walk_through_needs_no_more_than_the_permissions_of_the_chart() -> Result<()> {
    let mut cluster = Cluster::start(Machines::Kwok)?;
    let plane = &cluster.real.plane;
    plane.kubectl(&["create", "namespace", NAMESPACE])?;
    plane.kubectl_with_input(&["apply", "--filename=-"], &permissions()?)?;
    let token = plane.kubectl(&["create", "token", "karpenter", "--namespace", NAMESPACE])?;
    let kubeconfig = fs::read_to_string(plane.kubeconfig_path())?.replace(plane.token(), token.trim());
    let path = plane.directory().join("restricted-kubeconfig");
    fs::write(&path, kubeconfig)?;

    let path = path.to_string_lossy().into_owned();
    let environment = [
        ("KUBECONFIG", &*path),
        ("SYSTEM_NAMESPACE", NAMESPACE),
        ("LEADER_ELECTION_NAMESPACE", NAMESPACE),
        ("LOG_LEVEL", "debug"),
    ];
    let mut controller = cluster.run(Controller::Ours, "restricted", &environment)?;
    for name in
        ["pods_that_wait_get_a_node_and_the_node_goes_with_them", "a_deleted_claim_takes_its_node_along"]
    {
        let scenario = ALL.iter().find(|scenario| scenario.name == name);
        (scenario.with_context(|| format!("there is no scenario {name}"))?.play)(&mut cluster);
    }
    // What is looked for only now and then comes, too.
    cluster.pass(Duration::from_secs(5));
    controller.stop();
    let log = controller.log()?;
    let refused: Vec<&str> =
        log.lines().filter(|line| line.to_lowercase().contains("forbidden")).take(10).collect();
    ensure!(refused.is_empty(), "not everything is allowed:\n{}", refused.join("\n"));
    ensure!(log.contains("successfully acquired lease"), "it did not lead:\n{log}");
    Ok(())
}
