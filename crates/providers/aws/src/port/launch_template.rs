//! Launch templates.
//!
//! Whatever is in them, InstanceMetadataTags is sent as `disabled`, security groups are those of the interfaces,
//! and for reservations the preference is `capacity-reservations-only` with the target, or `none`.

use super::{Filter, Tags};

/// A launch template that exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchTemplate {
    /// Its ID.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// Which launch templates are asked for: those with a name, or those that satisfy all filters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchTemplateQuery {
    /// The one with a name; not finding it is an error.
    Name(String),
    /// Those that satisfy all filters.
    Filters(Vec<Filter>),
}

/// One launch template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchTemplateRef {
    /// The one with an ID.
    Id(String),
    /// The one with a name.
    Name(String),
}

/// A launch template to be created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewLaunchTemplate {
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Tags,
    /// What instances are launched with.
    pub data: LaunchTemplateData,
}

/// What instances are launched with. What is absent is not sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchTemplateData {
    /// The image.
    pub image_id: String,
    /// What the machine does when it starts, in base64.
    pub user_data: String,
    /// The name of the instance profile.
    pub instance_profile: String,
    /// Whether there are metrics every minute.
    pub detailed_monitoring: bool,
    /// The volumes; those of the image when empty.
    pub volumes: Vec<VolumeMapping>,
    /// Whether instances can run virtual machines themselves.
    pub nested_virtualization: Option<&'static str>,
    /// Who can reach the instance metadata service. Tags are never readable there.
    pub metadata: MetadataSettings,
    /// The network interfaces.
    pub interfaces: Vec<TemplateInterface>,
    /// Tags of network interfaces.
    pub interface_tags: Tags,
    /// Tags of spot requests; nothing is sent unless it is for spot instances.
    pub spot_request_tags: Option<Tags>,
    /// Whether the hardware is shared.
    pub tenancy: String,
    /// The placement group.
    pub placement_group: Option<String>,
    /// The partition of the placement group.
    pub partition: Option<u32>,
    /// Whether enclaves can be run.
    pub enclaves: bool,
    /// Which reservations are used; nothing is sent when reservations are none of our business.
    pub reservation: Option<ReservationUse>,
    /// How the market is called for reservations that are not the usual ones.
    pub market: Option<&'static str>,
}

/// Which reservations instances are launched into.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReservationUse {
    /// This one, or nothing is launched.
    Only(String),
    /// None, not even open ones.
    None,
}

/// Who can reach the instance metadata service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MetadataSettings {
    /// Whether the service answers at all.
    pub endpoint: Option<&'static str>,
    /// Whether it answers over IPv6.
    pub ipv6: Option<&'static str>,
    /// How many hops an answer may travel.
    pub hop_limit: Option<i64>,
    /// Whether a session token is needed.
    pub tokens: Option<&'static str>,
}

/// A volume of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeMapping {
    /// The device.
    pub device: Option<String>,
    /// The volume behind it.
    pub ebs: Option<EbsVolume>,
}

/// An EBS volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EbsVolume {
    /// Whether the volume goes with the instance.
    pub delete_on_termination: Option<bool>,
    /// Whether it is encrypted.
    pub encrypted: Option<bool>,
    /// Its type.
    pub volume_type: Option<&'static str>,
    /// Provisioned operations per second.
    pub iops: Option<i64>,
    /// Provisioned throughput in MiB per second.
    pub throughput: Option<i64>,
    /// The key that encrypts it.
    pub kms_key_id: Option<String>,
    /// The snapshot that it starts from.
    pub snapshot_id: Option<String>,
    /// How fast the snapshot is loaded, in MiB per second.
    pub initialization_rate: Option<i32>,
    /// Its size in GiB.
    pub size_gib: Option<i64>,
}

/// A network interface of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TemplateInterface {
    /// Which network card it is on.
    pub network_card: Option<i32>,
    /// Its place on the card.
    pub device: i32,
    /// What it is; an ordinary one when absent.
    pub interface_type: Option<&'static str>,
    /// The security groups.
    pub security_groups: Vec<String>,
    /// The subnet; templates leave it open.
    pub subnet: Option<String>,
    /// Whether it gets a public address.
    pub public_address: Option<bool>,
    /// How many IPv4 prefixes it gets.
    pub ipv4_prefixes: Option<i32>,
    /// How many IPv6 prefixes it gets.
    pub ipv6_prefixes: Option<i32>,
    /// How many IPv6 addresses it gets.
    pub ipv6_addresses: Option<i32>,
    /// Whether its first IPv6 address stays the same.
    pub primary_ipv6: Option<bool>,
    /// How long idle connections are tracked.
    pub connection_tracking: Option<ConnectionTimeouts>,
}

/// How long idle connections are tracked, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConnectionTimeouts {
    /// Established TCP connections.
    pub tcp_established: Option<i32>,
    /// UDP flows with several requests and answers.
    pub udp_stream: Option<i32>,
    /// UDP flows with one request and answer.
    pub udp: Option<i32>,
}
