//! The work queue: what to look at, in order, each item once.
//!
//! ```text
//!   add ──► waiting (in order) ──► pop ──► working ──► done
//!             ▲                              │ add while working
//!             ├──────────────────────────────┘
//!           timers ◄── look again, back-off
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use rand::RngExt;
use rand_pcg::Pcg32;

/// The first wait after a failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(10);

/// The longest wait after failures.
const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

/// A queue of items, ordered and without duplicates.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    waiting: VecDeque<T>,
    timers: BTreeSet<(Timestamp, T)>,
    /// Every item that waits, is worked on, has a timer, or failed.
    items: BTreeMap<T, Standing>,
    jitter: Pcg32,
}

/// How an item stands.
#[derive(Debug, Default)]
struct Standing {
    waits: bool,
    /// Being worked on, and whether it changed meanwhile.
    working: Option<bool>,
    timer: Option<Timestamp>,
    failures: u32,
}

impl<T: Ord + Clone> Queue<T> {
    pub(crate) fn new(jitter: Pcg32) -> Self {
        Self { waiting: VecDeque::new(), timers: BTreeSet::new(), items: BTreeMap::new(), jitter }
    }

    /// Something that the item depends on changed.
    pub(crate) fn add(&mut self, item: T) {
        let standing = match self.items.get_mut(&item) {
            Some(standing) => standing,
            None => self.items.entry(item.clone()).or_default(),
        };
        if let Some(changed) = &mut standing.working {
            *changed = true;
        } else if !standing.waits {
            standing.waits = true;
            self.waiting.push_back(item);
        }
    }

    /// Looks at the item at `when` at the latest.
    pub(crate) fn add_at(&mut self, item: T, when: Timestamp) {
        let standing = self.items.entry(item.clone()).or_default();
        if standing.waits || standing.timer.is_some_and(|before| before <= when) {
            return;
        }
        if let Some(before) = standing.timer.replace(when) {
            self.timers.remove(&(before, item.clone()));
        }
        self.timers.insert((when, item));
    }

    /// When the next timer is due.
    pub(crate) fn next_timer(&self) -> Option<Timestamp> {
        self.timers.first().map(|(when, _)| *when)
    }

    /// Queues what is due.
    pub(crate) fn fire(&mut self, now: Timestamp) {
        while self.timers.first().is_some_and(|(when, _)| *when <= now) {
            let Some((_, item)) = self.timers.pop_first() else { break };
            if let Some(standing) = self.items.get_mut(&item) {
                standing.timer = None;
            }
            self.add(item);
        }
    }

    /// The next item to work on; its timer is cleared, because looking at it sets a new one.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.waiting.pop_front()?;
        let standing = self.items.get_mut(&item)?;
        standing.waits = false;
        standing.working = Some(false);
        if let Some(when) = standing.timer.take() {
            self.timers.remove(&(when, item.clone()));
        }
        Some(item)
    }

    /// The work on an item ended well.
    pub(crate) fn done(&mut self, item: &T, again: Option<Timestamp>) {
        let Some(standing) = self.items.get_mut(item) else { return };
        standing.failures = 0;
        let changed = standing.working.take().unwrap_or(false);
        match again {
            _ if changed => self.add(item.clone()),
            Some(when) => self.add_at(item.clone(), when),
            None if standing.timer.is_none() && !standing.waits => {
                self.items.remove(item);
            }
            None => {}
        }
    }

    /// The work on an item failed: look again after a while that grows with each failure.
    pub(crate) fn failed(&mut self, item: &T, now: Timestamp) {
        let standing = self.items.entry(item.clone()).or_default();
        standing.working = None;
        let wait = FIRST_BACKOFF.saturating_mul(1 << standing.failures.min(13)).min(LONGEST_BACKOFF);
        standing.failures = standing.failures.saturating_add(1);
        let wait = wait.mul_f64(self.jitter.random_range(1.0..1.2));
        self.add_at(item.clone(), now.saturating_add(wait).unwrap_or(now));
    }

    /// Whether nothing waits to be looked at now.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::rand_core::SeedableRng;

    use super::*;

    fn queue() -> Queue<&'static str> {
        Queue::new(Pcg32::seed_from_u64(1))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn items_come_once_and_in_order() {
        let mut queue = queue();
        for item in ["b", "a", "b", "c"] {
            queue.add(item);
        }
        assert_eq!(
            (queue.pop(), queue.pop(), queue.pop(), queue.pop()),
            (Some("b"), Some("a"), Some("c"), None)
        );
    }

    #[test]
    fn an_item_that_changes_while_worked_on_comes_again_afterwards() {
        let mut queue = queue();
        queue.add("a");
        queue.pop();
        queue.add("a");
        assert_eq!(queue.pop(), None);
        queue.done(&"a", Some(at(9)));
        assert_eq!(queue.pop(), Some("a"));
    }

    #[test]
    fn the_earliest_timer_counts_and_looking_at_the_item_clears_it() {
        let mut queue = queue();
        queue.add_at("a", at(5));
        queue.add_at("a", at(3));
        queue.add_at("a", at(4));
        assert_eq!(queue.next_timer(), Some(at(3)));
        queue.fire(at(3));
        assert_eq!(queue.pop(), Some("a"));
        queue.done(&"a", Some(at(10)));
        assert_eq!(queue.next_timer(), Some(at(10)));
        queue.add("a");
        queue.pop();
        queue.done(&"a", None);
        assert_eq!(queue.next_timer(), None);
    }

    #[test]
    fn failures_wait_longer_each_time_until_one_success() {
        let mut queue = queue();
        let mut waits = Vec::new();
        for _ in 0..3 {
            queue.add("a");
            queue.pop();
            queue.failed(&"a", at(0));
            waits.push(queue.next_timer().unwrap());
        }
        assert!(waits[0] < waits[1] && waits[1] < waits[2], "{waits:?}");
        queue.add("a");
        queue.pop();
        queue.done(&"a", None);
        queue.add("a");
        queue.pop();
        queue.failed(&"a", at(0));
        assert!(queue.next_timer().unwrap() < waits[1]);
    }
}
