//! Reasons of status conditions. The messages that always go with a reason are in [`super::messages`].

use super::define;

define! {
    /// Reasons that every kind can have.
    ALL: &str;
    /// Nothing has looked at the object yet.
    AWAITING_RECONCILIATION = "AwaitingReconciliation";
    /// Some condition that `Ready` depends on is not known.
    RECONCILING_DEPENDENTS = "ReconcilingDependents";
    /// Some condition that `Ready` depends on does not hold.
    UNHEALTHY_DEPENDENTS = "UnhealthyDependents";
    /// Everything that `Ready` depends on holds.
    READY = "Ready";
}

/// Reasons of a NodePool's conditions.
pub mod node_pool {
    use super::define;

    define! {
        /// All reasons of a NodePool's conditions.
        ALL: &str;
        /// The runtime validation found something wrong.
        VALIDATION_FAILED = "NodePoolValidationFailed";
        /// There is no such NodeClass.
        NODE_CLASS_NOT_FOUND = "NodeClassNotFound";
        /// The NodeClass is being deleted.
        NODE_CLASS_TERMINATING = "NodeClassTerminating";
        /// The NodeClass does not say whether it is ready.
        NODE_CLASS_READINESS_UNKNOWN = "NodeClassReadinessUnknown";
        /// Nodes did not join the cluster.
        REGISTRATION_FAILED = "RegistrationFailed";
        /// A disruption budget cannot be read.
        INVALID_BUDGETS = "InvalidBudgets";
    }
}

/// Reasons of a NodeClaim's conditions.
pub mod node_claim {
    use super::define;

    define! {
        /// All reasons of a NodeClaim's conditions.
        ALL: &str;
        /// The provider could not create the instance.
        LAUNCH_FAILED = "LaunchFailed";
        /// There is no Node for the instance.
        NODE_NOT_FOUND = "NodeNotFound";
        /// There is more than one Node for the instance.
        MULTIPLE_NODES_FOUND = "MultipleNodesFound";
        /// A registration hook has not finished.
        REGISTRATION_HOOK_PENDING = "RegistrationHookPending";
        /// The kubelet is not ready.
        NODE_NOT_READY = "NodeNotReady";
        /// A startup taint is still there.
        STARTUP_TAINTS_EXIST = "StartupTaintsExist";
        /// A taint that vanishes by itself is still there.
        KNOWN_EPHEMERAL_TAINTS_EXIST = "KnownEphemeralTaintsExist";
        /// A requested resource is not there yet.
        RESOURCE_NOT_REGISTERED = "ResourceNotRegistered";
        /// A DRA driver has not published its devices.
        DRA_DRIVER_POOLS_NOT_PUBLISHED = "DRADriverPoolsNotPublished";
        /// The node is being rebooted.
        REBOOTING = "Rebooting";
        /// The hash of the NodePool changed.
        NODE_POOL_DRIFTED = "NodePoolDrifted";
        /// The labels no longer satisfy the NodePool.
        REQUIREMENTS_DRIFTED = "RequirementsDrifted";
        /// The instance type is no longer offered.
        INSTANCE_TYPE_NOT_FOUND = "InstanceTypeNotFound";
        /// Pods are being evicted.
        DRAINING = "Draining";
        /// Volumes are still attached.
        AWAITING_VOLUME_DETACHMENT = "AwaitingVolumeDetachment";
        /// Volumes were not waited for any longer.
        TERMINATION_GRACE_PERIOD_ELAPSED = "TerminationGracePeriodElapsed";
        /// The node has less than was expected.
        CONSISTENCY_CHECK_FAILED = "ConsistencyCheckFailed";
        /// A reboot was decided.
        REBOOT_REQUESTED = "RebootRequested";
        /// The provider accepted the reboot.
        REBOOT_ISSUED = "RebootIssued";
        /// The node came back.
        REBOOT_SUCCEEDED = "RebootSucceeded";
        /// The request for a reboot made no sense.
        REBOOT_FAILED = "RebootFailed";
    }
}

