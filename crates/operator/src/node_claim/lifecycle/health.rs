//! What the fate of a claim says about its NodePool: whether nodes join the cluster.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::LAUNCHED;
use api::names::conditions::node_pool::NODE_REGISTRATION_HEALTHY;
use api::names::{labels, messages, reasons};
use api::nodeclaim::NodeClaim;
use api::nodepool::NodePool;
use api::shared::ConditionStatus;
use cluster::state::{State, Watched};
use jiff::Timestamp;
use runtime::Error;

use crate::node_claim::label;
use crate::node_pool::registration_health::Health;
use crate::{Context, status};

/// How often a write is tried that somebody else was faster with.
const ATTEMPTS: u32 = 4;

/// The pool that a claim was made for; not one of the same name that came later.
fn pool_of<'a>(claim: &NodeClaim, state: &'a State) -> Option<&'a Arc<NodePool>> {
    let pool = state.node_pools.named(label(claim, labels::NODEPOOL))?;
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners
        .any(|owner| owner.kind == "NodePool" && Some(&owner.uid) == pool.metadata.uid.as_ref())
        .then_some(pool)
}

/// The pool with what the fate of one of its claims says about it.
fn decide(pool: &NodePool, claim: &NodeClaim, joined: bool, health: Health, now: Timestamp) -> NodePool {
    let mut after = pool.clone();
    let known = pool.condition(NODE_REGISTRATION_HEALTHY).map(|condition| condition.status);
    match (joined, health) {
        (true, Health::Healthy) => {
            Conditions::of(&mut after, now).set_true(NODE_REGISTRATION_HEALTHY);
        }
        (false, Health::Unhealthy) if known != Some(ConditionStatus::False) => {
            let launched = claim.condition(LAUNCHED).filter(|_| !claim.is_true(LAUNCHED));
            let (reason, message) = launched.map_or(
                (reasons::node_pool::REGISTRATION_FAILED, messages::REGISTRATION_FAILED),
                |condition| (&condition.reason, &condition.message),
            );
            let mut conditions = Conditions::of(&mut after, now);
            conditions.set(NODE_REGISTRATION_HEALTHY, ConditionStatus::False, reason, message);
        }
        _ => {}
    }
    after
}

/// Notes that the node of a claim joined the cluster, or did not in time.
pub(super) async fn record(context: &Context, claim: &NodeClaim, joined: bool) -> Result<(), Error> {
    for attempt in 1..=ATTEMPTS {
        let (pool, uid, patch) = {
            let state = context.cluster.read();
            let Some(pool) = pool_of(claim, &state) else { return Ok(()) };
            let uid = pool.metadata.uid.clone().unwrap_or_default();
            let health = context.registrations.health_with(&uid, joined);
            let after = decide(pool, claim, joined, health, context.now());
            (pool.key(), uid, status::conditions(&**pool, &after))
        };
        let written = match patch {
            Some(patch) => context.api.patch_status::<NodePool>(&pool, &patch).await.map(drop),
            None => Ok(()),
        };
        match written {
            Ok(()) => {
                context.registrations.record(&uid, joined);
                return Ok(());
            }
            Err(error) if error.is_not_found() => return Ok(()),
            // What somebody else wrote is on its way to us.
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {
                tokio::time::sleep(Duration::from_millis(10) * 5_u32.pow(attempt - 1)).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{claim, pool};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn said(pool: &NodePool) -> Option<(ConditionStatus, &str, &str)> {
        let condition = pool.condition(NODE_REGISTRATION_HEALTHY)?;
        Some((condition.status, &condition.reason, &condition.message))
    }

    #[test]
    fn a_pool_is_healthy_again_when_enough_nodes_join() {
        let pool = pool("p", &json!({}));
        let claim = claim("c", &json!({}));
        let after = decide(&pool, &claim, true, Health::Healthy, at(0));
        assert_eq!(said(&after), Some((ConditionStatus::True, "NodeRegistrationHealthy", "")));
        assert_eq!(said(&decide(&pool, &claim, true, Health::Unhealthy, at(0))), None);
    }

    #[test]
    fn a_pool_is_broken_for_the_reason_of_the_last_failure() {
        let pool = pool("p", &json!({}));
        let mut claim = claim("c", &json!({}));
        Conditions::of(&mut claim, at(0)).set(LAUNCHED, ConditionStatus::Unknown, "LaunchFailed", "no quota");
        assert_eq!(said(&decide(&pool, &claim, false, Health::Healthy, at(0))), None);
        let after = decide(&pool, &claim, false, Health::Unhealthy, at(0));
        assert_eq!(said(&after), Some((ConditionStatus::False, "LaunchFailed", "no quota")));
        Conditions::of(&mut claim, at(0)).set_true(LAUNCHED);
        let again = decide(&after, &claim, false, Health::Unhealthy, at(0));
        assert_eq!(said(&again), said(&after), "the first reason stays");
        let after = decide(&pool, &claim, false, Health::Unhealthy, at(0));
        assert_eq!(
            said(&after),
            Some((ConditionStatus::False, "RegistrationFailed", "Failed to register node"))
        );
    }
}
