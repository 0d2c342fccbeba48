//! The work queue: what to look at, the most urgent first, each key once.
//!
//! ```text
//!   add ──► ready (by priority, then in order) ──► next ──► working ──► done
//!             ▲                                               │ add while working
//!             ├───────────────────────────────────────────────┘
//!           timers ◄── look again, back-off after a failure
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ::cluster::state::Key;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

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
}

#[derive(Debug, Default)]
struct Inner {
    /// The least comes first: urgency with its sign turned, then the order of arrival.
    ready: BTreeSet<(Priority, u64, Key)>,
    /// Where in `ready` a key is.
    place: BTreeMap<Key, (Priority, u64)>,
    /// Keys that are looked at, with the urgency of what changed meanwhile.
    working: BTreeMap<Key, Option<Priority>>,
    timers: BTreeSet<(Instant, Key)>,
    timer_of: BTreeMap<Key, Instant>,
    failures: BTreeMap<Key, u32>,
    arrivals: u64,
}

impl Queue {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self { backoff, inner: Mutex::default(), changed: Notify::new() }
    }

    /// Something that the key depends on has changed.
    pub fn add(&self, key: Key) {
        self.add_with(key, 0);
    }

    /// As [`Queue::add`], with an urgency.
    pub fn add_with(&self, key: Key, priority: Priority) {
        self.inner.lock().add(key, priority);
        self.changed.notify_one();
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
                let mut inner = self.inner.lock();
                inner.fire(Instant::now());
                if let Some(key) = inner.pop() {
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
        let mut inner = self.inner.lock();
        inner.failures.remove(key);
        inner.finish(key, again.map(|wait| Instant::now() + wait));
        drop(inner);
        self.changed.notify_one();
    }

    /// Looking at the key failed or was in vain; it is looked at again after its back-off.
    pub fn failed(&self, key: &Key) {
        let mut inner = self.inner.lock();
        let failures = inner.failures.entry(key.clone()).or_default();
        let wait = self.backoff.after(*failures);
        *failures = failures.saturating_add(1);
        // What changed meanwhile waits, too: it would fail as before.
        inner.working.remove(key);
        inner.add_at(key.clone(), Instant::now() + wait);
        drop(inner);
        self.changed.notify_one();
    }

    /// How many keys are to be looked at now.
    pub fn depth(&self) -> usize {
        self.inner.lock().ready.len()
    }
}

impl Inner {
    fn add(&mut self, key: Key, priority: Priority) {
        if let Some(changed) = self.working.get_mut(&key) {
            *changed = Some(changed.map_or(priority, |before| before.max(priority)));
            return;
        }
        let urgency = priority.saturating_neg();
        if let Some((before, arrival)) = self.place.get(&key).copied() {
            if urgency < before {
                self.ready.remove(&(before, arrival, key.clone()));
                self.place.insert(key.clone(), (urgency, arrival));
                self.ready.insert((urgency, arrival, key));
            }
            return;
        }
        self.arrivals += 1;
        self.place.insert(key.clone(), (urgency, self.arrivals));
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
                self.add(key, 0);
            }
        }
    }

    /// The next key; its timer is cleared, because looking at it sets a new one.
    fn pop(&mut self) -> Option<Key> {
        let (_, _, key) = self.ready.pop_first()?;
        self.place.remove(&key);
        self.clear_timer(&key);
        self.working.insert(key.clone(), None);
        Some(key)
    }

    fn finish(&mut self, key: &Key, again: Option<Instant>) {
        match self.working.remove(key).flatten() {
            Some(priority) => self.add(key.clone(), priority),
            None => {
                if let Some(when) = again {
                    self.add_at(key.clone(), when);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
}
