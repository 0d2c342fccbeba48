//! The trait that every cloud implements.

use std::sync::Arc;
use std::time::Duration;

use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::Provider;
use cluster::instance_types::InstanceType;
use futures::future::BoxFuture;
use runtime::Again;

use crate::error::Error;

/// An instance, as a NodeClaim: labels, annotations, and a status with at least the provider ID.
pub type Instance = NodeClaim;

/// What is done about a broken node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairAction {
    /// The machine is booted again.
    Reboot,
    /// The node is replaced.
    Replace,
}

/// When a node counts as broken, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The condition of the node.
    pub condition: &'static str,
    /// The status of that condition that says the node is broken.
    pub status: &'static str,
    /// Which reasons of the condition; all when empty.
    pub reason_pattern: &'static str,
    /// How long the condition must have held.
    pub toleration: Duration,
    /// How long pods may take to leave; as the NodeClaim says when absent.
    pub termination_grace_period: Option<Duration>,
    /// Which of several policies counts, from 0 to 100.
    pub priority: u8,
    /// What is done.
    pub action: RepairAction,
}

/// Something that must be done before a node may take pods.
pub trait RegistrationHook: Send + Sync {
    /// Its name, for the condition that shows what is missing.
    fn name(&self) -> &'static str;

    /// Whether it is done: nothing more to wait for, or when to ask again.
    fn registered<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Again, Error>>;
}

/// A cloud.
pub trait CloudProvider: Send + Sync + 'static {
    /// Which one.
    fn provider(&self) -> Provider;

    /// Launches an instance for a claim: the cheapest that satisfies it.
    /// The result has the provider ID, capacity, allocatable, and the labels that are settled now.
    fn create<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Instance, Error>>;

    /// Starts to terminate the instance of a claim; [`Error::NotFound`] once it is gone.
    fn delete<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<(), Error>>;

    /// The instance with a provider ID.
    fn get<'a>(&'a self, provider_id: &'a str) -> BoxFuture<'a, Result<Instance, Error>>;

    /// All instances of this cluster; those with a deletion timestamp are on their way out.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Instance>, Error>>;

    /// All instance types that a NodePool can choose from, those included that cannot be had at present.
    /// Cheap: the provider keeps them.
    fn instance_types<'a>(&'a self, pool: &'a NodePool) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>>;

    /// Why the instance of a claim is not what its NodeClass asks for any more, if so.
    fn drift<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>>;

    /// When nodes count as broken.
    fn repair_policies(&self) -> Vec<RepairPolicy>;

    /// Boots an instance again; the same `operation` never boots it twice.
    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// What must be done before a node may take pods.
    fn registration_hooks(&self) -> &[Box<dyn RegistrationHook>] {
        &[]
    }
}
