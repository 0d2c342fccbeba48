//! Scenarios on a real control plane: real API server, real scheduler, real controllers; only machines are played.
//!
//! The fast ones are always played, `SCENARIOS=all` plays all, and `SCENARIOS=text` those whose name contains the
//! text. With `KWOK=real` the machines are played by the KWOK controller instead of our simulator.

#[path = "../../operator/tests/support/whole.rs"]
mod whole;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::provider::Provider;
use clock::Clock;
use controlplane::{KubeletOptions, NodeSelection, Options};
use e2e::ControlPlane;
use http::{Method, Request, StatusCode};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use runtime::Settings;
use serde_json::Value;
use testkit::scenarios::{ALL, Pace, Scenario};
use testkit::stage::{CLAIMS, Stage};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// How many of the fast scenarios are always played.
const ALWAYS: usize = 12;

struct Real {
    plane: ControlPlane,
    client: Client,
    operator: Option<JoinHandle<()>>,
    runtime: Runtime,
}

impl Real {
    fn start() -> Result<Self> {
        let plane = ControlPlane::start()?;
        for definition in api::crds::documents(Provider::Kwok) {
            let document = definition.document.to_string();
            plane.kubectl_with_input(&["apply", "--server-side", "--filename=-"], &document)?;
        }
        plane.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
        let runtime = Runtime::new()?;
        let client = runtime.block_on(client(&plane))?;
        let options = Options {
            scheduler: false,
            workloads: false,
            node_lifecycle: false,
            kubelet: Some(KubeletOptions { nodes: NodeSelection::Annotated, ..KubeletOptions::default() }),
            ..Options::default()
        };
        let machines = client.clone();
        runtime.spawn(async move {
            let _ = controlplane::run(machines, Clock::system(), options).await;
        });
        Ok(Self { plane, client, operator: None, runtime })
    }

    /// Removes what a scenario left.
    fn clear(&mut self) -> Result<()> {
        self.plane.kubectl(&[
            "delete",
            "--all",
            "--wait=false",
            "deployments,statefulsets,daemonsets,jobs,pods,poddisruptionbudgets,persistentvolumeclaims,limitranges",
        ])?;
        self.plane.kubectl(&["delete", "--all", "--wait=false", "--namespace=kube-system", "pods"])?;
        self.plane.kubectl(&[
            "delete",
            "--all",
            "--wait=false",
            "nodepools,nodeclaims,nodes,persistentvolumes,storageclasses",
        ])?;
        let stage: &mut dyn Stage = self;
        stage.until("all nodes are gone", Duration::from_mins(3), |stage| {
            stage.list(CLAIMS).is_empty()
                && stage.list("/api/v1/nodes").is_empty()
                && stage.list("/api/v1/pods").is_empty()
        });
        self.plane.kubectl(&["delete", "--all", "kwoknodeclasses,events"])?;
        Ok(())
    }
}

async fn client(plane: &ControlPlane) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig_path())?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

impl Stage for Real {
    fn send(&self, method: Method, target: &str, content_type: &str, body: &Value) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(target);
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.body(body.into()).expect("paths of scenarios are valid");
        self.runtime.block_on(async {
            let answer = self.client.send(request).await.expect("the API server answers");
            let code = answer.status();
            let body =
                http_body_util::BodyExt::collect(answer.into_body()).await.expect("the answer is complete");
            (code, serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
        })
    }

    fn apply(&self, yaml: &str) {
        if let Err(error) = self.plane.kubectl_with_input(&["apply", "--filename=-"], yaml) {
            panic!("{error:#}");
        }
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn kill_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
            let _ = self.runtime.block_on(operator);
        }
    }

    fn start_operator(&mut self) {
        let operator = whole::operate(self.client.clone(), Clock::system(), Settings::default(), 1);
        self.operator = Some(self.runtime.spawn(operator));
    }
}

/// Which scenarios are played.
fn chosen() -> Vec<&'static Scenario> {
    let wish = std::env::var("SCENARIOS").unwrap_or_default();
    let played = ALL.iter().filter(|scenario| scenario.pace != Pace::Virtual);
    match &*wish {
        "" => played.filter(|scenario| scenario.pace == Pace::Fast).take(ALWAYS).collect(),
        "all" => played.collect(),
        text => played.filter(|scenario| scenario.name.contains(text)).collect(),
    }
}

#[test]
fn scenarios_hold_on_a_real_control_plane() -> Result<()> {
    let mut stage = Real::start()?;
    stage.start_operator();
    let mut failures = Vec::new();
    for scenario in chosen() {
        #[expect(clippy::disallowed_methods, reason = "people want to know how long it took")]
        let start = Instant::now();
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (scenario.play)(&mut stage)));
        println!(
            "{} ... {} ({:.0?})",
            scenario.name,
            if played.is_ok() { "ok" } else { "FAILED" },
            start.elapsed()
        );
        if played.is_err() {
            failures.push(scenario.name);
        }
        if stage.operator.is_none() {
            stage.start_operator();
        }
        stage.clear()?;
    }
    ensure!(failures.is_empty(), "{} scenarios fail: {failures:#?}", failures.len());
    Ok(())
}
