//! Reboot: a node that is to be booted again is fenced, drained, booted, and used again once it is back.
//!
//! ```text
//!   Rebooting=True RebootRequested ──► fence ──► drain ──► ask the provider ──► RebootIssued ──► new boot, Ready
//!        invalid: False RebootFailed      anything else that fails: the claim is deleted       False RebootSucceeded
//! ```
//!
//! What must outlive this process is in annotations of the claim.

mod decide;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::{INITIALIZED, REBOOTING};
use api::names::metrics::{NODES_REBOOT_DURATION, NODES_REBOOT_RECOVERY_DURATION, NODES_REBOOTS};
use api::names::{annotations, events, labels, messages, reasons, taints, values};
use api::nodeclaim::NodeClaim;
use api::shared::ConditionStatus;
use cluster::objects::Node;
use cluster::state::{Change, Key, Object, State, Watched};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use runtime::controller::Reconcile;
use runtime::events::About;
use runtime::{Again, Error, Outcome};
use serde_json::{Value, json};

use super::lifecycle::text;
use super::{lock, name, provider_id, write_status};
use crate::Context;
use crate::managed::is_claim_managed;
use crate::node::termination::eviction::{Evictions, Mode};
use crate::node::{Mark, taint_change};
use crate::watching::Watching;
pub(crate) use decide::is_worn_out;
use decide::{Failure, Step, decide};

/// How many steps are taken at once at most; what is left comes later.
const STEPS: usize = 8;

/// What is to be done next about a claim, and its node.
struct Next {
    claim: Arc<NodeClaim>,
    node: Option<Arc<Node>>,
    step: Step,
}

/// Boots nodes again.
pub(crate) struct Reboot {
    context: Context,
    evictions: Evictions,
}

impl Reboot {
    pub(crate) fn new(context: &Context, evictions: Evictions) -> Self {
        Self { context: context.clone(), evictions }
    }

    /// The claim, its node, and what is to be done next.
    fn next(&self, key: &Key) -> Result<Option<Next>, Error> {
        let state = self.context.cluster.read();
        let claim = state.node_claims.get(key).cloned();
        let Some(claim) = claim.filter(|claim| is_claim_managed(claim, state.provider())) else {
            return Ok(None);
        };
        if !claim.is_true(REBOOTING) {
            return Ok(None);
        }
        let nodes: Vec<&Arc<Node>> = state.nodes_of(provider_id(&claim)).collect();
        if nodes.len() > 1 {
            let message = format!("rebooting nodeclaim, several nodes found (NodeClaim={})", name(&claim));
            return Err(Error::Other(message));
        }
        let node = nodes.first().map(|node| Arc::clone(node));
        let pods = state.pods_on(node.as_ref().map_or("", |node| &node.metadata.name));
        let pods = pods.filter(|_| node.is_some());
        let step = decide(&claim, node.as_deref(), pods, self.context.now());
        Ok(Some(Next { claim, node, step }))
    }

    /// Takes a step; when to look again, if it cannot go on at once.
    async fn take(
        &self,
        claim: &Arc<NodeClaim>,
        node: Option<&Node>,
        step: Step,
    ) -> Result<Option<Again>, Error> {
        match step {
            Step::Nothing => return Ok(Some(Again::No)),
            Step::Wait(wait) => return Ok(Some(Again::After(wait))),
            Step::Evict { pods, deadline, again } => {
                self.evictions.add(&pods, deadline, Mode::Leave, false);
                return Ok(Some(Again::After(again)));
            }
            Step::Fence => self.fence(node, true).await?,
            Step::Begin { boot, history } => {
                let change = json!({
                    annotations::REBOOT_PRE_BOOT_ID: boot,
                    annotations::REBOOT_HISTORY: history,
                    annotations::REBOOT_ISSUE_TIME: text(self.context.now()),
                });
                self.annotate(claim, change).await?;
            }
            Step::Ask { operation } => match self.context.cloud.reboot(claim, &operation).await {
                Ok(()) => self.accepted(claim).await?,
                Err(error) if error.ends_reboot() => {
                    self.fail(claim, node, &Failure::refused(&error)).await?;
                    return Ok(Some(Again::No));
                }
                Err(error) => return Err(error.into()),
            },
            Step::Accept => self.accepted(claim).await?,
            Step::Unlabel => {
                let change = json!({"metadata": {"labels": {labels::INITIALIZED: null}}});
                self.change_node(node, &change).await?;
            }
            Step::Unfence => {
                self.fence(node, false).await?;
                let message = "New boot observed (bootID changed); awaiting node readiness";
                self.publish(&events::REBOOT_OBSERVED, claim, message);
            }
            Step::Succeed => {
                self.succeed(claim).await?;
                return Ok(Some(Again::No));
            }
            Step::Fail(failure) => {
                self.fail(claim, node, &failure).await?;
                return Ok(Some(Again::No));
            }
        }
        Ok(None)
    }

