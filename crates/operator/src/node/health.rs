//! Repair as older releases did it, behind a flag: a node that has been broken for long enough goes at once, whatever
//! budgets and pods say.

use std::time::Duration;

use api::names::metrics::NODECLAIMS_UNHEALTHY_DISRUPTED;
use api::names::{annotations, events, labels, values};
use api::nodeclaim::NodeClaim;
use cloud::{RepairAction, RepairPolicy};
use cluster::eligibility::is_reschedulable;
use cluster::objects::Node;
use cluster::objects::others::NodeCondition;
use cluster::state::{Change, Key, Meta, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use regex::Regex;
use runtime::controller::Reconcile;
use runtime::events::About;
use runtime::{Again, Error, Outcome};
use serde_json::json;

use crate::Context;
use crate::managed::is_claim_managed;
use crate::node_claim::lifecycle::text;
use crate::node_claim::{deadline, disrupt, label, termination_mode};
use crate::text::snake_case;
use crate::watching::Watching;

/// When there is another look at a node that is not repaired because too many are broken.
const BLOCKED: Duration = Duration::from_mins(5);

/// A policy that replaces nodes.
#[derive(Debug)]
struct Policy {
    rule: RepairPolicy,
    /// Which reasons; any when absent.
    pattern: Option<Regex>,
}

impl Policy {
    fn fits(&self, condition: &NodeCondition) -> bool {
        self.rule.condition == &*condition.kind
            && self.rule.status == &*condition.status
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&condition.reason))
    }
}

/// The policies that count here. One whose pattern cannot be read fits nothing; the log says so.
fn policies(rules: Vec<RepairPolicy>) -> Vec<Policy> {
    let replacing = rules.into_iter().filter(|rule| rule.action == RepairAction::Replace);
    let compiled = replacing.filter_map(|rule| match Regex::new(rule.reason_pattern) {
        Ok(pattern) => {
            let pattern = Some(pattern).filter(|_| !rule.reason_pattern.is_empty());
            Some(Policy { rule, pattern })
        }
        Err(error) => {
            tracing::error!(condition = rule.condition, error = %error, "ignoring a repair policy");
            None
        }
    });
    compiled.collect()
}

/// Where too many nodes are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    Pool,
    Cluster,
}

/// What is to be done about a node.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    /// It is not broken.
    Nothing,
    /// It has not been broken for long enough.
    Later(Duration),
    /// Too many are broken.
    Blocked(Blocked),
    /// It goes, because of a condition.
    Repair(Box<str>),
}

fn decide(node: &Node, state: &State, policies: &[Policy], now: Timestamp) -> Decision {
    let Some((due, condition)) = first_due(node, policies) else { return Decision::Nothing };
    if due > now {
        return Decision::Later(Duration::try_from(due.duration_since(now)).unwrap_or_default());
    }
    let pool = node.metadata.labels.text(labels::NODEPOOL);
    let is_broken = |node: &Node| first_due(node, policies).is_some();
    let count = |nodes: &mut dyn Iterator<Item = &Node>| {
        let (mut all, mut broken) = (0_usize, 0);
        for node in nodes {
            all += 1;
            broken += usize::from(is_broken(node));
        }
        super::is_too_many(broken, all)
    };
    if pool.is_empty() {
        if count(&mut state.nodes.values().map(|node| &**node)) {
            return Decision::Blocked(Blocked::Cluster);
        }
    } else if count(&mut state.nodes_of_pool(pool).map(|node| &**node)) {
        return Decision::Blocked(Blocked::Pool);
    }
    Decision::Repair(condition.into())
}

/// When the first of a node's conditions has lasted too long, and which.
fn first_due<'a>(node: &'a Node, policies: &[Policy]) -> Option<(Timestamp, &'a str)> {
    let fitting = node.status.conditions.iter().flat_map(|condition| {
        let fitting = policies.iter().filter(|policy| policy.fits(condition));
        fitting.map(move |policy| {
            let since = condition.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
            let due = since.saturating_add(policy.rule.toleration).unwrap_or(Timestamp::MAX);
            (due, &*condition.kind)
        })
    });
    fitting.min_by_key(|(due, _)| *due)
}

