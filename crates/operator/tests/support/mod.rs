//! A cluster in virtual time with the controllers of nodes and claims at work, and a cloud in memory.
#![allow(dead_code, reason = "each file of tests uses some of it")]
#![allow(unreachable_pub, reason = "a module of several test programs")]

mod cloud;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use ::cloud::CloudProvider;
use api::provider::Provider;
use cluster::state::State;
use embedded::faults::{Faulty, Rule};
use operator::Context;
use operator::node_pool::registration_health::Registrations;
use operator::provisioner::Launches;
use runtime::events::Recorder;
use runtime::limit::Limiter;
use runtime::metrics::Registry;
use runtime::{Api, Cluster, Settings};
use serde_json::{Value, json};
use testkit::World;
use tokio::sync::watch;

pub use cloud::{FakeCloud, FakeHook};

/// A NodeClass that is ready.
const NODE_CLASS: &str = "
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
spec: {}
status:
  conditions: [{type: Ready, status: 'True', reason: Ready, message: '', lastTransitionTime: '2026-01-05T09:00:00Z'}]
";

/// A NodePool.
const NODE_POOL: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
";

/// Puts one value over another, as a merge patch does but for nulls.
pub fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (into, from) => *into = from.clone(),
    }
}

/// A cluster with our controllers.
pub struct Operated {
    world: World,
    pub cloud: Arc<FakeCloud>,
    pub context: Context,
    /// What goes wrong between the controllers and the API server.
    pub faults: Faulty,
    leads: watch::Sender<bool>,
}

impl Deref for Operated {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Operated {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

impl Operated {
    /// A cluster with our kinds, a NodeClass and a NodePool, and our controllers at work.
    pub fn start() -> Self {
        Self::with(World::new(1), FakeCloud::default())
    }

    /// As [`Operated::start`], in a world and with a cloud.
    pub fn with(world: World, cloud: FakeCloud) -> Self {
        Self::with_settings(world, cloud, Settings::default())
    }

    /// As [`Operated::start`], with faults from the beginning.
    pub fn faulty(rules: Vec<Rule>) -> Self {
        Self::all_with(World::new(1), FakeCloud::default(), Settings::default(), rules)
    }

    /// As [`Operated::with`], with settings.
    pub fn with_settings(world: World, cloud: FakeCloud, settings: Settings) -> Self {
        Self::all_with(world, cloud, settings, Vec::new())
    }

    fn all_with(world: World, cloud: FakeCloud, settings: Settings, rules: Vec<Rule>) -> Self {
        for crd in api::crds::documents(Provider::Kwok) {
            world.apply(&crd.document.to_string());
        }
        world.apply(NODE_CLASS);
        world.apply(NODE_POOL);
        let faults = world.block_on(async { Faulty::new(world.server().service(), 1) });
        faults.set_rules(rules);
        let client = world.block_on(async { kube::Client::new(faults.clone(), "default") });
        let cloud = Arc::new(cloud);
        let context = world.block_on(async {
            let awaited = State::awaiting(Provider::Kwok, &settings.gates.kinds());
            let cluster = Cluster::new(awaited, world.clock());
            let limiter = Arc::new(Limiter::new(200.0, 300));
            Context {
                api: Api::new(client.clone(), cluster.clone(), Provider::Kwok, limiter),
                cluster,
                cloud: Arc::clone(&cloud) as Arc<dyn CloudProvider>,
                clock: world.clock(),
                settings: Arc::new(settings),
                events: Recorder::new(Provider::Kwok),
                metrics: Registry::for_provider(Provider::Kwok),
                registrations: Registrations::default(),
                launches: Launches::default(),
                overlays: None,
            }
        });
        cloud.join(context.api.clone());
        for kind in context.settings.gates.kinds() {
            world.spawn(runtime::watch::watch(client.clone(), context.cluster.clone(), kind));
        }
        let leads = watch::Sender::new(false);
        let mut operated = Self { world, cloud, context, faults, leads };
        operated.lead();
        operated
    }

    /// Starts the controllers, for the first time or as another process would.
    pub fn lead(&mut self) {
        self.leads.send_replace(false);
        self.leads = watch::Sender::new(true);
        let context = self.context.clone();
        self.world.block_on(async { context.cluster.listed().await });
        let controllers = self.world.block_on(async {
            let mut controllers = operator::node_claim::controllers(&context);
            controllers.extend(operator::node::controllers(&context));
            controllers
        });
        for controller in controllers {
            self.world.spawn(controller.run(self.leads.subscribe(), self.context.metrics.clone()));
        }
    }

