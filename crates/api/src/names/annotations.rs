//! Annotations that users set, or that Karpenter keeps its notes in.

use super::define;

define! {
    /// All annotations of the core.
    ALL: &str;
    /// Keeps a pod, node or NodeClaim from voluntary disruption.
    DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt";
    /// Keeps a node from being repaired or rebooted.
    DO_NOT_REPAIR = "karpenter.sh/do-not-repair";
    /// What evicting the pod costs, as an `i32`.
    DISRUPTION_COST = "karpenter.sh/disruption-cost";
    /// The hash of the NodePool's template.
    NODEPOOL_HASH = "karpenter.sh/nodepool-hash";
    /// Which hash function that was.
    NODEPOOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version";
    /// When draining ends, as an RFC 3339 time.
    TERMINATION_TIMESTAMP = "karpenter.sh/nodeclaim-termination-timestamp";
    /// When a node that replaced others has paid for itself, as an RFC 3339 time.
    PAYBACK_TIMESTAMP = "karpenter.sh/nodeclaim-payback-timestamp";
    /// Whether `minValues` was relaxed for the launch.
    MIN_VALUES_RELAXED = "karpenter.sh/nodeclaim-min-values-relaxed";
    /// The DRA drivers that must have published devices before the node is initialized.
    REQUESTED_DRA_DRIVERS = "karpenter.sh/requested-dra-drivers";
    /// `true` when the price of a chosen instance type was corrected.
    PRICE_OVERLAY_APPLIED = "karpenter.sh/price-overlay-applied";
    /// `true` when the capacity of a chosen instance type was corrected.
    CAPACITY_OVERLAY_APPLIED = "karpenter.sh/capacity-overlay-applied";
    /// The boot that a reboot is to end.
    REBOOT_PRE_BOOT_ID = "karpenter.sh/reboot-pre-boot-id";
    /// How long a node drains before it is rebooted.
    REBOOT_TERMINATION_GRACE_PERIOD = "karpenter.sh/reboot-termination-grace-period";
    /// Since when the provider is being asked for a reboot; once it has accepted, when it did.
    REBOOT_ISSUE_TIME = "karpenter.sh/reboot-issue-time";
    /// When reboots of the node were asked for within the last day, as RFC 3339 times with commas between them.
    REBOOT_HISTORY = "karpenter.sh/reboot-history";
    /// `true` on the virtual pods of a capacity buffer.
    BUFFER_FAKE_POD = "karpenter.sh/capacity-buffer-fake-pod";
    /// The capacity buffer of a virtual pod.
    BUFFER_NAME = "karpenter.sh/capacity-buffer-name";
    /// The namespace of that capacity buffer.
    BUFFER_NAMESPACE = "karpenter.sh/capacity-buffer-namespace";
    /// What ReplicaSets look at when they choose the pod to delete.
    POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost";
}

/// Annotations of simulated nodes.
pub mod kwok {
    use super::define;

    define! {
        /// All annotations of the provider.
        ALL: &str;
        /// Marks a node as simulated.
        NODE = "kwok.x-k8s.io/node";
    }
}

/// Annotations of the AWS provider.
pub mod aws {
    use super::define;

    define! {
        /// All annotations of the provider.
        ALL: &str;
        /// The hash of the NodeClass.
        NODE_CLASS_HASH = "karpenter.k8s.aws/ec2nodeclass-hash";
        /// Which hash function that was.
        NODE_CLASS_HASH_VERSION = "karpenter.k8s.aws/ec2nodeclass-hash-version";
        /// `true` once the instance has all its tags.
        TAGGED = "karpenter.k8s.aws/tagged";
        /// `true` once the instance has the tag of the cluster's name.
        CLUSTER_NAME_TAGGED = "compatibility.karpenter.k8s.aws/cluster-name-tagged";
        /// The instance profile that the instance was launched with.
        INSTANCE_PROFILE_NAME = "karpenter.k8s.aws/instance-profile-name";
        /// On NodeClasses, the memory that nodes of instance types were seen to have.
        LEARNED_MEMORY = "karpenter.k8s.aws/learned-memory";
    }
}

/// Annotations of the Azure provider.
pub mod azure {
    use super::define;

    define! {
        /// All annotations of the provider.
        ALL: &str;
        /// The hash of the NodeClass.
        NODE_CLASS_HASH = "karpenter.azure.com/aksnodeclass-hash";
        /// Which hash function that was.
        NODE_CLASS_HASH_VERSION = "karpenter.azure.com/aksnodeclass-hash-version";
        /// The hash of what is changed without replacing the node.
        IN_PLACE_UPDATE_HASH = "karpenter.azure.com/in-place-update-hash";
        /// The AKS machine of the NodeClaim.
        AKS_MACHINE_RESOURCE_ID = "karpenter.azure.com/aks-machine-resource-id";
    }
}
