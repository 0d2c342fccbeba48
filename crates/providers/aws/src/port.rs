//! What we need of AWS, in our own words: plain data, one error, and a trait for each service.
//!
//! The traits hide pages, retries and the SDK. What is asked for is data, so that a double can answer from a
//! list, and so that equal requests can be found and sent as one.

pub mod ec2;
pub mod error;
pub mod fleet;
pub mod image;
pub mod instance;
pub mod instance_type;
pub mod launch_template;
pub mod network;
pub mod reservation;
pub mod services;

pub use ec2::{Ec2, Filter, SpotPrice, TypeInZone};
pub use error::Error;
pub use fleet::{
    FleetError, FleetInstance, FleetOverride, FleetPurchase, FleetRequest, FleetResult, FleetTemplate, Place,
    RunInstancesCheck,
};
pub use image::{Image, ImageQuery};
pub use instance::{Instance, InstanceState, InstanceStatus, ScheduledEvent, StateChange, StatusCheck};
pub use instance_type::InstanceTypeInfo;
pub use launch_template::{
    EbsVolume, LaunchTemplate, LaunchTemplateData, LaunchTemplateQuery, LaunchTemplateRef, NewLaunchTemplate,
    TemplateInterface, VolumeMapping,
};
pub use network::{SecurityGroup, Subnet};
pub use reservation::{CapacityReservation, PlacementGroup, PlacementGroupQuery, PlacementStrategy};
pub use services::{
    Cluster, Eks, Iam, InstanceProfile, Message, Pricing, ProductQuery, Sqs, Ssm, ZonalShift, ZonalShifts,
};

use std::collections::BTreeMap;

/// Tags by key.
pub type Tags = BTreeMap<String, String>;
