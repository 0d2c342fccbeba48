//! The clouds we know, and what each adds to the rules for labels in the core CRDs.

use std::fmt;
use std::str::FromStr;

use crate::names::labels::{aws, azure, kwok};
use crate::schema::{Rule, rule};

/// The kind of object that configures the instances of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClassKind {
    /// Its API group.
    pub group: &'static str,
    /// Its API version.
    pub version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// The name of its collection.
    pub plural: &'static str,
}

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

    /// The kind of NodeClass that the provider understands.
    pub const fn node_class(self) -> NodeClassKind {
        match self {
            Self::Kwok => NodeClassKind {
                group: kwok::DOMAIN,
                version: "v1alpha1",
                kind: "KWOKNodeClass",
                plural: "kwoknodeclasses",
            },
            Self::Aws => NodeClassKind {
                group: aws::DOMAIN,
                version: "v1",
                kind: "EC2NodeClass",
                plural: "ec2nodeclasses",
            },
            Self::Azure => NodeClassKind {
                group: azure::DOMAIN,
                version: "v1beta1",
                kind: "AKSNodeClass",
                plural: "aksnodeclasses",
            },
        }
    }

    /// Categories of the core kinds besides their own.
    pub(crate) const fn extra_categories(self) -> &'static [&'static str] {
        match self {
            Self::Kwok | Self::Aws => &[],
            Self::Azure => &["nap"],
        }
    }

    /// The labels that the provider's instance types have.
    pub(crate) fn well_known_labels(self) -> impl Iterator<Item = &'static str> {
        let (domains, others): (&[Domain], &[&str]) = match self {
            Self::Kwok => (&[KWOK], &[]),
            Self::Aws => (&[AWS], &[aws::ZONE_ID]),
            Self::Azure => (&[AZURE, AKS], &[]),
        };
        let allowed = domains.iter().flat_map(|domain| domain.allowed);
        allowed.chain(others).copied().filter(|key| !NOT_WELL_KNOWN.contains(key))
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
                    node_overlay_keys: vec![AWS.key_rule_except(&AWS_DECIDED_AT_LAUNCH)],
                }
            }
            Self::Azure => {
                let domains = [AZURE, AKS];
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

/// A label domain of which only some labels may be used.
struct Domain {
    name: &'static str,
    allowed: &'static [&'static str],
}

impl Domain {
    fn key_rule(&self) -> Rule {
        rule(self.expression("self", self.allowed.iter().copied()), self.message())
    }

    /// The rule for a key of a requirement that only selects, and must not name any of `except`.
    fn key_rule_except(&self, except: &[&str]) -> Rule {
        let allowed = self.allowed.iter().copied().filter(|key| !except.contains(key));
        rule(self.expression("self", allowed), self.message())
    }

    fn map_rule(&self) -> Rule {
        rule(format!("self.all(x, {})", self.expression("x", self.allowed.iter().copied())), self.message())
    }

