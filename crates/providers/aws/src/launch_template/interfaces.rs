//! The network interfaces of instances.

use api::aws::InterfaceType;

use crate::node_class::Class;
use crate::port::TemplateInterface;
use crate::port::launch_template::ConnectionTimeouts;

/// The network interfaces of instances with some number of fabric adapters.
pub(super) fn of(class: &Class<'_>, fabric: i64, has_ipv6: bool) -> Vec<TemplateInterface> {
    let usual = usual(class, has_ipv6);
    if let Some(listed) = class.spec.network_interfaces.as_ref().filter(|listed| !listed.is_empty()) {
        return listed
            .iter()
            .map(|each| {
                let from = match each.interface_type {
                    InterfaceType::Interface => usual.clone(),
                    // It has no addresses at all.
                    InterfaceType::EfaOnly => TemplateInterface {
                        security_groups: usual.security_groups.clone(),
                        ..TemplateInterface::default()
                    },
                };
                TemplateInterface {
                    network_card: Some(each.network_card_index),
                    device: each.device_index,
                    interface_type: Some(each.interface_type.as_str()),
                    ..from
                }
            })
            .collect();
    }
    if fabric == 0 {
        return vec![usual];
    }
    // One on each network card; the first is also the node's own.
    (0..i32::try_from(fabric).unwrap_or_default())
        .map(|card| TemplateInterface {
            network_card: Some(card),
            device: i32::from(card != 0),
            interface_type: Some("efa"),
            ..usual.clone()
        })
        .collect()
}

fn usual(class: &Class<'_>, has_ipv6: bool) -> TemplateInterface {
    let spec = class.spec;
    TemplateInterface {
        security_groups: class.status.security_groups.iter().map(|group| group.id.clone()).collect(),
        public_address: spec.associate_public_ip_address,
        ipv4_prefixes: spec.ip_prefix_count.filter(|_| !has_ipv6),
        ipv6_prefixes: spec.ip_prefix_count.filter(|_| has_ipv6),
        ipv6_addresses: has_ipv6.then_some(1),
        primary_ipv6: has_ipv6.then_some(true),
        connection_tracking: spec.connection_tracking.as_ref().map(|tracking| ConnectionTimeouts {
            tcp_established: tracking.tcp_established_timeout,
            udp_stream: tracking.udp_stream_timeout,
            udp: tracking.udp_timeout,
        }),
        ..TemplateInterface::default()
    }
}
