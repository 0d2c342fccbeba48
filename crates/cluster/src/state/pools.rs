//! What NodePools have: their nodes' resources in all, and their claims.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::nodeclaim::NodeClaim;
use units::Resources;

use super::State;
use crate::state_node::{StateNode, check_node_class, claim_provider_id, node_provider_id};

/// The claims of a NodePool by what is to become of them, in the order of names.
#[derive(Clone, Debug, Default)]
pub struct PoolClaims<'a> {
    /// Those that stay.
    pub active: Vec<&'a Arc<NodeClaim>>,
    /// Those that go.
    pub deleting: Vec<&'a Arc<NodeClaim>>,
    /// Those that will go once their replacement is there.
    pub pending_disruption: Vec<&'a Arc<NodeClaim>>,
}

impl PoolClaims<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.active.len() + self.deleting.len() + self.pending_disruption.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl State {
    /// What the nodes of a NodePool have in all, `nodes` included. Those that go do not count, nor do claims that
    /// are not launched yet. Empty if it has none.
    pub fn pool_resources(&self, pool: &str) -> Resources {
        let nodes = self.nodes_of_pool(pool).filter_map(|node| node_provider_id(node).ok());
        let claims = self.claims_of_pool(pool).map(|claim| claim_provider_id(claim));
        let ids: BTreeSet<&str> = nodes.chain(claims).collect();
        let mut total = Resources::new();
        // A claim and its node may disagree about the pool; whoever speaks for both decides.
        let states = ids.into_iter().filter_map(|id| self.state_node(id));
        for state in states.filter(|state| state.pool() == pool && counts(state)) {
            total.add(&state.capacity());
        }
        total
    }

    /// The claims of a NodePool, those included that are not launched yet.
    pub fn pool_claims(&self, pool: &str) -> PoolClaims<'_> {
        let mut all = PoolClaims::default();
        for claim in self.claims_of_pool(pool) {
            if check_node_class(&claim.spec.node_class_ref, self.provider).is_err() {
                continue;
            }
            let state = StateNode {
                claim: Some(claim),
                marked: self.is_marked(claim_provider_id(claim)),
                ..StateNode::default()
            };
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            if state.is_marked_for_deletion() {
                all.deleting.push(claim);
            } else if self.pending_disruption.contains(name) {
                all.pending_disruption.push(claim);
            } else {
                all.active.push(claim);
            }
        }
        all
    }

    /// Notes that claims go once their replacements are there. It holds until they are gone, or until
    /// [`State::unmark_for_deletion`].
    pub fn mark_pending_disruption<'i>(&mut self, claims: impl IntoIterator<Item = &'i str>) {
        for claim in claims {
            if self.stores.node_claims.named(claim).is_some() {
                self.pending_disruption.insert(claim.into());
            }
        }
    }

    /// Sets room for claims of a NodePool aside before they are created, so that two controllers together do not
    /// exceed a limit. Returns how many of the wanted ones may be created; [`State::release`] takes each of them
    /// back once it was created or failed to be.
    pub fn reserve(&mut self, pool: &str, limit: Option<u64>, wanted: u64) -> u64 {
        let taken = self.pool_claims(pool).len() as u64 + self.reserved(pool);
        let left = limit.map_or(u64::MAX, |limit| limit.saturating_sub(taken));
        let granted = wanted.min(left);
        if granted > 0 {
            *self.reserved.entry(pool.into()).or_default() += granted;
        }
        granted
    }

    /// Takes back what [`State::reserve`] has set aside; never more than that.
    pub fn release(&mut self, pool: &str, count: u64) {
        if let Some(reserved) = self.reserved.get_mut(pool) {
            *reserved = reserved.saturating_sub(count);
            if *reserved == 0 {
                self.reserved.remove(pool);
            }
        }
    }

    /// For how many claims of a NodePool room is set aside.
    pub fn reserved(&self, pool: &str) -> u64 {
        self.reserved.get(pool).copied().unwrap_or_default()
    }
}

fn counts(state: &StateNode<'_>) -> bool {
    !state.is_marked_for_deletion()
}
