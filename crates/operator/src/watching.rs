//! Controllers that say themselves which keys a change concerns.

use std::sync::Arc;

use cluster::state::{Change, Key, State};
use runtime::controller::{Controller, Reconcile};
use runtime::queue::{LOW, Queue};

use crate::Context;
use crate::wiring::Wiring;

/// A controller that knows what its keys depend on.
pub(crate) trait Watching: Reconcile {
    /// The keys to look at again after a change. It is asked for every change of anything, while the state is
    /// locked, so it must be cheap.
    fn watch(&self, change: &Change, state: &State) -> Vec<Key>;

    /// The keys to look at once at the start.
    fn existing(&self, state: &State) -> Vec<Key>;
}

/// Puts a controller together: what exists comes first with little urgency, then what changes.
pub(crate) fn controller(context: &Context, wiring: Wiring, reconcile: impl Watching) -> Controller {
    let queue = Arc::new(Queue::new(wiring.backoff));
    controller_on(context, queue, wiring, reconcile)
}

/// As [`controller`], on a queue that others fill, too.
pub(crate) fn controller_on(
    context: &Context,
    queue: Arc<Queue>,
    wiring: Wiring,
    reconcile: impl Watching,
) -> Controller {
    let reconcile = Arc::new(reconcile);
    let (listener, touched) = (Arc::clone(&reconcile), Arc::clone(&queue));
    context.cluster.listen(Box::new(move |change, state| {
        let priority = if state.is_listed() { 0 } else { LOW };
        for key in listener.watch(change, state) {
            touched.add_with(key, priority);
        }
    }));
    for key in reconcile.existing(&context.cluster.read()) {
        queue.add_with(key, LOW);
    }
    wiring.on(queue, reconcile)
}
