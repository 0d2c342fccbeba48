//! When nodes on EC2 count as broken.

use std::time::Duration;

use api::names::conditions::{READY, node};
use cloud::{RepairAction, RepairPolicy};

/// How long most conditions may hold.
const PATIENCE: Duration = Duration::from_mins(30);
/// How long devices that pods wait for may be broken.
const DEVICE_PATIENCE: Duration = Duration::from_mins(10);
/// A node without a kubelet cannot drain, so that waiting for it is no use.
const AT_ONCE: Option<Duration> = Some(Duration::ZERO);
const ANY_REASON: &str = ".*";

/// When nodes on EC2 count as broken. They are replaced: reboots would need a permission that nobody's policies
/// have.
pub fn policies() -> Vec<RepairPolicy> {
    let policy = |condition, status, toleration| RepairPolicy {
        condition,
        status,
        reason_pattern: ANY_REASON,
        toleration,
        termination_grace_period: None,
        priority: 10,
        action: RepairAction::Replace,
    };
    let unreachable = |status, reason_pattern| RepairPolicy {
        reason_pattern,
        termination_grace_period: AT_ONCE,
        priority: 50,
        ..policy(READY, status, PATIENCE)
    };
    vec![
        unreachable("False", ""),
        unreachable("Unknown", ANY_REASON),
        policy(node::ACCELERATED_HARDWARE_READY, "False", DEVICE_PATIENCE),
        policy(node::STORAGE_READY, "False", PATIENCE),
        policy(node::NETWORKING_READY, "False", PATIENCE),
        policy(node::KERNEL_READY, "False", PATIENCE),
        policy(node::CONTAINER_RUNTIME_READY, "False", PATIENCE),
    ]
}

#[cfg(test)]
mod tests {
    use cloud::repair::Policies;

    use super::*;

    #[test]
    fn the_policies_can_be_used() {
        let policies = Policies::compile(policies()).unwrap();
        for (condition, status) in [
            ("Ready", "False"),
            ("Ready", "Unknown"),
            ("AcceleratedHardwareReady", "False"),
            ("StorageReady", "False"),
            ("NetworkingReady", "False"),
            ("KernelReady", "False"),
            ("ContainerRuntimeReady", "False"),
        ] {
            assert!(policies.concerns(condition, status), "{condition}={status}");
        }
        assert!(!policies.concerns("StorageReady", "Unknown"));
    }
}
