//! NodeOverlays of cluster files. No gate guards them here: a plan changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::nodeoverlay::NodeOverlay;
use api::provider::Provider;
use cluster::instance_types::InstanceType;
use cluster::objects::Objects;
use cluster::overlays::{PoolTypes, Rejection, evaluate};

/// Instance types as NodeOverlays correct them.
pub(super) struct Corrected {
    /// What each NodePool chooses from.
    pub(super) types: BTreeMap<Box<str>, Arc<[InstanceType]>>,
    /// Which overlays are not in force, and why.
    pub(super) rejected: Vec<(String, Rejection)>,
}

impl Corrected {
    /// The types with all overlays of some files; nothing if there are none.
    pub(super) fn of(objects: &Objects, types: &Arc<[InstanceType]>) -> Option<Self> {
        let overlays: Vec<&NodeOverlay> = objects.node_overlays.iter().collect();
        if overlays.is_empty() {
            return None;
        }
        let pools = objects.node_pools.iter().map(|pool| PoolTypes { pool, types: Arc::clone(types) });
        let evaluation = evaluate(Provider::Kwok, &overlays, &pools.collect::<Vec<_>>());
        let judged = overlays.iter().zip(evaluation.rejections);
        let named = |overlay: &NodeOverlay| overlay.metadata.name.clone().unwrap_or_default();
        let rejected = judged.filter_map(|(overlay, why)| Some((named(overlay), why?))).collect();
        Some(Self { types: evaluation.in_force.apply_to_all(types), rejected })
    }
}
