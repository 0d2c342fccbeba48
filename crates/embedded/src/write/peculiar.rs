//! What single kinds do differently when they are written.

use serde_json::{Value, json};

use crate::resources::Resource;

/// Kinds that cannot be replaced without knowing what is replaced.
pub(super) fn needs_version(resource: &Resource) -> bool {
    resource.custom.is_some()
        || matches!(
            resource.kind.as_str(),
            "CustomResourceDefinition"
                | "Lease"
                | "RuntimeClass"
                | "PodDisruptionBudget"
                | "CSIDriver"
                | "CSINode"
                | "CSIStorageCapacity"
                | "VolumeAttachment"
        )
}

/// Kinds whose rules do not look at finalizers.
pub(super) fn takes_any_finalizer(resource: &Resource) -> bool {
    resource.custom.is_none()
        && (matches!(resource.kind.as_str(), "Lease" | "RuntimeClass" | "PodDisruptionBudget")
            || resource.is("", "Event"))
}

/// Most kinds' own rules repeat those on changed metadata, which shows in the causes of a refusal.
pub(super) fn checks_metadata_once(resource: &Resource) -> bool {
    resource.custom.is_none()
        && matches!(
            resource.kind.as_str(),
            "LimitRange"
                | "PersistentVolume"
                | "PodDisruptionBudget"
                | "CSINode"
                | "VolumeAttachment"
                | "EndpointSlice"
        )
        || resource.is("", "Event")
}

/// How often a template changed is a field inside the server and an annotation outside, so that it is always there.
pub(super) fn count_template(daemon_set: &mut Value) {
    let annotations = &mut daemon_set["metadata"]["annotations"];
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.entry("deprecated.daemonset.template.generation").or_insert_with(|| Value::from("0"));
    }
}
