//! Every scenario in virtual time.

#[path = "support/whole.rs"]
mod whole;

use std::time::Duration;

use api::provider::Provider;
use http::{Method, StatusCode};
use runtime::Settings;
use runtime::settings::Gates;
use serde_json::Value;
use testkit::World;
use testkit::scenarios::ALL;
use testkit::stage::Stage;
use tokio::task::JoinHandle;

/// A world with the operator in it.
struct Virtual {
    world: World,
    operator: Option<JoinHandle<()>>,
    seed: u64,
    gates: Gates,
}

impl Virtual {
    fn new(seed: u64) -> Self {
        Self::without(seed, "")
    }

    /// A world that lacks one of our kinds.
    fn without(seed: u64, missing: &str) -> Self {
        let world = World::new(seed);
        let definitions = api::crds::documents(Provider::Kwok).into_iter();
        for definition in definitions.filter(|it| it.document["spec"]["names"]["plural"] != missing) {
            world.apply(&definition.document.to_string());
        }
        let mut stage = Self { world, operator: None, seed, gates: Gates::default() };
        stage.start_operator();
        stage
    }
}

impl Stage for Virtual {
    fn send(&self, method: Method, target: &str, content_type: &str, body: &Value) -> (StatusCode, Value) {
        self.world.send(method, target, content_type, body)
    }

    fn apply(&self, yaml: &str) {
        self.world.apply(yaml);
    }

    fn pass(&mut self, time: Duration) {
        self.world.run_for(time);
    }

    fn kill_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
            // It ends when it is polled next.
            self.world.run_for(Duration::from_millis(1));
        }
    }

    fn start_operator(&mut self) {
        // Each life has its own chances.
        self.seed += 1;
        let (client, clock, seed) = (self.world.client(), self.world.clock(), self.seed);
        let settings = Settings { gates: self.gates, ..Settings::default() };
        self.operator = Some(self.world.spawn(whole::operate(client, clock, settings, seed)));
    }

    fn set_gates(&mut self, gates: &str) {
        self.kill_operator();
        self.gates = Gates::parse(gates).expect("the gates are well-formed").0;
        self.start_operator();
    }
}

/// Plays every other scenario, so that two can be played at the same time.
#[expect(clippy::print_stdout, reason = "people want to see what holds")]
fn play(half: usize) {
    let only = std::env::var("SCENARIO").unwrap_or_default();
    let mut failures = Vec::new();
    let mine = ALL.iter().enumerate().filter(|(number, _)| number % 2 == half);
    for (number, scenario) in mine.filter(|(_, scenario)| scenario.name.contains(&only)) {
        let seed = number as u64 * 1000;
        let played = std::panic::catch_unwind(|| {
            let mut stage = Virtual::new(seed);
            (scenario.play)(&mut stage);
        });
        match played {
            Ok(()) => println!("{} ... ok", scenario.name),
            Err(_) => failures.push(scenario.name),
        }
    }
    assert!(failures.is_empty(), "{} scenarios fail: {failures:#?}", failures.len());
}

#[test]
fn scenarios_of_even_number_hold_in_virtual_time() {
    play(0);
}

#[test]
fn scenarios_of_odd_number_hold_in_virtual_time() {
    play(1);
}

#[test]
fn a_cluster_that_does_not_know_overlays_works_whether_they_are_wanted_or_not() {
    for gates in ["", "NodeOverlay=true"] {
        let mut stage = Virtual::without(1, "nodeoverlays");
        stage.set_gates(gates);
        (ALL[0].play)(&mut stage);
    }
}
