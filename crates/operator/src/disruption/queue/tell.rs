//! What users and metrics are told of commands.

use api::names::events::DISRUPTION_TERMINATING;
use api::names::labels;
use api::names::metrics::{
    DISRUPTION_DECISIONS, DISRUPTION_DECISIONS_BY_NODEPOOL, DISRUPTION_QUEUE_FAILURES,
    DISRUPTION_TERMINATE_FIRST, NODECLAIMS_DISRUPTED, PODS_DISRUPTION_INITIATED,
};
use api::names::values;
use api::nodepool::{ConsolidationPolicy, DisruptionReason};
use runtime::events::About;

use crate::Context;
use crate::disruption::candidate::Candidate;
use crate::disruption::command::{Command, Kind};
use crate::disruption::{Reason, repair};
use crate::node_claim::termination_mode;

/// Logs that a command begins.
pub(super) fn begin(command: &Command) {
    repair::log(command);
    tracing::info!(
        command = %command.text(),
        decision = command.decision(),
        "disrupted-node-count" = command.candidates.len(),
        "replacement-node-count" = command.replacements.len(),
        "pod-count" = command.pod_count(),
        "disrupted-nodes" = %command.shown_nodes(),
        "replacement-nodes" = %command.shown_replacements(),
        "disrupting node(s)"
    );
}

/// Counts a command that is under way.
pub(super) fn decided(context: &Context, command: &Command) {
    let (metrics, reason) = (&context.metrics, command.reason.lower());
    let labels = [command.decision(), reason, command.consolidation_type];
    metrics.add(&DISRUPTION_DECISIONS, &labels, 1.0);
    for pool in command.pools() {
        let labels = [pool, command.decision(), reason, command.consolidation_type];
        metrics.add(&DISRUPTION_DECISIONS_BY_NODEPOOL, &labels, 1.0);
        if let Kind::TerminateFirst(why) = command.kind {
            metrics.add(&DISRUPTION_TERMINATE_FIRST, &[pool, reason, why], 1.0);
        }
    }
    if command.kind == Kind::Reboot {
        command.candidates.iter().for_each(|candidate| disrupted(context, command, candidate));
    }
}

/// Counts replacements that never came.
pub(super) fn failed(context: &Context, command: &Command, missing: usize) {
    let labels = [command.decision(), command.reason.lower(), command.consolidation_type];
    #[expect(clippy::cast_precision_loss, reason = "nobody launches that many nodes at once")]
    context.metrics.add(&DISRUPTION_QUEUE_FAILURES, &labels, missing as f64);
}

/// Tells users and metrics that a node goes.
pub(super) fn terminating(context: &Context, command: &Command, candidate: &Candidate) {
    let reason = command.reason.text();
    for (about, kind) in
        [(About::object(&*candidate.node), "Node"), (About::object(&*candidate.claim), "NodeClaim")]
    {
        let uid = about.uid.clone();
        let message = format!("Disrupting {kind}: {reason}");
        context.events.publish(&DISRUPTION_TERMINATING, about, message, &[&uid, reason]);
    }
    disrupted(context, command, candidate);
}

fn disrupted(context: &Context, command: &Command, candidate: &Candidate) {
    let claim = &candidate.claim;
    let capacity_type = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::CAPACITY_TYPE));
    let labels = [
        command.reason.lower(),
        candidate.pool_name(),
        capacity_type.map_or("", String::as_str),
        consolidation_policy(command.reason, candidate),
        termination_mode(claim),
    ];
    context.metrics.add(&NODECLAIMS_DISRUPTED, &labels, 1.0);
    let mode = match candidate.drain_bound {
        Some(bound) if bound.as_nanos() <= 0 => values::FORCEFUL,
        Some(_) => values::EVENTUAL,
        None => termination_mode(claim),
    };
    repair::count(context, candidate, mode);
    #[expect(clippy::cast_precision_loss, reason = "nobody has that many pods")]
    context.metrics.add(&PODS_DISRUPTION_INITIATED, &labels, candidate.pods.len() as f64);
}

/// The policy of the pool, where it is why.
fn consolidation_policy(reason: Reason, candidate: &Candidate) -> &'static str {
    match (reason.0, candidate.pool.spec.disruption.consolidation_policy) {
        (DisruptionReason::Drifted | DisruptionReason::Unhealthy, _) => "",
        (_, ConsolidationPolicy::WhenEmpty) => "when_empty",
        (_, ConsolidationPolicy::WhenEmptyOrUnderutilized) => "when_empty_or_underutilized",
        (_, ConsolidationPolicy::Balanced) => "balanced",
    }
}
