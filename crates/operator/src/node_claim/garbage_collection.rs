//! Garbage collection: claims whose instance is gone.
//!
//! Instances without a claim are the cloud's business.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::REGISTERED;
use api::names::values;
use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use cluster::state::{Change, Key, Kind, Meta, State};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use runtime::controller::Reconcile;
use runtime::{Again, Outcome};

use super::expiration::pods_to_move;
use super::{disrupt, name, provider_id};
use crate::Context;
use crate::managed::is_claim_managed;
use crate::watching::Watching;

/// How often the cloud is asked what it has.
const OFTEN: Again = Again::After(Duration::from_mins(2));
/// How many claims are deleted at the same time.
const PARALLEL: usize = 20;

/// The claims that must have an instance.
fn with_instance(state: &State, provider: Provider) -> Vec<Arc<NodeClaim>> {
    let claims = state.node_claims.values().filter(|claim| {
        is_claim_managed(claim, provider) && claim.is_true(REGISTERED) && !claim.metadata.is_deleting()
    });
    claims.cloned().collect()
}

/// Whether a claim is to be deleted whose instance the cloud does not list. When in doubt it stays: a node that
/// says it is ready lives somewhere, where there are several nodes nobody knows which one counts, and a node that
/// cannot be read may be the one.
fn is_dead(claim: &NodeClaim, state: &State) -> bool {
    let mut nodes = state.nodes_of(provider_id(claim));
    match (nodes.next(), nodes.next()) {
        (None, _) => !state.has_unreadable(Kind::Node),
        (Some(node), None) => !node.is_ready(),
        (Some(_), Some(_)) => false,
    }
}

/// Deletes claims whose instance is gone.
pub(super) struct GarbageCollection(Context);

impl GarbageCollection {
    pub(super) fn new(context: &Context) -> Self {
        Self(context.clone())
    }
}

impl Reconcile for GarbageCollection {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let Self(context) = self;
            if !context.cluster.is_listed() {
                return Ok(Again::secs(1));
            }
            // First the claims, then the instances: what is launched in between is not missed.
            let claims = with_instance(&context.cluster.read(), context.provider());
            let instances = context.cloud.list().await?;
            let running: BTreeSet<&str> = (instances.iter())
                .filter(|instance| !instance.metadata.is_deleting())
                .map(provider_id)
                .collect();
            let dead: Vec<(Arc<NodeClaim>, usize)> = {
                let state = context.cluster.read();
                let missing = claims.into_iter().filter(|claim| !running.contains(provider_id(claim)));
                let dead = missing.filter(|claim| is_dead(claim, &state));
                dead.map(|claim| (Arc::clone(&claim), pods_to_move(&claim, &state))).collect()
            };
            let deleted = stream::iter(dead).map(|(claim, pods)| async move {
                tracing::info!(
                    NodeClaim = name(&claim),
                    "garbage collecting nodeclaim with no cloudprovider representation"
                );
                disrupt(context, &claim, values::GARBAGE_COLLECTED, Some(pods)).await
            });
            let outcomes: Vec<_> = deleted.buffer_unordered(PARALLEL).collect().await;
            outcomes.into_iter().collect::<Result<Vec<()>, _>>()?;
            Ok(OFTEN)
        }
        .boxed()
    }
}

impl Watching for GarbageCollection {
    fn watch(&self, _: &Change, _: &State) -> Vec<Key> {
        Vec::new()
    }

    fn existing(&self, _: &State) -> Vec<Key> {
        vec![Key::default()]
    }
}

#[cfg(test)]
mod tests {
    use cluster::state::Seen;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::claim;

    fn registered(change: &Value) -> NodeClaim {
        let condition =
            json!({"type": "Registered", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let mut value = json!({"status": {"providerID": "p", "conditions": [condition]}});
        crate::testing::merge(&mut value, change);
        claim("c", &value)
    }

    #[track_caller]
    fn check(nodes: &[&str], expected: bool) {
        let mut state = State::awaiting(Provider::Kwok, &[]);
        for (index, ready) in nodes.iter().enumerate() {
            let node = json!({
                "metadata": {"name": format!("n{index}")}, "spec": {"providerID": "p"},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            state.observe(Seen::Applied(Kind::Node.decode(&node.to_string()).unwrap()));
        }
        assert_eq!(is_dead(&registered(&json!({})), &state), expected, "{nodes:?}");
    }

    #[test]
    fn a_claim_is_dead_only_when_nobody_can_be_alive() {
        check(&[], true);
        check(&["False"], true);
        check(&["Unknown"], true);
        check(&["True"], false);
        check(&["False", "False"], false);
        let mut state = State::awaiting(Provider::Kwok, &[]);
        state.observe(Seen::Unreadable(Kind::Node, Key::cluster("odd"), "why".into()));
        assert!(!is_dead(&registered(&json!({})), &state));
    }

    #[test]
    fn only_registered_claims_that_stay_must_have_an_instance() {
        let mut state = State::awaiting(Provider::Kwok, &[]);
        let other = json!({"spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}});
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        for (name, mut claim) in [
            ("counts", registered(&json!({}))),
            ("foreign", registered(&other)),
            ("going", registered(&going)),
            ("unregistered", claim("c", &json!({}))),
        ] {
            claim.metadata.name = Some(name.to_owned());
            let text = serde_json::to_string(&claim).unwrap();
            state.observe(Seen::Applied(Kind::NodeClaim.decode(&text).unwrap()));
        }
        let found = with_instance(&state, Provider::Kwok);
        assert_eq!(found.iter().map(|claim| name(claim)).collect::<Vec<_>>(), ["counts"]);
    }
}
