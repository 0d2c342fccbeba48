//! A small cluster for tests: what it holds, what a round decides about it, and what it holds afterwards.
//!
//! Objects are JSON and go the way of cluster files, so conversion and decision are tested together.
//! [`World::provision`] also lets the decision happen: nodes of the cheapest offerings appear and pods are bound,
//! so that the next round starts where this one ended.

use std::collections::{BTreeMap, BTreeSet};

use api::labels::LabelSets;
use api::provider::Provider;
use api::shared::{Operator, Requirement};
use cluster::instance_types::{InstanceType, Offering};
use cluster::scheduler_config::SchedulerConfig;
use cluster::snapshot::{self, Options};
use cluster::volumes::Unsupported;
use cluster::{file, payload};
use engine::options;
use engine::solve::Place;
use engine::text::Texts;
use serde_json::{Value, json};
use units::{Quantity, Resources};

use crate::objects::{ARCH, CAPACITY_TYPE, CPUS, INSTANCE_TYPE, OS, Pod, RESERVATION, ZONE, merge};

/// A cluster in the making.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) types: Vec<InstanceType>,
    pub(crate) options: options::Options,
    pub(crate) config: SchedulerConfig,
    pub(crate) unsupported: Unsupported,
    pub(crate) provider: Provider,
    /// Everything but pods.
    objects: Vec<Value>,
    pods: Vec<Value>,
    launched: usize,
    /// How many pods got a number.
    named: usize,
}

/// What a round decided.
#[derive(Debug)]
pub(crate) struct Round {
    /// The NodeClaims to create.
    pub(crate) claims: Vec<Value>,
    /// The types of each claim, the cheapest first.
    pub(crate) types: Vec<Vec<String>>,
    /// Pods of each claim.
    pub(crate) pods: Vec<Vec<String>>,
    /// Pods that got a place: the name of a node that exists, or of the one that is made.
    pub(crate) places: BTreeMap<String, String>,
    /// Pods without a place, with the reason that users see.
    pub(crate) pending: BTreeMap<String, String>,
    /// Pods that were not looked at, with the reason that users see.
    pub(crate) ignored: BTreeMap<String, String>,
    /// What is made of the claims: labels, taints and resources of nodes.
    nodes: Vec<Value>,
    /// The type and the offering that each claim becomes.
    launches: Vec<(usize, usize)>,
}

impl World {
    /// A cluster with a pool `default` of three small machines and one for a different processor.
    pub(crate) fn new() -> Self {
        let mut world = Self::empty();
        world.types = vec![
            machine("small", 2, 2),
            machine("medium", 4, 4),
            machine("large", 16, 128),
            with_arch(machine("arm", 16, 128), "arm64"),
        ];
        world.pool("default", json!({}));
        world
    }

    /// A cluster without anything.
    pub(crate) fn empty() -> Self {
        Self {
            types: Vec::new(),
            options: options::Options::default(),
            config: SchedulerConfig::default(),
            unsupported: Unsupported::default(),
            provider: Provider::Kwok,
            objects: Vec::new(),
            pods: Vec::new(),
            launched: 0,
            named: 0,
        }
    }

