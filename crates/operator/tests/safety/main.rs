//! What disruption must never do, whatever the cluster is like and whatever goes wrong: random clusters, random
//! changes, an API server and a cloud that fail, nodes that break, an operator that is killed and comes back.
//!
//! ```text
//! (a) more nodes are given up than budgets allow, or one goes that was not given up
//! (b) a pod is deleted past its budget, other than at the end of its node's terminationGracePeriod, or its node
//!     gracefully disrupted although its budget lets nobody go
//! (c) a pod is evicted, or its node gracefully disrupted, that asks to be left alone; or a node that does
//! (d) a NodePool has more than it may have
//! (e) a pod that ran has no room any more
//! (f) a node goes before what comes for it is there
//! (g) a pod is evicted from a node that stays
//! ```
//!
//! `SAFETY=200 cargo test --release -p karpenter-operator --test safety` looks at more clusters; `SAFETY_FROM=70` begins
//! with another seed.

mod budgets;
mod changes;
mod character;
mod checks;
mod cloud;
mod drains;
mod limits;
mod log;
mod objects;
mod order;
#[path = "../support/whole.rs"]
mod whole;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::provider::Provider;
use embedded::faults::Faulty;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use testkit::World;
use tokio::task::JoinHandle;

use changes::POOLS;
use character::Character;
use checks::Seen;
use cloud::{Sky, Unreliable};
use log::{KINDS, Log, Noted};

/// The clusters that are looked at if nobody asks for more: between them they see all of [`SEEN`].
const CLUSTERS: [u64; 8] = [1, 2, 7, 6, 17, 12, 0, 4];
/// How often something happens to a cluster, and how often if more clusters are asked for.
const SHORT: usize = 15;
const LONG: usize = 40;
/// How long a cluster may take to come to rest.
const TO_REST: u64 = 40 * 60;
/// How many minutes nodes may take to go, unless something keeps them for good.
const TO_LEAVE: u64 = 5;
/// What must have been seen if anything is to be concluded.
const SEEN: [&str; 9] = [
    "nodes given up",
    "nodes deleted",
    "nodes replaced",
    "moves of several nodes",
    "commands taken back",
    "claims deleted by force",
    "claims of limited pools",
    "evictions",
    "deletions",
];

const PODS: &str = "/api/v1/pods";

/// A cluster at the mercy of chance.
struct Played {
    world: World,
    random: Pcg64Mcg,
    seed: u64,
    character: Character,
    log: Log,
    seen: Seen,
    faults: Faulty,
    sky: Sky,
    operator: Option<JoinHandle<()>>,
    /// Replicas by deployment.
    wanted: BTreeMap<String, usize>,
}

