//! Instance garbage collection: terminates instances that no NodeClaim has, and deletes their Nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use api::names::controllers::aws::INSTANCE_GARBAGE_COLLECTION;
use api::names::tags::aws as tags;
use cloud::GarbageCollection;
use cloud::garbage_collection::Pass;
use cluster::state::Kind;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use runtime::Again;
use runtime::controller::Outcome;

use super::failed;
use crate::instance::{Claims, Machine, orphans, provider_id};
use crate::provider::Inner;

/// How many instances are terminated at the same time.
const PARALLEL: usize = 100;
/// How often it is looked soon again after a start.
const EAGER: u32 = 20;

/// How often instances were looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected(Arc<AtomicU32>);

impl Collected {
    pub(super) async fn collect(&self, inner: &Inner) -> Outcome {
        let eager = self.0.fetch_add(1, Ordering::Relaxed) < EAGER;
        let again = Again::secs(if eager { 10 } else { 120 });
        let setup = &inner.setup;
        let collection = GarbageCollection::new(
            INSTANCE_GARBAGE_COLLECTION,
            &setup.api,
            &setup.cluster,
            &setup.events,
            &setup.metrics,
        );
        if !collection.may_rely_on(&[Kind::NodeClaim, Kind::Node]) {
            return Ok(again);
        }
        // Instances first: one that is launched after this has its claim already.
        let machines = inner.all_machines().await.map_err(failed)?;
        let lost = confirmed(inner, &collection, &machines).await?;
        let mut removed = FuturesUnordered::new();
        let mut results = Vec::new();
        for machine in lost {
            if removed.len() == PARALLEL {
                results.extend(removed.next().await);
            }
            removed.push(remove(inner, machine));
        }
        results.extend(removed.collect::<Vec<_>>().await);
        results.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(again)
    }
}

/// The orphans that the API server has no claim for either; none if they are too many to be believed.
async fn confirmed<'a>(
    inner: &Inner,
    collection: &GarbageCollection,
    machines: &'a [Machine],
) -> Result<Vec<&'a Machine>, runtime::Error> {
    let now = inner.setup.clock.now();
    let known = Claims::of(inner.setup.cluster.read().node_claims.values().map(|claim| &**claim));
    let mut lost = orphans(machines, &known, now);
    if !lost.is_empty() {
        lost = orphans(lost, &Claims::of(&collection.node_claims().await?), now);
    }
    // What never became a node is left of a launch that was interrupted: nothing can run on it.
    let was_node = |machine: &&Machine| {
        let id = provider_id::of(&machine.zone, &machine.id);
        machine.tags.contains_key(tags::NODE_CLAIM)
            || inner.setup.cluster.read().nodes_of(&id).next().is_some()
    };
    let nodes: Vec<&Machine> = lost.iter().copied().filter(was_node).collect();
    let pass = Pass {
        finding: "instances have no NodeClaim",
        names: nodes.iter().map(|machine| machine.id.as_str()).collect(),
        node_pools: nodes
            .iter()
            .filter_map(|machine| machine.tags.get(tags::NODEPOOL))
            .map(String::as_str)
            .collect(),
        fleet: machines.iter().filter(|machine| !machine.state.is_ending()).filter(was_node).count(),
    };
    if !collection.allows(&pass) {
        lost.retain(|machine| !was_node(machine));
    }
    Ok(lost)
}

async fn remove(inner: &Inner, machine: &Machine) -> Result<(), runtime::Error> {
    match inner.terminate(machine).await {
        Err(error) if !error.is_not_found() => return Err(failed(error)),
        _ => tracing::info!("provider-id" = machine.id, "garbage collected cloudprovider instance"),
    }
    let id = provider_id::of(&machine.zone, &machine.id);
    let nodes: Vec<_> = inner.setup.cluster.read().nodes_of(&id).cloned().collect();
    for node in nodes {
        match inner.setup.api.delete(&*node).await {
            Err(error) if !error.is_outrun() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
