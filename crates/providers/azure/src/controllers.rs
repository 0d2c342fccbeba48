//! The controllers of this cloud, a file each: `decide` is pure, and acting is thin.

mod garbage;
mod in_place;
mod node_class;
mod node_class_hash;
mod refresh;
mod termination;

use std::sync::Arc;

use api::names::controllers::azure as names;
use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use cluster::state::{Key, Kind, Object};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::controller::{Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};

use crate::provider::{Azure, Inner};

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

/// An error of Azure as controllers report it.
fn failed(error: impl std::fmt::Display) -> runtime::Error {
    runtime::Error::Other(error.to_string())
}

/// Whether a claim is for this cloud.
fn is_ours(claim: &NodeClaim) -> bool {
    let class = Provider::Azure.node_class();
    let reference = &claim.spec.node_class_ref;
    reference.group == class.group && reference.kind == class.kind
}

/// The claims of a NodeClass.
fn claims_of_class(inner: &Inner, class: &str) -> Vec<Arc<NodeClaim>> {
    let state = inner.setup.cluster.read();
    let all = state.node_claims.values();
    all.filter(|claim| is_ours(claim) && claim.spec.node_class_ref.name == class).cloned().collect()
}

impl Azure {
    /// The controllers that belong to this cloud.
    pub fn controllers(&self) -> Vec<Controller> {
        let inner = &self.0;
        let classes = node_class::NodeClasses::new(Arc::clone(inner));
        vec![
            of_classes(names::NODE_CLASS_STATUS, inner, classes, false),
            of_classes(names::NODE_CLASS_HASH, inner, node_class_hash::Hash(Arc::clone(inner)), false),
            of_classes(
                names::NODE_CLASS_TERMINATION,
                inner,
                termination::Termination(Arc::clone(inner)),
                true,
            ),
            in_place::controller(inner),
            singleton(names::INSTANCE_GARBAGE_COLLECTION, inner, |inner| {
                async move { garbage::machines(&inner).await }.boxed()
            }),
            singleton(names::NETWORK_INTERFACE_GARBAGE_COLLECTION, inner, |inner| {
                async move { garbage::interfaces(&inner).await }.boxed()
            }),
            singleton(names::INSTANCE_TYPE, inner, |inner| {
                async move { refresh::sizes(&inner).await }.boxed()
            }),
            singleton(names::QUOTA, inner, |inner| async move { refresh::quota(&inner).await }.boxed()),
            singleton(names::PRICING, inner, |inner| async move { refresh::prices(&inner).await }.boxed()),
        ]
    }
}

fn singleton<F>(name: &'static str, inner: &Arc<Inner>, work: F) -> Controller
where
    F: Fn(Arc<Inner>) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
{
    let queue = Queue::new(Backoff::DEFAULT);
    queue.add(Key::default());
    let reconcile = Arc::new(Singleton(Arc::clone(inner), work));
    Controller { name, queue: Arc::new(queue), workers: 1, limiter: None, reconcile }
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
