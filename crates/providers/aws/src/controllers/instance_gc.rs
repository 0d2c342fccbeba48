//! Terminates instances that no claim knows, and deletes their Nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use runtime::Again;
use runtime::controller::Outcome;

use super::failed;
use crate::instance::{Machine, orphans, provider_id};
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
        // Instances first: one that is launched after this has its claim already.
        let machines = inner.all_machines().await.map_err(failed)?;
        let lost: Vec<Machine> = {
            let state = inner.setup.cluster.read();
            if state.has_unreadable(cluster::state::Kind::NodeClaim) {
                // A claim that cannot be read may be that of any instance.
                Vec::new()
            } else {
                let ids = state.node_claims.values().filter_map(|claim| claim.status.as_ref());
                let claimed: BTreeSet<String> = ids.map(|status| status.provider_id.clone()).collect();
                orphans(&machines, &claimed, inner.setup.clock.now()).into_iter().cloned().collect()
            }
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
        results.into_iter().collect::<Result<Vec<()>, _>>()?;
        let eager = self.0.fetch_add(1, Ordering::Relaxed) < EAGER;
        Ok(Again::secs(if eager { 10 } else { 120 }))
    }
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