/// Repairs nodes as older releases did.
pub(super) struct Health {
    context: Context,
    policies: Vec<Policy>,
}

impl Health {
    /// Nothing unless it is asked for and the cloud knows when nodes are broken.
    pub(super) fn new(context: &Context) -> Option<Self> {
        let settings = &context.settings;
        if !settings.gates.node_repair || !settings.legacy_node_repair {
            return None;
        }
        let policies = policies(context.cloud.repair_policies());
        (!policies.is_empty()).then(|| Self { context: context.clone(), policies })
    }

    /// Says on every object that it concerns why a node is not repaired.
    fn tell(&self, node: &Node, claim: &NodeClaim, blocked: Blocked) {
        let message = match blocked {
            Blocked::Pool => "more than 20% nodes are unhealthy in the nodepool",
            Blocked::Cluster => "more then 20% nodes are unhealthy in the cluster",
        };
        let pool = node.metadata.labels.text(labels::NODEPOOL);
        let pool = self.context.cluster.read().node_pools.named(pool).cloned();
        let about =
            [Some(About::object(node)), Some(About::object(claim)), pool.map(|pool| About::object(&*pool))];
        for about in about.into_iter().flatten() {
            let uid = about.uid.clone();
            self.context.events.publish(&events::NODE_REPAIR_BLOCKED, about, message, &[&uid]);
        }
    }

    /// Lets a node go at once.
    async fn repair(&self, claim: &NodeClaim, pods: usize, condition: &str) -> Result<(), Error> {
        let now = self.context.now();
        let known = deadline(claim).and_then(Result::ok);
        if known.is_none_or(|known| known > now) {
            let change =
                json!({"metadata": {"annotations": {annotations::TERMINATION_TIMESTAMP: text(now)}}});
            self.context.api.patch::<NodeClaim>(&claim.key(), &change).await?;
        }
        if claim.metadata.is_deleting() {
            return Ok(());
        }
        tracing::info!(NodeClaim = crate::node_claim::name(claim), condition, "deleting unhealthy node");
        disrupt(&self.context, claim, values::UNHEALTHY, Some(pods)).await?;
        let image = claim.status.as_ref().map_or("", |status| &status.image_id);
        let series = [
            &*snake_case(condition),
            label(claim, labels::NODEPOOL),
            label(claim, labels::CAPACITY_TYPE),
            image,
            termination_mode(claim),
        ];
        self.context.metrics.add(&NODECLAIMS_UNHEALTHY_DISRUPTED, &series, 1.0);
        Ok(())
    }
}

impl Reconcile for Health {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let (node, claim, pods, decision) = {
                let state = self.context.cluster.read();
                let Some(node) = state.nodes.get(key) else { return Ok(Again::No) };
                let claim = state.claim_of_node(node);
                let Some(claim) = claim.filter(|claim| is_claim_managed(claim, state.provider())) else {
                    return Ok(Again::No);
                };
                let pods = state.pods_on(&node.metadata.name).filter(|pod| is_reschedulable(pod)).count();
                let decision = decide(node, &state, &self.policies, self.context.now());
                (node.clone(), claim.clone(), pods, decision)
            };
            match decision {
                Decision::Nothing => Ok(Again::No),
                Decision::Later(wait) => Ok(Again::After(wait)),
                Decision::Blocked(blocked) => {
                    self.tell(&node, &claim, blocked);
                    Ok(Again::After(BLOCKED))
                }
                Decision::Repair(condition) => match self.repair(&claim, pods, &condition).await {
                    Err(error) if !error.is_not_found() => Err(error),
                    _ => Ok(Again::No),
                },
            }
        }
        .boxed()
    }
}

impl Watching for Health {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        match (&change.old, &change.new) {
            (Some(Object::Node(old)), Some(Object::Node(new))) => {
                let is_same = old.status.conditions == new.status.conditions;
                if is_same { Vec::new() } else { vec![new.key()] }
            }
            (None, Some(Object::Node(new))) => vec![new.key()],
            // A node may have been there before its claim.
            (None, Some(Object::NodeClaim(claim))) => {
                state.nodes_of(crate::node_claim::provider_id(claim)).map(|node| node.key()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.nodes.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
