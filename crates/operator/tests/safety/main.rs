//! What disruption must never do, whatever the cluster is like and whatever goes wrong: random clusters, random
//! changes, an API server that fails, an operator that is killed and comes back.
//!
//! ```text
//! (a) more nodes are given up than budgets allow
//! (b) a pod is deleted past its budget, other than at the end of its node's terminationGracePeriod
//! (c) a pod is evicted, or its node gracefully disrupted, that asks to be left alone
//! (d) a NodePool has more than it may have
//! (e) a pod that ran has no room any more
//! ```
//!
//! `SAFETY=200 cargo test --release -p karpenter-operator --test safety` looks at more clusters; `SAFETY_FROM=70` begins
//! with another seed.

mod checks;
mod log;
#[path = "../support/whole.rs"]
mod whole;

use std::collections::BTreeMap;
use std::time::Duration;

use api::provider::Provider;
use embedded::faults::{Fault, Faulty, Rule};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;
use testkit::scenarios::manifests::{deployment_with, node_class, pool, with};
use tokio::task::JoinHandle;

use checks::Seen;
use log::{KINDS, Log, Noted};

/// How many clusters are looked at if nobody asks for more.
const CLUSTERS: u64 = 4;
/// How often something happens to a cluster, and how often if more clusters are asked for.
const SHORT: usize = 15;
const LONG: usize = 40;
/// How long a cluster may take to come to rest.
const TO_REST: u64 = 40 * 60;
/// How many minutes nodes may take to go, unless something keeps them for good.
const TO_LEAVE: u64 = 5;
/// Faults come and go; the operator has so many chances to notice each.
const RATE: f64 = 0.15;

const PODS: &str = "/api/v1/pods";
const POOL: &str = "/apis/karpenter.sh/v1/nodepools/default";

/// A cluster at the mercy of chance.
struct Played {
    world: World,
    random: Pcg64Mcg,
    seed: u64,
    log: Log,
    seen: Seen,
    faults: Faulty,
    operator: Option<JoinHandle<()>>,
    /// Replicas by deployment.
    wanted: BTreeMap<String, usize>,
    /// Whether not all pods may have a place.
    limited: bool,
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
        let random = Pcg64Mcg::seed_from_u64(seed);
        let mut played = Self {
            world,
            random,
            seed,
            log,
            seen: Seen::default(),
            faults,
            operator: None,
            wanted: BTreeMap::new(),
            limited: false,
        };
        played.start_operator();
        played
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())].clone()
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
        let operated = whole::operate(client, clock, Settings::default(), self.seed);
        self.operator = Some(self.world.spawn(operated));
    }

    fn kill_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
        }
    }

    /// Lets seconds pass, and looks at all that happens.
    fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.world.run_for(Duration::from_secs(1));
            for entry in self.log.take() {
                if let Err(wrong) = self.seen.note(&entry) {
                    let what = self.world.describe();
                    panic!("seed {}, at {}: {wrong}\n{what}", self.seed % 1000, entry.at);
                }
            }
        }
    }

    /// A pool with rules of all kinds.
    fn add_pool(&mut self) {
        let mut spec = json!({"disruption": {
            "consolidationPolicy": "WhenEmptyOrUnderutilized",
            "consolidateAfter": self.one_of(&["0s", "30s"]),
            "budgets": [{"nodes": self.one_of(&["1", "2", "30%", "100%"])}],
        }});
        if self.random.random_bool(0.4) {
            self.limited = true;
            spec["limits"] = self.one_of(&[json!({"cpu": "12"}), json!({"nodes": "5"})]);
        }
        if self.random.random_bool(0.4) {
            spec["template"] = json!({"spec": {"terminationGracePeriod": "2m"}});
        }
        // Small nodes, so that there are several.
        let small =
            json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["1", "2", "4"]});
        let mut pool = with(pool("default"), &json!({"spec": spec}));
        let requirements = pool["spec"]["template"]["spec"]["requirements"].as_array_mut();
        requirements.expect("a pool has requirements").push(small);
        self.world.apply(&pool.to_string());
        self.world.apply(&node_class().to_string());
    }

    fn add_deployment(&mut self, number: usize) {
        let name = format!("d{number}");
        let replicas = self.random.random_range(1..7);
        let cpu = self.one_of(&["200m", "500m", "1", "1500m"]);
        let mut spec = json!({"terminationGracePeriodSeconds": self.one_of(&[0, 5, 20])});
        if self.random.random_bool(0.4) {
            let selector = json!({"matchLabels": {"app": name}});
            let key = self.one_of(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
            }]);
        }
        let mut deployment = deployment_with(&name, replicas, cpu, &spec);
        if self.random.random_bool(0.1) {
            deployment["spec"]["template"]["metadata"]["annotations"] =
                json!({"karpenter.sh/do-not-disrupt": "true"});
        }
        self.world.apply(&deployment.to_string());
        self.wanted.insert(name, replicas);
    }

    fn some_deployment(&mut self) -> String {
        let names: Vec<String> = self.wanted.keys().cloned().collect();
        self.one_of(&names)
    }

    fn scale(&mut self) {
        let name = self.some_deployment();
        // Where not all pods have a place, more of some would take it from others.
        let most = if self.limited { self.wanted[&name] } else { 8 };
        let replicas = self.random.random_range(0..=most);
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{name}");
        self.world.patch(&path, &json!({"spec": {"replicas": replicas}}));
        self.wanted.insert(name, replicas);
    }

    /// Nodes are no longer what their pool asks for.
    fn drift(&mut self) {
        let value = self.random.random::<u32>().to_string();
        let change = json!({"spec": {"template": {"metadata": {"labels": {"example.com/version": value}}}}});
        self.world.patch(POOL, &change);
    }

    /// A pod asks to be left alone, or not any more.
    fn protect(&mut self) {
        let pods = self.world.list(PODS);
        if pods.is_empty() {
            return;
        }
        let pod = self.one_of(&pods);
        let value = self.one_of(&[json!("true"), Value::Null, Value::Null]);
        let path = format!(
            "/api/v1/namespaces/default/pods/{}",
            pod["metadata"]["name"].as_str().unwrap_or_default()
        );
        self.world
            .patch(&path, &json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}}));
    }

    /// A deployment gets another budget, or none.
    fn budget(&mut self) {
        let name = self.some_deployment();
        let path = format!("/apis/policy/v1/namespaces/default/poddisruptionbudgets/{name}");
        if self.world.get(&path).is_some() {
            self.world.delete(&path);
            return;
        }
        let mut spec = self.one_of(&[
            json!({"maxUnavailable": 0}),
            json!({"maxUnavailable": 1}),
            json!({"minAvailable": 1}),
            json!({"minAvailable": "50%"}),
        ]);
        spec["selector"] = json!({"matchLabels": {"app": name}});
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        self.world.apply(&budget.to_string());
    }

    /// The API server fails in some way, or not any more.
    fn fail(&mut self) {
        let fault = self.one_of(&[
            Fault::InternalError,
            Fault::Unavailable,
            Fault::Conflict,
            Fault::Cut,
            Fault::LostReply,
            Fault::Delay(Duration::from_secs(2)),
            Fault::DelayedReply(Duration::from_secs(2)),
        ]);
        let verb = self.one_of(&["create", "patch", "delete"]);
        let rules =
            if self.random.random_bool(0.3) { Vec::new() } else { vec![Rule::on(verb, "", RATE, fault)] };
        self.faults.set_rules(rules);
    }

    /// Something happens.
    fn change(&mut self) {
        match self.random.random_range(0..12) {
            0..4 => self.scale(),
            4..6 => self.drift(),
            6..8 => self.protect(),
            8 => self.budget(),
            9..11 => self.fail(),
            _ => {
                self.kill_operator();
                let seconds = self.random.random_range(0..20);
                self.run(seconds);
                self.start_operator();
            }
        }
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
        let running = self.running();
        let count = |all: &BTreeMap<String, usize>, name: &str| all.get(name).copied().unwrap_or_default();
        self.wanted.iter().all(|(name, wanted)| {
            let expected = if self.limited { (*wanted).min(count(before, name)) } else { *wanted };
            count(&running, name) >= expected
        })
    }
}

