//! `karpenter plan` and the controller decide alike, on random clusters: what is launched, what it becomes, which pods
//! go there, and why others stay pending.
//!
//! A cluster without an operator is planned for twice, live and from what the `kubectl get` of the README prints; then
//! the operator starts, and its first round is compared. What it does in later rounds is not part of a plan; it must
//! keep what the first has promised: pods with a place run, and nobody else is moved.
//!
//! `PARITY=200 cargo test -p karpenter --test parity` looks at more clusters; `PARITY_FROM=70` begins with another
//! seed, so that `PARITY=1 PARITY_FROM=70` plays one again.

mod chance;
mod decision;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "other tests have a cluster in real time")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use api::names::labels;
use api::nodeoverlay::NodeOverlay;
use api::nodepool::NodePool;
use api::provider::Provider;
use chance::{Chance, common};
use cluster::costs::price_by_labels;
use cluster::instance_types::InstanceType;
use cluster::instance_types::kwok::built_in;
use cluster::overlays::{PoolTypes, evaluate};
use cluster::state::{Key, Kind};
use decision::{Decision, NewNode, text, types_and_others};
use kwok::Kwok;
use operator::Parts;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use runtime::Settings;
use runtime::settings::{Gates, MinValuesPolicy, PreferencePolicy};
use serde_json::{Value, json};
use testkit::World;
use testkit::scenarios::manifests::{node_class, with};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use units::Quantity;

/// How many clusters are looked at if nobody asks for more.
const CLUSTERS: u64 = 40;
/// How long the operator has for its first round.
const FIRST_ROUND: Duration = Duration::from_secs(20);
/// What must have been seen if anything is to be concluded.
const SEEN: [&str; 6] =
    ["new nodes", "pods on existing nodes", "pods for a reason", "limited pools", "static nodes", "overlays"];

/// The collections that the README's `kubectl get` prints.
const DUMPED: [&str; 11] = [
    "/apis/karpenter.sh/v1/nodepools",
    "/apis/karpenter.sh/v1/nodeclaims",
    "/api/v1/nodes",
    "/api/v1/pods",
    "/apis/apps/v1/daemonsets",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/policy/v1/poddisruptionbudgets",
    "/api/v1/namespaces",
];
const OVERLAYS: &str = "/apis/karpenter.sh/v1alpha1/nodeoverlays";
const POOLS: &str = DUMPED[0];
const CLAIMS: &str = DUMPED[1];

/// How often something was seen.
type Counts = BTreeMap<&'static str, usize>;

/// A cluster at the mercy of chance.
struct Played {
    seed: u64,
    world: World,
    chance: Chance,
    settings: Settings,
    /// The settings as flags of `plan`.
    flags: Vec<String>,
    types: Vec<InstanceType>,
    has_overlays: bool,
    /// Whether nodes take longer to join than anybody looks.
    registers_late: bool,
}

/// An operator that runs.
struct Operator {
    parts: Parts,
    task: JoinHandle<()>,
}

impl Played {
    fn new(seed: u64) -> Self {
        let world = World::new(seed);
        for definition in api::crds::documents(Provider::Kwok) {
            world.apply(&definition.document.to_string());
        }
        let mut chance = Chance(Pcg64Mcg::seed_from_u64(seed));
        let has_overlays = chance.maybe(0.25);
        let gates = format!("NodeOverlay={has_overlays},StaticCapacity=true");
        let mut settings =
            Settings { gates: Gates::parse(&gates).expect("they are features").0, ..Settings::default() };
        let mut flags = vec!["--feature-gates".to_owned(), gates];
        if chance.maybe(0.3) {
            settings.min_values_policy = MinValuesPolicy::BestEffort;
            flags.extend(["--min-values-policy".to_owned(), "best-effort".to_owned()]);
        }
        if chance.maybe(0.2) {
            settings.preference_policy = PreferencePolicy::Ignore;
            flags.extend(["--preference-policy".to_owned(), "ignore".to_owned()]);
        }
        Self { seed, world, chance, settings, flags, types: built_in(), has_overlays, registers_late: false }
    }

    fn apply(&self, object: &Value) {
        self.world.apply(&object.to_string());
    }