impl Played {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        for definition in api::crds::documents(Provider::Kwok) {
            world.apply(&definition.document.to_string());
        }
        let faults = Faulty::new(world.server().service(), seed);
        let log = Log::default();
        for kind in KINDS {
            world.spawn(log.clone().watch(world.client(), world.clock(), kind));
        }
        let sky = Sky::new(seed);
        world.spawn(cloud::furnish(world.client(), sky.clone()));
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut played = Self {
            world,
            character: Character::new(&mut random),
            random,
            seed,
            log,
            seen: Seen::default(),
            faults,
            sky,
            operator: None,
            wanted: BTreeMap::new(),
        };
        played.start_operator();
        played
    }

    fn start_operator(&mut self) {
        if self.operator.is_some() {
            return;
        }
        let (server, clock, log) = (self.world.server().clone(), self.world.clock(), self.log.clone());
        let noted = Noted { inner: self.faults.clone(), server, clock, log };
        let client = self.world.block_on(async { kube::Client::new(noted, "default") });
        // Each life has its own chances.
        self.seed += 1000;
        let (settings, sky) = (self.character.settings(), self.sky.clone());
        let operated = whole::operate_on(client, clock, settings, self.seed, |inner| {
            Arc::new(Unreliable { inner, sky })
        });
        self.operator = Some(self.world.spawn(operated));
    }

    fn kill_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
            self.seen.order.forget();
        }
    }

    /// Lets seconds pass, and looks at all that happens.
    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.world.run_for(Duration::from_secs(1));
            for entry in self.log.take() {
                if let Err(wrong) = self.seen.note(&entry) {
                    self.fail_with(&format!("at {}: {wrong}", entry.at));
                }
            }
        }
    }

    /// Says what went wrong, and all that may explain it.
    fn fail_with(&self, wrong: &str) -> ! {
        let (seed, story, world) = (self.seed % 1000, self.seen.story(), self.world.describe());
        let pools = self.world.list(POOLS).into_iter().map(|pool| pool["spec"].to_string());
        let events = self.world.list("/api/v1/events");
        let warnings = events.iter().filter(|event| event["type"] == "Warning").rev().take(20);
        let warnings = warnings.map(|it| format!("{} {}", it["involvedObject"]["name"], it["message"]));
        let more = pools.chain(warnings).collect::<Vec<_>>().join("\n  ");
        panic!("seed {seed}: {wrong}\n{:?}\n  {more}\n{story}{world}", self.character);
    }

    /// How many pods of each deployment run.
    fn running(&self) -> BTreeMap<String, usize> {
        let mut running = BTreeMap::<String, usize>::new();
        for pod in self.world.list(PODS).iter().filter(|pod| pod["status"]["phase"] == "Running") {
            if pod["metadata"]["deletionTimestamp"].is_null() {
                let app = pod["metadata"]["labels"]["app"].as_str().unwrap_or_default();
                *running.entry(app.to_owned()).or_default() += 1;
            }
        }
        running
    }

    /// Whether as many pods run as did before and are wanted.
    fn is_whole(&self, before: &BTreeMap<String, usize>) -> bool {
        if self.character.is_contested {
            // Who comes first gets the place.
            return true;
        }
        let running = self.running();
        let count = |all: &BTreeMap<String, usize>, name: &str| all.get(name).copied().unwrap_or_default();
        self.wanted.iter().all(|(name, wanted)| {
            let expected =
                if self.character.is_limited { (*wanted).min(count(before, name)) } else { *wanted };
            count(&running, name) >= expected
        })
    }

    /// Lets time pass until as many pods run as before and no node is left given up.
    fn come_to_rest(&mut self, before: &BTreeMap<String, usize>) {
        for _ in 0..TO_REST / 60 {
            self.run(60);
            if self.is_whole(before) && self.seen.left_over().is_empty() {
                return;
            }
        }
        let (running, wanted, left_over) = (self.running(), &self.wanted, self.seen.left_over());
        self.fail_with(&format!(
            "(e) of {wanted:?} run {running:?}, and before ran {before:?}; left are {left_over:?}"
        ));
    }
}

/// Plays one cluster; how much was seen of what.
fn play(seed: u64, changes: usize) -> BTreeMap<&'static str, usize> {
    let mut played = Played::new(seed);
    played.add_pools();
    for number in 0..played.random.random_range(3..7) {
        played.add_deployment(number);
    }
    played.run(180);
    let before = played.running();
    for _ in 0..changes {
        played.change();
        let seconds = played.random.random_range(5..60);
        played.run(seconds);
    }
    // Once everything works, nothing is left behind.
    played.cure();
    played.come_to_rest(&before);
    if played.character.expires {
        // What is lost by force may find no place among the smallest nodes.
        return played.seen.counts;
    }
    // What has begun when there was room is not undone when there is none any more.
    for _ in 0..TO_LEAVE {
        if !played.seen.is_any_leaving() {
            break;
        }
        played.run(60);
    }
    // What there is cannot be had any more; most pods have to stay where they are.
    let before = played.running();
    played.narrow();
    played.run(300);
    played.come_to_rest(&before);
    played.seen.counts
}

/// Every other cluster, so that two are looked at at the same time.
#[expect(clippy::print_stdout, reason = "people want to see how far it is")]
fn play_half(seeds: impl Iterator<Item = u64>, changes: usize) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for seed in seeds {
        let seen = play(seed, changes);
        println!("seed {seed}: {seen:?}");
        for (what, count) in seen {
            *counts.entry(what).or_default() += count;
        }
    }
    counts
}

#[test]
fn random_clusters_come_to_no_harm() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let asked = number("SAFETY");
    let first = number("SAFETY_FROM").unwrap_or(0);
    let (seeds, changes) = match asked {
        Some(asked) => ((first..first + asked).collect(), LONG),
        None => (Vec::from(CLUSTERS), SHORT),
    };
    let other = seeds.clone();
    let other = std::thread::spawn(move || play_half(other.into_iter().skip(1).step_by(2), changes));
    let mut counts = play_half(seeds.into_iter().step_by(2), changes);
    // What failed there is said there.
    for (what, count) in other.join().expect("the other half comes to no harm, too") {
        *counts.entry(what).or_default() += count;
    }
    for what in SEEN {
        // A few clusters that somebody asked for need not have seen all of it.
        assert!(asked.is_some() || counts.contains_key(what), "nothing was seen of: {what} ({counts:?})");
    }
}
