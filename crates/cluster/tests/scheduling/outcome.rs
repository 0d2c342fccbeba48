//! What came of a round, in the words of the tests.

use std::collections::BTreeMap;

use api::labels::LabelSets;
use cluster::instance_types::InstanceType;
use cluster::objects::Objects;
use cluster::payload;
use cluster::snapshot::Built;
use engine::solve::{Place, Plan};
use engine::text::Texts;
use serde_json::Value;

use crate::objects::key;
use crate::world::World;

/// Where a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// On one of the new nodes.
    New(usize),
    /// On a node that exists or is on its way.
    Node(String),
    /// Nowhere, for this reason.
    Pending(String),
    /// It was not even tried, for this reason.
    Ignored(String),
}

/// A node to be launched.
#[derive(Clone, Debug)]
pub(crate) struct NewNode {
    pub(crate) pool: String,
    /// Types it may become, the cheapest first.
    pub(crate) types: Vec<String>,
    pub(crate) price: f64,
    pub(crate) pods: Vec<String>,
    /// The NodeClaim that is created for it.
    pub(crate) claim: Value,
    /// The labels it will have if the cheapest offering is launched.
    pub(crate) labels: BTreeMap<String, String>,
}

impl NewNode {
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(key(name)).map(String::as_str)
    }

    /// The values that the claim leaves for a label.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let requirements = self.claim["spec"]["requirements"].as_array().expect("requirements");
        let own = requirements.iter().filter(|each| each["key"] == key(name));
        own.flat_map(|each| each["values"].as_array().into_iter().flatten().filter_map(Value::as_str))
            .collect()
    }

    /// What the claim must have of a resource.
    pub(crate) fn request(&self, resource: &str) -> Option<&str> {
        self.claim["spec"]["resources"]["requests"][resource].as_str()
    }
}

/// What came of a round.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) nodes: Vec<NewNode>,
    /// By pod.
    pub(crate) places: BTreeMap<String, Where>,
    /// Everything that was left out, with the reason.
    pub(crate) ignored: Vec<String>,
}

impl Outcome {
    pub(crate) fn new(objects: &Objects, built: &Built, mut plan: Plan, world: &World) -> Self {
        let snapshot = &built.snapshot;
        let name = |position: usize| {
            let name = &snapshot.pods[position].name;
            name.split_once('/').map_or(&**name, |(_, name)| name).to_owned()
        };
        let texts = Texts { snapshot, universe: &plan.universe };
        let mut places = BTreeMap::new();
        for (position, place) in plan.places.iter().enumerate() {
            let place = match (place, &plan.failures[position]) {
                (Some(Place::Node(node)), None) => Where::Node(snapshot.nodes[node.index()].name.to_string()),
                (Some(Place::Claim(claim)), None) => Where::New(*claim as usize),
                (None, Some(failure)) => Where::Pending(texts.failure(failure)),
                both => panic!("a pod is placed or it fails, not {both:?}"),
            };
            places.insert(name(position), place);
        }
        for ignored in built.ignored.iter().filter(|ignored| ignored.kind == "Pod") {
            places.insert(ignored.name.to_string(), Where::Ignored(ignored.reason.to_string()));
        }
        let sets = LabelSets::for_provider(world.provider);
        let mut nodes = Vec::new();
        for planned in &plan.claims {
            let pool = &snapshot.pools[planned.pool.index()].name;
            let object =
                objects.node_pools.iter().find(|object| object.metadata.name.as_deref() == Some(pool));
            let object = object.expect("the claim's pool");
            let claim = payload::node_claim(snapshot, &mut plan.universe, planned, object, &sets);
            let claim = serde_json::to_value(claim).expect("a NodeClaim is JSON");
            let types = planned.types.iter().map(|type_| world.types[*type_].name.clone()).collect();
            let (cheapest, offering) = planned.cheapest.expect("an offering");
            let labels = labels(&claim, &world.types[cheapest], offering);
            let pods = planned.pods.iter().map(|pod| name(pod.index())).collect();
            nodes.push(NewNode { pool: pool.to_string(), types, price: planned.price, pods, claim, labels });
        }
        Self { nodes, places, ignored: built.ignored.iter().map(ToString::to_string).collect() }
    }

    fn place(&self, pod: &str) -> &Where {
        self.places.get(pod).unwrap_or_else(|| panic!("no pod {pod} in {:?}", self.places))
    }

    /// The new node that a pod goes to.
    #[track_caller]
    pub(crate) fn new_node(&self, pod: &str) -> &NewNode {
        match self.place(pod) {
            Where::New(number) => &self.nodes[*number],
            other => panic!("{pod} should get a new node: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn expect_nodes(&self, count: usize) -> &Self {
        assert_eq!(self.nodes.len(), count, "{:#?}", self.places);
        self
    }

    #[track_caller]
    pub(crate) fn expect_all_placed(&self) -> &Self {
        for (pod, place) in &self.places {
            assert!(matches!(place, Where::New(_) | Where::Node(_)), "{pod}: {place:?}");
        }
        self
    }

    /// The pod goes to a node that exists or is on its way.
    #[track_caller]
    pub(crate) fn expect_on(&self, pod: &str, node: &str) -> &Self {
        assert_eq!(self.place(pod), &Where::Node(node.to_owned()), "{pod}");
        self
    }

    /// The pod was tried and failed, for a reason that contains the text.
    #[track_caller]
    pub(crate) fn expect_pending(&self, pod: &str, text: &str) -> &Self {
        match self.place(pod) {
            Where::Pending(reason) => assert!(reason.contains(text), "{pod}: {reason}"),
            other => panic!("{pod} should stay pending: {other:?}"),
        }
        self
    }

    /// The pod goes nowhere, whatever the reason.
    #[track_caller]
    pub(crate) fn expect_unplaced(&self, pod: &str) -> &Self {
        let place = self.place(pod);
        assert!(matches!(place, Where::Pending(_) | Where::Ignored(_)), "{pod}: {place:?}");
        self
    }

    /// The pod was not tried, for a reason that contains the text.
    #[track_caller]
    pub(crate) fn expect_ignored(&self, pod: &str, text: &str) -> &Self {
        match self.place(pod) {
            Where::Ignored(reason) => assert!(reason.contains(text), "{pod}: {reason}"),
            other => panic!("{pod} should be ignored: {other:?}"),
        }
        self
    }

    /// How many pods the new nodes get, the most first.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.nodes.iter().map(|node| node.pods.len()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes
    }

    pub(crate) fn pending(&self) -> usize {
        self.places.values().filter(|place| matches!(place, Where::Pending(_))).count()
    }
}

/// Labels of the node if an offering is launched, as a cloud would set them: of several values that a type has the
/// first one that the claim allows.
fn labels(claim: &Value, type_: &InstanceType, offering: usize) -> BTreeMap<String, String> {
    let allowed = |key: &str, value: &str| {
        let requirements = claim["spec"]["requirements"].as_array().into_iter().flatten();
        let own = requirements.into_iter().filter(|each| each["key"] == key && each["operator"] == "In");
        own.into_iter().all(|each| each["values"].as_array().into_iter().flatten().any(|one| *one == value))
    };
    let mut labels = BTreeMap::new();
    for requirement in type_.requirements.iter().chain(&type_.offerings[offering].requirements) {
        if let Some(value) = requirement.values.iter().find(|value| allowed(&requirement.key, value)) {
            labels.insert(requirement.key.clone(), value.clone());
        }
    }
    let own = claim["metadata"]["labels"].as_object().into_iter().flatten();
    labels.extend(own.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())));
    labels
}
