//! Puts NodeOverlays in force, and says which are not and why.
//!
//! All overlays are looked at together with all NodePools whenever one of them changes, because any of them can be
//! in conflict with any other.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::Conditions;
use api::names::conditions::node_overlay::VALIDATION_SUCCEEDED;
use api::names::controllers::NODE_OVERLAY;
use api::nodeoverlay::NodeOverlay;
use api::nodepool::NodePool;
use api::shared::ConditionStatus;
use cloud::Overlays;
use cluster::instance_types::InstanceType;
use cluster::overlays::{Evaluation, PoolTypes, Rejection, evaluate};
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use jiff::Timestamp;
use runtime::Error;
use runtime::compute::compute;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::limit::Limiter;
use runtime::queue::{Backoff, Queue};

use crate::managed::is_pool_managed;
use crate::wiring::Wiring;
use crate::{Context, status};

/// When overlays are looked at again if nothing changes: clouds have other types and prices by then.
const INTERVAL: Duration = Duration::from_hours(6);

/// The overlay with its new conditions.
fn decide(overlay: &NodeOverlay, rejection: Option<&Rejection>, now: Timestamp) -> NodeOverlay {
    let mut overlay = overlay.clone();
    let mut conditions = Conditions::of(&mut overlay, now);
    match rejection {
        None => conditions.set_true(VALIDATION_SUCCEEDED),
        Some(why) => {
            let (status, message) = (ConditionStatus::False, why.to_string());
            conditions.set(VALIDATION_SUCCEEDED, status, why.reason(), &message)
        }
    };
    overlay
}

struct NodeOverlays {
    context: Context,
    overlays: Overlays,
}

impl Reconcile for NodeOverlays {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        async {
            let (overlays, pools) = self.known();
            let (types, mut failures) = self.types(pools).await;
            let Evaluation { in_force, rejections } = self.evaluate(&overlays, types).await;
            // What is in force comes first: whoever sees the condition can rely on it.
            if self.overlays.replace(in_force) {
                self.context.cluster.update(State::mark_unconsolidated);
            }
            let told =
                overlays.iter().zip(&rejections).map(|(overlay, why)| self.tell(overlay, why.as_ref()));
            let mut again = Again::After(INTERVAL);
            for told in join_all(told).await {
                match told {
                    Ok(()) => {}
                    Err(error) if error.is_outrun() => again = Again::Backoff,
                    Err(error) => failures.push(error.to_string()),
                }
            }
            if failures.is_empty() { Ok(again) } else { Err(Error::Other(failures.join("; "))) }
        }
        .boxed()
    }
}

impl NodeOverlays {
    fn known(&self) -> (Vec<Arc<NodeOverlay>>, Vec<Arc<NodePool>>) {
        let state = self.context.cluster.read();
        let ours = |pool: &&Arc<NodePool>| is_pool_managed(pool, state.provider());
        let pools = state.node_pools.values().filter(ours).cloned().collect();
        (state.node_overlays.values().cloned().collect(), pools)
    }

    /// What pools can choose from, and why that is not known of others.
    async fn types(
        &self,
        pools: Vec<Arc<NodePool>>,
    ) -> (Vec<(Arc<NodePool>, Arc<[InstanceType]>)>, Vec<String>) {
        let (mut known, mut failures) = (Vec::new(), Vec::new());
        for pool in pools {
            match self.context.cloud.listed_instance_types(&pool).await {
                Ok(types) => known.push((pool, types)),
                Err(error) => {
                    let name = pool.metadata.name.as_deref().unwrap_or_default();
                    failures.push(format!("listing instance types, {error} (NodePool={name})"));
                }
            }
        }
        (known, failures)
    }

    async fn evaluate(
        &self,
        overlays: &[Arc<NodeOverlay>],
        types: Vec<(Arc<NodePool>, Arc<[InstanceType]>)>,
    ) -> Evaluation {
        let (provider, overlays) = (self.context.provider(), overlays.to_vec());
        compute(move || {
            let overlays: Vec<&NodeOverlay> = overlays.iter().map(AsRef::as_ref).collect();
            let pools = types.iter().map(|(pool, types)| PoolTypes { pool, types: Arc::clone(types) });
            evaluate(provider, &overlays, &pools.collect::<Vec<_>>())
        })
        .await
    }

    async fn tell(&self, overlay: &Arc<NodeOverlay>, why: Option<&Rejection>) -> Result<(), Error> {
        let decided = decide(overlay, why, self.context.now());
        if let Some(change) = status::conditions(&**overlay, &decided) {
            self.context.api.patch_status::<NodeOverlay>(&overlay.key(), &change).await?;
        }
        Ok(())
    }
}

/// The generation of what overlays depend on, and which object it is: what users write, not what controllers do.
fn generation(object: Option<&Object>) -> Option<(&str, i64)> {
    let object = object?;
    let generation = match object {
        Object::NodeOverlay(overlay) => overlay.metadata.generation.unwrap_or_default(),
        Object::NodePool(pool) => pool.metadata.generation.unwrap_or_default(),
        Object::NodeClass(class) => class.metadata.generation,
        _ => return None,
    };
    Some((object.meta().uid(), generation))
}

/// Anything that changes what overlays say, or what they are about, concerns all of them.
fn touch(change: &Change, _: &State, queue: &Queue) {
    if generation(change.old.as_ref()) != generation(change.new.as_ref()) {
        queue.add(Key::cluster(NODE_OVERLAY));
    }
}

/// The controller, if overlays are wanted.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let Some(overlays) = context.overlays.clone() else { return Vec::new() };
    let reconcile = NodeOverlays { context: context.clone(), overlays };
    let wiring = Wiring {
        backoff: Backoff::millis(100, 60_000),
        limiter: Some(Limiter::new(10.0, 100)),
        ..Wiring::new(NODE_OVERLAY, 1)
    };
    let controller = wiring.listening(context, reconcile, touch);
    // Pools may be there before anything changes, and wait for it.
    controller.queue.add(Key::cluster(NODE_OVERLAY));
    vec![controller]
}

#[cfg(test)]
mod tests;
