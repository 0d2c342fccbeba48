//! Messages that users and programs match on: those that always go with a condition's reason, and what the
//! texts of errors begin with.

use super::define;

define! {
    /// Messages of conditions.
    ALL: &str;
    /// With `AwaitingReconciliation`.
    AWAITING_RECONCILIATION = "object is awaiting reconciliation";
    /// With `NodeClassNotFound`.
    NODE_CLASS_NOT_FOUND = "NodeClass not found on cluster";
    /// With `NodeClassTerminating`.
    NODE_CLASS_TERMINATING = "NodeClass is Terminating";
    /// With `NodeClassReadinessUnknown`.
    NODE_CLASS_READINESS_UNKNOWN = "Node Class Readiness Unknown";
    /// With `RegistrationFailed`.
    REGISTRATION_FAILED = "Failed to register node";
    /// With `NodeNotFound`.
    NODE_NOT_FOUND = "Node not registered with cluster";
    /// With `MultipleNodesFound`.
    MULTIPLE_NODES_FOUND = "Invariant violated, matched multiple nodes";
    /// With `NodeNotReady`.
    NODE_NOT_READY = "Node status is NotReady";
    /// With `Rebooting` of the condition `Initialized`.
    NODE_IS_REBOOTING = "node is rebooting";
    /// With `RebootSucceeded`.
    REBOOT_SUCCEEDED = "node rebooted and rejoined the cluster";
    /// With `ConsistencyCheckFailed`.
    CONSISTENCY_CHECK_FAILED = "Consistency Check Failed";
    /// With `Conflict`.
    OVERLAY_CONFLICT = "conflict with another overlay";
    /// With `Resolved`.
    BUFFER_RESOLVED = "Pod template resolved successfully";
    /// With `ResolutionFailed`, when there is nothing to look up.
    BUFFER_WITHOUT_REFERENCE = "Neither podTemplateRef nor scalableRef is set";
    /// With `NotReadyForProvisioning`.
    BUFFER_NOT_READY = "Buffer is not ReadyForProvisioning";
    /// With `BufferEmpty`.
    BUFFER_EMPTY = "Buffer has zero desired replicas";
    /// With `AMINotFound`.
    AWS_AMI_NOT_FOUND = "AMISelector did not match any AMIs";
    /// With `SubnetsNotFound`.
    AWS_SUBNETS_NOT_FOUND = "SubnetSelector did not match any Subnets";
    /// With `SecurityGroupsNotFound`.
    AWS_SECURITY_GROUPS_NOT_FOUND = "SecurityGroupSelector did not match any SecurityGroups";
}

/// What the texts of a provider's errors begin with.
pub mod errors {
    use super::define;

    define! {
        /// All beginnings and fixed texts.
        ALL: &str;
        /// There is no capacity; another offering is tried.
        INSUFFICIENT_CAPACITY = "insufficient capacity, ";
        /// The NodeClass cannot be used.
        NODE_CLASS_NOT_READY = "NodeClassRef not ready, ";
        /// The launch failed for a reason that becomes the condition's.
        CREATE = "creating nodeclaim, ";
        /// The instance is gone.
        NODE_CLAIM_NOT_FOUND = "nodeclaim not found, ";
        /// The provider cannot reboot.
        REBOOT_NOT_IMPLEMENTED = "reboot is not implemented by this cloud provider";
    }
}
