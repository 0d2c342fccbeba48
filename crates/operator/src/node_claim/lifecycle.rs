//! The life of a NodeClaim: launch, registration, initialization; given up when that takes too long; and its end.
//!
//! ```text
//!   claim ── finalizer ──► launch ──► registration ──► initialization      one pass does what can be done,
//!                            │            │                                and writes the status once
//!                            └──liveness──┴──► deleted ──► finalize
//! ```

mod finalize;
mod health;
mod initialization;
mod launch;
mod liveness;
mod registration;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::{INITIALIZED, LAUNCHED, REGISTERED};
use api::names::metrics::NODES_CREATED;
use api::names::{events, finalizers, labels};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::eligibility::is_active;
use cluster::objects::Node;
use cluster::state::{Change, Key, Meta, Object, State, Watched};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::SignedDuration;
use parking_lot::Mutex;
use runtime::controller::Reconcile;
use runtime::events::About;
use runtime::{Again, Error, Outcome};
use serde_json::json;
use units::Quantity;

use super::dra::Drivers;
use super::{disrupt, has_finalizer, label, lock, metadata_patch, name, write_status};
use crate::Context;
use crate::managed::is_claim_managed;
use crate::text::truncated;
use crate::watching::Watching;
pub(crate) use finalize::{INSTANCE_GONE, text};
pub(crate) use launch::age;
use launch::{Failure, Launches};
use liveness::Liveness;
use registration::Found;

/// How often drivers are asked whether they have published what a node has.
const DRIVERS: Again = Again::secs(5);

/// Brings claims to life and ends them.
#[derive(Debug)]
pub struct Lifecycle {
    context: Context,
    launches: Launches,
    /// Claims, by UID, whose end was recorded as a failure of their pool. Until they are deleted they are given up
    /// again and again, but they failed once.
    recorded: Mutex<BTreeSet<Box<str>>>,
}

/// What one pass over a claim has come to.
struct Pass {
    before: Arc<NodeClaim>,
    after: NodeClaim,
    again: Again,
    errors: Vec<Error>,
    /// The claim is deleted or changed by somebody else; there is no use in writing to it.
    over: bool,
}

impl Lifecycle {
    /// Works in a context.
    pub fn new(context: &Context) -> Self {
        // Whoever waits for launches waits as long as a claim has for its own.
        let timeout = SignedDuration::try_from(context.cloud.launch_timeout()).unwrap_or(SignedDuration::MAX);
        context.cluster.update(|state| state.set_launch_timeout(timeout));
        Self { context: context.clone(), launches: Launches::default(), recorded: Mutex::default() }
    }

