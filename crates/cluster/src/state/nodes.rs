//! State nodes of the state, and what only this process knows of them: marks and nominations.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::kind::Object;
use super::{Change, State};
use crate::state_node::{self, Joined, StateNode, check_node_class, claim_provider_id, node_provider_id};

/// For how long pods are expected on a node that was found for them: until the scheduler surely had its turn.
pub fn nomination_window(batch_max: SignedDuration) -> SignedDuration {
    batch_max.saturating_mul(2).max(SignedDuration::from_secs(10))
}

/// How an instance looked when its Node or claim last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracked {
    initialized: bool,
    marked_for_deletion: bool,
}

impl State {
    /// All nodes and launched claims, joined by the instance behind them.
    ///
    /// Claims that are not launched are not among them: they are no capacity yet, and [`State::sync`] says to
    /// wait for them.
    pub fn joined(&self) -> Joined<'_> {
        let nodes = self.stores.nodes.values().map(Arc::as_ref);
        let claims = self.stores.node_claims.values().map(Arc::as_ref);
        let mut joined = state_node::join(nodes, claims, self.provider);
        for state in &mut joined.nodes {
            self.remember(state);
        }
        joined
    }

    /// As [`State::joined`], only those that count. Initialised nodes come first, then names decide.
    pub fn state_nodes(&self) -> Vec<StateNode<'_>> {
        self.joined().nodes
    }

    /// The node and claim of an instance.
    pub fn state_node(&self, provider_id: &str) -> Option<StateNode<'_>> {
        if provider_id.is_empty() {
            return None;
        }
        let mut claims = self.claims_of(provider_id).map(Arc::as_ref);
        let claim = claims.find(|claim| check_node_class(&claim.spec.node_class_ref, self.provider).is_ok());
        // Nodes that go by their name are in no index.
        let named = self.stores.nodes.named(provider_id).filter(|node| node.spec.provider_id.is_empty());
        let mut nodes = self.nodes_of(provider_id).chain(named).map(Arc::as_ref);
        let node = nodes.find(|node| node_provider_id(node).is_ok());
        if node.is_none() && claim.is_none() {
            return None;
        }
        let mut state = StateNode { node, claim, ..StateNode::default() };
        self.remember(&mut state);
        Some(state)
    }

    /// The state node of the Node of this name, if it counts.
    pub fn state_node_named(&self, node: &str) -> Option<StateNode<'_>> {
        let id = node_provider_id(self.stores.nodes.named(node)?).ok()?;
        self.state_node(id).filter(|state| state.node.is_some_and(|found| &*found.metadata.name == node))
    }

    fn remember(&self, state: &mut StateNode<'_>) {
        let id = state.provider_id();
        state.marked = self.marks.contains(id);
        state.nominated_until = self.nominations.get(id).copied();
    }

    /// Notes that instances are given up, before the API knows. Unknown ones are not noted.
    pub fn mark_for_deletion<'i>(&mut self, provider_ids: impl IntoIterator<Item = &'i str>) {
        for id in provider_ids {
            if self.tracked.contains_key(id) {
                self.marks.insert(id.into());
            }
        }
    }

    /// Takes back what [`State::mark_for_deletion`] and [`State::mark_pending_disruption`] noted.
    pub fn unmark_for_deletion<'i>(&mut self, provider_ids: impl IntoIterator<Item = &'i str>) {
        for id in provider_ids {
            self.marks.remove(id);
            let claims: Vec<_> = self.claims_of(id).filter_map(|claim| claim.metadata.name.clone()).collect();
            for claim in claims {
                self.pending_disruption.remove(claim.as_str());
            }
        }
    }

    /// Whether this process has decided to give up an instance.
    pub fn is_marked(&self, provider_id: &str) -> bool {
        self.marks.contains(provider_id)
    }

    /// Notes that pods are expected on an instance until a time; a later time than before extends it.
    pub fn nominate(&mut self, provider_id: &str, until: Timestamp) {
        if self.tracked.contains_key(provider_id) {
            let known = self.nominations.entry(provider_id.into()).or_insert(until);
            *known = until.max(*known);
        }
    }

    /// Whether pods are expected on an instance.
    pub fn is_nominated(&self, provider_id: &str, now: Timestamp) -> bool {
        self.nominations.get(provider_id).is_some_and(|until| now < *until)
    }

    /// How many virtual pods of capacity buffers the last round has put on an instance.
    pub fn buffer_pods(&self, provider_id: &str) -> u32 {
        self.buffer_pods.get(provider_id).copied().unwrap_or_default()
    }

    /// Replaces the numbers of virtual pods by instance.
    pub fn set_buffer_pods(&mut self, counts: BTreeMap<Box<str>, u32>) {
        if self.buffer_pods != counts {
            self.buffer_pods = counts;
            self.mark_unconsolidated();
        }
    }

    /// A Node or a NodeClaim has changed.
    pub(super) fn note_instances(&mut self, change: &Change) {
        let ids = [&change.old, &change.new].map(|object| object.as_ref().and_then(provider_id));
        if change.new.is_none() || lets_others_in(change) {
            self.mark_unconsolidated();
        }
        if let Some(Object::NodeClaim(gone)) = change.old.as_ref().filter(|_| change.new.is_none()) {
            self.pending_disruption.remove(gone.metadata.name.as_deref().unwrap_or_default());
        }
        let [old, new] = ids;
        for id in old.filter(|old| Some(*old) != new).into_iter().chain(new) {
            self.track(id);
        }
    }

    fn track(&mut self, id: &str) {
        let now = self.state_node(id).map(|state| Tracked {
            initialized: state.is_initialized(),
            marked_for_deletion: state.is_marked_for_deletion(),
        });
        let before = if let Some(now) = now {
            self.tracked.insert(id.into(), now)
        } else {
            self.marks.remove(id);
            self.nominations.remove(id);
            self.buffer_pods.remove(id);
            self.tracked.remove(id)
        };
        if before != now {
            self.mark_unconsolidated();
        }
    }
}

/// Whether other pods may run on a node than before.
fn lets_others_in(change: &Change) -> bool {
    let (Some(Object::Node(old)), Some(Object::Node(new))) = (&change.old, &change.new) else { return false };
    old.spec.taints != new.spec.taints || old.spec.unschedulable != new.spec.unschedulable
}

fn provider_id(object: &Object) -> Option<&str> {
    match object {
        // One that does not count may have counted before: both names must be looked at again.
        Object::Node(node) if node.spec.provider_id.is_empty() => Some(&node.metadata.name),
        Object::Node(node) => Some(&node.spec.provider_id),
        Object::NodeClaim(claim) => Some(claim_provider_id(claim)).filter(|id| !id.is_empty()),
        _ => None,
    }
}
