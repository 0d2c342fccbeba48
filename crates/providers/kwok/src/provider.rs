//! Simulated nodes as a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::kwok::KWOKNodeClassSpec;
use api::labels::LabelSets;
use api::names::{conditions, labels};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use api::shared::ConditionStatus;
use clock::Clock;
use cloud::{CloudProvider, Error, Instance, Overlays, RepairAction, RepairPolicy};
use cluster::instance_types::InstanceType;
use cluster::objects::Node;
use cluster::state::{Key, Kind, State, Watched};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::SignedDuration;
use parking_lot::Mutex;
use runtime::{Api, Cluster};
use serde::Deserialize as _;
use serde_json::json;

use crate::choose::{choose, wanted};
use crate::machine::{Machine, SCHEME, instance, node_name};
use crate::names;

/// How long the tries to create a Node are apart: the first, then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// How often a Node is tried to be created, which takes a minute and a half.
const TRIES: u32 = 10;

/// Instances whose Node has not appeared yet, by its name.
type Launching = Arc<Mutex<BTreeMap<String, Machine>>>;

/// Simulated nodes. Clones share everything.
#[derive(Clone, Debug)]
pub struct Kwok {
    pub(crate) api: Api,
    pub(crate) cluster: Cluster,
    pub(crate) clock: Clock,
    seed: u64,
    sets: Arc<LabelSets>,
    types: Arc<[InstanceType]>,
    launching: Launching,
    overlays: Option<Overlays>,
}

impl Kwok {
    /// Instances of these types; the seed decides between offerings of the same price.
    pub fn new(api: Api, cluster: Cluster, clock: Clock, seed: u64, types: Vec<InstanceType>) -> Self {
        let sets = Arc::new(LabelSets::for_provider(Provider::Kwok));
        let launching = Launching::default();
        Self { api, cluster, clock, seed, sets, types: types.into(), launching, overlays: None }
    }

    /// Lets NodeOverlays decide which of several types is the cheapest, and what nodes have.
    #[must_use]
    pub fn with_overlays(self, overlays: Option<Overlays>) -> Self {
        Self { overlays, ..self }
    }

