//! The one clock: wall time that moves with tokio's, so that a paused runtime pauses everything.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time as tokio sees it: real time in a normal runtime, virtual time in a paused one.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Timestamp,
    started: Instant,
}

impl Clock {
    /// A clock that shows the machine's wall time now.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is where wall time enters")]
        Self::starting_at(Timestamp::now())
    }

    /// A clock that shows `base` now.
    pub fn starting_at(base: Timestamp) -> Self {
        Self { base, started: Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.base.saturating_add(self.started.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// How long until `when`; zero when it has passed.
    pub fn until(&self, when: Timestamp) -> Duration {
        Duration::try_from(when.duration_since(self.now())).unwrap_or(Duration::ZERO)
    }

    /// Waits until `when`.
    pub async fn sleep_until(&self, when: Timestamp) {
        tokio::time::sleep(self.until(when)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_hour_of_virtual_time_passes_on_the_clock() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        clock.sleep_until(Timestamp::from_second(3600).unwrap()).await;
        assert_eq!(clock.now().as_second(), 3600);
        assert_eq!(clock.until(Timestamp::UNIX_EPOCH), Duration::ZERO);
    }
}
