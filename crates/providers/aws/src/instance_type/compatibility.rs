//! Whether instances of a type can be what a NodeClass asks for.

use api::aws::{AmiFamily, InterfaceType, NetworkInterface, Toggle};

use crate::node_class::Class;
use crate::port::InstanceTypeInfo;

/// Why instances of a type cannot be what a NodeClass asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// It cannot have the network interfaces.
    #[error("the type cannot have the network interfaces that the NodeClass lists")]
    NetworkInterfaces,
    /// Its processor is too old for the images.
    #[error("images of AL2023 do not start on the type")]
    Image,
    /// It cannot run virtual machines.
    #[error("the type has no nested virtualization")]
    NestedVirtualization,
    /// The placement group does not take it.
    #[error("the placement group does not take the type")]
    PlacementGroup,
    /// Its connections are tracked by somebody else.
    #[error("connection tracking can only be set for types on Nitro")]
    ConnectionTracking,
}

/// Why instances of a type cannot be what a NodeClass asks for; none if they can.
pub fn incompatibility(class: &Class<'_>, info: &InstanceTypeInfo) -> Option<Incompatible> {
    let interfaces = class.spec.network_interfaces.as_deref().unwrap_or_default();
    if !interfaces.is_empty() && !has_interfaces(info, interfaces) {
        return Some(Incompatible::NetworkInterfaces);
    }
    if class.family == AmiFamily::AL2023 && info.name.starts_with("a1.") {
        return Some(Incompatible::Image);
    }
    let nested = class.spec.cpu_options.as_ref().and_then(|options| options.nested_virtualization);
    let features = info.processor.as_ref().map_or(&[][..], |processor| &processor.features);
    if nested == Some(Toggle::Enabled) && !features.iter().any(|each| each == "nested-virtualization") {
        return Some(Incompatible::NestedVirtualization);
    }
    if let Some(group) = class.placement_group
        && !info.placement_strategies.iter().any(|each| each == group.strategy.as_str())
    {
        return Some(Incompatible::PlacementGroup);
    }
    if class.spec.connection_tracking.is_some() && info.hypervisor.as_deref() != Some("nitro") {
        return Some(Incompatible::ConnectionTracking);
    }
    None
}

fn has_interfaces(info: &InstanceTypeInfo, wanted: &[NetworkInterface]) -> bool {
    let Some(network) = info.network.as_ref().filter(|network| network.ena && !network.cards.is_empty())
    else {
        return false;
    };
    let fabric = wanted.iter().filter(|each| each.interface_type == InterfaceType::EfaOnly).count();
    let fabric_fits = fabric == 0
        || network.efa_interfaces.is_some_and(|most| fabric <= usize::try_from(most).unwrap_or(0));
    fabric_fits
        && wanted.iter().all(|each| {
            let card = network.cards.iter().find(|card| card.index == each.network_card_index);
            usize::try_from(each.network_card_index).is_ok_and(|index| index < network.cards.len())
                && card.is_some_and(|card| card.interfaces > i64::from(each.device_index))
        })
}