    /// What is launched for a claim is chosen from these.
    fn types_for(&self, claim: &NodeClaim) -> Result<Arc<[InstanceType]>, Error> {
        let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL));
        match (&self.overlays, pool) {
            (Some(overlays), Some(pool)) => overlays.apply(pool, &self.types),
            _ => Ok(Arc::clone(&self.types)),
        }
    }

    async fn launch(&self, claim: &NodeClaim) -> Result<Instance, Error> {
        let name = names::node(claim);
        if let Some(known) = self.launched_before(claim, &name) {
            return Ok(known);
        }
        let machine = {
            let mut wanted = wanted(claim, &self.sets)?;
            let types = self.types_for(claim)?;
            let choice = choose(claim, &mut wanted, &types, &mut names::chance(claim, self.seed))?;
            Machine::launched(name, claim, &wanted, &choice)
        };
        let delay = self.registration_delay(claim)?;
        if delay.is_zero() {
            return self.register(&machine).await;
        }
        let instance = machine.instance();
        self.register_after(machine, delay);
        Ok(instance)
    }

    /// What an earlier try launched for the claim: this process may have lost the answer, or taken over from
    /// another one that could not write it down.
    fn launched_before(&self, claim: &NodeClaim, name: &str) -> Option<Instance> {
        let state = self.cluster.read();
        if let Some(node) = node_of(&state, claim, name) {
            return Some(instance(node));
        }
        drop(state);
        self.launching.lock().get(name).map(Machine::instance)
    }

    /// Creates the Node now; if it is there already, somebody else was faster with the same launch.
    async fn register(&self, machine: &Machine) -> Result<Instance, Error> {
        let failed = |error: runtime::Error| Error::Other(format!("creating node, {error}"));
        match self.api.create::<Node>("", &machine.node()).await {
            Ok(node) => Ok(instance(&node)),
            Err(error) if error.is_conflict() => {
                let path = self.api.path(Kind::Node, &Key::cluster(&machine.name));
                Ok(instance(&self.api.get::<Node>(&path).await.map_err(failed)?))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Creates the Node later, unless the instance is terminated before.
    fn register_after(&self, machine: Machine, delay: Duration) {
        let kwok = self.clone();
        self.launching.lock().insert(machine.name.clone(), machine.clone());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let mut wait = FIRST_WAIT;
            for _ in 0..TRIES {
                if !kwok.launching.lock().contains_key(&machine.name) {
                    return;
                }
                let Err(error) = kwok.register(&machine).await else { break };
                tracing::error!(error = %error, Node = machine.name, "failed creating node");
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            // If it failed for good, collecting garbage finds a claim without a Node and tries again.
            kwok.launching.lock().remove(&machine.name);
        });
    }

    /// How long after the launch the Node appears.
    fn registration_delay(&self, claim: &NodeClaim) -> Result<Duration, Error> {
        let name = &claim.spec.node_class_ref.name;
        let state = self.cluster.read();
        let Some(class) = state.node_classes.named(name) else {
            let kind = Provider::Kwok.node_class();
            let message = format!("resolving node class, {}.{} {name:?} not found", kind.plural, kind.group);
            return Err(Error::InsufficientCapacity(message));
        };
        if let Some(ready) = class.condition(conditions::READY)
            && ready.status == ConditionStatus::False
        {
            return Err(Error::NodeClassNotReady(ready.message.clone()));
        }
        delay_of(&class.spec).map_err(|error| Error::Other(format!("reading node class {name:?}, {error}")))
    }

    /// Whether the Node of an instance is on its way.
    pub(crate) fn is_launching(&self, node: &str) -> bool {
        self.launching.lock().contains_key(node)
    }

    async fn terminate(&self, claim: &NodeClaim) -> Result<(), Error> {
        let id = claim.status.as_ref().map_or("", |status| &status.provider_id);
        let name = node_name(id).map_or_else(|| names::node(claim), str::to_owned);
        self.launching.lock().remove(&name);
        let (node, known) = {
            let state = self.cluster.read();
            let node = node_of(&state, claim, &name).cloned();
            let known = state.node_claims.get(&claim.key()).cloned();
            (node, known.filter(|known| known.metadata.uid == claim.metadata.uid))
        };
        // A machine that is gone takes its Node with it, and a claim without a machine is worth nothing.
        // What is on its way out already has been seen to.
        let known = known.filter(|known| known.metadata.deletion_timestamp.is_none());
        for deleted in [self.remove(node.as_deref()).await, self.remove(known.as_deref()).await] {
            deleted.map_err(|error| Error::Other(format!("deleting, {error}")))?;
        }
        Err(Error::NotFound("instance terminated".to_owned()))
    }

    async fn remove<K: Watched>(&self, object: Option<&K>) -> Result<(), runtime::Error> {
        let Some(object) = object else { return Ok(()) };
        match self.api.delete(object).await {
            Err(error) if !error.is_outrun() => Err(error),
            _ => Ok(()),
        }
    }

    fn find(&self, provider_id: &str) -> Result<Instance, Error> {
        let not_found = || Error::NotFound(format!("no instance {provider_id:?}"));
        let name = node_name(provider_id).ok_or_else(not_found)?;
        if let Some(node) = self.cluster.read().nodes.named(name) {
            return if node.metadata.is_deleting() { Err(not_found()) } else { Ok(instance(node)) };
        }
        self.launching.lock().get(name).map(Machine::instance).ok_or_else(not_found)
    }

    fn all(&self) -> Vec<Instance> {
        let launching = self.launching.lock();
        let state = self.cluster.read();
        let nodes = state.nodes.values().filter(|node| node.spec.provider_id.starts_with(SCHEME));
        let unseen = launching.values().filter(|machine| state.nodes.named(&machine.name).is_none());
        nodes.map(|node| instance(node)).chain(unseen.map(Machine::instance)).collect()
    }

    async fn boot(&self, claim: &NodeClaim, operation: &str) -> Result<(), Error> {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let node = claim.status.as_ref().map_or("", |status| &status.node_name);
        if node.is_empty() {
            let message = format!("rebooting nodeclaim, node is not registered (NodeClaim={name})");
            return Err(Error::Other(message));
        }
        let change = json!({"status": {"nodeInfo": {"bootID": format!("kwok-{operation}")}}});
        match self.api.patch_status::<Node>(&Key::cluster(node), &change).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Err(Error::NotFound(error.to_string())),
            Err(error) => Err(Error::Other(format!("rebooting node, {error}"))),
        }
    }
}

