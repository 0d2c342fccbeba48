//! A cloud in memory that does what a test tells it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api::names::{labels, taints};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use cloud::provider::RegistrationHook;
use cloud::{CloudProvider, Error, Instance, RepairPolicy};
use cluster::instance_types::{InstanceType, kwok};
use cluster::objects::Node;
use cluster::state::Key;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::{Again, Api};
use serde_json::{Value, json};
use tokio::time::Instant;

/// What a call does instead of what it should.
pub type Failures = Mutex<VecDeque<Error>>;

/// A cloud in memory.
#[derive(Default)]
pub struct FakeCloud {
    /// The instances, by provider ID.
    pub instances: Mutex<BTreeMap<String, Machine>>,
    /// What the next launches fail with.
    pub create_failures: Failures,
    /// What the next terminations fail with.
    pub delete_failures: Failures,
    /// What the next look-ups of an instance fail with.
    pub get_failures: Failures,
    /// What the next lists fail with.
    pub list_failures: Failures,
    /// How many instances were launched.
    pub launches: AtomicUsize,
    /// How often a termination was asked for.
    pub terminations: AtomicUsize,
    /// How long an instance takes to go.
    pub going: Mutex<Duration>,
    /// Whether instances do not become Nodes.
    pub nodes_fail: Mutex<bool>,
    /// Whether Nodes come without the taint of unregistered ones.
    pub untainted: Mutex<bool>,
    /// Whether somebody labels a claim while its instance is launched.
    pub change_claim_while_launching: AtomicBool,
    /// Whether somebody deletes a claim while its instance is launched, and writes to it.
    pub delete_claim_while_launching: AtomicBool,
    /// What the next reboots fail with.
    pub reboot_failures: Failures,
    /// The reboots that were accepted.
    pub reboots: Mutex<Vec<String>>,
    /// Whether instances that are to boot again do not.
    pub boots_fail: AtomicBool,
    /// How long launches may take, if not as long as usual.
    pub launch_timeout: Mutex<Option<Duration>>,
    /// When nodes count as broken.
    pub policies: Mutex<Vec<RepairPolicy>>,
    /// Put over the Nodes that instances become.
    pub node_change: Mutex<Value>,
    api: Mutex<Option<Api>>,
    hooks: Vec<Box<dyn RegistrationHook>>,
}

/// An instance.
pub struct Machine {
    /// What the cloud says about it.
    pub instance: Instance,
    /// Since when it is being terminated.
    pub going: Option<Instant>,
}

/// A hook that says what a test tells it.
#[derive(Clone)]
pub struct FakeHook {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub answer: Arc<Mutex<Result<Again, Error>>>,
    /// Labels that it gives to the claim.
    pub labels: Arc<Mutex<BTreeMap<String, String>>>,
    /// To write to claims.
    pub api: Arc<Mutex<Option<Api>>>,
    /// How long it takes to answer.
    pub takes: Arc<Mutex<Duration>>,
}

impl FakeHook {
    /// A hook that is pending.
    pub fn pending(name: &'static str) -> Self {
        let answer = Arc::new(Mutex::new(Ok(Again::secs(5))));
        Self { name, answer, labels: Arc::default(), api: Arc::default(), takes: Arc::default() }
    }

    /// Changes what it says.
    pub fn say(&self, answer: Result<Again, Error>) {
        *self.answer.lock() = answer;
    }
}

impl RegistrationHook for FakeHook {
    fn name(&self) -> &'static str {
        self.name
    }

    fn registered<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Again, Error>> {
        async move {
            let takes = *self.takes.lock();
            tokio::time::sleep(takes).await;
            let labels = self.labels.lock().clone();
            let known = claim.metadata.labels.clone().unwrap_or_default();
            let api = self.api.lock().clone();
            if let Some(api) = api
                && labels.iter().any(|(key, value)| known.get(key) != Some(value))
            {
                let key = cluster::state::Watched::key(claim);
                let change = json!({"metadata": {"labels": labels}});
                api.patch::<NodeClaim>(&key, &change).await.expect("the claim is there");
            }
            self.answer.lock().clone()
        }
        .boxed()
    }
}

impl FakeCloud {
    /// A cloud with hooks.
    pub fn with_hooks(hooks: &[FakeHook]) -> Self {
        let hooks = hooks.iter().map(|hook| Box::new(hook.clone()) as Box<dyn RegistrationHook>).collect();
        Self { hooks, ..Self::default() }
    }

    /// Lets instances join the cluster that this writes to.
    pub fn join(&self, api: Api) {
        *self.api.lock() = Some(api);
    }

    /// How many instances were launched.
    pub fn launches(&self) -> usize {
        self.launches.load(Ordering::Relaxed)
    }

    /// How often a termination was asked for.
    pub fn terminations(&self) -> usize {
        self.terminations.load(Ordering::Relaxed)
    }

    /// How many instances there are.
    pub fn running(&self) -> usize {
        self.instances.lock().len()
    }

    /// An instance vanishes without anybody having asked.
    pub fn lose(&self, provider_id: &str) {
        self.instances.lock().remove(provider_id).expect("the instance is there");
    }

