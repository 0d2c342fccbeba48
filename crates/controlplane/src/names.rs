//! Labels, annotations, taints and finalizers that the controllers read and write.

/// Nodes that the kubelet simulator takes when it is told to take annotated ones.
pub const FAKE_NODE: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// Nodes whose conditions others set; the simulator leaves them as they are.
pub const STAGE: (&str, &str) = ("kwok.x-k8s.io/stage", "unhealthy");

/// What users ask of the simulated kubelet through annotations on pods and nodes.
pub mod simulate {
    /// On a node: `never-ready`, `not-ready` or `silent`. On a pod: `crash`, `exit` or `image-pull`.
    pub const FAIL: &str = "simulate.karpenter.sh/fail";
    /// On a node: conditions that its kubelet reports besides its own, or instead of them, as
    /// `KWOKUnhealthy=True,MemoryPressure=True`. A reboot cures it.
    pub const CONDITIONS: &str = "simulate.karpenter.sh/conditions";
    /// On a pod: how long after its start it ends with success, as `90s` or `5m`.
    pub const COMPLETE_AFTER: &str = "simulate.karpenter.sh/complete-after";
    /// On a pod: how long after its start it becomes ready.
    pub const READY_AFTER: &str = "simulate.karpenter.sh/ready-after";
    /// On a pod: how long it takes to stop; its grace period is the upper bound.
    pub const STOP_AFTER: &str = "simulate.karpenter.sh/stop-after";
}

pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";
pub(crate) const ARCH: &str = "kubernetes.io/arch";
pub(crate) const OS: &str = "kubernetes.io/os";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const REGION: &str = "topology.kubernetes.io/region";

pub(crate) const POD_TEMPLATE_HASH: &str = "pod-template-hash";
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(crate) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(crate) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(crate) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
pub(crate) const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(crate) const CONTROLLER_REVISION_HASH: &str = "controller-revision-hash";
pub(crate) const POD_TEMPLATE_GENERATION: &str = "pod-template-generation";
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
pub(crate) const STATEFULSET_POD: &str = "statefulset.kubernetes.io/pod-name";
pub(crate) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

pub(crate) const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
pub(crate) const JOB_INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(crate) const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
pub(crate) const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
pub(crate) const DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
pub(crate) const PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
pub(crate) const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";

pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
pub(crate) const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
pub(crate) const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
pub(crate) const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
pub(crate) const PV_PROTECTION: &str = "kubernetes.io/pv-protection";

pub(crate) const LEASE_NAMESPACE: &str = "kube-node-lease";
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
