//! Subnets and security groups.

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subnet {
    /// Its ID.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// The zone's ID, the same in every account.
    pub zone_id: String,
    /// How many addresses are free.
    pub available_addresses: i64,
}

/// A security group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityGroup {
    /// Its ID.
    pub id: String,
    /// Its name.
    pub name: String,
}
