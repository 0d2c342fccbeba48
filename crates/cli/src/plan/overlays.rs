//! NodeOverlays of clusters. No gate guards those of files: a plan changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::nodeoverlay::NodeOverlay;
use api::nodepool::NodePool;
use api::provider::Provider;
use cluster::instance_types::InstanceType;
use cluster::objects::Objects;
use cluster::overlays::{PoolTypes, Rejection, evaluate};
use cluster::state::State;

/// Instance types as NodeOverlays correct them.
pub(super) struct Corrected {
    /// What each NodePool chooses from.
    pub(super) types: BTreeMap<Box<str>, Arc<[InstanceType]>>,
    /// Which overlays are not in force, and why.
    pub(super) rejected: Vec<(String, Rejection)>,
}

impl Corrected {
    /// The types with all overlays of some files; nothing if there are none.
    pub(super) fn of_files(
        objects: &Objects,
        types: &Arc<[InstanceType]>,
        provider: Provider,
    ) -> Option<Self> {
        Self::of(objects.node_overlays.iter(), objects.node_pools.iter(), types, provider)
    }

    /// The types with all overlays of files beside a state; without files those of the state, which are known only
    /// where the feature is on.
    pub(super) fn of_state(
        state: &State,
        of_files: Option<&[NodeOverlay]>,
        types: &Arc<[InstanceType]>,
    ) -> Option<Self> {
        let pools = state.node_pools.values().map(AsRef::as_ref);
        if let Some(overlays) = of_files {
            return Self::of(overlays.iter(), pools, types, state.provider());
        }
        let overlays = state.node_overlays.values().map(AsRef::as_ref);
        Self::of(overlays, pools, types, state.provider())
    }

    fn of<'a>(
        overlays: impl Iterator<Item = &'a NodeOverlay>,
        pools: impl Iterator<Item = &'a NodePool>,
        types: &Arc<[InstanceType]>,
        provider: Provider,
    ) -> Option<Self> {
        let overlays: Vec<&NodeOverlay> = overlays.collect();
        if overlays.is_empty() {
            return None;
        }
        let pools = pools.map(|pool| PoolTypes { pool, types: Arc::clone(types) });
        let evaluation = evaluate(provider, &overlays, &pools.collect::<Vec<_>>());
        let judged = overlays.iter().zip(evaluation.rejections);
        let named = |overlay: &NodeOverlay| overlay.metadata.name.clone().unwrap_or_default();
        let rejected = judged.filter_map(|(overlay, why)| Some((named(overlay), why?))).collect();
        Some(Self { types: evaluation.in_force.apply_to_all(types), rejected })
    }
}
