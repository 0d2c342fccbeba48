//! The cluster that the kubeconfig names, as it is now.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use api::provider::Provider;
use clock::Clock;
use cluster::state::{Kind, State};
use http::Request;
use kube::Client;
use runtime::Cluster;
use runtime::settings::Gates;
use serde_json::Value;
use tokio::task::JoinSet;

use super::provider::{self, NO_POOL, Pool};

/// How long a cluster may take to tell what it has.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads everything that decisions look at, once.
pub(super) fn state(kubeconfig: Option<&str>, chosen: Option<Provider>, gates: Gates) -> Result<State> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting up")?;
    runtime.block_on(async {
        let advice = "--kubeconfig names another file, --file one with objects";
        let client = crate::connect::client(crate::connect::config(kubeconfig, advice).await?).await?;
        let asked = tokio::time::timeout(PATIENCE, ask(&client, chosen, &gates.kinds())).await;
        let provider = asked.map_err(|_| anyhow!("the cluster did not answer within a minute"))??;
        read(&client, provider, &gates.kinds()).await
    })
}

/// Whose nodes the cluster has. Fails if it does not tell all that is needed.
async fn ask(client: &Client, chosen: Option<Provider>, kinds: &[Kind]) -> Result<Provider> {
    let pools = pools(client).await?;
    if pools.is_empty() {
        bail!("the cluster contains {NO_POOL}");
    }
    let provider = provider::find(chosen, &pools)?;
    check(client, provider, kinds).await?;
    Ok(provider)
}

async fn read(client: &Client, provider: Provider, kinds: &[Kind]) -> Result<State> {
    let cluster = Cluster::new(State::awaiting(provider, kinds), Clock::system());
    let mut watches = JoinSet::new();
    for kind in kinds.iter().copied() {
        watches.spawn(runtime::watch::watch(client.clone(), cluster.clone(), kind));
    }
    let listed = tokio::time::timeout(PATIENCE, cluster.listed()).await;
    listed.map_err(|_| {
        let missing: Vec<&str> = cluster.read().awaited().map(Kind::name).collect();
        anyhow!("the cluster did not tell within a minute what it has of {}", missing.join(", "))
    })?;
    let state = cluster.read().clone();
    Ok(state)
}

/// What the NodePools of a cluster say about whose nodes they have.
async fn pools(client: &Client) -> Result<Vec<Pool>> {
    let path = Kind::NodePool.path(Provider::Kwok, "");
    let text = match get(client, &path).await {
        Ok(text) => text,
        Err(error) if is_unknown(&error) => return Ok(Vec::new()),
        Err(error) => bail!("the cluster does not tell its NodePools: {}", answer(&error)),
    };
    let list: Value = serde_json::from_str(&text).context("reading the NodePools of the cluster")?;
    let pools = list["items"].as_array().into_iter().flatten().map(|pool| Pool {
        name: pool["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        class: serde_json::from_value(pool["spec"]["template"]["spec"]["nodeClassRef"].clone())
            .unwrap_or_default(),
    });
    Ok(pools.collect())
}

/// Asks for something of every kind: those who watch would wait for ever for one that the server refuses.
async fn check(client: &Client, provider: Provider, kinds: &[Kind]) -> Result<()> {
    let mut asked = JoinSet::new();
    for kind in kinds.iter().copied() {
        let (client, path) = (client.clone(), format!("{}?limit=1", kind.path(provider, "")));
        asked.spawn(async move { (kind, get(&client, &path).await) });
    }
    let mut refused = BTreeMap::new();
    while let Some(asked) = asked.join_next().await {
        // A kind that the server does not know has no objects.
        if let (kind, Err(error)) = asked.context("asking the cluster")?
            && !is_unknown(&error)
        {
            refused.insert(kind, format!("{}: {}", kind.name(), answer(&error)));
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let refused: Vec<String> = refused.into_values().collect();
    bail!("the cluster does not tell all that is needed: {}", refused.join("; "))
}

async fn get(client: &Client, path: &str) -> Result<String, kube::Error> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request_text(request).await
}

fn is_unknown(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// What the server says.
fn answer(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
