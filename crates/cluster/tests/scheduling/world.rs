//! A cluster for tests, and the rounds it goes through.

use api::provider::Provider;
use cluster::file;
use cluster::instance_types::InstanceType;
use cluster::snapshot::{self, Options};
use engine::options::Preferences;
use serde_json::{Value, json};

use crate::machines;
use crate::objects::{Pod, merge};
use crate::outcome::{NewNode, Outcome, Where};

/// How far a node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// There is a NodeClaim with an instance, and no Node yet.
    Launched,
    /// The kubelet has made its Node.
    Joined,
    /// The Node has the labels and taints of its NodeClaim.
    Registered,
    /// It is ready for pods.
    Initialized,
}

/// A cluster.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) types: Vec<InstanceType>,
    pub(crate) provider: Provider,
    pub(crate) options: engine::options::Options,
    /// All objects, in the order in which they came.
    pub(crate) objects: Vec<Value>,
    launched: usize,
}

impl World {
    /// An empty cluster with the usual instance types.
    pub(crate) fn new() -> Self {
        Self::with_types(machines::usual())
    }

    pub(crate) fn with_types(types: Vec<InstanceType>) -> Self {
        let options = engine::options::Options::default();
        Self { types, provider: Provider::Kwok, options, objects: Vec::new(), launched: 0 }
    }

    /// The same with a NodePool that takes whatever there is.
    pub(crate) fn with_pool() -> Self {
        Self::new().add(crate::objects::pool("default"))
    }

    pub(crate) fn ignoring_preferences(mut self) -> Self {
        self.options.preferences = Preferences::Ignore;
        self
    }

    /// Adds an object.
    pub(crate) fn add(mut self, object: impl Into<Value>) -> Self {
        self.push(object);
        self
    }

    /// Adds an object.
    pub(crate) fn push(&mut self, object: impl Into<Value>) {
        let mut object = object.into();
        if object["kind"] == "NodePool" {
            merge(&mut object["spec"]["template"]["spec"], json!({"nodeClassRef": self.node_class()}));
        }
        self.objects.push(object);
    }

    fn node_class(&self) -> Value {
        match self.provider {
            Provider::Aws => json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}),
            _ => json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}),
        }
    }

    /// Adds several pods that differ only in their name.
    pub(crate) fn pods(mut self, count: usize, pod: &Pod) -> Self {
        for number in 1..=count {
            let name = format!("{}-{number}", pod.name());
            self.push(pod.clone().with(json!({"metadata": {"name": name}})));
        }
        self
    }

    /// Decides what to launch and what goes where.
    pub(crate) fn round(&self) -> Outcome {
        let text = json!({"apiVersion": "v1", "kind": "List", "items": self.objects}).to_string();
        let contents = file::parse("cluster", text.as_bytes()).expect("the objects can be read");
        assert_eq!(contents.errors, []);
        assert!(contents.skipped.is_empty(), "skipped {}", contents.skipped);
        let options = Options::new(self.provider, &self.types);
        let now = "2026-01-02T00:00:00Z".parse().expect("a time");
        let built = snapshot::build(&contents.objects, &options, now);
        let plan = engine::solve::solve(&built.snapshot, &self.options);
        Outcome::new(&contents.objects, &built, plan, self)
    }

    /// The only new node of a round that places all pods.
    pub(crate) fn only_node(&self) -> NewNode {
        let outcome = self.round();
        outcome.expect_all_placed();
        let [node] = &outcome.nodes[..] else { panic!("one node expected, not {:#?}", outcome.nodes) };
        node.clone()
    }

    /// Launches the nodes of a round and brings them to a stage. Pods stay unbound.
    pub(crate) fn launch(&mut self, outcome: &Outcome, stage: Stage) -> Vec<String> {
        outcome.nodes.iter().map(|node| self.launch_one(node, stage)).collect()
    }

    fn launch_one(&mut self, new: &NewNode, stage: Stage) -> String {
        self.launched += 1;
        let name = format!("node-{}", self.launched);
        let claim_name = format!("claim-{}", self.launched);
        let type_ = self.types.iter().find(|type_| type_.name == new.types[0]).expect("the cheapest type");
        let strings = |resources: &units::Resources| {
            let pairs = resources.iter().map(|(name, amount)| (name.as_str().to_owned(), amount.to_string()));
            json!(pairs.collect::<std::collections::BTreeMap<_, _>>())
        };
        let mut allocatable = type_.capacity.clone();
        allocatable.subtract(&type_.overhead);
        let amounts = json!({"capacity": strings(&type_.capacity), "allocatable": strings(&allocatable)});
        let mut claim = new.claim.clone();
        merge(
            &mut claim,
            json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": {"name": claim_name, "labels": new.labels},
                "status": {"providerID": name},
            }),
        );
        merge(&mut claim["status"], amounts.clone());
        let (taints, startup) = (claim["spec"]["taints"].clone(), claim["spec"]["startupTaints"].clone());
        self.objects.push(claim);
        if stage == Stage::Launched {
            return claim_name;
        }
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "spec": {"providerID": name, "taints": []},
            "status": amounts,
        });
        merge(&mut node["metadata"]["labels"], json!(new.labels));
        if stage >= Stage::Registered {
            node["metadata"]["labels"]["karpenter.sh/registered"] = "true".into();
            if taints.is_array() {
                merge(&mut node["spec"]["taints"], taints);
            }
        }
        if stage >= Stage::Initialized {
            node["metadata"]["labels"]["karpenter.sh/initialized"] = "true".into();
        } else if stage == Stage::Registered && startup.is_array() {
            merge(&mut node["spec"]["taints"], startup);
        }
        self.objects.push(node);
        if stage == Stage::Joined { claim_name } else { name }
    }

    /// Launches and initialises the nodes of a round and binds its pods.
    pub(crate) fn settle(&mut self, outcome: &Outcome) -> Vec<String> {
        let names = self.launch(outcome, Stage::Initialized);
        for (pod, place) in &outcome.places {
            let node = match place {
                Where::New(number) => &names[*number],
                Where::Node(name) => name,
                Where::Pending(_) | Where::Ignored(_) => continue,
            };
            let object = self.object("Pod", pod);
            object["spec"]["nodeName"] = node.as_str().into();
            object["status"] = json!({"phase": "Running"});
        }
        names
    }

    /// An object, to change it.
    pub(crate) fn object(&mut self, kind: &str, name: &str) -> &mut Value {
        let found =
            self.objects.iter_mut().find(|each| each["kind"] == kind && each["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, kind: &str, name: &str) {
        self.objects.retain(|each| each["kind"] != kind || each["metadata"]["name"] != name);
    }
}
