//! Keeps a line that comes over and over from drowning the others.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::Level;

/// How many of the same are written per second before only some are.
const FIRST: u64 = 100;
/// Of those that follow, each so-many-th is written.
const EVERY: u64 = 100;
/// How many messages are told apart; more share their counts.
const COUNTERS: usize = 4096;

/// Counts messages.
#[derive(Debug)]
pub(super) struct Sampler(Mutex<Box<[Counter]>>);

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    since: Timestamp,
    count: u64,
}

impl Default for Sampler {
    fn default() -> Self {
        Self(Mutex::new(vec![Counter::default(); COUNTERS].into()))
    }
}

impl Sampler {
    /// Whether a message is to be written.
    pub(super) fn allows(&self, level: Level, message: &str, now: Timestamp) -> bool {
        // Its numbers are the same in every run.
        let mut hasher = DefaultHasher::new();
        (level, message).hash(&mut hasher);
        let mut counters = self.0.lock();
        let places = u64::try_from(counters.len()).unwrap_or(1);
        let place = usize::try_from(hasher.finish() % places).unwrap_or_default();
        let Some(counter) = counters.get_mut(place) else { return true };
        if now.duration_since(counter.since).unsigned_abs() >= Duration::from_secs(1) {
            *counter = Counter { since: now, count: 0 };
        }
        counter.count += 1;
        counter.count <= FIRST || (counter.count - FIRST).is_multiple_of(EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_messages_and_seconds_are_counted_apart() {
        let sampler = Sampler::default();
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let written =
            |level, message, millis| (0..200).filter(|_| sampler.allows(level, message, at(millis))).count();
        assert_eq!(written(Level::INFO, "a", 10_000), 101);
        assert_eq!(written(Level::ERROR, "a", 10_500), 101);
        assert_eq!(written(Level::INFO, "b", 10_900), 101);
        assert_eq!(written(Level::INFO, "a", 10_999), 2);
        assert_eq!(written(Level::INFO, "a", 11_000), 101);
    }
}