    fn launch(&self, claim: &NodeClaim) -> Instance {
        self.launches.fetch_add(1, Ordering::Relaxed);
        let name = claim.metadata.name.clone().unwrap_or_default();
        let id = format!("fake://{name}");
        let class = claim.spec.node_class_ref.clone();
        let instance: Instance = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "labels": {
                    labels::INSTANCE_TYPE: "fake-4", labels::ZONE: "zone-a", labels::CAPACITY_TYPE: "on-demand",
                    labels::ARCH: "amd64", labels::OS: "linux", labels::NODEPOOL: "not-the-claims",
                },
                "annotations": {"cloud.example/annotated": "true"},
            },
            "spec": {"requirements": [], "nodeClassRef": class},
            "status": {
                "providerID": id, "imageID": "image-1",
                "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "allocatable": {"cpu": "3900m", "memory": "15Gi", "pods": "110"},
            },
        }))
        .expect("the instance is well-formed");
        self.instances.lock().insert(id, Machine { instance: instance.clone(), going: None });
        instance
    }

    async fn boot(&self, instance: &Instance) {
        let api = self.api.lock().clone();
        let (Some(api), false) = (api, *self.nodes_fail.lock()) else { return };
        let name = instance.metadata.name.clone().unwrap_or_default();
        let status = instance.status.clone().unwrap_or_default();
        let taints = if *self.untainted.lock() {
            json!([])
        } else {
            json!([{"key": taints::UNREGISTERED.key, "effect": taints::UNREGISTERED.effect}])
        };
        let mut node = json!({
            "metadata": {"name": name, "labels": instance.metadata.labels},
            "spec": {"providerID": status.provider_id, "taints": taints},
            "status": {"capacity": status.capacity, "allocatable": status.allocatable},
        });
        node["metadata"]["labels"].as_object_mut().expect("labels are an object").remove(labels::NODEPOOL);
        super::merge(&mut node, &self.node_change.lock());
        api.create::<Node>("", &node).await.expect("the node is well-formed");
    }

    /// Writes to a claim, so that whoever launched it must look again.
    async fn interfere(&self, claim: &NodeClaim) {
        let api = self.api.lock().clone();
        let Some(api) = api else { return };
        let key = cluster::state::Watched::key(claim);
        if self.change_claim_while_launching.swap(false, Ordering::Relaxed) {
            let change = json!({"metadata": {"labels": {"meanwhile": "true"}}});
            api.patch::<NodeClaim>(&key, &change).await.expect("the claim is there");
        }
        if self.delete_claim_while_launching.swap(false, Ordering::Relaxed) {
            api.delete(claim).await.expect("the claim is there");
            let change = json!({"status": {"lastPodEventTime": "2026-01-05T09:00:00Z"}});
            api.patch_status::<NodeClaim>(&key, &change).await.expect("the claim is there");
        }
    }

    fn terminate(&self, id: &str) -> Result<(), Error> {
        self.terminations.fetch_add(1, Ordering::Relaxed);
        let going = *self.going.lock();
        let mut instances = self.instances.lock();
        let not_found = || Error::NotFound(format!("no instance {id}"));
        let machine = instances.get_mut(id).ok_or_else(not_found)?;
        let since = *machine.going.get_or_insert_with(Instant::now);
        if going.is_zero() || since.elapsed() >= going {
            instances.remove(id);
            return if going.is_zero() { Ok(()) } else { Err(not_found()) };
        }
        Ok(())
    }
}

fn failed(failures: &Failures) -> Result<(), Error> {
    failures.lock().pop_front().map_or(Ok(()), Err)
}

impl CloudProvider for FakeCloud {
    fn provider(&self) -> Provider {
        Provider::Kwok
    }

    fn create<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        async move {
            failed(&self.create_failures)?;
            let instance = self.launch(claim);
            self.boot(&instance).await;
            self.interfere(claim).await;
            Ok(instance)
        }
        .boxed()
    }

    fn delete<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            failed(&self.delete_failures)?;
            self.terminate(claim.status.as_ref().map_or("", |status| &status.provider_id))
        }
        .boxed()
    }

    fn get<'a>(&'a self, provider_id: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        async move {
            failed(&self.get_failures)?;
            let instances = self.instances.lock();
            let machine =
                instances.get(provider_id).ok_or_else(|| Error::NotFound(provider_id.to_owned()))?;
            Ok(machine.instance.clone())
        }
        .boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        async {
            failed(&self.list_failures)?;
            Ok(self.instances.lock().values().map(|machine| machine.instance.clone()).collect())
        }
        .boxed()
    }

    fn instance_types<'a>(&'a self, _: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        async { Ok(kwok::built_in().into()) }.boxed()
    }

    fn drift<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn launch_timeout(&self) -> Duration {
        self.launch_timeout.lock().unwrap_or(Duration::from_mins(5))
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        self.policies.lock().clone()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            failed(&self.reboot_failures)?;
            self.reboots.lock().push(operation.to_owned());
            let api = self.api.lock().clone();
            let node = claim.status.as_ref().map_or("", |status| &status.node_name);
            if let Some(api) = api.filter(|_| !self.boots_fail.load(Ordering::Relaxed)) {
                let change = json!({"status": {"nodeInfo": {"bootID": format!("after {operation}")}}});
                let patched = api.patch_status::<Node>(&Key::cluster(node), &change).await;
                patched.map_err(|error| Error::Other(error.to_string()))?;
            }
            Ok(())
        }
        .boxed()
    }

    fn registration_hooks(&self) -> &[Box<dyn RegistrationHook>] {
        &self.hooks
    }
}
