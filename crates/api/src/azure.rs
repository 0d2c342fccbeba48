//! AKSNodeClass (`karpenter.azure.com`, `v1beta1` and the deprecated `v1alpha2`): how Azure VMs are configured.
//!
//! Both versions have the same schema, so objects pass from one to the other untouched.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resource::{Column, CustomResource, Definition, custom_resource};
use crate::schema::{self, Rule, rule};
use crate::shared::Condition;

mod dns;
mod os;

pub use dns::*;
pub use os::*;

custom_resource! {
    /// How Azure VMs are configured.
    AKSNodeClass {
        group: "karpenter.azure.com", version: "v1beta1", plural: "aksnodeclasses", scope: ClusterResourceScope,
        spec: #[serde(default)] AKSNodeClassSpec, status: AKSNodeClassStatus
    }
}

impl CustomResource for AKSNodeClass {
    type Spec = AKSNodeClassSpec;
    type Status = AKSNodeClassStatus;
    const DEFINITION: Definition = DEFINITION;

    fn spec_rules() -> Vec<Rule> {
        spec_rules()
    }
}

/// The deprecated version of the same kind.
pub mod v1alpha2 {
    use super::{AKSNodeClassSpec, AKSNodeClassStatus, DEFINITION, spec_rules};
    use crate::resource::{CustomResource, Definition, custom_resource};
    use crate::schema::Rule;

    custom_resource! {
        /// How Azure VMs are configured.
        AKSNodeClass {
            group: "karpenter.azure.com", version: "v1alpha2", plural: "aksnodeclasses",
            scope: ClusterResourceScope, spec: #[serde(default)] AKSNodeClassSpec, status: AKSNodeClassStatus
        }
    }

    impl CustomResource for AKSNodeClass {
        type Spec = AKSNodeClassSpec;
        type Status = AKSNodeClassStatus;
        const DEFINITION: Definition =
            Definition { deprecation: Some("use v1beta1.AKSNodeClass instead"), ..DEFINITION };

        fn spec_rules() -> Vec<Rule> {
            spec_rules()
        }
    }
}

const DEFINITION: Definition = Definition {
    description: "How Azure VMs are configured.",
    short_names: &["aksnc", "aksncs"],
    categories: &["karpenter", "nap"],
    namespaced: false,
    columns: &[
        Column::new("Ready", "string", ".status.conditions[?(@.type=='Ready')].status"),
        Column::new("Age", "date", ".metadata.creationTimestamp"),
        Column::wide("ImageFamily", "string", ".spec.imageFamily"),
    ],
    scale: None,
    spec_required: false,
    deprecation: None,
};

fn spec_rules() -> Vec<Rule> {
    // Whether FIPS or Trusted Launch is asked for, in CEL.
    const FIPS: &str = "has(self.fipsMode) && self.fipsMode == 'FIPS'";
    const TRUSTED: &str = "(has(self.security) && has(self.security.trustedLaunch) && ((has(self.security.trustedLaunch.vtpm) && self.security.trustedLaunch.vtpm) || (has(self.security.trustedLaunch.secureBoot) && self.security.trustedLaunch.secureBoot)))";
    vec![
        rule(
            format!("!({FIPS}) || (has(self.imageFamily) && self.imageFamily != 'Ubuntu2404')"),
            "FIPS is not yet supported for Ubuntu2404",
        ),
        rule(
            format!(
                "!({FIPS}) || (has(self.imageFamily) && (self.imageFamily != 'Ubuntu2204' || {TRUSTED}))"
            ),
            "TrustedLaunch is required for FIPS support with Ubuntu2204",
        ),
        rule(
            format!(
                "!({FIPS} && {TRUSTED}) || !has(self.imageFamily) || self.imageFamily in ['Ubuntu', 'Ubuntu2204']"
            ),
            "TrustedLaunch with FIPSMode FIPS is only supported for Ubuntu and Ubuntu2204",
        ),
        rule(
            "!has(self.linuxOSConfig) || !has(self.linuxOSConfig.swapFileSize) || (has(self.kubelet) && has(self.kubelet.failSwapOn) && self.kubelet.failSwapOn == false)",
            "kubelet.failSwapOn must be set to false when linuxOSConfig.swapFileSize is specified",
        ),
    ]
}

