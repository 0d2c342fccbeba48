//! How controllers are put together: a queue, what fills it, and what works on it.

use std::sync::Arc;

use cluster::state::{Change, State};
use runtime::controller::{Controller, Reconcile};
use runtime::limit::Limiter;
use runtime::queue::{Backoff, Queue};

use crate::Context;

/// A controller that is not put together yet.
pub(crate) struct Wiring {
    /// Its name in logs and metrics.
    pub(crate) name: &'static str,
    /// How many keys it looks at at the same time.
    pub(crate) workers: usize,
    /// How long a key waits after failures.
    pub(crate) backoff: Backoff,
    /// How often it works altogether.
    pub(crate) limiter: Option<Limiter>,
}

impl Wiring {
    /// A controller with the usual back-off and no limit.
    pub(crate) fn new(name: &'static str, workers: usize) -> Self {
        Self { name, workers, backoff: Backoff::DEFAULT, limiter: None }
    }

    /// The controller, whose queue `touch` fills with the keys that a change concerns.
    ///
    /// `touch` is called for every change of anything, while the state is locked: it must be cheap.
    pub(crate) fn listening(
        self,
        context: &Context,
        reconcile: impl Reconcile,
        touch: impl Fn(&Change, &State, &Queue) + Send + Sync + 'static,
    ) -> Controller {
        let queue = Arc::new(Queue::new(self.backoff));
        let touched = Arc::clone(&queue);
        context.cluster.listen(Box::new(move |change, state| touch(change, state, &touched)));
        self.on(queue, Arc::new(reconcile))
    }

    /// The controller, on a queue that something else fills.
    pub(crate) fn on(self, queue: Arc<Queue>, reconcile: Arc<dyn Reconcile>) -> Controller {
        let Self { name, workers, limiter, .. } = self;
        Controller { name, queue, workers, limiter, reconcile }
    }
}
