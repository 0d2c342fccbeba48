//! Limits of NodePools hold at every moment, across rounds, restarts and replacements, whatever happens: after every
//! change of a claim, a node or a pool the sum is checked of what its claims have or may at most become.
//!
//! * Where a limit is lowered below what a pool has, the pool keeps that, and never gets more.
//! * Nodes that are given up or deleted do not count where pods wait for a node, as in the original; a node that comes
//!   for another counts together with all that are still there.
//! * From time to time the plan that anybody may ask for is compared with what the controller then does.
//!
//! `LIMITS=10000 cargo test -p karpenter-operator --test limits` takes more steps; `LIMITS_FROM=7` begins with another
//! seed. Each cluster takes as many steps as [`STEPS`] says.

#[path = "../safety/cloud.rs"]
#[allow(dead_code, reason = "other tests need nodes that never get ready")]
mod cloud;
mod ledger;
#[path = "../safety/log.rs"]
#[allow(dead_code, reason = "other tests look at requests")]
mod log;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::provider::Provider;
use cloud::{Sky, Unreliable};
use cluster::instance_types::InstanceType;
use cluster::instance_types::kwok::built_in;
use cluster::snapshot::InstanceTypes;
use cluster::state::Key;
use embedded::faults::Faulty;
use kwok::Kwok;
use ledger::Ledger;
use log::{KINDS, Log};
use operator::Parts;
use operator::provisioner::plan;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use runtime::Settings;
use serde_json::Value;
use steps::{CLAIMS, POOLS};
use testkit::World;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How many steps a cluster takes.
const STEPS: usize = 100;
/// How many steps are taken in all if nobody asks for more.
const SAMPLE: usize = 400;
/// After how many steps a plan is compared with what the controller does.
const COMPARED: usize = 25;
/// What is watched: what pools may have, what they have, and for what.
const LOOKED_AT: [&str; 4] = ["NodePool", "NodeClaim", "Node", "Event"];
/// What must have been seen if anything is to be concluded.
const SEEN: [&str; 7] = [
    "claims of limited pools",
    "launches",
    "limits changed",
    "nodes given up",
    "replacements",
    "plans compared",
    "nodes compared",
];

/// A cluster at the mercy of chance.
struct Played {
    seed: u64,
    world: World,
    random: Pcg64Mcg,
    log: Log,
    ledger: Ledger,
    faults: Faulty,
    sky: Sky,
    types: Arc<[InstanceType]>,
    operator: Option<(Parts, JoinHandle<()>)>,
    lives: u64,
}

