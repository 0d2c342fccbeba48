//! A cluster that plans with Azure's instance types and launches what a ranking chooses.

use std::collections::BTreeMap;

use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use azure::ranking::{self, Request};
use cluster::instance_types::{InstanceType, Offering, Wanted, single};
use cluster::snapshot::{self, Options};
use cluster::{file, payload};
use engine::solve::Place;
use engine::text::Texts;
use serde_json::{Map, Value, json};
use units::Resources;

use crate::support::{SETS, World};

/// NodePools, nodes in the making and pods.
#[derive(Clone, Default)]
pub(crate) struct Cluster {
    objects: Vec<Value>,
    pods: Vec<Value>,
}

/// What was planned.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Claims with their pods.
    pub(crate) claims: Vec<(NodeClaim, Vec<String>)>,
    /// Pods that got a place, on old nodes or new ones.
    pub(crate) placed: usize,
    /// Pods without a place, with the reason.
    pub(crate) pending: BTreeMap<String, String>,
}

impl Cluster {
    /// A cluster with one NodePool.
    pub(crate) fn new(requirements: Value) -> Self {
        Self::default().pool("default", 1, requirements)
    }

    /// Adds a NodePool.
    pub(crate) fn pool(mut self, name: &str, weight: u32, requirements: Value) -> Self {
        self.objects.push(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": name, "uid": format!("uid-{name}")},
            "spec": {"weight": weight, "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "default"},
                "requirements": requirements,
            }}},
        }));
        self
    }

    /// Adds a pod that waits; `spec` goes over its own.
    pub(crate) fn pod(mut self, name: &str, cpu: &str, spec: Value) -> Self {
        let mut all = json!({
            "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        });
        let fields = all.as_object_mut().unwrap();
        fields.extend(spec.as_object().cloned().unwrap_or_default());
        self.pods.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "default", "name": name, "labels": {"app": "web"}},
            "spec": all,
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
        }));
        self
    }

    /// Forgets pods that have a place.
    pub(crate) fn without_pods(&mut self, names: &[String]) {
        self.pods.retain(|pod| !names.iter().any(|name| pod["metadata"]["name"] == name.as_str()));
    }

    /// Decides.
    pub(crate) fn plan(&self, types: &[InstanceType]) -> Plan {
        let items: Vec<&Value> = self.objects.iter().chain(&self.pods).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let contents = file::parse("world", list.as_bytes()).unwrap();
        assert!(contents.errors.is_empty(), "{:?}", contents.errors);
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let built = snapshot::build(&contents.objects, &Options::new(Provider::Azure, types), now);
        let plan = engine::solve::solve(&built.snapshot, &engine::options::Options::default());
        let texts = Texts { snapshot: &built.snapshot, universe: &plan.universe };
        let short = |name: &str| name.strip_prefix("default/").unwrap_or(name).to_owned();
        let pods = || built.snapshot.pods.iter();
        let pending = pods()
            .zip(&plan.failures)
            .filter_map(|(pod, failure)| Some((short(&pod.name), texts.failure(failure.as_ref()?))));
        let pending = pending.collect();
        let is_placed = |place: &&Option<Place>| place.is_some();
        let mut universe = plan.universe.clone();
        let claims = plan.claims.iter().map(|claim| {
            let name = &*built.snapshot.pools[claim.pool.index()].name;
            let mut pools = contents.objects.node_pools.iter();
            let pool = pools.find(|pool| pool.metadata.name.as_deref() == Some(name)).unwrap();
            let written = payload::node_claim(&built.snapshot, &mut universe, claim, pool, &SETS);
            let pods = claim.pods.iter().map(|pod| short(&built.snapshot.pods[pod.index()].name));
            (written, pods.collect())
        });
        Plan { claims: claims.collect(), placed: plan.places.iter().filter(is_placed).count(), pending }
    }

    /// Adds a node in the making: Azure has started it, and its kubelet has not been heard of.
    pub(crate) fn launched(&mut self, claim: &NodeClaim, each: &InstanceType, offering: &Offering) {
        let name = format!("claim-{}", self.objects.len());
        let mut object = serde_json::to_value(claim).unwrap();
        let mut labels: Map<String, Value> =
            object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        let requirements = each.requirements.iter().chain(&offering.requirements);
        let asked: Vec<_> = claim.spec.requirements.clone();
        for requirement in requirements.chain(&asked) {
            if let Some(value) = single(requirement) {
                labels.insert(requirement.key.clone(), json!(value));
            }
        }
        object["apiVersion"] = json!("karpenter.sh/v1");
        object["kind"] = json!("NodeClaim");
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!(name);
        object["metadata"]["labels"] = Value::Object(labels);
        let amounts = |resources: &Resources| -> Value {
            resources.iter().map(|(name, amount)| (name.as_str(), amount.to_string())).collect()
        };
        object["status"] = json!({
            "providerID": format!("azure:///{name}"), "nodeName": "",
            "capacity": amounts(&each.capacity), "allocatable": amounts(&each.allocatable()),
            "conditions": [{"type": "Launched", "status": "True", "reason": "Launched", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        });
        self.objects.push(object);
    }
}

impl World {
    /// The machine that a claim becomes.
    pub(crate) fn choose<'a>(
        &self,
        types: &'a [InstanceType],
        claim: &NodeClaim,
        seed: u64,
    ) -> Result<(&'a InstanceType, &'a Offering), cloud::Error> {
        let mut wanted = Wanted::new(&claim.spec.requirements, &SETS).unwrap();
        let requests = claim.spec.resources.requests.iter().map(|(name, amount)| (name.as_str(), *amount));
        let requests: Resources = requests.collect();
        let mut request = Request { wanted: &mut wanted, requests: &requests, seed };
        ranking::rank(types, &mut request, &self.catalogue, &self.market()).best()
    }
}