    /// Keeps new pods away, or lets them come.
    async fn fence(&self, node: Option<&Node>, fenced: bool) -> Result<(), Error> {
        let change = node.and_then(|node| taint_change(node, Mark::from(taints::REBOOTING), fenced));
        match change {
            Some(change) => self.change_node(node, &change).await,
            None => Ok(()),
        }
    }

    async fn change_node(&self, node: Option<&Node>, change: &Value) -> Result<(), Error> {
        let Some(node) = node else { return Ok(()) };
        match self.context.api.patch::<Node>(&node.key(), change).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Changes annotations of a claim that nobody else writes.
    async fn annotate(&self, claim: &NodeClaim, change: Value) -> Result<(), Error> {
        let change = json!({"metadata": {"annotations": change}});
        self.context.api.patch::<NodeClaim>(&claim.key(), &change).await.map(drop)
    }

    /// The provider has accepted: what it boots must initialize again.
    async fn accepted(&self, claim: &Arc<NodeClaim>) -> Result<(), Error> {
        use reasons::node_claim as why;
        let now = self.context.now();
        let change = json!({"metadata": {"annotations": {annotations::REBOOT_ISSUE_TIME: text(now)}}});
        let claim = self.context.api.patch::<NodeClaim>(&claim.key(), &change).await?;
        let mut after = NodeClaim::clone(&claim);
        let message = claim.condition(REBOOTING).map_or("", |condition| &condition.message).to_owned();
        let mut conditions = Conditions::of(&mut after, now);
        conditions.set(REBOOTING, ConditionStatus::True, why::REBOOT_ISSUED, &message);
        let reason = (why::REBOOTING, messages::NODE_IS_REBOOTING);
        conditions.set(INITIALIZED, ConditionStatus::Unknown, reason.0, reason.1);
        write_status(&self.context, &claim, &after).await.map(drop)
    }

    /// Writes down that a reboot is over.
    async fn end(&self, claim: &NodeClaim, reason: &str, message: &str) -> Result<(), Error> {
        let mut metadata = lock(claim);
        metadata["annotations"] =
            json!({annotations::REBOOT_PRE_BOOT_ID: null, annotations::REBOOT_ISSUE_TIME: null});
        let change = json!({"metadata": metadata});
        let claim = self.context.api.patch::<NodeClaim>(&claim.key(), &change).await?;
        let mut after = NodeClaim::clone(&claim);
        let mut conditions = Conditions::of(&mut after, self.context.now());
        conditions.set(REBOOTING, ConditionStatus::False, reason, message);
        write_status(&self.context, &claim, &after).await?;
        tracing::info!(NodeClaim = name(&claim), reason, "reboot reached terminal outcome");
        Ok(())
    }

    async fn succeed(&self, claim: &NodeClaim) -> Result<(), Error> {
        let issued = decide::issue_time(claim);
        self.end(claim, reasons::node_claim::REBOOT_SUCCEEDED, messages::REBOOT_SUCCEEDED).await?;
        self.count(claim, values::REBOOT_SUCCEEDED);
        if let Some(issued) = issued {
            let seconds = self.context.now().duration_since(issued).as_secs_f64();
            self.context.metrics.observe(&NODES_REBOOT_RECOVERY_DURATION, &[], seconds);
        }
        Ok(())
    }

    async fn fail(&self, claim: &NodeClaim, node: Option<&Node>, failure: &Failure) -> Result<(), Error> {
        self.fence(node, false).await?;
        if failure.is_invalid() {
            self.end(claim, reasons::node_claim::REBOOT_FAILED, &failure.text).await?;
        } else {
            self.give_up(claim).await?;
            tracing::info!(NodeClaim = name(claim), result = failure.result, "reboot failed, replacing node");
        }
        self.publish(&events::REBOOT_FAILED, claim, &failure.text);
        self.count(claim, failure.result);
        Ok(())
    }

    /// Deletes the claim of a node that did not come back. Its pods get no more time than the reboot gave them.
    async fn give_up(&self, claim: &NodeClaim) -> Result<(), Error> {
        let bound = decide::bound(claim).ok().flatten();
        let change = bound.and_then(|bound| tightened(claim, bound, self.context.now()));
        let claim = match change {
            Some(change) => self.context.api.patch::<NodeClaim>(&claim.key(), &change).await?,
            None => Arc::new(claim.clone()),
        };
        match self.context.api.delete_unchanged(&*claim).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    fn publish(&self, event: &'static events::Event, claim: &NodeClaim, message: &str) {
        let about = About::object(claim);
        let requested = decide::requested_at(claim).map(text).unwrap_or_default();
        let uid = about.uid.clone();
        self.context.events.publish(event, about, message, &[&uid, &requested]);
    }

    fn count(&self, claim: &NodeClaim, result: &str) {
        self.context.metrics.add(&NODES_REBOOTS, &[result], 1.0);
        if let Some(requested) = decide::requested_at(claim) {
            let seconds = self.context.now().duration_since(requested).as_secs_f64();
            self.context.metrics.observe(&NODES_REBOOT_DURATION, &[result], seconds);
        }
    }
}

/// The change by which the pods of a claim's node must be gone within a time, unless they must be earlier anyway.
/// It is refused if somebody else was faster.
pub(crate) fn tightened(claim: &NodeClaim, within: SignedDuration, now: Timestamp) -> Option<Value> {
    let deadline = now.saturating_add(within).unwrap_or(Timestamp::MAX);
    let known = super::deadline(claim).and_then(Result::ok);
    if known.is_some_and(|known| known <= deadline) {
        return None;
    }
    let mut metadata = lock(claim);
    metadata["annotations"] = json!({annotations::TERMINATION_TIMESTAMP: text(deadline)});
    Some(json!({"metadata": metadata}))
}

impl Reconcile for Reboot {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            for _ in 0..STEPS {
                let Some(Next { claim, node, step }) = self.next(key)? else { return Ok(Again::No) };
                match self.take(&claim, node.as_deref(), step).await {
                    Ok(Some(again)) => return Ok(again),
                    Ok(None) => {}
                    // The claim is gone.
                    Err(error) if error.is_not_found() => return Ok(Again::No),
                    Err(error) => return Err(error),
                }
            }
            Ok(Again::After(decide::POLL))
        }
        .boxed()
    }
}

impl Watching for Reboot {
    fn watch(&self, change: &Change, state: &State) -> Vec<Key> {
        let of_node = |node: &Node| -> Vec<Key> {
            let claims = state.claims_of(&node.spec.provider_id).filter(|claim| claim.is_true(REBOOTING));
            claims.map(|claim| claim.key()).collect()
        };
        match change.object() {
            Object::NodeClaim(claim) if claim.is_true(REBOOTING) => vec![claim.key()],
            Object::Node(node) => of_node(node),
            // Whoever leaves may have been the last one.
            Object::Pod(pod) if change.new.is_none() => {
                state.nodes.named(&pod.spec.node_name).map(|node| of_node(node)).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn existing(&self, state: &State) -> Vec<Key> {
        state.node_claims.values().filter(|claim| claim.is_true(REBOOTING)).map(|claim| claim.key()).collect()
    }
}
