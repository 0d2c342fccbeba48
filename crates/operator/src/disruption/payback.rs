//! A node that replaced others pays for itself before another one takes its place.
//!
//! While a replacement comes up, it is paid for beside the nodes that it replaces. What that has cost is earned back
//! by what is saved from then on:
//!
//! ```text
//!   payback = time side by side * price of the new / (price of the old - price of the new), at most an hour
//! ```
//!
//! Until then consolidation does not replace it again, so that no move is undone before it was worth its price. To
//! remove it because it is empty, or because the others have room for its pods, pays at once and stays possible; what
//! has drifted, is broken or has expired goes as ever. The claim itself says until when, so that it outlives this
//! process. For how long the old nodes drain afterwards nobody knows yet; it does not count.

use std::sync::Arc;

use api::names::annotations::PAYBACK_TIMESTAMP;
use api::nodeclaim::NodeClaim;
use api::nodepool::DisruptionReason;
use cluster::costs;
use cluster::state::Watched;
use cluster::state_node::StateNode;
use jiff::{SignedDuration, Timestamp};
use runtime::Error;
use serde_json::json;

use super::command::Command;
use super::launch::Launch;
use crate::Context;
use crate::node_claim::annotation;
use crate::node_claim::lifecycle::text;
use crate::retry::retry;

/// No node is held for longer, however little it saves.
const MOST: SignedDuration = SignedDuration::from_hours(1);

/// How long it takes until nodes have paid for the time in which they ran beside those that they replace. Prices are
/// per hour; what nobody knows the price of costs nothing.
fn payback(before: f64, after: f64, side_by_side: SignedDuration) -> SignedDuration {
    let spent = side_by_side.as_secs_f64() * after;
    let saved = before - after;
    if spent.is_nan() || spent <= 0.0 {
        return SignedDuration::ZERO;
    }
    if saved.is_nan() || saved <= 0.0 {
        return MOST;
    }
    SignedDuration::try_from_secs_f64((spent / saved).round()).unwrap_or(MOST).min(MOST)
}

/// What a launch costs, now that it is known what has become of it.
fn price(launch: &Launch, claim: &NodeClaim) -> f64 {
    let known = costs::price(&StateNode { claim: Some(claim), ..StateNode::default() }, &launch.catalogue);
    if known > 0.0 { known } else { launch.price() }
}

/// When the new nodes of a command, which are up now, have paid for themselves; nothing if they need not.
fn deadline(command: &Command, claims: &[Arc<NodeClaim>], now: Timestamp) -> Option<Timestamp> {
    if command.reason.0 != DisruptionReason::Underutilized {
        return None;
    }
    let created =
        claims.iter().filter_map(|it| it.metadata.creation_timestamp.as_ref()).map(|it| it.0).min()?;
    let before = command.candidates.iter().map(|candidate| candidate.price).sum();
    let after = command.replacements.iter().zip(claims).map(|(launch, claim)| price(launch, claim)).sum();
    let payback = payback(before, after, now.duration_since(created));
    (payback > SignedDuration::ZERO).then(|| now.saturating_add(payback).unwrap_or(Timestamp::MAX))
}

/// Until when a claim pays for itself, as it says. What cannot be understood holds nothing.
fn until(claim: &NodeClaim) -> Option<Timestamp> {
    annotation(claim, PAYBACK_TIMESTAMP)?.parse().ok()
}

/// Whether a claim has yet to pay for itself.
pub(super) fn is_held(claim: &NodeClaim, now: Timestamp) -> bool {
    until(claim).is_some_and(|until| now < until)
}

/// What users are told who wonder why a node is not replaced.
pub(super) fn told(claim: &NodeClaim) -> String {
    let until = until(claim).map(text).unwrap_or_default();
    format!("Can't replace before {until}, until then the node pays for what its own launch has cost")
}

/// Writes down until when the new nodes of a command, which are up now, pay for themselves. Those that say so already
/// keep their time.
pub(super) async fn note(
    context: &Context,
    command: &Command,
    claims: &[Arc<NodeClaim>],
) -> Result<(), Error> {
    let known = |claim: &NodeClaim| context.cluster.read().node_claims.get(&claim.key()).map(Arc::clone);
    let claims: Vec<Arc<NodeClaim>> = claims.iter().filter_map(|claim| known(claim)).collect();
    let Some(due) = deadline(command, &claims, context.now()) else { return Ok(()) };
    for claim in claims.iter().filter(|claim| until(claim).is_none()) {
        let change = json!({"metadata": {"annotations": {PAYBACK_TIMESTAMP: text(due)}}});
        let key = claim.key();
        match retry(|| context.api.patch::<NodeClaim>(&key, &change)).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_side_by_side_is_earned_back_by_what_is_saved() {
        let seconds = SignedDuration::from_secs;
        for (before, after, side_by_side, expected) in [
            // Half the price: as long as it took.
            (2.0, 1.0, 60, 60),
            // A tenth is saved: nine times as long.
            (1.0, 0.9, 60, 540),
            (10.0, 1.0, 90, 10),
            // Little is saved: an hour at most.
            (1.0, 0.999, 60, 3600),
            (1.0, 1.0, 1, 3600),
            (1.0, 2.0, 1, 3600),
            // Nothing was spent, as far as anybody knows.
            (1.0, 0.5, 0, 0),
            (1.0, 0.5, -5, 0),
            (1.0, 0.0, 60, 0),
            (0.0, 0.0, 60, 0),
            (f64::NAN, 1.0, 60, 3600),
            (1.0, f64::NAN, 60, 0),
        ] {
            let found = payback(before, after, seconds(side_by_side));
            assert_eq!(found, seconds(expected), "{before} -> {after} in {side_by_side} s");
        }
    }

    #[test]
    fn a_claim_is_held_until_the_time_it_says_and_not_by_what_is_no_time() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let held = |at: &str| {
            let change = json!({"metadata": {"annotations": {PAYBACK_TIMESTAMP: at}}});
            is_held(&crate::testing::claim("c", &change), now)
        };
        assert!(held("2026-01-01T00:00:01Z"));
        assert!(!held("2026-01-01T00:00:00Z") && !held("2025-12-31T23:59:59Z") && !held("soon"));
        assert!(!is_held(&crate::testing::claim("c", &json!({})), now));
    }
}
