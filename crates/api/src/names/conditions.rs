//! Types of status conditions. What reasons they have is in [`super::reasons`].

use super::define;

/// The condition that sums up the others of its kind.
pub const READY: &str = "Ready";

/// Conditions of a NodePool.
pub mod node_pool {
    use super::define;

    define! {
        /// All conditions of a NodePool besides `Ready`.
        ALL: &str;
        /// Whether the runtime validation found nothing wrong.
        VALIDATION_SUCCEEDED = "ValidationSucceeded";
        /// Whether the NodeClass can be used.
        NODE_CLASS_READY = "NodeClassReady";
        /// Whether nodes of the pool have been joining the cluster.
        NODE_REGISTRATION_HEALTHY = "NodeRegistrationHealthy";
        /// Present, and false, while some disruption budget cannot be read.
        BUDGETS_VALID = "BudgetsValid";
        /// Present, and false, while `spec.replicas` has no effect because its feature gate is off.
        FEATURE_GATE_ENABLED = "FeatureGateEnabled";
    }

    /// The conditions that `Ready` depends on.
    pub const DEPENDENTS: &[&str] = &[VALIDATION_SUCCEEDED, NODE_CLASS_READY];
}

/// Conditions of a NodeClaim.
pub mod node_claim {
    use super::define;

    define! {
        /// All conditions of a NodeClaim besides `Ready`.
        ALL: &str;
        /// Whether there is an instance.
        LAUNCHED = "Launched";
        /// Whether the instance joined the cluster.
        REGISTERED = "Registered";
        /// Whether pods can use the node.
        INITIALIZED = "Initialized";
        /// Present when the node has been quiet for long enough.
        CONSOLIDATABLE = "Consolidatable";
        /// Present when the node no longer is what it should be.
        DRIFTED = "Drifted";
        /// Whether the pods are gone.
        DRAINED = "Drained";
        /// Whether the volumes are gone.
        VOLUMES_DETACHED = "VolumesDetached";
        /// Present once the provider terminates the instance.
        INSTANCE_TERMINATING = "InstanceTerminating";
        /// Whether the node has what was expected of it.
        CONSISTENT_STATE_FOUND = "ConsistentStateFound";
        /// Present while the node is disrupted voluntarily.
        DISRUPTION_REASON = "DisruptionReason";
        /// Whether the node is being rebooted.
        REBOOTING = "Rebooting";
    }

    /// The conditions that `Ready` depends on.
    pub const DEPENDENTS: &[&str] = &[LAUNCHED, REGISTERED, INITIALIZED];
}

/// Conditions of a NodeOverlay.
pub mod node_overlay {
    use super::define;

    define! {
        /// All conditions of a NodeOverlay besides `Ready`.
        ALL: &str;
        /// Whether the overlay is valid and in no conflict.
        VALIDATION_SUCCEEDED = "ValidationSucceeded";
    }

    /// The conditions that `Ready` depends on.
    pub const DEPENDENTS: &[&str] = &[VALIDATION_SUCCEEDED];
}

/// Conditions of a CapacityBuffer, which has no `Ready`.
pub mod capacity_buffer {
    use super::define;

    define! {
        /// All conditions of a CapacityBuffer.
        ALL: &str;
        /// Whether the pod template was found.
        READY_FOR_PROVISIONING = "ReadyForProvisioning";
        /// Whether the buffer fits into the cluster as it is.
        PROVISIONING = "Provisioning";
        /// Reserved by the API; never written.
        LIMITED_BY_QUOTAS = "LimitedByQuotas";
    }
}

/// Conditions of an EC2NodeClass.
pub mod aws {
    use super::define;

    define! {
        /// All conditions of an EC2NodeClass besides `Ready`.
        ALL: &str;
        /// Whether images were found.
        AMIS_READY = "AMIsReady";
        /// Whether subnets were found.
        SUBNETS_READY = "SubnetsReady";
        /// Whether security groups were found.
        SECURITY_GROUPS_READY = "SecurityGroupsReady";
        /// Whether there is an instance profile.
        INSTANCE_PROFILE_READY = "InstanceProfileReady";
        /// Whether a launch would be accepted.
        VALIDATION_SUCCEEDED = "ValidationSucceeded";
        /// Whether the placement group was found.
        PLACEMENT_GROUP_READY = "PlacementGroupReady";
        /// Whether capacity reservations were looked up.
        CAPACITY_RESERVATIONS_READY = "CapacityReservationsReady";
    }

    /// The conditions that `Ready` depends on whatever the gates say.
    pub const DEPENDENTS: &[&str] = &[
        AMIS_READY,
        SUBNETS_READY,
        SECURITY_GROUPS_READY,
        INSTANCE_PROFILE_READY,
        VALIDATION_SUCCEEDED,
        PLACEMENT_GROUP_READY,
    ];
}

/// Conditions of an AKSNodeClass.
pub mod azure {
    use super::define;

    define! {
        /// All conditions of an AKSNodeClass besides `Ready`.
        ALL: &str;
        /// Whether images were found.
        IMAGES_READY = "ImagesReady";
        /// Whether the version of Kubernetes is known.
        KUBERNETES_VERSION_READY = "KubernetesVersionReady";
        /// Whether the subnet can be used.
        SUBNETS_READY = "SubnetsReady";
        /// Whether the configuration can be used.
        VALIDATION_SUCCEEDED = "ValidationSucceeded";
        /// Whether it has been decided if nodes have a DNS cache.
        LOCAL_DNS_READY = "LocalDNSReady";
    }

    /// The conditions that `Ready` depends on: all.
    pub const DEPENDENTS: &[&str] = ALL;
}

/// Conditions of Nodes that start a repair, besides the Node's own `Ready`.
pub mod node {
    use super::define;

    define! {
        /// All conditions of Nodes that some provider repairs.
        ALL: &str;
        /// Simulated: the node is to be replaced.
        KWOK_UNHEALTHY = "KWOKUnhealthy";
        /// Simulated: the node is to be rebooted.
        KWOK_REBOOT_REQUIRED = "KWOKRebootRequired";
        /// Whether accelerators work.
        ACCELERATED_HARDWARE_READY = "AcceleratedHardwareReady";
        /// Whether disks work.
        STORAGE_READY = "StorageReady";
        /// Whether the network works.
        NETWORKING_READY = "NetworkingReady";
        /// Whether the kernel works.
        KERNEL_READY = "KernelReady";
        /// Whether containers can be run.
        CONTAINER_RUNTIME_READY = "ContainerRuntimeReady";
        /// Whether AKS takes the node to be healthy.
        AKS_NODE_HEALTHY = "kubernetes.azure.com/NodeHealthy";
        /// Whether a spot machine is about to be taken away.
        PREEMPTION_SCHEDULED = "PreemptionScheduled";
    }
}
