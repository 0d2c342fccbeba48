//! Events: their reasons, and how often one is repeated. The messages are written where the events arise.

use std::fmt;
use std::time::Duration;

use super::define;

/// Whether an event is worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// All is as it should be.
    Normal,
    /// Someone should have a look.
    Warning,
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        })
    }
}

/// How many events of one kind are published at most, whatever they are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// How many per second in the long run.
    pub per_second: u32,
    /// How many at once.
    pub burst: u32,
}

/// One kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The reason, as one word; some events of the AWS provider have none.
    pub reason: &'static str,
    /// Whether the event is worth a look.
    pub kind: EventKind,
    /// The kinds of object that the event is published on.
    pub objects: &'static [&'static str],
    /// For how long the same event is not repeated.
    pub dedupe: Duration,
    /// How many are published at most.
    pub limit: Option<RateLimit>,
}

/// For how long an event is not repeated unless it says otherwise.
pub const DEFAULT_DEDUPE: Duration = Duration::from_mins(2);

/// Events that a scheduling pass can cause for thousands of pods at once.
const PER_POD: RateLimit = RateLimit { per_second: 5, burst: 10 };

const fn normal(reason: &'static str, objects: &'static [&'static str]) -> Event {
    Event { reason, kind: EventKind::Normal, objects, dedupe: DEFAULT_DEDUPE, limit: None }
}

const fn warning(reason: &'static str, objects: &'static [&'static str]) -> Event {
    Event { reason, kind: EventKind::Warning, objects, dedupe: DEFAULT_DEDUPE, limit: None }
}

impl Event {
    const fn every_minutes(self, minutes: u64) -> Self {
        Self { dedupe: Duration::from_mins(minutes), ..self }
    }

    const fn limited(self, limit: RateLimit) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

define! {
    /// Events of the core. Transitions of conditions are events, too, with the condition's type as their reason.
    ALL: Event;
    /// A place was found for a pod.
    NOMINATED = normal("Nominated", &["Pod"]).limited(PER_POD);
    /// No place was found for a pod.
    FAILED_SCHEDULING = warning("FailedScheduling", &["Pod"]).every_minutes(5);
    /// No place was found for pods to come.
    BUFFER_FAILED_SCHEDULING = warning("FailedScheduling", &["CapacityBuffer"]).every_minutes(5);
    /// The requirements leave no instance type.
    NO_COMPATIBLE_INSTANCE_TYPES = warning("NoCompatibleInstanceTypes", &["NodePool"]).every_minutes(1);
    /// A replacement is launched.
    DISRUPTION_LAUNCHING = normal("DisruptionLaunching", &["NodeClaim"]);
    /// A replacement is not ready yet.
    DISRUPTION_WAITING_READINESS = normal("DisruptionWaitingReadiness", &["NodeClaim"]);
    /// A node is disrupted.
    DISRUPTION_TERMINATING = normal("DisruptionTerminating", &["Node", "NodeClaim"]);
    /// Something keeps a node from being disrupted.
    DISRUPTION_BLOCKED = normal("DisruptionBlocked", &["Node", "NodeClaim"]);
    /// A budget keeps the nodes of a pool from being disrupted.
    NODE_POOL_DISRUPTION_BLOCKED = normal("DisruptionBlocked", &["NodePool"]).every_minutes(1);
    /// A disruption budget cannot be read.
    INVALID_BUDGETS = warning("InvalidBudgets", &["NodePool"]).every_minutes(15);
    /// A node cannot be consolidated.
    UNCONSOLIDATABLE = normal("Unconsolidatable", &["Node", "NodeClaim"]).every_minutes(15);
    /// A node could be consolidated.
    CONSOLIDATION_CANDIDATE = normal("ConsolidationCandidate", &["Node", "NodeClaim"]);
    /// The consolidation did not hold up.
    CONSOLIDATION_REJECTED = normal("ConsolidationRejected", &["Node", "NodeClaim"]);
    /// The consolidation is worth the disruption.
    CONSOLIDATION_APPROVED = normal("ConsolidationApproved", &["Node", "NodeClaim", "NodePool"]);
    /// A pod was evicted.
    EVICTED = normal("Evicted", &["Pod"]);
    /// A pod was deleted because its node must go.
    DISRUPTED = normal("Disrupted", &["Pod"]);
    /// A node could not be drained yet.
    FAILED_DRAINING = warning("FailedDraining", &["Node"]);
    /// Volumes are still attached.
    AWAITING_VOLUME_DETACHMENT = normal("AwaitingVolumeDetachment", &["Node"]);
    /// The pods of a node will be deleted.
    TERMINATION_GRACE_PERIOD_EXPIRING = warning("TerminationGracePeriodExpiring", &["Node", "NodeClaim"]);
    /// Too many nodes are broken to repair one.
    NODE_REPAIR_BLOCKED = warning("NodeRepairBlocked", &["Node", "NodeClaim", "NodePool"]).every_minutes(15);
    /// A rebooted node came up.
    REBOOT_OBSERVED = normal("RebootObserved", &["NodeClaim"]).every_minutes(30);
    /// A node did not come back from a reboot.
    REBOOT_FAILED = warning("RebootFailed", &["NodeClaim"]).every_minutes(30);
    /// A node has less than was expected.
    FAILED_CONSISTENCY_CHECK = warning("FailedConsistencyCheck", &["NodeClaim"]);
    /// There was no capacity for a NodeClaim.
    INSUFFICIENT_CAPACITY = warning("InsufficientCapacityError", &["NodeClaim"]);
    /// There was no capacity for the NodeClaim of a pod.
    POD_INSUFFICIENT_CAPACITY = warning("InsufficientCapacityError", &["Pod"]).limited(PER_POD);
    /// A node came without the taint that protects its registration.
    UNREGISTERED_TAINT_MISSING = warning("UnregisteredTaintMissing", &["NodeClaim"]);
    /// A pod's annotation cannot be read.
    INVALID_DO_NOT_DISRUPT = warning("InvalidDoNotDisruptAnnotation", &["Pod"]);
    /// A pod is protected for some time.
    DO_NOT_DISRUPT_UNTIL = normal("DoNotDisruptUntil", &["Pod"]);
    /// A pod is no longer protected.
    DO_NOT_DISRUPT_ELAPSED = normal("DoNotDisruptGracePeriodElapsed", &["Pod"]);
    /// An object of ours cannot be read, and has no part in anything.
    UNREADABLE = warning(
        "Unreadable",
        &[
            "NodePool",
            "NodeClaim",
            "NodeOverlay",
            "CapacityBuffer",
            "KWOKNodeClass",
            "EC2NodeClass",
            "AKSNodeClass",
        ],
    )
    .every_minutes(15);
    /// Garbage collection would end too much at once, and has stopped.
    GARBAGE_COLLECTION_STOPPED = warning("GarbageCollectionStopped", &["NodePool"]).every_minutes(15);
    /// An object does nothing because a feature gate is off.
    FEATURE_GATE_DISABLED =
        warning("FeatureGateDisabled", &["NodePool", "NodeOverlay", "CapacityBuffer"]).every_minutes(60);
    /// The last finalizer of an object is gone.
    FINALIZED = Event {
        dedupe: Duration::ZERO,
        ..normal(
            "Finalized",
            &["NodeClaim", "NodePool", "Node", "CapacityBuffer", "EC2NodeClass", "AKSNodeClass"],
        )
    };
}

/// Events of the AWS provider.
pub mod aws {
    use super::{Event, define, normal, warning};

    define! {
        /// All events of the provider.
        ALL: Event;
        /// A spot instance is taken away.
        SPOT_INTERRUPTED = warning("SpotInterrupted", &["NodeClaim", "Node"]);
        /// The owner takes the reservation back.
        CAPACITY_RESERVATION_INTERRUPTED =
            warning("CapacityReservationInstanceInterrupted", &["NodeClaim", "Node"]);
        /// A spot instance may soon be taken away.
        SPOT_REBALANCE_RECOMMENDATION = normal("SpotRebalanceRecommendation", &["NodeClaim", "Node"]);
        /// An instance is being stopped.
        INSTANCE_STOPPING = warning("InstanceStopping", &["NodeClaim", "Node"]);
        /// An instance is being terminated.
        INSTANCE_TERMINATING = warning("InstanceTerminating", &["NodeClaim", "Node"]);
        /// An instance is impaired or will be maintained.
        INSTANCE_UNHEALTHY = warning("InstanceUnhealthy", &["NodeClaim", "Node"]);
        /// The node goes away for one of these reasons.
        TERMINATING_ON_INTERRUPTION = warning("TerminatingOnInterruption", &["NodeClaim", "Node"]);
        /// A NodeClass is still in use.
        WAITING_ON_NODE_CLAIM_TERMINATION = normal("WaitingOnNodeClaimTermination", &["EC2NodeClass"]);
        /// A zone is being avoided.
        ZONAL_SHIFT_ACTIVE = warning("ZonalShiftActive", &["NodePool"]);
        /// A zone can be used again.
        ZONAL_SHIFT_CLEARED = normal("ZonalShiftCleared", &["NodePool"]);
        /// The NodeClass is not there.
        NODE_CLASS_UNRESOLVED = warning("", &["NodePool", "NodeClaim"]);
        /// The role for spot instances may not be created.
        SPOT_SLR_CREATION_FAILED = warning("", &["NodeClaim"]);
    }
}

/// Events of the Azure provider.
pub mod azure {
    use super::{Event, define, normal, warning};

    define! {
        /// All events of the provider.
        ALL: Event;
        /// The NodeClass is not there.
        NODE_CLASS_RESOLUTION_ERROR = warning("NodeClassResolutionError", &["NodePool", "NodeClaim"]);
        /// A machine failed after Azure had accepted it.
        ASYNC_PROVISIONING_ERROR = warning("AsyncProvisioningError", &["NodeClaim"]);
        /// A NodeClass is still in use.
        WAITING_ON_NODE_CLAIM_TERMINATION = normal("WaitingOnNodeClaimTermination", &["AKSNodeClass"]);
    }
}
