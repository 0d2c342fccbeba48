//! What NodePools have.

use api::conditions::HasConditions;
use api::names::conditions::node_claim::INSTANCE_TERMINATING;
use api::names::labels;
use api::names::resources::NODES;
use api::nodeclaim::NodeClaim;
use cluster::objects::Node;
use cluster::state::State;
use units::{Format, Quantity, Resources};

use crate::managed::is_claim_managed;

/// Whether every claim is known to have an instance, so that nothing that was asked for is overlooked.
pub(crate) fn is_synced(state: &State) -> bool {
    let is_launched =
        |claim: &NodeClaim| claim.status.as_ref().is_some_and(|status| !status.provider_id.is_empty());
    let mut claims = state.node_claims.values().filter(|claim| is_claim_managed(claim, state.provider()));
    state.is_listed() && claims.all(|claim| is_launched(claim))
}

/// What the nodes of a pool have in all; those on their way out do not count.
pub(crate) fn of_pool(state: &State, pool: &str) -> Resources {
    let mut usage = Resources::default();
    for claim in state.claims_of_pool(pool) {
        let node = state.node_of_claim(claim);
        let is_launched = claim.status.as_ref().is_some_and(|status| !status.provider_id.is_empty());
        let is_leaving = claim.metadata.deletion_timestamp.is_some() || claim.is_true(INSTANCE_TERMINATING);
        if is_launched && !is_leaving {
            usage.add(&capacity(Some(claim), node.map(|node| &**node)));
        }
    }
    for node in state.nodes_of_pool(pool) {
        if !node.metadata.is_deleting() && state.claim_of_node(node).is_none() {
            usage.add(&capacity(None, Some(node)));
        }
    }
    usage
}

/// What a node has, itself as one node included. Before it is initialised its claim fills the gaps.
fn capacity(claim: Option<&NodeClaim>, node: Option<&Node>) -> Resources {
    let own = node.into_iter().flat_map(|node| node.status.capacity.iter());
    let mut capacity: Resources = own.map(|(name, amount)| (name, *amount)).collect();
    let is_initialized = node.is_some_and(|node| node.metadata.labels.text(labels::INITIALIZED) == "true");
    let status = claim.filter(|_| !is_initialized).and_then(|claim| claim.status.as_ref());
    for (name, amount) in status.into_iter().flat_map(|status| &status.capacity) {
        if capacity.amount(name).is_zero() {
            capacity.set(name.as_str(), *amount);
        }
    }
    capacity.set(NODES, Quantity::from_units(1, Format::DecimalSi));
    capacity
}
