//! Brings tags and identities of running machines in line, without replacing them.

use std::sync::Arc;

use api::names::annotations::azure::IN_PLACE_UPDATE_HASH;
use api::names::controllers::azure::NODE_CLAIM_IN_PLACE_UPDATE;
use api::nodeclaim::NodeClaim;
use cluster::objects::NodeClass;
use cluster::state::{Change, Key, Object, State, Watched as _};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use runtime::Again;
use runtime::controller::{Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};
use serde_json::json;

use super::{failed, is_ours};
use crate::drift::is_machine;
use crate::in_place::{Step, step};
use crate::provider::Inner;
use crate::vm::vm_name_of;

/// How many machines are looked at at the same time.
const WORKERS: usize = 10;

/// The controller.
pub(super) fn controller(inner: &Arc<Inner>) -> Controller {
    let queue = Arc::new(Queue::new(Backoff::millis(100, 60_000)));
    {
        // Settings may have changed since the last process.
        let state = inner.setup.cluster.read();
        for claim in state.node_claims.values().filter(|claim| is_ours(claim)) {
            queue.add(claim.key());
        }
    }
    let listening = Arc::clone(&queue);
    inner.setup.cluster.listen(Box::new(move |change, state| {
        for key in touched(change, state) {
            listening.add(key);
        }
    }));
    let reconcile = Arc::new(InPlace(Arc::clone(inner)));
    Controller { name: NODE_CLAIM_IN_PLACE_UPDATE, queue, workers: WORKERS, limiter: None, reconcile }
}

/// The claims to look at after a change: a new one, or all of a NodeClass that has other tags now.
fn touched(change: &Change, state: &State) -> Vec<Key> {
    match (&change.old, &change.new) {
        (old, Some(Object::NodeClaim(claim))) if is_ours(claim) => {
            let before = match old {
                Some(Object::NodeClaim(old)) => old.metadata.generation,
                _ => None,
            };
            let is_news = before.is_none() || before != claim.metadata.generation;
            if is_news { vec![claim.key()] } else { Vec::new() }
        }
        (Some(Object::NodeClass(old)), Some(Object::NodeClass(new))) if tags(old) != tags(new) => {
            let of_class = |claim: &&Arc<NodeClaim>| {
                is_ours(claim) && claim.spec.node_class_ref.name == *new.metadata.name
            };
            state.node_claims.values().filter(of_class).map(|claim| claim.key()).collect()
        }
        _ => Vec::new(),
    }
}

fn tags(class: &NodeClass) -> Option<&serde_json::Value> {
    class.spec.get("tags")
}

/// Brings machines in line.
struct InPlace(Arc<Inner>);

impl InPlace {
    async fn look_after(&self, key: &Key) -> Outcome {
        let Self(inner) = self;
        let claim = inner.setup.cluster.read().node_claims.get(key).cloned();
        let Some(claim) = claim.filter(|claim| is_ours(claim)) else { return Ok(Again::No) };
        // What is wrong with a class is said by its own condition; a class that is gone changes nothing.
        let Ok(class) = inner.class(&claim.spec.node_class_ref.name) else { return Ok(Again::No) };
        let goal = inner.goal(&class.spec, &claim, is_machine(&claim));
        let hash = goal.hash();
        match step(&claim, &hash) {
            Step::Nothing => return Ok(Again::No),
            Step::Later(again) => return Ok(again),
            Step::Compare => {}
        }
        let id = claim.status.as_ref().map_or("", |status| status.provider_id.as_str());
        let name = vm_name_of(id)
            .ok_or_else(|| failed(format!("providerID {id:?} is not that of a virtual machine of Azure")))?;
        if is_machine(&claim) {
            inner.bring_machine_in_line(name, &goal).await.map_err(failed)?;
        } else {
            inner.bring_vm_in_line(name, &goal).await.map_err(failed)?;
        }
        let change = json!({"metadata": {"annotations": {IN_PLACE_UPDATE_HASH: hash}}});
        match inner.setup.api.patch::<NodeClaim>(key, &change).await {
            Err(error) if error.is_not_found() => {}
            patched => drop(patched?),
        }
        Ok(Again::No)
    }
}

impl Reconcile for InPlace {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        self.look_after(key).boxed()
    }
}
