//! Hydration: Nodes that older releases registered get what is expected of Nodes today.

use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use cluster::objects::Node;
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use runtime::controller::Reconcile;
use runtime::{Again, Outcome};
use serde_json::{Value, json};

use super::node_class_label;
use crate::Context;
use crate::managed::is_claim_managed;
use crate::watching::Watching;

/// The patch that completes the Node of a claim, if something is missing.
fn decide(node: &Node, claim: &NodeClaim, provider: Provider) -> Option<Value> {
    let (key, class) = (node_class_label(provider), &claim.spec.node_class_ref.name);
    let is_missing = is_claim_managed(claim, provider) && node.metadata.labels.text(&key) != class;
    is_missing.then(|| json!({"metadata": {"labels": {key: class}}}))
}

/// Completes Nodes.
pub(super) struct Hydration(Context);

impl Hydration {
    pub(super) fn new(context: &Context) -> Self {
        Self(context.clone())
    }
}

impl Reconcile for Hydration {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            let patch = {
                let state = context.cluster.read();
                let Some(node) = state.nodes.get(key) else { return Ok(Again::No) };
                let claim = state.claim_of_node(node);
                claim.and_then(|claim| decide(node, claim, context.provider()))
            };
            let Some(patch) = patch else { return Ok(Again::No) };
            match context.api.patch::<Node>(key, &patch).await {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(Again::No),
            }
        }
        .boxed()
    }
}

impl Watching for Hydration {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        let is_missing = |node: &Node| {
            state.claim_of_node(node).is_some_and(|claim| decide(node, claim, state.provider()).is_some())
        };
        match &change.new {
            Some(Object::Node(node)) if is_missing(node) => vec![node.key()],
            _ => Vec::new(),
        }
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.nodes.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::claim;

    #[test]
    fn a_node_says_which_node_class_it_has() {
        let node = |value: &Value| serde_json::from_value::<Node>(value.clone()).unwrap();
        let patch = json!({"metadata": {"labels": {"karpenter.kwok.sh/kwoknodeclass": "default"}}});
        let claim = claim("c", &json!({}));
        let bare = node(&json!({"metadata": {"name": "n"}}));
        assert_eq!(decide(&bare, &claim, Provider::Kwok), Some(patch.clone()));
        assert_eq!(decide(&node(&patch), &claim, Provider::Kwok), None);
        assert_eq!(decide(&bare, &claim, Provider::Aws), None);
    }
}
