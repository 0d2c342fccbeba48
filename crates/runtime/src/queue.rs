//! The work queue: what to look at, the most urgent first, each key once.
//!
//! ```text
//!   add ──► ready (by priority, then in order) ──► next ──► working ──► done
//!             ▲                                               │ add while working
//!             ├───────────────────────────────────────────────┘
//!           timers ◄── look again, back-off after a failure
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::cluster::state::Key;
use api::names::metrics::runtime as names;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::controller;
use crate::metrics::{Registry, Series};

/// How long a key waits after failures: `first`, then twice as long each time, at most `last`.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The first wait.
    pub first: Duration,
    /// The longest wait.
    pub last: Duration,
}

impl Backoff {
    /// What controllers have that do not say.
    pub const DEFAULT: Self = Self { first: Duration::from_millis(5), last: Duration::from_secs(1000) };

    /// Waits in milliseconds.
    pub const fn millis(first: u64, last: u64) -> Self {
        Self { first: Duration::from_millis(first), last: Duration::from_millis(last) }
    }

    fn after(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.min(30)).min(self.last)
    }
}

/// The longest wait of a key that failed while somebody else changed what it depends on.
const NEWS: Duration = Duration::from_secs(1);

/// How urgent a key is; the greater, the sooner.
pub type Priority = i32;

/// The priority of what is looked at only because it was there at the start.
pub const LOW: Priority = -100;

/// Keys to be looked at.
#[derive(Debug)]
pub struct Queue {
    backoff: Backoff,
    inner: Mutex<Inner>,
    changed: Notify,
    measures: OnceLock<Measures>,
}

/// What is counted while the queue works; the rest is looked up when somebody wants to know.
#[derive(Debug)]
struct Measures {
    adds: Series,
    retries: Series,
    waited: Series,
    worked: Series,
}

#[derive(Debug, Default)]
struct Inner {
    /// The least comes first: urgency with its sign turned, then the order of arrival.
    ready: BTreeSet<(Priority, u64, Key)>,
    /// Where in `ready` a key is, and since when.
    place: BTreeMap<Key, (Priority, u64, Instant)>,
    /// Keys that are looked at.
    working: BTreeMap<Key, Work>,
    timers: BTreeSet<(Instant, Key)>,
    timer_of: BTreeMap<Key, Instant>,
    failures: BTreeMap<Key, Failures>,
    arrivals: u64,
}

/// What went wrong with a key since it last went well.
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    /// Whether its last wait was cut short.
    hurried: bool,
}