    fn run(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// Makes a cluster whose pods wait, and in which no operator runs.
    fn populate(&mut self) {
        for object in common() {
            self.apply(&object);
        }
        let was_operated = self.chance.maybe(0.5);
        // Claims without nodes are there when a plan is made.
        self.registers_late = was_operated && self.chance.maybe(0.35);
        let delay = if self.registers_late { "14m" } else { "0s" };
        self.apply(&with(node_class(), &json!({"spec": {"nodeRegistrationDelay": delay}})));
        for number in 0..self.chance.number(1..5) {
            let pool = self.chance.pool(number, was_operated);
            self.apply(&pool);
        }
        if was_operated && self.chance.maybe(0.4) {
            let pool = self.chance.static_pool();
            self.apply(&pool);
        }
        for number in 0..if self.has_overlays { self.chance.number(1..4) } else { 0 } {
            let overlay = self.chance.overlay(number);
            self.apply(&overlay);
        }
        if self.chance.maybe(0.4) {
            let set = self.chance.daemon_set();
            self.apply(&set);
        }
        for number in 0..self.chance.number(0..3) {
            let node = self.chance.foreign_node(number);
            self.apply(&node);
        }
        let mut count = 0;
        if was_operated {
            count = self.add_pods(count, 8);
            let operator = self.start_operator();
            self.run(60);
            operator.task.abort();
            for pod in self.world.pods() {
                if self.chance.maybe(0.3) {
                    self.world.delete(&path_of(&pod));
                }
            }
            self.run(5);
        }
        self.add_pods(count, 24);
        self.run(10);
    }

    fn add_pods(&mut self, from: usize, most: usize) -> usize {
        let to = from + self.chance.number(1..most);
        for number in from..to {
            let pod = self.chance.pod(number);
            self.apply(&pod);
        }
        to
    }

    fn start_operator(&self) -> Operator {
        let clock = self.world.clock();
        let client = self.world.client();
        let parts = Parts::new(client, Provider::Kwok, clock, self.settings.clone());
        let (running, seed, types) = (parts.clone(), self.seed, self.types.clone());
        let task = self.world.spawn(async move {
            let kwok = Kwok::new(running.api.clone(), running.cluster.clone(), clock, seed, types);
            let kwok = kwok.with_overlays(running.overlays.clone());
            let of_cloud = kwok.controllers(&running.events, &running.metrics);
            let (_leads, leading) = watch::channel(true);
            operator::run(running.context(Arc::new(kwok)), of_cloud, leading).await;
        });
        Operator { parts, task }
    }

    /// All that `kubectl get` prints.
    fn dump(&self) -> Value {
        let mut items = Vec::new();
        let overlays = self.has_overlays.then_some(OVERLAYS);
        for path in DUMPED.into_iter().chain(overlays) {
            let list = self.world.get(path).unwrap_or_default();
            let kind = text(&list["kind"]);
            let kind = kind.strip_suffix("List").expect("a collection is a list");
            for item in list["items"].as_array().into_iter().flatten() {
                let mut item = item.clone();
                item["apiVersion"] = list["apiVersion"].clone();
                item["kind"] = json!(kind);
                items.push(item);
            }
        }
        json!({"apiVersion": "v1", "kind": "List", "items": items})
    }

    /// What `karpenter plan` says of files or of the cluster.
    fn plan(&self, given: &[&std::ffi::OsStr]) -> Decision {
        let mut command = Command::new(env!("CARGO_BIN_EXE_karpenter"));
        command.args(["plan", "-o", "json", "--ignore-unknown"]).args(&self.flags).args(given);
        for name in ["KUBERNETES_SERVICE_HOST", "KUBECONFIG", "SCHEDULER_CONFIG"] {
            command.env_remove(name);
        }
        let output = command.output().expect("running karpenter");
        let said = String::from_utf8_lossy(&output.stderr);
        let plan: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("seed {}: {given:?} is not planned: {said}", self.seed));
        Decision::of_plan(&plan, &self.claims_of_nodes())
    }

