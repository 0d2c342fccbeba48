//! Our controller needs what its chart allows it, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::tools::{self, Tool};
use e2e::{Component, ControlPlane};
use serde_json::{Value, json};
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

/// Requests as `verb group/resource`.
type Requests = BTreeSet<String>;

/// What the log of the API server says was requested.
fn requested(log: &Path) -> Result<Requests> {
    let log = fs::read_to_string(log)?;
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let words = events.filter_map(|event| {
        let object = event["objectRef"].as_object()?;
        let word = |name: &str| object.get(name).and_then(Value::as_str);
        let subresource = word("subresource").map(|name| format!("/{name}")).unwrap_or_default();
        let group = word("apiGroup").unwrap_or_default();
        Some(format!("{} {group}/{}{subresource}", event["verb"].as_str()?, word("resource")?))
    });
    Ok(words.collect())
}

/// What the controller's roles allow.
fn allowed(plane: &ControlPlane) -> Result<Requests> {
    let label = "--selector=app.kubernetes.io/name=karpenter";
    let roles = plane.kubectl(&["get", "clusterroles,roles", "--all-namespaces", label, "--output=json"])?;
    let roles: Value = serde_json::from_str(&roles)?;
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut allowed = Requests::new();
    // One of them is for people.
    let roles = roles["items"].as_array().into_iter().flatten();
    for role in roles.filter(|role| role["metadata"]["name"] != "karpenter-admin") {
        for rule in role["rules"].as_array().into_iter().flatten() {
            for group in words(&rule["apiGroups"]) {
                for resource in words(&rule["resources"]) {
                    allowed.extend(
                        words(&rule["verbs"]).iter().map(|verb| format!("{verb} {group}/{resource}")),
                    );
                }
            }
        }
    }
    Ok(allowed)
}

/// What is allowed and was not requested, but is in other circumstances: when watches cannot list, something is
/// repeated, a grace period ends, a node is rebooted, or a cluster is stricter.
const OTHERWISE: [&str; 5] = [
    "delete /pods",
    "patch /events",
    "patch /nodes/status",
    "update karpenter.sh/nodeclaims/finalizers",
    "update karpenter.sh/nodepools/finalizers",
];

#[test]
fn the_walk_through_needs_the_permissions_of_the_chart_and_no_others() -> Result<()> {
    let audit = tempfile::tempdir()?;
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "users": [format!("system:serviceaccount:{NAMESPACE}:karpenter")]},
            {"level": "None"},
        ],
    });
    let (rules, requests) = (audit.path().join("policy.yaml"), audit.path().join("requests"));
    fs::write(&rules, policy.to_string())?;
    let builder = ControlPlane::builder()
        .arg(Component::ApiServer, &format!("--audit-policy-file={}", rules.display()))
        .arg(Component::ApiServer, &format!("--audit-log-path={}", requests.display()));
    let mut cluster = Cluster::start(builder, Machines::Kwok)?;
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
    let (allowed, requested) = (allowed(&cluster.real.plane)?, requested(&requests)?);
    let unused: Vec<&String> = allowed
        .difference(&requested)
        .filter(|request| {
            let watched = request.replacen("get ", "watch ", 1).replacen("list ", "watch ", 1);
            !OTHERWISE.contains(&&***request) && !requested.contains(&watched)
        })
        .collect();
    ensure!(unused.is_empty(), "allowed, but not needed: {unused:#?}");
    let refused: Vec<&String> = requested.difference(&allowed).collect();
    ensure!(refused.is_empty(), "needed, but not allowed: {refused:#?}");
    ensure!(log.contains("successfully acquired lease"), "it did not lead:\n{log}");
    Ok(())
}
