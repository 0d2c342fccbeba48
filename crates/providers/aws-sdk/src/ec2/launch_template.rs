//! Launch templates, and network interfaces, which runs have, too.

use aws::port::launch_template::{ConnectionTimeouts, MetadataSettings, ReservationUse};
use aws::port::{EbsVolume, LaunchTemplate, LaunchTemplateData, Tags, TemplateInterface, VolumeMapping};
use aws_sdk_ec2::types::{
    self, CapacityReservationPreference, CapacityReservationTarget, ConnectionTrackingSpecificationRequest,
    InstanceNetworkInterfaceSpecification, LaunchTemplateBlockDeviceMappingRequest,
    LaunchTemplateCapacityReservationSpecificationRequest, LaunchTemplateCpuOptionsRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateEnclaveOptionsRequest, LaunchTemplateHttpTokensState,
    LaunchTemplateIamInstanceProfileSpecificationRequest, LaunchTemplateInstanceMarketOptionsRequest,
    LaunchTemplateInstanceMetadataEndpointState, LaunchTemplateInstanceMetadataOptionsRequest,
    LaunchTemplateInstanceMetadataProtocolIpv6, LaunchTemplateInstanceMetadataTagsState,
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest, LaunchTemplatePlacementRequest,
    LaunchTemplateTagSpecificationRequest, LaunchTemplatesMonitoringRequest, MarketType,
    NestedVirtualizationSpecification, RequestLaunchTemplateData, ResourceType, Tenancy, VolumeType,
};

use super::common;

/// A launch template that exists.
pub(super) fn existing(described: types::LaunchTemplate) -> Option<LaunchTemplate> {
    Some(LaunchTemplate {
        id: described.launch_template_id?,
        name: described.launch_template_name.unwrap_or_default(),
    })
}

/// What instances are launched with.
pub(super) fn data(wanted: &LaunchTemplateData) -> RequestLaunchTemplateData {
    let profile = LaunchTemplateIamInstanceProfileSpecificationRequest::builder()
        .name(&wanted.instance_profile)
        .build();
    let volumes: Vec<_> = wanted.volumes.iter().map(volume).collect();
    let cpu = wanted.nested_virtualization.map(|nested| {
        let nested = NestedVirtualizationSpecification::from(nested);
        LaunchTemplateCpuOptionsRequest::builder().nested_virtualization(nested).build()
    });
    let market = wanted.market.map(|market| {
        let market = MarketType::from(market);
        LaunchTemplateInstanceMarketOptionsRequest::builder().market_type(market).build()
    });
    RequestLaunchTemplateData::builder()
        .image_id(&wanted.image_id)
        .user_data(&wanted.user_data)
        .iam_instance_profile(profile)
        .monitoring(LaunchTemplatesMonitoringRequest::builder().enabled(wanted.detailed_monitoring).build())
        .set_block_device_mappings((!volumes.is_empty()).then_some(volumes))
        .set_cpu_options(cpu)
        .metadata_options(metadata(&wanted.metadata))
        .set_network_interfaces(Some(wanted.interfaces.iter().map(interface).collect()))
        .set_tag_specifications(tag_specifications(wanted))
        .placement(placement(wanted))
        .enclave_options(LaunchTemplateEnclaveOptionsRequest::builder().enabled(wanted.enclaves).build())
        .set_capacity_reservation_specification(wanted.reservation.as_ref().map(reservation))
        .set_instance_market_options(market)
        .build()
}

