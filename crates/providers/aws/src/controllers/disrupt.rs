//! Claims whose instance AWS ends or finds broken: which they are, what users are told, and how they go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::names::events::{Event, aws as events};
use api::names::metrics::NODECLAIMS_DISRUPTED;
use api::names::metrics::aws as metrics;
use api::names::{annotations, labels, values};
use api::nodeclaim::NodeClaim;
use cloud::unavailable::Scope;
use cluster::objects::Node;
use cluster::state::{Meta as _, State, Watched as _};
use jiff::Timestamp;
use runtime::events::About;
use serde_json::json;

use super::{is_ours, label};
use crate::instance::provider_id;
use crate::interruption::Category;
use crate::provider::Inner;

/// A claim of an instance, and its Node if there is one already.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) claim: Arc<NodeClaim>,
    pub(super) node: Option<Arc<Node>>,
}

/// Claims, by the ID of their instance.
pub(super) type Targets = BTreeMap<String, Vec<Target>>;

/// The claims of some instances. Instances that are none of ours have none.
pub(super) fn targets(state: &State, instances: &BTreeSet<&str>) -> Targets {
    let mut found = Targets::new();
    if instances.is_empty() {
        return found;
    }
    for claim in state.node_claims.values().filter(|claim| is_ours(claim)) {
        let id = claim.status.as_ref().map_or("", |status| &status.provider_id);
        let Some(instance) = provider_id::instance_id(id).filter(|instance| instances.contains(instance))
        else {
            continue;
        };
        let target = Target { claim: Arc::clone(claim), node: state.nodes_of(id).next().cloned() };
        found.entry(instance.to_owned()).or_default().push(target);
    }
    found
}

/// How the node of a claim goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It is drained for as long as it takes.
    Drained,
    /// Pods are not waited for: nothing on the node answers.
    AtOnce,
}

/// Something to be done.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Users are told about a claim and its Node.
    Tell(Target, &'static Event, &'static str),
    /// A claim goes, for a reason that metrics show.
    End(Target, Manner, &'static str),
    /// An offering is not asked for again for a while.
    Unavailable(Scope, &'static str),
    /// There is nothing left of a reservation.
    ReservationTaken(String),
    /// An instance turned out to be broken.
    Broken(Category),
}

/// Whether there is something to be done to make a claim go.
pub(super) fn is_to_end(claim: &NodeClaim, manner: Manner) -> bool {
    let lacks_deadline = || {
        let all = claim.metadata.annotations.as_ref();
        !all.is_some_and(|all| all.contains_key(annotations::TERMINATION_TIMESTAMP))
    };
    !claim.metadata.is_deleting() || (manner == Manner::AtOnce && lacks_deadline())
}

/// Does everything that was decided; the first failure ends it.
pub(super) async fn carry_out(inner: &Inner, steps: Vec<Step>) -> Result<(), runtime::Error> {
    for step in steps {
        match step {
            Step::Tell(target, event, message) => tell(inner, &target, event, message),
            Step::End(target, manner, reason) => end(inner, &target, manner, reason).await?,
            Step::Unavailable(scope, reason) => inner.unavailable.mark(scope, reason),
            Step::ReservationTaken(id) => inner.known.lock().reservations.exhausted(&id),
            Step::Broken(category) => {
                let labels = [category.as_str()];
                inner.setup.metrics.add(&metrics::INTERRUPTION_INSTANCE_STATUS_UNHEALTHY, &labels, 1.0);
            }
        }
    }
    Ok(())
}

fn tell(inner: &Inner, target: &Target, event: &'static Event, message: &str) {
    let Target { claim, node } = target;
    let recorder = &inner.setup.events;
    recorder.publish(event, About::object(&**claim), message, &[claim.metadata.uid()]);
    if let Some(node) = node {
        recorder.publish(event, About::object(&**node), message, &[&node.metadata.uid]);
    }
}

async fn end(
    inner: &Inner,
    target: &Target,
    manner: Manner,
    reason: &'static str,
) -> Result<(), runtime::Error> {
    let claim = &*target.claim;
    if !is_to_end(claim, manner) {
        return Ok(());
    }
    if manner == Manner::AtOnce {
        let now = written(inner.setup.clock.now());
        let change = json!({"metadata": {"annotations": {annotations::TERMINATION_TIMESTAMP: now}}});
        match inner.setup.api.patch::<NodeClaim>(&claim.key(), &change).await {
            Err(error) if error.is_not_found() => return Ok(()),
            patched => drop(patched?),
        }
    }
    if claim.metadata.is_deleting() {
        return Ok(());
    }
    match inner.setup.api.delete(claim).await {
        Err(error) if error.is_not_found() => return Ok(()),
        deleted => deleted?,
    }
    tracing::info!(
        NodeClaim = claim.metadata.name.as_deref().unwrap_or_default(),
        reason,
        "initiating delete from interruption"
    );
    tell(
        inner,
        target,
        &events::TERMINATING_ON_INTERRUPTION,
        "The node goes because of what AWS said about its instance",
    );
    let (pool, kind) = (label(claim, labels::NODEPOOL), label(claim, labels::CAPACITY_TYPE));
    let series = [reason, pool, kind, "", termination_mode(claim, manner)];
    inner.setup.metrics.add(&NODECLAIMS_DISRUPTED, &series, 1.0);
    Ok(())
}

/// How patiently a node is drained, as metrics name it.
fn termination_mode(claim: &NodeClaim, manner: Manner) -> &'static str {
    match (manner, claim.spec.termination_grace_period) {
        (Manner::AtOnce, _) => values::FORCEFUL,
        (Manner::Drained, None) => values::GRACEFUL,
        (Manner::Drained, Some(period)) if period.as_nanos() <= 0 => values::FORCEFUL,
        (Manner::Drained, Some(_)) => values::EVENTUAL,
    }
}

/// A time as annotations have it: whole seconds.
fn written(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
