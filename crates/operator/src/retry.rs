//! Another try, soon.

use std::time::Duration;

use runtime::Error;

/// How often something is tried.
const ATTEMPTS: u32 = 4;
/// The wait before the second attempt.
const FIRST_WAIT: Duration = Duration::from_millis(10);
/// How much longer each further wait is.
const FACTOR: u32 = 5;

/// Tries something a few times within a second. What is gone is not looked for again.
pub(crate) async fn retry<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(error) if !error.is_not_found() => tokio::time::sleep(wait).await,
            done => return done,
        }
        wait *= FACTOR;
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn four_attempts_are_made_unless_the_object_is_gone() {
        let (start, count) = (Instant::now(), Cell::new(0));
        let failing = |code| {
            count.set(count.get() + 1);
            let error = Error::Refused { code, reason: String::new(), message: String::new() };
            async move { Err::<(), _>(error) }
        };
        assert!(retry(|| failing(409)).await.is_err());
        assert_eq!((count.get(), start.elapsed().as_millis()), (4, 310));
        assert!(retry(|| failing(404)).await.is_err());
        assert_eq!(count.get(), 5);
    }
}
