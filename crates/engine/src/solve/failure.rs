//! Why a pod cannot be placed. Reasons are data; texts are made from them when somebody asks.

use std::sync::Arc;

use crate::intern::{KeyId, ResourceId, ValueId};
use crate::model::{DriverId, PoolId, Taint};
use crate::resources::Amounts;
use crate::topology::{GroupKey, Rule};
use crate::universe::{Incompatible, RequirementId, SetId};

/// Why no place was found for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It asks for devices that are allocated dynamically.
    NeedsDevices,
    /// No pool has any type to offer.
    NoPool,
    /// What each pool said, in the order in which they were tried.
    Pools(Vec<(PoolId, PoolFailure)>),
}

impl Failure {
    /// Whether the pod only waits for a reservation to be settled.
    pub fn is_deferred(&self) -> bool {
        matches!(self, Self::Pools(pools) if pools.iter().any(|(_, failure)| failure.is_deferred()))
    }
}

/// Why a pool makes no node for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolFailure {
    /// The pool may have no further node.
    NodeLimit(LimitShortage),
    /// Every type that would do is larger than what the pool may still have: what the smallest lacks.
    Limits(Vec<LimitShortage>),
    /// The pool may have room once the cloud has chosen among the types that other claims of the round must name.
    LimitsUnsettled,
    /// The pod does not tolerate taints of the pool.
    Taints(Vec<Taint>),
    /// The pod's volumes are more than any type can attach.
    VolumeLimit(Option<VolumeExcess>),
    /// The pool's nodes do not have what the pod asks for.
    Requirements(Conflict),
    /// The pod's volumes are elsewhere.
    Volumes(Conflict),
    /// A topology rule cannot be kept.
    Topology(TopologyFailure),
    /// What topology rules leave contradicts the claim.
    TopologyConflict(Conflict),
    /// No type is left.
    Types(TypeFailure),
    /// Not enough choice is left.
    MinValues(Vec<Scarce>),
    /// Not enough choice is left among the cheapest types that a claim can name.
    Truncated(Vec<Scarce>),
    /// Reserved capacity is to be settled first.
    Reserved(ReservedFailure),
}

/// A limit of a pool that leaves less than a new node needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitShortage {
    /// Of what.
    pub resource: ResourceId,
    /// What is left, claims of the round counted.
    pub left: i64,
    /// What the smallest node that takes the pod needs.
    pub needed: i64,
}

/// A label of which too few values are left to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scarce {
    /// The label.
    pub key: KeyId,
    /// How many values the pool demands.
    pub wanted: u32,
    /// How many are left.
    pub found: u32,
}

/// Volumes of one driver that are too many for every type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeExcess {
    /// Who attaches them.
    pub driver: DriverId,
    /// How many they would be.
    pub count: u32,
    /// The most that any type can attach.
    pub limit: u32,
}

/// Two sides whose labels do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// What the node or claim has.
    pub existing: SetId,
    /// What was asked of it.
    pub incoming: SetId,
    /// Where they disagree.
    pub reason: Incompatible,
}

/// A topology rule that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyFailure {
    /// What the rule asks for.
    pub rule: Rule,
    /// Over the values of which label.
    pub key: KeyId,
    /// Pods in each domain.
    pub counts: Vec<(ValueId, i32)>,
    /// What the pod asks of the label.
    pub pod_domains: Option<RequirementId>,
    /// What the node or claim has.
    pub node_domains: Option<RequirementId>,
    /// Which pods count, and how many more of them a domain may have.
    pub(crate) group: Arc<GroupKey>,
    /// Whether it is a rule of other pods, which keep this one away.
    pub of_others: bool,
    /// How many domains or hosts have such pods.
    pub occupied: usize,
}

/// No type meets requirements, has room and is offered; what some of them do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFailure {
    /// What was asked of the types.
    pub requirements: SetId,
    /// What the pod asks for.
    pub requests: Amounts,
    /// The least and the most that DaemonSets take.
    pub overhead: Option<(Amounts, Amounts)>,
    /// Whether some type meets the requirements, has room, or is offered.
    pub any: Flags,
    /// Whether some type lacks nothing but this.
    pub lacking_only: Flags,
}

/// The three tests of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Its labels.
    pub requirements: bool,
    /// Its size.
    pub resources: bool,
    /// Whether it can be had.
    pub offering: bool,
}

/// Why reserved capacity is to be settled first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedFailure {
    /// Compatible reservations exist, but others took them.
    Taken,
    /// Only full reservations would do.
    Full,
    /// Only full reservations would do, and other pools are to be tried.
    FallsThrough,
    /// The claim would lose the reservations it holds.
    WouldLose,
}

impl PoolFailure {
    /// Whether the pod only waits for a reservation to be settled.
    pub fn is_deferred(&self) -> bool {
        matches!(self, Self::Reserved(failure) if *failure != ReservedFailure::FallsThrough)
    }
}
