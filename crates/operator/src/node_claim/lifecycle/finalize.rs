//! Finalization: a deleted claim goes once its Nodes and its instance are gone.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{Conditions, HasConditions};
use api::names::conditions::node_claim::{INSTANCE_TERMINATING, REGISTERED};
use api::names::metrics::{
    NODECLAIMS_INSTANCE_TERMINATION_DURATION, NODECLAIMS_TERMINATED, NODECLAIMS_TERMINATION_DURATION,
};
use api::names::{annotations, events, finalizers, labels};
use api::nodeclaim::NodeClaim;
use cluster::objects::Node;
use cluster::state::{Meta, Watched};
use jiff::{SignedDuration, Timestamp};
use runtime::events::About;
use runtime::{Again, Error, Outcome};
use serde_json::json;

use super::Lifecycle;
use super::launch::{adopt, age};
use crate::node_claim::{annotation, has_finalizer, label, lock, name, provider_id, write_status};

/// How often the cloud is asked whether the instance is gone.
pub(crate) const INSTANCE_GONE: Duration = Duration::from_secs(5);

/// What is to be done next about a deleted claim.
#[derive(Debug)]
enum Step {
    /// Nothing: it is not ours any more.
    Nothing,
    /// It is written down when its pods must be gone.
    Annotate(Timestamp),
    /// These Nodes must go first; nothing but waiting is left to do about others.
    Nodes(Vec<Arc<Node>>),
    /// The instance must go.
    Instance,
    /// Nothing is left of it.
    Release,
}

/// What is to be done next about a deleted claim whose instance has these Nodes.
fn decide<'a>(claim: &NodeClaim, nodes: impl Iterator<Item = &'a Arc<Node>>) -> Step {
    if !has_finalizer(claim) {
        return Step::Nothing;
    }
    if let Some(deadline) = missing_deadline(claim) {
        return Step::Annotate(deadline);
    }
    if claim.is_true(REGISTERED) {
        let nodes: Vec<_> = nodes.collect();
        if !nodes.is_empty() {
            let left = nodes.into_iter().filter(|node| !node.metadata.is_deleting());
            return Step::Nodes(left.cloned().collect());
        }
    }
    if provider_id(claim).is_empty() { Step::Release } else { Step::Instance }
}

/// When the pods of a claim must be gone, if that is not written down yet.
fn missing_deadline(claim: &NodeClaim) -> Option<Timestamp> {
    let period = SignedDuration::from(claim.spec.termination_grace_period?);
    let deleted = claim.metadata.deleting_since()?;
    if annotation(claim, annotations::TERMINATION_TIMESTAMP).is_some() {
        return None;
    }
    Some(deleted.saturating_add(period).unwrap_or(Timestamp::MAX))
}

