//! The other services: IAM, EKS, SSM, SQS, prices and zonal shifts.

use futures::future::BoxFuture;
use jiff::Timestamp;

use super::{Decision, Error, Simulation, Tags};

/// An instance profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceProfile {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// The names of its roles, without paths; there is at most one.
    pub roles: Vec<String>,
}

/// Instance profiles.
pub trait Iam: Send + Sync {
    /// The instance profile with a name.
    fn instance_profile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<InstanceProfile, Error>>;

    /// Creates an instance profile.
    fn create_instance_profile<'a>(
        &'a self,
        name: &'a str,
        path: &'a str,
        tags: &'a Tags,
    ) -> BoxFuture<'a, Result<(), Error>>;

    /// Puts a role into an instance profile.
    fn add_role<'a>(&'a self, profile: &'a str, role: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Takes a role out of an instance profile.
    fn remove_role<'a>(&'a self, profile: &'a str, role: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Deletes an instance profile.
    fn delete_instance_profile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// The instance profiles whose path begins with a text.
    fn instance_profiles<'a>(
        &'a self,
        path_prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<InstanceProfile>, Error>>;

    /// Finds the role with a name.
    fn role<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// What policies say about a request, which is not made.
    fn simulate<'a>(&'a self, request: &'a Simulation) -> BoxFuture<'a, Result<Decision, Error>>;
}

/// The cluster, as EKS knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The address of the API server.
    pub endpoint: String,
    /// The version of Kubernetes, such as `1.34`.
    pub version: String,
    /// Its name for other services.
    pub arn: String,
    /// The addresses of services.
    pub service_ipv4_cidr: Option<String>,
    /// The IPv6 addresses of services.
    pub service_ipv6_cidr: Option<String>,
}

/// The cluster's own service.
pub trait Eks: Send + Sync {
    /// The cluster with a name.
    fn cluster<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Cluster, Error>>;
}

/// Published values.
pub trait Ssm: Send + Sync {
    /// The value of a parameter.
    fn parameter<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, Error>>;
}

/// A message of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub body: String,
    /// What is needed to delete it.
    pub receipt: String,
}

/// What a queue is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueAttributes {
    /// About how many messages wait to be received.
    pub waiting: u64,
    /// About how many were received and not deleted yet.
    pub in_flight: u64,
    /// After how many seconds messages are dropped.
    pub retention_seconds: u64,
    /// Who may do what with the queue, as JSON; nothing if only the account may.
    pub policy: Option<String>,
    /// The key that messages are encrypted with, if it is one of KMS.
    pub kms_key: Option<String>,
}

/// A queue.
pub trait Sqs: Send + Sync {
    /// Where the queue with a name is.
    fn queue_url<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, Error>>;

    /// Up to ten messages, as soon as there are any; nobody else sees them for 20 s. None come after 20 s.
    fn receive<'a>(&'a self, queue_url: &'a str) -> BoxFuture<'a, Result<Vec<Message>, Error>>;

    /// Looks at a message if there is one; it stays where it is, and others see it, too.
    fn peek<'a>(&'a self, queue_url: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Deletes up to ten messages at once, and says which of them it could not delete, and why.
    fn delete<'a>(
        &'a self,
        queue_url: &'a str,
        receipts: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(String, Error)>, Error>>;

    /// What the queue is like.
    fn attributes<'a>(&'a self, queue_url: &'a str) -> BoxFuture<'a, Result<QueueAttributes, Error>>;
}

/// Which prices are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductQuery {
    /// What products must be like: attribute and value.
    pub filters: Vec<(String, String)>,
}

/// Prices of what is paid by use.
pub trait Pricing: Send + Sync {
    /// The products of EC2 that a query finds, each as a JSON document.
    fn products<'a>(&'a self, query: &'a ProductQuery) -> BoxFuture<'a, Result<Vec<String>, Error>>;
}

/// A zone that traffic is shifted away from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonalShifts {
    /// The ID of the zone.
    pub zone_id: String,
    /// Until when.
    pub until: Timestamp,
    /// Whether it is in force.
    pub applied: bool,
}

/// Zones that are to be avoided for a while.
pub trait ZonalShift: Send + Sync {
    /// The shifts of a cluster.
    fn shifts<'a>(&'a self, cluster_arn: &'a str) -> BoxFuture<'a, Result<Vec<ZonalShifts>, Error>>;
}
