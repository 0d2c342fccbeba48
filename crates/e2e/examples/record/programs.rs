//! Programs that run by themselves: a scheduler and two kinds of simulated nodes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use e2e::tools::{self, Tool};
use http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::recorder::{Stage, eventually};

/// A program that ends with the recording.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command, log: &str) -> Result<Running> {
    let file = std::fs::File::create(std::env::temp_dir().join(log))?;
    let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn();
    Ok(Running(child.context("the program starts")?))
}

/// A request of somebody else, which is recorded, too.
async fn send(stage: &Stage, method: Method, path: &str, kind: &str, object: &Value) -> Result<()> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", kind)
        .header("User-Agent", "conformance")
        .body(http_body_util::Full::new(bytes::Bytes::from(object.to_string())))?;
    let answer = stage.recorder.clone().oneshot(request).await?;
    anyhow::ensure!(answer.status().is_success(), "{path}: {}", answer.status());
    Ok(())
}

async fn create(stage: &Stage, path: &str, object: &Value) -> Result<()> {
    send(stage, Method::POST, path, "application/json", object).await
}

fn read(stage: &Stage, path: &str) -> Value {
    stage.server.send(Method::GET, path, "", &Value::Null).1
}

fn node(name: &str) -> Value {
    let capacity = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": capacity, "allocatable": capacity},
    })
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}]},
    })
}

/// kube-scheduler: its start, a pod that fits, and one that does not.
pub(crate) async fn scheduler(stage: &Stage) -> Result<()> {
    let config = stage.folder.path().join("scheduler.yaml");
    std::fs::write(
        &config,
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: \
             {{leaderElect: false}}\nclientConnection: {{kubeconfig: {}, contentType: application/json, \
             acceptContentTypes: application/json}}\n",
            stage.kubeconfig().display()
        ),
    )?;
    stage.begin("start")?;
    let mut command = Command::new(tools::path(Tool::KubeScheduler)?);
    command.arg("--config").arg(&config).args(["--secure-port=0", "--authentication-skip-lookup=true"]);
    let _running = start(&mut command, "scheduler.log")?;
    tokio::time::sleep(Duration::from_secs(8)).await;

    let id = stage.begin("a pod that fits")?;
    create(stage, "/api/v1/nodes", &node(&format!("{id}-node"))).await?;
    create(stage, &format!("/api/v1/namespaces/{id}/pods"), &pod("fits", "1")).await?;
    let path = format!("/api/v1/namespaces/{id}/pods/fits");
    eventually("binding", || read(stage, &path)["spec"]["nodeName"].is_string()).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let id = stage.begin("a pod that fits nowhere")?;
    create(stage, &format!("/api/v1/namespaces/{id}/pods"), &pod("large", "100")).await?;
    let path = format!("/api/v1/namespaces/{id}/pods/large");
    eventually("verdict", || read(stage, &path)["status"]["conditions"].is_array()).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}

/// What KWOK does with nodes and pods, as its module comes with it.
fn stages(stage: &Stage) -> Result<std::path::PathBuf> {
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/kwok");
    let list = ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"];
    let output = Command::new("go").args(list).current_dir(tools).output()?;
    let module = std::path::PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let mut all = String::new();
    for file in
        ["node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete"]
    {
        let file = module.join("kustomize/stage").join(format!("{file}.yaml"));
        all.push_str("---\n");
        all += &std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        all.push('\n');
    }
    let path = stage.folder.path().join("stages.yaml");
    std::fs::write(&path, all)?;
    Ok(path)
}

/// KWOK: its start, a node that it plays, and a pod on it.
pub(crate) async fn kwok(stage: &Stage, program: &str) -> Result<()> {
    stage.begin("start")?;
    let mut command = Command::new(program);
    command
        .arg(format!("--kubeconfig={}", stage.kubeconfig().display()))
        .args(["--manage-all-nodes=true", "--node-lease-duration-seconds=40"])
        .arg(format!("--config={}", stages(stage)?.display()));
    let _running = start(&mut command, "kwok.log")?;
    tokio::time::sleep(Duration::from_secs(5)).await;

    let id = stage.begin("a node")?;
    let name = format!("{id}-node");
    create(stage, "/api/v1/nodes", &node(&name)).await?;
    let path = format!("/api/v1/nodes/{name}");
    eventually("ready node", || read(stage, &path)["status"]["conditions"].is_array()).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let id = stage.begin("a pod")?;
    let mut bound = pod("runs", "1");
    bound["spec"]["nodeName"] = Value::from(name);
    create(stage, &format!("/api/v1/namespaces/{id}/pods"), &bound).await?;
    let path = format!("/api/v1/namespaces/{id}/pods/runs");
    eventually("running pod", || read(stage, &path)["status"]["phase"] == "Running").await?;
    send(stage, Method::DELETE, &path, "application/json", &json!({})).await?;
    eventually("gone pod", || read(stage, &path)["code"] == 404).await?;
    Ok(())
}

/// Upstream's kwok controller: its start, and a node for a pod.
pub(crate) async fn kwok_controller(stage: &Stage, program: &str) -> Result<()> {
    let id = stage.begin("start")?;
    let mut command = Command::new(Path::new(program));
    command
        .env("KUBECONFIG", stage.kubeconfig())
        .env("DISABLE_LEADER_ELECTION", "true")
        .env("SYSTEM_NAMESPACE", &id)
        .env("KARPENTER_SERVICE", "karpenter")
        .env("METRICS_PORT", "0")
        .env("HEALTH_PROBE_PORT", "0");
    let _running = start(&mut command, "controller.log")?;
    tokio::time::sleep(Duration::from_secs(10)).await;

    let id = stage.begin("a node for a pod")?;
    let class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": format!("{id}-class")}});
    create(stage, "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses", &class).await?;
    let ready = json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]}});
    let path = format!("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/{id}-class/status");
    send(stage, Method::PATCH, &path, "application/merge-patch+json", &ready).await?;
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": format!("{id}-pool")},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": format!("{id}-class")},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        }}},
    });
    create(stage, "/apis/karpenter.sh/v1/nodepools", &pool).await?;
    let mut waiting = pod("waits", "1");
    waiting["status"] = json!({});
    create(stage, &format!("/api/v1/namespaces/{id}/pods"), &waiting).await?;
    let condition = json!({"status": {"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node",
    }]}});
    let path = format!("/api/v1/namespaces/{id}/pods/waits/status");
    send(stage, Method::PATCH, &path, "application/merge-patch+json", &condition).await?;
    let claims = "/apis/karpenter.sh/v1/nodeclaims";
    eventually("node claim", || read(stage, claims)["items"][0]["status"]["providerID"].is_string()).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    Ok(())
}
