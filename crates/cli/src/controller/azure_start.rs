//! What must be known before anything can be launched on Azure: which cloud it is, who we are, the cluster that nodes
//! join, and the sizes. Whatever is missing is said in one sentence, and the process ends.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use azure::arm::{Client, Setup as ClientSetup};
use azure::auth::PROBE;
use azure::provider::{Azure, Setup, discover, wait_for_definitions};
use azure::settings::AzureSettings;
use cloud::CloudProvider;
use operator::Parts;
use runtime::controller::Controller;

use super::{VERSION, environment, seed};

/// The cloud and its controllers. `ca_bundle` is how this process knows the API server, in base64.
pub(super) async fn start(
    parts: &Parts,
    ca_bundle: Option<String>,
) -> Result<(Arc<dyn CloudProvider>, Vec<Controller>)> {
    let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let settings = AzureSettings::new(&parts.settings, environment, read)?;
    tracing::info!(options = settings.to_json(), "starting with these options for Azure");
    wait_for_definitions(&parts.api).await.map_err(|error| anyhow!(error))?;
    let connection = azure_http::connect(&settings.environment, environment, PROBE).await?;
    let has_gallery = settings.use_sig && !settings.provision_mode.is_machine_api();
    let client = Client::new(ClientSetup {
        environment: settings.environment.clone(),
        gallery: has_gallery.then(|| settings.sig_access_token_server_url.clone()),
        version: VERSION.to_owned(),
        metrics: parts.metrics.clone(),
        clock: parts.clock,
        seed: seed(),
        log_calls: settings.enable_azure_sdk_logging,
        ..ClientSetup::new(connection.transport, connection.tokens, &settings.subscription_id)
    });
    let (cluster_info, facts) = discover(&client, &parts.api, &settings, ca_bundle.unwrap_or_default())
        .await
        .map_err(|error| anyhow!(error))
        .context("finding out about the network of the cluster")?;
    let azure = Azure::new(Setup {
        client,
        settings,
        cluster_info,
        facts,
        api: parts.api.clone(),
        cluster: parts.cluster.clone(),
        clock: parts.clock,
        events: parts.events.clone(),
        metrics: parts.metrics.clone(),
        overlays: parts.overlays.clone(),
        seed: seed(),
    });
    azure.hydrate().await.map_err(|error| anyhow!(error)).context("finding out which sizes there are")?;
    let controllers = azure.controllers();
    Ok((Arc::new(azure), controllers))
}
