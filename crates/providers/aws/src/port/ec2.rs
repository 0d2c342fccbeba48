//! EC2.

use futures::future::BoxFuture;
use jiff::Timestamp;

use super::{
    CapacityReservation, Error, FleetRequest, FleetResult, Image, ImageQuery, Instance, InstanceStatus,
    InstanceTypeInfo, LaunchTemplate, LaunchTemplateQuery, LaunchTemplateRef, NewLaunchTemplate,
    PlacementGroup, PlacementGroupQuery, RunInstancesCheck, SecurityGroup, StateChange, Subnet, Tags, Trial,
};

/// What things must be like to be listed: the attribute has one of the values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    /// The attribute, as EC2 names it.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

impl Filter {
    /// An attribute has one of some values.
    pub fn new<V: Into<String>>(name: impl Into<String>, values: impl IntoIterator<Item = V>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Into::into).collect() }
    }

    /// A tag has a value; `*` stands for any.
    pub fn tag(key: &str, value: &str) -> Self {
        match value {
            "*" => Self::new("tag-key", [key]),
            _ => Self::new(format!("tag:{key}"), [value]),
        }
    }
}

/// An instance type in a zone that has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeInZone {
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
}

/// What a spot instance cost.
#[derive(Clone, Debug, PartialEq)]
pub struct SpotPrice {
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// The price per hour.
    pub price: f64,
}

/// EC2, all pages at once. Every method fails with the code of the service.
pub trait Ec2: Send + Sync {
    /// Whether EC2 can be reached and answers us.
    fn check_access(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// All instance types that can be virtual or bare machines of the two architectures.
    fn instance_types(&self) -> BoxFuture<'_, Result<Vec<InstanceTypeInfo>, Error>>;

    /// Which zones have which instance types.
    fn instance_type_zones(&self) -> BoxFuture<'_, Result<Vec<TypeInZone>, Error>>;

    /// What Linux spot instances cost at a time, the latest last. Records that cannot be read are left out.
    fn spot_prices(&self, at: Timestamp) -> BoxFuture<'_, Result<Vec<SpotPrice>, Error>>;

    /// The subnets that satisfy all filters.
    fn subnets<'a>(&'a self, filters: &'a [Filter]) -> BoxFuture<'a, Result<Vec<Subnet>, Error>>;

    /// The security groups that satisfy all filters.
    fn security_groups<'a>(
        &'a self,
        filters: &'a [Filter],
    ) -> BoxFuture<'a, Result<Vec<SecurityGroup>, Error>>;

    /// The images that a query finds, deprecated ones too.
    fn images<'a>(&'a self, query: &'a ImageQuery) -> BoxFuture<'a, Result<Vec<Image>, Error>>;

    /// The capacity reservations with these IDs, or all, that satisfy all filters.
    fn capacity_reservations<'a>(
        &'a self,
        ids: &'a [String],
        filters: &'a [Filter],
    ) -> BoxFuture<'a, Result<Vec<CapacityReservation>, Error>>;

    /// The placement groups that can be used.
    fn placement_groups<'a>(
        &'a self,
        query: &'a PlacementGroupQuery,
    ) -> BoxFuture<'a, Result<Vec<PlacementGroup>, Error>>;

    /// The launch templates that a query finds.
    fn launch_templates<'a>(
        &'a self,
        query: &'a LaunchTemplateQuery,
    ) -> BoxFuture<'a, Result<Vec<LaunchTemplate>, Error>>;

    /// Creates a launch template.
    fn create_launch_template<'a>(
        &'a self,
        template: &'a NewLaunchTemplate,
    ) -> BoxFuture<'a, Result<LaunchTemplate, Error>>;

    /// Deletes a launch template.
    fn delete_launch_template<'a>(
        &'a self,
        template: &'a LaunchTemplateRef,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Launches instances, or says whether it would. Tries are not repeated by the SDK.
    fn create_fleet<'a>(&'a self, request: &'a FleetRequest) -> BoxFuture<'a, Result<FleetResult, Error>>;

    /// Asks whether an instance could be run, without running it: always an error, perhaps
    /// [`Error::is_dry_run_success`].
    fn check_run_instances<'a>(&'a self, check: &'a RunInstancesCheck) -> BoxFuture<'a, Error>;

    /// Asks whether we may do something, without doing it: always an error, perhaps
    /// [`Error::is_dry_run_success`].
    fn try_out<'a>(&'a self, trial: &'a Trial) -> BoxFuture<'a, Error>;

    /// The instances with these IDs, or all, that satisfy all filters.
    fn instances<'a>(
        &'a self,
        ids: &'a [String],
        filters: &'a [Filter],
    ) -> BoxFuture<'a, Result<Vec<Instance>, Error>>;

    /// Starts to terminate instances, and says what state they are in.
    fn terminate_instances<'a>(&'a self, ids: &'a [String])
    -> BoxFuture<'a, Result<Vec<StateChange>, Error>>;

    /// Asks that instances be booted again.
    fn reboot_instances<'a>(&'a self, ids: &'a [String]) -> BoxFuture<'a, Result<(), Error>>;

    /// Tags an instance.
    fn create_tags<'a>(&'a self, id: &'a str, tags: &'a Tags) -> BoxFuture<'a, Result<(), Error>>;

    /// How the instances are that satisfy all filters.
    fn instance_statuses<'a>(
        &'a self,
        filters: &'a [Filter],
    ) -> BoxFuture<'a, Result<Vec<InstanceStatus>, Error>>;
}