impl Played {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        for definition in api::crds::documents(Provider::Kwok) {
            world.apply(&definition.document.to_string());
        }
        let log = Log::default();
        for kind in KINDS.into_iter().filter(|(.., kind)| LOOKED_AT.contains(kind)) {
            world.spawn(log.clone().watch(world.client(), world.clock(), kind));
        }
        let types: Arc<[InstanceType]> = built_in().into();
        let mut played = Self {
            seed,
            faults: Faulty::new(world.server().service(), seed),
            world,
            random: Pcg64Mcg::seed_from_u64(seed),
            log,
            ledger: Ledger::new(&types),
            sky: Sky::new(seed),
            types,
            operator: None,
            lives: 0,
        };
        played.add_pools();
        played.start_operator();
        played
    }

    fn start_operator(&mut self) {
        if self.operator.is_some() {
            return;
        }
        let mut settings = Settings::default();
        settings.gates.static_capacity = true;
        let clock = self.world.clock();
        let client = self.world.block_on(async { kube::Client::new(self.faults.clone(), "default") });
        let parts = Parts::new(client, Provider::Kwok, clock, settings);
        // Each life has its own chances.
        self.lives += 1;
        let (running, sky, seed, types) =
            (parts.clone(), self.sky.clone(), self.seed + 1000 * self.lives, self.types.to_vec());
        let task = self.world.spawn(async move {
            let inner = Kwok::new(running.api.clone(), running.cluster.clone(), clock, seed, types);
            let of_cloud = inner.controllers(&running.events, &running.metrics);
            let (_leads, leading) = watch::channel(true);
            operator::run(running.context(Arc::new(Unreliable { inner, sky })), of_cloud, leading).await;
        });
        self.operator = Some((parts, task));
    }

    fn kill_operator(&mut self) {
        if let Some((_, task)) = self.operator.take() {
            task.abort();
        }
    }

    /// Lets time pass, and looks at all that happens.
    fn run(&mut self, millis: u64) {
        let mut left = Duration::from_millis(millis);
        while !left.is_zero() {
            let part = left.min(Duration::from_secs(5));
            self.world.run_for(part);
            left -= part;
            self.look();
        }
    }

    fn look(&mut self) {
        for entry in self.log.take() {
            if let Err(wrong) = self.ledger.note(&entry) {
                self.fail_with(&format!("at {}: {wrong}", entry.at));
            }
        }
    }

    /// Says what went wrong, and all that may explain it.
    fn fail_with(&self, wrong: &str) -> ! {
        let pools = self.world.list(POOLS).into_iter().map(|pool| pool["spec"].to_string());
        let pools: Vec<String> = pools.collect();
        panic!("seed {}: {wrong}\n  {}\n{}", self.seed, pools.join("\n  "), self.ledger.story());
    }

    /// Pods come when everything works: what the plan says is what is then done, unless something else happens first.
    fn compare(&mut self, number: usize) {
        self.cure();
        self.run(45_000);
        self.add_workload(&format!("planned-{number}"));
        // The scheduler has looked at them, and the operator still waits for more.
        self.run(300);
        let condition = self.ledger.condition();
        let before: BTreeSet<String> = condition.iter().map(|(name, ..)| name.clone()).collect();
        let (expected, waiting) = (self.planned(), self.waiting());
        // Pods that found no room before are looked at again within ten seconds.
        for _ in 0..120 {
            self.run(100);
            if self.ledger.condition() != condition {
                break;
            }
        }
        self.run(100);
        let same = self.ledger.condition();
        let is_old = |it: &&(String, bool, bool)| before.contains(&it.0);
        // The scheduler may have found room for other pods than the plan meant it for.
        if same.iter().filter(is_old).ne(condition.iter()) || self.waiting() != waiting {
            return;
        }
        let decided = self.decided(&before);
        if expected != decided {
            self.fail_with(&format!(
                "the plan is\n  {expected:?}\nand the controller has done\n  {decided:?}"
            ));
        }
        *self.ledger.counts.entry("plans compared").or_default() += 1;
        *self.ledger.counts.entry("nodes compared").or_default() += decided.len();
    }

    /// The pods that have no node.
    fn waiting(&self) -> BTreeSet<String> {
        let pods = self.world.pods().into_iter().filter(|pod| pod["spec"]["nodeName"].is_null());
        pods.map(|pod| text(&pod["metadata"]["name"])).collect()
    }

    /// The nodes that a plan has: pool, types and pods of each.
    fn planned(&self) -> BTreeSet<Node> {
        let Some((parts, _)) = &self.operator else { return BTreeSet::new() };
        let state = parts.cluster.read();
        let types = InstanceTypes::Same(&self.types);
        let built = plan::snapshot(&state, types, &[], &parts.settings, self.world.now());
        let plan = plan::plan(&built, &parts.settings);
        let snapshot = &built.snapshot;
        let node = |claim: &engine::solve::PlannedClaim| {
            let pool = &snapshot.pools[claim.pool.index()];
            let catalogue = pool.catalogue.expect("a pool without types makes no claims");
            let all = &snapshot.catalogues[catalogue.index()].types;
            let names = plan.universe.values(snapshot.keys.instance_type);
            let types = claim.types.iter().map(|type_| names.name(all[*type_].name).to_owned());
            let pods = claim.pods.iter().map(|pod| snapshot.pods[pod.index()].name.to_string());
            (pods.collect(), pool.name.to_string(), types.collect())
        };
        plan.claims.iter().map(node).collect()
    }

    /// The nodes that were launched for pods since there were only some claims.
    fn decided(&self, before: &BTreeSet<String>) -> BTreeSet<Node> {
        let Some((parts, _)) = &self.operator else { return BTreeSet::new() };
        let state = parts.cluster.read();
        let mut by_claim = BTreeMap::<String, BTreeSet<String>>::new();
        for pod in self.world.pods() {
            let [namespace, name] = ["namespace", "name"].map(|key| text(&pod["metadata"][key]));
            let record = state.pod_record(&Key::new(&namespace, &name));
            if let Some(claim) = record.and_then(|record| record.claim.as_deref()) {
                by_claim.entry(claim.to_owned()).or_default().insert(format!("{namespace}/{name}"));
            }
        }
        let new = self
            .world
            .list(CLAIMS)
            .into_iter()
            .filter(|claim| !before.contains(&text(&claim["metadata"]["name"])));
        let node = |claim: Value| {
            let requirements = claim["spec"]["requirements"].as_array().into_iter().flatten();
            let types = requirements.filter(|it| it["key"] == "node.kubernetes.io/instance-type");
            let types =
                types.flat_map(|it| it["values"].as_array().into_iter().flatten()).map(text).collect();
            let pods = by_claim.remove(&text(&claim["metadata"]["name"])).unwrap_or_default();
            (pods, text(&claim["metadata"]["labels"]["karpenter.sh/nodepool"]), types)
        };
        new.map(node).collect()
    }
}

/// A new node: its pods, its pool, and what it may become.
type Node = (BTreeSet<String>, String, BTreeSet<String>);

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Takes some steps in one cluster; how much was seen of what.
fn play(seed: u64, steps: usize) -> BTreeMap<&'static str, usize> {
    let mut played = Played::new(seed);
    for number in 1..=steps {
        played.step();
        let seconds = [0, 0, 1, 2, 5, 20][played.random.random_range(0..6)];
        played.run(100 + 1000 * seconds);
        if number % COMPARED == 0 {
            played.compare(number);
        }
    }
    played.ledger.counts
}

/// Every other cluster, so that two are looked at at the same time.
#[expect(clippy::print_stdout, reason = "people want to see how far it is")]
fn play_half(seeds: impl Iterator<Item = u64>) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for seed in seeds {
        let seen = play(seed, STEPS);
        println!("seed {seed}: {seen:?}");
        for (what, count) in seen {
            *counts.entry(what).or_default() += count;
        }
    }
    counts
}

#[test]
fn limits_hold_at_every_moment() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let steps = number("LIMITS").unwrap_or(SAMPLE);
    let first = number("LIMITS_FROM").unwrap_or(0) as u64;
    let seeds = first..first + steps.div_ceil(STEPS) as u64;
    let other = seeds.clone();
    let other = std::thread::spawn(move || play_half(other.skip(1).step_by(2)));
    let mut counts = play_half(seeds.step_by(2));
    // What failed there is said there.
    for (what, count) in other.join().expect("limits hold in the other half, too") {
        *counts.entry(what).or_default() += count;
    }
    for what in SEEN {
        // A few steps that somebody asked for need not have seen all of it.
        assert!(steps < SAMPLE || counts.contains_key(what), "nothing was seen of: {what} ({counts:?})");
    }
}