/// A key that is looked at.
#[derive(Debug)]
struct Work {
    since: Instant,
    /// The urgency of what changed meanwhile.
    changed: Option<Priority>,
    /// Whether somebody else than who looks at it changed something.
    news: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self { backoff, inner: Mutex::default(), changed: Notify::new(), measures: OnceLock::new() }
    }

    /// Counts what happens from now on in the metrics of a controller.
    pub fn measure(self: &Arc<Self>, controller: &'static str, metrics: &Registry) {
        let labels = &[controller, controller];
        let measures = Measures {
            adds: metrics.series(&names::WORKQUEUE_ADDS, labels),
            retries: metrics.series(&names::WORKQUEUE_RETRIES, labels),
            waited: metrics.series(&names::WORKQUEUE_QUEUE_DURATION, labels),
            worked: metrics.series(&names::WORKQUEUE_WORK_DURATION, labels),
        };
        // What came before counts, too.
        #[expect(clippy::cast_precision_loss, reason = "no queue sees that many keys")]
        measures.adds.add(self.inner.lock().arrivals as f64);
        if self.measures.set(measures).is_ok() {
            let queue = Arc::downgrade(self);
            metrics.collect(move |metrics| {
                if let Some(queue) = queue.upgrade() {
                    queue.collect(controller, metrics);
                }
            });
        }
    }

    /// Brings the metrics up to date that depend on the time.
    fn collect(&self, controller: &str, metrics: &Registry) {
        let (depths, seconds) = {
            let (inner, now) = (self.inner.lock(), Instant::now());
            let mut depths = BTreeMap::from([(0, 0.0)]);
            for (urgency, ..) in &inner.ready {
                *depths.entry(urgency.saturating_neg()).or_insert(0.0) += 1.0;
            }
            let since = |work: &Work| now.duration_since(work.since).as_secs_f64();
            (depths, inner.working.values().map(since).collect::<Vec<f64>>())
        };
        let depths = depths.into_iter().map(|(priority, depth)| {
            (vec![controller.to_owned(), controller.to_owned(), priority.to_string()], depth)
        });
        metrics.replace(&names::WORKQUEUE_DEPTH, controller, depths);
        let labels = &[controller, controller];
        metrics.set(&names::WORKQUEUE_UNFINISHED_WORK, labels, seconds.iter().fold(0.0, |a, b| a + b));
        metrics.set(&names::WORKQUEUE_LONGEST_RUNNING, labels, seconds.into_iter().fold(0.0, f64::max));
    }

    /// Counts what came since.
    fn count(&self, inner: &Inner, arrivals_before: u64) {
        if let Some(measures) = self.measures.get()
            && inner.arrivals > arrivals_before
        {
            #[expect(clippy::cast_precision_loss, reason = "a few at once")]
            measures.adds.add((inner.arrivals - arrivals_before) as f64);
        }
    }

    /// Something that the key depends on has changed.
    pub fn add(&self, key: Key) {
        self.add_with(key, 0);
    }

    /// As [`Queue::add`], with an urgency.
    pub fn add_with(&self, key: Key, priority: Priority) {
        let by_itself = controller::looks_at(&key, self.address());
        let mut inner = self.inner.lock();
        let before = inner.arrivals;
        inner.add(key, priority, by_itself, Instant::now());
        self.count(&inner, before);
        drop(inner);
        self.changed.notify_one();
    }

    /// Tells this queue from others.
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Looks at the key after a while at the latest.
    pub fn add_after(&self, key: Key, wait: Duration) {
        self.inner.lock().add_at(key, Instant::now() + wait);
        self.changed.notify_one();
    }

    /// Waits for the next key to look at. Each must be given back with `done` or `failed`.
    pub async fn next(&self) -> Key {
        loop {
            let timer = {
                let (mut inner, now) = (self.inner.lock(), Instant::now());
                let before = inner.arrivals;
                inner.fire(now);
                self.count(&inner, before);
                if let Some((key, since)) = inner.pop(now) {
                    drop(inner);
                    if let Some(measures) = self.measures.get() {
                        measures.waited.observe(now.duration_since(since).as_secs_f64());
                    }
                    return key;
                }
                inner.timers.first().map(|(when, _)| *when)
            };
            match timer {
                Some(when) => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(when) => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// The key was looked at; it is looked at again after `again` at the latest.
    pub fn done(&self, key: &Key, again: Option<Duration>) {
        let (mut inner, now) = (self.inner.lock(), Instant::now());
        let before = inner.arrivals;
        inner.failures.remove(key);
        let work = inner.finish(key, again.map(|wait| now + wait), now);
        self.count(&inner, before);
        drop(inner);
        self.worked(work, now);
        self.changed.notify_one();
    }

    /// Looking at the key failed or was in vain; it is looked at again after its back-off.
    pub fn failed(&self, key: &Key) {
        let (mut inner, now) = (self.inner.lock(), Instant::now());
        let work = inner.working.remove(key);
        let failures = inner.failures.entry(key.clone()).or_default();
        let mut wait = self.backoff.after(failures.count);
        failures.count = failures.count.saturating_add(1);
        // What somebody else changed meanwhile may be what it takes, so it does not wait for long. What was written
        // while the key was looked at is no reason to hurry: it would be written, and fail, again and again. Where the
        // watch is faster than the answer to the write, that looks like somebody else's: nobody hurries twice in a row.
        let has_news = work.as_ref().is_some_and(|work| work.news);
        failures.hurried = has_news && !failures.hurried && wait > NEWS;
        if failures.hurried {
            wait = NEWS;
        }
        inner.add_at(key.clone(), now + wait);
        drop(inner);
        self.worked(work, now);
        if let Some(measures) = self.measures.get() {
            measures.retries.add(1.0);
        }
        self.changed.notify_one();
    }

    fn worked(&self, work: Option<Work>, now: Instant) {
        if let (Some(work), Some(measures)) = (work, self.measures.get()) {
            measures.worked.observe(now.duration_since(work.since).as_secs_f64());
        }
    }

    /// How many keys are to be looked at now.
    pub fn depth(&self) -> usize {
        self.inner.lock().ready.len()
    }
}

impl Inner {
    fn add(&mut self, key: Key, priority: Priority, by_itself: bool, now: Instant) {
        if let Some(work) = self.working.get_mut(&key) {
            work.news |= !by_itself;
            work.changed = Some(work.changed.map_or(priority, |before| before.max(priority)));
            return;
        }
        let urgency = priority.saturating_neg();
        if let Some((before, arrival, since)) = self.place.get(&key).copied() {
            if urgency < before {
                self.ready.remove(&(before, arrival, key.clone()));
                self.place.insert(key.clone(), (urgency, arrival, since));
                self.ready.insert((urgency, arrival, key));
            }
            return;
        }
        self.arrivals += 1;
        self.place.insert(key.clone(), (urgency, self.arrivals, now));
        self.ready.insert((urgency, self.arrivals, key));
    }

    fn add_at(&mut self, key: Key, when: Instant) {
        if self.place.contains_key(&key) || self.timer_of.get(&key).is_some_and(|before| *before <= when) {
            return;
        }
        self.clear_timer(&key);
        self.timers.insert((when, key.clone()));
        self.timer_of.insert(key, when);
    }

    fn clear_timer(&mut self, key: &Key) {
        if let Some((key, when)) = self.timer_of.remove_entry(key) {
            self.timers.remove(&(when, key));
        }
    }

    fn fire(&mut self, now: Instant) {
        while self.timers.first().is_some_and(|(when, _)| *when <= now) {
            if let Some((_, key)) = self.timers.pop_first() {
                self.timer_of.remove(&key);
                self.add(key, 0, true, now);
            }
        }
    }

    /// The next key, and since when it waited; its timer is cleared, because looking at it sets a new one.
    fn pop(&mut self, now: Instant) -> Option<(Key, Instant)> {
        let (_, _, key) = self.ready.pop_first()?;
        let since = self.place.remove(&key).map_or(now, |(_, _, since)| since);
        self.clear_timer(&key);
        self.working.insert(key.clone(), Work { since: now, changed: None, news: false });
        Some((key, since))
    }

    fn finish(&mut self, key: &Key, again: Option<Instant>, now: Instant) -> Option<Work> {
        let work = self.working.remove(key);
        match (work.as_ref().and_then(|work| work.changed), again) {
            (Some(priority), _) => self.add(key.clone(), priority, true, now),
            (None, Some(when)) => self.add_at(key.clone(), when),
            (None, None) => {}
        }
        work
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn queue() -> Queue {
        Queue::new(Backoff::millis(100, 350))
    }

    fn key(name: &str) -> Key {
        Key::cluster(name)
    }

    #[tokio::test(start_paused = true)]
    async fn keys_come_once_the_urgent_first_and_others_in_order() {
        let queue = queue();
        for name in ["b", "a", "b"] {
            queue.add(key(name));
        }
        queue.add_with(key("late"), LOW);
        queue.add_with(key("late"), 0);
        queue.add_with(key("low"), LOW);
        queue.add_with(key("high"), 10);
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(queue.next().await.to_string());
        }
        assert_eq!(seen, ["high", "b", "a", "late", "low"]);
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_changes_while_it_is_looked_at_comes_again_afterwards() {
        let queue = queue();
        queue.add(key("a"));
        let a = queue.next().await;
        queue.add(key("a"));
        assert_eq!(queue.depth(), 0);
        queue.done(&a, Some(Duration::from_hours(1)));
        assert_eq!(queue.next().await, a);
        queue.done(&a, None);
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_is_measured() {
        let (queue, metrics) = (Arc::new(queue()), Registry::default());
        queue.add(key("early"));
        queue.measure("c", &metrics);
        for name in ["a", "b", "a"] {
            queue.add_with(key(name), LOW);
        }
        queue.add(key("c"));
        tokio::time::advance(Duration::from_secs(1)).await;
        let early = queue.next().await;
        tokio::time::advance(Duration::from_secs(2)).await;
        let lines = |metrics: &Registry| {
            let page = metrics.page();
            let lines = page.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket"));
            lines
                .map(|line| format!("{line}\n").replace("controller=\"c\",name=\"c\"", "c"))
                .collect::<String>()
        };
        expect![[r#"
            workqueue_adds_total{c} 4
            workqueue_depth{c,priority="-100"} 2
            workqueue_depth{c,priority="0"} 1
            workqueue_longest_running_processor_seconds{c} 2
            workqueue_queue_duration_seconds_sum{c} 1
            workqueue_queue_duration_seconds_count{c} 1
            workqueue_retries_total{c} 0
            workqueue_unfinished_work_seconds{c} 2
            workqueue_work_duration_seconds_sum{c} 0
            workqueue_work_duration_seconds_count{c} 0
        "#]]
        .assert_eq(&lines(&metrics));
        queue.failed(&early);
        let c = queue.next().await;
        queue.done(&c, None);
        expect![[r#"
            workqueue_adds_total{c} 4
            workqueue_depth{c,priority="-100"} 2
            workqueue_depth{c,priority="0"} 0
            workqueue_longest_running_processor_seconds{c} 0
            workqueue_queue_duration_seconds_sum{c} 4
            workqueue_queue_duration_seconds_count{c} 2
            workqueue_retries_total{c} 1
            workqueue_unfinished_work_seconds{c} 0
            workqueue_work_duration_seconds_sum{c} 2
            workqueue_work_duration_seconds_count{c} 2
        "#]]
        .assert_eq(&lines(&metrics));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_timer_counts() {
        let queue = queue();
        let start = Instant::now();
        for wait in [5, 3, 4] {
            queue.add_after(key("a"), Duration::from_secs(wait));
        }
        queue.next().await;
        assert_eq!(start.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time_until_one_success() {
        let queue = queue();
        queue.add(key("a"));
        let mut waits = Vec::new();
        let mut a = queue.next().await;
        for _ in 0..3 {
            let start = Instant::now();
            queue.failed(&a);
            a = queue.next().await;
            waits.push(start.elapsed().as_millis());
        }
        assert_eq!(waits, [100, 200, 350]);
        queue.done(&a, None);
        queue.add(a);
        let a = queue.next().await;
        let start = Instant::now();
        queue.failed(&a);
        queue.next().await;
        assert_eq!(start.elapsed().as_millis(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_changes_while_looking_at_it_fails_does_not_wait_for_long() {
        let queue = Queue::new(Backoff::millis(5, 1_000_000));
        queue.add(key("a"));
        let mut a = queue.next().await;
        for _ in 0..20 {
            queue.failed(&a);
            a = queue.next().await;
        }
        let start = Instant::now();
        queue.add(key("a"));
        queue.failed(&a);
        let a = queue.next().await;
        assert_eq!(start.elapsed().as_millis(), 1000);
        // Nobody hurries twice in a row.
        let start = Instant::now();
        queue.add(key("a"));
        queue.failed(&a);
        let a = queue.next().await;
        assert_eq!(start.elapsed().as_secs(), 1000);
        // Nothing has changed since.
        let start = Instant::now();
        queue.failed(&a);
        queue.next().await;
        assert_eq!(start.elapsed().as_secs(), 1000);
    }
}
