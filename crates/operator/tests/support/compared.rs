//! A whole operator, and what `karpenter plan` says of the same cluster.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use api::names::labels;
use api::provider::Provider;
use cloud::CloudProvider;
use cluster::file;
use cluster::instance_types::kwok as types;
use cluster::snapshot::InstanceTypes;
use cluster::state::Key;
use engine::solve::{Place, PlannedClaim};
use engine::text::Texts;
use kwok::Kwok;
use operator::Parts;
use operator::provisioner::plan;
use runtime::Settings;
use serde_json::{Value, json};
use testkit::World;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
pub(crate) const POOLS: &str = "/apis/karpenter.sh/v1/nodepools";
pub(crate) const PODS: &str = "/api/v1/pods";
pub(crate) const NODES: &str = "/api/v1/nodes";

/// What a plan looks at, with what `kubectl get` calls it.
const KINDS: [(&str, &str, &str); 10] = [
    (POOLS, "karpenter.sh/v1", "NodePool"),
    (CLAIMS, "karpenter.sh/v1", "NodeClaim"),
    (PODS, "v1", "Pod"),
    (NODES, "v1", "Node"),
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/apis/apps/v1/daemonsets", "apps/v1", "DaemonSet"),
    ("/apis/apps/v1/replicasets", "apps/v1", "ReplicaSet"),
    ("/apis/policy/v1/poddisruptionbudgets", "policy/v1", "PodDisruptionBudget"),
    ("/apis/storage.k8s.io/v1/storageclasses", "storage.k8s.io/v1", "StorageClass"),
    ("/apis/storage.k8s.io/v1/csinodes", "storage.k8s.io/v1", "CSINode"),
];

/// What becomes of pods that wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Decided {
    /// New nodes: pool, instance type and pods.
    pub(crate) nodes: Vec<(String, String, Vec<String>)>,
    /// Pods that stay pending, and why.
    pub(crate) pending: BTreeMap<String, String>,
}

impl Decided {
    fn new(nodes: Vec<(String, String, Vec<String>)>, pending: BTreeMap<String, String>) -> Self {
        let mut decided = Self { nodes, pending };
        decided.nodes.iter_mut().for_each(|(_, _, pods)| pods.sort());
        decided.nodes.sort();
        decided
    }

    /// Where two differ.
    pub(crate) fn difference(&self, other: &Self) -> String {
        let mut text = String::new();
        for (what, one, two) in [("planned", self, other), ("done", other, self)] {
            for node in one.nodes.iter().filter(|node| !two.nodes.contains(node)) {
                let _ = writeln!(text, "only {what}: {node:?}");
            }
            for (pod, why) in one.pending.iter().filter(|(pod, why)| two.pending.get(*pod) != Some(why)) {
                let _ = writeln!(text, "only {what}: {pod} pending, {why}");
            }
        }
        text
    }
}

/// What `kubectl get` prints of a cluster.
pub(crate) fn printed(world: &World) -> String {
    let mut items = Vec::new();
    for (path, version, kind) in KINDS {
        for mut item in world.list(path) {
            (item["apiVersion"], item["kind"]) = (version.into(), kind.into());
            items.push(item);
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// What a plan for what `kubectl get` printed says.
pub(crate) fn planned(printed: &str, settings: &Settings, now: jiff::Timestamp) -> Decided {
    let contents = file::parse("cluster", printed.as_bytes()).expect("it is a list of objects");
    assert!(contents.errors.is_empty(), "{:?}", contents.errors);
    let catalogue = types::built_in();
    let types = InstanceTypes::Same(&catalogue);
    let built = plan::snapshot_of_files(&contents.objects, Provider::Kwok, types, &[], settings, now);
    let plan = plan::plan(&built, settings);
    let snapshot = &built.snapshot;
    let name = |pod: &engine::model::PodId| snapshot.pods[pod.index()].name.to_string();
    let node = |claim: &PlannedClaim| {
        let pool = &snapshot.pools[claim.pool.index()];
        let types = &snapshot.catalogues[pool.catalogue.expect("it has types").index()].types;
        let (cheapest, _) = claim.cheapest.expect("it can be bought");
        let names = plan.universe.values(snapshot.keys.instance_type);
        let instance_type = names.name(types[cheapest].name).to_owned();
        (pool.name.to_string(), instance_type, claim.pods.iter().map(name).collect())
    };
    let texts = Texts { snapshot, universe: &plan.universe };
    let failures = plan.failures.iter().enumerate();
    let failures = failures.filter_map(|(position, failure)| {
        let pod = engine::model::PodId::at(position);
        Some((name(&pod), texts.failure(failure.as_ref()?)))
    });
    let rejected = built.ignored.iter().filter(|it| it.kind == "Pod" && it.reason.is_event());
    let rejected = rejected.map(|it| {
        (format!("{}/{}", it.namespace.as_deref().unwrap_or_default(), it.name), it.reason.to_string())
    });
    assert!(
        plan.places
            .iter()
            .flatten()
            .all(|place| !matches!(place, Place::Claim(it) if *it as usize >= plan.claims.len()))
    );
    Decided::new(plan.claims.iter().map(node).collect(), failures.chain(rejected).collect())
}

/// A whole operator at work.
pub(crate) struct Operator {
    parts: Parts,
    task: JoinHandle<()>,
}

impl Operator {
    /// Starts an operator on a cloud that is made of simulated nodes.
    pub(crate) fn start(
        world: &World,
        client: kube::Client,
        settings: &Settings,
        seed: u64,
        cloud: impl FnOnce(Kwok) -> Arc<dyn CloudProvider>,
    ) -> Self {
        let clock = world.clock();
        let parts = world.block_on(async { Parts::new(client, Provider::Kwok, clock, settings.clone()) });
        let kwok = Kwok::new(parts.api.clone(), parts.cluster.clone(), clock, seed, types::built_in());
        let (of_cloud, context) = world.block_on(async {
            (kwok.controllers(&parts.events, &parts.metrics), parts.context(cloud(kwok)))
        });
        let task = world.spawn(async move {
            let (_leads, leading) = watch::channel(true);
            operator::run(context, of_cloud, leading).await;
        });
        Self { parts, task }
    }

    /// Ends it as if it were killed.
    pub(crate) fn kill(self) {
        self.task.abort();
    }

    /// What it has decided since there were some claims: what it launched, and what it said to pods first.
    pub(crate) fn decided(&self, world: &World, before: &[Value]) -> Decided {
        let name = |claim: &Value| claim["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let known: Vec<String> = before.iter().map(name).collect();
        let state = self.parts.cluster.read();
        let node = |claim: &Value| {
            let label = |key| claim["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
            let pods = state.pods_expected_on(claim["metadata"]["name"].as_str().unwrap_or_default());
            (label(labels::NODEPOOL), label(labels::INSTANCE_TYPE), pods.map(Key::to_string).collect())
        };
        let claims = world.list(CLAIMS);
        let nodes = claims.iter().filter(|claim| !known.contains(&name(claim))).map(node).collect();
        let mut pending = BTreeMap::new();
        for event in self.parts.events.published().iter().filter(|it| &*it.reason == "FailedScheduling") {
            let why = event.message.trim_start_matches("Failed to schedule pod, ").to_owned();
            pending.entry(format!("{}/{}", event.about.namespace, event.about.name)).or_insert(why);
        }
        Decided::new(nodes, pending)
    }
}
