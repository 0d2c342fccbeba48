//! Capacity reservations and placement groups.

use jiff::Timestamp;

/// A capacity reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityReservation {
    /// Its ID.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// Which instance type it is for.
    pub instance_type: String,
    /// The account that owns it.
    pub owner_id: String,
    /// Which instances it accepts, as EC2 says it.
    pub match_criteria: String,
    /// What kind it is, as EC2 says it; empty for the usual one.
    pub reservation_type: String,
    /// Whether its owner can take it back.
    pub interruptible: bool,
    /// When it ends, if it does.
    pub ends: Option<Timestamp>,
    /// How many instances can still be launched into it.
    pub available: u32,
}

/// How a placement group places instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacementStrategy {
    /// Close together.
    Cluster,
    /// In parts that share no hardware.
    Partition,
    /// None with another on the same hardware.
    Spread,
}

impl PlacementStrategy {
    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Partition => "partition",
            Self::Spread => "spread",
        }
    }
}

/// A placement group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementGroup {
    /// Its ID.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How it places instances.
    pub strategy: PlacementStrategy,
    /// How many partitions it has.
    pub partitions: u32,
    /// What instances are spread over, as EC2 says it.
    pub spread_level: Option<String>,
}

impl PlacementGroup {
    /// The partitions that instances can choose from; none unless that is how the group places them.
    pub fn partitions(&self) -> std::ops::RangeInclusive<u32> {
        let has_any = self.strategy == PlacementStrategy::Partition;
        1..=if has_any { self.partitions } else { 0 }
    }
}

/// Which placement group is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlacementGroupQuery {
    /// The one with an ID.
    Id(String),
    /// The one with a name.
    Name(String),
}
