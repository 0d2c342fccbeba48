//! A cluster whose workload does not change comes to rest, and stays as it is: nothing is launched, given up, evicted or
//! deleted, not even to be taken back.
//!
//! `FIXED_POINTS=200 cargo test --release -p karpenter-operator --test fixed_point` looks at more clusters, for a whole
//! day each; `FIXED_POINTS_FROM=70` begins with another seed.

#[path = "safety/log.rs"]
mod log;
#[path = "support/whole.rs"]
mod whole;

use std::time::Duration;

use api::provider::Provider;
use embedded::faults::Faulty;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;
use testkit::scenarios::manifests::{deployment_with, manifest, node_class, pod_spec, pool, with};

use log::{Entry, KINDS, Log, Noted, What};

/// How many clusters are looked at if nobody asks for more.
const CLUSTERS: u64 = 10;
/// How long a cluster may take to come to rest.
const TO_REST: Duration = Duration::from_mins(30);
/// How long it is watched then, and how long if more clusters are asked for.
const SHORT: Duration = Duration::from_hours(2);
const LONG: Duration = Duration::from_hours(24);
/// How often it is looked at what happened.
const LOOK: Duration = Duration::from_mins(10);
/// One cluster of so many is a large one.
const LARGE: u64 = 5;

/// What a cluster is made of.
struct Made {
    random: Pcg64Mcg,
    settings: Settings,
    objects: Vec<Value>,
    /// Deployments and their replicas.
    replicas: Vec<(String, usize)>,
}

impl Made {
    fn new(seed: u64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed);
        let objects = vec![node_class()];
        let mut made = Self { random, settings: Settings::default(), objects, replicas: Vec::new() };
        let is_large = seed % LARGE == LARGE - 1;
        let has_spot = made.maybe(0.4);
        made.settings.gates.spot_to_spot_consolidation = has_spot;
        let is_limited = made.maybe(0.3) && !is_large;
        for name in ["default", "second"].into_iter().take(1 + usize::from(made.maybe(0.4))) {
            made.add_pool(name, has_spot, is_limited);
        }
        made.add_specials();
        let count = made.random.random_range(1..4);
        for number in 0..count {
            let replicas = if is_large { 100 / count + 1 } else { made.random.random_range(1..5) };
            made.add_deployment(&format!("d{number}"), replicas, is_large);
        }
        made
    }

    fn maybe(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.random.random_range(0..choices.len())].clone()
    }

    fn add_pool(&mut self, name: &str, has_spot: bool, is_limited: bool) {
        let policy =
            self.one_of(&["WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced", "WhenEmpty"]);
        let disruption = json!({
            "consolidationPolicy": policy,
            "consolidateAfter": self.one_of(&["0s", "0s", "1m"]),
            "budgets": [{"nodes": self.one_of(&["10%", "1", "100%"])}],
        });
        let mut pool = with(pool(name), &json!({"spec": {"disruption": disruption}}));
        if has_spot {
            let bought = self.one_of(&[json!(["spot"]), json!(["spot", "on-demand"])]);
            pool["spec"]["template"]["spec"]["requirements"][1]["values"] = bought;
        }
        if is_limited {
            pool["spec"]["limits"] = self.one_of(&[json!({"cpu": "8"}), json!({"nodes": "2"})]);
        }
        self.objects.push(pool);
    }

    /// A pool of a fixed size, room that is kept free, other prices.
    fn add_specials(&mut self) {
        if self.maybe(0.25) {
            self.settings.gates.static_capacity = true;
            self.objects.push(with(pool("fixed"), &json!({"spec": {"replicas": 2}})));
        }
        if self.maybe(0.25) {
            self.settings.gates.capacity_buffer = true;
            self.objects.push(json!({
                "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "spare", "namespace": "default"},
                "template": {"metadata": {"labels": {"app": "spare"}}, "spec": pod_spec("1")},
            }));
            self.objects.push(json!({
                "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
                "metadata": {"name": "spare", "namespace": "default"},
                "spec": {"podTemplateRef": {"name": "spare"}, "replicas": self.random.random_range(1..4)},
            }));
        }
        if self.maybe(0.25) {
            self.settings.gates.node_overlay = true;
            let adjustment = self.one_of(&["-40%", "+40%"]);
            let types = ["c-2x-amd64-linux", "m-4x-arm64-linux"];
            self.objects.push(json!({
                "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": {"name": "cheap"},
                "spec": {
                    "requirements": [
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
                    ],
                    "priceAdjustment": adjustment,
                },
            }));
        }
    }

    fn add_deployment(&mut self, name: &str, replicas: usize, is_large: bool) {
        let selector = json!({"matchLabels": {"app": name}});
        let spread = |key: &str| {
            json!({"topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
            }]})
        };
        let rule = match self.random.random_range(0..5) {
            0 => spread("topology.kubernetes.io/zone"),
            // A hundred nodes are another matter.
            1 if !is_large => spread("kubernetes.io/hostname"),
            _ => json!({}),
        };
        let cpu = self.one_of(&["100m", "500m", "1", "3"]);
        self.objects.push(deployment_with(name, replicas, cpu, &rule));
        if self.maybe(0.3) {
            let mut spec = self.one_of(&[
                json!({"maxUnavailable": 0}),
                json!({"maxUnavailable": 1}),
                json!({"minAvailable": "50%"}),
            ]);
            spec["selector"] = selector;
            self.objects.push(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": "default"}, "spec": spec}));
        }
        self.replicas.push((name.to_owned(), replicas));
    }
}