    /// Creates a claim of the pool, with changes.
    #[track_caller]
    pub fn add_claim(&self, name: &str, change: &Value) -> Value {
        let pool = self.ours("nodepools/pool").expect("the pool is there");
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": name,
                "labels": {"karpenter.sh/nodepool": "pool", "karpenter.kwok.sh/kwoknodeclass": "default"},
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "pool",
                    "uid": pool["metadata"]["uid"], "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "resources": {"requests": {"cpu": "1"}},
            },
        });
        merge(&mut claim, change);
        self.world.apply(&claim.to_string());
        self.claim(name)
    }

    /// Creates a claim that has become a node.
    #[track_caller]
    pub fn add_node(&mut self, name: &str, change: &Value) -> Value {
        self.add_claim(name, change);
        self.until_initialized(name);
        self.claim(name)
    }

    /// Lets time pass until a claim has become a node.
    #[track_caller]
    pub fn until_initialized(&mut self, name: &str) {
        self.until(&format!("{name} is initialized"), 60, |world| {
            world.condition(name, "Initialized") == "True"
        });
    }

    /// Lets time pass until `holds`, at most so many seconds.
    #[track_caller]
    pub fn until(&mut self, what: &str, seconds: u64, holds: impl Fn(&Self) -> bool) {
        for _ in 0..seconds * 2 {
            if holds(self) {
                return;
            }
            self.world.run_for(Duration::from_millis(500));
        }
        let claims: Vec<String> = self
            .world
            .list("/apis/karpenter.sh/v1/nodeclaims")
            .iter()
            .map(|claim| format!("{}: {}", claim["metadata"]["name"], claim["status"]["conditions"]))
            .collect();
        assert!(holds(self), "still not: {what}\n{}\n{}", claims.join("\n"), self.world.describe());
    }

    /// Lets seconds pass.
    pub fn pass(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// An object of ours, such as `nodepools/pool`.
    pub fn ours(&self, path: &str) -> Option<Value> {
        self.world.get(&format!("/apis/karpenter.sh/v1/{path}"))
    }

    /// A claim.
    #[track_caller]
    pub fn claim(&self, name: &str) -> Value {
        self.ours(&format!("nodeclaims/{name}")).unwrap_or_else(|| panic!("claim {name} is gone"))
    }

    /// Whether there is no such claim any more.
    pub fn is_claim_gone(&self, name: &str) -> bool {
        self.ours(&format!("nodeclaims/{name}")).is_none()
    }

    /// Deletes a claim.
    #[track_caller]
    pub fn delete_claim(&self, name: &str) {
        self.world.delete(&format!("/apis/karpenter.sh/v1/nodeclaims/{name}"));
    }

    /// The node of a name, or null.
    pub fn node(&self, name: &str) -> Value {
        self.world.get(&format!("/api/v1/nodes/{name}")).unwrap_or_default()
    }

    /// A node that nothing of ours has made, with changes.
    #[track_caller]
    pub fn add_bare_node(&self, name: &str, change: &Value) {
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "finalizers": ["karpenter.sh/termination"],
                "labels": {"karpenter.kwok.sh/kwoknodeclass": "default"},
            },
            "spec": {"providerID": format!("fake://{name}")},
            "status": {"capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
        });
        merge(&mut node, change);
        self.world.apply(&node.to_string());
    }

    /// Creates a pod, on a node unless it is empty, with changes.
    #[track_caller]
    pub fn add_pod(&self, name: &str, node: &str, change: &Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        if !node.is_empty() {
            pod["spec"]["nodeName"] = node.into();
        }
        merge(&mut pod, change);
        self.world.apply(&pod.to_string());
    }

    /// A pod, or null.
    pub fn pod(&self, name: &str) -> Value {
        self.world.get(&format!("/api/v1/namespaces/default/pods/{name}")).unwrap_or_default()
    }

    /// Whether a pod is there and has not been told to stop.
    pub fn stays(&self, name: &str) -> bool {
        let pod = self.pod(name);
        !pod.is_null() && pod["metadata"]["deletionTimestamp"].is_null()
    }

    /// Creates a budget for the pods of a label `app`.
    #[track_caller]
    pub fn add_budget(&self, name: &str, app: &str, spec: &Value) {
        let mut budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
        });
        merge(&mut budget["spec"], spec);
        self.world.apply(&budget.to_string());
    }

    /// Deletes a node.
    #[track_caller]
    pub fn delete_node(&self, name: &str) {
        self.world.delete(&format!("/api/v1/nodes/{name}"));
    }

    /// What events of a reason said, the oldest first, as `object: message`.
    pub fn events(&self, reason: &str) -> Vec<String> {
        let all = self.context.events.published().into_iter().filter(|event| &*event.reason == reason);
        all.map(|event| format!("{}: {}", event.about.name, event.message)).collect()
    }

    /// The value of a counter, or how many observations there were; zero when there is none.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are small")]
    pub fn metric(&self, metric: &'static api::names::metrics::Metric, labels: &[&str]) -> u64 {
        self.context.metrics.value(metric, labels).unwrap_or_default() as u64
    }

    /// The status of a claim's condition; empty when there is none.
    pub fn condition(&self, name: &str, kind: &str) -> String {
        let condition = self.ours(&format!("nodeclaims/{name}")).map(|claim| find_condition(&claim, kind));
        condition.unwrap_or_default()["status"].as_str().unwrap_or_default().to_owned()
    }

    /// A claim's condition as `Status Reason: message`.
    #[track_caller]
    pub fn said(&self, name: &str, kind: &str) -> String {
        say(&find_condition(&self.claim(name), kind))
    }

    /// The condition of the pool as `Status Reason: message`.
    pub fn pool_said(&self, kind: &str) -> String {
        say(&find_condition(&self.ours("nodepools/pool").unwrap_or_default(), kind))
    }
}

fn find_condition(object: &Value, kind: &str) -> Value {
    let all = object["status"]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
}

fn say(condition: &Value) -> String {
    let text = |key: &str| condition[key].as_str().unwrap_or("-").to_owned();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}
