//! Taints that Karpenter puts on nodes, and those that it knows to be temporary.

use std::fmt;

use super::define;

/// A taint that is the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeTaint {
    /// The taint key.
    pub key: &'static str,
    /// The taint value, mostly empty.
    pub value: &'static str,
    /// The effect on pods that do not tolerate it.
    pub effect: &'static str,
}

impl NodeTaint {
    const fn new(key: &'static str, effect: &'static str) -> Self {
        Self { key, value: "", effect }
    }
}

impl fmt::Display for NodeTaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        if value.is_empty() { write!(f, "{key}:{effect}") } else { write!(f, "{key}={value}:{effect}") }
    }
}

/// Keeps new pods away.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// Keeps new pods away if there is another place for them.
pub const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
/// Keeps new pods away and evicts those that are there.
pub const NO_EXECUTE: &str = "NoExecute";

define! {
    /// All taints.
    ALL: NodeTaint;
    /// The node is about to go away.
    DISRUPTED = NodeTaint::new("karpenter.sh/disrupted", NO_SCHEDULE);
    /// The node has not been matched with its NodeClaim.
    UNREGISTERED = NodeTaint::new("karpenter.sh/unregistered", NO_EXECUTE);
    /// The node is being rebooted and has not come back.
    REBOOTING = NodeTaint::new("karpenter.sh/rebooting", NO_SCHEDULE);
    /// The kubelet is not ready.
    NOT_READY = NodeTaint::new("node.kubernetes.io/not-ready", NO_SCHEDULE);
    /// The kubelet has been not ready, and pods are evicted.
    NOT_READY_NO_EXECUTE = NodeTaint::new("node.kubernetes.io/not-ready", NO_EXECUTE);
    /// The kubelet has not been heard of.
    UNREACHABLE = NodeTaint::new("node.kubernetes.io/unreachable", NO_SCHEDULE);
    /// The cloud controller has not completed the Node.
    CLOUD_UNINITIALIZED = NodeTaint {
        key: "node.cloudprovider.kubernetes.io/uninitialized",
        value: "true",
        effect: NO_SCHEDULE,
    };
}

/// Taints that vanish by themselves while a node starts. They are matched by key and effect.
pub const KNOWN_EPHEMERAL: &[NodeTaint] =
    &[NOT_READY, NOT_READY_NO_EXECUTE, UNREACHABLE, CLOUD_UNINITIALIZED, UNREGISTERED];

/// Any taint whose key begins with this vanishes by itself, too.
pub const KNOWN_EPHEMERAL_PREFIX: &str = "readiness.k8s.io/";
