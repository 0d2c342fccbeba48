//! Pods, as far as they are kept, and questions about them that several controllers ask.

mod kept;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCondition;

use crate::time::after;
pub use kept::Pod;
pub(crate) use kept::{Container, ContainerStatus, PodSpec, PodStatus};

/// Whether a pod still runs or is going to.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Whether a pod has ended, well or not.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether a pod is on its way out.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    !is_finished(pod) && pod.metadata.deletion_timestamp.is_some()
}

/// The phase of a pod; empty if nobody has said.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// A condition of a pod.
pub(crate) fn condition<'a>(pod: &'a Pod, name: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == name)
}

/// Whether a pod is ready to serve.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when a pod is ready.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether a pod has been ready for long enough; if not yet, when it will have been.
pub(crate) fn availability(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Availability {
    let Some(since) = ready_since(pod) else {
        return if is_ready(pod) { Availability::Available } else { Availability::NotReady };
    };
    let wait = Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or(0));
    let at = after(since, wait);
    if wait.is_zero() || at <= now { Availability::Available } else { Availability::At(at) }
}

/// Whether a pod counts as available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    NotReady,
    /// It is ready, and will be available then if it stays so.
    At(Timestamp),
    Available,
}

/// How often the containers of a pod were started again.
pub(crate) fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|status| status.restart_count).max().unwrap_or(0)
}
