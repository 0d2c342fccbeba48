//! The clouds we know, and what each adds to the rules for labels in the core CRDs.

use std::fmt;
use std::str::FromStr;

use crate::schema::{Rule, rule};

/// A cloud, or the simulation of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provider {
    /// Simulated nodes.
    Kwok,
    /// Amazon EC2.
    Aws,
    /// Azure Kubernetes Service.
    Azure,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 3] = [Self::Kwok, Self::Aws, Self::Azure];

    /// The provider's name on the command line and in charts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kwok => "kwok",
            Self::Aws => "aws",
            Self::Azure => "azure",
        }
    }

    /// Categories of the core kinds besides their own.
    pub(crate) const fn extra_categories(self) -> &'static [&'static str] {
        match self {
            Self::Kwok | Self::Aws => &[],
            Self::Azure => &["nap"],
        }
    }

    /// The rules for label keys that the provider adds to the core CRDs.
    pub(crate) fn label_rules(self) -> LabelRules {
        match self {
            Self::Kwok => {
                let keys = vec![KWOK.key_rule()];
                LabelRules {
                    template_labels: Vec::new(),
                    node_pool_keys: keys.clone(),
                    node_claim_keys: keys,
                    node_overlay_keys: Vec::new(),
                }
            }
            Self::Aws => {
                let keys = vec![AWS.key_rule()];
                LabelRules {
                    template_labels: vec![AWS.map_rule()],
                    node_pool_keys: keys.clone(),
                    node_claim_keys: keys,
                    node_overlay_keys: vec![AWS_OVERLAY.key_rule()],
                }
            }
            Self::Azure => {
                let domains = [AZURE, KUBERNETES_AZURE];
                let mut keys: Vec<Rule> = domains.iter().map(Domain::key_rule).collect();
                let mut labels: Vec<Rule> = domains.iter().map(Domain::map_rule).collect();
                for key in AZURE_RESERVED {
                    let message = format!(r#"label "{key}" is restricted"#);
                    keys.push(rule(format!("self != '{key}'"), message.clone()));
                    labels.push(rule(format!("self.all(x, x != '{key}')"), message));
                }
                LabelRules {
                    template_labels: labels,
                    node_pool_keys: keys.clone(),
                    node_claim_keys: keys.clone(),
                    node_overlay_keys: keys,
                }
            }
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a provider that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("unknown provider {0:?}: expected kwok, aws or azure")]
pub struct UnknownProvider(String);

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|p| p.as_str() == name).ok_or_else(|| UnknownProvider(name.to_owned()))
    }
}

/// What a provider adds to the rules of the core CRDs.
pub(crate) struct LabelRules {
    pub(crate) template_labels: Vec<Rule>,
    pub(crate) node_pool_keys: Vec<Rule>,
    pub(crate) node_claim_keys: Vec<Rule>,
    pub(crate) node_overlay_keys: Vec<Rule>,
}

/// A label domain of which only some names may be used.
struct Domain {
    name: &'static str,
    allowed: &'static [&'static str],
}

impl Domain {
    fn key_rule(&self) -> Rule {
        rule(self.expression("self"), self.message())
    }

    fn map_rule(&self) -> Rule {
        rule(format!("self.all(x, {})", self.expression("x")), self.message())
    }

    fn expression(&self, variable: &str) -> String {
        let domain = self.name;
        let allowed: Vec<String> = self.allowed.iter().map(|name| format!(r#""{domain}/{name}""#)).collect();
        format!(
            r#"{variable} in [{}] || !{variable}.find("^([^/]+)").endsWith("{domain}")"#,
            allowed.join(", ")
        )
    }

    fn message(&self) -> String {
        format!(r#"label domain "{}" is restricted"#, self.name)
    }
}

const KWOK: Domain = Domain {
    name: "karpenter.kwok.sh",
    allowed: &["kwoknodeclass", "instance-cpu", "instance-memory", "instance-family", "instance-size"],
};

const AWS: Domain = Domain {
    name: "karpenter.k8s.aws",
    allowed: &[
        "instance-tenancy",
        "capacity-reservation-type",
        "capacity-reservation-id",
        "capacity-reservation-interruptible",
        "ec2nodeclass",
        "instance-encryption-in-transit-supported",
        "nitro-sandbox",
        "instance-category",
        "instance-hypervisor",
        "instance-family",
        "instance-generation",
        "instance-local-nvme",
        "instance-size",
        "instance-cpu",
        "instance-cpu-manufacturer",
        "instance-cpu-sustained-clock-speed-mhz",
        "instance-memory",
        "instance-ebs-bandwidth",
        "instance-network-bandwidth",
        "instance-gpu-name",
        "instance-gpu-manufacturer",
        "instance-gpu-count",
        "instance-gpu-memory",
        "instance-accelerator-name",
        "instance-accelerator-manufacturer",
        "instance-accelerator-count",
        "instance-capability-flex",
        "placement-group-id",
        "placement-group-partition",
    ],
};

/// An overlay corrects instance types, so it cannot select by what only a launch decides.
const AWS_OVERLAY: Domain = Domain {
    name: "karpenter.k8s.aws",
    allowed: &[
        "ec2nodeclass",
        "instance-encryption-in-transit-supported",
        "nitro-sandbox",
        "instance-category",
        "instance-hypervisor",
        "instance-family",
        "instance-generation",
        "instance-local-nvme",
        "instance-size",
        "instance-cpu",
        "instance-cpu-manufacturer",
        "instance-cpu-sustained-clock-speed-mhz",
        "instance-memory",
        "instance-ebs-bandwidth",
        "instance-network-bandwidth",
        "instance-gpu-name",
        "instance-gpu-manufacturer",
        "instance-gpu-count",
        "instance-gpu-memory",
        "instance-accelerator-name",
        "instance-accelerator-manufacturer",
        "instance-accelerator-count",
        "instance-capability-flex",
    ],
};

const AZURE: Domain = Domain {
    name: "karpenter.azure.com",
    allowed: &[
        "aksnodeclass",
        "sku-name",
        "sku-family",
        "sku-series",
        "sku-version",
        "sku-cpu",
        "sku-memory",
        "sku-networking-accelerated",
        "sku-storage-premium-capable",
        "sku-storage-ultra-ssd",
        "sku-storage-ephemeralos-maxsize",
        "sku-gpu-name",
        "sku-gpu-manufacturer",
        "sku-gpu-count",
        "placement-scope",
    ],
};

const KUBERNETES_AZURE: Domain = Domain {
    name: "kubernetes.azure.com",
    allowed: &[
        "mode",
        "scalesetpriority",
        "priority",
        "fips_enabled",
        "os-sku",
        "cluster",
        "sku-cpu",
        "sku-memory",
        "ebpf-dataplane",
        "ebpf-host-routing",
        "network-policy",
        "hostedvm",
    ],
};

/// Labels that AKS itself manages.
const AZURE_RESERVED: [&str; 4] = ["agentpool", "storageprofile", "storagetier", "accelerator"];
