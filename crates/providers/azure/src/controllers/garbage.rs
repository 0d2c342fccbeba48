//! Deletes machines that no claim knows together with their Nodes, and network interfaces that are left over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cluster::state::Kind;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use runtime::Again;
use runtime::controller::Outcome;

use super::failed;
use crate::garbage;
use crate::provider::Inner;
use crate::vm::{Instance, vm_name_of};

/// How many are deleted at the same time.
const PARALLEL: usize = 100;
const TWO_MINUTES: Again = Again::After(Duration::from_mins(2));
const FIVE_MINUTES: Again = Again::After(Duration::from_mins(5));

/// Deletes machines that no claim knows.
pub(super) async fn machines(inner: &Arc<Inner>) -> Outcome {
    // Machines first: one that is made after this has its claim already.
    let all = inner.instances().await.map_err(failed)?;
    let lost: Vec<Instance> = {
        let now = inner.setup.clock.now();
        let state = inner.setup.cluster.read();
        if state.has_unreadable(Kind::NodeClaim) {
            // A claim that cannot be read may be that of any machine.
            return Ok(TWO_MINUTES);
        }
        let ids = state.node_claims.values().filter_map(|claim| claim.status.as_ref());
        let claimed: BTreeSet<String> = ids.map(|status| status.provider_id.to_lowercase()).collect();
        garbage::machines(&all, &claimed, now).into_iter().cloned().collect()
    };
    let mut removed = FuturesUnordered::new();
    let mut results = Vec::new();
    for machine in &lost {
        if removed.len() == PARALLEL {
            results.extend(removed.next().await);
        }
        removed.push(remove(inner, machine));
    }
    results.extend(removed.collect::<Vec<_>>().await);
    results.into_iter().collect::<Result<(), runtime::Error>>()?;
    Ok(TWO_MINUTES)
}

async fn remove(inner: &Arc<Inner>, machine: &Instance) -> Result<(), runtime::Error> {
    match inner.delete_instance(machine).await {
        Err(error) if !error.is_not_found() => return Err(failed(error)),
        _ => tracing::info!("provider-id" = machine.provider_id, "garbage collected cloudprovider instance"),
    }
    let nodes: Vec<_> = inner.setup.cluster.read().nodes_of(&machine.provider_id).cloned().collect();
    for node in nodes {
        match inner.setup.api.delete(&*node).await {
            Err(error) if !error.is_outrun() => return Err(error),
            _ => tracing::info!(Node = &*node.metadata.name, "garbage collected node"),
        }
    }
    Ok(())
}

/// Deletes network interfaces of no machine and of no claim. That Azure still keeps one for a machine that was
/// deleted is no failure: it is tried again.
pub(super) async fn interfaces(inner: &Inner) -> Outcome {
    // Both first, for the same reason as above.
    let (machines, interfaces) = futures::join!(inner.virtual_machines(), inner.interfaces());
    let machines: BTreeSet<String> = machines
        .map_err(failed)?
        .iter()
        .filter_map(|machine| vm_name_of(&machine.provider_id))
        .map(str::to_lowercase)
        .collect();
    let all = interfaces.map_err(failed)?;
    let lost: Vec<String> = {
        let state = inner.setup.cluster.read();
        if state.has_unreadable(Kind::NodeClaim) {
            return Ok(FIVE_MINUTES);
        }
        let claims = state.node_claims.values().filter_map(|claim| claim.metadata.name.as_deref());
        let found = garbage::interfaces(all.iter().map(String::as_str), &machines, claims);
        found.into_iter().map(str::to_owned).collect()
    };
    let mut deleted = FuturesUnordered::new();
    for name in &lost {
        if deleted.len() == PARALLEL {
            deleted.next().await;
        }
        deleted.push(inner.delete_interface_if_there(name));
    }
    deleted.collect::<Vec<()>>().await;
    Ok(FIVE_MINUTES)
}
