//! Which nodes a static NodePool gives up first: those whose loss costs least.

use std::sync::Arc;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::INITIALIZED;
use api::nodeclaim::NodeClaim;
use cluster::costs::Costs;
use cluster::do_not_disrupt::DoNotDisrupt;
use cluster::eligibility::{is_daemon, is_terminal};
use cluster::objects::Pod;
use cluster::state::State;
use cluster::state_node::claim_provider_id;
use jiff::Timestamp;

/// How much it takes to give up a node; less comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Burden {
    /// There is no instance yet.
    NotLaunched,
    /// It cannot take pods yet, and may never do so: another one that can must not go in its place.
    NotInitialized,
    /// Nobody would notice.
    Empty,
    /// Its pods find another place.
    Movable,
    /// One of its pods asks to be left alone.
    Protected,
}

/// So many of a pool's claims that are to stay, those first whose loss costs least.
pub(super) fn surplus(
    state: &State,
    pool: &str,
    count: usize,
    costs: Costs,
    now: Timestamp,
) -> Vec<Arc<NodeClaim>> {
    let mut claims: Vec<_> = state
        .pool_claims(pool)
        .active
        .into_iter()
        .map(|claim| {
            let (burden, cost) = weigh(state, claim, costs, now);
            (burden, cost, Arc::clone(claim))
        })
        .collect();
    // They come in the order of names, which decides between equals.
    claims.sort_by(|(burden, cost, _), (other, more, _)| burden.cmp(other).then(cost.total_cmp(more)));
    claims.into_iter().take(count).map(|(.., claim)| claim).collect()
}

fn weigh(state: &State, claim: &NodeClaim, costs: Costs, now: Timestamp) -> (Burden, f64) {
    if claim_provider_id(claim).is_empty() {
        return (Burden::NotLaunched, 0.0);
    }
    let node = state.node_of_claim(claim);
    let pods = node.into_iter().flat_map(|node| state.pods_on(&node.metadata.name));
    let pods: Vec<&Pod> = pods.map(AsRef::as_ref).filter(|pod| !is_terminal(pod)).collect();
    if pods.iter().any(|pod| DoNotDisrupt::of(pod, now).is_active()) {
        return (Burden::Protected, costs.disruption(pods, claim, now));
    }
    if pods.iter().all(|pod| is_daemon(pod)) {
        let burden = if claim.is_true(INITIALIZED) { Burden::Empty } else { Burden::NotInitialized };
        return (burden, 0.0);
    }
    (Burden::Movable, costs.disruption(pods, claim, now))
}
