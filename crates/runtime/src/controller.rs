//! Workers: take keys from a queue and reconcile them, some at the same time, as long as this replica leads.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use ::cluster::state::Key;
use api::names::controllers::object_of;
use api::names::metrics::runtime as names;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use crate::api::Error;
use crate::limit::Limiter;
use crate::metrics::{Registry, Series};
use crate::queue::Queue;
use crate::random::Random;

/// When a key is to be looked at again if nothing happens before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Not before something changes.
    No,
    /// After a while.
    After(Duration),
    /// After the back-off of the key, which grows each time.
    Backoff,
}

impl Again {
    /// After some seconds.
    pub const fn secs(seconds: u64) -> Self {
        Self::After(Duration::from_secs(seconds))
    }

    /// Whichever is sooner.
    #[must_use]
    pub fn or_sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Backoff, _) | (_, Self::Backoff) => Self::Backoff,
            (Self::No, other) => other,
            (this, Self::No) => this,
            (Self::After(a), Self::After(b)) => Self::After(a.min(b)),
        }
    }
}

/// What came of looking at a key. An error is logged, counted, and tried again after the back-off.
pub type Outcome = Result<Again, Error>;

/// Brings the cluster closer to what it should be, one key at a time.
pub trait Reconcile: Send + Sync + 'static {
    /// Looks at a key: reads the state, decides, acts.
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome>;
}

tokio::task_local! {
    static CURRENT: Current;
}

/// What is looked at, and by whom.
struct Current {
    controller: &'static str,
    queue: usize,
    key: Key,
}

/// The name of the controller that runs this code, for metrics and logs of what it calls; empty if none does.
/// Tasks that it spawned do not belong to it.
pub fn current() -> &'static str {
    CURRENT.try_with(|current| current.controller).unwrap_or_default()
}

/// Whether this code runs because a key of a queue is looked at.
pub(crate) fn looks_at(key: &Key, queue: usize) -> bool {
    CURRENT.try_with(|current| current.queue == queue && current.key == *key).unwrap_or(false)
}

