//! What is in a launch template.

use std::net::IpAddr;

use api::aws::MetadataOptions;
use api::names::resources;
use api::names::values::capacity_type;

use super::{Launch, TemplateError, interfaces, volumes};
use crate::kubelet::Resolved;
use crate::port::LaunchTemplateData;
use crate::port::launch_template::{MetadataSettings, ReservationUse};
use crate::user_data::Bootstrap;

/// Regions whose EC2 does not know whether metadata can be had over IPv6.
const WITHOUT_IPV6_METADATA: [&str; 6] = [
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-south-1",
    "us-isof-east-1",
];

/// What instance types must agree in to share a template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    /// The image.
    pub(super) image: String,
    /// How many fabric adapters they get.
    pub(super) fabric: i64,
    /// How many pods they take.
    pub(super) pods: i64,
    /// The kubelet's settings for them.
    pub(super) resolved: Resolved,
    /// The reservation that they are launched into.
    pub(super) reservation: Option<Reservation>,
}

/// A reservation that instances are launched into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reservation {
    pub(super) id: String,
    pub(super) is_block: bool,
    pub(super) is_interruptible: bool,
}

/// What is in a launch template.
pub(super) fn data(launch: &Launch<'_>, kind: &Kind) -> Result<LaunchTemplateData, TemplateError> {
    let Launch { class, claim, cluster, capacity_type, .. } = *launch;
    let bootstrap = Bootstrap::new(class, claim, cluster, capacity_type, kind.pods, &kind.resolved);
    let cpu = class.spec.cpu_options.as_ref().and_then(|options| options.nested_virtualization);
    let has_ipv6 = cluster.dns.is_some_and(|dns: IpAddr| dns.is_ipv6());
    Ok(LaunchTemplateData {
        image_id: kind.image.clone(),
        user_data: bootstrap.render()?,
        instance_profile: class.status.instance_profile.clone(),
        detailed_monitoring: class.spec.detailed_monitoring.unwrap_or_default(),
        volumes: volumes::of(class),
        nested_virtualization: cpu.map(api::aws::Toggle::as_str),
        metadata: metadata(class.spec.metadata_options.as_ref(), has_ipv6, launch.region),
        interfaces: interfaces::of(class, kind.fabric, has_ipv6),
        interface_tags: launch.tags.clone(),
        spot_request_tags: (capacity_type == capacity_type::SPOT).then(|| launch.tags.clone()),
        tenancy: launch.tenancy.to_owned(),
        placement_group: class.placement_group.map(|group| group.id.clone()),
        partition: launch.partition.and_then(|number| number.parse().ok()).filter(|number| *number != 0),
        enclaves: claim.spec.resources.requests.contains_key(resources::AWS_NITRO_SANDBOX),
        reservation: launch.reserved_capacity.then(|| {
            kind.reservation
                .as_ref()
                .map_or(ReservationUse::None, |each| ReservationUse::Only(each.id.clone()))
        }),
        market: kind.reservation.as_ref().filter(|_| launch.reserved_capacity).and_then(market),
    })
}

fn market(reservation: &Reservation) -> Option<&'static str> {
    match (reservation.is_block, reservation.is_interruptible) {
        (true, _) => Some("capacity-block"),
        (false, true) => Some("interruptible-capacity-reservation"),
        (false, false) => None,
    }
}

/// Objects that never saw an API server have no defaults; these are the most careful ones that work.
fn metadata(options: Option<&MetadataOptions>, has_ipv6: bool, region: &str) -> MetadataSettings {
    let mut settings = match options {
        Some(options) => MetadataSettings {
            endpoint: options.http_endpoint.map(api::aws::Toggle::as_str),
            ipv6: options.http_protocol_ipv6.map(api::aws::Toggle::as_str),
            hop_limit: options.http_put_response_hop_limit,
            tokens: options.http_tokens.map(api::aws::HttpTokens::as_str),
        },
        None => MetadataSettings {
            endpoint: Some("disabled"),
            ipv6: Some(if has_ipv6 { "enabled" } else { "disabled" }),
            hop_limit: Some(2),
            tokens: Some("required"),
        },
    };
    if WITHOUT_IPV6_METADATA.contains(&region) {
        settings.ipv6 = None;
    }
    settings
}
