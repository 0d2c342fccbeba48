//! A real cluster on which controllers run as processes of their own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use e2e::tools::{self, Tool};
use e2e::{Builder, Process, free_ports};
use http::{Method, StatusCode};
use serde_json::Value;
use testkit::stage::{CLAIMS, NODES, Stage};

use crate::ours::ours;
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
    gates: String,
}

impl Cluster {
    pub(crate) fn start(builder: Builder, machines: Machines) -> Result<Self> {
        Ok(Self { real: Real::start(builder, machines)?, operator: None, gates: String::new() })
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
        let environment = [("DISABLE_LEADER_ELECTION", "true"), ("FEATURE_GATES", &self.gates)];
        let wanted = if self.gates.is_empty() { &environment[..1] } else { &environment[..] };
        self.operator = Some(self.run(controller, name, wanted)?);
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

    fn set_gates(&mut self, gates: &str) {
        gates.clone_into(&mut self.gates);
        self.start_operator();
    }
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
