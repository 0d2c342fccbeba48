//! The controllers of this cloud, a file or folder each: `decide` is pure, and acting is thin.

mod disrupt;
mod instance_gc;
mod instance_status;
mod interruption;
mod memory;
mod metrics;
mod node_class;
mod node_class_hash;
mod parameters;
mod profiles;
mod refresh;
mod reservations;
mod tagging;
mod zonal_shift;

use std::sync::Arc;

use api::names::controllers::aws as names;
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use api::shared::{NodeClassReference, Requirement};
use cluster::state::{Change, Key, Kind, Object};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::controller::{Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};

use crate::controllers::parameters::Parameters;
use crate::controllers::profiles::Profiles;
use crate::provider::{Aws, Inner};
use crate::requirements::within;

/// Something that is done again and again.
struct Singleton<F>(Arc<Inner>, F);

impl<F> Reconcile for Singleton<F>
where
    F: Fn(Arc<Inner>) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
{
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        (self.1)(Arc::clone(&self.0))
    }
}

/// An error of AWS as controllers report it.
fn failed(error: impl std::fmt::Display) -> runtime::Error {
    runtime::Error::Other(error.to_string())
}

fn is_class_ours(reference: &NodeClassReference) -> bool {
    let class = Provider::Aws.node_class();
    reference.group == class.group && reference.kind == class.kind
}

/// Whether a claim is for this cloud.
fn is_ours(claim: &NodeClaim) -> bool {
    is_class_ours(&claim.spec.node_class_ref)
}

/// Whether a NodePool is for this cloud.
fn is_pool_ours(pool: &NodePool) -> bool {
    is_class_ours(&pool.spec.template.spec.node_class_ref)
}

/// A label of a claim; empty when absent.
fn label<'a>(claim: &'a NodeClaim, key: &str) -> &'a str {
    claim.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map_or("", |value| value)
}

/// What nodes of a NodePool must satisfy: its requirements, and its labels, which nodes have for certain.
fn requirements_of(pool: &NodePool) -> Vec<Requirement> {
    let template = &pool.spec.template;
    let labels = template.metadata.labels.iter().flatten();
    let mut all: Vec<Requirement> = labels.map(|(key, value)| within(key, [value.as_str()])).collect();
    all.extend(template.spec.requirements.iter().cloned());
    all
}

impl Aws {
    /// The controllers that belong to this cloud.
    pub fn controllers(&self) -> Vec<Controller> {
        let inner = &self.0;
        let mut all = vec![
            singleton(names::PRICING, inner, |inner| async move { refresh::prices(&inner).await }.boxed()),
            singleton(names::INSTANCE_TYPE, inner, |inner| {
                async move { refresh::instance_types(&Aws(inner)).await }.boxed()
            }),
            singleton(names::VERSION, inner, |inner| async move { refresh::version(&inner).await }.boxed()),
        ];
        let templates = refresh::LaunchTemplates::default();
        all.push(singleton(names::LAUNCH_TEMPLATE_GARBAGE_COLLECTION, inner, move |inner| {
            let templates = templates.clone();
            async move { templates.look_after(&inner).await }.boxed()
        }));
        let collected = instance_gc::Collected::default();
        all.push(singleton(names::INSTANCE_GARBAGE_COLLECTION, inner, move |inner| {
            let collected = collected.clone();
            async move { collected.collect(&inner).await }.boxed()
        }));
        let (parameters, profiles) = (Arc::new(Parameters::default()), Arc::new(Profiles::default()));
        let classes =
            node_class::NodeClasses::new(Arc::clone(inner), Arc::clone(&parameters), Arc::clone(&profiles));
        all.push(of_classes(names::NODE_CLASS, inner, classes, true));
        all.push(of_classes(names::NODE_CLASS_HASH, inner, node_class_hash::Hash(Arc::clone(inner)), false));
        all.push(singleton(names::SSM_INVALIDATION, inner, move |inner| {
            let parameters = Arc::clone(&parameters);
            async move { parameters.invalidate(&inner).await }.boxed()
        }));
        if !inner.setup.settings.isolated_vpc {
            all.push(singleton(names::INSTANCE_PROFILE_GARBAGE_COLLECTION, inner, move |inner| {
                let profiles = Arc::clone(&profiles);
                async move { profiles.collect(&inner).await }.boxed()
            }));
        }
        all.extend(self.of_instances());
        all
    }

