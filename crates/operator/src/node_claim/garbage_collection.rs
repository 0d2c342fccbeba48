//! NodeClaim garbage collection: claims whose instance is gone.
//!
//! Instances without a claim are the cloud's business.
//! Where instances are more than Nodes, the cloud is asked for each one before its claim is deleted, so that nothing
//! can be ended by it; where they are not, more than a tenth of all claims are never deleted in one pass.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions;
use api::names::conditions::node_claim::REGISTERED;
use api::names::controllers::NODE_CLAIM_GARBAGE_COLLECTION as GARBAGE_COLLECTION;
use api::names::{labels, values};
use api::nodeclaim::NodeClaim;
use api::provider::Provider;
use cloud::garbage_collection::Pass;
use cluster::objects::Node;
use cluster::state::{Change, Key, Kind, Meta, State};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use runtime::controller::Reconcile;
use runtime::{Again, Outcome};

use super::expiration::pods_to_move;
use super::{disrupt, label, name, provider_id};
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
pub(super) struct GarbageCollection {
    context: Context,
    rules: cloud::GarbageCollection,
}

impl GarbageCollection {
    pub(super) fn new(context: &Context) -> Self {
        let Context { api, cluster, events, metrics, .. } = context;
        let rules = cloud::GarbageCollection::new(GARBAGE_COLLECTION, api, cluster, events, metrics);
        Self { context: context.clone(), rules }
    }

    async fn collect(&self) -> Outcome {
        let Self { context, rules } = self;
        if !rules.may_rely_on(&[Kind::NodeClaim, Kind::Node]) {
            return Ok(if context.cluster.is_listed() { OFTEN } else { Again::secs(1) });
        }
        // First the claims, then the instances: what is launched in between is not missed.
        let claims = with_instance(&context.cluster.read(), context.provider());
        let fleet = claims.len();
        let instances = context.cloud.list().await?;
        let running: BTreeSet<&str> =
            (instances.iter()).filter(|instance| !instance.metadata.is_deleting()).map(provider_id).collect();
        let missing: Vec<Arc<NodeClaim>> = {
            let state = context.cluster.read();
            let missing = claims.into_iter().filter(|claim| !running.contains(provider_id(claim)));
            missing.filter(|claim| is_dead(claim, &state)).collect()
        };
        let confirmed = stream::iter(missing)
            .map(|claim| async move { self.is_gone(&claim).await.map(|gone| gone.then_some(claim)) })
            .buffer_unordered(PARALLEL);
        let dead: Vec<Option<Arc<NodeClaim>>> = confirmed.try_collect().await?;
        let dead: Vec<Arc<NodeClaim>> = dead.into_iter().flatten().collect();
        let pass = Pass {
            finding: "NodeClaims have no Node",
            names: dead.iter().map(|claim| name(claim)).collect(),
            node_pools: dead.iter().map(|claim| label(claim, labels::NODEPOOL)).collect(),
            fleet,
        };
        if context.cloud.instances_are_nodes() && !rules.allows(&pass) {
            return Ok(OFTEN);
        }
        let deleted = stream::iter(dead).map(|claim| async move {
            tracing::info!(
                NodeClaim = name(&claim),
                "garbage collecting nodeclaim with no cloudprovider representation"
            );
            let pods = pods_to_move(&claim, &context.cluster.read());
            disrupt(context, &claim, values::GARBAGE_COLLECTED, Some(pods)).await
        });
        let outcomes: Vec<_> = deleted.buffer_unordered(PARALLEL).collect().await;
        outcomes.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(OFTEN)
    }

    /// Whether the cloud has no such instance, and the API server no such node that is ready.
    async fn is_gone(&self, claim: &NodeClaim) -> Result<bool, runtime::Error> {
        match self.context.cloud.get(provider_id(claim)).await {
            Ok(instance) if !instance.metadata.is_deleting() => return Ok(false),
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
        let node_name = claim.status.as_ref().map_or("", |status| &status.node_name);
        if node_name.is_empty() {
            return Ok(true);
        }
        let node = self.context.api.read::<Node>(&Key::cluster(node_name)).await?;
        Ok(node.is_none_or(|node| *node.spec.provider_id != *provider_id(claim) || !node.is_ready()))
    }
}

impl Reconcile for GarbageCollection {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        self.collect().boxed()
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
