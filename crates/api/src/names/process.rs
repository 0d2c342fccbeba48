//! What the process is called and where it answers.

use super::define;

define! {
    /// All names of the process.
    ALL: &str;
    /// The source of events, and the beginning of the user agent.
    COMPONENT = "karpenter";
    /// Where metrics are served.
    METRICS_PATH = "/metrics";
    /// Where liveness is served.
    HEALTH_PATH = "/healthz";
    /// Where readiness is served.
    READY_PATH = "/readyz";
    /// The readiness check of the caches.
    READY_CHECK_MANAGER = "manager";
    /// The readiness check of the CRDs.
    READY_CHECK_CRD = "crd";
    /// The readiness check that always passes.
    READY_CHECK_PING = "readyz";
    /// The liveness check that always passes.
    HEALTH_CHECK_PING = "healthz";
    /// The liveness check of the Azure provider.
    HEALTH_CHECK_CLOUD_PROVIDER = "cloud-provider";
    /// Where profiles are served.
    PROFILING_PATH = "/debug/pprof/";
    /// What the identifiers of simulated instances begin with.
    KWOK_PROVIDER_ID = "kwok://";
    /// What the identifiers of EC2 instances begin with.
    AWS_PROVIDER_ID = "aws:///";
    /// What the identifiers of Azure machines begin with.
    AZURE_PROVIDER_ID = "azure://";
    /// The ConfigMap with the next maintenance window of an AKS cluster.
    AZURE_MAINTENANCE_WINDOW = "upcoming-maintenance-window";
}
