//! What we need of AWS, in our own words: plain data, one error, and a trait for each service.
//!
//! The traits hide pages, retries and the SDK. What is asked for is data, so that a double can answer from a
//! list, and so that equal requests can be found and sent as one.

pub mod account;
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
pub mod trial;

pub use account::{CallerIdentity, Decision, Quota, Quotas, Simulation, Sts};
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
    Cluster, Eks, Iam, InstanceProfile, Message, Pricing, ProductQuery, QueueAttributes, Sqs, Ssm,
    ZonalShift, ZonalShifts,
};
pub use trial::{Listing, PlainRun, Trial};

use std::collections::BTreeMap;
use std::sync::Arc;

/// All services together. Clones share them.
#[derive(Clone)]
pub struct Services {
    /// Machines and what they need.
    pub ec2: Arc<dyn Ec2>,
    /// Instance profiles.
    pub iam: Arc<dyn Iam>,
    /// The cluster.
    pub eks: Arc<dyn Eks>,
    /// Published values.
    pub ssm: Arc<dyn Ssm>,
    /// The queue of interruptions.
    pub sqs: Arc<dyn Sqs>,
    /// Prices of what is paid by use.
    pub pricing: Arc<dyn Pricing>,
    /// Zones that are avoided for a while.
    pub zonal_shift: Arc<dyn ZonalShift>,
    /// Who we are.
    pub sts: Arc<dyn Sts>,
    /// How much the account may have.
    pub quotas: Arc<dyn Quotas>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// Tags by key.
pub type Tags = BTreeMap<String, String>;
