//! The cluster in the making, and what all parts of the generator need.

use serde_json::{Value, json};

use super::catalogue::Type;
use super::features::{Feature, Features};
use super::pools::Pool;
use super::random::Random;

pub(crate) const TEAM: &str = "example.com/team";
pub(crate) const RACK: &str = "example.com/rack";
pub(crate) const LEVEL: &str = "example.com/level";

/// A cluster in the making.
pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) features: Features,
    pub(crate) zones: Vec<String>,
    pub(crate) types: Vec<Type>,
    pub(crate) pools: Vec<Pool>,
    pub(crate) namespaces: Vec<&'static str>,
    /// Nodes that pods can be bound to.
    pub(crate) nodes: Vec<Bound>,
    /// All objects, in the order of the file.
    pub(crate) items: Vec<Value>,
    seconds: usize,
}

/// A node that takes running pods.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) name: String,
    pub(crate) zone: String,
    pub(crate) free_milli: usize,
    pub(crate) free_mi: usize,
    pub(crate) free_pods: usize,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let features = Features::draw(&mut random);
        Self {
            random,
            features,
            zones: Vec::new(),
            types: Vec::new(),
            pools: Vec::new(),
            namespaces: Vec::new(),
            nodes: Vec::new(),
            items: Vec::new(),
            seconds: 0,
        }
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// True in `percent` of a hundred cases, if the cluster has the feature.
    pub(crate) fn draws(&mut self, feature: Feature, percent: usize) -> bool {
        self.has(feature) && self.random.chance(percent)
    }

    /// A point in time after all earlier ones.
    pub(crate) fn tick(&mut self) -> String {
        self.seconds += 1;
        let (minutes, seconds) = (self.seconds / 60, self.seconds % 60);
        format!("2026-01-01T{:02}:{:02}:{seconds:02}Z", minutes / 60, minutes % 60)
    }

    /// Metadata of an object, with the time it was created.
    pub(crate) fn metadata(&mut self, namespace: Option<&str>, name: &str) -> Value {
        let created = self.tick();
        let scope = namespace.unwrap_or_default();
        let mut metadata =
            json!({"name": name, "uid": format!("{scope}/{name}"), "creationTimestamp": created});
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        metadata
    }

    /// The object as it is when somebody has deleted it and a finalizer holds it.
    pub(crate) fn delete(&mut self, object: &mut Value) {
        object["metadata"]["deletionTimestamp"] = json!(self.tick());
        object["metadata"]["finalizers"] = json!(["karpenter.sh/termination"]);
    }

    /// A condition as controllers write it.
    pub(crate) fn condition(kind: &str, status: bool) -> Value {
        let status = if status { "True" } else { "False" };
        json!({"type": kind, "status": status, "reason": kind, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    /// A label and some of its values, as pods and pools select by them.
    pub(crate) fn label(&mut self) -> (&'static str, Vec<String>) {
        let key = *self.random.weighted(&[
            (30, super::catalogue::ZONE),
            (15, super::catalogue::CAPACITY_TYPE),
            (8, "kubernetes.io/arch"),
            (4, "kubernetes.io/os"),
            (10, "node.kubernetes.io/instance-type"),
            (8, "karpenter.kwok.sh/instance-family"),
            (5, "karpenter.kwok.sh/instance-cpu"),
            (10, TEAM),
            (10, RACK),
        ]);
        (key, self.values(key))
    }

    /// All values of a label, and sometimes one that nothing has.
    pub(crate) fn values(&mut self, key: &str) -> Vec<String> {
        let mut values: Vec<String> = match key {
            super::catalogue::ZONE => self.zones.clone(),
            super::catalogue::CAPACITY_TYPE => vec!["on-demand".to_owned(), "spot".to_owned()],
            "kubernetes.io/arch" => vec!["amd64".to_owned(), "arm64".to_owned()],
            "kubernetes.io/os" => vec!["linux".to_owned(), "windows".to_owned()],
            "node.kubernetes.io/instance-type" => self.types.iter().map(|each| each.name.clone()).collect(),
            "karpenter.kwok.sh/instance-family" => ["c1", "m1", "m2", "r1", "t1"].map(str::to_owned).to_vec(),
            "karpenter.kwok.sh/instance-cpu" => ["1", "2", "4", "8", "16"].map(str::to_owned).to_vec(),
            TEAM => ["red", "green", "blue"].map(str::to_owned).to_vec(),
            RACK => ["r1", "r2", "r3"].map(str::to_owned).to_vec(),
            LEVEL => ["1", "5", "9"].map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        if key == super::catalogue::ZONE && self.random.chance(5) {
            values.push("zone-x".to_owned());
        }
        values
    }
}
