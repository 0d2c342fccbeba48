//! EC2NodeClass (`karpenter.k8s.aws/v1`): how EC2 instances are configured.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::resource::{Column, CustomResource, Definition, custom_resource};
use crate::schema::{Rule, rule};

mod instance;
mod selectors;
mod status;

use instance::metadata_options;
pub use instance::*;
pub use selectors::*;
pub use status::*;

custom_resource! {
    /// How EC2 instances are configured.
    EC2NodeClass {
        group: "karpenter.k8s.aws", version: "v1", plural: "ec2nodeclasses", scope: ClusterResourceScope,
        spec: #[serde(default)] EC2NodeClassSpec, status: EC2NodeClassStatus
    }
}

impl CustomResource for EC2NodeClass {
    type Spec = EC2NodeClassSpec;
    type Status = EC2NodeClassStatus;
    const DEFINITION: Definition = Definition {
        description: "How EC2 instances are configured.",
        short_names: &["ec2nc", "ec2ncs"],
        categories: &["karpenter"],
        namespaced: false,
        columns: &[
            Column::new("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
            Column::new("Age", "date", ".metadata.creationTimestamp"),
            Column::wide("Role", "string", ".spec.role"),
        ],
        scale: None,
        spec_required: false,
        deprecation: None,
    };

    fn spec_rules() -> Vec<Rule> {
        let mut rules = vec![rule(
            "(has(self.role) && !has(self.instanceProfile)) || (!has(self.role) && has(self.instanceProfile))",
            "must specify exactly one of ['role', 'instanceProfile']",
        )];
        rules.extend(AmiFamily::WITH_ALIAS.map(|(family, article)| {
            let (alias, family) = (family.alias(), family.as_str());
            rule(
                format!(
                    "!has(self.amiFamily) || (self.amiSelectorTerms.exists(x, has(x.alias) && x.alias.find('^[^@]+') == '{alias}') ? (self.amiFamily == 'Custom' || self.amiFamily == '{family}') : true)"
                ),
                format!(
                    "if set, amiFamily must be '{family}' or 'Custom' when using {article} {family} alias"
                ),
            )
        }));
        rules.push(rule(
            "self.amiSelectorTerms.exists(x, has(x.alias)) ? true : has(self.amiFamily)",
            "must specify amiFamily if amiSelectorTerms does not contain an alias",
        ));
        rules
    }
}

/// How EC2 instances are configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassSpec {
    /// Which subnets instances are launched into; terms are alternatives.
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = [
            rule("self.size() != 0", "subnetSelectorTerms cannot be empty"),
            rule("self.all(x, has(x.tags) || has(x.id))", "expected at least one, got none, ['tags', 'id']"),
            rule(
                "!self.all(x, has(x.id) && has(x.tags))",
                "'id' is mutually exclusive, cannot be set with a combination of other fields in a subnet selector term",
            ),
        ])
    )]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Which security groups instances are put into; terms are alternatives.
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = [
            rule("self.size() != 0", "securityGroupSelectorTerms cannot be empty"),
            rule(
                "self.all(x, has(x.tags) || has(x.id) || has(x.name))",
                "expected at least one, got none, ['tags', 'id', 'name']",
            ),
            rule(
                "!self.all(x, has(x.id) && (has(x.tags) || has(x.name)))",
                "'id' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
            ),
            rule(
                "!self.all(x, has(x.name) && (has(x.tags) || has(x.id)))",
                "'name' is mutually exclusive, cannot be set with a combination of other fields in a security group selector term",
            ),
        ])
    )]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Which capacity reservations may be used; terms are alternatives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 30),
        extend("x-kubernetes-validations" = [
            rule(
                "self.all(x, has(x.tags) || has(x.id) || has(x.instanceMatchCriteria))",
                "expected at least one, got none, ['tags', 'id', 'instanceMatchCriteria']",
            ),
            rule(
                "!self.all(x, has(x.id) && (has(x.tags) || has(x.ownerID) || has(x.instanceMatchCriteria)))",
                "'id' is mutually exclusive, cannot be set along with other fields in a capacity reservation selector term",
            ),
        ])
    )]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// Which placement group instances are launched into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        rule("has(self.name) || has(self.id)", "expected at least one, got none, ['name', 'id']"),
        rule("!(has(self.name) && has(self.id))", "'name' and 'id' are mutually exclusive"),
    ]))]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether instances get a public IP address, whatever the subnet says.
    #[serde(default, rename = "associatePublicIPAddress", skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// How many IPv4 prefixes the primary network interface gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Which images instances may be started from; terms are alternatives.
    #[schemars(
        length(min = 1, max = 30),
        extend("x-kubernetes-validations" = [
            rule(
                "self.all(x, has(x.tags) || has(x.id) || has(x.name) || has(x.alias) || has(x.ssmParameter))",
                "expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']",
            ),
            rule(
                "!self.exists(x, has(x.id) && (has(x.alias) || has(x.tags) || has(x.name) || has(x.owner)))",
                "'id' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
            ),
            rule(
                "!self.exists(x, has(x.alias) && (has(x.id) || has(x.tags) || has(x.name) || has(x.owner)))",
                "'alias' is mutually exclusive, cannot be set with a combination of other fields in amiSelectorTerms",
            ),
            rule(
                "!(self.exists(x, has(x.alias)) && self.size() != 1)",
                "'alias' is mutually exclusive, cannot be set with a combination of other amiSelectorTerms",
            ),
        ])
    )]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// How user data is written; follows from the alias when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// User data for the instances, merged with what the family needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// The IAM role of the instances; an instance profile is created for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rule("self != ''", "role cannot be empty")]))]
    pub role: Option<String>,
    /// The instance profile of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rule("self != ''", "instanceProfile cannot be empty")]))]
    pub instance_profile: Option<String>,
    /// Tags put on everything that is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        rule("self.all(k, k != '')", "empty tag keys aren't supported"),
        rule(
            "self.all(k, k !='eks:eks-cluster-name')",
            "tag contains a restricted tag matching eks:eks-cluster-name",
        ),
        rule(
            "self.all(k, !k.startsWith('kubernetes.io/cluster') )",
            "tag contains a restricted tag matching kubernetes.io/cluster/",
        ),
        rule(
            "self.all(k, k != 'karpenter.sh/nodepool')",
            "tag contains a restricted tag matching karpenter.sh/nodepool",
        ),
        rule(
            "self.all(k, k !='karpenter.sh/nodeclaim')",
            "tag contains a restricted tag matching karpenter.sh/nodeclaim",
        ),
        rule(
            "self.all(k, k !='karpenter.k8s.aws/ec2nodeclass')",
            "tag contains a restricted tag matching karpenter.k8s.aws/ec2nodeclass",
        ),
    ]))]
    pub tags: Option<BTreeMap<String, String>>,
    /// Settings of the kubelet, as KubeletConfiguration knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "kubelet")]
    pub kubelet: Option<BTreeMap<String, serde_json::Value>>,
    /// The volumes of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 50),
        extend("x-kubernetes-validations" = [rule(
            "self.filter(x, has(x.rootVolume)?x.rootVolume==true:false).size() <= 1",
            "must have only one blockDeviceMappings with rootVolume",
        )])
    )]
    pub block_device_mappings: Option<Vec<BlockDeviceMapping>>,
    /// What is done with the disks inside the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// The network interfaces of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 150),
        extend("x-kubernetes-validations" = [
            rule(
                "self.size() == 0 || self.exists(x, x.deviceIndex == 0 && x.networkCardIndex == 0 && x.interfaceType == 'interface')",
                "networkInterfaces must include a primary interface with interfaceType='interface'",
            ),
            rule(
                "self.all(x, self.filter(y, x.networkCardIndex == y.networkCardIndex && x.deviceIndex == y.deviceIndex).size() == 1 && (x.interfaceType != 'efa-only' || self.filter(y, x.networkCardIndex == y.networkCardIndex && y.interfaceType == 'efa-only').size() == 1))",
                "networkInterfaces must not have duplicate networkCardIndex and deviceIndex pairs, and can have at most one efa device per network card",
            ),
        ])
    )]
    pub network_interfaces: Option<Vec<NetworkInterface>>,
    /// Whether CloudWatch gets metrics every minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// Who can reach the instance metadata service.
    #[serde(default = "metadata_options", skip_serializing_if = "Option::is_none")]
    pub metadata_options: Option<MetadataOptions>,
    /// How long idle connections are tracked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rule(
        "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
        "at least one of tcpEstablishedTimeout, udpStreamTimeout, or udpTimeout must be set",
    )]))]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Passed on to CreateFleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Settings of the processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
}

