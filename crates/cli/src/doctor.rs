//! `karpenter doctor`: looks over what nodes of a cloud depend on, and changes nothing.

#[cfg(feature = "aws")]
mod of_aws;
#[cfg(feature = "azure")]
mod of_azure;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use api::provider::Provider;
use clap::builder::FalseyValueParser;
use cloud::doctor::Report;

/// Find out what keeps nodes from being launched: credentials, permissions, networks, images, quotas; changes nothing
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose nodes: aws or azure
    #[arg(long, value_name = "NAME")]
    provider: Provider,
    /// What to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// The cluster's kubeconfig; without it, the cluster that this process is in, else that of the usual kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// The name of the cluster, as the controller is told it
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME")]
    cluster_name: String,
    /// The address of the API server, if the controller is told one
    #[arg(long, value_name = "URL", env = "CLUSTER_ENDPOINT", default_value = "")]
    cluster_endpoint: String,
    /// The name of the queue with interruptions, if the controller is told one
    #[arg(long, value_name = "NAME", env = "INTERRUPTION_QUEUE", default_value = "")]
    interruption_queue: String,
    /// The network has no endpoints of IAM and the price list
    #[arg(long, env = "ISOLATED_VPC", value_parser = FalseyValueParser::new())]
    isolated_vpc: bool,
    /// Zones are avoided that traffic is shifted away from
    #[arg(long, env = "ENABLE_ZONAL_SHIFT", value_parser = FalseyValueParser::new())]
    enable_zonal_shift: bool,
    #[command(flatten)]
    azure: OfAzure,
}

/// What the controller is told about Azure; what is not said, AKS is asked.
#[derive(clap::Args)]
struct OfAzure {
    /// Azure: the resource group of the cluster
    #[arg(long, value_name = "NAME", env = "ARM_RESOURCE_GROUP", default_value = "")]
    resource_group: String,
    /// Azure: the resource group of the nodes
    #[arg(long, value_name = "NAME", env = "AZURE_NODE_RESOURCE_GROUP", default_value = "")]
    node_resource_group: String,
    /// Azure: the subnet of the nodes
    #[arg(long, value_name = "ID", env = "VNET_SUBNET_ID", default_value = "")]
    vnet_subnet_id: String,
    /// Azure: the region
    #[arg(long, value_name = "NAME", env = "LOCATION", default_value = "")]
    location: String,
    /// Azure: the subscription; AZURE_SUBSCRIPTION_ID or that of `az` when not said
    #[arg(long, value_name = "ID")]
    subscription: Option<String>,
    /// Azure: how machines are made
    #[arg(long, value_name = "MODE", env = "PROVISION_MODE", default_value = "aksscriptless")]
    provision_mode: String,
    /// Azure: the agent pool with AKS machines
    #[arg(long, value_name = "NAME", env = "AKS_MACHINES_POOL_NAME", default_value = "")]
    aks_machines_pool_name: String,
    /// Azure: images come from the shared gallery of AKS
    #[arg(long, env = "USE_SIG", value_parser = FalseyValueParser::new())]
    use_sig: bool,
    /// Azure: the keys that disks are encrypted by
    #[arg(long, value_name = "ID", env = "NODE_OSDISK_DISKENCRYPTIONSET_ID", default_value = "")]
    node_osdisk_diskencryptionset_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// For people: a line for each check
    Text,
    /// For programs
    Json,
}

/// Something is bad.
const BAD: u8 = 1;
/// Nothing could be asked.
const UNKNOWN: u8 = 2;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    let report = match runtime.block_on(examine(args)) {
        Ok(report) => report,
        Err(error) => {
            crate::complain(&error);
            return Ok(ExitCode::from(UNKNOWN));
        }
    };
    match args.output {
        Output::Text => crate::print(&crate::terminal::wrapped(&report.text()))?,
        Output::Json => {
            let text = serde_json::to_string_pretty(&report.json()).context("printing the report as JSON")?;
            crate::print(&(text + "\n"))?;
        }
    }
    Ok(if report.is_healthy() { ExitCode::SUCCESS } else { ExitCode::from(BAD) })
}

/// Looks a cloud over. Each provider has its own way.
async fn examine(args: &Args) -> Result<Report> {
    match args.provider {
        #[cfg(feature = "aws")]
        Provider::Aws => of_aws::examine(args).await,
        #[cfg(not(feature = "aws"))]
        Provider::Aws => bail!("provider aws is not in this build"),
        #[cfg(feature = "azure")]
        Provider::Azure => of_azure::examine(args).await,
        #[cfg(not(feature = "azure"))]
        Provider::Azure => bail!("provider azure is not in this build"),
        Provider::Kwok => bail!("there is nothing to look over for provider kwok: expected aws or azure"),
    }
}