    fn plan_of_files(&self) -> Decision {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), self.dump().to_string()).expect("it can be written");
        self.plan(&["-f".as_ref(), file.path().as_os_str()])
    }

    /// The same of the cluster itself, over the network.
    fn live_plan(&self) -> Decision {
        let runtime = Runtime::new().expect("a runtime");
        let (listener, address) = runtime.block_on(embedded::http_server::bind_loopback()).expect("a port");
        runtime.spawn(embedded::http_server::serve_plain(self.world.server().service(), listener));
        let kubeconfig = support::kubeconfig(&address.to_string());
        self.plan(&["--kubeconfig".as_ref(), kubeconfig.path().as_os_str()])
    }

    /// All claims, by name.
    fn claims(&self) -> BTreeSet<String> {
        self.world.list(CLAIMS).iter().map(|claim| text(&claim["metadata"]["name"])).collect()
    }

    /// The claims of nodes that have joined.
    fn claims_of_nodes(&self) -> BTreeMap<String, String> {
        let claims = self.world.list(CLAIMS);
        let node = |claim: &Value| (text(&claim["status"]["nodeName"]), text(&claim["metadata"]["name"]));
        claims.iter().map(node).collect()
    }

    /// Lets an operator decide once.
    fn first_round(&mut self, operator: &Operator) -> Decision {
        let before = self.claims();
        let end = self.world.now() + FIRST_ROUND;
        while self.world.now() < end && self.decided(operator, &before) == Decision::default() {
            self.world.run_for(Duration::from_millis(100));
        }
        // Everything is written, and launched; the next round has another second to wait.
        self.world.run_for(Duration::from_millis(500));
        self.decided(operator, &before)
    }

    /// What an operator has decided so far.
    fn decided(&self, operator: &Operator, before: &BTreeSet<String>) -> Decision {
        let state = operator.parts.cluster.read();
        let mut decision = Decision::default();
        let pods: Vec<String> = self.world.pods().iter().map(name_of).collect();
        let mut by_claim = BTreeMap::<String, BTreeSet<String>>::new();
        for pod in pods {
            let (namespace, name) = pod.split_once('/').expect("pods are in namespaces");
            let record = state.pod_record(&Key::new(namespace, name));
            if let Some(claim) = record.and_then(|record| record.claim.as_deref()) {
                by_claim.entry(claim.to_owned()).or_default().insert(pod);
            }
        }
        for claim in self.world.list(CLAIMS) {
            let name = text(&claim["metadata"]["name"]);
            let pods = by_claim.remove(&name).unwrap_or_default();
            if !before.contains(&name) {
                decision.nodes.push(self.new_node(&claim, pods));
            } else if !pods.is_empty() {
                decision.existing.insert(name, pods);
            }
        }
        decision.nodes.sort_by(|a, b| a.partial_cmp(b).expect("prices are numbers"));
        for event in operator.parts.events.published() {
            if event.about.kind == Kind::Pod && &*event.reason == "FailedScheduling" {
                let pod = format!("{}/{}", event.about.namespace, event.about.name);
                let why = event.message.strip_prefix("Failed to schedule pod, ").unwrap_or(&event.message);
                decision.pending.insert(pod, why.to_owned());
            }
        }
        decision
    }

    fn new_node(&self, claim: &Value, pods: BTreeSet<String>) -> NewNode {
        let (types, requirements) = types_and_others(&claim["spec"]["requirements"]);
        let label = |key: &str| claim["metadata"]["labels"][key].as_str().unwrap_or_default();
        let corrected = self.corrected();
        let price =
            price_by_labels(label, corrected.get(label(labels::NODEPOOL)).map_or(&self.types, |it| it));
        let launched =
            (label(labels::INSTANCE_TYPE).to_owned(), label(labels::CAPACITY_TYPE).to_owned(), price);
        NewNode { pods, pool: label(labels::NODEPOOL).to_owned(), types, requirements, launched }
    }

    /// A plan without what a controller does not show, for reasons of its own:
    ///
    /// * a pod that wants no node of a NodePool gets no event;
    /// * while there is no NodePool for pods, nothing is wrong with them, and none gets an event;
    /// * pods that go to a node of nobody's pool are expected on no claim;
    /// * where overlays give several types the same price, the cloud may choose any of them.
    fn as_carried_out(&self, plan: &Decision, decided: &Decision) -> Decision {
        let mut expected = plan.clone();
        let has_pools = self.world.list(POOLS).iter().any(|pool| pool["spec"]["replicas"].is_null());
        let out: BTreeSet<String> =
            self.world.pods().iter().filter(|pod| opts_out(pod)).map(name_of).collect();
        let is_told = |pod: &String| has_pools && !out.contains(pod) || decided.pending.contains_key(pod);
        expected.pending.retain(|pod, _| is_told(pod));
        let claims = self.claims();
        expected.existing.retain(|claim, _| claims.contains(claim));
        for (planned, NewNode { launched, .. }) in expected.nodes.iter_mut().zip(&decided.nodes) {
            let is_tie = (planned.launched.2 - launched.2).abs() < 1e-9;
            if is_tie && self.has_overlays && planned.types.contains(&launched.0) {
                planned.launched = launched.clone();
            }
        }
        expected
    }

    /// What each NodePool chooses from, as overlays correct it.
    fn corrected(&self) -> BTreeMap<Box<str>, Arc<[InstanceType]>> {
        if !self.has_overlays {
            return BTreeMap::new();
        }
        let types: Arc<[InstanceType]> = self.types.clone().into();
        let read = |value: Value| serde_json::from_value::<NodeOverlay>(value).expect("the server admits it");
        let overlays: Vec<NodeOverlay> = self.world.list(OVERLAYS).into_iter().map(read).collect();
        let read = |value: Value| serde_json::from_value::<NodePool>(value).expect("the server admits it");
        let pools: Vec<NodePool> = self.world.list(POOLS).into_iter().map(read).collect();
        let of_pools: Vec<PoolTypes<'_>> =
            pools.iter().map(|pool| PoolTypes { pool, types: Arc::clone(&types) }).collect();
        let overlays: Vec<&NodeOverlay> = overlays.iter().collect();
        evaluate(Provider::Kwok, &overlays, &of_pools).in_force.apply_to_all(&types)
    }

    /// Fails if what was launched is more than a pool may have.
    fn check_limits(&self) -> Result<(), String> {
        let claims = self.world.list(CLAIMS);
        for pool in self.world.list(POOLS) {
            let is_of_pool =
                |claim: &&Value| claim["metadata"]["labels"][labels::NODEPOOL] == pool["metadata"]["name"];
            for (resource, limit) in pool["spec"]["limits"].as_object().into_iter().flatten() {
                let has = |claim: &Value| match resource.as_str() {
                    "nodes" => amount(&json!("1")),
                    resource => amount(&claim["status"]["capacity"][resource]),
                };
                let used: i128 = claims.iter().filter(is_of_pool).map(has).sum();
                if used > amount(limit) {
                    let (seed, name) = (self.seed, &pool["metadata"]["name"]);
                    return Err(format!("seed {seed}: NodePool {name} has more {resource} than {limit}"));
                }
            }
        }
        Ok(())
    }

    /// How much there was of what.
    fn count(&self, plan: &Decision) -> Counts {
        let pools = self.world.list(POOLS);
        let claims = self.world.list(CLAIMS);
        let is_static = |claim: &&Value| claim["metadata"]["labels"][labels::NODEPOOL] == "static";
        let all = [
            ("new nodes", plan.nodes.len()),
            ("pods on existing nodes", plan.existing.values().map(BTreeSet::len).sum()),
            ("pods for a reason", plan.pending.len()),
            ("limited pools", pools.iter().filter(|pool| !pool["spec"]["limits"].is_null()).count()),
            ("static nodes", claims.iter().filter(is_static).count()),
            ("overlays", usize::from(self.has_overlays)),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Fails if a pod with a place does not run. Where others have none, the scheduler may give it to them.
    fn check_promises(&self, plan: &Decision) -> Result<(), String> {
        if !plan.pending.is_empty() || self.registers_late {
            return Ok(());
        }
        let placed: BTreeSet<&String> =
            plan.nodes.iter().flat_map(|node| &node.pods).chain(plan.existing.values().flatten()).collect();
        let waits = |pod: &&Value| pod["spec"]["nodeName"].is_null() && placed.contains(&name_of(pod));
        let pods = self.world.pods();
        // Nobody makes this volume.
        let has_no_volume =
            |pod: &&Value| pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "to-come";
        let waiting: Vec<String> =
            pods.iter().filter(waits).filter(|pod| !has_no_volume(pod)).map(name_of).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        Err(format!(
            "seed {}: {waiting:?} were promised a place, and wait:\n{}",
            self.seed,
            self.world.describe()
        ))
    }

    /// Fails with all that may explain it if two decisions differ.
    fn compare(&self, decisions: [(&str, &Decision); 2]) -> Result<(), String> {
        let [(ours, a), (theirs, b)] = decisions;
        let Some(told) = a.difference(b, [ours, theirs]) else { return Ok(()) };
        let pools = self.world.list(POOLS).into_iter().map(|pool| {
            format!("  {} {} {}\n", pool["metadata"]["name"], pool["spec"], pool["status"]["conditions"])
        });
        let pods = self.world.pods().into_iter().filter(|pod| told.contains(&name_of(pod)));
        let pods =
            pods.map(|pod| format!("  {} {} {}\n", name_of(&pod), pod["spec"], pod["status"]["conditions"]));
        let objects: String = pools.chain(pods).collect();
        let flags = self.flags.join(" ");
        Err(format!("seed {}: {ours} and {theirs} differ ({flags}):\n{told}{objects}", self.seed))
    }
}

/// A quantity as a number.
fn amount(written: &Value) -> i128 {
    let quantity = written.as_str().and_then(|text| text.parse::<Quantity>().ok());
    quantity.map_or(0, Quantity::nanos)
}

fn name_of(pod: &Value) -> String {
    format!("{}/{}", text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]))
}