// Nothing is defaulted where `spec` is absent altogether, as on the API server.
/// How Azure VMs are configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AKSNodeClassSpec {
    /// The subnet of the VMs' network interfaces; the cluster's when absent.
    #[serde(default, rename = "vnetSubnetID", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"(?i)^\/subscriptions\/[^\/]+\/resourceGroups\/[a-zA-Z0-9_\-().]{0,89}[a-zA-Z0-9_\-()]\/providers\/Microsoft\.Network\/virtualNetworks\/[^\/]+\/subnets\/[^\/]+$"))]
    pub vnet_subnet_id: Option<String>,
    /// The size of the OS disk.
    #[serde(default = "os_disk_size_gb", rename = "osDiskSizeGB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 2048))]
    pub os_disk_size_gb: Option<i32>,
    /// Which images the VMs are started from.
    #[serde(default = "image_family", skip_serializing_if = "Option::is_none")]
    pub image_family: Option<ImageFamily>,
    /// Whether only validated cryptography is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fips_mode: Option<FipsMode>,
    /// Tags put on everything that is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        rule("self.all(k, size(k) <= 512)", "tags keys must be less than 512 characters"),
        rule("self.all(k, !k.matches('[<>%&?]'))", "tags keys must not contain '<', '>', '%', '&', or '?'"),
        rule(r"self.all(k, !k.contains('\\'))", r"tags keys must not contain '\'"),
        rule("self.all(k, size(self[k]) <= 256)", "tags values must be less than 256 characters"),
    ]))]
    pub tags: Option<BTreeMap<String, String>>,
    /// Settings of the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rule(
        "has(self.imageGCHighThresholdPercent) && has(self.imageGCLowThresholdPercent) ? self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent : true",
        "imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",
    )]))]
    pub kubelet: Option<KubeletConfiguration>,
    /// How many pods a node takes; follows from the network plugin when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 250))]
    pub max_pods: Option<i32>,
    /// How the VMs are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// The DNS cache on the nodes.
    #[serde(default, rename = "localDNS", skip_serializing_if = "Option::is_none")]
    pub local_dns: Option<LocalDns>,
    /// How GPUs are set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Whether containers start before their image is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_streaming: Option<ArtifactStreaming>,
    /// Settings of the Linux kernel.
    #[serde(default, rename = "linuxOSConfig", skip_serializing_if = "Option::is_none")]
    pub linux_os_config: Option<LinuxOsConfiguration>,
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn os_disk_size_gb() -> Option<i32> {
    Some(128)
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn image_family() -> Option<ImageFamily> {
    Some(ImageFamily::Ubuntu)
}

/// Which images VMs are started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImageFamily {
    /// The Ubuntu that fits the cluster's version.
    Ubuntu,
    /// Ubuntu 22.04.
    Ubuntu2204,
    /// Ubuntu 24.04.
    Ubuntu2404,
    /// The Azure Linux that fits the cluster's version.
    AzureLinux,
}

impl ImageFamily {
    /// The family's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ubuntu => "Ubuntu",
            Self::Ubuntu2204 => "Ubuntu2204",
            Self::Ubuntu2404 => "Ubuntu2404",
            Self::AzureLinux => "AzureLinux",
        }
    }
}

/// Whether only validated cryptography is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FipsMode {
    /// It is.
    FIPS,
    /// It is not.
    Disabled,
}

impl FipsMode {
    /// The mode's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FIPS => "FIPS",
            Self::Disabled => "Disabled",
        }
    }
}

/// How VMs are protected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Security {
    /// Whether temporary disks and caches are encrypted on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption_at_host: Option<bool>,
    /// Protection of the boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_launch: Option<TrustedLaunch>,
}

/// Protection of the boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedLaunch {
    /// Whether the VM has a virtual TPM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vtpm: Option<bool>,
    /// Whether only signed code boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
}

/// How GPUs are set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// Whether drivers are installed.
    #[serde(default = "gpu_mode", skip_serializing_if = "Option::is_none")]
    pub mode: Option<GpuMode>,
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn gpu_mode() -> Option<GpuMode> {
    Some(GpuMode::Driver)
}

/// Whether GPU drivers are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GpuMode {
    /// They are.
    Driver,
    /// They are not.
    None,
}

impl GpuMode {
    /// The mode's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Driver => "Driver",
            Self::None => "None",
        }
    }
}

/// Whether containers start before their image is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactStreaming {
    /// They do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// What the class resolves to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AKSNodeClassStatus {
    /// The images, the preferred one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<NodeImage>,
    /// The Kubernetes version of new nodes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes_version: String,
    /// Whether nodes get a DNS cache.
    #[serde(default, rename = "localDNSState", skip_serializing_if = "Option::is_none")]
    pub local_dns_state: Option<LocalDnsState>,
    /// What is known about the class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::unkeyed_conditions")]
    pub conditions: Vec<Condition>,
}

/// An image that VMs can be started from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeImage {
    /// The image's resource ID.
    pub id: String,
    /// Which VM sizes can start it.
    #[schemars(schema_with = "schema::node_selector_requirements")]
    pub requirements: Vec<NodeSelectorRequirement>,
}

/// Whether nodes get a DNS cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LocalDnsState {
    /// They do.
    Enabled,
    /// They do not.
    Disabled,
}
