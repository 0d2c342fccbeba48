//! One claim: finding or making its volume, binding it, and letting it go when nobody uses it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};
use units::Quantity;

use super::NO_PROVISIONER;
use crate::action::Outcome;
use crate::cache::{Cache, node_of};
use crate::names;
use crate::object::{Key, Kind, annotation, has_finalizer, label, uid};
use crate::pod::is_finished;
use crate::selector::{matches, selector_matches};

/// Who says why a claim waits.
const COMPONENT: &str = "persistentvolume-controller";

pub(crate) fn decide(cache: &Cache, key: &Key) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(claim) = cache.claims.get(key) else { return outcome };
    let Some(spec) = &claim.spec else { return outcome };
    if claim.metadata.deletion_timestamp.is_some() {
        let in_use = cache.pods_with_claim(key).any(|pod| !is_finished(pod) && node_of(pod).is_some());
        if !in_use && has_finalizer(&claim.metadata, names::PVC_PROTECTION) {
            let left =
                claim.metadata.finalizers.iter().flatten().filter(|name| *name != names::PVC_PROTECTION);
            let left: Vec<_> = left.collect();
            outcome.patch(
                Kind::PersistentVolumeClaim,
                &claim.metadata,
                json!({"metadata": {"finalizers": left}}),
            );
        }
        return outcome;
    }
    if let Some(name) = spec.volume_name.as_deref().filter(|name| !name.is_empty()) {
        if let Some(volume) = cache.volumes.get(&Key::cluster(name)) {
            bind(claim, volume, &mut outcome);
        } else if phase(claim) != "Pending" && phase(claim) != "Lost" {
            outcome.patch_status(
                Kind::PersistentVolumeClaim,
                &claim.metadata,
                json!({"status": {"phase": "Lost"}}),
            );
        }
        return outcome;
    }
    if let Some(volume) = cache.volumes.values().find(|volume| is_for(volume, claim)) {
        bind(claim, volume, &mut outcome);
        return outcome;
    }
    let class_name = class_name(cache, spec);
    let class = cache.storage_classes.get(&Key::cluster(class_name)).map(Arc::as_ref);
    let waits = class.and_then(|class| class.volume_binding_mode.as_deref()) == Some("WaitForFirstConsumer");
    let node = first_consumer(cache, key, claim);
    let about = (Kind::PersistentVolumeClaim, &claim.metadata);
    if waits && node.is_none() {
        let message = "waiting for first consumer to be created before binding".to_owned();
        outcome.note(about, COMPONENT, "WaitForFirstConsumer", message);
        return outcome;
    }
    if let Some(volume) = fitting(cache, spec, class_name, node) {
        bind(claim, volume, &mut outcome);
    } else if let Some(class) = class.filter(|class| class.provisioner != NO_PROVISIONER) {
        provision(claim, spec, class, &zone(cache, node), &mut outcome);
    } else if class.is_none() && !class_name.is_empty() {
        let message = format!("storageclass.storage.k8s.io \"{class_name}\" not found");
        outcome.note(about, COMPONENT, "ProvisioningFailed", message);
    } else if class_name.is_empty() {
        let message = "no persistent volumes available for this claim and no storage class is set".to_owned();
        outcome.note(about, COMPONENT, "FailedBinding", message);
    }
    outcome
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// The class that a claim names; the default one if it names none. An empty name is no class at all.
fn class_name<'a>(cache: &'a Cache, spec: &'a PersistentVolumeClaimSpec) -> &'a str {
    if let Some(name) = spec.storage_class_name.as_deref() {
        return name;
    }
    let is_default =
        |class: &&Arc<StorageClass>| annotation(&class.metadata, names::DEFAULT_CLASS) == Some("true");
    let default = cache.storage_classes.values().find(is_default);
    default.and_then(|class| class.metadata.name.as_deref()).unwrap_or_default()
}

/// The node that the first pod of a claim is going to run on.
fn first_consumer<'a>(cache: &'a Cache, key: &Key, claim: &'a PersistentVolumeClaim) -> Option<&'a Node> {
    let selected = annotation(&claim.metadata, names::SELECTED_NODE);
    let bound = || cache.pods_with_claim(key).filter(|pod| !is_finished(pod)).find_map(|pod| node_of(pod));
    let name = selected.or_else(bound)?;
    cache.nodes.get(&Key::cluster(name)).map(Arc::as_ref)
}

/// The zone and region of a volume: those of the node, or of the first node that has any.
fn zone<'a>(cache: &'a Cache, node: Option<&'a Node>) -> Vec<(&'static str, &'a str)> {
    let of = |node: &'a Node| -> Vec<(&'static str, &'a str)> {
        let keys = [names::ZONE, names::REGION];
        keys.into_iter().filter_map(|key| label(&node.metadata, key).map(|value| (key, value))).collect()
    };
    match node {
        Some(node) => of(node),
        None => {
            cache.nodes.values().map(|node| of(node)).find(|labels| !labels.is_empty()).unwrap_or_default()
        }
    }
}

/// Whether a volume was made for this claim, or reserved for it by name.
fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    reference.is_some_and(|reference| {
        reference.namespace == claim.metadata.namespace
            && reference.name == claim.metadata.name
            && reference.uid.as_deref().is_none_or(|of| of.is_empty() || of == uid(&claim.metadata))
    })
}