    async fn live(&self, claim: Arc<NodeClaim>) -> Outcome {
        let claim = self.with_finalizer(claim).await?;
        let after = NodeClaim::clone(&claim);
        let mut pass = Pass { before: claim, after, again: Again::No, errors: Vec::new(), over: false };
        // Adds what is missing of the conditions, as old as the claim.
        Conditions::of(&mut pass.after, self.context.now());
        self.launch(&mut pass).await;
        if !pass.over {
            self.register(&mut pass).await;
        }
        if !pass.over {
            self.initialize(&mut pass).await;
        }
        if !pass.over {
            self.check_liveness(&mut pass).await;
        }
        if !pass.over {
            self.write(&mut pass).await;
        }
        match pass.errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(pass.again),
        }
    }

    /// Nothing is done for a claim before it is certain that its end will not be missed.
    async fn with_finalizer(&self, claim: Arc<NodeClaim>) -> Result<Arc<NodeClaim>, Error> {
        if has_finalizer(&claim) {
            return Ok(claim);
        }
        let mut all = claim.metadata.finalizers.clone().unwrap_or_default();
        all.push(finalizers::TERMINATION.to_owned());
        let mut metadata = lock(&claim);
        metadata["finalizers"] = json!(all);
        self.context.api.patch(&claim.key(), &json!({"metadata": metadata})).await
    }

    async fn launch(&self, pass: &mut Pass) {
        let uid = pass.before.metadata.uid().to_owned();
        if !launch::is_open(&pass.before) {
            refresh(&mut pass.after, LAUNCHED, &self.context);
            self.launches.forget(&uid);
            return;
        }
        if let Some(instance) = self.launches.get(&uid, self.context.now()) {
            launch::adopt(&mut pass.after, &instance, self.context.now());
            return;
        }
        let created = self.context.cloud.create(&pass.before).await;
        let now = self.context.now();
        match created {
            Ok(instance) => {
                launch::adopt(&mut pass.after, &instance, now);
                self.launches.put(&uid, instance, now);
                let claim = &pass.after;
                tracing::info!(
                    NodeClaim = name(claim),
                    "provider-id" = super::provider_id(claim),
                    "instance-type" = label(claim, labels::INSTANCE_TYPE),
                    zone = label(claim, labels::ZONE),
                    "capacity-type" = label(claim, labels::CAPACITY_TYPE),
                    allocatable = %allocatable(claim),
                    "launched nodeclaim"
                );
            }
            Err(error) => self.note_failed_launch(pass, &error).await,
        }
    }

    async fn note_failed_launch(&self, pass: &mut Pass, error: &cloud::Error) {
        tracing::error!(NodeClaim = name(&pass.before), error = %error, "failed launching nodeclaim");
        match launch::failure(error) {
            Failure::Delete { reason, publish } => {
                if publish {
                    self.publish_insufficient_capacity(&pass.before, error);
                }
                pass.over = true;
                pass.errors.extend(disrupt(&self.context, &pass.before, reason, None).await.err());
            }
            Failure::Retry { reason, message } => {
                let mut conditions = Conditions::of(&mut pass.after, self.context.now());
                conditions.set(LAUNCHED, ConditionStatus::Unknown, &reason, &message);
                pass.errors.push(Error::Other(format!("launching nodeclaim, {error}")));
            }
        }
    }

    /// Tells the users of a claim that there is no capacity for it.
    fn publish_insufficient_capacity(&self, claim: &NodeClaim, error: &cloud::Error) {
        let (name, events) = (name(claim), &self.context.events);
        let message = truncated(&format!("NodeClaim {name} event: {error}"));
        let event = &events::INSUFFICIENT_CAPACITY;
        events.publish(event, About::object(claim), message, &[claim.metadata.uid()]);
        let state = self.context.cluster.read();
        let pods = state.pods_expected_on(name).filter_map(|key| state.pods.get(key));
        for pod in pods.filter(|pod| is_active(pod) && pod.spec.node_name.is_empty()) {
            let message = format!("NodeClaim {name} nominated for this pod failed to launch: {error}");
            let event = &events::POD_INSUFFICIENT_CAPACITY;
            let message = truncated(&message);
            events.publish(event, About::object(&**pod), message, &[&pod.metadata.uid]);
        }
    }

    async fn register(&self, pass: &mut Pass) {
        if !registration::is_open(&pass.after) {
            refresh(&mut pass.after, REGISTERED, &self.context);
            return;
        }
        let found = registration::find(&pass.after, &self.context.cluster.read());
        let node = match found {
            Found::One(node) => node,
            Found::None | Found::Many => {
                let many = matches!(found, Found::Many);
                registration::note_absence(&mut pass.after, many, self.context.now());
                return;
            }
        };
        if registration::lacks_taint(&node) {
            self.complain_about_taint(&pass.after, &node);
        }
        let pending = self.run_hooks(pass).await;
        if pass.over {
            return;
        }
        // Hooks may have taken a while; the Node may have changed since.
        let known = self.context.cluster.read().nodes.get(&node.key()).cloned();
        let node = known.unwrap_or(node);
        let done = pending.is_empty();
        if let Some(patch) = registration::node_patch(&node, &pass.after, done)
            && let Err(error) = self.context.api.patch_strategic::<Node>(&node.key(), &patch).await
        {
            pass.errors.push(error);
            return;
        }
        let now = self.context.now();
        if done {
            registration::note_done(&mut pass.after, &node, now);
        } else {
            registration::note_pending(&mut pass.after, &pending, now);
        }
    }

    fn complain_about_taint(&self, claim: &NodeClaim, node: &Node) {
        const MESSAGE: &str = "Missing karpenter.sh/unregistered taint which prevents registration related race \
             conditions on Karpenter-managed nodes";
        tracing::error!(
            NodeClaim = name(claim), Node = %node.metadata.name,
            error = "missing required startup taint, karpenter.sh/unregistered",
            "node claim registration error"
        );
        let event = &events::UNREGISTERED_TAINT_MISSING;
        self.context.events.publish(event, About::object(claim), MESSAGE, &[claim.metadata.uid()]);
    }

    /// Runs the hooks of the cloud; those that are not done are returned.
    async fn run_hooks(&self, pass: &mut Pass) -> Vec<&'static str> {
        let hooks = self.context.cloud.registration_hooks();
        if hooks.is_empty() {
            return Vec::new();
        }
        let claim = &pass.after;
        let asked = hooks.iter().map(|hook| async move { (hook.name(), hook.registered(claim).await) });
        let answers = registration::sum_up(join_all(asked).await);
        let known = self.context.cluster.read().node_claims.get(&pass.before.key()).cloned();
        if known.is_none_or(|known| known.metadata.version() != pass.before.metadata.version()) {
            // A hook wrote to the claim, or somebody else: what they wrote must reach the Node, too.
            pass.over = true;
            pass.again = Again::secs(0);
        }
        if let Some(again) = answers.again {
            pass.again = pass.again.or_sooner(again);
        }
        pass.errors.extend(answers.errors.into_iter().map(Error::Other));
        answers.pending
    }

    async fn initialize(&self, pass: &mut Pass) {
        if !initialization::is_open(&pass.after) {
            if pass.after.is_true(REGISTERED) {
                refresh(&mut pass.after, INITIALIZED, &self.context);
            }
            return;
        }
        let found = registration::find(&pass.after, &self.context.cluster.read());
        let drivers = match self.drivers(&pass.after, &found).await {
            Ok(drivers) => drivers,
            Err(error) => {
                pass.errors.push(error);
                return;
            }
        };
        let node = match initialization::decide(&pass.after, &found, &drivers) {
            Ok(node) => node,
            Err(lacking) => {
                if drivers.incomplete().is_some() {
                    pass.again = pass.again.or_sooner(DRIVERS);
                }
                initialization::note_lacking(&mut pass.after, &lacking, self.context.now());
                return;
            }
        };
        let change = json!({"metadata": {"labels": {labels::INITIALIZED: "true"}}});
        if node.metadata.labels.text(labels::INITIALIZED) != "true"
            && let Err(error) = self.context.api.patch::<Node>(&node.key(), &change).await
        {
            pass.errors.push(error);
            return;
        }
        let allocatable: BTreeMap<&str, &Quantity> = node.status.allocatable.iter().collect();
        tracing::info!(
            NodeClaim = name(&pass.after),
            Node = %node.metadata.name,
            allocatable = %serde_json::to_string(&allocatable).unwrap_or_default(),
            "initialized nodeclaim"
        );
        initialization::note_done(&mut pass.after, self.context.now());
    }

    /// What the drivers that a claim waits for have published, if anybody asks for devices.
    async fn drivers(&self, claim: &NodeClaim, found: &Found) -> Result<Drivers, Error> {
        match found {
            Found::One(node) if !self.context.settings.ignore_dra_requests && node.is_ready() => {
                Drivers::ask(&self.context.api, claim, node).await
            }
            _ => Ok(Drivers::default()),
        }
    }

    async fn check_liveness(&self, pass: &mut Pass) {
        let reason =
            match liveness::decide(&pass.after, self.context.cloud.launch_timeout(), self.context.now()) {
                Liveness::Alive => return,
                Liveness::Waiting(left) => {
                    pass.again = pass.again.or_sooner(Again::After(left));
                    return;
                }
                Liveness::GivenUp(reason) => reason,
            };
        tracing::info!(NodeClaim = name(&pass.after), reason, "giving up nodeclaim");
        pass.over = true;
        pass.errors.clear();
        if let Err(error) = self.record_failure(&pass.after).await {
            return pass.errors.push(error);
        }
        if let Err(error) = disrupt(&self.context, &pass.before, reason, None).await {
            let text = format!("deleting nodeclaim for timeout, {error} (NodeClaim={})", name(&pass.before));
            pass.errors.push(Error::Other(text));
        }
    }

    /// Records that the node of a claim did not join in time, once.
    async fn record_failure(&self, claim: &NodeClaim) -> Result<(), Error> {
        if self.recorded.lock().contains(claim.metadata.uid()) {
            return Ok(());
        }
        health::record(&self.context, claim, false).await?;
        self.recorded.lock().insert(claim.metadata.uid().into());
        Ok(())
    }

    /// Writes what has changed.
    async fn write(&self, pass: &mut Pass) {
        let key = pass.before.key();
        let is_new = pass.after.is_true(REGISTERED) && !pass.before.is_true(REGISTERED);
        if let Some(patch) = metadata_patch(&pass.before, &pass.after)
            && let Err(error) = self.context.api.patch::<NodeClaim>(&key, &patch).await
        {
            return pass.errors.push(error);
        }
        match write_status(&self.context, &pass.before, &pass.after).await {
            Ok(Some(claim)) if is_new => {
                self.note_registered(&claim);
                pass.errors.extend(health::record(&self.context, &claim, true).await.err());
            }
            Ok(_) => {}
            Err(error) => pass.errors.push(error),
        }
    }

    fn note_registered(&self, claim: &NodeClaim) {
        let node = claim.status.as_ref().map_or("", |status| &status.node_name);
        tracing::info!(NodeClaim = name(claim), Node = node, "registered nodeclaim");
        let series = [label(claim, labels::NODEPOOL), label(claim, labels::ZONE)];
        self.context.metrics.add(&NODES_CREATED, &series, 1.0);
    }
}

