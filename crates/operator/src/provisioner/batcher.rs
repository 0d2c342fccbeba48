//! Collects what is to be decided on together.
//!
//! ```text
//!   trigger ─► window opens ─► each new trigger: the idle time begins anew ─► window closes
//!              │◄──────────────── at most the longest time ────────────────►│
//! ```
//!
//! The first trigger opens a window. It closes when no new one has come for the idle time, or when it has been
//! open for the longest time. What comes afterwards opens the next window.

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

    /// Waits until a window has been opened and closed.
    ///
    /// A trigger that comes while a decision is being made opens the next window at once.
    pub(crate) async fn wait(&self) {
        loop {
            let closes = {
                let mut window = self.window.lock();
                let closes = window.closes(self.idle, self.longest);
                if closes.is_some_and(|closes| closes <= Instant::now()) {
                    *window = Window::default();
                    return;
                }
                closes
            };
            match closes {
                None => self.changed.notified().await,
                Some(closes) => tokio::select! {
                    biased;
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep_until(closes) => {}
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
        let batcher = Arc::new(Batcher::new(Duration::from_secs(1), Duration::from_secs(10)));
        let start = Instant::now();
        for (at, id) in triggers.iter().copied() {
            let (batcher, id) = (Arc::clone(&batcher), id.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep_until(start + Duration::from_millis(at)).await;
                batcher.trigger(&id);
            });
        }
        batcher.wait().await;
        start.elapsed().as_millis()
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