impl Played {
    /// The pool gets the smallest nodes only from now on; the others are no longer what it asks for.
    fn narrow(&mut self) {
        let small = json!({"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["1"]});
        let on_demand =
            json!({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]});
        let change = json!({"spec": {"template": {"spec": {"requirements": [small, on_demand]}}}});
        self.world.patch(POOL, &change);
        self.limited = true;
    }

    /// Lets time pass until as many pods run as before and no node is left given up.
    fn come_to_rest(&mut self, before: &BTreeMap<String, usize>) {
        for _ in 0..TO_REST / 60 {
            self.run(60);
            if self.is_whole(before) && self.seen.left_over().is_empty() {
                return;
            }
        }
        let (running, wanted, world) = (self.running(), &self.wanted, self.world.describe());
        let (seed, left_over) = (self.seed % 1000, self.seen.left_over());
        panic!(
            "seed {seed}: (e) of {wanted:?} run {running:?}, and before ran {before:?}; left are {left_over:?}\n{world}"
        );
    }
}

/// Plays one cluster; how much was seen of what.
fn play(seed: u64, changes: usize) -> BTreeMap<&'static str, usize> {
    let mut played = Played::new(seed);
    played.add_pool();
    for number in 0..played.random.random_range(3..6) {
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
    played.faults.set_rules(Vec::new());
    played.start_operator();
    played.come_to_rest(&before);
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
#[expect(clippy::print_stdout, reason = "people want to see what was looked at")]
fn play_all(half: u64) {
    let asked = std::env::var("SAFETY").ok().and_then(|text| text.parse().ok());
    let changes = if asked.is_some() { LONG } else { SHORT };
    let mut counts = BTreeMap::<&str, usize>::new();
    let first = std::env::var("SAFETY_FROM").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in (first..first + asked.unwrap_or(CLUSTERS)).filter(|seed| seed % 2 == half) {
        for (what, count) in play(seed, changes) {
            *counts.entry(what).or_default() += count;
        }
    }
    println!("{counts:?}");
    for what in ["nodes given up", "nodes deleted", "evictions"] {
        // A single cluster need not have seen all of it.
        assert!(asked.is_some() || counts.contains_key(what), "nothing was seen of: {what}");
    }
}

#[test]
fn clusters_of_even_seed_come_to_no_harm() {
    play_all(0);
}

#[test]
fn clusters_of_odd_seed_come_to_no_harm() {
    play_all(1);
}