/// The delay that a NodeClass asks for.
pub(crate) fn delay_of(spec: &serde_json::Value) -> Result<Duration, serde_json::Error> {
    let spec = Option::<KWOKNodeClassSpec>::deserialize(spec)?.unwrap_or_default();
    let delay = spec.node_registration_delay.map(SignedDuration::from);
    // A negative delay is none.
    Ok(delay.and_then(|delay| Duration::try_from(delay).ok()).unwrap_or_default())
}

/// The Node that was launched for a claim and is not on its way out: the one with the name that it would get
/// now, or, launched by the original provider whose names are random, one that bears the claim's name.
fn node_of<'a>(state: &'a State, claim: &NodeClaim, name: &str) -> Option<&'a Arc<Node>> {
    let host = claim.metadata.name.as_deref().unwrap_or_default();
    let is_of_claim = |node: &&Arc<Node>| {
        node.metadata.labels.text(labels::HOSTNAME) == host
            && names::is_of(&node.metadata.name, host)
            && node.spec.provider_id.starts_with(SCHEME)
            // An earlier claim may have had the same name.
            && node.metadata.creation_timestamp >= claim.metadata.creation_timestamp
            && state.claims_of(&node.spec.provider_id).all(|owner| owner.metadata.uid == claim.metadata.uid)
    };
    let found = state.nodes.named(name).or_else(|| state.nodes.values().find(is_of_claim));
    found.filter(|node| !node.metadata.is_deleting())
}

/// When simulated nodes count as broken.
pub fn repair_policies() -> Vec<RepairPolicy> {
    let policy = |condition, status, reason_pattern, toleration, grace, action| RepairPolicy {
        condition,
        status,
        reason_pattern,
        toleration: Duration::from_secs(toleration),
        termination_grace_period: Some(Duration::from_secs(grace)),
        priority: 0,
        action,
    };
    vec![
        policy("Ready", "False", "", 600, 0, RepairAction::Replace),
        policy("Ready", "Unknown", ".*", 600, 0, RepairAction::Replace),
        policy(conditions::node::KWOK_UNHEALTHY, "True", ".*", 30, 45, RepairAction::Replace),
        policy(conditions::node::KWOK_REBOOT_REQUIRED, "True", ".*", 30, 60, RepairAction::Reboot),
    ]
}

impl CloudProvider for Kwok {
    fn provider(&self) -> Provider {
        Provider::Kwok
    }

    fn instances_are_nodes(&self) -> bool {
        true
    }

    fn create<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>> {
        self.launch(claim).boxed()
    }

    fn delete<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>> {
        self.terminate(claim).boxed()
    }

    fn get<'a>(&'a self, provider_id: &'a str) -> BoxFuture<'a, Result<Instance, Error>> {
        async move { self.find(provider_id) }.boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>> {
        async move { Ok(self.all()) }.boxed()
    }

    fn instance_types<'a>(&'a self, _: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        async move { Ok(Arc::clone(&self.types)) }.boxed()
    }

    fn drift<'a>(&'a self, _: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        repair_policies()
    }

    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.boot(claim, operation).boxed()
    }
}
