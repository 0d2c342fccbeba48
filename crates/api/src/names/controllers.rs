//! Names of controllers, as they appear in logs and in the label `controller` of metrics.

use super::define;

define! {
    /// Controllers of the core.
    ALL: &str;
    /// Computes the nodes that pending pods need.
    PROVISIONER = "provisioner";
    /// Tells the provisioner of pending pods.
    PROVISIONER_TRIGGER_POD = "provisioner.trigger.pod";
    /// Tells the provisioner of nodes that go away.
    PROVISIONER_TRIGGER_NODE = "provisioner.trigger.node";
    /// Evicts pods.
    EVICTION_QUEUE = "eviction-queue";
    /// Decides what to disrupt.
    DISRUPTION = "disruption";
    /// Carries out what was decided.
    DISRUPTION_QUEUE = "disruption.queue";
    /// Launches, registers, initializes and terminates NodeClaims.
    NODE_CLAIM_LIFECYCLE = "nodeclaim.lifecycle";
    /// Marks NodeClaims that may be disrupted.
    NODE_CLAIM_DISRUPTION = "nodeclaim.disruption";
    /// Compares nodes with what was expected of them.
    NODE_CLAIM_CONSISTENCY = "nodeclaim.consistency";
    /// Deletes NodeClaims that are too old.
    NODE_CLAIM_EXPIRATION = "nodeclaim.expiration";
    /// Notes when pods come and go.
    NODE_CLAIM_POD_EVENTS = "nodeclaim.podevents";
    /// Deletes NodeClaims without an instance.
    NODE_CLAIM_GARBAGE_COLLECTION = "nodeclaim.garbagecollection";
    /// Adds what older releases did not write to NodeClaims.
    NODE_CLAIM_HYDRATION = "nodeclaim.hydration";
    /// Reboots nodes.
    NODE_CLAIM_REBOOT = "nodeclaim.reboot";
    /// Adds what older releases did not write to Nodes.
    NODE_HYDRATION = "node.hydration";
    /// Drains Nodes.
    NODE_TERMINATION = "node.termination";
    /// Repairs Nodes as older releases did.
    NODE_HEALTH = "node.health";
    /// Keeps the hash of NodePools.
    NODE_POOL_HASH = "nodepool.hash";
    /// Passes the readiness of NodeClasses on.
    NODE_POOL_READINESS = "nodepool.readiness";
    /// Keeps track of whether nodes join.
    NODE_POOL_REGISTRATION_HEALTH = "nodepool.registrationhealth";
    /// Counts what a NodePool has.
    NODE_POOL_COUNTER = "nodepool.counter";
    /// Validates NodePools.
    NODE_POOL_VALIDATION = "nodepool.validation";
    /// Applies overlays.
    NODE_OVERLAY = "nodeoverlay.controller";
    /// Adds nodes to static pools.
    STATIC_PROVISIONING = "static.provisioning";
    /// Removes nodes from static pools.
    STATIC_DEPROVISIONING = "static.deprovisioning";
    /// Resolves capacity buffers.
    CAPACITY_BUFFER = "capacitybuffer";
    /// Tells ReplicaSets which pods to delete first.
    POD_DELETION_COST = "pod.deletioncost";
    /// Writes what that controller decided.
    POD_DELETION_COST_QUEUE = "pod.deletioncost.queue";
    /// Tells users of objects that cannot be read.
    UNREADABLE = "unreadable";
    /// Tells users of objects that do nothing because a feature gate is off.
    FEATURE_GATES = "featuregates";
    /// Takes Nodes into the cluster state.
    STATE_NODE = "state.node";
    /// Takes pods into the cluster state.
    STATE_POD = "state.pod";
    /// Takes NodeClaims into the cluster state.
    STATE_NODE_CLAIM = "state.nodeclaim";
    /// Takes NodePools into the cluster state.
    STATE_NODE_POOL = "state.nodepool";
    /// Takes DaemonSets into the cluster state.
    STATE_DAEMON_SET = "state.daemonset";
    /// Takes prices into the cluster state.
    STATE_PRICING = "state.pricing";
    /// Drops NodeClaims that vanished before their launch.
    STATE_NODE_CLAIM_GC = "state.nodeclaimgc";
    /// Takes allocated devices into the cluster state.
    DEVICE_ALLOCATION = "dynamicresources.deviceallocation";
    /// Publishes metrics of pods.
    METRICS_POD = "metrics.pod";
    /// Publishes metrics of Nodes.
    METRICS_NODE = "metrics.node";
    /// Publishes metrics of NodePools.
    METRICS_NODE_POOL = "metrics.nodepool";
    /// Publishes the conditions of NodeClaims.
    STATUS_NODE_CLAIM = "operatorpkg.nodeclaim.status";
    /// Publishes the conditions of NodePools.
    STATUS_NODE_POOL = "operatorpkg.nodepool.status";
    /// Publishes the conditions of Nodes.
    STATUS_NODE = "operatorpkg.node.status";
    /// Publishes the conditions of CapacityBuffers.
    STATUS_CAPACITY_BUFFER = "operatorpkg.capacitybuffer.status";
}

