//! Labels on Nodes and NodeClaims. Which of them users may set is decided in [`crate::labels`].

use super::define;

/// The domain that is Karpenter's own.
pub const DOMAIN: &str = "karpenter.sh";

define! {
    /// All labels of the core.
    ALL: &str;
    /// The NodePool that owns the node.
    NODEPOOL = "karpenter.sh/nodepool";
    /// How the instance is paid for; see [`super::values::capacity_type`].
    CAPACITY_TYPE = "karpenter.sh/capacity-type";
    /// `true` once the Node has been matched with its NodeClaim.
    REGISTERED = "karpenter.sh/registered";
    /// `true` once pods can use the Node.
    INITIALIZED = "karpenter.sh/initialized";
    /// `true` on Nodes that set their taints themselves.
    DO_NOT_SYNC_TAINTS = "karpenter.sh/do-not-sync-taints";
    /// Takes a terminating Node out of the targets of load balancers.
    EXCLUDE_FROM_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers";
    /// The failure zone.
    ZONE = "topology.kubernetes.io/zone";
    /// The region.
    REGION = "topology.kubernetes.io/region";
    /// The instance type.
    INSTANCE_TYPE = "node.kubernetes.io/instance-type";
    /// The processor architecture.
    ARCH = "kubernetes.io/arch";
    /// The operating system.
    OS = "kubernetes.io/os";
    /// The build of Windows.
    WINDOWS_BUILD = "node.kubernetes.io/windows-build";
    /// The Node's host name.
    HOSTNAME = "kubernetes.io/hostname";
}

/// Labels that are read as another one.
pub mod aliases {
    use super::define;

    define! {
        /// All aliases of the core and the providers.
        ALL: &str;
        /// The zone, before topology labels existed.
        BETA_ZONE = "failure-domain.beta.kubernetes.io/zone";
        /// The region, before topology labels existed.
        BETA_REGION = "failure-domain.beta.kubernetes.io/region";
        /// The architecture, before it was stable.
        BETA_ARCH = "beta.kubernetes.io/arch";
        /// The operating system, before it was stable.
        BETA_OS = "beta.kubernetes.io/os";
        /// The instance type, before it was stable.
        BETA_INSTANCE_TYPE = "beta.kubernetes.io/instance-type";
        /// The zone, as the driver of EBS volumes writes it.
        EBS_ZONE = "topology.ebs.csi.aws.com/zone";
        /// The zone, as the driver of Azure disks writes it.
        AZURE_DISK_ZONE = "topology.disk.csi.azure.com/zone";
    }
}

/// Labels of simulated nodes.
pub mod kwok {
    use super::define;

    /// The provider's domain.
    pub const DOMAIN: &str = "karpenter.kwok.sh";

    define! {
        /// All labels of the provider.
        ALL: &str;
        /// The NodeClass.
        NODE_CLASS = "karpenter.kwok.sh/kwoknodeclass";
        /// The number of processors.
        INSTANCE_CPU = "karpenter.kwok.sh/instance-cpu";
        /// The amount of memory.
        INSTANCE_MEMORY = "karpenter.kwok.sh/instance-memory";
        /// The family, which the type's name begins with.
        INSTANCE_FAMILY = "karpenter.kwok.sh/instance-family";
        /// The size within the family.
        INSTANCE_SIZE = "karpenter.kwok.sh/instance-size";
        /// The price per hour, for tools that show nodes.
        INSTANCE_PRICE = "eks-node-viewer/instance-price";
        /// Which deployment of the simulator keeps the node.
        PARTITION = "kwok-partition";
        /// Marks the node as simulated.
        NODE = "kwok.x-k8s.io/node";
        /// Puts a node or pod into a stage of the simulator.
        STAGE = "kwok.x-k8s.io/stage";
    }
}

/// Labels of EC2 instances.
pub mod aws {
    use super::define;

    /// The provider's domain.
    pub const DOMAIN: &str = "karpenter.k8s.aws";

