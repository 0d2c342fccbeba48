//! Scenarios on a real control plane: real API server, real scheduler, real controllers; only machines are played.
//!
//! The fast ones are always played, `SCENARIOS=all` plays all, and `SCENARIOS=text` those whose name contains the
//! text. With `KWOK=real` the machines are played by the KWOK controller instead of our simulator.

#[path = "support/real.rs"]
mod real;
#[path = "../../operator/tests/support/whole.rs"]
mod whole;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clock::Clock;
use e2e::ControlPlane;
use http::{Method, StatusCode};
use real::{Machines, Real};
use runtime::Settings;
use runtime::settings::Gates;
use serde_json::Value;
use testkit::scenarios::{ALL, Pace, Scenario};
use testkit::stage::{CLAIMS, Stage};
use tokio::task::JoinHandle;

/// How many of the fast scenarios are always played.
const ALWAYS: usize = 12;

struct Theatre {
    real: Real,
    operator: Option<JoinHandle<()>>,
    gates: Gates,
}

impl Theatre {
    fn start(machines: Machines) -> Result<Self> {
        let real = Real::start(ControlPlane::builder(), machines)?;
        let mut theatre = Self { real, operator: None, gates: Gates::default() };
        theatre.start_operator();
        Ok(theatre)
    }

    /// Removes what a scenario left.
    fn clear(&mut self) -> Result<()> {
        self.real.plane.kubectl(&[
            "delete",
            "--all",
            "--wait=false",
            "deployments,statefulsets,daemonsets,jobs,pods,poddisruptionbudgets,persistentvolumeclaims,limitranges,\
             capacitybuffers,podtemplates",
        ])?;
        self.real.plane.kubectl(&["delete", "--all", "--wait=false", "--namespace=kube-system", "pods"])?;
        self.real.plane.kubectl(&[
            "delete",
            "--all",
            "--wait=false",
            "nodepools,nodeoverlays,nodeclaims,nodes,persistentvolumes,storageclasses",
        ])?;
        let stage: &mut dyn Stage = self;
        stage.until("all nodes are gone", Duration::from_mins(3), |stage| {
            stage.list(CLAIMS).is_empty()
                && stage.list("/api/v1/nodes").is_empty()
                && stage.list("/api/v1/pods").is_empty()
        });
        self.real.plane.kubectl(&["delete", "--all", "kwoknodeclasses,events"])?;
        Ok(())
    }
}

impl Stage for Theatre {
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
        if let Some(operator) = self.operator.take() {
            operator.abort();
            let _ = self.real.runtime.block_on(operator);
        }
    }

    fn start_operator(&mut self) {
        let settings = Settings { gates: self.gates, ..Settings::default() };
        let operator = whole::operate(self.real.client.clone(), Clock::system(), settings, 1);
        self.operator = Some(self.real.runtime.spawn(operator));
    }

    fn set_gates(&mut self, gates: &str) {
        self.kill_operator();
        self.gates = Gates::parse(gates).expect("the gates are well-formed").0;
        self.start_operator();
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

/// Plays a scenario and clears the stage; whether it holds.
#[expect(clippy::print_stdout, reason = "people want to see what holds")]
fn play_once(stage: &mut Theatre, scenario: &Scenario) -> Result<bool> {
    #[expect(clippy::disallowed_methods, reason = "people want to know how long it took")]
    let start = Instant::now();
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (scenario.play)(stage)));
    let verdict = if played.is_ok() { "ok" } else { "FAILED" };
    println!("{} ... {verdict} ({:.0?})", scenario.name, start.elapsed());
    if stage.operator.is_none() {
        stage.start_operator();
    }
    stage.clear()?;
    if stage.gates != Gates::default() {
        stage.set_gates("");
    }
    Ok(played.is_ok())
}

/// Plays scenarios one after the other on one cluster.
fn play(machines: Machines, scenarios: &[&Scenario]) -> Result<()> {
    let mut stage = Theatre::start(machines)?;
    let mut failures = Vec::new();
    for scenario in scenarios {
        // A real cluster on a busy machine can be slower than a scenario waits; what does not hold stays so.
        let holds = play_once(&mut stage, scenario)? || play_once(&mut stage, scenario)?;
        if !holds {
            failures.push(scenario.name);
        }
    }
    ensure!(failures.is_empty(), "{} scenarios fail: {failures:#?}", failures.len());
    Ok(())
}

#[test]
fn scenarios_hold_on_a_real_control_plane() -> Result<()> {
    let is_kwok = std::env::var("KWOK").is_ok_and(|value| value == "real");
    play(if is_kwok { Machines::Kwok } else { Machines::Simulator }, &chosen())
}

#[test]
fn the_walk_through_works_with_the_real_kwok() -> Result<()> {
    let name = "pods_that_wait_get_a_node_and_the_node_goes_with_them";
    let scenarios: Vec<&Scenario> = ALL.iter().filter(|scenario| scenario.name == name).collect();
    ensure!(scenarios.len() == 1, "there is no scenario {name}");
    play(Machines::Kwok, &scenarios)
}