/// The smallest free volume that fits.
fn fitting<'a>(
    cache: &'a Cache,
    spec: &PersistentVolumeClaimSpec,
    class: &str,
    node: Option<&Node>,
) -> Option<&'a Arc<PersistentVolume>> {
    let amount = |text: &str| text.parse::<Quantity>().ok();
    let wanted = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()?.get("storage"));
    let wanted = wanted.and_then(|wanted| amount(&wanted.0)).unwrap_or_default();
    let size = |volume: &PersistentVolume| {
        let capacity = volume.spec.as_ref()?.capacity.as_ref()?.get("storage")?;
        amount(&capacity.0)
    };
    let fits = |volume: &&Arc<PersistentVolume>| {
        let Some(of) = &volume.spec else { return false };
        let modes = of.access_modes.as_deref().unwrap_or_default();
        let reachable = match (&of.node_affinity, node) {
            (Some(affinity), Some(node)) => affinity.required.as_ref().is_none_or(|required| {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                selector_matches(required, node.metadata.labels.as_ref(), name)
            }),
            _ => true,
        };
        let selected =
            spec.selector.as_ref().is_none_or(|selector| matches(selector, volume.metadata.labels.as_ref()));
        of.claim_ref.is_none()
            && volume.metadata.deletion_timestamp.is_none()
            && of.storage_class_name.as_deref().unwrap_or_default() == class
            && of.volume_mode.as_deref().unwrap_or("Filesystem")
                == spec.volume_mode.as_deref().unwrap_or("Filesystem")
            && spec.access_modes.iter().flatten().all(|mode| modes.contains(mode))
            && size(volume).is_some_and(|size| size >= wanted)
            && reachable
            && selected
    };
    cache.volumes.values().filter(fits).min_by_key(|volume| (size(volume), volume.metadata.name.clone()))
}

/// A new volume, as a driver would make it.
fn provision(
    claim: &PersistentVolumeClaim,
    spec: &PersistentVolumeClaimSpec,
    class: &StorageClass,
    topology: &[(&'static str, &str)],
    outcome: &mut Outcome,
) {
    let name = format!("pvc-{}", uid(&claim.metadata));
    let storage = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()?.get("storage"));
    let expressions: Vec<Value> = topology
        .iter()
        .map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}))
        .collect();
    let mut body = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {names::PROVISIONED_BY: class.provisioner}},
        "spec": {
            "accessModes": spec.access_modes, "capacity": {"storage": storage},
            "volumeMode": spec.volume_mode.as_deref().unwrap_or("Filesystem"),
            "storageClassName": class.metadata.name,
            "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.metadata.name,
                "namespace": claim.metadata.namespace, "uid": claim.metadata.uid,
            },
            "csi": {"driver": class.provisioner, "volumeHandle": name},
        },
    });
    if !expressions.is_empty() {
        body["spec"]["nodeAffinity"] =
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}});
    }
    outcome.create(Kind::PersistentVolume, "", &Arc::new(body));
    if annotation(&claim.metadata, names::STORAGE_PROVISIONER).is_none() {
        let annotations = json!({names::STORAGE_PROVISIONER: class.provisioner});
        outcome.patch(
            Kind::PersistentVolumeClaim,
            &claim.metadata,
            json!({"metadata": {"annotations": annotations}}),
        );
    }
}

/// Binds the two to each other, as far as they are not.
fn bind(claim: &PersistentVolumeClaim, volume: &PersistentVolume, outcome: &mut Outcome) {
    let Some(volume_spec) = &volume.spec else { return };
    if !is_for(volume, claim) && volume_spec.claim_ref.is_some() {
        return;
    }
    let known = volume_spec.claim_ref.as_ref().and_then(|reference| reference.uid.as_deref());
    if known != Some(uid(&claim.metadata)) {
        let reference = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.metadata.name,
            "namespace": claim.metadata.namespace, "uid": claim.metadata.uid,
        });
        let body = json!({
            "metadata": {"annotations": {names::BOUND_BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": reference},
        });
        outcome.patch(Kind::PersistentVolume, &volume.metadata, body);
    }
    let spec = claim.spec.as_ref();
    let named = spec.and_then(|spec| spec.volume_name.as_ref()) == volume.metadata.name.as_ref();
    if !named || annotation(&claim.metadata, names::BIND_COMPLETED).is_none() {
        let mut annotations = json!({names::BIND_COMPLETED: "yes"});
        if !named {
            annotations[names::BOUND_BY_CONTROLLER] = json!("yes");
        }
        let body = json!({
            "metadata": {"annotations": annotations}, "spec": {"volumeName": volume.metadata.name},
        });
        outcome.patch(Kind::PersistentVolumeClaim, &claim.metadata, body);
        return;
    }
    if phase(claim) != "Bound" {
        let body = json!({"status": {
            "phase": "Bound", "accessModes": volume_spec.access_modes, "capacity": volume_spec.capacity,
        }});
        outcome.patch_status(Kind::PersistentVolumeClaim, &claim.metadata, body);
    }
}

#[cfg(test)]
mod tests;
