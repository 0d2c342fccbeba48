//! One volume: its phase, and what becomes of it when its claim is gone.

use serde_json::json;

use crate::action::Outcome;
use crate::cache::Cache;
use crate::names;
use crate::object::{Key, Kind, annotation, has_finalizer, uid};

pub(crate) fn decide(cache: &Cache, key: &Key) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(volume) = cache.volumes.get(key) else { return outcome };
    let Some(spec) = &volume.spec else { return outcome };
    let claim = spec.claim_ref.as_ref().map(|reference| {
        let (namespace, name) = (reference.namespace.as_deref(), reference.name.as_deref());
        let claim = cache.claims.find(namespace.unwrap_or_default(), name.unwrap_or_default());
        let of = reference.uid.as_deref().unwrap_or_default();
        claim.filter(|claim| of.is_empty() || uid(&claim.metadata) == of)
    });
    let reserved = spec.claim_ref.as_ref().is_some_and(|reference| reference.uid.is_none());
    let phase = match claim {
        None => "Available",
        Some(None) if reserved => "Available",
        Some(None) => "Released",
        Some(Some(claim)) => {
            let bound = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
            if bound == Some(&key.name) { "Bound" } else { "Available" }
        }
    };
    if volume.metadata.deletion_timestamp.is_some() {
        if phase != "Bound" && has_finalizer(&volume.metadata, names::PV_PROTECTION) {
            let left =
                volume.metadata.finalizers.iter().flatten().filter(|name| *name != names::PV_PROTECTION);
            let left: Vec<_> = left.collect();
            outcome.patch(
                Kind::PersistentVolume,
                &volume.metadata,
                json!({"metadata": {"finalizers": left}}),
            );
        }
        return outcome;
    }
    let current = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    if current != Some(phase) {
        outcome.patch_status(Kind::PersistentVolume, &volume.metadata, json!({"status": {"phase": phase}}));
    }
    let deletes = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
    // Only what a provisioner made can be taken back by it.
    if phase == "Released" && deletes && annotation(&volume.metadata, names::PROVISIONED_BY).is_some() {
        outcome.delete(Kind::PersistentVolume, &volume.metadata, None);
    }
    outcome
}
