//! What must be known before anything can be launched on AWS: where we are, who we are, the cluster that nodes join,
//! its version and the instance types. Whatever is missing is said in one sentence, and the process ends.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use aws::port::Services;
use aws::provider::{Aws, Setup};
use aws::settings::AwsSettings;
use aws::user_data::ClusterInfo;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cloud::CloudProvider;
use kube::Config;
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
    if settings.enable_zonal_shift {
        check_zonal_shift(&services, &settings.cluster_name).await?;
    }
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

/// Whether zones that are avoided can be asked for at all: they would never be avoided otherwise.
async fn check_zonal_shift(services: &Services, name: &str) -> Result<()> {
    let cluster = services.eks.cluster(name).await;
    let cluster = cluster.with_context(|| format!("finding cluster {name:?} for its zonal shifts"))?;
    let shifts = services.zonal_shift.shifts(&cluster.arn).await;
    shifts.map(drop).with_context(|| format!("asking for the zonal shifts of {}", cluster.arn))
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

/// The certificates by which this process knows the API server, in base64 as nodes are told them.
pub(super) fn ca_bundle(config: &Config) -> Option<String> {
    // As they are written in the file, since nodes that were launched before have them that way.
    let written = config.root_cert_file.as_ref().and_then(|path| std::fs::read(path).ok());
    let written = written.or_else(|| config.root_cert.as_deref().map(|all| pem(all).into_bytes()));
    written.filter(|text| !text.is_empty()).map(|text| BASE64_STANDARD.encode(text))
}

/// Certificates in their usual text form.
fn pem(certificates: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text += "-----BEGIN CERTIFICATE-----\n";
        let mut rest = BASE64_STANDARD.encode(certificate);
        while !rest.is_empty() {
            let next = rest.split_off(rest.len().min(64));
            text = text + &rest + "\n";
            rest = next;
        }
        text += "-----END CERTIFICATE-----\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_written_in_lines_of_64_letters() {
        let text = pem(&[vec![0; 50], vec![1]]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.iter().map(|line| line.len()).collect::<Vec<_>>(), [27, 64, 4, 25, 27, 4, 25]);
        assert_eq!((lines[0], lines[5]), ("-----BEGIN CERTIFICATE-----", "AQ=="));
        assert!(text.ends_with("-----END CERTIFICATE-----\n"));
    }

    #[test]
    fn the_file_counts_before_what_was_read_from_it() {
        let mut config = Config::new("https://localhost".parse().unwrap());
        assert_eq!(ca_bundle(&config), None);
        config.root_cert = Some(vec![vec![1]]);
        let read = BASE64_STANDARD.decode(ca_bundle(&config).unwrap()).unwrap();
        assert_eq!(read, pem(&[vec![1]]).into_bytes());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "as written").unwrap();
        config.root_cert_file = Some(file.path().to_owned());
        assert_eq!(ca_bundle(&config), Some(BASE64_STANDARD.encode("as written")));
    }
}