/// Reasons of a NodeOverlay's conditions.
pub mod node_overlay {
    use super::define;

    define! {
        /// All reasons of a NodeOverlay's conditions.
        ALL: &str;
        /// The runtime validation found something wrong.
        RUNTIME_VALIDATION = "RuntimeValidation";
        /// Another overlay of the same weight concerns the same thing.
        CONFLICT = "Conflict";
    }
}

/// Reasons of a CapacityBuffer's conditions.
pub mod capacity_buffer {
    use super::define;

    define! {
        /// All reasons of a CapacityBuffer's conditions.
        ALL: &str;
        /// The pod template was found.
        RESOLVED = "Resolved";
        /// There is no such PodTemplate.
        POD_TEMPLATE_NOT_FOUND = "PodTemplateNotFound";
        /// There is no such workload.
        SCALABLE_REF_NOT_FOUND = "ScalableRefNotFound";
        /// The pod template could not be found out.
        RESOLUTION_FAILED = "ResolutionFailed";
        /// All virtual pods fit.
        FITS_EXISTING_CAPACITY = "FitsExistingCapacity";
        /// Some virtual pods need new nodes.
        REQUIRES_NEW_CAPACITY = "RequiresNewCapacity";
        /// There is no pod template.
        NOT_READY_FOR_PROVISIONING = "NotReadyForProvisioning";
        /// The buffer asks for nothing.
        BUFFER_EMPTY = "BufferEmpty";
    }
}

/// Reasons that the AWS provider gives.
pub mod aws {
    use super::define;

    define! {
        /// Reasons of an EC2NodeClass's conditions.
        ALL: &str;
        /// The image alias is for another version of Kubernetes.
        UNSUPPORTED_ALIAS = "UnsupportedAlias";
        /// There are no such images.
        AMI_NOT_FOUND = "AMINotFound";
        /// There are no such subnets.
        SUBNETS_NOT_FOUND = "SubnetsNotFound";
        /// There are no such security groups.
        SECURITY_GROUPS_NOT_FOUND = "SecurityGroupsNotFound";
        /// There is no such role.
        ROLE_NOT_FOUND = "RoleNotFound";
        /// The placement group could not be looked up.
        PLACEMENT_GROUP_RESOLUTION_FAILED = "PlacementGroupResolutionFailed";
        /// There is no such placement group.
        PLACEMENT_GROUP_NOT_FOUND = "PlacementGroupNotFound";
        /// The cluster's service addresses are not known.
        CLUSTER_CIDR_RESOLUTION_FAILED = "ClusterCIDRResolutionFailed";
        /// The kubelet's configuration is wrong.
        INVALID_KUBELET_CONFIGURATION = "InvalidKubeletConfiguration";
        /// The kubelet's configuration has expressions, but their gate is off.
        KUBELET_EXPRESSIONS_DISABLED = "KubeletExpressionsDisabled";
        /// An expression cannot be compiled.
        KUBELET_EXPRESSION_INVALID = "KubeletExpressionInvalid";
        /// An expression fails for some instance type.
        KUBELET_EXPRESSION_EVALUATION_FAILED = "KubeletExpressionEvaluationFailed";
        /// The image family does not support the kubelet's configuration.
        UNSUPPORTED_KUBELET_CONFIGURATION = "UnsupportedKubeletConfiguration";
        /// Another condition comes first.
        DEPENDENCIES_NOT_READY = "DependenciesNotReady";
        /// A tag is not allowed.
        TAG_VALIDATION_FAILED = "TagValidationFailed";
        /// The controller may not create launch templates.
        CREATE_LAUNCH_TEMPLATE_AUTH_CHECK_FAILED = "CreateLaunchTemplateAuthCheckFailed";
        /// The controller may not create fleets.
        CREATE_FLEET_AUTH_CHECK_FAILED = "CreateFleetAuthCheckFailed";
        /// The controller may not run instances.
        RUN_INSTANCES_AUTH_CHECK_FAILED = "RunInstancesAuthCheckFailed";
        /// There is no such instance profile.
        INSTANCE_PROFILE_NOT_FOUND = "InstanceProfileNotFound";
        /// The user data is too large for EC2.
        USER_DATA_SIZE_LIMIT_EXCEEDED = "UserDataSizeLimitExceeded";
    }

