//! Instance garbage collection: a Node without a claim is deleted, and the Node of an instance that was launched, but
//! interrupted before it registered, is created.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::HasConditions as _;
use api::names::conditions::node_claim;
use api::names::controllers::kwok::INSTANCE_GARBAGE_COLLECTION;
use api::names::labels;
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cloud::GarbageCollection;
use cloud::garbage_collection::Pass;
use cluster::objects::Node;
use cluster::state::{Key, Kind, State};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::controller::{Controller, Reconcile};
use runtime::events::Recorder;
use runtime::metrics::Registry;
use runtime::queue::{Backoff, Queue};
use runtime::{Again, Outcome};

use crate::machine::{Machine, node_name, provider_id};
use crate::names;
use crate::provider::{Kwok, delay_of};

/// How often it is looked.
const PERIOD: Duration = Duration::from_mins(2);
/// How long everything may take that happens between two writes of one launch.
const GRACE: Duration = Duration::from_secs(30);

/// What is to be done.
#[derive(Debug, Default)]
pub struct Lost {
    /// Nodes of instances that nobody knows.
    pub orphans: Vec<Arc<Node>>,
    /// Claims whose instance never registered a Node.
    pub unregistered: Vec<Arc<NodeClaim>>,
    /// When the next instance should have registered its Node.
    pub next: Option<Timestamp>,
}

/// What lost its counterpart.
pub fn decide(state: &State, now: Timestamp) -> Lost {
    let is_over = |since: Option<&Time>, wait: Duration| {
        since.is_some_and(|since| now.duration_since(since.0).unsigned_abs() > wait && since.0 < now)
    };
    let orphans = state.nodes.values().filter(|node| {
        is_over(node.metadata.creation_timestamp.as_ref(), GRACE)
            && !node.metadata.is_deleting()
            && is_ours(node)
            && state.claims_of(&node.spec.provider_id).next().is_none()
            && !is_being_launched(state.node_claims.named(hostname(node)).map(|claim| &**claim), node)
    });
    let mut lost = Lost { orphans: orphans.cloned().collect(), ..Lost::default() };
    for claim in state.node_claims.values() {
        match registers_until(state, claim) {
            Some(due) if due < now => lost.unregistered.push(Arc::clone(claim)),
            due => lost.next = lost.next.into_iter().chain(due).min(),
        }
    }
    lost
}

/// Until when the Node of a launched instance must have appeared; nothing if it has.
fn registers_until(state: &State, claim: &NodeClaim) -> Option<Timestamp> {
    let launched = claim.condition(node_claim::LAUNCHED).filter(|it| it.status == ConditionStatus::True)?;
    let name = claim.status.as_ref().and_then(|status| node_name(&status.provider_id))?;
    let is_waiting = claim.metadata.deletion_timestamp.is_none()
        && !claim.is_true(node_claim::REGISTERED)
        && state.nodes.named(name).is_none();
    let class = state.node_classes.named(&claim.spec.node_class_ref.name);
    let delay = class.and_then(|class| delay_of(&class.spec).ok()).unwrap_or_default();
    // A delay beyond the end of time is waited for until then.
    is_waiting.then(|| launched.last_transition_time.0.checked_add(delay + GRACE).unwrap_or(Timestamp::MAX))
}

/// Whether this provider, or the original one, made the Node. Others have simulated nodes, too.
fn is_ours(node: &Node) -> bool {
    let name = &node.metadata.name;
    *node.spec.provider_id == *provider_id(name)
        && names::is_of(name, node.metadata.labels.text(labels::HOSTNAME))
}

/// The claim that a Node was launched for, by name.
fn hostname(node: &Node) -> &str {
    node.metadata.labels.text(labels::HOSTNAME)
}

/// Whether there is a claim that only has not been told of its instance yet.
fn is_being_launched(claim: Option<&NodeClaim>, node: &Node) -> bool {
    claim.is_some_and(|claim| {
        claim.status.as_ref().is_none_or(|status| status.provider_id.is_empty())
            && claim.metadata.deletion_timestamp.is_none()
            && claim.metadata.creation_timestamp <= node.metadata.creation_timestamp
    })
}

/// Whether the API server has no claim for a Node either.
fn is_unclaimed(node: &Node, claims: &[NodeClaim]) -> bool {
    let id = &*node.spec.provider_id;
    let claimed = claims.iter().filter_map(|claim| claim.status.as_ref());
    let own = claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(hostname(node)));
    !claimed.into_iter().any(|status| status.provider_id == id) && !is_being_launched(own, node)
}

/// Brings instances and claims together again.
#[derive(Debug)]
pub struct Collector {
    kwok: Kwok,
    collection: GarbageCollection,
}

