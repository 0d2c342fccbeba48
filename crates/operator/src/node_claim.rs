//! NodeClaims: from the launch of an instance to its end.

mod consistency;
pub(crate) mod dra;
mod expiration;
mod garbage_collection;
mod hydration;
pub mod lifecycle;
mod pod_events;
pub(crate) mod reboot;

use std::sync::Arc;

use api::names::metrics::{NODECLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED};
use api::names::{annotations, controllers as names, labels, values};
use api::nodeclaim::{NodeClaim, NodeClaimStatus};
use cluster::state::{Meta, Watched};
use runtime::Error;
use runtime::controller::Controller;
use runtime::queue::Backoff;
use serde_json::{Value, json};

use crate::Context;
use crate::watching::controller;
use crate::wiring::Wiring;
use expiration::Expiration;
use garbage_collection::GarbageCollection;
use pod_events::PodEvents;

/// The controllers of NodeClaims, listening already.
///
/// Upstream limits how often keys come back after failures; here that is the back-off of each key alone, so that
/// no key waits for others.
pub fn controllers(context: &Context) -> Vec<Controller> {
    let settings = &context.settings;
    let launching = Wiring {
        backoff: Backoff::millis(1000, 60_000),
        ..Wiring::new(names::NODE_CLAIM_LIFECYCLE, settings.workers(1000, 5000))
    };
    let hydrating = Wiring {
        backoff: Backoff::millis(100, 60_000),
        ..Wiring::new(names::NODE_CLAIM_HYDRATION, settings.workers(1000, 5000))
    };
    let collecting = Wiring {
        backoff: Backoff::millis(1000, 120_000),
        ..Wiring::new(names::NODE_CLAIM_GARBAGE_COLLECTION, 1)
    };
    let comparing = Wiring::new(names::NODE_CLAIM_CONSISTENCY, settings.workers(10, 1000));
    vec![
        controller(context, launching, lifecycle::Lifecycle::new(context)),
        controller(context, hydrating, hydration::Hydration::new(context)),
        controller(context, Wiring::new(names::NODE_CLAIM_EXPIRATION, 1), Expiration::new(context)),
        controller(context, Wiring::new(names::NODE_CLAIM_POD_EVENTS, 1), PodEvents::new(context)),
        controller(context, collecting, GarbageCollection::new(context)),
        controller(context, comparing, consistency::Consistency::new(context)),
    ]
}

/// The name of a claim.
pub(crate) fn name(claim: &NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

/// A label of a claim; empty when absent.
pub(crate) fn label<'a>(claim: &'a NodeClaim, key: &str) -> &'a str {
    claim.metadata.labels.as_ref().and_then(|labels| labels.get(key)).map_or("", |value| value)
}

/// An annotation of a claim.
pub(crate) fn annotation<'a>(claim: &'a NodeClaim, key: &str) -> Option<&'a str> {
    claim.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The instance of a claim; empty before the launch.
pub(crate) fn provider_id(claim: &NodeClaim) -> &str {
    claim.status.as_ref().map_or("", |status| &status.provider_id)
}

/// Whether the core still has something to do before a claim may go.
pub(crate) fn has_finalizer(claim: &NodeClaim) -> bool {
    let finalizers = claim.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|finalizer| finalizer == api::names::finalizers::TERMINATION)
}

/// How patiently the node of a claim is drained, as metrics name it.
pub(crate) fn termination_mode(claim: &NodeClaim) -> &'static str {
    match claim.spec.termination_grace_period {
        None => values::GRACEFUL,
        Some(period) if period.as_nanos() <= 0 => values::FORCEFUL,
        Some(_) => values::EVENTUAL,
    }
}

/// When the pods of a claim's node must be gone, as it was decided when the claim was deleted.
pub(crate) fn deadline(claim: &NodeClaim) -> Option<Result<jiff::Timestamp, &str>> {
    let text = annotation(claim, annotations::TERMINATION_TIMESTAMP)?;
    Some(text.parse().map_err(|_| text))
}

