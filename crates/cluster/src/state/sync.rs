//! Whether decisions can rely on the state.

use std::sync::Arc;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::LAUNCHED;
use api::names::{labels, reasons};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use jiff::{SignedDuration, Timestamp};

use super::State;
use crate::state_node::{check_node_class, claim_provider_id};

/// How long a claim may take to get an instance, unless the provider says otherwise.
pub const LAUNCH_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Whether decisions can rely on the state, and what they wait for.
///
/// A claim that was created but not launched stands for capacity that nobody can see yet; whoever decided now
/// would buy it twice. But one object must not stop the cluster for ever. So nobody waits for a claim
/// - that is being deleted: it will never be capacity, and its pods need another place;
/// - of a static NodePool whose launch has failed: it was not made for pods, and is in [`Sync::failing`] instead;
/// - that has not been launched within the launch timeout: it is in [`Sync::overdue`] instead;
/// - of another provider, or that cannot be read: it is in [`State::unreadable`].
#[derive(Clone, Debug, Default)]
pub struct Sync<'a> {
    /// Whether every kind has been listed.
    pub listed: bool,
    /// Claims that are about to be launched.
    pub launching: Vec<&'a Arc<NodeClaim>>,
    /// Claims that should have been launched long ago. Nobody waits for them.
    pub overdue: Vec<&'a Arc<NodeClaim>>,
    /// Claims of static NodePools whose launch has failed, and is tried again. Nobody waits for them: such a pool
    /// gets a claim for each that is given up, so that there would always be one to wait for.
    pub failing: Vec<&'a Arc<NodeClaim>>,
}

impl Sync<'_> {
    /// Whether decisions can rely on the state.
    pub fn is_synced(&self) -> bool {
        self.listed && self.launching.is_empty()
    }
}

impl State {
    /// Sets how long a claim may take to get an instance.
    pub fn set_launch_timeout(&mut self, timeout: SignedDuration) {
        self.launch_timeout = timeout;
    }

    /// Whether decisions can rely on the state, and what they wait for.
    pub fn sync(&self, now: Timestamp) -> Sync<'_> {
        let mut sync = Sync { listed: self.is_listed(), ..Sync::default() };
        for claim in self.stores.node_claims.values() {
            let is_ours = || check_node_class(&claim.spec.node_class_ref, self.provider).is_ok();
            let is_going = claim.metadata.deletion_timestamp.is_some();
            if !claim_provider_id(claim).is_empty() || is_going || !is_ours() {
                continue;
            }
            let created = claim.metadata.creation_timestamp.as_ref();
            let is_overdue = created.is_none_or(|it| now.duration_since(it.0) > self.launch_timeout);
            if is_overdue {
                sync.overdue.push(claim);
            } else if has_failed(claim) && self.is_of_static_pool(claim) {
                sync.failing.push(claim);
            } else {
                sync.launching.push(claim);
            }
        }
        sync
    }

    fn is_of_static_pool(&self, claim: &NodeClaim) -> bool {
        let pool = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::NODEPOOL));
        let pool = pool.and_then(|pool| self.stores.node_pools.named(pool));
        pool.is_some_and(|pool| pool.spec.replicas.is_some())
    }

    /// Whether decisions can rely on the state.
    pub fn is_synced(&self, now: Timestamp) -> bool {
        self.sync(now).is_synced()
    }
}

/// Whether the cloud has answered that a claim cannot be launched, at present.
fn has_failed(claim: &NodeClaim) -> bool {
    claim.condition(LAUNCHED).is_some_and(|condition| {
        condition.status != ConditionStatus::True && condition.reason != reasons::AWAITING_RECONCILIATION
    })
}
