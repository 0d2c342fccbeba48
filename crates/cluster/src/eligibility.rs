//! What pods are, to those who place, evict and count them. All questions are about one pod at one time.
//!
//! What PodDisruptionBudgets say is in [`crate::pod_disruption_budgets`].

use api::names::annotations::{DISRUPTION_COST, DO_NOT_DISRUPT, POD_DELETION_COST};
use api::names::taints;
use jiff::{SignedDuration, Timestamp};

use crate::do_not_disrupt::DoNotDisrupt;
use crate::objects::pod::{Phase, Scheduling, Toleration, TolerationOperator};
use crate::objects::{Effect, Pod};
use crate::reason::NotPending;

/// A pod that should have been gone for this long does not stop by itself.
const STUCK: SignedDuration = SignedDuration::from_mins(1);

/// Who places pods that do not say otherwise.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// What pods say about their own disruption.
const OF_DISRUPTION: [&str; 3] = [DO_NOT_DISRUPT, DISRUPTION_COST, POD_DELETION_COST];

/// Whether a pod without a node waits for one. `unseen` says whether pods count that no scheduler has looked at.
pub fn pending(pod: &Pod, unseen: bool) -> Result<(), NotPending> {
    match pod.status.conditions.scheduling {
        Some(Scheduling::Unschedulable) => {}
        None if unseen => unseen_pending(pod)?,
        _ => return Err(NotPending::NotUnschedulable),
    }
    if !pod.status.nominated_node_name.is_empty() {
        return Err(NotPending::Nominated(pod.status.nominated_node_name.clone()));
    }
    if is_daemon(pod) {
        return Err(NotPending::Daemon);
    }
    if is_static(pod) {
        return Err(NotPending::Static);
    }
    Ok(())
}

/// Whether the default scheduler would find no node for a pod that it has not looked at, if there were none.
///
/// What others do with their pods nobody knows until they say so.
pub(crate) fn unseen_pending(pod: &Pod) -> Result<(), NotPending> {
    let scheduler = pod.spec.scheduler_name.as_deref().unwrap_or_default();
    if !is_active(pod) {
        Err(NotPending::NotUnschedulable)
    } else if !matches!(scheduler, "" | DEFAULT_SCHEDULER) {
        Err(NotPending::OtherScheduler(scheduler.into()))
    } else if let Some(gate) = pod.spec.scheduling_gates.first() {
        Err(NotPending::Gated(gate.name.clone()))
    } else {
        Ok(())
    }
}

/// Whether a pod waits for a node, and no scheduler finds one.
pub fn is_provisionable(pod: &Pod) -> bool {
    pod.spec.node_name.is_empty() && pending(pod, false).is_ok()
}

/// Whether a pod is done.
pub fn is_terminal(pod: &Pod) -> bool {
    matches!(pod.status.phase, Phase::Succeeded | Phase::Failed)
}

/// Whether a pod has been told to stop.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.is_deleting()
}

/// Whether a pod runs and is to go on.
pub fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && !is_terminating(pod)
}

/// Whether a pod should have stopped a while ago, grace included.
pub fn is_stuck_terminating(pod: &Pod, now: Timestamp) -> bool {
    let end = pod.metadata.deletion_timestamp.as_ref();
    end.is_some_and(|end| now.duration_since(end.0) > STUCK)
}

/// Whether a pod belongs to a DaemonSet.
pub fn is_daemon(pod: &Pod) -> bool {
    pod.noted.map_or_else(|| is_owned_by_daemon_set(pod), |noted| noted.is_daemon)
}

/// As [`is_daemon`], whatever was noted before.
pub(crate) fn is_owned_by_daemon_set(pod: &Pod) -> bool {
    pod.metadata.is_owned_by("apps/v1", "DaemonSet")
}

/// Whether a pod says anything about its own disruption, which few do.
pub(crate) fn speaks_of_disruption(pod: &Pod) -> bool {
    let look = || has_annotation_of_disruption(pod);
    pod.noted.map_or_else(look, |noted| noted.speaks_of_disruption)
}

/// As [`speaks_of_disruption`], whatever was noted before.
pub(crate) fn has_annotation_of_disruption(pod: &Pod) -> bool {
    OF_DISRUPTION.iter().any(|annotation| pod.metadata.annotations.get(annotation).is_some())
}

/// Whether a pod is a node's own, which the API cannot move.
pub fn is_static(pod: &Pod) -> bool {
    pod.noted.map_or_else(|| is_owned_by_node(pod), |noted| noted.is_static)
}

/// As [`is_static`], whatever was noted before.
pub(crate) fn is_owned_by_node(pod: &Pod) -> bool {
    pod.metadata.is_owned_by("v1", "Node")
}

/// Whether a pod belongs to a StatefulSet, which creates it again only once it is gone.
pub fn is_stateful(pod: &Pod) -> bool {
    pod.metadata.is_owned_by("apps/v1", "StatefulSet")
}

/// Whether a pod asks to be left alone. An annotation that cannot be understood does not count.
pub fn is_protected(pod: &Pod, now: Timestamp) -> bool {
    DoNotDisrupt::of(pod, now).is_active()
}

/// Whether a pod stays on nodes that are about to go, because it tolerates their taint.
pub fn tolerates_disruption(pod: &Pod) -> bool {
    tolerates(&pod.spec.tolerations, taints::DISRUPTED)
}

/// Whether a pod will need another place when its node goes.
pub fn is_reschedulable(pod: &Pod) -> bool {
    let comes_back = is_active(pod) || is_stateful(pod) && is_terminating(pod);
    comes_back && !is_daemon(pod) && !is_static(pod)
}

/// Whether a pod does not object to the disruption of its node.
pub fn is_disruptable(pod: &Pod, now: Timestamp) -> bool {
    !is_active(pod) || !is_protected(pod, now)
}

/// Whether a pod may be evicted at all; budgets may still forbid it.
pub fn is_evictable(pod: &Pod, now: Timestamp) -> bool {
    is_active(pod) && !tolerates_disruption(pod) && !is_static(pod) && !is_protected(pod, now)
}

/// Whether a drain has to do with a pod. Protected ones are among them: they hold it up.
pub fn is_drainable(pod: &Pod, now: Timestamp) -> bool {
    !tolerates_disruption(pod) && !is_stuck_terminating(pod, now) && !is_static(pod)
}

/// Whether a drain waits for a pod.
pub fn is_waiting_eviction(pod: &Pod, now: Timestamp) -> bool {
    !is_terminal(pod) && is_drainable(pod, now)
}

/// Whether a pod that has been told to stop would take longer than its node may.
pub fn outlasts(pod: &Pod, deadline: Timestamp) -> bool {
    pod.metadata.deletion_timestamp.as_ref().is_some_and(|end| end.0 > deadline)
}

/// Whether a taint is tolerated that has no value.
fn tolerates(tolerations: &[Toleration], taint: taints::NodeTaint) -> bool {
    let effect = if taint.effect == taints::NO_EXECUTE { Effect::NoExecute } else { Effect::NoSchedule };
    tolerations.iter().any(|toleration| {
        (toleration.effect == Effect::Any || toleration.effect == effect)
            && (toleration.key.is_empty() || &*toleration.key == taint.key)
            && match toleration.operator {
                TolerationOperator::Exists => true,
                TolerationOperator::Equal => &*toleration.value == taint.value,
                TolerationOperator::Gt | TolerationOperator::Lt => false,
            }
    })
}

#[cfg(test)]
mod tests;