    define! {
        /// All labels of the provider.
        ALL: &str;
        /// The NodeClass.
        NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass";
        /// The zone's identifier, which means the same zone in every account.
        ZONE_ID = "topology.k8s.aws/zone-id";
        /// Whether the hardware is shared.
        INSTANCE_TENANCY = "karpenter.k8s.aws/instance-tenancy";
        /// The kind of capacity reservation.
        CAPACITY_RESERVATION_TYPE = "karpenter.k8s.aws/capacity-reservation-type";
        /// The capacity reservation.
        CAPACITY_RESERVATION_ID = "karpenter.k8s.aws/capacity-reservation-id";
        /// Whether the reservation's owner can take it back.
        CAPACITY_RESERVATION_INTERRUPTIBLE = "karpenter.k8s.aws/capacity-reservation-interruptible";
        /// Whether traffic between instances is encrypted.
        INSTANCE_ENCRYPTION_IN_TRANSIT_SUPPORTED = "karpenter.k8s.aws/instance-encryption-in-transit-supported";
        /// Whether the instance can run enclaves.
        NITRO_SANDBOX = "karpenter.k8s.aws/nitro-sandbox";
        /// What the type is made for, such as `c` for computing.
        INSTANCE_CATEGORY = "karpenter.k8s.aws/instance-category";
        /// The hypervisor.
        INSTANCE_HYPERVISOR = "karpenter.k8s.aws/instance-hypervisor";
        /// The family, such as `c5`.
        INSTANCE_FAMILY = "karpenter.k8s.aws/instance-family";
        /// The generation of the category.
        INSTANCE_GENERATION = "karpenter.k8s.aws/instance-generation";
        /// The size of the local disks in GB.
        INSTANCE_LOCAL_NVME = "karpenter.k8s.aws/instance-local-nvme";
        /// The size within the family.
        INSTANCE_SIZE = "karpenter.k8s.aws/instance-size";
        /// The number of virtual processors.
        INSTANCE_CPU = "karpenter.k8s.aws/instance-cpu";
        /// Who makes the processor.
        INSTANCE_CPU_MANUFACTURER = "karpenter.k8s.aws/instance-cpu-manufacturer";
        /// The processor's clock rate in MHz.
        INSTANCE_CPU_SUSTAINED_CLOCK_SPEED_MHZ = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz";
        /// The memory in MiB.
        INSTANCE_MEMORY = "karpenter.k8s.aws/instance-memory";
        /// The bandwidth to volumes in Mbit/s.
        INSTANCE_EBS_BANDWIDTH = "karpenter.k8s.aws/instance-ebs-bandwidth";
        /// The network's baseline bandwidth in Mbit/s.
        INSTANCE_NETWORK_BANDWIDTH = "karpenter.k8s.aws/instance-network-bandwidth";
        /// The kind of GPU.
        INSTANCE_GPU_NAME = "karpenter.k8s.aws/instance-gpu-name";
        /// Who makes the GPU.
        INSTANCE_GPU_MANUFACTURER = "karpenter.k8s.aws/instance-gpu-manufacturer";
        /// The number of GPUs.
        INSTANCE_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count";
        /// The memory of a GPU in MiB.
        INSTANCE_GPU_MEMORY = "karpenter.k8s.aws/instance-gpu-memory";
        /// The kind of accelerator.
        INSTANCE_ACCELERATOR_NAME = "karpenter.k8s.aws/instance-accelerator-name";
        /// Who makes the accelerator.
        INSTANCE_ACCELERATOR_MANUFACTURER = "karpenter.k8s.aws/instance-accelerator-manufacturer";
        /// The number of accelerators.
        INSTANCE_ACCELERATOR_COUNT = "karpenter.k8s.aws/instance-accelerator-count";
        /// Whether the type is a flexible one.
        INSTANCE_CAPABILITY_FLEX = "karpenter.k8s.aws/instance-capability-flex";
        /// The placement group.
        PLACEMENT_GROUP_ID = "karpenter.k8s.aws/placement-group-id";
        /// The partition of the placement group.
        PLACEMENT_GROUP_PARTITION = "karpenter.k8s.aws/placement-group-partition";
    }
}

/// Labels of Azure virtual machines.
pub mod azure {
    use super::define;

    /// The provider's domain.
    pub const DOMAIN: &str = "karpenter.azure.com";
    /// The domain of AKS.
    pub const AKS_DOMAIN: &str = "kubernetes.azure.com";