/// A number that is small enough for EC2; what is not, is refused by it anyway.
fn small(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

fn volume(wanted: &VolumeMapping) -> LaunchTemplateBlockDeviceMappingRequest {
    LaunchTemplateBlockDeviceMappingRequest::builder()
        .set_device_name(wanted.device.clone())
        .set_ebs(wanted.ebs.as_ref().map(ebs))
        .build()
}

fn ebs(wanted: &EbsVolume) -> LaunchTemplateEbsBlockDeviceRequest {
    LaunchTemplateEbsBlockDeviceRequest::builder()
        .set_delete_on_termination(wanted.delete_on_termination)
        .set_encrypted(wanted.encrypted)
        .set_volume_type(wanted.volume_type.map(VolumeType::from))
        .set_iops(wanted.iops.map(small))
        .set_throughput(wanted.throughput.map(small))
        .set_kms_key_id(wanted.kms_key_id.clone())
        .set_snapshot_id(wanted.snapshot_id.clone())
        .set_volume_initialization_rate(wanted.initialization_rate)
        .set_volume_size(wanted.size_gib.map(small))
        .build()
}

fn metadata(wanted: &MetadataSettings) -> LaunchTemplateInstanceMetadataOptionsRequest {
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .set_http_endpoint(wanted.endpoint.map(LaunchTemplateInstanceMetadataEndpointState::from))
        .set_http_protocol_ipv6(wanted.ipv6.map(LaunchTemplateInstanceMetadataProtocolIpv6::from))
        .set_http_put_response_hop_limit(wanted.hop_limit.map(small))
        .set_http_tokens(wanted.tokens.map(LaunchTemplateHttpTokensState::from))
        // Names of tags may have letters that paths cannot have; then nothing would be launched.
        .instance_metadata_tags(LaunchTemplateInstanceMetadataTagsState::Disabled)
        .build()
}

fn tag_specifications(wanted: &LaunchTemplateData) -> Option<Vec<LaunchTemplateTagSpecificationRequest>> {
    let specification = |kind: ResourceType, tags: &Tags| {
        LaunchTemplateTagSpecificationRequest::builder()
            .resource_type(kind)
            .set_tags(Some(common::tags(tags)))
            .build()
    };
    let interfaces = (ResourceType::NetworkInterface, Some(&wanted.interface_tags));
    let spot = (ResourceType::SpotInstancesRequest, wanted.spot_request_tags.as_ref());
    let all = [interfaces, spot].into_iter().filter_map(|(kind, tags)| {
        // EC2 refuses an empty list.
        tags.filter(|tags| !tags.is_empty()).map(|tags| specification(kind, tags))
    });
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then_some(all)
}

fn placement(wanted: &LaunchTemplateData) -> LaunchTemplatePlacementRequest {
    let partition = wanted.partition.and_then(|partition| i32::try_from(partition).ok());
    let tenancy = (!wanted.tenancy.is_empty()).then(|| Tenancy::from(wanted.tenancy.as_str()));
    LaunchTemplatePlacementRequest::builder()
        .set_tenancy(tenancy)
        .set_group_id(wanted.placement_group.clone())
        .set_partition_number(partition)
        .build()
}

fn reservation(wanted: &ReservationUse) -> LaunchTemplateCapacityReservationSpecificationRequest {
    let empty = LaunchTemplateCapacityReservationSpecificationRequest::builder();
    match wanted {
        ReservationUse::Only(id) => empty
            .capacity_reservation_preference(CapacityReservationPreference::CapacityReservationsOnly)
            .capacity_reservation_target(
                CapacityReservationTarget::builder().capacity_reservation_id(id).build(),
            ),
        ReservationUse::None => empty.capacity_reservation_preference(CapacityReservationPreference::None),
    }
    .build()
}

fn interface(wanted: &TemplateInterface) -> LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .set_network_card_index(wanted.network_card)
        .device_index(wanted.device)
        .set_interface_type(wanted.interface_type.map(str::to_owned))
        .set_groups(groups(wanted))
        .set_subnet_id(wanted.subnet.clone())
        .set_associate_public_ip_address(wanted.public_address)
        .set_ipv4_prefix_count(wanted.ipv4_prefixes)
        .set_ipv6_prefix_count(wanted.ipv6_prefixes)
        .set_ipv6_address_count(wanted.ipv6_addresses)
        .set_primary_ipv6(wanted.primary_ipv6)
        .set_connection_tracking_specification(wanted.connection_tracking.map(tracking))
        .build()
}

/// A network interface of a run; EC2 has another type for the same thing.
pub(super) fn run_interface(wanted: &TemplateInterface) -> InstanceNetworkInterfaceSpecification {
    InstanceNetworkInterfaceSpecification::builder()
        .set_network_card_index(wanted.network_card)
        .device_index(wanted.device)
        .set_interface_type(wanted.interface_type.map(str::to_owned))
        .set_groups(groups(wanted))
        .set_subnet_id(wanted.subnet.clone())
        .set_associate_public_ip_address(wanted.public_address)
        .set_ipv4_prefix_count(wanted.ipv4_prefixes)
        .set_ipv6_prefix_count(wanted.ipv6_prefixes)
        .set_ipv6_address_count(wanted.ipv6_addresses)
        .set_primary_ipv6(wanted.primary_ipv6)
        .set_connection_tracking_specification(wanted.connection_tracking.map(tracking))
        .build()
}

fn groups(wanted: &TemplateInterface) -> Option<Vec<String>> {
    (!wanted.security_groups.is_empty()).then(|| wanted.security_groups.clone())
}

