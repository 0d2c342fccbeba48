//! The queue of pods that should say something else than they do.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::names::annotations::POD_DELETION_COST;
use api::names::metrics::POD_DELETION_COST_WRITES;
use api::names::values;
use cluster::objects::Pod;
use cluster::state::Key;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::controller::Reconcile;
use runtime::queue::Queue;
use runtime::{Again, Outcome};
use serde_json::json;

use super::rank::{Write, says};
use crate::{Context, status};

/// Pods that should say something else. What was asked for last counts.
pub(super) struct Writes {
    context: Context,
    queue: Arc<Queue>,
    items: Mutex<BTreeMap<Key, Write>>,
}

impl Writes {
    pub(super) fn new(context: &Context, queue: Arc<Queue>) -> Self {
        Self { context: context.clone(), queue, items: Mutex::default() }
    }

    pub(super) fn add(&self, writes: Vec<Write>) {
        for write in writes {
            let key = write.pod.clone();
            self.items.lock().insert(key.clone(), write);
            self.queue.add(key);
        }
    }

    /// Counts what became of a write, and forgets it unless something else was asked for meanwhile.
    fn done(&self, write: &Write, result: &str) {
        self.context.metrics.add(&POD_DELETION_COST_WRITES, &[result], 1.0);
        let mut items = self.items.lock();
        if items.get(&write.pod) == Some(write) {
            items.remove(&write.pod);
        }
    }

    async fn write(&self, write: &Write) -> Outcome {
        let pod = self.context.cluster.read().pods.get(&write.pod).cloned();
        let Some(pod) = pod.filter(|pod| pod.metadata.uid == write.uid) else {
            self.done(write, values::WRITE_NOT_FOUND);
            return Ok(Again::No);
        };
        if says(&pod, write.cost) {
            self.done(write, values::WRITE_UNCHANGED);
            return Ok(Again::No);
        }
        let mut metadata = status::lock(&*pod);
        metadata["annotations"] = json!({POD_DELETION_COST: write.cost.map(|cost| cost.to_string())});
        let change = json!({"metadata": metadata});
        match self.context.api.patch::<Pod>(&write.pod, &change).await {
            Ok(_) => self.done(write, values::WRITE_UPDATED),
            // The next ranking looks again.
            Err(error) if error.is_not_found() => self.done(write, values::WRITE_NOT_FOUND),
            Err(error) if error.is_conflict() => self.done(write, values::WRITE_CONFLICT),
            Err(error) => {
                self.context.metrics.add(&POD_DELETION_COST_WRITES, &[values::WRITE_ERROR], 1.0);
                return Err(error);
            }
        }
        Ok(Again::No)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.items.lock().len()
    }
}

impl Reconcile for Writes {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
        async move {
            let item = self.items.lock().get(key).cloned();
            match item {
                Some(write) => self.write(&write).await,
                None => Ok(Again::No),
            }
        }
        .boxed()
    }
}
