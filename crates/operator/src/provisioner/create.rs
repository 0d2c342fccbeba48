//! Creates a NodeClaim.

use std::sync::Arc;

use api::names::events::NOMINATED;
use api::names::metrics::NODECLAIMS_CREATED;
use api::nodeclaim::NodeClaim;
use api::shared::ResourceList;
use api::validation::limits;
use cluster::state::{Kind, State};
use runtime::Error;
use runtime::events::About;

use super::outcome::{Decided, NewClaim};
use crate::Context;
use crate::text::some;

/// How many types a log line names.
const SHOWN: usize = 5;

/// Creates a claim, unless its NodePool has more than it may have by now, and keeps in mind for whom. `reason` is why,
/// as metrics write it.
pub(crate) async fn create(context: &Context, new: &NewClaim, reason: &str) -> Result<Arc<NodeClaim>, Error> {
    let pool = new.pool.metadata.name.as_deref().unwrap_or_default();
    check_limits(&context.cluster.read(), pool)?;
    let created = context.api.create::<NodeClaim>("", &new.claim).await?;
    let name = created.metadata.name.as_deref().unwrap_or_default();
    context.cluster.update(|state| new.pods.iter().for_each(|pod| state.record_claim(&pod.key, name)));
    context.launches.lock().launched(&context.cluster.read(), &created, new);
    let requests = serde_json::to_string(&new.claim.spec.resources.requests).unwrap_or_default();
    tracing::info!(
        NodePool = pool,
        NodeClaim = name,
        requests = %requests,
        "instance-types" = %some(&new.types, SHOWN),
        "created nodeclaim"
    );
    let relaxed = if new.min_values_relaxed { "true" } else { "false" };
    context.metrics.add(&NODECLAIMS_CREATED, &[reason, pool, relaxed], 1.0);
    nominate(context, &new.pods, Some(name), None);
    Ok(created)
}

/// Fails if a NodePool has more than it may have. What it may have is what it says now, not what it said when
/// the claim was planned.
fn check_limits(state: &State, name: &str) -> Result<(), Error> {
    let Some(pool) = state.node_pools.named(name) else {
        return Err(Error::Other(format!("nodepool not found (NodePool={name})")));
    };
    let Some(asked) = &pool.spec.limits else { return Ok(()) };
    let usage = state.pool_resources(name);
    let usage: ResourceList =
        usage.iter().map(|(name, amount)| (name.as_str().to_owned(), *amount)).collect();
    limits::check(asked, &usage).map_err(|exceeded| Error::Other(exceeded.to_string()))
}

/// Tells users where pods are expected to run.
pub(crate) fn nominate(context: &Context, pods: &[Decided], claim: Option<&str>, node: Option<&str>) {
    let parts = [("nodeclaim", claim), ("node", node)];
    let known = parts.iter().filter_map(|(kind, name)| name.map(|name| format!("{kind}/{name}")));
    let message = format!("Pod should schedule on: {}", known.collect::<Vec<_>>().join(", "));
    for pod in pods {
        context.events.publish(&NOMINATED, about(pod), message.clone(), &[&pod.uid]);
    }
}

/// An event about a pod.
pub(crate) fn about(pod: &Decided) -> About {
    About {
        kind: Kind::Pod,
        namespace: pod.key.namespace.clone(),
        name: pod.key.name.clone(),
        uid: pod.uid.clone(),
    }
}