fn tracking(wanted: ConnectionTimeouts) -> ConnectionTrackingSpecificationRequest {
    ConnectionTrackingSpecificationRequest::builder()
        .set_tcp_established_timeout(wanted.tcp_established)
        .set_udp_stream_timeout(wanted.udp_stream)
        .set_udp_timeout(wanted.udp)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(key: &str) -> Tags {
        [(key.to_owned(), "v".to_owned())].into()
    }

    fn wanted() -> LaunchTemplateData {
        LaunchTemplateData {
            image_id: "ami-1".to_owned(),
            instance_profile: "profile".to_owned(),
            tenancy: "default".to_owned(),
            interface_tags: tags("interface"),
            interfaces: vec![TemplateInterface {
                security_groups: vec!["sg-1".to_owned()],
                ipv6_addresses: Some(1),
                ..TemplateInterface::default()
            }],
            ..LaunchTemplateData::default()
        }
    }

    #[test]
    fn what_is_absent_is_not_sent() {
        let built = data(&wanted());
        assert_eq!(built.block_device_mappings, None);
        assert_eq!(built.cpu_options, None);
        assert_eq!(built.capacity_reservation_specification, None);
        assert_eq!(built.instance_market_options, None);
        assert_eq!((built.security_group_ids, built.instance_type), (None, None));
        assert_eq!(built.enclave_options.and_then(|options| options.enabled), Some(false));
        let kinds: Vec<_> =
            built.tag_specifications.into_iter().flatten().map(|all| all.resource_type).collect();
        assert_eq!(kinds, [Some(ResourceType::NetworkInterface)]);
    }

    #[test]
    fn tags_can_never_be_read_on_the_machine() {
        let tags = data(&wanted()).metadata_options.and_then(|options| options.instance_metadata_tags);
        assert_eq!(tags, Some(LaunchTemplateInstanceMetadataTagsState::Disabled));
    }

    #[test]
    fn spot_requests_have_their_tags_only_for_spot() {
        let spot = LaunchTemplateData { spot_request_tags: Some(tags("spot")), ..wanted() };
        let all = data(&spot).tag_specifications.unwrap();
        assert_eq!(all[1].resource_type, Some(ResourceType::SpotInstancesRequest));
        assert_eq!(all[1].tags.as_ref().unwrap()[0].key.as_deref(), Some("spot"));
    }

    #[test]
    fn a_reservation_is_the_only_one_or_there_is_none() {
        let of = |reservation| {
            let built = data(&LaunchTemplateData { reservation: Some(reservation), ..wanted() });
            let built = built.capacity_reservation_specification.unwrap();
            let target = built.capacity_reservation_target.and_then(|target| target.capacity_reservation_id);
            (built.capacity_reservation_preference.unwrap().as_str().to_owned(), target)
        };
        let only = ("capacity-reservations-only".to_owned(), Some("cr-1".to_owned()));
        assert_eq!(of(ReservationUse::Only("cr-1".to_owned())), only);
        assert_eq!(of(ReservationUse::None), ("none".to_owned(), None));
    }

    #[test]
    fn volumes_keep_every_setting() {
        let volume = EbsVolume {
            delete_on_termination: Some(true),
            encrypted: Some(false),
            volume_type: Some("gp3"),
            iops: Some(3000),
            throughput: Some(125),
            kms_key_id: Some("key".to_owned()),
            snapshot_id: Some("snap-1".to_owned()),
            initialization_rate: Some(100),
            size_gib: Some(20),
        };
        let mapping = VolumeMapping { device: Some("/dev/xvda".to_owned()), ebs: Some(volume) };
        let built = data(&LaunchTemplateData { volumes: vec![mapping], ..wanted() });
        let mapping = &built.block_device_mappings.unwrap()[0];
        assert_eq!(mapping.device_name.as_deref(), Some("/dev/xvda"));
        let expected = LaunchTemplateEbsBlockDeviceRequest::builder()
            .delete_on_termination(true)
            .encrypted(false)
            .volume_type(VolumeType::Gp3)
            .iops(3000)
            .throughput(125)
            .kms_key_id("key")
            .snapshot_id("snap-1")
            .volume_initialization_rate(100)
            .volume_size(20)
            .build();
        assert_eq!(mapping.ebs.as_ref(), Some(&expected));
        assert_eq!((small(i64::MAX), small(i64::MIN), small(-1)), (i32::MAX, i32::MIN, -1));
    }

    #[test]
    fn interfaces_of_templates_and_of_runs_say_the_same() {
        let both = TemplateInterface {
            network_card: Some(1),
            device: 1,
            interface_type: Some("efa"),
            subnet: Some("subnet-1".to_owned()),
            public_address: Some(false),
            connection_tracking: Some(ConnectionTimeouts { udp: Some(30), ..ConnectionTimeouts::default() }),
            ..wanted().interfaces.remove(0)
        };
        let (of_template, of_run) = (interface(&both), run_interface(&both));
        assert_eq!(of_template.groups, of_run.groups);
        assert_eq!(of_template.subnet_id, of_run.subnet_id);
        assert_eq!(of_template.interface_type, of_run.interface_type);
        assert_eq!(of_template.network_card_index, of_run.network_card_index);
        assert_eq!(of_template.device_index, of_run.device_index);
        assert_eq!(of_template.associate_public_ip_address, of_run.associate_public_ip_address);
        assert_eq!(of_template.ipv6_address_count, of_run.ipv6_address_count);
        assert_eq!(of_template.connection_tracking_specification, of_run.connection_tracking_specification);
    }
}
