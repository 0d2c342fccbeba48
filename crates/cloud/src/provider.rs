//! The trait that every cloud implements.

use std::sync::Arc;
use std::time::Duration;

use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::provider::{NodeClassKind, Provider};
use cluster::instance_types::InstanceType;
use cluster::state::LAUNCH_TIMEOUT;
use cluster::volumes::Unsupported;
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

impl RepairAction {
    /// Its name in logs and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reboot => "RebootNode",
            Self::Replace => "ReplaceNode",
        }
    }
}

/// When a node counts as broken, and what is done about it.
///
/// Exactly one policy of a cloud has no pattern: it is what counts for every condition and status that a policy
/// names, if no pattern fits the reason. It replaces the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The condition of the node.
    pub condition: &'static str,
    /// The status of that condition that says the node is broken.
    pub status: &'static str,
    /// Which reasons of the condition: a regular expression that is searched for. Empty in the one policy that
    /// counts when no other fits.
    pub reason_pattern: &'static str,
    /// How long the condition must have held.
    pub toleration: Duration,
    /// How long pods may take to leave at most; as the NodeClaim says when absent, not at all when zero.
    pub termination_grace_period: Option<Duration>,
    /// Which of several policies counts, from 0 to 100; only the order matters.
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

    /// Its name in metrics.
    fn name(&self) -> &'static str {
        self.provider().as_str()
    }

    /// Whether an instance is nothing but its Node, as simulated ones are. Then nobody but the API server can say
    /// that an instance is gone.
    fn instances_are_nodes(&self) -> bool {
        false
    }

    /// The kinds of NodeClass that it understands, the usual one first. NodeClaims that refer to another kind
    /// belong to somebody else.
    fn node_classes(&self) -> Vec<NodeClassKind> {
        vec![self.provider().node_class()]
    }

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

    /// As [`CloudProvider::instance_types`], before NodeOverlays correct them.
    fn listed_instance_types<'a>(
        &'a self,
        pool: &'a NodePool,
    ) -> BoxFuture<'a, Result<Arc<[InstanceType]>, Error>> {
        self.instance_types(pool)
    }

    /// Why the instance of a claim is not what its NodeClass asks for any more, if so.
    fn drift<'a>(&'a self, claim: &'a NodeClaim) -> BoxFuture<'a, Result<Option<String>, Error>>;

    /// When nodes count as broken; always the same.
    fn repair_policies(&self) -> Vec<RepairPolicy>;

    /// Asks that an instance be booted again, and does not wait for it; the same `operation` never boots it twice.
    /// [`Error::ends_reboot`] says whether asking again makes sense.
    fn reboot<'a>(&'a self, claim: &'a NodeClaim, operation: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// How long a claim may take to get an instance before it is given up; always the same.
    fn launch_timeout(&self) -> Duration {
        LAUNCH_TIMEOUT.unsigned_abs()
    }

    /// Volumes that its nodes cannot have; always the same. Pods that ask for them are ignored, and told why.
    fn unsupported_volumes(&self) -> Unsupported {
        Unsupported::default()
    }

    /// Whether it still answers, and why not. Cheap, and asked from any thread.
    fn liveness(&self) -> Result<(), String> {
        Ok(())
    }

    /// What must be done before a node may take pods.
    fn registration_hooks(&self) -> &[Box<dyn RegistrationHook>] {
        &[]
    }
}