    define! {
        /// Reasons of `Drifted`.
        DRIFT: &str;
        /// The hash of the NodeClass changed.
        NODE_CLASS_DRIFT = "NodeClassDrift";
        /// Another image would be chosen today.
        AMI_DRIFT = "AMIDrift";
        /// The security groups changed.
        SECURITY_GROUP_DRIFT = "SecurityGroupDrift";
        /// The subnet is no longer selected.
        SUBNET_DRIFT = "SubnetDrift";
        /// The capacity reservation is no longer selected.
        CAPACITY_RESERVATION_DRIFT = "CapacityReservationDrift";
        /// The placement group changed.
        PLACEMENT_GROUP_DRIFT = "PlacementGroupDrift";
    }

    define! {
        /// Reasons of `Launched` for a launch that failed.
        LAUNCH: &str;
        /// It is not known whether the NodeClass is ready.
        NODE_CLASS_READINESS_UNKNOWN = "NodeClassReadinessUnknown";
        /// The instance types are not known.
        INSTANCE_TYPE_RESOLUTION_FAILED = "InstanceTypeResolutionFailed";
        /// The subnets are not known.
        SUBNET_RESOLUTION_FAILED = "SubnetResolutionFailed";
        /// The role for spot instances may not be created.
        SPOT_SLR_CREATION_FAILED = "SpotSLRCreationFailed";
        /// The controller lacks a permission.
        UNAUTHORIZED = "Unauthorized";
        /// The image may not be used.
        AMI_AUTHORIZATION_FAILURE = "AMIAuthorizationFailure";
        /// The security group is in another network than the subnet.
        SECURITY_GROUP_SUBNET_VPC_MISMATCH = "SecurityGroupSubnetVPCMismatch";
        /// The instance profile does not exist.
        INSTANCE_PROFILE_NAME_INVALID = "InstanceProfileNameInvalid";
        /// The launch template is gone.
        LAUNCH_TEMPLATE_NOT_FOUND = "LaunchTemplateNotFound";
        /// The identifier of the image is malformed.
        INVALID_AMI_ID = "InvalidAMIID";
        /// There were too many requests.
        REQUEST_LIMIT_EXCEEDED = "RequestLimitExceeded";
        /// EC2 failed.
        INTERNAL_ERROR = "InternalError";
        /// The account is in the free tier, which does not have the type.
        FREE_TIER_INELIGIBLE = "FreeTierIneligible";
        /// There are too many fleets.
        FLEET_QUOTA_EXCEEDED = "FleetQuotaExceeded";
        /// The account is being verified.
        ACCOUNT_PENDING_VERIFICATION = "AccountPendingVerification";
        /// There are too many spot instances.
        SPOT_QUOTA_EXCEEDED = "SpotQuotaExceeded";
        /// There are too many processors.
        VCPU_LIMIT_EXCEEDED = "VCPULimitExceeded";
        /// The subnet has no addresses left.
        INSUFFICIENT_FREE_ADDRESSES_IN_SUBNET = "InsufficientFreeAddressesInSubnet";
    }
}

/// Reasons that the Azure provider gives.
pub mod azure {
    use super::define;

