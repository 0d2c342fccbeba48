//! Consistency: a node that has less than was expected of it is reported. Nothing else is done about it.

use std::collections::BTreeMap;
use std::time::Duration;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::{CONSISTENT_STATE_FOUND, INITIALIZED};
use api::names::{events, messages, reasons};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::objects::Node;
use cluster::state::{Change, Key, Meta, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use runtime::controller::Reconcile;
use runtime::events::About;
use runtime::{Again, Outcome};

use super::lifecycle::age;
use super::{name, write_status};
use crate::Context;
use crate::managed::is_claim_managed;
use crate::watching::Watching;

/// How often a node is looked at.
const OFTEN: Duration = Duration::from_mins(10);
/// How much of what was expected is enough.
const ENOUGH: f64 = 0.9;

/// What a node lacks of what was expected of it.
fn shortages(claim: &NodeClaim, node: &Node) -> Vec<String> {
    if claim.metadata.is_deleting() || !claim.is_true(INITIALIZED) {
        return Vec::new();
    }
    let mut shortages = Vec::new();
    for (resource, requested) in &claim.spec.resources.requests {
        let expected = claim.status.as_ref().and_then(|status| status.capacity.get(resource)).copied();
        let Some(expected) = expected.filter(|expected| !requested.is_zero() && !expected.is_zero()) else {
            continue;
        };
        let found = node.status.capacity.get(resource).copied().unwrap_or_default();
        let share = found.as_f64() / expected.as_f64();
        if share < ENOUGH {
            let percent = share * 100.0;
            shortages.push(format!(
                "expected {expected} of resource {resource}, but found {found} ({percent:.1}% of expected)"
            ));
        }
    }
    shortages
}

/// The claim with what was found out about its node.
fn noted(claim: &NodeClaim, is_consistent: bool, now: Timestamp) -> NodeClaim {
    let mut after = claim.clone();
    let mut conditions = Conditions::of(&mut after, now);
    if is_consistent {
        conditions.set_true(CONSISTENT_STATE_FOUND);
    } else {
        let (reason, message) =
            (reasons::node_claim::CONSISTENCY_CHECK_FAILED, messages::CONSISTENCY_CHECK_FAILED);
        conditions.set(CONSISTENT_STATE_FOUND, ConditionStatus::False, reason, message);
    }
    after
}

/// Reports nodes that have less than was expected.
pub(super) struct Consistency {
    context: Context,
    /// When each claim was last looked at.
    scans: Mutex<BTreeMap<Box<str>, Timestamp>>,
}

impl Consistency {
    pub(super) fn new(context: &Context) -> Self {
        Self { context: context.clone(), scans: Mutex::default() }
    }

    /// How long it is until a claim is to be looked at; nothing when it is due, which is then noted.
    fn wait(&self, uid: &str, now: Timestamp) -> Option<Duration> {
        let mut scans = self.scans.lock();
        let left = scans.get(uid).map(|last| OFTEN.saturating_sub(age(*last, now)));
        if left.is_none_or(|left| left.is_zero()) {
            scans.insert(uid.into(), now);
            return None;
        }
        left
    }
}

impl Reconcile for Consistency {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let context = &self.context;
            let (claim, node) = {
                let state = context.cluster.read();
                let claim = state.node_claims.get(key);
                let Some(claim) = claim.filter(|claim| is_claim_managed(claim, context.provider())) else {
                    return Ok(Again::No);
                };
                let Some(node) = state.node_of_claim(claim) else { return Ok(Again::No) };
                (claim.clone(), node.clone())
            };
            let (uid, now) = (claim.metadata.uid(), context.now());
            if let Some(left) = self.wait(uid, now) {
                return Ok(Again::After(left));
            }
            let shortages = shortages(&claim, &node);
            for shortage in &shortages {
                tracing::info!(NodeClaim = name(&claim), Node = %node.metadata.name, "consistency error, {shortage}");
                let event = &events::FAILED_CONSISTENCY_CHECK;
                context.events.publish(event, About::object(&*claim), shortage, &[uid, shortage]);
            }
            let after = noted(&claim, shortages.is_empty(), now);
            if let Err(error) = write_status(context, &claim, &after).await {
                self.scans.lock().remove(uid);
                return if error.is_not_found() { Ok(Again::No) } else { Err(error) };
            }
            Ok(Again::After(OFTEN))
        }
        .boxed()
    }
}

impl Watching for Consistency {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        match (change.object(), &change.new) {
            (Object::NodeClaim(claim), None) => {
                self.scans.lock().remove(claim.metadata.uid());
                Vec::new()
            }
            (Object::NodeClaim(claim), Some(_)) => vec![claim.key()],
            (Object::Node(node), Some(_)) if change.old.is_none() => {
                state.claims_of(&node.spec.provider_id).map(|claim| claim.key()).collect()
            }
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

    fn claim(change: &Value) -> NodeClaim {
        let condition =
            json!({"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut value = json!({
            "spec": {"resources": {"requests": {"cpu": "1", "memory": "1Gi", "none": "0"}}},
            "status": {
                "conditions": [condition],
                "capacity": {"cpu": "8", "memory": "128Gi", "none": "5", "unrequested": "5"},
            },
        });
        crate::testing::merge(&mut value, change);
        crate::testing::claim("c", &value)
    }

    fn node(capacity: &Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n"}, "status": {"capacity": capacity}})).unwrap()
    }

    #[test]
    fn a_node_may_lack_a_tenth_of_what_was_expected() {
        let none: [String; 0] = [];
        assert_eq!(shortages(&claim(&json!({})), &node(&json!({"cpu": "8", "memory": "128Gi"}))), none);
        assert_eq!(shortages(&claim(&json!({})), &node(&json!({"cpu": "7200m", "memory": "128Gi"}))), none);
        assert_eq!(
            shortages(&claim(&json!({})), &node(&json!({"cpu": "8", "memory": "64Gi"}))),
            ["expected 128Gi of resource memory, but found 64Gi (50.0% of expected)"]
        );
        assert_eq!(shortages(&claim(&json!({})), &node(&json!({}))).len(), 2);
    }

    #[test]
    fn nodes_that_come_or_go_are_not_judged() {
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(shortages(&claim(&going), &node(&json!({}))).is_empty());
        let starting = json!({"status": {"conditions": []}});
        assert!(shortages(&claim(&starting), &node(&json!({}))).is_empty());
    }

    #[test]
    fn the_claim_says_what_was_found() {
        let said = |claim: &NodeClaim| {
            let condition = claim.condition("ConsistentStateFound").unwrap();
            format!("{} {}: {}", condition.status, condition.reason, condition.message)
        };
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(said(&noted(&claim(&json!({})), true, now)), "True ConsistentStateFound: ");
        assert_eq!(
            said(&noted(&claim(&json!({})), false, now)),
            "False ConsistencyCheckFailed: Consistency Check Failed"
        );
    }
}