/// How a controller works.
pub struct Controller {
    /// Its name in logs and metrics.
    pub name: &'static str,
    /// What it is to look at.
    pub queue: Arc<Queue>,
    /// How many keys at the same time.
    pub workers: usize,
    /// How often altogether.
    pub limiter: Option<Limiter>,
    /// What it does.
    pub reconcile: Arc<dyn Reconcile>,
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Controller {
    /// Works for ever, while `leads` says so.
    pub async fn run(self, mut leads: watch::Receiver<bool>, metrics: Registry) {
        let Self { name, queue, workers, limiter, reconcile } = self;
        let slots = Arc::new(Semaphore::new(workers));
        #[expect(clippy::cast_precision_loss, reason = "a few thousand at most")]
        metrics.set(&names::MAX_CONCURRENT_RECONCILES, &[name], workers as f64);
        queue.measure(name, &metrics);
        let measures = Arc::new(Measures::new(name, &metrics));
        let (group, kind) = object_of(name).unzip();
        // What is under way ends with this future.
        let mut running = JoinSet::new();
        loop {
            if leads.wait_for(|leads| *leads).await.is_err() {
                return;
            }
            // A slot first, then a key: what waits in the queue can still become more urgent.
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
            let key = queue.next().await;
            if let Some(limiter) = &limiter {
                limiter.acquire().await;
            }
            let (queue, reconcile) = (Arc::clone(&queue), Arc::clone(&reconcile));
            let measures = Arc::clone(&measures);
            let span = tracing::info_span!(
                "reconcile",
                controller = name,
                controllerGroup = group,
                controllerKind = kind,
                key = %key,
                reconcileID = %reconcile_id()
            );
            let work = async move {
                one(name, &*reconcile, &key, &queue, &measures).await;
                drop(slot);
            };
            running.spawn(work.instrument(span));
            while running.try_join_next().is_some() {}
        }
    }
}

/// The series of one controller.
struct Measures {
    active: Series,
    time: Series,
    errors: Series,
    panics: Series,
    successes: Series,
    requeues: Series,
    requeues_after: Series,
    failures: Series,
}

impl Measures {
    /// All of them exist from the start, so that rates can be computed from the first failure on.
    fn new(name: &str, metrics: &Registry) -> Self {
        let result = |result| metrics.series(&names::RECONCILES, &[name, result]);
        Self {
            active: metrics.series(&names::ACTIVE_WORKERS, &[name]),
            time: metrics.series(&names::RECONCILE_TIME, &[name]),
            errors: metrics.series(&names::RECONCILE_ERRORS, &[name]),
            panics: metrics.series(&names::RECONCILE_PANICS, &[name]),
            successes: result("success"),
            requeues: result("requeue"),
            requeues_after: result("requeue_after"),
            failures: result("error"),
        }
    }
}

/// Tells reconciliations apart in the log.
fn reconcile_id() -> String {
    static IDS: Mutex<Option<Random>> = Mutex::new(None);
    let mut ids = IDS.lock();
    // The same in every process; together with the process and the time that is enough.
    let ids = ids.get_or_insert_with(|| Random::new(u64::from(std::process::id())));
    let (a, b) = (ids.next(), ids.next());
    let (c, d) = (a & 0xffff, b & 0xffff_ffff_ffff);
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{d:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        c & 0xfff,
        (b >> 48) & 0xfff
    )
}

/// Looks at one key, whatever happens.
async fn one(name: &'static str, reconcile: &dyn Reconcile, key: &Key, queue: &Queue, measures: &Measures) {
    let start = Instant::now();
    measures.active.add(1.0);
    let current = Current { controller: name, queue: queue.address(), key: key.clone() };
    let work = CURRENT.scope(current, reconcile.reconcile(key));
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    measures.active.add(-1.0);
    measures.time.observe(start.elapsed().as_secs_f64());
    let result = match outcome {
        Ok(Ok(Again::No)) => {
            queue.done(key, None);
            &measures.successes
        }
        Ok(Ok(Again::After(wait))) => {
            queue.done(key, Some(wait));
            &measures.requeues_after
        }
        Ok(Ok(Again::Backoff)) => {
            queue.failed(key);
            &measures.requeues
        }
        Ok(Err(error)) if error.is_conflict() => {
            // Somebody else was faster: what they wrote is on its way to us.
            queue.failed(key);
            &measures.requeues
        }
        Ok(Err(error)) => {
            tracing::error!(error = %error, "Reconciler error");
            measures.errors.add(1.0);
            queue.failed(key);
            &measures.failures
        }
        Err(panic) => {
            let what = panic.downcast_ref::<String>().map(String::as_str);
            let what = what.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            tracing::error!(error = what, "Observed a panic");
            measures.panics.add(1.0);
            measures.errors.add(1.0);
            queue.failed(key);
            &measures.failures
        }
    };
    result.add(1.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Backoff;

    type Script = Mutex<Vec<fn() -> Outcome>>;

    struct Scripted {
        script: Script,
        seen: Mutex<Vec<(&'static str, u128)>>,
        start: Instant,
    }

    impl Reconcile for Scripted {
        fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Outcome> {
            async move {
                self.seen.lock().push((current(), self.start.elapsed().as_millis()));
                let next = self.script.lock().pop();
                next.map_or(Ok(Again::No), |next| next())
            }
            .boxed()
        }
    }

    /// When the key was looked at, in milliseconds.
    async fn times(script: Vec<fn() -> Outcome>) -> Vec<u128> {
        let start = Instant::now();
        let script = Mutex::new(script.into_iter().rev().collect());
        let scripted = Arc::new(Scripted { script, seen: Mutex::default(), start });
        let queue = Arc::new(Queue::new(Backoff::millis(100, 1000)));
        queue.add(Key::cluster("a"));
        let controller = Controller {
            name: "test",
            queue,
            workers: 2,
            limiter: None,
            reconcile: Arc::clone(&scripted) as Arc<dyn Reconcile>,
        };
        let (leads, leading) = watch::channel(false);
        let running = tokio::spawn(controller.run(leading, Registry::default()));
        tokio::time::sleep(Duration::from_secs(1)).await;
        leads.send_replace(true);
        tokio::time::sleep(Duration::from_mins(1)).await;
        running.abort();
        let seen = scripted.seen.lock();
        // What it calls knows who calls, and nobody else does.
        assert!(seen.iter().all(|(name, _)| *name == "test") && current().is_empty());
        seen.iter().map(|(_, time)| *time).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn keys_wait_for_leadership_and_come_again_as_asked() {
        let script: Vec<fn() -> Outcome> =
            vec![|| Ok(Again::secs(5)), || Ok(Again::Backoff), || Err(Error::Other("no".to_owned())), || {
                Ok(Again::No)
            }];
        assert_eq!(times(script).await, [1000, 6000, 6100, 6300]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_stops_nothing_else() {
        let script: Vec<fn() -> Outcome> = vec![|| panic!("on purpose"), || Ok(Again::No)];
        assert_eq!(times(script).await, [1000, 1100]);
    }

    /// Fails, and writes to what it looks at.
    struct Writing {
        queue: Arc<Queue>,
        seen: Mutex<Vec<u128>>,
        start: Instant,
    }

    impl Reconcile for Writing {
        fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Outcome> {
            async move {
                self.seen.lock().push(self.start.elapsed().as_secs().into());
                self.queue.add(key.clone());
                Err(Error::Other("no".to_owned()))
            }
            .boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_failing_look_writes_itself_is_no_reason_to_hurry() {
        let queue = Arc::new(Queue::new(Backoff::millis(1000, 1_000_000)));
        queue.add(Key::cluster("a"));
        let (start, seen) = (Instant::now(), Mutex::default());
        let writing = Arc::new(Writing { queue: Arc::clone(&queue), seen, start });
        let reconcile = Arc::clone(&writing) as Arc<dyn Reconcile>;
        let controller = Controller { name: "test", queue, workers: 1, limiter: None, reconcile };
        let (_leads, leading) = watch::channel(true);
        let running = tokio::spawn(controller.run(leading, Registry::default()));
        tokio::time::sleep(Duration::from_secs(20)).await;
        running.abort();
        assert_eq!(*writing.seen.lock(), [0, 1, 3, 7, 15]);
    }
}
