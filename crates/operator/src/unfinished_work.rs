//! How long decisions that are being made have been going, for whoever reads the metrics meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api::names::metrics::SCHEDULER_UNFINISHED_WORK;
use parking_lot::Mutex;
use runtime::metrics::Registry;
use tokio::time::Instant;

/// The decisions that a controller is making.
pub(crate) struct UnfinishedWork {
    controller: &'static str,
    metrics: Registry,
    begun: AtomicU64,
    since: Arc<Mutex<BTreeMap<Box<str>, Instant>>>,
}

impl UnfinishedWork {
    /// Nothing yet. Whatever begins is shown under the name of the controller.
    pub(crate) fn new(controller: &'static str, metrics: &Registry) -> Self {
        let since = Arc::<Mutex<BTreeMap<Box<str>, Instant>>>::default();
        let running = Arc::clone(&since);
        metrics.collect(move |metrics| {
            for (id, since) in running.lock().iter() {
                metrics.set(&SCHEDULER_UNFINISHED_WORK, &[controller, &**id], since.elapsed().as_secs_f64());
            }
        });
        Self { controller, metrics: metrics.clone(), begun: AtomicU64::new(0), since }
    }

    /// Something begins, and ends when what is returned is dropped.
    pub(crate) fn begin(&self) -> Running {
        let id: Box<str> = format!("{:x}", self.begun.fetch_add(1, Ordering::Relaxed)).into();
        self.since.lock().insert(id.clone(), Instant::now());
        let (controller, metrics) = (self.controller, self.metrics.clone());
        Running { id, controller, metrics, since: Arc::clone(&self.since) }
    }
}

/// A decision that is being made.
pub(crate) struct Running {
    /// Tells it from others of its controller.
    pub(crate) id: Box<str>,
    controller: &'static str,
    metrics: Registry,
    since: Arc<Mutex<BTreeMap<Box<str>, Instant>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Under the lock, so that a page that is being made cannot bring the series back.
        let mut since = self.since.lock();
        since.remove(&self.id);
        self.metrics.remove(&SCHEDULER_UNFINISHED_WORK, &[self.controller, &*self.id]);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shown(metrics: &Registry) -> Vec<String> {
        let page = metrics.page();
        let lines = page.lines().filter(|line| line.starts_with(SCHEDULER_UNFINISHED_WORK.name));
        lines.map(|line| line.replace(SCHEDULER_UNFINISHED_WORK.name, "")).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_shows_how_long_it_has_been_going_until_it_is_made() {
        let metrics = Registry::default();
        let work = UnfinishedWork::new("provisioner", &metrics);
        let first = work.begin();
        tokio::time::advance(Duration::from_secs(2)).await;
        let second = work.begin();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(
            shown(&metrics),
            [
                "{controller=\"provisioner\",scheduling_id=\"0\"} 3",
                "{controller=\"provisioner\",scheduling_id=\"1\"} 1"
            ]
        );
        drop(first);
        assert_eq!(shown(&metrics), ["{controller=\"provisioner\",scheduling_id=\"1\"} 1"]);
        drop(second);
        assert!(shown(&metrics).is_empty());
    }
}
