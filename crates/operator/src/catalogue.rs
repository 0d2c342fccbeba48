//! What the cloud offers, as far as several controllers ask for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::labels::LabelSets;
use api::nodepool::NodePool;
use api::provider::Provider;
use cluster::instance_types::InstanceType;

use crate::Context;
use crate::managed::is_pool_managed;

/// What each NodePool can choose from. A pool that is not here has nothing to choose from.
pub(crate) type Types = BTreeMap<Box<str>, Arc<[InstanceType]>>;

/// The labels of a cloud, together with those that its instance types are told apart by.
pub(crate) fn label_sets<'a>(
    provider: Provider,
    types: impl IntoIterator<Item = &'a InstanceType>,
) -> LabelSets {
    let mut offered: Vec<&String> = Vec::new();
    let offerings = types.into_iter().flat_map(|each| &each.offerings);
    for requirement in offerings.flat_map(|offering| &offering.requirements) {
        if !offered.contains(&&requirement.key) {
            offered.push(&requirement.key);
        }
    }
    LabelSets::for_provider(provider).with_well_known(offered.into_iter().cloned())
}

/// What all NodePools can choose from.
pub(crate) async fn of_all(context: &Context) -> Types {
    let pools: Vec<Arc<NodePool>> = {
        let state = context.cluster.read();
        state.node_pools.values().filter(|pool| is_pool_managed(pool, state.provider())).cloned().collect()
    };
    of(context, pools.iter()).await
}

/// What some NodePools can choose from. One whose types are not known has none; that never hides the others.
pub(crate) async fn of<'a>(context: &Context, pools: impl Iterator<Item = &'a Arc<NodePool>>) -> Types {
    let mut all = Types::new();
    for pool in pools {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        match context.cloud.instance_types(pool).await {
            Ok(types) if !types.is_empty() => {
                all.insert(name.into(), types);
            }
            Ok(_) => tracing::info!(NodePool = name, "skipping, no resolved instance types found"),
            Err(cloud::Error::Unevaluated(_)) => {}
            Err(error) => {
                tracing::error!(NodePool = name, error = %error, "skipping, unable to resolve instance types");
            }
        }
    }
    all
}