/// A time as annotations and messages have it: whole seconds.
pub(crate) fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl Lifecycle {
    pub(super) async fn finalize(&self, claim: Arc<NodeClaim>) -> Outcome {
        let mut claim = self.with_instance(claim).await?;
        loop {
            let step = {
                let state = self.context.cluster.read();
                decide(&claim, state.nodes_of(provider_id(&claim)))
            };
            match step {
                Step::Nothing => return Ok(Again::No),
                Step::Annotate(deadline) => claim = self.annotate(&claim, deadline).await?,
                Step::Nodes(nodes) => {
                    for node in &nodes {
                        match self.context.api.delete(&**node).await {
                            Ok(()) => {
                                tracing::debug!(Node = %node.metadata.name, "deleted node of nodeclaim");
                            }
                            Err(error) if error.is_not_found() => {}
                            Err(error) => return Err(error),
                        }
                    }
                    // The end of a Node brings us back.
                    return Ok(Again::No);
                }
                Step::Instance => {
                    if let Some(again) = self.terminate(&claim).await? {
                        return Ok(again);
                    }
                    return self.release(&self.latest(claim)).await;
                }
                Step::Release => return self.release(&claim).await,
            }
        }
    }

    /// The claim with the instance that was launched for it, should it have been deleted before that was written.
    async fn with_instance(&self, claim: Arc<NodeClaim>) -> Result<Arc<NodeClaim>, Error> {
        let now = self.context.now();
        if !has_finalizer(&claim) || !provider_id(&claim).is_empty() {
            return Ok(claim);
        }
        let Some(instance) = self.launches.get(claim.metadata.uid(), now) else { return Ok(claim) };
        let mut after = NodeClaim::clone(&claim);
        adopt(&mut after, &instance, now);
        Ok(write_status(&self.context, &claim, &after).await?.unwrap_or(claim))
    }

    async fn annotate(&self, claim: &NodeClaim, deadline: Timestamp) -> Result<Arc<NodeClaim>, Error> {
        let deadline = text(deadline);
        let mut metadata = lock(claim);
        metadata["annotations"] = json!({annotations::TERMINATION_TIMESTAMP: deadline});
        let patched = self.context.api.patch(&claim.key(), &json!({"metadata": metadata})).await?;
        tracing::info!(
            NodeClaim = name(claim),
            annotation = annotations::TERMINATION_TIMESTAMP,
            value = deadline,
            "annotated nodeclaim"
        );
        let event = &events::TERMINATION_GRACE_PERIOD_EXPIRING;
        let message = format!("All pods will be deleted by {deadline}");
        self.context.events.publish(event, About::object(claim), message, &[claim.metadata.uid()]);
        Ok(patched)
    }

    /// Terminates the instance; nothing once it is gone.
    async fn terminate(&self, claim: &NodeClaim) -> Result<Option<Again>, Error> {
        let gone = match self.context.cloud.delete(claim).await {
            Ok(()) => false,
            Err(error) if error.is_not_found() => true,
            Err(error) => return Err(error.into()),
        };
        let now = self.context.now();
        let mut after = claim.clone();
        Conditions::of(&mut after, now).set_true(INSTANCE_TERMINATING);
        write_status(&self.context, claim, &after).await?;
        if !gone {
            return Ok(Some(Again::After(INSTANCE_GONE)));
        }
        if let Some(condition) = after.condition(INSTANCE_TERMINATING) {
            let took = age(condition.last_transition_time.0, now).as_secs_f64();
            let pool = [label(claim, labels::NODEPOOL)];
            self.context.metrics.observe(&NODECLAIMS_INSTANCE_TERMINATION_DURATION, &pool, took);
        }
        Ok(None)
    }

    /// The claim as the last write left it.
    fn latest(&self, claim: Arc<NodeClaim>) -> Arc<NodeClaim> {
        let state = self.context.cluster.read();
        let known = state.node_claims.get(&claim.key());
        known.filter(|known| known.metadata.uid == claim.metadata.uid).cloned().unwrap_or(claim)
    }

    /// Lets a claim go.
    async fn release(&self, claim: &NodeClaim) -> Outcome {
        let left: Vec<_> = (claim.metadata.finalizers.iter().flatten())
            .filter(|finalizer| *finalizer != finalizers::TERMINATION)
            .collect();
        let mut metadata = lock(claim);
        metadata["finalizers"] = json!(left);
        match self.context.api.patch::<NodeClaim>(&claim.key(), &json!({"metadata": metadata})).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => return Ok(Again::No),
            Err(error) => return Err(error),
        }
        tracing::info!(NodeClaim = name(claim), "deleted nodeclaim");
        let pool = label(claim, labels::NODEPOOL);
        if let Some(deleted) = claim.metadata.deleting_since() {
            let took = age(deleted, self.context.now()).as_secs_f64();
            self.context.metrics.observe(&NODECLAIMS_TERMINATION_DURATION, &[pool], took);
        }
        let series = [pool, label(claim, labels::CAPACITY_TYPE), label(claim, labels::ZONE)];
        self.context.metrics.add(&NODECLAIMS_TERMINATED, &series, 1.0);
        Ok(Again::No)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn claim(value: &Value) -> NodeClaim {
        let mut claim = json!({
            "metadata": {
                "name": "c", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["karpenter.sh/termination"],
            },
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}},
        });
        for (part, fields) in value.as_object().unwrap() {
            for (key, value) in fields.as_object().unwrap() {
                claim[part][key] = value.clone();
            }
        }
        serde_json::from_value(claim).unwrap()
    }

    fn registered(status: &str) -> Value {
        json!({"providerID": "p", "conditions": [{
            "type": "Registered", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]})
    }

    fn node(deleting: bool) -> Arc<Node> {
        let deleted = deleting.then_some("2026-01-01T00:00:00Z");
        let node = json!({"metadata": {"name": "n", "deletionTimestamp": deleted}});
        Arc::new(serde_json::from_value(node).unwrap())
    }

    #[test]
    fn a_claim_that_was_never_launched_goes_at_once() {
        assert!(matches!(decide(&claim(&json!({})), [].iter()), Step::Release));
        let foreign = claim(&json!({"metadata": {"finalizers": ["other"]}}));
        assert!(matches!(decide(&foreign, [].iter()), Step::Nothing));
    }

    #[test]
    fn the_end_of_the_drain_is_written_down_once() {
        let spec = json!({"terminationGracePeriod": "5m"});
        let claim_ = claim(&json!({"spec": spec}));
        let Step::Annotate(deadline) = decide(&claim_, [].iter()) else { panic!("no deadline") };
        assert_eq!(text(deadline), "2026-01-01T00:05:00Z");
        let annotations = json!({"karpenter.sh/nodeclaim-termination-timestamp": "anything"});
        let annotated = claim(&json!({"spec": spec, "metadata": {"annotations": annotations}}));
        assert!(matches!(decide(&annotated, [].iter()), Step::Release));
    }

    #[test]
    fn nodes_of_registered_claims_go_before_the_instance() {
        let registered_ = claim(&json!({"status": registered("True")}));
        let nodes = [node(false), node(true)];
        let Step::Nodes(left) = decide(&registered_, nodes.iter()) else { panic!("nodes must go") };
        assert_eq!(left.len(), 1);
        let Step::Nodes(left) = decide(&registered_, nodes[1..].iter()) else { panic!("nodes must go") };
        assert!(left.is_empty());
        assert!(matches!(decide(&registered_, [].iter()), Step::Instance));
    }

    #[test]
    fn nodes_of_claims_that_never_registered_are_left_alone() {
        let unregistered = claim(&json!({"status": registered("Unknown")}));
        assert!(matches!(decide(&unregistered, [node(false)].iter()), Step::Instance));
    }
}
