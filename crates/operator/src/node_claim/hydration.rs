//! Hydration: claims that older releases wrote get what is expected of claims today.

use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use runtime::controller::Reconcile;
use runtime::{Again, Outcome};
use serde_json::{Value, json};

use super::label;
use crate::Context;
use crate::managed::is_claim_managed;
use crate::node::node_class_label;
use crate::watching::Watching;

/// The patch that completes a claim, if something is missing.
fn decide(claim: &NodeClaim, provider: Provider) -> Option<Value> {
    let (key, class) = (node_class_label(provider), &claim.spec.node_class_ref.name);
    let is_missing = is_claim_managed(claim, provider) && label(claim, &key) != class;
    is_missing.then(|| json!({"metadata": {"labels": {key: class}}}))
}

/// Completes claims.
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
            let claim = context.cluster.read().node_claims.get(key).cloned();
            let Some(patch) = claim.and_then(|claim| decide(&claim, context.provider())) else {
                return Ok(Again::No);
            };
            match context.api.patch::<NodeClaim>(key, &patch).await {
                Err(error) if !error.is_not_found() => Err(error),
                _ => Ok(Again::No),
            }
        }
        .boxed()
    }
}

impl Watching for Hydration {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        match &change.new {
            Some(Object::NodeClaim(claim)) if decide(claim, state.provider()).is_some() => vec![claim.key()],
            _ => Vec::new(),
        }
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.node_claims.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::claim;

    #[test]
    fn a_claim_says_which_node_class_it_has() {
        let patch = json!({"metadata": {"labels": {"karpenter.kwok.sh/kwoknodeclass": "default"}}});
        assert_eq!(decide(&claim("c", &json!({})), Provider::Kwok), Some(patch.clone()));
        assert_eq!(decide(&claim("c", &patch), Provider::Kwok), None);
        assert_eq!(decide(&claim("c", &json!({})), Provider::Aws), None);
    }
}
