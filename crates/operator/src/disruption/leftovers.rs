//! Takes back what a disruption has left behind that nobody carries out any more: after a restart, or where it
//! failed half-way.

use std::collections::BTreeSet;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::DISRUPTION_REASON;
use cluster::state::{Key, State, Watched};
use futures::future::join_all;
use runtime::Error;

use super::mark;
use crate::Context;

/// Nodes and claims that are marked for nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Leftovers {
    pub(super) nodes: Vec<Key>,
    pub(super) claims: Vec<Key>,
}

pub(super) fn decide(state: &State, queued: &BTreeSet<Box<str>>) -> Leftovers {
    let mut leftovers = Leftovers::default();
    for state_node in state.state_nodes() {
        let (Some(node), Some(claim)) = (state_node.node, state_node.claim) else { continue };
        let is_busy = queued.contains(state_node.provider_id())
            || state_node.is_marked_for_deletion()
            || state_node.is_rebooting();
        if is_busy {
            continue;
        }
        if mark::is_tainted(node) && !node.metadata.is_deleting() {
            leftovers.nodes.push(node.key());
        }
        if state_node.is_initialized() && claim.condition(DISRUPTION_REASON).is_some() {
            leftovers.claims.push(claim.key());
        }
    }
    leftovers
}

/// Takes back what is left behind.
pub(super) async fn clean_up(context: &Context, leftovers: &Leftovers) -> Result<(), Error> {
    let nodes = join_all(leftovers.nodes.iter().map(|node| mark::taint(context, node, false))).await;
    let claims = join_all(leftovers.claims.iter().map(|claim| mark::reason(context, claim, None))).await;
    nodes.into_iter().chain(claims).collect()
}
