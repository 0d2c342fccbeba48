//! Garbage collection: machines that no NodeClaim has, together with their Nodes, and network interfaces left over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::names::controllers::azure::{INSTANCE_GARBAGE_COLLECTION, NETWORK_INTERFACE_GARBAGE_COLLECTION};
use api::nodeclaim::NodeClaim;
use cloud::GarbageCollection;
use cloud::garbage_collection::Pass;
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
    let collection = collection(inner, INSTANCE_GARBAGE_COLLECTION);
    if !collection.may_rely_on(&[Kind::NodeClaim, Kind::Node]) {
        return Ok(TWO_MINUTES);
    }
    // Machines first: one that is made after this has its claim already.
    let all = inner.instances().await.map_err(failed)?;
    let lost = confirmed(inner, &collection, &all).await?;
    let mut removed = FuturesUnordered::new();
    let mut results = Vec::new();
    for machine in lost {
        if removed.len() == PARALLEL {
            results.extend(removed.next().await);
        }
        removed.push(remove(inner, machine));
    }
    results.extend(removed.collect::<Vec<_>>().await);
    results.into_iter().collect::<Result<(), runtime::Error>>()?;
    Ok(TWO_MINUTES)
}

/// The machines without a claim that the API server has no claim for either; none if they are too many to be believed.
async fn confirmed<'a>(
    inner: &Inner,
    collection: &GarbageCollection,
    all: &'a [Instance],
) -> Result<Vec<&'a Instance>, runtime::Error> {
    let now = inner.setup.clock.now();
    let known = provider_ids(inner.setup.cluster.read().node_claims.values().map(|claim| &**claim));
    let mut lost = garbage::machines(all, &known, now);
    if lost.is_empty() {
        return Ok(lost);
    }
    lost = garbage::machines(lost, &provider_ids(&collection.node_claims().await?), now);
    let pass = Pass {
        finding: "virtual machines have no NodeClaim",
        names: lost.iter().map(|machine| machine.name.as_str()).collect(),
        node_pools: lost.iter().filter_map(|machine| machine.node_pool.as_deref()).collect(),
        fleet: all.iter().filter(|machine| !machine.is_deleting && machine.node_pool.is_some()).count(),
    };
    if !collection.allows(&pass) {
        lost.clear();
    }
    Ok(lost)
}

/// The provider IDs of claims, in lower case.
fn provider_ids<'a>(claims: impl IntoIterator<Item = &'a NodeClaim>) -> BTreeSet<String> {
    let known = claims.into_iter().filter_map(|claim| claim.status.as_ref());
    known.map(|status| status.provider_id.to_lowercase()).collect()
}

fn collection(inner: &Inner, controller: &'static str) -> GarbageCollection {
    let setup = &inner.setup;
    GarbageCollection::new(controller, &setup.api, &setup.cluster, &setup.events, &setup.metrics)
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
    let collection = collection(inner, NETWORK_INTERFACE_GARBAGE_COLLECTION);
    if !collection.may_rely_on(&[Kind::NodeClaim]) {
        return Ok(FIVE_MINUTES);
    }
    // Both first, for the same reason as above.
    let (machines, interfaces) = futures::join!(inner.virtual_machines(), inner.interfaces());
    let machines: BTreeSet<String> = machines
        .map_err(failed)?
        .iter()
        .filter_map(|machine| vm_name_of(&machine.provider_id))
        .map(str::to_lowercase)
        .collect();
    let all = interfaces.map_err(failed)?;
    let interfaces = |claims: &mut dyn Iterator<Item = &NodeClaim>| {
        let names = claims.filter_map(|claim| claim.metadata.name.as_deref());
        let found = garbage::interfaces(all.iter().map(String::as_str), &machines, names);
        found.into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let mut lost = {
        let state = inner.setup.cluster.read();
        interfaces(&mut state.node_claims.values().map(|claim| &**claim))
    };
    if !lost.is_empty() {
        let found = interfaces(&mut collection.node_claims().await?.iter());
        lost.retain(|name| found.contains(name));
    }
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