    define! {
        /// All labels of the provider and of AKS.
        ALL: &str;
        /// The NodeClass.
        NODE_CLASS = "karpenter.azure.com/aksnodeclass";
        /// The size's full name, such as `Standard_D4s_v5`.
        SKU_NAME = "karpenter.azure.com/sku-name";
        /// The family, such as `D`.
        SKU_FAMILY = "karpenter.azure.com/sku-family";
        /// The series, such as `Dpls_v6`.
        SKU_SERIES = "karpenter.azure.com/sku-series";
        /// The version, without `v`.
        SKU_VERSION = "karpenter.azure.com/sku-version";
        /// The number of virtual processors.
        SKU_CPU = "karpenter.azure.com/sku-cpu";
        /// The memory in MiB.
        SKU_MEMORY = "karpenter.azure.com/sku-memory";
        /// Whether the network is accelerated.
        SKU_NETWORKING_ACCELERATED = "karpenter.azure.com/sku-networking-accelerated";
        /// Whether premium disks can be attached.
        SKU_STORAGE_PREMIUM_CAPABLE = "karpenter.azure.com/sku-storage-premium-capable";
        /// Whether ultra disks can be attached.
        SKU_STORAGE_ULTRA_SSD = "karpenter.azure.com/sku-storage-ultra-ssd";
        /// The largest ephemeral disk of the operating system in GB.
        SKU_STORAGE_EPHEMERALOS_MAXSIZE = "karpenter.azure.com/sku-storage-ephemeralos-maxsize";
        /// The kind of GPU.
        SKU_GPU_NAME = "karpenter.azure.com/sku-gpu-name";
        /// Who makes the GPU.
        SKU_GPU_MANUFACTURER = "karpenter.azure.com/sku-gpu-manufacturer";
        /// The number of GPUs.
        SKU_GPU_COUNT = "karpenter.azure.com/sku-gpu-count";
        /// Whether the machine is bound to a zone.
        PLACEMENT_SCOPE = "karpenter.azure.com/placement-scope";
        /// The generation of Hyper-V, which selects images; users cannot set it.
        SKU_HYPERV_GENERATION = "karpenter.azure.com/sku-hyperv-generation";
        /// Whether the node is for system or user pods.
        AKS_MODE = "kubernetes.azure.com/mode";
        /// How the machine is paid for, in the words of scale sets.
        AKS_SCALE_SET_PRIORITY = "kubernetes.azure.com/scalesetpriority";
        /// How the machine is paid for.
        AKS_PRIORITY = "kubernetes.azure.com/priority";
        /// Whether the cryptography is certified.
        AKS_FIPS_ENABLED = "kubernetes.azure.com/fips_enabled";
        /// The operating system's distribution.
        AKS_OS_SKU = "kubernetes.azure.com/os-sku";
        /// The cluster, named by its node resource group.
        AKS_CLUSTER = "kubernetes.azure.com/cluster";
        /// The same as [`SKU_CPU`].
        AKS_SKU_CPU = "kubernetes.azure.com/sku-cpu";
        /// The same as [`SKU_MEMORY`].
        AKS_SKU_MEMORY = "kubernetes.azure.com/sku-memory";
        /// The implementation of the network's data plane.
        AKS_EBPF_DATAPLANE = "kubernetes.azure.com/ebpf-dataplane";
        /// How the data plane routes on the host.
        AKS_EBPF_HOST_ROUTING = "kubernetes.azure.com/ebpf-host-routing";
        /// The implementation of network policies.
        AKS_NETWORK_POLICY = "kubernetes.azure.com/network-policy";
        /// Whether AKS hosts the machine.
        AKS_HOSTED_VM = "kubernetes.azure.com/hostedvm";
        /// Always `agent`.
        AKS_ROLE = "kubernetes.azure.com/role";
        /// The client of the kubelet's identity.
        AKS_KUBELET_IDENTITY_CLIENT_ID = "kubernetes.azure.com/kubelet-identity-client-id";
        /// The image family that was asked for.
        AKS_OS_SKU_REQUESTED = "kubernetes.azure.com/os-sku-requested";
        /// The image family that was taken.
        AKS_OS_SKU_EFFECTIVE = "kubernetes.azure.com/os-sku-effective";
        /// Whether the node has its own DNS cache.
        AKS_LOCALDNS_STATE = "kubernetes.azure.com/localdns-state";
        /// Whether images are streamed.
        AKS_ARTIFACT_STREAMING_ENABLED = "kubernetes.azure.com/artifactstreaming-enabled";
        /// The subnet of the node.
        AKS_NETWORK_SUBNET = "kubernetes.azure.com/network-subnet";
        /// The virtual network of the node.
        AKS_NODE_NETWORK_VNET_GUID = "kubernetes.azure.com/nodenetwork-vnetguid";
        /// Whether pods have an overlay network.
        AKS_AZURE_CNI_OVERLAY = "kubernetes.azure.com/azure-cni-overlay";
        /// The kind of pod network.
        AKS_POD_NETWORK_TYPE = "kubernetes.azure.com/podnetwork-type";
        /// The subnet of pods, on nodes where they have one of their own.
        AKS_PODNETWORK_SUBNET = "kubernetes.azure.com/podnetwork-subnet";
        /// Whether the network plugin keeps no state.
        AKS_NETWORK_STATELESS_CNI = "kubernetes.azure.com/network-stateless-cni";
        /// An agent pool, as AKS named it before it had a domain.
        LEGACY_AGENT_POOL = "agentpool";
        /// The kind of disk, as AKS named it before it had a domain.
        LEGACY_STORAGE_PROFILE = "storageprofile";
        /// The tier of disk, as AKS named it before it had a domain.
        LEGACY_STORAGE_TIER = "storagetier";
        /// The accelerator, as AKS named it before it had a domain.
        LEGACY_ACCELERATOR = "accelerator";
    }
}
