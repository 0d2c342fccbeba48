//! Tags on what the clouds keep for us.

/// Tags of AWS resources.
pub mod aws {
    use crate::names::define;

    define! {
        /// All tags.
        ALL: &str;
        /// The name, as the console shows it.
        NAME = "Name";
        /// The cluster that owns the resource is appended; the value is `owned`.
        CLUSTER_PREFIX = "kubernetes.io/cluster/";
        /// The cluster's name.
        CLUSTER_NAME = "eks:eks-cluster-name";
        /// The NodePool.
        NODEPOOL = "karpenter.sh/nodepool";
        /// The NodeClaim.
        NODE_CLAIM = "karpenter.sh/nodeclaim";
        /// The NodeClass.
        NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass";
        /// The region; on instance profiles only.
        REGION = "topology.kubernetes.io/region";
    }
}

/// Tags of Azure resources.
pub mod azure {
    use crate::names::define;

    define! {
        /// All tags.
        ALL: &str;
        /// The cluster's name.
        CLUSTER = "karpenter.azure.com_cluster";
        /// What the machine is billed as: `linux`.
        BILLING = "compute.aks.billing";
        /// The NodePool.
        NODEPOOL = "karpenter.sh_nodepool";
        /// The NodeClaim; on AKS machines only.
        AKS_MACHINE_NODE_CLAIM = "karpenter.azure.com_aksmachine_nodeclaim";
    }
}
