//! Names of resources that pods request and nodes provide.

use super::define;

define! {
    /// Resources of the core.
    ALL: &str;
    /// Processors.
    CPU = "cpu";
    /// Memory.
    MEMORY = "memory";
    /// Local disk.
    EPHEMERAL_STORAGE = "ephemeral-storage";
    /// How many pods fit.
    PODS = "pods";
    /// How many nodes there are; only in limits and totals.
    NODES = "nodes";
}

define! {
    /// Resources that providers know.
    EXTENDED: &str;
    /// GPUs by NVIDIA.
    NVIDIA_GPU = "nvidia.com/gpu";
    /// GPUs by AMD.
    AMD_GPU = "amd.com/gpu";
    /// Neuron devices.
    AWS_NEURON = "aws.amazon.com/neuron";
    /// Cores of Neuron devices.
    AWS_NEURON_CORE = "aws.amazon.com/neuroncore";
    /// Gaudi accelerators.
    HABANA_GAUDI = "habana.ai/gaudi";
    /// Network interfaces for single pods.
    AWS_POD_ENI = "vpc.amazonaws.com/pod-eni";
    /// Elastic fabric adapters.
    AWS_EFA = "vpc.amazonaws.com/efa";
    /// Addresses for pods on Windows.
    AWS_PRIVATE_IPV4_ADDRESS = "vpc.amazonaws.com/PrivateIPv4Address";
    /// Requested by pods that run enclaves.
    AWS_NITRO_SANDBOX = "eks.amazonaws.com/nitro-sandbox";
}