/// What pods can have of the instance of a claim, as logs write it.
fn allocatable(claim: &NodeClaim) -> String {
    let allocatable = claim.status.as_ref().map(|status| &status.allocatable);
    allocatable.and_then(|amounts| serde_json::to_string(amounts).ok()).unwrap_or_default()
}

/// Brings a condition that is settled up to date with the object's generation.
fn refresh(claim: &mut NodeClaim, type_: &str, context: &Context) {
    let Some(condition) = claim.condition(type_).cloned() else { return };
    let mut conditions = Conditions::of(claim, context.now());
    conditions.set(type_, condition.status, &condition.reason, &condition.message);
}

impl Reconcile for Lifecycle {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let claim = self.context.cluster.read().node_claims.get(key).cloned();
            let Some(claim) = claim.filter(|claim| is_claim_managed(claim, self.context.provider())) else {
                return Ok(Again::No);
            };
            if claim.metadata.is_deleting() { self.finalize(claim).await } else { self.live(claim).await }
        }
        .boxed()
    }
}

impl Watching for Lifecycle {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        match change.object() {
            Object::NodeClaim(claim) => {
                if change.new.is_none() {
                    self.launches.forget(claim.metadata.uid());
                    self.recorded.lock().remove(claim.metadata.uid());
                }
                vec![claim.key()]
            }
            Object::Node(_) => {
                let sides = [&change.old, &change.new].into_iter().flatten();
                let mut keys: Vec<Key> = sides
                    .flat_map(|side| match side {
                        Object::Node(node) => {
                            state.claims_of(&node.spec.provider_id).map(|c| c.key()).collect()
                        }
                        _ => Vec::new(),
                    })
                    .collect();
                keys.dedup();
                keys
            }
            _ => Vec::new(),
        }
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.node_claims.keys().cloned().collect()
    }
}
