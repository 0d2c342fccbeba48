//! The cluster that a command talks to: that of a kubeconfig, or the one that this process runs in. What is wrong with
//! it is said in one sentence.

use std::error::Error;
use std::time::Duration;

use anyhow::{Result, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// How long a cluster may take to answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// The cluster of a kubeconfig; if none is named, the one that this process is in, else that of the usual kubeconfig.
/// `advice` says what else can be done.
pub(crate) async fn config(kubeconfig: Option<&str>, advice: &str) -> Result<Config> {
    let Some(path) = kubeconfig else {
        return Config::infer().await.map_err(|error| {
            // In a cluster, both ways count. Elsewhere the file is what the user has most likely meant.
            let is_inside = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
            let cause = error.source().filter(|_| !is_inside).and_then(|it| it.downcast_ref());
            anyhow!("no cluster is known: {}; {advice}", cause.map_or_else(|| error.to_string(), wrong))
        });
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| anyhow!(wrong(&error)))?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| anyhow!("{path}: {}", wrong(&error)))
}

/// What is wrong with a kubeconfig.
fn wrong(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(why, path) => format!("reading {}: {why}", path.display()),
        other => other.to_string(),
    }
}

/// A client of a cluster that answers.
pub(crate) async fn client(config: Config) -> Result<Client> {
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
