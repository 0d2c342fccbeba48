//! How long decisions that are being made have been going, and about how many pods, for whoever reads the metrics
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api::names::metrics::{SCHEDULER_QUEUE_DEPTH, SCHEDULER_UNFINISHED_WORK};
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
    id: Box<str>,
    controller: &'static str,
    metrics: Registry,
    since: Arc<Mutex<BTreeMap<Box<str>, Instant>>>,
}

impl Running {
    /// Tells about how many pods there is still something to decide. What earlier decisions have left is forgotten.
    pub(crate) fn set_queue_depth(&self, pods: usize) {
        #[expect(clippy::cast_precision_loss, reason = "nobody has that many pods")]
        let pods = pods as f64;
        self.metrics.remove_where(&SCHEDULER_QUEUE_DEPTH, &[("controller", self.controller)]);
        self.metrics.set(&SCHEDULER_QUEUE_DEPTH, &[self.controller, &*self.id], pods);
    }
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
        lines(metrics, SCHEDULER_UNFINISHED_WORK.name)
    }

    fn lines(metrics: &Registry, name: &str) -> Vec<String> {
        let page = metrics.page();
        page.lines().filter_map(|line| line.strip_prefix(name)).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn the_queue_is_as_deep_as_there_are_pods_to_place_and_afterwards_as_are_left() {
        let metrics = Registry::default();
        let shown = || lines(&metrics, SCHEDULER_QUEUE_DEPTH.name);
        let work = UnfinishedWork::new("provisioner", &metrics);
        let running = work.begin();
        running.set_queue_depth(7);
        assert_eq!(shown(), ["{controller=\"provisioner\",scheduling_id=\"0\"} 7"]);
        running.set_queue_depth(2);
        drop(running);
        assert_eq!(shown(), ["{controller=\"provisioner\",scheduling_id=\"0\"} 2"]);
        work.begin().set_queue_depth(1);
        assert_eq!(shown(), ["{controller=\"provisioner\",scheduling_id=\"1\"} 1"]);
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
