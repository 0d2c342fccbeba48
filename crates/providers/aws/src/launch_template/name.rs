//! What a launch template is called: it follows from what is in it.

use crate::hash::Hasher;
use crate::port::launch_template::{ConnectionTimeouts, MetadataSettings, ReservationUse};
use crate::port::{EbsVolume, LaunchTemplateData, Tags, TemplateInterface, VolumeMapping};

/// What names of our templates begin with.
pub const PREFIX: &str = "karpenter.k8s.aws/";

/// The name of a template with this in it and these tags. Everything is taken apart, so that nothing that is
/// added later is forgotten here.
pub fn name_of(data: &LaunchTemplateData, tags: &Tags) -> String {
    let LaunchTemplateData {
        image_id,
        user_data,
        instance_profile,
        detailed_monitoring,
        volumes,
        nested_virtualization,
        metadata,
        interfaces,
        interface_tags,
        spot_request_tags,
        tenancy,
        placement_group,
        partition,
        enclaves,
        reservation,
        market,
    } = data;
    let mut hasher = Hasher::default();
    hasher.text(image_id).text(user_data).text(instance_profile).flag(*detailed_monitoring);
    hasher.number(volumes.len() as u64);
    for each in volumes {
        volume(&mut hasher, each);
    }
    hasher.maybe(*nested_virtualization);
    let MetadataSettings { endpoint, ipv6, hop_limit, tokens } = *metadata;
    hasher.maybe(endpoint).maybe(ipv6).maybe(tokens);
    number(&mut hasher, hop_limit);
    hasher.number(interfaces.len() as u64);
    for each in interfaces {
        interface(&mut hasher, each);
    }
    for tags in [Some(tags), Some(interface_tags), spot_request_tags.as_ref()] {
        hasher.flag(tags.is_some());
        hasher.texts(tags.into_iter().flatten().flat_map(|(key, value)| [key.as_str(), value.as_str()]));
    }
    hasher.text(tenancy).maybe(placement_group.as_deref()).flag(*enclaves).maybe(*market);
    number(&mut hasher, *partition);
    match reservation {
        None => hasher.number(0),
        Some(ReservationUse::None) => hasher.number(1),
        Some(ReservationUse::Only(id)) => hasher.number(2).text(id),
    };
    format!("{PREFIX}{}", hasher.finish())
}

fn volume(hasher: &mut Hasher, VolumeMapping { device, ebs }: &VolumeMapping) {
    hasher.maybe(device.as_deref()).flag(ebs.is_some());
    let Some(ebs) = ebs else { return };
    let EbsVolume {
        delete_on_termination,
        encrypted,
        volume_type,
        iops,
        throughput,
        kms_key_id,
        snapshot_id,
        initialization_rate,
        size_gib,
    } = ebs;
    hasher.maybe(*volume_type).maybe(kms_key_id.as_deref()).maybe(snapshot_id.as_deref());
    flag(hasher, *delete_on_termination);
    flag(hasher, *encrypted);
    for value in [*iops, *throughput, *size_gib, initialization_rate.map(i64::from)] {
        number(hasher, value);
    }
}

fn interface(hasher: &mut Hasher, interface: &TemplateInterface) {
    let TemplateInterface {
        network_card,
        device,
        interface_type,
        security_groups,
        subnet,
        public_address,
        ipv4_prefixes,
        ipv6_prefixes,
        ipv6_addresses,
        primary_ipv6,
        connection_tracking,
    } = interface;
    hasher.maybe(*interface_type).maybe(subnet.as_deref());
    hasher.texts(security_groups.iter().map(String::as_str));
    flag(hasher, *public_address);
    flag(hasher, *primary_ipv6);
    hasher.flag(connection_tracking.is_some());
    let ConnectionTimeouts { tcp_established, udp_stream, udp } = connection_tracking.unwrap_or_default();
    for value in [
        *network_card,
        Some(*device),
        *ipv4_prefixes,
        *ipv6_prefixes,
        *ipv6_addresses,
        tcp_established,
        udp_stream,
        udp,
    ] {
        number(hasher, value);
    }
}

fn flag(hasher: &mut Hasher, flag: Option<bool>) {
    hasher.flag(flag.is_some()).flag(flag.unwrap_or_default());
}

fn number<N: Into<i64>>(hasher: &mut Hasher, number: Option<N>) {
    hasher.flag(number.is_some()).number(number.map_or(0, Into::into).cast_unsigned());
}
