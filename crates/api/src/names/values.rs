//! Values of labels on nodes and of labels on metrics.

use super::define;

/// Values of `karpenter.sh/capacity-type`.
pub mod capacity_type {
    use super::define;

    define! {
        /// All capacity types.
        ALL: &str;
        /// Paid by use.
        ON_DEMAND = "on-demand";
        /// Cheap, but can be taken away.
        SPOT = "spot";
        /// Paid for in advance.
        RESERVED = "reserved";
    }
}

/// Values of `kubernetes.io/arch`.
pub mod arch {
    use super::define;

    define! {
        /// All architectures.
        ALL: &str;
        /// x86 with 64 bits.
        AMD64 = "amd64";
        /// ARM with 64 bits.
        ARM64 = "arm64";
    }
}

define! {
    /// Reasons for which NodeClaims are created or disrupted, in metrics.
    DISRUPTION_REASONS: &str;
    /// Pods needed the node; only for creation.
    PROVISIONED = "provisioned";
    /// The pods fit elsewhere or on something cheaper.
    UNDERUTILIZED = "underutilized";
    /// There were no pods.
    EMPTY = "empty";
    /// The node was not what it should be.
    DRIFTED = "drifted";
    /// The node was broken.
    UNHEALTHY = "unhealthy";
    /// The node was too old.
    EXPIRED = "expired";
    /// The instance was gone.
    GARBAGE_COLLECTED = "garbage_collected";
    /// There was no capacity.
    INSUFFICIENT_CAPACITY = "insufficient_capacity";
    /// The NodeClass could not be used.
    NODE_CLASS_NOT_READY = "nodeclass_not_ready";
    /// The instance took too long to launch.
    LAUNCH_TIMEOUT = "launch_timeout";
    /// The node took too long to register.
    REGISTRATION_TIMEOUT = "registration_timeout";
    /// AWS takes a spot instance away.
    AWS_SPOT_INTERRUPTED = "spot_interrupted";
    /// AWS stopped the instance.
    AWS_INSTANCE_STOPPED = "instance_stopped";
    /// AWS terminated the instance.
    AWS_INSTANCE_TERMINATED = "instance_terminated";
    /// The owner takes the reservation back.
    AWS_CAPACITY_RESERVATION_INTERRUPTED = "capacity_reservation_interrupted";
    /// AWS has planned maintenance.
    AWS_SCHEDULED_CHANGE = "scheduled_change";
    /// Azure failed after it had accepted the machine.
    AZURE_ASYNC_PROVISIONING = "async_provisioning";
}

define! {
    /// Values of `termination_mode`.
    TERMINATION_MODES: &str;
    /// Draining waits for as long as it takes.
    GRACEFUL = "graceful";
    /// Draining ends after the grace period.
    EVENTUAL = "eventual";
    /// Draining does not wait.
    FORCEFUL = "forceful";
}

define! {
    /// Values of `decision` for disruption commands.
    DECISIONS: &str;
    /// Nothing is done.
    NO_OP = "no-op";
    /// Nodes are replaced.
    REPLACE = "replace";
    /// Nodes are deleted.
    DELETE = "delete";
    /// Nodes are deleted although they will be replaced.
    TERMINATE_FIRST = "terminate-first";
    /// A node is rebooted.
    REBOOT = "reboot";
}

define! {
    /// Values of `decision` for consolidation moves.
    APPROVALS: &str;
    /// The move is worth it.
    APPROVED = "approved";
    /// The move is not worth it.
    REJECTED = "rejected";
}

define! {
    /// Values of `consolidation_type`.
    CONSOLIDATION_TYPES: &str;
    /// Empty nodes.
    CONSOLIDATION_EMPTY = "empty";
    /// Several nodes at once.
    CONSOLIDATION_MULTI = "multi";
    /// One node.
    CONSOLIDATION_SINGLE = "single";
}

define! {
    /// Values of `terminate_first_reason`.
    TERMINATE_FIRST_REASONS: &str;
    /// The node itself holds the reservation that its successor needs.
    NO_RESERVED_CAPACITY = "no-reserved-capacity";
    /// The static pool has as many nodes as it may have.
    STATIC_AT_LIMIT = "static-at-limit";
}

define! {
    /// Values of `result` for reboots.
    REBOOT_RESULTS: &str;
    /// The node came back.
    REBOOT_SUCCEEDED = "succeeded";
    /// The provider refused or did not answer.
    REBOOT_PROVIDER_ERROR = "provider_error";
    /// The node did not come back.
    REBOOT_RECOVERY_TIMEOUT = "recovery_timeout";
    /// The request made no sense.
    REBOOT_INVALID_REQUEST = "invalid_request";
}

define! {
    /// Values of `result` for writes of the pod deletion cost.
    ANNOTATION_WRITE_RESULTS: &str;
    /// The annotation was written.
    WRITE_UPDATED = "updated";
    /// The annotation was right already.
    WRITE_UNCHANGED = "skipped_unchanged";
    /// The pod is gone.
    WRITE_NOT_FOUND = "skipped_notfound";
    /// The pod changed meanwhile.
    WRITE_CONFLICT = "skipped_conflict";
    /// The write failed and is retried.
    WRITE_ERROR = "error";
}

define! {
    /// Values of `method`, the calls to a cloud provider.
    PROVIDER_METHODS: &str;
    /// Launch an instance.
    METHOD_CREATE = "Create";
    /// Terminate an instance.
    METHOD_DELETE = "Delete";
    /// Look an instance up.
    METHOD_GET = "Get";
    /// List the instances.
    METHOD_LIST = "List";
    /// List the instance types.
    METHOD_GET_INSTANCE_TYPES = "GetInstanceTypes";
    /// Ask whether a node is what it should be.
    METHOD_IS_DRIFTED = "IsDrifted";
    /// Reboot an instance.
    METHOD_REBOOT = "Reboot";
}

define! {
    /// Values of `error`, the errors of a cloud provider.
    PROVIDER_ERRORS: &str;
    /// There is no capacity.
    ERROR_INSUFFICIENT_CAPACITY = "InsufficientCapacityError";
    /// The instance is gone.
    ERROR_NODE_CLAIM_NOT_FOUND = "NodeClaimNotFoundError";
    /// The NodeClass cannot be used.
    ERROR_NODE_CLASS_NOT_READY = "NodeClassNotReadyError";
    /// Anything else.
    ERROR_UNKNOWN = "unknown";
}

define! {
    /// Values of `zone` for pending pods that have no single zone.
    EFFECTIVE_ZONES: &str;
    /// Several zones are possible.
    ZONE_FLEXIBLE = "flexible";
    /// No zone is possible.
    ZONE_NONE = "none";
}

define! {
    /// Values of `reason` for drained pods, besides the disruption reasons.
    DRAIN_REASONS: &str;
    /// The node was terminated for another reason than a disruption.
    FORCEFUL_TERMINATION = "Forceful Termination";
}

define! {
    /// Values of `category` for impaired EC2 instances.
    AWS_STATUS_CATEGORIES: &str;
    /// The instance is impaired.
    AWS_INSTANCE_STATUS = "InstanceStatus";
    /// The host is impaired.
    AWS_SYSTEM_STATUS = "SystemStatus";
    /// An event is scheduled.
    AWS_EVENT_STATUS = "EventStatus";
}

define! {
    /// Values of `phase` for Azure machines that could not be created.
    AZURE_CREATE_PHASES: &str;
    /// The request was refused.
    AZURE_PHASE_SYNC = "sync";
    /// The request was accepted and failed later.
    AZURE_PHASE_ASYNC = "async";
}
