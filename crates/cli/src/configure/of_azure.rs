//! Azure: AKS says what the cluster is like, its API server by which token nodes join.

use anyhow::{Context as _, Result, anyhow};
use azure::auth::Secret;
use azure::configure::{self, Local, Wishes};
use azure::settings::ProvisionMode;
use clock::Clock;
use serde_json::Value;

use super::Args;
use crate::azure_client::{self, BOOTSTRAP_TOKENS, variable};
use crate::connect;

const KUBECONFIG: &str = "`az aks get-credentials` writes one, --kubeconfig names another";

/// The values of the chart.
pub(super) async fn values(args: &Args) -> Result<String> {
    let wishes = wishes(args)?;
    let environment = azure_client::environment()?;
    let subscription = azure_client::subscription(args.subscription.as_deref())?;
    let client = azure_client::connect(&environment, &subscription).await?;
    let found = configure::find(&client, &wishes).await?;
    let config = connect::config(args.kubeconfig.as_deref(), KUBECONFIG).await?;
    let endpoint = if let Some(said) = &args.cluster_endpoint {
        said.clone()
    } else {
        let of_config = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        configure::check_endpoint(&found.cluster, &of_config)?;
        of_config
    };
    let local = Local {
        subscription,
        environment,
        endpoint,
        bootstrap_token: token(config).await?,
        ssh_public_key: key(args)?,
    };
    Ok(configure::values(&wishes, &found, &local)?)
}

/// What is wanted: arguments in their order, and flags over them.
fn wishes(args: &Args) -> Result<Wishes> {
    let mut wishes = Wishes::read(&args.arguments)?;
    let fields = [
        (&mut wishes.cluster, &args.cluster_name),
        (&mut wishes.resource_group, &args.resource_group),
        (&mut wishes.service_account, &args.service_account),
        (&mut wishes.identity, &args.identity),
        (&mut wishes.machines_pool, &args.aks_machines_pool_name),
    ];
    for (field, said) in fields {
        if let Some(said) = said {
            field.clone_from(said);
        }
    }
    wishes.log_calls |= args.enable_azure_sdk_logging;
    wishes.subnet.clone_from(&args.vnet_subnet_id);
    if let Some(mode) = &args.provision_mode {
        let unknown = || {
            anyhow!(
                "provision mode {mode:?} is unknown, expected aksscriptless, aksmachineapi or aksmachineapiheaderbatch"
            )
        };
        wishes.mode = ProvisionMode::named(mode).ok_or_else(unknown)?;
    }
    wishes.check()?;
    Ok(wishes)
}

/// The token by which nodes join.
async fn token(config: kube::Config) -> Result<Secret> {
    let client = connect::client(config).await?;
    let request = http::Request::get(BOOTSTRAP_TOKENS).body(Vec::new()).context("asking for tokens")?;
    let secrets: Value = client.request(request).await.context("asking for Secrets of kube-system")?;
    configure::bootstrap_token(&secrets, Clock::system().now()).ok_or_else(|| {
        anyhow!("kube-system has no Secret of type bootstrap.kubernetes.io/token that nodes could join with")
    })
}

/// The key in a file; none if nobody names a file and the usual one is not there.
fn key(args: &Args) -> Result<Option<String>> {
    if let Some(path) = &args.ssh_public_key {
        return std::fs::read_to_string(path).map(Some).with_context(|| format!("reading {path}"));
    }
    let usual = variable("HOME").map(|home| std::path::Path::new(&home).join(".ssh/id_rsa.pub"));
    Ok(usual.and_then(|path| std::fs::read_to_string(path).ok()))
}