    define! {
        /// Reasons of an AKSNodeClass's conditions.
        ALL: &str;
        /// Images are looked up again for a new version of Kubernetes.
        KUBERNETES_UPGRADE = "KubernetesUpgrade";
        /// Certified images are only in the shared gallery.
        SIG_REQUIRED_FOR_FIPS = "SIGRequiredForFIPS";
        /// There are no images.
        IMAGES_NOT_FOUND = "ImagesNotFound";
        /// The subnet cannot be used.
        SUBNET_ID_INVALID = "SubnetIDInvalid";
        /// There is no such subnet.
        SUBNET_NOT_FOUND = "SubnetNotFound";
        /// The subnet could not be looked up.
        SUBNET_UNKNOWN_ERROR = "SubnetUnknownError";
        /// The disk encryption set may not be read.
        DISK_ENCRYPTION_SET_RBAC_MISSING = "DiskEncryptionSetRBACMissing";
        /// It could not be found out whether nodes can have a DNS cache.
        CHECKING_CLUSTER_REQUIREMENTS_FAILED = "CheckingClusterRequirementsFailed";
        /// The cluster has a service principal in place of a managed identity.
        SERVICE_PRINCIPAL_UNSUPPORTED = "ServicePrincipalUnsupported";
        /// Nodes of the cluster's network plugin cannot be created.
        NETWORK_PLUGIN_UNSUPPORTED = "NetworkPluginUnsupported";
        /// Nodes of the cluster's network policy engine cannot be created.
        NETWORK_POLICY_UNSUPPORTED = "NetworkPolicyUnsupported";
        /// Nodes with IPv6 addresses cannot be created.
        IP_FAMILY_UNSUPPORTED = "IPFamilyUnsupported";
        /// Nodes would need a proxy that they are not told of.
        HTTP_PROXY_UNSUPPORTED = "HTTPProxyUnsupported";
        /// Nodes would need certificates that they are not told of.
        CUSTOM_CA_UNSUPPORTED = "CustomCAUnsupported";
        /// Pods have a subnet of their own.
        POD_SUBNET_UNSUPPORTED = "PodSubnetUnsupported";
        /// Only AKS may change the resource group of the nodes.
        NODE_RESOURCE_GROUP_READ_ONLY = "NodeResourceGroupReadOnly";
    }

    define! {
        /// Reasons of `Drifted`.
        DRIFT: &str;
        /// The hash of the NodeClass changed.
        NODE_CLASS_DRIFT = "NodeClassDrift";
        /// The cluster has another version of Kubernetes.
        K8S_VERSION_DRIFT = "K8sVersionDrift";
        /// The kubelet has another identity.
        KUBELET_IDENTITY_DRIFT = "KubeletIdentityDrift";
        /// Another image would be chosen today.
        IMAGE_DRIFT = "ImageDrift";
        /// AKS says that the machine is out of date.
        CLUSTER_CONFIG_DRIFT = "ClusterConfigDrift";
    }

    define! {
        /// Reasons of `Launched` for a launch that failed.
        LAUNCH: &str;
        /// It is not known whether the NodeClass is ready.
        NODE_CLASS_READINESS_UNKNOWN = "NodeClassReadinessUnknown";
        /// The instance types are not known.
        INSTANCE_TYPE_RESOLUTION_FAILED = "InstanceTypeResolutionFailed";
        /// The machine could not be created.
        CREATE_INSTANCE_FAILED = "CreateInstanceFailed";
        /// The subscription allows no more.
        SUBSCRIPTION_QUOTA_REACHED = "SubscriptionQuotaReached";
        /// The size is not offered.
        SKU_NOT_AVAILABLE = "SKUNotAvailable";
        /// The zone has no capacity.
        ZONAL_ALLOCATION_FAILURE = "ZonalAllocationFailure";
        /// The region has no capacity.
        ALLOCATION_FAILURE = "AllocationFailure";
        /// The zone has no capacity for such a machine.
        OVERCONSTRAINED_ZONAL_ALLOCATION_FAILURE = "OverconstrainedZonalAllocationFailure";
        /// The region has no capacity for such a machine.
        OVERCONSTRAINED_ALLOCATION_FAILURE = "OverconstrainedAllocationFailure";
    }
}