    /// Adds a NodePool; `patch` goes over its spec.
    pub(crate) fn pool(&mut self, name: &str, patch: Value) {
        let (group, kind) = match self.provider {
            Provider::Aws => ("karpenter.k8s.aws", "EC2NodeClass"),
            _ => ("karpenter.kwok.sh", "KWOKNodeClass"),
        };
        let mut pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name, "uid": format!("uid-{name}")},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": group, "kind": kind, "name": "default"}, "requirements": []}}},
        });
        merge(&mut pool["spec"], patch);
        self.objects.push(pool);
    }

    /// Replaces the requirements of a pool.
    pub(crate) fn pool_requires(&mut self, name: &str, requirements: Value) {
        self.change(
            "NodePool",
            name,
            json!({"spec": {"template": {"spec": {"requirements": requirements}}}}),
        );
    }

    /// Changes an object.
    pub(crate) fn change(&mut self, kind: &str, name: &str, patch: Value) {
        let mut all = self.objects.iter_mut().chain(&mut self.pods);
        let found = all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        merge(found.expect("the object exists"), patch);
    }

    /// Adds an object that has no method of its own.
    pub(crate) fn add(&mut self, object: Value) {
        self.objects.push(object);
    }

    /// Adds a node that nobody here manages, with plenty of room for ten pods.
    pub(crate) fn node(&mut self, name: &str, labels: Value) {
        let room = json!({"cpu": "8", "memory": "16Gi", "pods": "10"});
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"providerID": format!("id-{name}")},
            "status": {"capacity": room, "allocatable": room},
        });
        merge(&mut node["metadata"]["labels"], labels);
        self.objects.push(node);
    }

    /// Adds a pod that waits.
    pub(crate) fn pod(&mut self, pod: Pod) {
        assert!(pod.0["metadata"]["name"].is_string(), "a pod needs a name");
        self.pods.push(pod.0);
    }

    /// Adds several pods that wait, with names that begin alike, and returns the names.
    pub(crate) fn pods(&mut self, count: usize, name: &str, pod: &Pod) -> Vec<String> {
        let first = self.named;
        self.named += count;
        let names: Vec<String> = (0..count).map(|number| format!("{name}-{:03}", first + number)).collect();
        for name in &names {
            self.pod(pod.clone().name(name));
        }
        names
    }

    /// Adds a pod that runs on a node.
    pub(crate) fn running(&mut self, pod: Pod, node: &str) {
        let phase = match pod.0["status"]["phase"].as_str() {
            Some("Pending") | None => "Running".to_owned(),
            Some(other) => other.to_owned(),
        };
        let condition = json!([{"type": "PodScheduled", "status": "True"}]);
        let status = json!({"phase": phase, "conditions": condition});
        self.pod(pod.spec(json!({"nodeName": node})).with(json!({"status": status})));
    }

    /// Deletes pods.
    pub(crate) fn delete_pods(&mut self, which: impl Fn(&Value) -> bool) {
        self.pods.retain(|pod| !which(pod));
    }

    /// Deletes pods that wait.
    pub(crate) fn delete_pending(&mut self) {
        self.delete_pods(|pod| !pod["spec"]["nodeName"].is_string());
    }

    /// Decides, without consequences.
    pub(crate) fn plan(&self) -> Round {
        let items: Vec<&Value> = self.objects.iter().chain(&self.pods).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let contents = file::parse("world", list.as_bytes()).expect("the cluster can be read");
        assert!(contents.errors.is_empty(), "{:?}", contents.errors);
        let mut options = Options::new(self.provider, &self.types);
        options.scheduler_config = self.config.clone();
        options.unsupported_volumes = self.unsupported.clone();
        let now = "2026-01-02T00:00:00Z".parse().expect("a point in time");
        let built = snapshot::build(&contents.objects, &options, now);
        let plan = engine::solve::solve(&built.snapshot, &self.options);
        let texts = Texts { snapshot: &built.snapshot, universe: &plan.universe };
        let short = |name: &str| name.strip_prefix("default/").unwrap_or(name).to_owned();
        let mut round = Round {
            claims: Vec::new(),
            types: Vec::new(),
            pods: Vec::new(),
            places: BTreeMap::new(),
            pending: BTreeMap::new(),
            ignored: BTreeMap::new(),
            nodes: Vec::new(),
            launches: Vec::new(),
        };
        for ignored in built.ignored.iter().filter(|ignored| ignored.kind == "Pod") {
            if ignored.reason.is_rejection() {
                let name = format!("{}/{}", ignored.namespace.as_deref().unwrap_or_default(), ignored.name);
                round.ignored.insert(short(&name), ignored.reason.to_string());
            }
        }
        for (pod, failure) in built.snapshot.pods.iter().zip(&plan.failures) {
            if let Some(failure) = failure {
                round.pending.insert(short(&pod.name), texts.failure(failure));
            }
        }
        for (pod, place) in built.snapshot.pods.iter().zip(&plan.places) {
            let node = match place {
                None => continue,
                Some(Place::Node(node)) => built.snapshot.nodes[node.index()].name.to_string(),
                Some(Place::Claim(claim)) => self.node_name(*claim as usize),
            };
            round.places.insert(short(&pod.name), node);
        }
        let sets = LabelSets::for_provider(self.provider);
        let mut universe = plan.universe.clone();
        for (position, claim) in plan.claims.iter().enumerate() {
            let name = &*built.snapshot.pools[claim.pool.index()].name;
            let mut pools = contents.objects.node_pools.iter();
            let pool =
                pools.find(|pool| pool.metadata.name.as_deref() == Some(name)).expect("the pool exists");
            let written = payload::node_claim(&built.snapshot, &mut universe, claim, pool, &sets);
            let written = serde_json::to_value(written).expect("a NodeClaim is JSON");
            let launch = claim.cheapest.expect("a claim has an offering");
            round.nodes.push(self.launched(position, &written, launch));
            round.launches.push(launch);
            round.types.push(claim.types.iter().map(|type_| self.types[*type_].name.clone()).collect());
            let pods = claim.pods.iter().map(|pod| short(&built.snapshot.pods[pod.index()].name));
            round.pods.push(pods.collect());
            round.claims.push(written);
        }
        round
    }

    fn node_name(&self, claim: usize) -> String {
        format!("node-{:03}", self.launched + claim)
    }

    /// The node that a claim becomes: its cheapest offering.
    fn launched(&self, position: usize, claim: &Value, launch: (usize, usize)) -> Value {
        let (type_, offering) = launch;
        let (type_, name) = (&self.types[type_], self.node_name(position));
        let mut labels = claim["metadata"]["labels"].clone();
        let fixed = type_.requirements.iter().chain(&type_.offerings[offering].requirements);
        for requirement in fixed.filter(|requirement| requirement.operator == Operator::In) {
            merge(&mut labels, json!({&requirement.key: requirement.values[0]}));
        }
        let own = json!({
            "kubernetes.io/hostname": name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"});
        merge(&mut labels, own);
        let amounts = |resources: &Resources| -> Value {
            resources.iter().map(|(name, amount)| (name.as_str(), amount.to_string())).collect()
        };
        let mut allocatable = type_.capacity.clone();
        allocatable.subtract(&type_.overhead);
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"providerID": format!("id-{name}"), "taints": claim["spec"]["taints"]},
            "status": {"capacity": amounts(&type_.capacity), "allocatable": amounts(&allocatable)},
        })
    }

    /// Decides, and lets it happen.
    pub(crate) fn provision(&mut self) -> Round {
        let round = self.plan();
        self.launched += round.nodes.len();
        self.objects.extend(round.nodes.iter().cloned());
        for (type_, offering) in &round.launches {
            self.use_reservation(*type_, *offering);
        }
        for pod in &mut self.pods {
            if let Some(node) = round.places.get(&full_name(pod)) {
                let condition = json!([{"type": "PodScheduled", "status": "True"}]);
                let bound = json!({"spec": {"nodeName": node}, "status": {"phase": "Running", "conditions": condition}});
                merge(pod, bound);
            }
        }
        round
    }

    /// Takes a launch from the reservation of an offering, wherever else it is offered; a full one stays in sight.
    fn use_reservation(&mut self, type_: usize, offering: usize) {
        let id = reservation(&self.types[type_].offerings[offering]);
        let all = self.types.iter_mut().flat_map(|type_| &mut type_.offerings);
        for other in all.filter(|other| id.is_some() && reservation(other) == id) {
            other.reservation_capacity -= 1;
        }
    }

    /// How many pods of an app run in each domain of a label, most first; pods that are done or going do not count.
    pub(crate) fn skew(&self, key: &str, app: &str) -> Vec<usize> {
        let mut counts = self.domains(key, app).into_values().collect::<Vec<_>>();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    /// How many pods of an app run in each domain of a label.
    pub(crate) fn domains(&self, key: &str, app: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for pod in &self.pods {
            let counted = pod["metadata"]["labels"]["app"] == app
                && pod["metadata"]["namespace"] == "default"
                && pod["metadata"]["deletionTimestamp"].is_null()
                && pod["status"]["phase"] == "Running";
            let node = pod["spec"]["nodeName"].as_str().filter(|_| counted);
            if let Some(domain) = node.and_then(|node| self.label(node, key)) {
                *counts.entry(domain).or_default() += 1;
            }
        }
        counts
    }

    /// The pods that run in a domain of a label.
    pub(crate) fn pods_in(&self, key: &str, domain: &str) -> Vec<String> {
        let on = |pod: &&Value| {
            let node = pod["spec"]["nodeName"].as_str();
            node.and_then(|node| self.label(node, key)).is_some_and(|found| found == domain)
        };
        self.pods.iter().filter(on).map(full_name).collect()
    }

    /// A label of a node.
    pub(crate) fn label(&self, node: &str, key: &str) -> Option<String> {
        let mut objects = self.objects.iter();
        let node = objects.find(|object| object["kind"] == "Node" && object["metadata"]["name"] == node)?;
        node["metadata"]["labels"][key].as_str().map(str::to_owned)
    }

    /// The node of a pod.
    #[track_caller]
    pub(crate) fn node_of(&self, pod: &str) -> String {
        let found = self.pods.iter().find(|each| full_name(each) == pod).expect("the pod exists");
        found["spec"]["nodeName"].as_str().expect("the pod has a node").to_owned()
    }
}

