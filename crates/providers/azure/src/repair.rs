//! When nodes on Azure count as broken.

use std::time::Duration;

use api::names::conditions::READY;
use api::names::conditions::node::{AKS_NODE_HEALTHY, PREEMPTION_SCHEDULED};
use cloud::{RepairAction, RepairPolicy};

/// How long a node may not be ready.
const PATIENCE: Duration = Duration::from_mins(10);
/// A node whose kubelet is gone, or that AKS gave up, cannot drain: waiting for it is no use.
const AT_ONCE: Option<Duration> = Some(Duration::ZERO);
/// A spot machine is taken away half a minute after the warning.
const NOTICE: Option<Duration> = Some(Duration::from_secs(30));
const ANY_REASON: &str = ".*";

/// When nodes on Azure count as broken. They are replaced.
pub fn policies() -> Vec<RepairPolicy> {
    let policy = |condition, status, toleration, termination_grace_period, priority| RepairPolicy {
        condition,
        status,
        reason_pattern: ANY_REASON,
        toleration,
        termination_grace_period,
        priority,
        action: RepairAction::Replace,
    };
    vec![
        // The one that counts when no pattern fits, which all others' do.
        RepairPolicy { reason_pattern: "", ..policy(READY, "False", PATIENCE, AT_ONCE, 50) },
        policy(READY, "Unknown", PATIENCE, AT_ONCE, 50),
        policy(AKS_NODE_HEALTHY, "False", Duration::ZERO, AT_ONCE, 60),
        policy(PREEMPTION_SCHEDULED, "True", Duration::ZERO, NOTICE, 90),
    ]
}

#[cfg(test)]
mod tests {
    use cloud::repair::Policies;

    use super::*;

    // azure.md 17, v1.15-delta.md 5.1
    #[test]
    fn the_policies_can_be_used_and_know_the_conditions_of_aks() {
        let all = policies();
        let tolerations: Vec<(&str, &str, u64)> =
            all.iter().map(|each| (each.condition, each.status, each.toleration.as_secs())).collect();
        assert_eq!(
            tolerations,
            [
                ("Ready", "False", 600),
                ("Ready", "Unknown", 600),
                ("kubernetes.azure.com/NodeHealthy", "False", 0),
                ("PreemptionScheduled", "True", 0),
            ]
        );
        let policies = Policies::compile(all).unwrap();
        assert!(policies.concerns("PreemptionScheduled", "True"));
        assert!(!policies.concerns("PreemptionScheduled", "False"));
    }
}
