//! Decides for good that a node is booted again. From then on `nodeclaim.reboot` carries it out.

use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::names::annotations::REBOOT_TERMINATION_GRACE_PERIOD;
use api::names::conditions::node_claim::{DISRUPTION_REASON, REBOOTING};
use api::names::reasons::node_claim::REBOOT_REQUESTED;
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::state::{Meta, Watched};
use runtime::Error;
use serde_json::json;

use super::super::Reason;
use super::super::candidate::Candidate;
use crate::node_claim::{annotation, lock, name};
use crate::{Context, status};

/// Asks for the reboot of a candidate; whether that was possible. It is not for claims that go, or whose node is being
/// booted already.
pub(crate) async fn commit(context: &Context, candidate: &Candidate, reason: Reason) -> Result<bool, Error> {
    let known = context.cluster.read().node_claims.get(&candidate.claim.key()).map(Arc::clone);
    let Some(claim) = known.filter(|known| {
        known.metadata.uid == candidate.claim.metadata.uid
            && !known.metadata.is_deleting()
            && !known.is_true(REBOOTING)
    }) else {
        return Ok(false);
    };
    let bound = candidate.drain_bound.or(claim.spec.termination_grace_period);
    let bound = bound.map(|bound| bound.to_string());
    let claim = if annotation(&claim, REBOOT_TERMINATION_GRACE_PERIOD) == bound.as_deref() {
        claim
    } else {
        let mut metadata = lock(&claim);
        metadata["annotations"] = json!({REBOOT_TERMINATION_GRACE_PERIOD: bound});
        context.api.patch::<NodeClaim>(&claim.key(), &json!({"metadata": metadata})).await?
    };
    let mut after = NodeClaim::clone(&claim);
    let mut conditions = Conditions::of(&mut after, context.now());
    conditions.set(DISRUPTION_REASON, ConditionStatus::True, reason.text(), reason.text());
    conditions.set(REBOOTING, ConditionStatus::True, REBOOT_REQUESTED, &message(candidate));
    if let Some(change) = status::conditions(&*claim, &after) {
        context.api.patch_status::<NodeClaim>(&claim.key(), &change).await?;
    }
    tracing::info!(Node = candidate.name(), NodeClaim = name(&claim), "committed node reboot");
    Ok(true)
}

/// Why, as the condition says it.
fn message(candidate: &Candidate) -> String {
    let cause = candidate.repaired.as_deref().map(|repaired| &repaired.resolution);
    let (condition, reason) = cause.map_or(("", ""), |cause| (&*cause.condition, &*cause.reason));
    format!("rebooting for {condition}/{reason}")
}
