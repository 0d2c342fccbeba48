//! Instance types as providers describe them, and their way into the engine's catalogue.
//!
//! [`kwok`] reads the files that the simulated provider uses and knows its built-in types.

pub mod kwok;

use api::shared::Requirement;
use units::Resources;

/// A kind of machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceType {
    /// Its name, the value of the instance-type label.
    pub name: String,
    /// Its labels.
    pub requirements: Vec<Requirement>,
    /// Where and how it can be bought.
    pub offerings: Vec<Offering>,
    /// What it has.
    pub capacity: Resources,
    /// What the system keeps of it.
    pub overhead: Resources,
    /// How many volumes of a driver it can attach; unknown where absent.
    pub volume_limits: Vec<(String, u32)>,
}

/// One way to buy an instance type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offering {
    /// Zone, capacity type and whatever else it fixes.
    pub requirements: Vec<Requirement>,
    /// Price per hour.
    pub price: f64,
    /// Whether it can be had at present.
    pub available: bool,
    /// How many launches its reservation has left.
    pub reservation_capacity: u32,
    /// Capacity that differs from the type's.
    pub capacity_override: Option<Resources>,
    /// Overhead that differs from the type's.
    pub overhead_override: Option<Resources>,
}