impl Collector {
    async fn collect(&self) -> Outcome {
        let Self { kwok, collection } = self;
        if !collection.may_rely_on(&[Kind::NodeClaim, Kind::Node, Kind::NodeClass]) {
            return Ok(Again::After(PERIOD));
        }
        let Lost { orphans, unregistered, next } = {
            let now = kwok.clock.now();
            decide(&kwok.cluster.read(), now)
        };
        let mut failed = None;
        for node in self.confirmed(orphans).await? {
            match kwok.api.delete(&*node).await {
                Ok(()) => tracing::info!(
                    Node = &*node.metadata.name,
                    "provider-id" = &*node.spec.provider_id,
                    "garbage collected instance"
                ),
                Err(error) if error.is_outrun() => {}
                Err(error) => failed = Some(error),
            }
        }
        for claim in unregistered {
            let id = claim.status.as_ref().map_or("", |status| &status.provider_id);
            let Some(name) = node_name(id).filter(|name| !kwok.is_launching(name)) else { continue };
            let machine = Machine::known(name.to_owned(), &claim);
            match kwok.api.create::<Node>("", &machine.node()).await {
                Ok(_) => tracing::info!(Node = name, "created node of interrupted launch"),
                Err(error) if error.is_conflict() => {}
                Err(error) => failed = Some(error),
            }
        }
        // An interrupted launch is resumed as soon as it is known to be one.
        let soon = next.map_or(PERIOD, |next| kwok.clock.until(next) + Duration::from_secs(1));
        failed.map_or(Ok(Again::After(soon.min(PERIOD))), Err)
    }

    /// The orphans that the API server has no claim for either; none if they are too many to be believed.
    async fn confirmed(&self, mut orphans: Vec<Arc<Node>>) -> Result<Vec<Arc<Node>>, runtime::Error> {
        if orphans.is_empty() {
            return Ok(orphans);
        }
        let claims = self.collection.node_claims().await?;
        orphans.retain(|node| is_unclaimed(node, &claims));
        let pass = Pass {
            finding: "simulated nodes have no NodeClaim",
            names: orphans.iter().map(|node| &*node.metadata.name).collect(),
            node_pools: orphans.iter().map(|node| node.metadata.labels.text(labels::NODEPOOL)).collect(),
            fleet: self.kwok.cluster.read().nodes.values().filter(|node| is_ours(node)).count(),
        };
        let is_allowed = self.collection.allows(&pass);
        Ok(if is_allowed { orphans } else { Vec::new() })
    }
}

impl Reconcile for Collector {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        self.collect().boxed()
    }
}

impl Kwok {
    /// The controllers that belong to this cloud.
    pub fn controllers(&self, events: &Recorder, metrics: &Registry) -> Vec<Controller> {
        let name = INSTANCE_GARBAGE_COLLECTION;
        let collection = GarbageCollection::new(name, &self.api, &self.cluster, events, metrics);
        let queue = Queue::new(Backoff::millis(1000, 120_000));
        queue.add(Key::default());
        vec![Controller {
            name,
            queue: Arc::new(queue),
            workers: 1,
            limiter: None,
            reconcile: Arc::new(Collector { kwok: self.clone(), collection }),
        }]
    }
}

#[cfg(test)]
mod tests {
    use api::provider::Provider;
    use cluster::state::Seen;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_an_orphan_only_if_the_server_has_no_claim_for_it() {
        let name = "kwok-c-calm-lynx-7-abcdefghij-1".to_owned();
        let node = json!({
            "metadata": {
                "name": name, "labels": {"kubernetes.io/hostname": "c"},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"providerID": provider_id(&name)},
        });
        let mut state = State::awaiting(Provider::Kwok, &[]);
        state.observe(Seen::Applied(Kind::Node.decode(&node.to_string()).unwrap()));
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let orphans = decide(&state, now).orphans;
        assert_eq!(orphans.len(), 1);
        let claim = |name: &str, id: &str, created: &str| -> NodeClaim {
            let reference = json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "n"});
            serde_json::from_value(json!({
                "metadata": {"name": name, "creationTimestamp": created},
                "spec": {"requirements": [], "nodeClassRef": reference},
                "status": {"providerID": id},
            }))
            .unwrap()
        };
        let before = "2025-12-31T00:00:00Z";
        for (claims, expected) in [
            (vec![], true),
            (vec![claim("other", "kwok://other", before)], true),
            (vec![claim("other", &provider_id(&name), before)], false),
            (vec![claim("c", "", before)], false),
            // A later claim of the same name will get an instance of its own.
            (vec![claim("c", "", "2026-01-01T00:30:00Z")], true),
        ] {
            assert_eq!(is_unclaimed(&orphans[0], &claims), expected, "{claims:?}");
        }
    }
}