/// The group and kind of the objects that a controller looks at one by one, as its log lines name them; nothing for
/// those that look at everything at once.
pub fn object_of(controller: &str) -> Option<(&'static str, &'static str)> {
    Some(match controller {
        PROVISIONER_TRIGGER_POD | NODE_CLAIM_POD_EVENTS | STATE_POD | METRICS_POD => ("", "Pod"),
        PROVISIONER_TRIGGER_NODE
        | NODE_HYDRATION
        | NODE_TERMINATION
        | NODE_HEALTH
        | STATE_NODE
        | STATUS_NODE
        | aws::INSTANCE_TYPE_CAPACITY => ("", "Node"),
        NODE_CLAIM_LIFECYCLE
        | NODE_CLAIM_DISRUPTION
        | NODE_CLAIM_CONSISTENCY
        | NODE_CLAIM_EXPIRATION
        | NODE_CLAIM_HYDRATION
        | NODE_CLAIM_REBOOT
        | STATE_NODE_CLAIM
        | STATUS_NODE_CLAIM
        | aws::NODE_CLAIM_TAGGING
        | azure::NODE_CLAIM_IN_PLACE_UPDATE => ("karpenter.sh", "NodeClaim"),
        NODE_POOL_HASH
        | NODE_POOL_READINESS
        | NODE_POOL_REGISTRATION_HEALTH
        | NODE_POOL_COUNTER
        | NODE_POOL_VALIDATION
        | STATIC_PROVISIONING
        | STATIC_DEPROVISIONING
        | STATE_NODE_POOL
        | METRICS_NODE_POOL
        | STATUS_NODE_POOL => ("karpenter.sh", "NodePool"),
        STATE_DAEMON_SET => ("apps", "DaemonSet"),
        CAPACITY_BUFFER | STATUS_CAPACITY_BUFFER => ("autoscaling.x-k8s.io", "CapacityBuffer"),
        aws::NODE_CLASS | aws::STATUS_NODE_CLASS => ("karpenter.k8s.aws", "EC2NodeClass"),
        azure::STATUS_NODE_CLASS => ("karpenter.azure.com", "AKSNodeClass"),
        _ => return None,
    })
}

/// Controllers of the provider of simulated nodes.
pub mod kwok {
    use super::define;

    define! {
        /// All controllers of the provider.
        ALL: &str;
        /// Deletes simulated instances without a NodeClaim, and brings those up that were interrupted.
        INSTANCE_GARBAGE_COLLECTION = "instance.garbagecollection";
    }
}

/// Controllers of the AWS provider.
pub mod aws {
    use super::define;

    define! {
        /// All controllers of the provider.
        ALL: &str;
        /// Resolves NodeClasses.
        NODE_CLASS = "nodeclass";
        /// Keeps the hash of NodeClasses.
        NODE_CLASS_HASH = "nodeclass.hash";
        /// Deletes instance profiles that nothing uses.
        INSTANCE_PROFILE_GARBAGE_COLLECTION = "instanceprofile.garbagecollection";
        /// Deletes instances without a NodeClaim.
        INSTANCE_GARBAGE_COLLECTION = "instance.garbagecollection";
        /// Deletes launch templates that nothing uses.
        LAUNCH_TEMPLATE_GARBAGE_COLLECTION = "launchtemplate.garbagecollection";
        /// Tags instances.
        NODE_CLAIM_TAGGING = "nodeclaim.tagging";
        /// Fetches prices.
        PRICING = "providers.pricing";
        /// Fetches instance types.
        INSTANCE_TYPE = "providers.instancetype";
        /// Learns the memory of instance types from Nodes.
        INSTANCE_TYPE_CAPACITY = "providers.instancetype.capacity";
        /// Forgets parameters of images that changed.
        SSM_INVALIDATION = "providers.ssm.invalidation";
        /// Fetches the version of Kubernetes.
        VERSION = "providers.version";
        /// Publishes the conditions of EC2NodeClasses.
        STATUS_NODE_CLASS = "operatorpkg.ec2nodeclass.status";
        /// Corrects the capacity type of nodes whose reservation ended.
        CAPACITY_RESERVATION_CAPACITY_TYPE = "capacityreservation.capacitytype";
        /// Empties capacity blocks before they end.
        CAPACITY_RESERVATION_EXPIRATION = "capacityreservation.expiration";
        /// Publishes prices and availability.
        METRICS = "cloudprovider.metrics";
        /// Follows zonal shifts.
        ZONAL_SHIFT = "zonalshift";
        /// Looks for impaired instances.
        INTERRUPTION_INSTANCE_STATUS = "interruption.instancestatus";
        /// Reads the queue of interruptions.
        INTERRUPTION = "interruption";
    }
}

/// Controllers of the Azure provider.
pub mod azure {
    use super::define;

    define! {
        /// All controllers of the provider.
        ALL: &str;
        /// Resolves NodeClasses.
        NODE_CLASS_STATUS = "nodeclass.status";
        /// Keeps the hash of NodeClasses.
        NODE_CLASS_HASH = "nodeclass.hash";
        /// Lets NodeClasses go.
        NODE_CLASS_TERMINATION = "nodeclass.termination";
        /// Deletes machines without a NodeClaim.
        INSTANCE_GARBAGE_COLLECTION = "instance.garbagecollection";
        /// Deletes network interfaces without a machine.
        NETWORK_INTERFACE_GARBAGE_COLLECTION = "networkinterface.garbagecollection";
        /// Changes tags and identities of running machines.
        NODE_CLAIM_IN_PLACE_UPDATE = "nodeclaim.inplaceupdate";
        /// Fetches sizes.
        INSTANCE_TYPE = "instancetype";
        /// Fetches quotas.
        QUOTA = "quota";
        /// Fetches prices.
        PRICING = "pricing";
        /// Publishes the conditions of AKSNodeClasses.
        STATUS_NODE_CLASS = "operatorpkg.aksnodeclass.status";
    }
}
