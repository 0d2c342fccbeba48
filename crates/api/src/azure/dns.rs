//! The DNS cache on the nodes that an AKSNodeClass can configure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::NillableDuration;

use crate::schema::{self, Rule, rule};

/// The DNS cache on the nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocalDns {
    /// Whether nodes get the cache.
    pub mode: LocalDnsMode,
    /// Zones as seen by pods that use the DNS of the virtual network.
    #[serde(rename = "vnetDNSOverrides")]
    #[schemars(
        length(max = 100),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["zone"],
            "x-kubernetes-validations" = [
                required_zones(),
                rule(
                    "!self.exists(x, x.zone == '.' && x.forwardDestination == 'ClusterCoreDNS')",
                    "root zone '.' cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides",
                ),
                rule(
                    "!self.exists(x, x.zone != '.' && !x.zone.endsWith('cluster.local') && x.forwardDestination == 'ClusterCoreDNS')",
                    "external domains cannot be forwarded to ClusterCoreDNS from vnetDNSOverrides",
                ),
            ],
        )
    )]
    pub vnet_dns_overrides: Vec<LocalDnsZoneOverride>,
    /// Zones as seen by pods that use the DNS of the cluster.
    #[serde(rename = "kubeDNSOverrides")]
    #[schemars(
        length(max = 100),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["zone"],
            "x-kubernetes-validations" = [required_zones()],
        )
    )]
    pub kube_dns_overrides: Vec<LocalDnsZoneOverride>,
}

fn required_zones() -> Rule {
    rule(
        "['.', 'cluster.local'].all(z, self.exists(x, x.zone == z))",
        "must contain required zones '.' and 'cluster.local'",
    )
}

/// Whether nodes get a DNS cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LocalDnsMode {
    /// Where the cluster's version supports it.
    Preferred,
    /// Always.
    Required,
    /// Never.
    Disabled,
}

impl LocalDnsMode {
    /// The mode's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preferred => "Preferred",
            Self::Required => "Required",
            Self::Disabled => "Disabled",
        }
    }
}

/// How names of one zone are resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "!(self.zone.endsWith('cluster.local') && self.forwardDestination == 'VnetDNS')",
        "'cluster.local' cannot be forwarded to VnetDNS",
    ),
    rule(
        "!(self.serveStale == 'Verify' && self.protocol == 'ForceTCP')",
        "serveStale Verify cannot be used with protocol ForceTCP",
    ),
]))]
pub struct LocalDnsZoneOverride {
    /// The zone; `.` is the root.
    #[schemars(
        length(min = 1, max = 254),
        extend("pattern" = r"^(\.|[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\.?)$")
    )]
    pub zone: String,
    /// What is logged: `Error` or `Log`.
    #[schemars(extend("enum" = ["Error", "Log"]))]
    pub query_logging: String,
    /// `PreferUDP` or `ForceTCP`.
    #[schemars(extend("enum" = ["PreferUDP", "ForceTCP"]))]
    pub protocol: String,
    /// Who is asked: `ClusterCoreDNS` or `VnetDNS`.
    #[schemars(extend("enum" = ["ClusterCoreDNS", "VnetDNS"]))]
    pub forward_destination: String,
    /// In which order servers are asked: `Sequential`, `RoundRobin` or `Random`.
    #[schemars(extend("enum" = ["Sequential", "RoundRobin", "Random"]))]
    pub forward_policy: String,
    /// How many questions may be open at the same time.
    #[schemars(range(min = 0))]
    pub max_concurrent: i32,
    /// How long answers are kept.
    #[schemars(schema_with = "schema::duration")]
    pub cache_duration: NillableDuration,
    /// How long answers are kept beyond that when nobody answers.
    #[schemars(schema_with = "schema::duration")]
    pub serve_stale_duration: NillableDuration,
    /// When old answers are given: `Verify`, `Immediate` or `Disable`.
    #[schemars(extend("enum" = ["Verify", "Immediate", "Disable"]))]
    pub serve_stale: String,
}
