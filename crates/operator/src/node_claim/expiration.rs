//! Expiration: a claim that is as old as it may be is deleted, whatever budgets say. Its node is drained as any other.

use std::time::Duration;

use api::names::values;
use api::nodeclaim::NodeClaim;
use cluster::eligibility::is_reschedulable;
use cluster::state::{Change, Key, Meta, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use runtime::controller::Reconcile;
use runtime::{Again, Outcome};

use super::{disrupt, name};
use crate::Context;
use crate::managed::is_claim_managed;
use crate::watching::Watching;

/// Nodes of the same age expire one after the other, not all at once.
const PACE: Duration = Duration::from_secs(1);

/// How much time a claim has left; nothing if it may live for ever or goes already.
fn decide(claim: &NodeClaim, now: Timestamp) -> Option<Duration> {
    let lifetime = SignedDuration::from(claim.spec.expire_after.duration()?);
    let created = claim.metadata.creation_timestamp.as_ref()?.0;
    if claim.metadata.is_deleting() {
        return None;
    }
    let end = created.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
    Some(Duration::try_from(end.duration_since(now)).unwrap_or_default())
}

/// How many pods on the node of a claim need another place.
pub(super) fn pods_to_move(claim: &NodeClaim, state: &State) -> usize {
    let node = claim.status.as_ref().map_or("", |status| &status.node_name);
    state.pods_on(node).filter(|pod| is_reschedulable(pod)).count()
}

/// Deletes claims that are too old.
pub(super) struct Expiration(Context);

impl Expiration {
    pub(super) fn new(context: &Context) -> Self {
        Self(context.clone())
    }
}

impl Reconcile for Expiration {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let (claim, pods) = {
                let state = context.cluster.read();
                let Some(claim) = state.node_claims.get(key) else { return Ok(Again::No) };
                if !is_claim_managed(claim, context.provider()) {
                    return Ok(Again::No);
                }
                match decide(claim, context.now()) {
                    None => return Ok(Again::No),
                    Some(Duration::ZERO) => {}
                    Some(left) => return Ok(Again::After(left)),
                }
                (claim.clone(), pods_to_move(claim, &state))
            };
            disrupt(context, &claim, values::EXPIRED, Some(pods)).await?;
            tracing::info!(NodeClaim = name(&claim), "deleting expired nodeclaim");
            tokio::time::sleep(PACE).await;
            Ok(Again::No)
        }
        .boxed()
    }
}

impl Watching for Expiration {
    fn watch(&self, change: &Change, _: &State) -> Vec<Key> {
        match change {
            // Nothing that decides when a claim expires ever changes.
            Change { old: None, new: Some(Object::NodeClaim(claim)) } => vec![claim.key()],
            _ => Vec::new(),
        }
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.node_claims.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::claim;

    #[track_caller]
    fn check(change: &Value, second: i64, expected: Option<u64>) {
        let mut value = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}});
        crate::testing::merge(&mut value, change);
        let now =
            "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + Duration::from_secs(second.unsigned_abs());
        assert_eq!(decide(&claim("c", &value), now), expected.map(Duration::from_secs));
    }

    #[test]
    fn a_claim_lives_as_long_as_it_says() {
        let hour = json!({"spec": {"expireAfter": "1h"}});
        check(&hour, 0, Some(3600));
        check(&hour, 3599, Some(1));
        check(&hour, 3600, Some(0));
        check(&hour, 9999, Some(0));
        check(&json!({"spec": {"expireAfter": "Never"}}), 1_000_000_000, None);
        check(&json!({}), 0, Some(720 * 3600));
    }

    #[test]
    fn a_claim_that_goes_already_does_not_expire() {
        let going =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"expireAfter": "1h"}});
        check(&going, 9999, None);
    }
}
