//! Command-line flags and the environment variables that stand in for them. A flag beats its variable.

use super::define;

/// What a flag's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Switch,
    /// A Go duration, such as `10s`.
    Duration,
}

impl FlagKind {
    /// The kind in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Switch => "switch",
            Self::Duration => "duration",
        }
    }
}

/// A setting of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The flag, without dashes.
    pub flag: &'static str,
    /// The environment variable.
    pub env: &'static str,
    /// What the value is.
    pub kind: FlagKind,
    /// The value when nothing is said; a flag without one must be set.
    pub default: Option<&'static str>,
    /// What the setting does.
    pub help: &'static str,
}

/// Defines flags whose documentation also is their help text.
macro_rules! flags {
    (
        $(#[$list_doc:meta])* $list:ident;
        $(#[doc = $help:literal] $name:ident = $flag:literal, $env:literal, $kind:ident $(, $default:literal)?;)*
    ) => {
        $crate::names::define! {
            $(#[$list_doc])* $list: Flag;
            $(#[doc = $help]
            $name = Flag {
                flag: $flag,
                env: $env,
                kind: FlagKind::$kind,
                default: flags!(@default $($default)?),
                help: $help.trim_ascii(),
            };)*
        }
    };
    (@default $default:literal) => { Some($default) };
    (@default) => { None };
}

flags! {
    /// Flags of the core.
    ALL;
    /// Has no effect; accepted because charts set it.
    KARPENTER_SERVICE = "karpenter-service", "KARPENTER_SERVICE", Text, "";
    /// Port on which metrics and profiles are served.
    METRICS_PORT = "metrics-port", "METRICS_PORT", Integer, "8080";
    /// Port on which liveness and readiness are served.
    HEALTH_PROBE_PORT = "health-probe-port", "HEALTH_PROBE_PORT", Integer, "8081";
    /// Requests per second to the API server in the long run.
    KUBE_CLIENT_QPS = "kube-client-qps", "KUBE_CLIENT_QPS", Integer, "200";
    /// Requests to the API server at once.
    KUBE_CLIENT_BURST = "kube-client-burst", "KUBE_CLIENT_BURST", Integer, "300";
    /// Serve profiles on the metrics port.
    ENABLE_PROFILING = "enable-profiling", "ENABLE_PROFILING", Switch, "false";
    /// Has no effect, every replica watches from its start on; accepted because charts set it.
    DISABLE_CONTROLLER_WARMUP = "disable-controller-warmup", "DISABLE_CONTROLLER_WARMUP", Switch, "true";
    /// Run without asking whether another replica is the leader.
    DISABLE_LEADER_ELECTION = "disable-leader-election", "DISABLE_LEADER_ELECTION", Switch, "false";
    /// Publish no metrics of pods, nodes and pools and no events of conditions.
    DISABLE_CLUSTER_STATE_OBSERVABILITY =
        "disable-cluster-state-observability", "DISABLE_CLUSTER_STATE_OBSERVABILITY", Switch, "false";
    /// Name of the lease by which replicas agree on a leader.
    LEADER_ELECTION_NAME = "leader-election-name", "LEADER_ELECTION_NAME", Text, "karpenter-leader-election";
    /// Namespace of that lease; the pod's own when empty.
    LEADER_ELECTION_NAMESPACE = "leader-election-namespace", "LEADER_ELECTION_NAMESPACE", Text, "";
    /// Has no effect, there is no garbage collector; accepted because charts set it.
    MEMORY_LIMIT = "memory-limit", "MEMORY_LIMIT", Integer, "-1";
    /// Processor request of the container in thousandths; decides how much is done at the same time.
    CPU_REQUESTS = "cpu-requests", "CPU_REQUESTS", Integer, "1000";
    /// Least severe log line that is written: debug, info or error.
    LOG_LEVEL = "log-level", "LOG_LEVEL", Text, "info";
    /// Where log lines are written, separated by commas.
    LOG_OUTPUT_PATHS = "log-output-paths", "LOG_OUTPUT_PATHS", Text, "stdout";
    /// Where the logger writes its own errors, separated by commas.
    LOG_ERROR_OUTPUT_PATHS = "log-error-output-paths", "LOG_ERROR_OUTPUT_PATHS", Text, "stderr";
    /// How long pending pods are collected at most before nodes are computed for them.
    BATCH_MAX_DURATION = "batch-max-duration", "BATCH_MAX_DURATION", Duration, "10s";
    /// How long no pod must have come before nodes are computed.
    BATCH_IDLE_DURATION = "batch-idle-duration", "BATCH_IDLE_DURATION", Duration, "1s";
    /// Whether the preferences of pods are taken into account: Respect or Ignore.
    PREFERENCE_POLICY = "preference-policy", "PREFERENCE_POLICY", Text, "Respect";
    /// Whether `minValues` may be relaxed when nothing else is possible: Strict or BestEffort.
    MIN_VALUES_POLICY = "min-values-policy", "MIN_VALUES_POLICY", Text, "Strict";
    /// Provision nothing for pods with resource claims.
    IGNORE_DRA_REQUESTS = "ignore-dra-requests", "IGNORE_DRA_REQUESTS", Switch, "true";
    /// With the gate NodeRepair, repair nodes as older releases did.
    LEGACY_NODE_REPAIR = "legacy-node-repair", "LEGACY_NODE_REPAIR", Switch, "false";
    /// Features that are switched on or off, such as `NodeRepair=true`, separated by commas.
    FEATURE_GATES = "feature-gates", "FEATURE_GATES", Text, "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,NodeOverlay=false,StaticCapacity=false,CapacityBuffer=false,TerminateFirstDrift=false,TerminateFirstRepair=false,PodDeletionCostManagement=false";
    /// How the cluster's scheduler is configured, as YAML or JSON.
    SCHEDULER_CONFIG = "scheduler-config", "SCHEDULER_CONFIG", Text, "";
}

define! {
    /// Variables that have no flag, of the core and the providers.
    ENVIRONMENT: &str;
    /// The namespace that the process runs in.
    SYSTEM_NAMESPACE = "SYSTEM_NAMESPACE";
    /// The Azure subscription.
    AZURE_SUBSCRIPTION_ID = "AZURE_SUBSCRIPTION_ID";
    /// The Azure subscription, if the other is not set.
    ARM_SUBSCRIPTION_ID = "ARM_SUBSCRIPTION_ID";
    /// The Azure tenant.
    AZURE_TENANT_ID = "AZURE_TENANT_ID";
    /// The Azure tenant, if the other is not set.
    ARM_TENANT_ID = "ARM_TENANT_ID";
    /// The Azure region.
    LOCATION = "LOCATION";
    /// The resource group of the AKS cluster.
    ARM_RESOURCE_GROUP = "ARM_RESOURCE_GROUP";
    /// Which of the Azure clouds.
    ARM_CLOUD = "ARM_CLOUD";
    /// A file that describes an Azure cloud.
    AZURE_ENVIRONMENT_FILEPATH = "AZURE_ENVIRONMENT_FILEPATH";
}

/// Flags of the simulation.
pub mod kwok {
    use super::{Flag, FlagKind};

    flags! {
        /// All flags of the provider.
        ALL;
        /// File with the instance types, as JSON; built-in ones when empty.
        INSTANCE_TYPES_FILE_PATH = "instance-types-file-path", "INSTANCE_TYPES_FILE_PATH", Text, "";
    }
}

/// Flags of the AWS provider.
pub mod aws {
    use super::{Flag, FlagKind};

    flags! {
        /// All flags of the provider.
        ALL;
        /// Certificates by which nodes know the API server; the controller's own when empty.
        CLUSTER_CA_BUNDLE = "cluster-ca-bundle", "CLUSTER_CA_BUNDLE", Text, "";
        /// Name of the cluster.
        CLUSTER_NAME = "cluster-name", "CLUSTER_NAME", Text;
        /// Address of the API server for nodes; asked from EKS when empty.
        CLUSTER_ENDPOINT = "cluster-endpoint", "CLUSTER_ENDPOINT", Text, "";
        /// Use no service that has no endpoint in the network.
        ISOLATED_VPC = "isolated-vpc", "ISOLATED_VPC", Switch, "false";
        /// Ask EKS for the version of Kubernetes.
        EKS_CONTROL_PLANE = "eks-control-plane", "EKS_CONTROL_PLANE", Switch, "false";
        /// Share of the memory that the hypervisor takes.
        VM_MEMORY_OVERHEAD_PERCENT = "vm-memory-overhead-percent", "VM_MEMORY_OVERHEAD_PERCENT", Number, "0.075";
        /// Name of the queue with interruptions; without it they are not handled.
        INTERRUPTION_QUEUE = "interruption-queue", "INTERRUPTION_QUEUE", Text, "";
        /// Network interfaces that pods cannot use.
        RESERVED_ENIS = "reserved-enis", "RESERVED_ENIS", Integer, "0";
        /// Do not try launches out to validate an EC2NodeClass.
        DISABLE_DRY_RUN = "disable-dry-run", "DISABLE_DRY_RUN", Switch, "false";
        /// Avoid zones that traffic is shifted away from.
        ENABLE_ZONAL_SHIFT = "enable-zonal-shift", "ENABLE_ZONAL_SHIFT", Switch, "false";
        /// How often images are looked up.
        AMI_REFRESH_INTERVAL = "ami-refresh-interval", "AMI_REFRESH_INTERVAL", Duration, "1m";
        /// How often subnets are looked up.
        SUBNET_REFRESH_INTERVAL = "subnet-refresh-interval", "SUBNET_REFRESH_INTERVAL", Duration, "1m";
        /// Features of the provider that are switched on or off, separated by commas.
        FEATURE_GATES = "aws-feature-gates", "AWS_FEATURE_GATES", Text, "NodeClassCEL=false";
    }
}

/// Flags of the Azure provider.
pub mod azure {
    use super::{Flag, FlagKind};

    flags! {
        /// All flags of the provider.
        ALL;
        /// Name of the cluster.
        CLUSTER_NAME = "cluster-name", "CLUSTER_NAME", Text;
        /// Address of the API server for nodes.
        CLUSTER_ENDPOINT = "cluster-endpoint", "CLUSTER_ENDPOINT", Text;
        /// Token by which nodes join the cluster.
        KUBELET_BOOTSTRAP_TOKEN = "kubelet-bootstrap-token", "KUBELET_BOOTSTRAP_TOKEN", Text;
        /// Key by which administrators log in to nodes.
        SSH_PUBLIC_KEY = "ssh-public-key", "SSH_PUBLIC_KEY", Text;
        /// Subnet of the nodes whose AKSNodeClass names none.
        VNET_SUBNET_ID = "vnet-subnet-id", "VNET_SUBNET_ID", Text;
        /// Resource group of the nodes.
        NODE_RESOURCE_GROUP = "node-resource-group", "AZURE_NODE_RESOURCE_GROUP", Text;
        /// Share of the memory that the hypervisor takes.
        VM_MEMORY_OVERHEAD_PERCENT = "vm-memory-overhead-percent", "VM_MEMORY_OVERHEAD_PERCENT", Number, "0.075";
        /// Name of the administrator on nodes.
        LINUX_ADMIN_USERNAME = "linux-admin-username", "LINUX_ADMIN_USERNAME", Text, "azureuser";
        /// Network plugin of the cluster: azure or none.
        NETWORK_PLUGIN = "network-plugin", "NETWORK_PLUGIN", Text, "azure";
        /// Mode of the network plugin: overlay or empty.
        NETWORK_PLUGIN_MODE = "network-plugin-mode", "NETWORK_PLUGIN_MODE", Text, "overlay";
        /// Implementation of network policies.
        NETWORK_POLICY = "network-policy", "NETWORK_POLICY", Text, "";
        /// Data plane of the network: azure, cilium or empty.
        NETWORK_DATAPLANE = "network-dataplane", "NETWORK_DATAPLANE", Text, "cilium";
        /// Address of the cluster's DNS service; looked up when empty.
        DNS_SERVICE_IP = "dns-service-ip", "DNS_SERVICE_IP", Text, "";
        /// Identifier of the virtual network; looked up when empty.
        VNET_GUID = "vnet-guid", "VNET_GUID", Text, "";
        /// Identities that nodes have, separated by commas.
        NODE_IDENTITIES = "node-identities", "NODE_IDENTITIES", Text, "";
        /// Client of the kubelet's identity.
        KUBELET_IDENTITY_CLIENT_ID = "kubelet-identity-client-id", "KUBELET_IDENTITY_CLIENT_ID", Text, "";
        /// How machines are created: aksscriptless, bootstrappingclient, aksmachineapi or aksmachineapiheaderbatch.
        PROVISION_MODE = "provision-mode", "PROVISION_MODE", Text, "aksscriptless";
        /// Address of the bootstrapping service, for that mode.
        NODEBOOTSTRAPPING_SERVER_URL = "nodebootstrapping-server-url", "NODEBOOTSTRAPPING_SERVER_URL", Text, "";
        /// Take images from the shared gallery of AKS.
        USE_SIG = "use-sig", "USE_SIG", Switch, "false";
        /// Address of the service with tokens for that gallery.
        SIG_ACCESS_TOKEN_SERVER_URL = "sig-access-token-server-url", "SIG_ACCESS_TOKEN_SERVER_URL", Text, "";
        /// Subscription of that gallery.
        SIG_SUBSCRIPTION_ID = "sig-subscription-id", "SIG_SUBSCRIPTION_ID", Text, "";
        /// Key set that encrypts the disks of nodes.
        NODE_OSDISK_DISKENCRYPTIONSET_ID =
            "node-osdisk-diskencryptionset-id", "NODE_OSDISK_DISKENCRYPTIONSET_ID", Text, "";
        /// Keep AKS machines that another mode created.
        MANAGE_EXISTING_AKS_MACHINES =
            "manage-existing-aks-machines", "MANAGE_EXISTING_AKS_MACHINES", Switch, "false";
        /// Agent pool of the AKS machines.
        AKS_MACHINES_POOL_NAME = "aks-machines-pool-name", "AKS_MACHINES_POOL_NAME", Text, "";
        /// How long no machine must have come before a batch is sent.
        PROVIDER_BATCH_IDLE_DURATION =
            "provider-batch-idle-duration", "PROVIDER_BATCH_IDLE_DURATION", Duration, "1s";
        /// How long machines are collected at most before a batch is sent.
        PROVIDER_BATCH_MAX_DURATION =
            "provider-batch-max-duration", "PROVIDER_BATCH_MAX_DURATION", Duration, "5s";
        /// How many machines a batch has at most.
        PROVIDER_BATCH_MAX_SIZE = "provider-batch-max-size", "PROVIDER_BATCH_MAX_SIZE", Integer, "50";
        /// Tags of everything that is created, as `key=value`, separated by commas.
        ADDITIONAL_TAGS = "additional-tags", "ADDITIONAL_TAGS", Text, "";
        /// Log every call to Azure.
        ENABLE_AZURE_SDK_LOGGING = "enable-azure-sdk-logging", "ENABLE_AZURE_SDK_LOGGING", Switch, "true";
    }
}