/// What somebody who wants to be left in peace would notice of something that happened.
fn disturbance(entry: &Entry) -> Option<String> {
    let name = |value: &Value| value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    match &entry.what {
        What::Asked(method, path) => {
            let is_claim = path.contains("/nodeclaims");
            let is_disturbing = match method.as_str() {
                "POST" => is_claim || path.ends_with("/eviction"),
                "DELETE" => is_claim || path.contains("/pods/") || path.contains("/nodes/"),
                _ => false,
            };
            is_disturbing.then(|| format!("{method} {path}"))
        }
        What::Applied(value) if value["kind"] == "Node" => {
            let taints = value["spec"]["taints"].as_array().into_iter().flatten();
            let is_tainted = taints.into_iter().any(|taint| taint["key"] == "karpenter.sh/disrupted");
            is_tainted.then(|| format!("node {} is given up", name(value)))
        }
        What::Applied(value) if value["kind"] == "NodeClaim" => {
            let conditions = value["status"]["conditions"].as_array().into_iter().flatten();
            let is_given_up = conditions.into_iter().any(|it| it["type"] == "DisruptionReason");
            let is_leaving = !value["metadata"]["deletionTimestamp"].is_null();
            (is_given_up || is_leaving).then(|| format!("NodeClaim {} is given up", name(value)))
        }
        What::Gone(value) if value["kind"] == "NodeClaim" || value["kind"] == "Node" => {
            Some(format!("{} {} is gone", value["kind"], name(value)))
        }
        _ => None,
    }
}

fn rests(seed: u64, for_long: Duration) {
    let mut made = Made::new(seed);
    let mut world = World::new(seed);
    for definition in api::crds::documents(Provider::Kwok) {
        world.apply(&definition.document.to_string());
    }
    let log = Log::default();
    for kind in KINDS {
        world.spawn(log.clone().watch(world.client(), world.clock(), kind));
    }
    let (server, clock) = (world.server().clone(), world.clock());
    let noted = Noted { inner: Faulty::new(server.service(), seed), server, clock, log: log.clone() };
    let client = world.block_on(async { kube::Client::new(noted, "default") });
    world.spawn(whole::operate(client, clock, made.settings.clone(), seed));
    world.apply(&manifest(&made.objects));
    world.run_for(Duration::from_mins(5));
    for (name, replicas) in made.replicas.clone() {
        let left = made.random.random_range(0..=replicas);
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{name}");
        world.patch(&path, &json!({"spec": {"replicas": left}}));
    }
    world.run_for(TO_REST);
    log.take();
    let mut passed = Duration::ZERO;
    while passed < for_long {
        world.run_for(LOOK);
        passed += LOOK;
        let disturbed: Vec<String> = log
            .take()
            .iter()
            .filter_map(|entry| disturbance(entry).map(|what| format!("  {} {what}\n", entry.at)))
            .collect();
        assert!(
            disturbed.is_empty(),
            "seed {seed}, after {passed:?}:\n{}{}",
            disturbed.concat(),
            world.describe()
        );
    }
}

/// Every other cluster, so that two are looked at at the same time.
fn all_rest(half: u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (asked, first) = (number("FIXED_POINTS"), number("FIXED_POINTS_FROM").unwrap_or(0));
    let for_long = if asked.is_some() { LONG } else { SHORT };
    for seed in (first..first + asked.unwrap_or(CLUSTERS)).filter(|seed| seed % 2 == half) {
        rests(seed, for_long);
    }
}

#[test]
fn clusters_of_even_seed_come_to_rest() {
    all_rest(0);
}

#[test]
fn clusters_of_odd_seed_come_to_rest() {
    all_rest(1);
}
