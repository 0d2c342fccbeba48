//! A real cluster on which controllers run as processes of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::tools::{self, Tool};
use e2e::{Builder, Process, free_ports};
use http::{Method, StatusCode};
use serde_json::Value;
use testkit::stage::{CLAIMS, NODES, Stage};

use crate::real::{Machines, Real};

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    Ours,
    Upstream,
}

/// Where leaders are elected.
pub(crate) const NAMESPACE: &str = "kube-system";

/// A cluster, and at most one controller that acts on it alone.
pub(crate) struct Cluster {
    pub(crate) real: Real,
    operator: Option<Process>,
}

impl Cluster {
    pub(crate) fn start(builder: Builder, machines: Machines) -> Result<Self> {
        Ok(Self { real: Real::start(builder, machines)?, operator: None })
    }

    /// Starts a controller beside all others. Its log is called `name`.
    pub(crate) fn run(
        &self,
        controller: Controller,
        name: &str,
        environment: &[(&str, &str)],
    ) -> Result<Process> {
        let [metrics, health] = free_ports()?.map(|port| port.to_string());
        let mut all = vec![
            ("METRICS_PORT", &*metrics),
            ("HEALTH_PROBE_PORT", &health),
            ("SYSTEM_NAMESPACE", NAMESPACE),
            ("LEADER_ELECTION_NAMESPACE", NAMESPACE),
        ];
        all.extend(environment);
        match controller {
            Controller::Ours => {
                let program = ours()?;
                self.real.plane.run(name, &program, &["controller", "--provider", "kwok"], &all)
            }
            Controller::Upstream => self.real.plane.run(name, &tools::path(Tool::Upstream)?, &[], &all),
        }
    }

    /// Replaces the controller that acts alone, if there is one, by another one.
    pub(crate) fn change_to(&mut self, controller: Controller, name: &str) -> Result<()> {
        self.kill_operator();
        self.operator = Some(self.run(controller, name, &[("DISABLE_LEADER_ELECTION", "true")])?);
        Ok(())
    }

    /// What is asked of the cluster, with the helpers of scenarios.
    pub(crate) fn stage(&mut self) -> &mut dyn Stage {
        self
    }
}

impl Stage for Cluster {
    fn send(&self, method: Method, target: &str, content_type: &str, body: &Value) -> (StatusCode, Value) {
        self.real.send(method, target, content_type, body)
    }

    fn apply(&self, yaml: &str) {
        self.real.apply(yaml);
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn kill_operator(&mut self) {
        if let Some(mut operator) = self.operator.take() {
            operator.stop();
        }
    }

    fn start_operator(&mut self) {
        if let Err(error) = self.change_to(Controller::Ours, "ours") {
            panic!("{error:#}");
        }
    }

    fn restart_with(&mut self, gates: &str) {
        self.kill_operator();
        let environment = [("DISABLE_LEADER_ELECTION", "true"), ("FEATURE_GATES", gates)];
        match self.run(Controller::Ours, "ours", &environment) {
            Ok(operator) => self.operator = Some(operator),
            Err(error) => panic!("{error:#}"),
        }
    }
}

/// Our own program, built like this one.
fn ours() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(|error| anyhow!(error))
}

fn build() -> Result<PathBuf> {
    // This program is in the folder `deps` beside it.
    let this = std::env::current_exe()?;
    let folder = this.ancestors().nth(2).context("finding the folder of programs")?;
    let target = folder.parent().context("finding the folder of builds")?;
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "karpenter", "--bin", "karpenter", "--profile", profile])
        .arg("--target-dir")
        .arg(target)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .context("running cargo")?;
    ensure!(built.status.success(), "cargo build failed:\n{}", String::from_utf8_lossy(&built.stderr));
    Ok(folder.join("karpenter"))
}

/// Whether there is time for more.
pub(crate) fn is_long() -> bool {
    std::env::var("E2E").is_ok_and(|value| value == "long")
}

/// The current moment of the machine's clock.
#[expect(clippy::disallowed_methods, reason = "the processes that are measured run on it")]
pub(crate) fn moment() -> Instant {
    Instant::now()
}

/// Asserts that every claim has exactly one node and every node a claim.
#[track_caller]
pub(crate) fn assert_paired(stage: &dyn Stage) {
    let by_id = |objects: Vec<Value>, pointer: &str| {
        let mut names = BTreeMap::<String, Vec<String>>::new();
        for object in objects {
            let id = object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            names.entry(id).or_default().push(name(&object).to_owned());
        }
        names
    };
    let nodes = by_id(stage.nodes(), "/spec/providerID");
    let claims = by_id(stage.list(CLAIMS), "/status/providerID");
    assert!(nodes.keys().eq(claims.keys()), "nodes {nodes:#?}\nclaims {claims:#?}\n{}", stage.describe());
    assert!(!nodes.contains_key(""), "{nodes:#?}");
    assert!(nodes.values().chain(claims.values()).all(|names| names.len() == 1), "{nodes:#?}\n{claims:#?}");
    assert_eq!(stage.list(NODES).len(), nodes.len());
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The objects of a pool.
pub(crate) fn of_pool(stage: &dyn Stage, path: &str, pool: &str) -> Vec<Value> {
    stage.list(&format!("{path}?labelSelector=karpenter.sh%2Fnodepool%3D{pool}"))
}
