//! The cluster that the kubeconfig names, as it is now.

use std::time::Duration;

use anyhow::{Context, Result};
use api::provider::Provider;
use clock::Clock;
use cluster::state::State;
use runtime::{Cluster, Settings};
use tokio::task::JoinSet;

/// How long a cluster may take to tell what it has.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads everything that decisions look at, once.
pub(super) fn state() -> Result<State> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting up")?;
    runtime.block_on(async {
        let client = kube::Client::try_default().await.context("connecting to the cluster")?;
        let kinds = Settings::default().gates.kinds();
        let cluster = Cluster::new(State::awaiting(Provider::Kwok, &kinds), Clock::system());
        let mut watches = JoinSet::new();
        for kind in kinds {
            watches.spawn(runtime::watch::watch(client.clone(), cluster.clone(), kind));
        }
        tokio::time::timeout(PATIENCE, cluster.listed())
            .await
            .context("the cluster did not answer within a minute")?;
        let state = cluster.read().clone();
        Ok(state)
    })
}