fn path_of(pod: &Value) -> String {
    let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

/// Whether what a pod wants and wishes for together leaves no NodePool: it says so, or names several without one in
/// common. It gets no event: nothing is wrong with it.
fn opts_out(pod: &Value) -> bool {
    let rules = &pod["spec"]["affinity"]["nodeAffinity"];
    let required = &rules["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0];
    let wish = &rules["preferredDuringSchedulingIgnoredDuringExecution"][0]["preference"];
    let chosen = pod["spec"]["nodeSelector"][labels::NODEPOOL].as_str();
    let mut left: Option<BTreeSet<&str>> = chosen.map(|pool| BTreeSet::from([pool]));
    let expressions = [required, wish].into_iter().filter_map(|term| term["matchExpressions"].as_array());
    for it in expressions.flatten().filter(|it| it["key"] == labels::NODEPOOL) {
        // Without values none is left.
        let values = it["values"].as_array().into_iter().flatten();
        let named: BTreeSet<&str> = values.filter_map(Value::as_str).collect();
        left = Some(left.map_or_else(|| named.clone(), |left| &left & &named));
    }
    left.is_some_and(|left| left.is_empty())
}

/// Plays one cluster; how much was seen of what.
fn play(seed: u64) -> Result<Counts, String> {
    let mut played = Played::new(seed);
    played.populate();
    let of_files = played.plan_of_files();
    let live = played.live_plan();
    played.compare([("the plan of files", &of_files), ("the live plan", &live)])?;
    let operator = played.start_operator();
    let decided = played.first_round(&operator);
    let expected = played.as_carried_out(&of_files, &decided);
    played.compare([("the plan", &expected), ("the controller", &decided)])?;
    played.check_limits()?;
    let counts = played.count(&of_files);
    played.run(60);
    played.check_promises(&of_files)?;
    Ok(counts)
}

fn add(counts: &mut Counts, more: Counts) {
    for (what, count) in more {
        *counts.entry(what).or_default() += count;
    }
}

/// Every other cluster, so that two are looked at at the same time; what was seen, and what is wrong.
#[expect(clippy::print_stdout, reason = "people want to see how far it is")]
fn play_half(seeds: impl Iterator<Item = u64>) -> (Counts, Vec<String>) {
    let (mut counts, mut wrong) = (Counts::new(), Vec::new());
    for seed in seeds {
        match play(seed) {
            Ok(seen) => {
                println!("seed {seed}: {seen:?}");
                add(&mut counts, seen);
            }
            Err(told) => {
                println!("{told}");
                wrong.push(told);
            }
        }
    }
    (counts, wrong)
}

#[test]
fn plan_and_the_controller_decide_alike_on_random_clusters() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let asked = number("PARITY");
    let first = number("PARITY_FROM").unwrap_or(0);
    let seeds = first..first + asked.unwrap_or(CLUSTERS);
    let other = seeds.clone();
    let other = std::thread::spawn(move || play_half(other.skip(1).step_by(2)));
    let (mut counts, mut wrong) = play_half(seeds.step_by(2));
    let (more_counts, more_wrong) = other.join().expect("what is wrong is returned");
    add(&mut counts, more_counts);
    wrong.extend(more_wrong);
    assert!(wrong.is_empty(), "{} clusters are not decided alike:\n{}", wrong.len(), wrong.join("\n"));
    for what in SEEN {
        // A few clusters that somebody asked for need not have seen all of it.
        assert!(asked.is_some() || counts.contains_key(what), "nothing was seen of: {what} ({counts:?})");
    }
}
