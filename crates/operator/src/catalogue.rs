//! What the cloud offers, as far as several controllers ask for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::nodepool::NodePool;
use cluster::instance_types::InstanceType;
pub(crate) use cluster::instance_types::label_sets;

use crate::Context;
use crate::managed::is_pool_managed;

/// What each NodePool can choose from. A pool that is not here has nothing to choose from.
pub type Types = BTreeMap<Box<str>, Arc<[InstanceType]>>;

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
            Err(error) if error.is_unevaluated() => {
                tracing::debug!(NodePool = name, error = %error, "skipping");
            }
            Err(error) => {
                tracing::error!(NodePool = name, error = %error, "skipping, unable to resolve instance types");
            }
        }
    }
    all
}
