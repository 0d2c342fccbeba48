//! Launches: fleets of type `instant` from the newest version of templates. Reservations that their owner can take
//! back are asked for by their type `interruptible-capacity-reservation`.

use super::{Tags, TemplateInterface};

/// A launch of instances that are all alike, from the best of several offerings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetRequest {
    /// Whether it is only to be said whether it would work.
    pub dry_run: bool,
    /// What EC2 is told about what it is for.
    pub context: Option<String>,
    /// The templates, each with the offerings that it is good for.
    pub templates: Vec<FleetTemplate>,
    /// How the instances are bought.
    pub purchase: FleetPurchase,
    /// How many instances are launched.
    pub count: u32,
    /// Tags of the instances, their volumes and the fleet.
    pub tags: Tags,
}

/// A launch template and the offerings that it is good for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetTemplate {
    /// The name of the template; its newest version is used.
    pub name: String,
    /// The offerings.
    pub overrides: Vec<FleetOverride>,
}

/// One offering of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetOverride {
    /// The instance type.
    pub instance_type: String,
    /// The subnet.
    pub subnet_id: String,
    /// The image.
    pub image_id: Option<String>,
    /// The zone.
    pub zone: String,
    /// The lower, the better; the price.
    pub priority: Option<f64>,
}

/// How instances are bought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FleetPurchase {
    /// By use; of our priorities or the lowest price.
    OnDemand {
        /// Whether our priorities count.
        prioritized: bool,
    },
    /// On the spot market; of our priorities or of price and capacity.
    Spot {
        /// Whether our priorities count.
        prioritized: bool,
    },
    /// Of reservations whose owner can take them back.
    InterruptibleReservation,
    /// Of a capacity block.
    #[default]
    CapacityBlock,
}

impl FleetPurchase {
    /// What EC2 calls the default target capacity.
    pub const fn target(self) -> &'static str {
        match self {
            Self::OnDemand { .. } => "on-demand",
            Self::Spot { .. } => "spot",
            Self::InterruptibleReservation => "reserved-capacity",
            Self::CapacityBlock => "capacity-block",
        }
    }

    /// What EC2 calls the way in which it chooses; none where there is no choice.
    pub const fn strategy(self) -> Option<&'static str> {
        match self {
            Self::OnDemand { prioritized: false } => Some("lowest-price"),
            Self::OnDemand { prioritized: true } => Some("prioritized"),
            Self::Spot { prioritized: false } => Some("price-capacity-optimized"),
            Self::Spot { prioritized: true } => Some("capacity-optimized-prioritized"),
            Self::InterruptibleReservation | Self::CapacityBlock => None,
        }
    }
}

/// What became of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetResult {
    /// The fleet's ID.
    pub fleet_id: String,
    /// What was launched.
    pub instances: Vec<FleetInstance>,
    /// What could not be had.
    pub errors: Vec<FleetError>,
}

/// Where an instance was launched, or was to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The instance type.
    pub instance_type: Option<String>,
    /// The zone.
    pub zone: Option<String>,
    /// The subnet.
    pub subnet_id: Option<String>,
    /// The image.
    pub image_id: Option<String>,
}

/// Instances that were launched in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetInstance {
    /// Their IDs.
    pub ids: Vec<String>,
    /// Their type.
    pub instance_type: String,
    /// Where they are.
    pub place: Place,
}

/// Why nothing was launched in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetError {
    /// The service's word for it.
    pub code: String,
    /// What it says about it.
    pub message: String,
    /// Where it was; parts that are absent are not known.
    pub place: Place,
}

/// A run of one instance that is only tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunInstancesCheck {
    /// The name of the launch template; its newest version is used.
    pub template: String,
    /// The instance type.
    pub instance_type: String,
    /// The network interfaces, with their subnet.
    pub interfaces: Vec<TemplateInterface>,
    /// Tags of the instance, its volumes and its network interfaces.
    pub tags: Tags,
}
