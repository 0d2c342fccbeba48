//! Settings of the instances that an EC2NodeClass launches: volumes, network, metadata service, processors.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use units::Quantity;

use crate::schema::rule;

/// One volume of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// The device, such as `/dev/xvda`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The EBS volume behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        rule("has(self.snapshotID) || has(self.volumeSize)", "snapshotID or volumeSize must be defined"),
        rule(
            "!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')",
            "snapshotID must be set when volumeInitializationRate is set",
        ),
    ]))]
    pub ebs: Option<BlockDevice>,
    /// Whether the kubelet keeps its data on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub root_volume: bool,
}

/// An EBS volume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDevice {
    /// Whether the volume goes with the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Whether the volume is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Provisioned operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// The key that encrypts the volume.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// The snapshot that the volume starts from.
    #[serde(default, rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Provisioned throughput in MiB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// How fast the snapshot is loaded, in MiB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// The volume's size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "volume_size")]
    pub volume_size: Option<Quantity>,
    /// The volume's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}

fn volume_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$",
    })
}

/// The type of an EBS volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VolumeType {
    /// Magnetic.
    Standard,
    /// Provisioned operations.
    Io1,
    /// Provisioned operations, second generation.
    Io2,
    /// General purpose, second generation.
    Gp2,
    /// Cold magnetic.
    Sc1,
    /// Throughput-optimised magnetic.
    St1,
    /// General purpose, third generation.
    Gp3,
}

impl VolumeType {
    /// The type's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Io1 => "io1",
            Self::Io2 => "io2",
            Self::Gp2 => "gp2",
            Self::Sc1 => "sc1",
            Self::St1 => "st1",
            Self::Gp3 => "gp3",
        }
    }
}

/// What is done with the disks inside the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceStorePolicy {
    /// They become one striped volume for the kubelet and containers.
    RAID0,
}

impl InstanceStorePolicy {
    /// The policy's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RAID0 => "RAID0",
        }
    }
}

/// One network interface of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// Which network card it is on.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// Its place on the card.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// What it is.
    pub interface_type: InterfaceType,
}

/// What a network interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceType {
    /// An ordinary interface.
    Interface,
    /// An Elastic Fabric Adapter without IP.
    EfaOnly,
}

impl InterfaceType {
    /// The type's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::EfaOnly => "efa-only",
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
pub(super) fn metadata_options() -> Option<MetadataOptions> {
    Some(MetadataOptions {
        http_endpoint: http_endpoint(),
        http_protocol_ipv6: http_protocol_ipv6(),
        http_put_response_hop_limit: http_put_response_hop_limit(),
        http_tokens: http_tokens(),
    })
}

/// Who can reach the instance metadata service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether the service answers at all.
    #[serde(default = "http_endpoint", skip_serializing_if = "Option::is_none")]
    pub http_endpoint: Option<Toggle>,
    /// Whether it answers over IPv6.
    #[serde(
        default = "http_protocol_ipv6",
        rename = "httpProtocolIPv6",
        skip_serializing_if = "Option::is_none"
    )]
    pub http_protocol_ipv6: Option<Toggle>,
    /// How many hops an answer may travel.
    #[serde(default = "http_put_response_hop_limit", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether a session token is needed.
    #[serde(default = "http_tokens", skip_serializing_if = "Option::is_none")]
    pub http_tokens: Option<HttpTokens>,
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn http_endpoint() -> Option<Toggle> {
    Some(Toggle::Enabled)
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn http_protocol_ipv6() -> Option<Toggle> {
    Some(Toggle::Disabled)
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn http_put_response_hop_limit() -> Option<i64> {
    Some(1)
}

#[expect(clippy::unnecessary_wraps, reason = "serde needs the type of the field")]
fn http_tokens() -> Option<HttpTokens> {
    Some(HttpTokens::Required)
}

/// Whether something is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Toggle {
    /// It is on.
    Enabled,
    /// It is off.
    Disabled,
}

impl Toggle {
    /// The setting's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
        }
    }
}

/// Whether the instance metadata service needs a session token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpTokens {
    /// It is needed.
    Required,
    /// It is not needed.
    Optional,
}

impl HttpTokens {
    /// The setting's name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
        }
    }
}

/// How long idle connections are tracked, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// Established TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432_000))]
    pub tcp_established_timeout: Option<i32>,
    /// UDP flows with several requests and answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// UDP flows with one request and answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// Settings of the processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether instances can run virtual machines themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<Toggle>,
}
