//! Where we are and who we are, found the way the SDK always finds it, and a client for each service.

use std::sync::Arc;
use std::time::Duration;

use aws::port::Services;
use aws::prices::price_list_region;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_ec2::config::{ProvideCredentials as _, SharedInterceptor};
use runtime::metrics::Registry;

use crate::agent::Agent;
use crate::ca_bundle::{self, BadCaBundle};
use crate::error::causes;
use crate::measure::Measure;

/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_mins(4);

/// AWS, ready to be asked.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The region.
    pub region: String,
    /// Its services.
    pub services: Services,
}

/// Why AWS cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Nobody says where we are.
    #[error(
        "no AWS region is known: set AWS_REGION, or let the instance metadata service be reached from this process"
    )]
    NoRegion,
    /// Nobody says who we are.
    #[error(
        "no AWS credentials can be used, {0}: give the service account a role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    NoCredentials(String),
    /// The certificates of the administrator cannot be used.
    #[error("{0}")]
    CaBundle(#[from] BadCaBundle),
}

/// Finds region, credentials and endpoints in the environment, and makes a client for each service. `version` is
/// the version of this program, for the user agent.
pub async fn connect(version: &str, metrics: &Registry) -> Result<Connection, ConnectError> {
    // Environment, profile, then instance metadata; FIPS, dual-stack and other endpoints are in there, too.
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT).build();
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12()).timeout_config(timeouts);
    if let Some(path) = std::env::var_os(ca_bundle::VARIABLE).filter(|path| !path.is_empty()) {
        loader = loader.http_client(ca_bundle::client(path.as_ref())?);
    }
    let config = loader.load().await;
    let region = config.region().ok_or(ConnectError::NoRegion)?.to_string();
    check_credentials(&config).await?;
    let interceptors =
        [SharedInterceptor::new(Agent::new(version)), SharedInterceptor::new(Measure::new(metrics))];
    Ok(Connection { services: services(&config, &region, &interceptors), region })
}

/// Fails now and in one sentence rather than with each request.
async fn check_credentials(config: &SdkConfig) -> Result<(), ConnectError> {
    let nobody = || ConnectError::NoCredentials("there is no provider of any".to_owned());
    let provider = config.credentials_provider().ok_or_else(nobody)?;
    match provider.provide_credentials().await {
        Ok(_) => Ok(()),
        Err(error) => Err(ConnectError::NoCredentials(causes(&error))),
    }
}

/// The configuration of a client; all of them are made alike.
macro_rules! client {
    ($service:ident, $config:expr, $interceptors:expr) => {{
        let mut builder = $service::config::Builder::from($config);
        for interceptor in $interceptors {
            builder.push_interceptor(interceptor.clone());
        }
        $service::Client::from_conf(builder.build())
    }};
}

/// A client for each service.
pub(crate) fn services(config: &SdkConfig, region: &str, interceptors: &[SharedInterceptor]) -> Services {
    // Only some regions have a price list.
    let of_prices = config.to_builder().region(Region::new(price_list_region(region))).build();
    Services {
        ec2: Arc::new(crate::ec2::Client(client!(aws_sdk_ec2, config, interceptors))),
        iam: Arc::new(crate::iam::Client(client!(aws_sdk_iam, config, interceptors))),
        eks: Arc::new(crate::eks::Client(client!(aws_sdk_eks, config, interceptors))),
        ssm: Arc::new(crate::ssm::Client(client!(aws_sdk_ssm, config, interceptors))),
        sqs: Arc::new(crate::sqs::Client(client!(aws_sdk_sqs, config, interceptors))),
        pricing: Arc::new(crate::pricing::Client(client!(aws_sdk_pricing, &of_prices, interceptors))),
        zonal_shift: Arc::new(crate::zonal_shift::Client(client!(
            aws_sdk_arczonalshift,
            config,
            interceptors
        ))),
        sts: Arc::new(crate::sts::Client(client!(aws_sdk_sts, config, interceptors))),
        quotas: Arc::new(crate::quotas::Client(client!(aws_sdk_servicequotas, config, interceptors))),
    }
}
