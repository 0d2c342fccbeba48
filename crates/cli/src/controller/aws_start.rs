//! What must be known before anything can be launched on AWS: where we are, who we are, the cluster that nodes join,
//! its version and the instance types. Whatever is missing is said in one sentence, and the process ends.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use aws::port::Services;
use aws::provider::{Aws, Setup};
use aws::settings::AwsSettings;
use aws::user_data::ClusterInfo;
use cloud::CloudProvider;
use operator::Parts;
use runtime::Api;
use runtime::controller::Controller;
use serde_json::Value;

use super::VERSION;

/// The service by which nodes find the cluster's DNS.
const DNS: &str = "/api/v1/namespaces/kube-system/services/kube-dns";

/// The cloud and its controllers. `ca_bundle` is how this process knows the API server.
pub(super) async fn start(
    parts: &Parts,
    ca_bundle: Option<String>,
) -> Result<(Arc<dyn CloudProvider>, Vec<Controller>)> {
    let settings = AwsSettings::new(&parts.settings)?;
    for gate in &settings.unknown_gates {
        tracing::info!(gate, "ignoring unknown feature gate");
    }
    let connection = aws_sdk::connect(VERSION, &parts.metrics).await?;
    let services = connection.services;
    services.ec2.check_access().await.context("asking EC2 whether it answers")?;
    let (endpoint, cidr) = endpoint(&services, &settings).await?;
    let cluster_info = ClusterInfo {
        name: settings.cluster_name.clone(),
        endpoint,
        ca_bundle: settings.cluster_ca_bundle.clone().or(ca_bundle),
        cidr,
        dns: dns(&parts.api).await,
    };
    tracing::debug!(region = connection.region, endpoint = cluster_info.endpoint, "discovered the cluster");
    let aws = Aws::new(Setup {
        services,
        region: connection.region,
        cluster_info,
        settings,
        gates: parts.settings.gates,
        min_values_policy: parts.settings.min_values_policy,
        api: parts.api.clone(),
        cluster: parts.cluster.clone(),
        clock: parts.clock,
        events: parts.events.clone(),
        metrics: parts.metrics.clone(),
        overlays: parts.overlays.clone(),
    });
    aws.hydrate().await.map_err(|error| anyhow!(error)).context("finding out what there is")?;
    // If they cannot be asked for, they would never be avoided.
    aws.refresh_zonal_shifts().await.context("asking which zones are avoided")?;
    let controllers = aws.controllers();
    Ok((Arc::new(aws), controllers))
}

/// The address of the API server: as set, else as EKS knows it, with those of services. Who needs the latter asks
/// for them later.
async fn endpoint(services: &Services, settings: &AwsSettings) -> Result<(String, Option<String>)> {
    if let Some(endpoint) = &settings.cluster_endpoint {
        return Ok((endpoint.clone(), None));
    }
    let name = &settings.cluster_name;
    let cluster = services.eks.cluster(name).await;
    let cluster = cluster.with_context(|| {
        format!("finding the endpoint of cluster {name:?}, which can also be set with --cluster-endpoint")
    })?;
    Ok((cluster.endpoint, cluster.service_ipv4_cidr.or(cluster.service_ipv6_cidr)))
}

/// The address of the cluster's DNS, if it can be found: there are clusters that have another.
async fn dns(api: &Api) -> Option<IpAddr> {
    let found: Result<Value, _> = api.get(DNS).await;
    match found {
        Ok(service) => service.pointer("/spec/clusterIP")?.as_str()?.parse().ok(),
        Err(error) => {
            tracing::info!(%error, "unable to detect the IP of the kube-dns service");
            None
        }
    }
}
