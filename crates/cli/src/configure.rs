//! `karpenter configure`: asks a cloud and a cluster for everything that the chart must be told, and writes it down.

#[cfg(feature = "azure")]
mod of_azure;

use std::process::ExitCode;

#[cfg(feature = "azure")]
use anyhow::Context;
use anyhow::{Result, bail};
use api::provider::Provider;

/// Write the values of the chart for a cluster; changes nothing but that file
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Whose nodes: azure
    #[arg(long, value_name = "NAME")]
    provider: Provider,
    /// CLUSTER RESOURCE-GROUP [SERVICE-ACCOUNT [IDENTITY [LOG-CALLS [MODE [MACHINES-POOL]]]]], as the original's
    /// script takes them; flags win
    #[arg(value_name = "ARGUMENT", num_args = 0..=7)]
    arguments: Vec<String>,
    /// The name of the cluster
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// The resource group of the cluster
    #[arg(long, value_name = "NAME")]
    resource_group: Option<String>,
    /// The name of the controller's service account [default: karpenter-sa]
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// The name of the controller's identity, in the resource group of the cluster [default: karpentermsi]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Let the controller log every call to Azure
    #[arg(long)]
    enable_azure_sdk_logging: bool,
    /// How machines are made: aksscriptless, aksmachineapi or aksmachineapiheaderbatch [default: aksscriptless]
    #[arg(long, value_name = "MODE")]
    provision_mode: Option<String>,
    /// The agent pool with AKS machines, in the modes that have them [default: testmpool]
    #[arg(long, value_name = "NAME")]
    aks_machines_pool_name: Option<String>,
    /// The subnet of the nodes, if it is not that of the cluster's own nodes
    #[arg(long, value_name = "ID")]
    vnet_subnet_id: Option<String>,
    /// The subscription of the cluster; AZURE_SUBSCRIPTION_ID or that of `az` when not said
    #[arg(long, value_name = "ID")]
    subscription: Option<String>,
    /// The address of the API server for nodes, if it is not that of the kubeconfig
    #[arg(long, value_name = "URL")]
    cluster_endpoint: Option<String>,
    /// A file with the SSH key of the nodes' administrator; ~/.ssh/id_rsa.pub, else that of the cluster, when not said
    #[arg(long, value_name = "FILE")]
    ssh_public_key: Option<String>,
    /// The cluster's kubeconfig; without it, the usual one
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
    /// Where the values go; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "karpenter-values.yaml")]
    output: String,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match args.provider {
        #[cfg(feature = "azure")]
        Provider::Azure => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            let values = runtime.context("starting the runtime")?.block_on(of_azure::values(args))?;
            write(&args.output, &values)?;
            Ok(ExitCode::SUCCESS)
        }
        #[cfg(not(feature = "azure"))]
        Provider::Azure => bail!("provider azure is not in this build"),
        other => bail!("there is nothing to configure for provider {other}: expected azure"),
    }
}

/// Writes the values down. Only their owner may read them: there is a token in them.
#[cfg(feature = "azure")]
fn write(output: &str, values: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    if output == "-" {
        return crate::print(values);
    }
    use std::os::unix::fs::PermissionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(output);
    let written = file.and_then(|mut file| {
        // A file that was there keeps its permissions otherwise.
        if file.metadata()?.is_file() {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        file.write_all(values.as_bytes())
    });
    written.with_context(|| format!("writing {output}"))?;
    crate::print(&format!("{output} is written; install the chart with --values {output}\n"))
}
