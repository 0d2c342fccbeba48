//! The harness itself: what the tests of other crates rely on.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use e2e::tools::Tool;
use e2e::{Component, ControlPlane, poll};

const PATIENCE: Duration = Duration::from_secs(30);

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {only: web}
      containers: [{name: web, image: web, resources: {requests: {cpu: '1'}}}]
";

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: web-node, labels: {only: web}}
";

/// No kubelet reports it, so the test does.
const NODE_STATUS: &str = r#"{"status": {
    "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
    "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "made by hand"}]
}}"#;

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    poll(what, PATIENCE, || Ok(holds().then_some(()))).expect("it happens in time");
}

/// Every program of a control plane, and every watcher, has the directory in its arguments.
fn processes_in(directory: &Path) -> Vec<String> {
    let output = Command::new("ps").args(["-A", "-ww", "-o", "args="]).output().expect("ps runs");
    let directory = directory.to_str().expect("the directory was named by this crate");
    let all = String::from_utf8_lossy(&output.stdout).into_owned();
    all.lines().filter(|args| args.contains(directory)).map(str::to_owned).collect()
}

fn small() -> ControlPlane {
    ControlPlane::builder().start().expect("etcd and the API server start")
}

#[test]
fn the_server_is_ready_and_reports_the_pinned_version() {
    let plane = ControlPlane::shared().unwrap();
    assert_eq!(plane.kubectl(&["get", "--raw", "/readyz"]).unwrap(), "ok");
    let versions = plane.kubectl(&["version"]).unwrap();
    assert!(versions.contains("Client Version: v1.36.3"), "{versions}");
    assert!(versions.contains("Server Version: v1.36.3"), "{versions}");
}

#[test]
fn a_deployment_gets_pods_that_wait_for_a_node_and_are_bound_to_it() {
    let plane = ControlPlane::shared().unwrap();
    plane.kubectl(&["create", "namespace", "deployment"]).unwrap();
    plane.kubectl_with_input(&["create", "-n", "deployment", "-f", "-"], DEPLOYMENT).unwrap();
    let pods = |path: &str| {
        let output = format!("jsonpath={{range .items[*]}}{path}{{\"\\n\"}}{{end}}");
        let pods = plane.kubectl(&["get", "pods", "-n", "deployment", "-o", &output]).unwrap();
        pods.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    eventually("two pods that fit nowhere", || {
        pods(r#"{.status.conditions[?(@.type=="PodScheduled")].reason}"#) == ["Unschedulable"; 2]
    });
    assert_eq!(pods("{.status.phase}"), ["Pending"; 2]);

    plane.kubectl_with_input(&["create", "-f", "-"], NODE).unwrap();
    plane.kubectl(&["patch", "node", "web-node", "--subresource=status", "-p", NODE_STATUS]).unwrap();
    eventually("both pods on the node", || pods("{.spec.nodeName}") == ["web-node"; 2]);
}

#[test]
fn the_logs_of_a_component_can_be_read() {
    let plane = ControlPlane::shared().unwrap();
    assert!(plane.logs(Component::Scheduler).unwrap().contains("Starting Kubernetes Scheduler"));
    assert!(plane.logs(Component::ControllerManager).unwrap().contains("v1.36.3"));
}

#[test]
fn helm_prints_its_version_and_reaches_the_cluster() {
    let plane = ControlPlane::shared().unwrap();
    let helm = |args: &[&str]| {
        let output = plane.command(Tool::Helm).unwrap().args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(helm(&["version", "--short"]).starts_with("v3.22.0"));
    assert_eq!(helm(&["list", "--short"]), "");
}

#[test]
fn two_control_planes_side_by_side_share_nothing() {
    let shared = ControlPlane::shared().unwrap();
    let own = ControlPlane::builder().feature_gate("HPAScaleToZero", true).start().unwrap();
    own.kubectl(&["create", "configmap", "mine", "--from-literal=a=b"]).unwrap();
    let error = shared.kubectl(&["get", "configmap", "mine"]).unwrap_err().to_string();
    assert!(error.contains(r#"configmaps "mine" not found"#), "{error}");

    // Neither takes the other's server for its own.
    let server = own.server_url();
    let error = shared.kubectl(&["--server", &server, "get", "nodes"]).unwrap_err().to_string();
    assert!(error.contains("certificate signed by unknown authority"), "{error}");

    let gate = r#"kubernetes_feature_enabled{name="HPAScaleToZero",stage="ALPHA"}"#;
    let enabled = |plane: &ControlPlane| {
        let metrics = plane.kubectl(&["get", "--raw", "/metrics"]).unwrap();
        metrics.lines().any(|line| line == format!("{gate} 1"))
    };
    assert!(enabled(&own) && !enabled(shared));
}

#[test]
fn a_dropped_control_plane_leaves_no_process_and_no_file() {
    let plane = small();
    let directory = plane.directory().to_owned();
    assert!(processes_in(&directory).len() >= 2);
    drop(plane);
    assert_eq!(directory.exists(), std::env::var_os("KARPENTER_E2E_KEEP").is_some());
    eventually("the watchers to go", || processes_in(&directory).is_empty());
}

#[test]
fn a_panicking_test_leaves_no_process_but_its_logs() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let test = thread::spawn(move || {
        let plane = small();
        sender.send(plane.directory().to_owned()).unwrap();
        panic!("this panic is part of the test");
    });
    assert!(test.join().is_err());
    let directory = receiver.recv().unwrap();
    eventually("the processes to go", || processes_in(&directory).is_empty());
    assert!(directory.join("kube-apiserver.log").exists());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_killed_parent_leaves_no_process_and_no_file() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_control-plane"))
        .env_remove("KARPENTER_E2E_KEEP")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    // Kept open, or the parent would end by itself on writing its next line.
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let kubeconfig = PathBuf::from(line.trim().strip_prefix("export KUBECONFIG=").unwrap());
    let directory = kubeconfig.parent().unwrap();
    // Four programs, each with its watcher.
    assert_eq!(processes_in(directory).len(), 8, "{:#?}", processes_in(directory));

    // This is SIGKILL: the parent has no chance to clean up.
    parent.kill().unwrap();
    parent.wait().unwrap();
    eventually("the processes to go", || processes_in(directory).is_empty());
    assert!(!directory.exists());
}

#[test]
fn a_taken_port_is_reported_as_such() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let flag = format!("--listen-client-urls=http://{}", taken.local_addr().unwrap());
    let error = ControlPlane::builder().arg(Component::Etcd, &flag).start().unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("etcd ended early") && error.contains("address already in use"), "{error}");
}

#[test]
fn a_component_that_cannot_start_says_why_and_keeps_its_log() {
    let builder = ControlPlane::builder().arg(Component::ApiServer, "--no-such-flag");
    let error = format!("{:#}", builder.start().unwrap_err());
    assert!(error.contains("kube-apiserver ended early (exit status: 1)"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");

    let (_, rest) = error.split_once("logs are kept in ").unwrap();
    let directory = PathBuf::from(rest.split(": ").next().unwrap());
    assert!(directory.join("kube-apiserver.log").exists());
    eventually("the watchers to go", || processes_in(&directory).is_empty());
    std::fs::remove_dir_all(directory).unwrap();
}