/// Deletes a claim for a reason that metrics show, with so many pods that must move. It may be gone already.
pub(crate) async fn disrupt(
    context: &Context,
    claim: &NodeClaim,
    reason: &'static str,
    pods: Option<usize>,
) -> Result<(), Error> {
    match context.api.delete(claim).await {
        Ok(()) => {}
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
    }
    let (pool, capacity_type) = (label(claim, labels::NODEPOOL), label(claim, labels::CAPACITY_TYPE));
    let series = [reason, pool, capacity_type, "", termination_mode(claim)];
    context.metrics.add(&NODECLAIMS_DISRUPTED, &series, 1.0);
    if let Some(pods) = pods {
        #[expect(clippy::cast_precision_loss, reason = "a node has a few hundred pods")]
        context.metrics.add(&PODS_DISRUPTION_INITIATED, &series, pods as f64);
    }
    Ok(())
}

/// Metadata by which a patch is refused if somebody else was faster.
pub(crate) fn lock(claim: &NodeClaim) -> Value {
    json!({"resourceVersion": claim.metadata.version().to_string()})
}

/// The patch of labels and annotations from one claim to another of the same name, if they differ.
/// Nothing is ever removed.
pub(crate) fn metadata_patch(before: &NodeClaim, after: &NodeClaim) -> Option<Value> {
    let news = |before: &Option<Map>, after: &Option<Map>| -> Option<Map> {
        let is_new = |key: &String, value: &String| {
            before.as_ref().and_then(|before| before.get(key)).is_none_or(|before| before != value)
        };
        let new: Map = after
            .iter()
            .flatten()
            .filter(|(key, value)| is_new(key, value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        (!new.is_empty()).then_some(new)
    };
    let labels = news(&before.metadata.labels, &after.metadata.labels);
    let annotations = news(&before.metadata.annotations, &after.metadata.annotations);
    if labels.is_none() && annotations.is_none() {
        return None;
    }
    let mut metadata = json!({});
    if let Some(labels) = labels {
        metadata["labels"] = json!(labels);
    }
    if let Some(annotations) = annotations {
        metadata["annotations"] = json!(annotations);
    }
    Some(json!({"metadata": metadata}))
}

type Map = std::collections::BTreeMap<String, String>;

/// What differs between the status of two versions of a claim, if anything does.
fn status_change(before: &NodeClaim, after: &NodeClaim) -> Option<Value> {
    let fields = |claim: &NodeClaim| serde_json::to_value(claim.status.as_ref().unwrap_or(&EMPTY));
    // What came from JSON goes back to JSON.
    let (Ok(Value::Object(old)), Ok(Value::Object(new))) = (fields(before), fields(after)) else {
        return None;
    };
    let changed: serde_json::Map<String, Value> =
        new.into_iter().filter(|(key, value)| old.get(key) != Some(value)).collect();
    (!changed.is_empty()).then(|| changed.into())
}

/// Writes what has changed of the status of a claim; the claim as it is then, or nothing if nothing has changed.
///
/// Lists are replaced as a whole, so it is refused if somebody else has changed the status. Who changed only
/// labels and the like is not in the way.
pub(crate) async fn write_status(
    context: &Context,
    before: &NodeClaim,
    after: &NodeClaim,
) -> Result<Option<Arc<NodeClaim>>, Error> {
    let Some(status) = status_change(before, after) else { return Ok(None) };
    let key = before.key();
    let metadata = {
        let state = context.cluster.read();
        let latest = state.node_claims.get(&key).filter(|latest| latest.metadata.uid == before.metadata.uid);
        lock(latest.filter(|latest| latest.status == before.status).map_or(before, |latest| latest))
    };
    let change = json!({"metadata": metadata, "status": status});
    context.api.patch_status(&key, &change).await.map(Some)
}

static EMPTY: NodeClaimStatus = NodeClaimStatus {
    node_name: String::new(),
    provider_id: String::new(),
    image_id: String::new(),
    capacity: std::collections::BTreeMap::new(),
    allocatable: std::collections::BTreeMap::new(),
    conditions: Vec::new(),
    last_pod_event_time: None,
};
