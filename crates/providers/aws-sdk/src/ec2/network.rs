//! Subnets and security groups.

use aws::port::{SecurityGroup, Subnet};
use aws_sdk_ec2::types;

pub(super) fn subnet(described: types::Subnet) -> Option<Subnet> {
    Some(Subnet {
        id: described.subnet_id?,
        zone: described.availability_zone?,
        zone_id: described.availability_zone_id.unwrap_or_default(),
        available_addresses: described.available_ip_address_count.map_or(0, i64::from),
    })
}

pub(super) fn security_group(described: types::SecurityGroup) -> Option<SecurityGroup> {
    Some(SecurityGroup { id: described.group_id?, name: described.group_name.unwrap_or_default() })
}