    fn expression<'a>(&self, variable: &str, allowed: impl Iterator<Item = &'a str>) -> String {
        let allowed: Vec<String> = allowed.map(|key| format!(r#""{key}""#)).collect();
        format!(
            r#"{variable} in [{}] || !{variable}.find("^([^/]+)").endsWith("{}")"#,
            allowed.join(", "),
            self.name
        )
    }

    fn message(&self) -> String {
        format!(r#"label domain "{}" is restricted"#, self.name)
    }
}

const KWOK: Domain = Domain {
    name: kwok::DOMAIN,
    allowed: &[
        kwok::NODE_CLASS,
        kwok::INSTANCE_CPU,
        kwok::INSTANCE_MEMORY,
        kwok::INSTANCE_FAMILY,
        kwok::INSTANCE_SIZE,
    ],
};

const AWS: Domain = Domain {
    name: aws::DOMAIN,
    allowed: &[
        aws::INSTANCE_TENANCY,
        aws::CAPACITY_RESERVATION_TYPE,
        aws::CAPACITY_RESERVATION_ID,
        aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
        aws::NODE_CLASS,
        aws::INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED,
        aws::NITRO_SANDBOX,
        aws::INSTANCE_CATEGORY,
        aws::INSTANCE_HYPERVISOR,
        aws::INSTANCE_FAMILY,
        aws::INSTANCE_GENERATION,
        aws::INSTANCE_LOCAL_NVME,
        aws::INSTANCE_SIZE,
        aws::INSTANCE_CPU,
        aws::INSTANCE_CPU_MANUFACTURER,
        aws::INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ,
        aws::INSTANCE_MEMORY,
        aws::INSTANCE_EBS_BANDWIDTH,
        aws::INSTANCE_NETWORK_BANDWIDTH,
        aws::INSTANCE_GPU_NAME,
        aws::INSTANCE_GPU_MANUFACTURER,
        aws::INSTANCE_GPU_COUNT,
        aws::INSTANCE_GPU_MEMORY,
        aws::INSTANCE_ACCELERATOR_NAME,
        aws::INSTANCE_ACCELERATOR_MANUFACTURER,
        aws::INSTANCE_ACCELERATOR_COUNT,
        aws::INSTANCE_CAPABILITY_FLEX,
        aws::PLACEMENT_GROUP_ID,
        aws::PLACEMENT_GROUP_PARTITION,
    ],
};

/// An overlay corrects instance types, so it cannot select by what only a launch decides.
const AWS_DECIDED_AT_LAUNCH: [&str; 6] = [
    aws::INSTANCE_TENANCY,
    aws::CAPACITY_RESERVATION_TYPE,
    aws::CAPACITY_RESERVATION_ID,
    aws::CAPACITY_RESERVATION_INTERRUPTIBLE,
    aws::PLACEMENT_GROUP_ID,
    aws::PLACEMENT_GROUP_PARTITION,
];

const AZURE: Domain = Domain {
    name: azure::DOMAIN,
    allowed: &[
        azure::NODE_CLASS,
        azure::SKU_NAME,
        azure::SKU_FAMILY,
        azure::SKU_SERIES,
        azure::SKU_VERSION,
        azure::SKU_CPU,
        azure::SKU_MEMORY,
        azure::SKU_NETWORKING_ACCELERATED,
        azure::SKU_STORAGE_PREMIUM_CAPABLE,
        azure::SKU_STORAGE_ULTRA_SSD,
        azure::SKU_STORAGE_EPHEMERALOS_MAXSIZE,
        azure::SKU_GPU_NAME,
        azure::SKU_GPU_MANUFACTURER,
        azure::SKU_GPU_COUNT,
        azure::PLACEMENT_SCOPE,
    ],
};

const AKS: Domain = Domain {
    name: azure::AKS_DOMAIN,
    allowed: &[
        azure::AKS_MODE,
        azure::AKS_SCALE_SET_PRIORITY,
        azure::AKS_PRIORITY,
        azure::AKS_FIPS_ENABLED,
        azure::AKS_OS_SKU,
        azure::AKS_CLUSTER,
        azure::AKS_SKU_CPU,
        azure::AKS_SKU_MEMORY,
        azure::AKS_EBPF_DATAPLANE,
        azure::AKS_EBPF_HOST_ROUTING,
        azure::AKS_NETWORK_POLICY,
        azure::AKS_HOSTED_VM,
    ],
};

/// Labels that AKS itself manages.
const AZURE_RESERVED: [&str; 4] = [
    azure::LEGACY_AGENT_POOL,
    azure::LEGACY_STORAGE_PROFILE,
    azure::LEGACY_STORAGE_TIER,
    azure::LEGACY_ACCELERATOR,
];

/// Labels that may be used in a NodePool although no instance type has them.
const NOT_WELL_KNOWN: [&str; 7] = [
    kwok::NODE_CLASS,
    aws::NODE_CLASS,
    azure::NODE_CLASS,
    azure::AKS_EBPF_DATAPLANE,
    azure::AKS_EBPF_HOST_ROUTING,
    azure::AKS_NETWORK_POLICY,
    azure::AKS_HOSTED_VM,
];
