//! How many pods a node takes.

use crate::node_class::Class;
use crate::port::InstanceTypeInfo;

/// As many as AWS' own images allow where network interfaces do not limit them.
const UNLIMITED: i64 = 110;
/// Pods in the network of the host, which need no address: the network plugin and the proxy.
const HOST_NETWORK: i64 = 2;

/// How many pods a node takes; `max_pods` is what the NodeClass says, for this type.
pub fn count(class: &Class<'_>, info: &InstanceTypeInfo, max_pods: Option<i32>, reserved: i64) -> i64 {
    let family = class.family();
    let most = match max_pods {
        Some(most) => i64::from(most),
        None if family.limited_by_interfaces => by_interfaces(class, info, reserved),
        None => UNLIMITED,
    };
    match class.kubelet.pods_per_core {
        Some(per_core) if per_core > 0 && family.pods_per_core => {
            most.min(i64::from(per_core) * i64::from(info.vcpus))
        }
        _ => most,
    }
}

/// How many pods get an address from the network interfaces of the first card, without those that are reserved.
/// Each interface has one address for itself.
pub fn by_interfaces(class: &Class<'_>, info: &InstanceTypeInfo, reserved: i64) -> i64 {
    let interfaces = info.default_card_interfaces() - reserved - class.fabric_interfaces_on_first_card();
    if interfaces <= 0 {
        return 0;
    }
    interfaces * (info.ipv4_per_interface() - 1) + HOST_NETWORK
}
