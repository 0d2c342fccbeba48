//! What EC2 is asked to try out: it says whether we may do it, and does not do it.

use super::Tags;

/// A list that EC2 can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Capacity reservations.
    CapacityReservations,
    /// Images.
    Images,
    /// How instances are.
    InstanceStatus,
    /// Which zones have which instance types.
    InstanceTypeOfferings,
    /// Instance types.
    InstanceTypes,
    /// Instances.
    Instances,
    /// Launch templates.
    LaunchTemplates,
    /// Placement groups.
    PlacementGroups,
    /// Security groups.
    SecurityGroups,
    /// Spot prices.
    SpotPriceHistory,
    /// Subnets.
    Subnets,
}

impl Listing {
    /// All lists.
    pub const ALL: [Self; 11] = [
        Self::CapacityReservations,
        Self::Images,
        Self::InstanceStatus,
        Self::InstanceTypeOfferings,
        Self::InstanceTypes,
        Self::Instances,
        Self::LaunchTemplates,
        Self::PlacementGroups,
        Self::SecurityGroups,
        Self::SpotPriceHistory,
        Self::Subnets,
    ];
}

/// Something that EC2 is asked to try out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trial {
    /// To list something.
    List(Listing),
    /// To create a launch template with these tags.
    CreateLaunchTemplate(Tags),
    /// To delete the launch template with an ID.
    DeleteLaunchTemplate(String),
    /// To run an instance, without a launch template.
    RunInstances(PlainRun),
    /// To terminate the instance with an ID.
    TerminateInstances(String),
    /// To boot the instance with an ID again.
    RebootInstances(String),
    /// To tag the instance with an ID.
    CreateTags(String, Tags),
}

/// One instance that could be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainRun {
    /// The image.
    pub image_id: String,
    /// The instance type.
    pub instance_type: String,
    /// The subnet.
    pub subnet_id: String,
    /// The security groups.
    pub security_groups: Vec<String>,
    /// The name of the instance profile, if there is one already.
    pub instance_profile: Option<String>,
    /// Tags of the instance, its volumes and its network interfaces.
    pub tags: Tags,
}

impl Trial {
    /// The action that must be allowed, such as `ec2:CreateTags`.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::List(Listing::CapacityReservations) => "ec2:DescribeCapacityReservations",
            Self::List(Listing::Images) => "ec2:DescribeImages",
            Self::List(Listing::InstanceStatus) => "ec2:DescribeInstanceStatus",
            Self::List(Listing::InstanceTypeOfferings) => "ec2:DescribeInstanceTypeOfferings",
            Self::List(Listing::InstanceTypes) => "ec2:DescribeInstanceTypes",
            Self::List(Listing::Instances) => "ec2:DescribeInstances",
            Self::List(Listing::LaunchTemplates) => "ec2:DescribeLaunchTemplates",
            Self::List(Listing::PlacementGroups) => "ec2:DescribePlacementGroups",
            Self::List(Listing::SecurityGroups) => "ec2:DescribeSecurityGroups",
            Self::List(Listing::SpotPriceHistory) => "ec2:DescribeSpotPriceHistory",
            Self::List(Listing::Subnets) => "ec2:DescribeSubnets",
            Self::CreateLaunchTemplate(_) => "ec2:CreateLaunchTemplate",
            Self::DeleteLaunchTemplate(_) => "ec2:DeleteLaunchTemplate",
            Self::RunInstances(_) => "ec2:RunInstances",
            Self::TerminateInstances(_) => "ec2:TerminateInstances",
            Self::RebootInstances(_) => "ec2:RebootInstances",
            Self::CreateTags(..) => "ec2:CreateTags",
        }
    }
}
