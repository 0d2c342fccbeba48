//! How often something may happen: so many at once, so many per second in the long run.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Lets `burst` through at once and `per_second` in the long run; whoever comes then waits, in order.
#[derive(Debug)]
pub struct Limiter {
    interval: Duration,
    burst: u32,
    /// When the bucket will have been full again.
    full_at: Mutex<Option<Instant>>,
}

impl Limiter {
    /// A limiter whose bucket is full.
    pub fn new(per_second: f64, burst: u32) -> Self {
        Self { interval: Duration::from_secs_f64(1.0 / per_second), burst, full_at: Mutex::new(None) }
    }

    /// Takes a turn, and waits for it.
    pub async fn acquire(&self) {
        let wait = self.reserve();
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes a turn if there is one now.
    pub fn try_acquire(&self) -> bool {
        let now = Instant::now();
        let mut full_at = self.full_at.lock();
        let next = full_at.unwrap_or(now).max(now) + self.interval;
        if next - now > self.interval * self.burst {
            return false;
        }
        *full_at = Some(next);
        true
    }

    /// Takes a turn, and says how long it is until then.
    pub fn reserve(&self) -> Duration {
        let now = Instant::now();
        let mut full_at = self.full_at.lock();
        let next = full_at.unwrap_or(now).max(now) + self.interval;
        *full_at = Some(next);
        (next - now).saturating_sub(self.interval * self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_pass_at_once_and_the_others_one_by_one() {
        let limiter = Limiter::new(10.0, 3);
        let start = Instant::now();
        for _ in 0..5 {
            limiter.acquire().await;
        }
        assert_eq!(start.elapsed().as_millis(), 200);
        assert!(!limiter.try_acquire());
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(limiter.try_acquire() && !limiter.try_acquire());
    }
}
