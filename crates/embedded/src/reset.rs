//! Which fields a write through one endpoint cannot change, so that nobody owns them through it.

use crate::resources::Resource;

/// The fields that are put back by writes through the main resource or a subresource, as paths with dots.
pub(crate) fn reset_fields(resource: &Resource, subresource: &str) -> &'static [&'static str] {
    let has_status = match &resource.custom {
        Some(custom) => custom.status,
        None => resource.subresource("status").is_some(),
    };
    match (subresource, has_status) {
        ("status", _) => of_status(resource),
        ("", true) => &["status"],
        _ => &[],
    }
}

fn of_status(resource: &Resource) -> &'static [&'static str] {
    if resource.custom.is_some() {
        return &["metadata", "spec"];
    }
    match resource.kind.as_str() {
        "Pod" => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        "Deployment" => &["spec", "metadata.labels"],
        "VolumeAttachment" | "ResourceClaim" | "CustomResourceDefinition" => &["metadata", "spec"],
        _ => &["spec"],
    }
}