    /// The controllers that look after instances and what is known of them.
    fn of_instances(&self) -> Vec<Controller> {
        let inner = &self.0;
        let settings = &inner.setup.settings;
        let statuses = instance_status::InstanceStatuses::default();
        let mut all = vec![
            singleton(names::INTERRUPTION_INSTANCE_STATUS, inner, move |inner| {
                let statuses = statuses.clone();
                async move { statuses.poll(&inner).await }.boxed()
            }),
            singleton(names::METRICS, inner, |inner| async move { metrics::publish(&inner).await }.boxed()),
            on_changes(
                names::NODE_CLAIM_TAGGING,
                inner,
                tagging::Tagging(Arc::clone(inner)),
                tagging::touched,
            ),
            on_changes(
                names::INSTANCE_TYPE_CAPACITY,
                inner,
                memory::Memory::new(Arc::clone(inner)),
                memory::touched,
            ),
        ];
        if inner.setup.gates.reserved_capacity {
            all.push(singleton(names::CAPACITY_RESERVATION_CAPACITY_TYPE, inner, |inner| {
                async move { reservations::correct_capacity_types(&inner).await }.boxed()
            }));
            all.push(singleton(names::CAPACITY_RESERVATION_EXPIRATION, inner, |inner| {
                async move { reservations::empty_ending_blocks(&inner).await }.boxed()
            }));
        }
        if settings.enable_zonal_shift {
            let shifts = zonal_shift::ZonalShifts::default();
            all.push(singleton(names::ZONAL_SHIFT, inner, move |inner| {
                let shifts = shifts.clone();
                async move { shifts.follow(&inner).await }.boxed()
            }));
        }
        if settings.interruption_queue.is_some() {
            let interruptions = interruption::Interruptions::default();
            let work = move |inner: Arc<Inner>| {
                let interruptions = interruptions.clone();
                async move { interruptions.poll(&inner).await }.boxed()
            };
            // A warning comes two minutes before the end: nobody waits for long because a try has failed.
            all.push(singleton_with(names::INTERRUPTION, Backoff::millis(100, 10_000), inner, work));
        }
        all
    }
}

impl Aws {
    /// Asks for what must be known before anything is decided: the version of the cluster, and which instance types
    /// there are and where.
    pub async fn hydrate(&self) -> Result<(), runtime::Error> {
        let (version, types) = futures::join!(refresh::version(&self.0), self.refresh_instance_types());
        version?;
        types.map_err(failed)
    }
}

fn singleton<F>(name: &'static str, inner: &Arc<Inner>, work: F) -> Controller
where
    F: Fn(Arc<Inner>) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
{
    singleton_with(name, Backoff::DEFAULT, inner, work)
}

fn singleton_with<F>(name: &'static str, backoff: Backoff, inner: &Arc<Inner>, work: F) -> Controller
where
    F: Fn(Arc<Inner>) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
{
    let queue = Queue::new(backoff);
    queue.add(Key::default());
    let reconcile = Arc::new(Singleton(Arc::clone(inner), work));
    Controller { name, queue: Arc::new(queue), workers: 1, limiter: None, reconcile }
}

/// A controller of objects, one at a time: those that are there already, and those that `touched` finds in a change.
fn on_changes(
    name: &'static str,
    inner: &Arc<Inner>,
    reconcile: impl Reconcile,
    touched: fn(&Change) -> Option<Key>,
) -> Controller {
    let queue = Arc::new(Queue::new(Backoff::millis(100, 60_000)));
    {
        let state = inner.setup.cluster.read();
        let claims = state.node_claims.values().map(|claim| Object::NodeClaim(Arc::clone(claim)));
        let nodes = state.nodes.values().map(|node| Object::Node(Arc::clone(node)));
        let classes = state.node_classes.values().map(|class| Object::NodeClass(Arc::clone(class)));
        for object in claims.chain(nodes).chain(classes) {
            let change = Change { old: None, new: Some(object) };
            if let Some(key) = touched(&change) {
                queue.add(key);
            }
        }
    }
    let listening = Arc::clone(&queue);
    inner.setup.cluster.listen(Box::new(move |change, _| {
        if let Some(key) = touched(change) {
            listening.add(key);
        }
    }));
    Controller { name, queue, workers: 1, limiter: None, reconcile: Arc::new(reconcile) }
}

/// A controller of NodeClasses; if `with_claims`, it also looks when a claim of one is gone.
fn of_classes(
    name: &'static str,
    inner: &Arc<Inner>,
    reconcile: impl Reconcile,
    with_claims: bool,
) -> Controller {
    let queue = Arc::new(Queue::new(Backoff::millis(100, 60_000)));
    let touched = Arc::clone(&queue);
    let known: Vec<Key> = inner.setup.cluster.read().node_classes.keys().cloned().collect();
    for key in known {
        queue.add(key);
    }
    inner.setup.cluster.listen(Box::new(move |change, state| match change.object() {
        Object::NodeClass(class) => touched.add(Key::cluster(&class.metadata.name)),
        Object::NodeClaim(claim) if with_claims => {
            let is_gone = state.object(Kind::NodeClaim, &change.key()).is_none();
            if is_gone {
                touched.add(Key::cluster(&claim.spec.node_class_ref.name));
            }
        }
        _ => {}
    }));
    Controller { name, queue, workers: 10, limiter: None, reconcile: Arc::new(reconcile) }
}
