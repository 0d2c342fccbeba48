//! Safe garbage collection: the rules that keep a collector from ending a fleet by mistake.
//!
//! A collector ends what lost its counterpart: an instance without a NodeClaim, a NodeClaim without an instance. When
//! the API server answers badly, every counterpart is missing at once. So every collector
//! 1. ends nothing while the watch of a kind that it relies on has failed ([`GarbageCollection::may_rely_on`]);
//! 2. asks the API server itself before it ends something ([`GarbageCollection::node_claims`]);
//! 3. stops when it would end more than a tenth of the fleet, and at least two, in one pass
//!    ([`GarbageCollection::allows`]).
//!
//! Stopping is a warning in the log, an event on the NodePools concerned, and a metric.

use std::collections::BTreeSet;

use api::names::events;
use api::names::labels::NODEPOOL;
use api::names::metrics::GARBAGE_COLLECTION_STOPPED;
use api::nodeclaim::NodeClaim;
use cluster::state::Kind;
use runtime::events::{About, Recorder};
use runtime::metrics::Registry;
use runtime::{Api, Cluster, Error};

/// One collector may end at most one in so many of the fleet in a pass.
const SHARE: usize = 10;
/// How many names a message lists.
const NAMED: usize = 5;

/// Whether ending so many of a fleet in one pass is more than is ever right.
pub fn is_too_much(ended: usize, fleet: usize) -> bool {
    ended >= 2 && ended.saturating_mul(SHARE) > fleet
}

/// The rules for one collector.
#[derive(Clone, Debug)]
pub struct GarbageCollection {
    controller: &'static str,
    api: Api,
    cluster: Cluster,
    events: Recorder,
    metrics: Registry,
}

/// What a collector would end in one pass.
#[derive(Debug)]
pub struct Pass<'a> {
    /// What these are and why they should go, as in "3 of 20 `nodes have no NodeClaim`".
    pub finding: &'a str,
    /// What would be ended, by name.
    pub names: Vec<&'a str>,
    /// The NodePools that they are of.
    pub node_pools: BTreeSet<&'a str>,
    /// How many there are in all.
    pub fleet: usize,
}

impl GarbageCollection {
    /// The rules for the collector of a name.
    pub fn new(
        controller: &'static str,
        api: &Api,
        cluster: &Cluster,
        events: &Recorder,
        metrics: &Registry,
    ) -> Self {
        let (api, cluster, events) = (api.clone(), cluster.clone(), events.clone());
        Self { controller, api, cluster, events, metrics: metrics.clone() }
    }

    /// Whether it proves something that an object of these kinds is not known.
    pub fn may_rely_on(&self, kinds: &[Kind]) -> bool {
        let doubt = self.cluster.read().doubt(kinds);
        self.note("stale", doubt.is_some());
        if let Some(doubt) = &doubt {
            tracing::warn!(reason = doubt, "garbage collection stopped, what is known may be old");
        }
        doubt.is_none()
    }

    /// The NodeClaims as the API server has them now.
    pub async fn node_claims(&self) -> Result<Vec<NodeClaim>, Error> {
        self.api.list().await
    }

    /// Whether a pass may end what it found. If not, it says so.
    pub fn allows(&self, pass: &Pass<'_>) -> bool {
        let is_too_much = is_too_much(pass.names.len(), pass.fleet);
        self.note("limit", is_too_much);
        if is_too_much {
            let message = describe(pass);
            tracing::warn!("{message}");
            self.publish(pass, &message);
        }
        !is_too_much
    }

    fn note(&self, reason: &str, stopped: bool) {
        let value = f64::from(u8::from(stopped));
        self.metrics.set(&GARBAGE_COLLECTION_STOPPED, &[self.controller, reason], value);
    }

    /// Tells the NodePools concerned; all of them if none of those exists any more.
    fn publish(&self, pass: &Pass<'_>, message: &str) {
        let state = self.cluster.read();
        let mut told: Vec<_> =
            pass.node_pools.iter().filter_map(|name| state.node_pools.named(name).cloned()).collect();
        if told.is_empty() {
            told = state.node_pools.values().cloned().collect();
        }
        drop(state);
        for pool in told {
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            let dedupe = [self.controller, name];
            self.events.publish(&events::GARBAGE_COLLECTION_STOPPED, About::object(&*pool), message, &dedupe);
        }
    }
}

/// What was found, what is done about it, and what a person can do.
fn describe(pass: &Pass<'_>) -> String {
    let Pass { finding, names, fleet, .. } = pass;
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMED);
    let named = if more == 0 { named } else { format!("{named} and {more} more") };
    format!(
        "Garbage collection stopped: {} of {fleet} {finding}, which is more than a tenth of all, so none is removed. \
         Check that the API server shows every NodeClaim and Node; what should really go must be deleted by hand: \
         {named}",
        names.len()
    )
}

/// The NodePool that a claim is of; empty if it does not say.
pub fn node_pool(claim: &NodeClaim) -> &str {
    claim.metadata.labels.as_ref().and_then(|labels| labels.get(NODEPOOL)).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_tenth_and_at_least_two_are_too_much() {
        for (ended, fleet, expected) in [
            (0, 0, false),
            (1, 1, false),
            (1, 5, false),
            (2, 2, true),
            (2, 19, true),
            (2, 20, false),
            (10, 100, false),
            (11, 100, true),
            (100, 100, true),
        ] {
            assert_eq!(is_too_much(ended, fleet), expected, "{ended} of {fleet}");
        }
    }

    #[test]
    fn the_message_says_what_was_found_and_what_to_do() {
        let names: Vec<String> = (1..8).map(|number| format!("n{number}")).collect();
        let names = names.iter().map(String::as_str).collect();
        let pass = Pass { finding: "nodes have no NodeClaim", names, node_pools: BTreeSet::new(), fleet: 9 };
        assert_eq!(
            describe(&pass),
            "Garbage collection stopped: 7 of 9 nodes have no NodeClaim, which is more than a tenth of all, so none \
             is removed. Check that the API server shows every NodeClaim and Node; what should really go must be \
             deleted by hand: n1, n2, n3, n4, n5 and 2 more"
        );
    }
}
