//! What pods have against the disruption of their node. Entries: [`objection`] and [`hindered`].
//!
//! It is asked twice: before a node is chosen, and right before it is deleted, because minutes may pass while its
//! replacement comes up. From then on the node can only be drained, and one that cannot be is paid for without being
//! of any use.

use std::sync::Arc;

use api::names::annotations::DO_NOT_DISRUPT;
use api::nodepool::DisruptionReason;
use cluster::eligibility::{is_disruptable, is_reschedulable};
use cluster::objects::Pod;
use cluster::pod_disruption_budgets::{Budgets, Mode};
use cluster::state::State;
use jiff::Timestamp;

use super::Class;
use super::candidate::Candidate;
use super::command::Command;

/// What pods have against the disruption of their node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Objection {
    /// What it is.
    pub(super) why: String,
    /// Whether it stays until somebody changes something, so that it is no use to wait.
    pub(super) lasts: bool,
}

/// What pods of one node have against its disruption, whatever the node itself says. The first of them counts.
/// At least those that say something about it are in `speaking`.
pub(super) fn objection<'p>(
    pods: &(impl Iterator<Item = &'p Arc<Pod>> + Clone),
    speaking: impl IntoIterator<Item = &'p Arc<Pod>>,
    budgets: &Budgets<'_>,
    now: Timestamp,
) -> Option<Objection> {
    if let Some(pod) = speaking.into_iter().find(|pod| !is_disruptable(pod, now)) {
        let name = format!("{}/{}", pod.metadata.namespace(), pod.metadata.name);
        let why = format!("pod has {DO_NOT_DISRUPT:?} annotation (Pod={name})");
        return Some(Objection { why, lasts: true });
    }
    if budgets.is_empty() {
        return None;
    }
    let all = || pods.clone().map(Arc::as_ref);
    if let Some((pod, blocked)) = budgets.first_blocked(all(), now) {
        let lasts = budgets.blocked(pod, Mode::FullyBlocking, now).is_some();
        return Some(Objection { why: blocked.to_string(), lasts });
    }
    budgets.first_outnumbered(all(), now).map(|blocked| Objection { why: blocked.to_string(), lasts: true })
}

/// Whether what pods say counts for a node with so patient an end.
pub(super) fn counts(class: Class, is_bounded: bool) -> bool {
    match class {
        Class::Graceful => true,
        Class::Eventual => !is_bounded,
        Class::Repair => false,
    }
}

/// Whether a node was chosen because it was empty, and is not any more.
fn is_taken<'p>(
    command: &Command,
    candidate: &Candidate,
    mut pods: impl Iterator<Item = &'p Arc<Pod>>,
) -> bool {
    let is_known = |pod: &Pod| candidate.pods.iter().any(|known| known.metadata.uid == pod.metadata.uid);
    command.reason.0 == DisruptionReason::Empty && pods.any(|pod| is_reschedulable(pod) && !is_known(pod))
}

/// What keeps a node of a command from being deleted by now.
pub(super) fn hindered(
    state: &State,
    budgets: &Budgets<'_>,
    command: &Command,
    candidate: &Candidate,
    now: Timestamp,
) -> Option<Objection> {
    let node = state.state_node(&candidate.provider_id).unwrap_or_default();
    if node.is_protected() && command.class != Class::Repair {
        let why = format!("disruption is blocked through the {DO_NOT_DISRUPT:?} annotation");
        return Some(Objection { why, lasts: true });
    }
    let pods = state.pods_on(candidate.name());
    if is_taken(command, candidate, pods.clone()) {
        return Some(Objection { why: "node is no longer empty".to_owned(), lasts: true });
    }
    let is_bounded = candidate.claim.spec.termination_grace_period.is_some();
    counts(command.class, is_bounded).then(|| objection(&pods, pods.clone(), budgets, now)).flatten()
}
