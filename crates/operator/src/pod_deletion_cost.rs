//! Makes ReplicaSets that shrink delete those pods first whose nodes are to go: pods get a deletion cost, the lower the
//! sooner their node goes. Behind a gate.
//!
//! ```text
//!   every minute, if something has changed ──► rank nodes ──► what pods should say ──► queue of writes
//! ```

mod rank;
#[cfg(test)]
mod tests;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use api::names::controllers as names;
use api::names::metrics::POD_DELETION_COST_PENDING_NODES;
use cluster::state::{Consolidated, Key};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::controller::{Again, Controller, Outcome, Reconcile};
use runtime::queue::{Backoff, Queue};

use crate::wiring::Wiring;
use crate::{Context, catalogue};
use writes::Writes;

/// How often nodes are ranked.
const INTERVAL: Duration = Duration::from_mins(1);
/// How often there is a look while the state cannot be relied on.
const UNSYNCED: Duration = Duration::from_secs(1);

/// The controllers, if the gate is on.
pub fn controllers(context: &Context) -> Vec<Controller> {
    if !context.settings.gates.pod_deletion_cost_management {
        return Vec::new();
    }
    let pending = Arc::new(Queue::new(Backoff::millis(100, 10_000)));
    let writes = Arc::new(Writes::new(context, Arc::clone(&pending)));
    let ranking = Arc::new(Queue::new(Backoff::millis(1000, 60_000)));
    ranking.add(Key::cluster(names::POD_DELETION_COST));
    let rank = Rank { context: context.clone(), writes: Arc::clone(&writes), last: Mutex::default() };
    let workers = context.settings.workers(100, 5000);
    vec![
        Wiring::new(names::POD_DELETION_COST, 1).on(ranking, Arc::new(rank)),
        Wiring::new(names::POD_DELETION_COST_QUEUE, workers).on(pending, writes),
    ]
}

/// Ranks nodes.
struct Rank {
    context: Context,
    writes: Arc<Writes>,
    /// What the cluster was like when nodes were ranked last.
    last: Mutex<Option<Consolidated>>,
}

impl Rank {
    async fn rank(&self) -> Outcome {
        let now = self.context.now();
        {
            let state = self.context.cluster.read();
            if !state.is_synced(now) {
                return Ok(Again::After(UNSYNCED));
            }
            if self.last.lock().is_some_and(|last| state.is_consolidated(last, now)) {
                tracing::debug!("no changes detected, skipping pod deletion cost update");
                return Ok(Again::After(INTERVAL));
            }
        }
        let types = catalogue::of_all(&self.context).await?;
        let (seen, plan) = {
            let state = self.context.cluster.read();
            (state.consolidated_at(now), rank::plan(&state, &types, now))
        };
        if plan.total == 0 {
            return Ok(Again::After(INTERVAL));
        }
        tracing::debug!(
            totalNodes = plan.total,
            disruptedNodes = plan.disrupted,
            rankedNodes = plan.ranked,
            cleanupOnlyNodes = plan.total - plan.disrupted - plan.ranked,
            "completed node ranking"
        );
        #[expect(clippy::cast_precision_loss, reason = "nobody has that many nodes")]
        let pending = plan.pending.iter().map(|(pool, nodes)| (vec![pool.to_string()], *nodes as f64));
        self.context.metrics.replace(&POD_DELETION_COST_PENDING_NODES, "", pending);
        let nodes: usize = plan.pending.values().sum();
        if nodes > 0 {
            self.writes.add(plan.writes);
            tracing::debug!(nodeCount = nodes, "enqueued pod deletion cost annotation writes");
        }
        *self.last.lock() = Some(seen);
        Ok(Again::After(INTERVAL))
    }
}

impl Reconcile for Rank {
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
        self.rank().boxed()
    }
}