/// The name of a pod; with its namespace if that is not `default`.
fn full_name(pod: &Value) -> String {
    let (namespace, name) = (&pod["metadata"]["namespace"], &pod["metadata"]["name"]);
    let (namespace, name) = (namespace.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
    if namespace == "default" { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl Round {
    /// There is a place for every pod.
    #[track_caller]
    pub(crate) fn expect_all_placed(&self) -> &Self {
        assert!(self.pending.is_empty() && self.ignored.is_empty(), "{:?} {:?}", self.pending, self.ignored);
        self
    }

    /// So many nodes are made.
    #[track_caller]
    pub(crate) fn expect_nodes(&self, count: usize) -> &Self {
        assert_eq!(self.claims.len(), count, "pods {:?}, pending {:?}", self.pods, self.pending);
        self
    }

    /// So many pods get a place.
    #[track_caller]
    pub(crate) fn expect_placed(&self, count: usize) -> &Self {
        assert_eq!(self.places.len(), count, "pending {:?}, ignored {:?}", self.pending, self.ignored);
        self
    }

    /// A pod stays pending for a reason that contains a text.
    #[track_caller]
    pub(crate) fn expect_pending(&self, pod: &str, text: &str) -> &Self {
        let reason = self.pending.get(pod).unwrap_or_else(|| panic!("{pod} is not pending: {self:?}"));
        assert!(reason.contains(text), "{reason}");
        self
    }

    /// A pod is not looked at for a reason that contains a text.
    #[track_caller]
    pub(crate) fn expect_ignored(&self, pod: &str, text: &str) -> &Self {
        let reason = self.ignored.get(pod).unwrap_or_else(|| panic!("{pod} is not ignored: {self:?}"));
        assert!(reason.contains(text), "{reason}");
        self
    }

    /// A pod gets a place.
    #[track_caller]
    pub(crate) fn expect_place(&self, pod: &str) -> String {
        self.places.get(pod).unwrap_or_else(|| panic!("{pod} has no place: {self:?}")).clone()
    }

    /// How many pods each new node has, most first.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.pods.iter().map(Vec::len).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes
    }

    /// The requirements of a claim on a label.
    pub(crate) fn requirement(&self, claim: usize, key: &str) -> Vec<&Value> {
        let all = self.claims[claim]["spec"]["requirements"].as_array().expect("requirements");
        all.iter().filter(|requirement| requirement["key"] == key).collect()
    }

    /// The values of the one requirement of a claim on a label.
    #[track_caller]
    pub(crate) fn values(&self, claim: usize, key: &str) -> Vec<&str> {
        let found = self.requirement(claim, key);
        assert_eq!(found.len(), 1, "{found:?}");
        let values = found[0]["values"].as_array().expect("values");
        values.iter().map(|value| value.as_str().expect("text")).collect()
    }

    /// A label of the node that a claim becomes.
    pub(crate) fn node_label(&self, claim: usize, key: &str) -> &str {
        self.nodes[claim]["metadata"]["labels"][key].as_str().unwrap_or_default()
    }
}

fn reservation(offering: &Offering) -> Option<String> {
    let requirement = offering.requirements.iter().find(|requirement| requirement.key == RESERVATION)?;
    Some(requirement.values[0].clone())
}

pub(crate) fn quantity(text: &str) -> Quantity {
    text.parse().expect("a quantity")
}

pub(crate) fn one_of(key: &str, values: &[&str]) -> Requirement {
    let values = values.iter().map(|value| (*value).to_owned()).collect();
    Requirement { key: key.to_owned(), operator: Operator::In, values, min_values: None }
}

/// A way to buy a machine.
pub(crate) fn offering(zone: &str, capacity_type: &str, price: f64) -> Offering {
    Offering {
        requirements: vec![one_of(ZONE, &[zone]), one_of(CAPACITY_TYPE, &[capacity_type])],
        price,
        available: true,
        ..Offering::default()
    }
}

/// A machine with room for five pods. There is spot capacity in two zones, and on demand it is in all three.
pub(crate) fn machine(name: &str, cpu: u32, memory: u32) -> InstanceType {
    let price = 0.1 * f64::from(cpu) + 0.01 * f64::from(memory);
    let spot = ["zone-1", "zone-2"].map(|zone| offering(zone, "spot", price * 0.7));
    let on_demand = ["zone-1", "zone-2", "zone-3"].map(|zone| offering(zone, "on-demand", price));
    let capacity = [("cpu", cpu.to_string()), ("memory", format!("{memory}Gi")), ("pods", "5".to_owned())];
    let overhead = [("cpu", quantity("100m")), ("memory", quantity("10Mi"))];
    with_offerings(
        InstanceType {
            name: name.to_owned(),
            requirements: vec![
                one_of(INSTANCE_TYPE, &[name]),
                one_of(ARCH, &["amd64"]),
                one_of(OS, &["linux"]),
                one_of(CPUS, &[&cpu.to_string()]),
            ],
            capacity: capacity.iter().map(|(name, amount)| (*name, quantity(amount))).collect(),
            overhead: overhead.into_iter().collect(),
            ..InstanceType::default()
        },
        spot.into_iter().chain(on_demand).collect(),
    )
}

/// The machine with other offerings, whose zones and capacity types become its own.
pub(crate) fn with_offerings(mut type_: InstanceType, offerings: Vec<Offering>) -> InstanceType {
    type_.offerings = offerings;
    for key in [ZONE, CAPACITY_TYPE] {
        let offered = type_.offerings.iter().flat_map(|offering| &offering.requirements);
        let values: BTreeSet<String> =
            offered.filter(|each| each.key == key).flat_map(|each| each.values.clone()).collect();
        type_.requirements.retain(|requirement| requirement.key != key);
        let values = values.into_iter().collect();
        type_.requirements.push(Requirement {
            key: key.to_owned(),
            operator: Operator::In,
            values,
            min_values: None,
        });
    }
    type_
}

pub(crate) fn with_arch(mut type_: InstanceType, arch: &str) -> InstanceType {
    type_.requirements.retain(|requirement| requirement.key != ARCH);
    type_.requirements.push(one_of(ARCH, &[arch]));
    type_
}

/// The machine with another amount of a resource.
pub(crate) fn with_resource(mut type_: InstanceType, resource: &str, amount: &str) -> InstanceType {
    type_.capacity.set(resource, quantity(amount));
    type_
}
