//! `karpenter plan` for a cluster that answers, in all its forms.

mod support;

use std::process::{Command, Output};

use api::provider::Provider;
use serde_json::{Value, json};
use support::Cluster;

/// Runs `karpenter plan` for the cluster, which is named by a flag or by a variable.
fn plan(cluster: &Cluster, by_flag: bool, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_karpenter"));
    command.arg("plan").args(arguments).env_remove("KUBERNETES_SERVICE_HOST");
    if by_flag {
        command.env("KUBECONFIG", "/nowhere/config").arg("--kubeconfig").arg(cluster.kubeconfig.path());
    } else {
        command.env("KUBECONFIG", cluster.kubeconfig.path());
    }
    command.output().expect("running karpenter")
}

#[track_caller]
fn stdout(output: &Output, status: i32) -> String {
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("answers are text")
}

fn pool() -> Value {
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": {
        "disruption": {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
        "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": [],
        }},
    }})
}

/// A pod that no scheduler has found a place for.
fn waiting(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}})
}

/// A node of four processors with its claim.
fn node(cluster: &Cluster, name: &str) {
    let labels = json!({
        "karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "test-zone-a",
        "node.kubernetes.io/instance-type": "c-4x-amd64-linux", "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
    });
    let resources = json!({"cpu": "4", "memory": "8Gi", "pods": "100"});
    let id = format!("kwok://{name}");
    cluster.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": id}, "status": {"capacity": resources, "allocatable": resources,
        "conditions": [{"type": "Ready", "status": "True"}]}}));
    let conditions = ["Launched", "Registered", "Initialized"].map(|kind| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    });
    cluster.put(&json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": format!("claim-{name}"), "labels": labels},
        "spec": {"requirements": [], "nodeClassRef":
            {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}},
        "status": {"providerID": id, "nodeName": name, "capacity": resources, "allocatable": resources,
            "conditions": conditions}}));
}

#[test]
fn a_live_cluster_is_planned_in_every_form() {
    let cluster = Cluster::start(Provider::Kwok);
    let output = plan(&cluster, false, &[]);
    assert_eq!(stdout(&output, 1), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: the cluster contains no NodePool, so nothing says what nodes there may be\n"
    );
    cluster.put(&pool());
    cluster.put(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}));
    cluster.put(&waiting("web", "6"));
    // Nobody has looked at it yet: it does not wait for a node.
    let mut unseen = waiting("unseen", "6");
    unseen["status"] = Value::Null;
    cluster.put(&unseen);
    node(&cluster, "n1");

    let text = stdout(&plan(&cluster, false, &[]), 0);
    assert!(text.contains("1 new node for 1 pod: $0."), "{text}");
    let found: Value =
        serde_json::from_str(&stdout(&plan(&cluster, true, &["-o", "json"]), 0)).expect("JSON");
    assert_eq!(found["newNodeClaims"][0]["pods"], json!(["default/web"]));
    let text = stdout(&plan(&cluster, true, &["--explain", "default/web"]), 0);
    assert!(text.starts_with("default/web goes to a new node of NodePool default"), "{text}");
    let text = stdout(&plan(&cluster, false, &["--disruption"]), 0);
    assert!(text.lines().any(|line| line.trim() == "n1"), "{text}");
    let text = stdout(&plan(&cluster, false, &["--remove-node", "n1"]), 0);
    assert!(text.starts_with("Without n1:\n"), "{text}");

    // What has no place is told by the exit status, as for files.
    cluster.put(&waiting("giant", "999"));
    let text = stdout(&plan(&cluster, false, &[]), 2);
    assert!(text.contains("1 pod stays pending:\n  default/giant: "), "{text}");
}
