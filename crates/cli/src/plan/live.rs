//! The cluster that the kubeconfig names, as it is now.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use api::provider::Provider;
use clock::Clock;
use cluster::state::State;
use runtime::Cluster;
use runtime::settings::Gates;
use tokio::task::JoinSet;

/// How long a cluster may take to tell what it has.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads everything that decisions look at, once.
pub(super) fn state(gates: Gates) -> Result<State> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting up")?;
    runtime.block_on(async {
        let advice = "KUBECONFIG names another file, --file one with objects";
        let client = crate::connect::client(crate::connect::config(None, advice).await?).await?;
        let kinds = gates.kinds();
        let cluster = Cluster::new(State::awaiting(Provider::Kwok, &kinds), Clock::system());
        let mut watches = JoinSet::new();
        for kind in kinds {
            watches.spawn(runtime::watch::watch(client.clone(), cluster.clone(), kind));
        }
        let listed = tokio::time::timeout(PATIENCE, cluster.listed()).await;
        listed.map_err(|_| anyhow!("the cluster did not tell within a minute what it has"))?;
        let state = cluster.read().clone();
        Ok(state)
    })
}
