//! Collects what is to be decided on together.
//!
//! ```text
//!   trigger ─► window opens ─► each new trigger: the idle time begins anew ─► window closes
//!              │◄──────────────── at most the longest time ────────────────►│
//!              │◄─ idle time ─► look ◄─ idle time ─► look ...
//! ```
//!
//! The first trigger opens a window. It closes when no new one has come for the idle time, or when it has been
//! open for the longest time. What comes afterwards opens the next window. While triggers keep it open, one look is
//! taken every idle time, so that what cannot become better need not wait for its end.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The window in which triggers are collected. It knows no clock.
#[derive(Debug, Default)]
struct Window {
    /// What has triggered already and does not lengthen the window by doing so again.
    seen: BTreeSet<Box<str>>,
    opened: Option<Instant>,
    last: Option<Instant>,
    /// When it was last looked at.
    looked: Option<Instant>,
}

/// What a batch is when somebody looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// More keeps coming.
    Growing,
    /// Its window has closed.
    Complete,
}

impl Window {
    /// Notes a trigger; whether it is new.
    fn trigger(&mut self, id: &str, now: Instant) -> bool {
        if !id.is_empty() && !self.seen.insert(id.into()) {
            return false;
        }
        self.opened.get_or_insert(now);
        self.last = Some(now);
        true
    }

    /// When the window closes if nothing comes; nothing while it is not open.
    fn closes(&self, idle: Duration, longest: Duration) -> Option<Instant> {
        Some((self.last? + idle).min(self.opened? + longest))
    }

    /// When it is to be looked at though it is open; nothing if nothing has come since the last look.
    fn look(&self, idle: Duration) -> Option<Instant> {
        let before = self.looked.or(self.opened)?;
        (self.looked.is_none() || self.last? > before).then_some(before + idle)
    }
}

/// Collects what is to be decided on together.
#[derive(Debug)]
pub(crate) struct Batcher {
    idle: Duration,
    longest: Duration,
    window: Mutex<Window>,
    changed: Notify,
}

impl Batcher {
    /// A batcher whose window closes after `idle` without anything new, or after `longest`.
    pub(crate) fn new(idle: Duration, longest: Duration) -> Self {
        Self { idle, longest, window: Mutex::default(), changed: Notify::new() }
    }

    /// Something is to be decided on. The same `id` counts once in a window; an empty one counts each time.
    pub(crate) fn trigger(&self, id: &str) {
        if self.window.lock().trigger(id, Instant::now()) {
            self.changed.notify_one();
        }
    }

    /// Waits until a window has been opened and closed, or is to be looked at on the way.
    ///
    /// A trigger that comes while a decision is being made opens the next window at once.
    pub(crate) async fn wait(&self) -> Batch {
        loop {
            let next = {
                let (mut window, now) = (self.window.lock(), Instant::now());
                let closes = window.closes(self.idle, self.longest);
                if closes.is_some_and(|closes| closes <= now) {
                    *window = Window::default();
                    return Batch::Complete;
                }
                let look = window.look(self.idle);
                if look.is_some_and(|look| look <= now) {
                    window.looked = Some(now);
                    return Batch::Growing;
                }
                closes.into_iter().chain(look).min()
            };
            match next {
                None => self.changed.notified().await,
                Some(next) => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(next) => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// When the window closes, in milliseconds, with triggers at some times.
    async fn closes(triggers: &[(u64, &str)]) -> u128 {
        looks(triggers).await.pop().unwrap()
    }

    /// When the window is looked at, the last time because it closes.
    async fn looks(triggers: &[(u64, &str)]) -> Vec<u128> {
        let batcher = Arc::new(Batcher::new(Duration::from_secs(1), Duration::from_secs(10)));
        let start = Instant::now();
        for (at, id) in triggers.iter().copied() {
            let (batcher, id) = (Arc::clone(&batcher), id.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep_until(start + Duration::from_millis(at)).await;
                batcher.trigger(&id);
            });
        }
        let mut looks = Vec::new();
        loop {
            let batch = batcher.wait().await;
            looks.push(start.elapsed().as_millis());
            if batch == Batch::Complete {
                return looks;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_that_stays_open_is_looked_at_every_second_in_which_something_came() {
        assert_eq!(looks(&[(0, "a")]).await, [1_000]);
        assert_eq!(looks(&[(0, "a"), (900, "b"), (1_800, "c")]).await, [1_000, 2_000, 2_800]);
        let batcher = Batcher::new(Duration::from_secs(3), Duration::from_secs(10));
        batcher.trigger("a");
        tokio::time::sleep(Duration::from_secs(2)).await;
        batcher.trigger("b");
        assert_eq!(batcher.wait().await, Batch::Growing);
        // Nothing has come since, so that the next time is the end.
        assert_eq!(batcher.wait().await, Batch::Complete);
    }

    #[tokio::test(start_paused = true)]
    async fn the_window_closes_after_a_quiet_second() {
        assert_eq!(closes(&[(5_000, "a")]).await, 6_000);
    }

    #[tokio::test(start_paused = true)]
    async fn something_new_lengthens_the_window_and_repetitions_do_not() {
        assert_eq!(closes(&[(0, "a"), (900, "b"), (1_800, "c")]).await, 2_800);
        assert_eq!(closes(&[(0, "a"), (900, "a")]).await, 1_000);
        assert_eq!(closes(&[(0, ""), (900, "")]).await, 1_900);
    }

    #[tokio::test(start_paused = true)]
    async fn the_window_is_never_open_for_more_than_ten_seconds() {
        let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        let triggers: Vec<(u64, &str)> = (0..).step_by(500).zip(names.iter().map(String::as_str)).collect();
        assert_eq!(closes(&triggers).await, 10_000);
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_during_a_decision_opens_the_next_window_at_once() {
        let batcher = Batcher::new(Duration::from_secs(1), Duration::from_secs(10));
        batcher.trigger("a");
        batcher.wait().await;
        batcher.trigger("a");
        // The decision takes three seconds.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let start = Instant::now();
        batcher.wait().await;
        assert_eq!(start.elapsed().as_millis(), 0);
    }
}
