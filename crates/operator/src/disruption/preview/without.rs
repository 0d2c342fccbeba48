//! What would happen if some nodes went, whatever keeps them. Entry: [`without_nodes`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cluster::costs::Costs;
use cluster::state::State;
use cluster::state_node::claim_provider_id;
use jiff::Timestamp;
use runtime::Settings;

use super::price;
use crate::catalogue::Types;
use crate::disruption::Class;
use crate::disruption::candidate::{Search, find};
use crate::disruption::launch::Launch;
use crate::disruption::scene::{Ask, Scene};
use crate::disruption::stay::{Kept, Why};

/// What happens if some nodes go.
#[derive(Clone, Debug, Default)]
pub struct Without {
    /// Types that the new nodes can become, the cheapest first.
    pub launches: Vec<Vec<String>>,
    /// Pods by the nodes that take them.
    pub moved: BTreeMap<String, Vec<String>>,
    /// Pods that have no place, with why.
    pub unplaced: BTreeMap<String, String>,
    /// What all nodes of pools cost per hour.
    pub price: f64,
    /// What is saved per hour.
    pub savings: f64,
    /// How many pods are evicted.
    pub evictions: usize,
    /// What keeps nodes from going by themselves.
    pub kept: BTreeMap<String, Why>,
}

/// A node of which nothing can be said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {node:?}: {why}")]
pub struct Unknown {
    /// Its name.
    pub node: String,
    /// Why.
    pub why: String,
}

/// What would happen if some nodes went, whatever keeps them. Fails with the nodes of which that cannot be said.
pub fn without_nodes(
    state: &State,
    types: &Types,
    settings: &Arc<Settings>,
    names: &[String],
    now: Timestamp,
) -> Result<Without, Vec<Unknown>> {
    let none = BTreeSet::new();
    let search =
        Search { types, queued: &none, relied_on: &none, class: Class::Repair, costs: Costs::default(), now };
    let found = find(state, search);
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let missing = names.iter().filter(|name| !found.candidates.iter().any(|it| it.name() == **name));
    let unknown: Vec<Unknown> = missing.map(|name| unknown(state, name, &found.stays)).collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let scene = Scene::new(state, types, settings, &none, now);
    let gone: Vec<_> = found.candidates.iter().filter(|it| names.contains(it.name())).collect();
    let simulated = scene.without(&gone, &Ask { blocked_pods: true, ..Ask::default() });
    let mut without = Without { price: price(state, types), ..Without::default() };
    let before: f64 = gone.iter().map(|it| it.price).sum();
    without.savings = before - simulated.launches.iter().map(Launch::price).sum::<f64>();
    without.evictions = gone.iter().map(|it| it.pods.len()).sum();
    without.launches = simulated.launches.iter().map(|launch| launch.new.types.clone()).collect();
    for node in &simulated.destinations {
        let name = node.origin.node.as_ref().or(node.origin.claim.as_ref()).map(ToString::to_string);
        let pods = node.pods.iter().map(|pod| pod.key.to_string()).collect();
        without.moved.insert(name.unwrap_or_default(), pods);
    }
    without.unplaced = simulated.unplaced.into_iter().map(|it| (it.pod.into(), it.why)).collect();
    let blocked = find(state, Search { class: Class::Graceful, ..search }).stays;
    let blocked = blocked.into_iter().filter(|it| names.contains(&*it.node));
    without.kept = blocked.map(|it| (it.node.to_string(), it.why.shown())).collect();
    Ok(without)
}

/// Why nothing can be said of a node.
fn unknown(state: &State, name: &str, stays: &[Kept]) -> Unknown {
    let why = || {
        if let Some(kept) = stays.iter().find(|kept| &*kept.node == name) {
            return kept.why.shown().to_string();
        }
        let Some(node) = state.nodes.named(name) else {
            return "there is none of this name; give names as `kubectl get nodes` shows them".to_owned();
        };
        let joined = state.joined();
        let ignored = |kind: &str, name: &str| {
            joined.ignored.iter().find(|it| it.kind == kind && &*it.name == name).map(ToString::to_string)
        };
        let claims = state.node_claims.values();
        let mut of_node = claims.filter(|claim| claim_provider_id(claim) == &*node.spec.provider_id);
        let of_claim = || ignored("NodeClaim", of_node.next()?.metadata.name.as_deref()?);
        ignored("Node", name)
            .or_else(of_claim)
            .unwrap_or_else(|| "it has no NodeClaim, so that no NodePool manages it".to_owned())
    };
    Unknown { node: name.to_owned(), why: why() }
}
