//! Keeps room for pods to come: finds out how much each buffer asks for, says so in its status, and wakes the
//! provisioner, which finds places for it.
//!
//! ```text
//!   buffer, PodTemplate, workload ─► status ─► provisioner: virtual pods in its plan
//!                                                  └─► room: what became of them
//! ```

pub(crate) mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::capacitybuffer::{CapacityBuffer, CapacityBufferStatus, LocalObjectRef};
use api::conditions::set_plain;
use api::names::conditions::capacity_buffer::READY_FOR_PROVISIONING;
use api::names::controllers::CAPACITY_BUFFER;
use api::names::messages::BUFFER_RESOLVED;
use api::names::reasons::capacity_buffer::RESOLVED;
use api::shared::ConditionStatus;
use cluster::buffers::{Resolved, Unresolved, resolve, scalable_kind};
use cluster::state::{Change, Key, Object, State, Watched};
use cluster::state_node::claim_provider_id;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::Backoff;
use serde_json::{Value, json};

use crate::Context;
use crate::provisioner::batcher::Batcher;
use crate::status::lock;
use crate::watching::{self, Watching};
use crate::wiring::Wiring;

/// How often a buffer is looked at if nothing happens, so that room that was taken is kept anew.
const INTERVAL: Again = Again::secs(30);
/// When it is looked at again if somebody else has changed it at the same time.
const SOON: Again = Again::secs(1);

/// The buffer as it is to be after a look at what it asks for.
fn decide(
    buffer: &CapacityBuffer,
    resolved: Result<Resolved<'_>, Unresolved>,
    now: Timestamp,
) -> CapacityBuffer {
    let mut after = buffer.clone();
    match resolved {
        Ok(Resolved { replicas, pod_template_generation, .. }) => {
            let status = after.status.get_or_insert_default();
            status.replicas = Some(i32::try_from(replicas).unwrap_or(i32::MAX));
            status.pod_template_ref.clone_from(&buffer.spec.pod_template_ref);
            status.pod_template_generation = pod_template_generation;
            status.provisioning_strategy = Some(buffer.spec.provisioning_strategy.clone());
            let resolved = (ConditionStatus::True, RESOLVED, BUFFER_RESOLVED);
            set_plain(&mut after, READY_FOR_PROVISIONING, resolved, now);
        }
        Err(unresolved) => {
            let message = unresolved.to_string();
            let unresolved = (ConditionStatus::False, unresolved.reason(), &*message);
            set_plain(&mut after, READY_FOR_PROVISIONING, unresolved, now);
        }
    }
    after
}

/// The patch that makes the status of a buffer what it is in `after`, if that differs.
fn patch(before: &CapacityBuffer, after: &CapacityBuffer) -> Option<Value> {
    let (before_status, after_status) = (before.status.as_ref(), after.status.as_ref()?);
    if before_status == Some(after_status) {
        return None;
    }
    let CapacityBufferStatus {
        pod_template_ref,
        replicas,
        pod_template_generation,
        provisioning_strategy,
        conditions,
    } = after_status;
    let name = pod_template_ref.as_ref().map(|LocalObjectRef { name }| json!({"name": name}));
    // What is not there any more is said to be nothing, so that it goes.
    let status = json!({
        "podTemplateRef": name,
        "replicas": replicas,
        "podTemplateGeneration": pod_template_generation,
        "provisioningStrategy": provisioning_strategy,
        "conditions": conditions,
    });
    Some(json!({"metadata": lock(before), "status": status}))
}

struct Buffers {
    context: Context,
    batcher: Arc<Batcher>,
}

impl Reconcile for Buffers {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let now = self.context.now();
            let known = {
                let state = self.context.cluster.read();
                let buffer =
                    state.capacity_buffers.get(key).filter(|it| !Watched::meta(&***it).is_deleting());
                buffer.map(|buffer| (Arc::clone(buffer), decide(buffer, resolve(&state, buffer), now)))
            };
            let Some((buffer, after)) = known else {
                // What was kept for it is free.
                self.batcher.trigger("");
                return Ok(Again::No);
            };
            if let Some(patch) = patch(&buffer, &after) {
                match self.context.api.patch_status::<CapacityBuffer>(key, &patch).await {
                    Ok(_) => {}
                    Err(error) if error.is_outrun() => return Ok(SOON),
                    Err(error) => return Err(error),
                }
            }
            self.batcher.trigger(Watched::meta(&*buffer).uid());
            Ok(INTERVAL)
        }
        .boxed()
    }
}

/// The generation of an object, and which object it is.
fn generation(object: &Object) -> (&str, i64) {
    let generation = match object {
        Object::CapacityBuffer(buffer) => buffer.metadata.generation.unwrap_or_default(),
        Object::Deployment(deployment) => deployment.metadata.generation,
        Object::ReplicaSet(set) => set.metadata.generation,
        Object::StatefulSet(set) => set.metadata.generation,
        _ => 0,
    };
    (object.meta().uid(), generation)
}

/// Whether what is asked for has changed, rather than what came of it.
fn is_news(change: &Change) -> bool {
    let deleting = |object: &Object| object.meta().is_deleting();
    change.old.as_ref().map(|old| (generation(old), deleting(old)))
        != change.new.as_ref().map(|new| (generation(new), deleting(new)))
}

/// The buffers that a change concerns.
fn affected(change: &Change, state: &State) -> Vec<Key> {
    let key = change.key();
    let referring = |refers: &dyn Fn(&CapacityBuffer) -> bool| {
        let buffers = state.capacity_buffers.in_namespace(&key.namespace);
        buffers.filter(|buffer| refers(buffer)).map(|buffer| Watched::key(&**buffer)).collect()
    };
    match change.object() {
        Object::CapacityBuffer(_) if is_news(change) => vec![key],
        Object::PodTemplate(_) => {
            referring(&|buffer| buffer.spec.pod_template_ref.as_ref().is_some_and(|it| *it.name == *key.name))
        }
        object @ (Object::Deployment(_) | Object::ReplicaSet(_) | Object::StatefulSet(_))
            if is_news(change) =>
        {
            referring(&|buffer| {
                let reference = buffer.spec.scalable_ref.as_ref();
                reference.is_some_and(|it| *it.name == *key.name && scalable_kind(it) == Some(object.kind()))
            })
        }
        _ => Vec::new(),
    }
}

impl Watching for Buffers {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        affected(change, state)
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.capacity_buffers.keys().cloned().collect()
    }
}

/// Whether a claim has just got its instance.
fn is_launched(change: &Change) -> bool {
    let has_instance = |object: &Option<Object>| match object {
        Some(Object::NodeClaim(claim)) => !claim_provider_id(claim).is_empty(),
        _ => false,
    };
    has_instance(&change.new) && !has_instance(&change.old)
}

/// The controller, which wakes the provisioner through its batcher.
pub(crate) fn controller(context: &Context, batcher: &Arc<Batcher>) -> Controller {
    let woken = Arc::clone(batcher);
    // An instance that is there for a buffer is empty. It is known whose it is before anybody removes it.
    context.cluster.listen(Box::new(move |change, state| {
        if !state.capacity_buffers.is_empty() && state.is_listed() && is_launched(change) {
            woken.trigger("");
        }
    }));
    let buffers = Buffers { context: context.clone(), batcher: Arc::clone(batcher) };
    // There may be many of them, each looked at now and then. A limit for all together would make those wait that
    // have changed.
    let wiring = Wiring { backoff: Backoff::millis(100, 60_000), ..Wiring::new(CAPACITY_BUFFER, 10) };
    watching::controller(context, wiring, buffers)
}
