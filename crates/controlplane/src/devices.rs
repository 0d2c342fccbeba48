//! ResourceClaims of pods: whether the devices that a pod wants are there.
//!
//! Nobody here allocates devices: a claim counts once somebody has written its allocation.

use k8s_openapi::api::core::v1::PodResourceClaim;

use crate::cache::Cache;
use crate::object::Key;
use crate::pod::Pod;

/// What is known of the devices that a pod wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Devices {
    /// It has them, or wants none.
    Allocated,
    /// A claim is not there; kube-scheduler does not even try such a pod.
    Missing(String),
    /// The claims are there, but have no devices.
    Unallocated,
}

/// The claims that a pod names.
pub(crate) fn claims(pod: &Pod) -> &[PodResourceClaim] {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default()
}

/// What is known of the devices that a pod wants.
pub(crate) fn of(cache: &Cache, pod: &Pod) -> Devices {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut devices = Devices::Allocated;
    for wanted in claims(pod) {
        let name = match name(pod, wanted) {
            Name::Is(name) => name,
            Name::Nothing => continue,
            Name::Unknown => {
                let template = wanted.resource_claim_template_name.as_deref().unwrap_or_default();
                return Devices::Missing(format!("no ResourceClaim has been made of template {template:?}"));
            }
        };
        let Some(claim) = cache.resource_claims.get(&Key::new(namespace, name)) else {
            return Devices::Missing(format!("resourceclaim.resource.k8s.io {name:?} not found"));
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Devices::Missing(format!("resourceclaim {name:?} is being deleted"));
        }
        if claim.status.as_ref().is_none_or(|status| status.allocation.is_none()) {
            devices = Devices::Unallocated;
        }
    }
    devices
}

enum Name<'a> {
    Is(&'a str),
    /// The template gives no claim, which is all right.
    Nothing,
    /// Nobody has made a claim of the template yet.
    Unknown,
}

fn name<'a>(pod: &'a Pod, wanted: &'a PodResourceClaim) -> Name<'a> {
    if let Some(name) = &wanted.resource_claim_name {
        return Name::Is(name);
    }
    let made = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    match made.into_iter().find(|made| made.name == wanted.name) {
        Some(made) => made.resource_claim_name.as_deref().map_or(Name::Nothing, Name::Is),
        None => Name::Unknown,
    }
}
