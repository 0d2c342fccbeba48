//! The controllers of this cloud, a file or folder each: `decide` is pure, and acting is thin.

mod instance_gc;
mod node_class;
mod node_class_hash;
mod refresh;

use std::sync::Arc;

use api::names::controllers::aws as names;
use cluster::state::{Key, Kind, Object};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::controller::{Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};

use crate::provider::{Aws, Inner};

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
        all.push(of_classes(names::NODE_CLASS, inner, node_class::NodeClasses::new(Arc::clone(inner)), true));
        all.push(of_classes(names::NODE_CLASS_HASH, inner, node_class_hash::Hash(Arc::clone(inner)), false));
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
