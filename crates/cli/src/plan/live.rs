//! The cluster that the kubeconfig names, as it is now.

use std::error::Error;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use api::provider::Provider;
use clock::Clock;
use cluster::state::State;
use kube::{Client, Config};
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
        let client = connect().await?;
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

/// A client of a cluster that answers; or why there is none, in one sentence.
async fn connect() -> Result<Client> {
    let config = Config::infer().await.map_err(|error| {
        // What is tried first is what the user has most likely meant. Its text includes its own causes.
        let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        anyhow!("no cluster is known, {why}; KUBECONFIG names another file, --file one with objects")
    })?;
    let url = config.cluster_url.clone();
    let client = Client::try_from(config).map_err(|error| unreachable(&url, &error))?;
    let answer = tokio::time::timeout(PATIENCE, client.apiserver_version()).await;
    answer
        .map_err(|_| anyhow!("the cluster at {url} does not answer"))?
        .map_err(|error| unreachable(&url, &error))?;
    Ok(client)
}

fn unreachable(url: &http::Uri, error: &kube::Error) -> anyhow::Error {
    let why = match error {
        kube::Error::Api(status) => status.message.clone(),
        // Each text repeats those of its causes; the last one is about what is wrong.
        error => {
            let mut cause: &dyn Error = error;
            while let Some(next) = cause.source() {
                cause = next;
            }
            cause.to_string()
        }
    };
    anyhow!("the cluster at {url} does not answer: {why}")
}
