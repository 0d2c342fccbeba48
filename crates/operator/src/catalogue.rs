//! What the cloud offers, as far as several controllers ask for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::nodepool::NodePool;
use cluster::instance_types::InstanceType;
pub(crate) use cluster::instance_types::label_sets;
use runtime::Error;

use crate::Context;
use crate::managed::is_pool_managed;

/// What each NodePool can choose from. A pool that is not here has nothing to choose from.
pub type Types = BTreeMap<Box<str>, Arc<[InstanceType]>>;

/// How long the cloud may take to say what a NodePool can choose from.
const DEADLINE: Duration = Duration::from_mins(1);

/// What all NodePools can choose from. As [`of`], an error if the cloud does not answer in time.
pub(crate) async fn of_all(context: &Context) -> Result<Types, Error> {
    let pools: Vec<Arc<NodePool>> = {
        let state = context.cluster.read();
        state.node_pools.values().filter(|pool| is_pool_managed(pool, state.provider())).cloned().collect()
    };
    of(context, pools.iter()).await
}

/// What some NodePools can choose from. One whose types are not known has none; that never hides the others.
///
/// A cloud that does not answer in time is another matter: the pool may be the best of all a moment later, and pods
/// must not go to one of less weight because of that. Nothing is decided then.
pub(crate) async fn of<'a>(
    context: &Context,
    pools: impl Iterator<Item = &'a Arc<NodePool>>,
) -> Result<Types, Error> {
    let mut all = Types::new();
    for pool in pools {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let asked = tokio::time::timeout(DEADLINE, context.cloud.instance_types(pool)).await;
        let late = |_| Err(cloud::Error::Timeout(format!("no answer within {DEADLINE:?}")));
        match asked.unwrap_or_else(late) {
            Ok(types) if !types.is_empty() => {
                all.insert(name.into(), types);
            }
            Ok(_) => tracing::info!(NodePool = name, "skipping, no resolved instance types found"),
            Err(error) if error.is_unevaluated() => {
                tracing::debug!(NodePool = name, error = %error, "skipping");
            }
            Err(error) if error.is_timeout() => {
                let text = format!("resolving instance types of nodepool {name:?}, {error}");
                return Err(Error::Other(text));
            }
            Err(error) => {
                tracing::error!(NodePool = name, error = %error, "skipping, unable to resolve instance types");
            }
        }
    }
    Ok(all)
}