/// Upstream admits anything here and reports what is wrong in the status.
fn kubelet(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// How user data is written and which devices are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AmiFamily {
    /// Amazon Linux 2.
    AL2,
    /// Amazon Linux 2023.
    AL2023,
    /// Bottlerocket.
    Bottlerocket,
    /// Something of the user's own.
    Custom,
    /// Windows Server 2019.
    Windows2019,
    /// Windows Server 2022.
    Windows2022,
    /// Windows Server 2025.
    Windows2025,
}

impl AmiFamily {
    /// Families that an alias can name, with the indefinite article their name takes.
    const WITH_ALIAS: [(Self, &'static str); 6] = [
        (Self::AL2, "an"),
        (Self::AL2023, "an"),
        (Self::Bottlerocket, "a"),
        (Self::Windows2019, "a"),
        (Self::Windows2022, "a"),
        (Self::Windows2025, "a"),
    ];

    /// The family's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AL2 => "AL2",
            Self::AL2023 => "AL2023",
            Self::Bottlerocket => "Bottlerocket",
            Self::Custom => "Custom",
            Self::Windows2019 => "Windows2019",
            Self::Windows2022 => "Windows2022",
            Self::Windows2025 => "Windows2025",
        }
    }

    /// The family's name in an alias.
    fn alias(self) -> String {
        self.as_str().to_ascii_lowercase()
    }

    /// The family that an alias names, if it names one.
    pub fn named_by_alias(name: &str) -> Option<Self> {
        Self::WITH_ALIAS.iter().map(|(family, _)| *family).find(|family| family.alias() == name)
    }
}

impl EC2NodeClassSpec {
    /// The family that applies: the one named, else that of the alias, else `Custom`.
    pub fn resolved_ami_family(&self) -> AmiFamily {
        self.ami_family.unwrap_or_else(|| {
            self.ami_selector_terms
                .iter()
                .filter_map(|term| term.alias.as_deref())
                .filter_map(|alias| alias.split('@').next())
                .find_map(AmiFamily::named_by_alias)
                .unwrap_or(AmiFamily::Custom)
        })
    }
}
