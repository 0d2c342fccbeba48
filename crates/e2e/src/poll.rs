//! Waiting for something that another process does, with a deadline instead of a guessed pause.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Short enough not to slow a test down, long enough that a waiting test leaves the cores to the others.
const INTERVAL: Duration = Duration::from_millis(50);

/// Calls `attempt` until it returns a value, and fails when `timeout` has passed or the attempt itself fails.
///
/// `what` completes the sentence "waited 60 s in vain for ...".
#[expect(clippy::disallowed_methods, reason = "the processes waited for run on the machine's clock")]
pub fn poll<T>(what: &str, timeout: Duration, mut attempt: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        // Looked at before the attempt, so that the last attempt begins after the whole timeout.
        let late = start.elapsed() >= timeout;
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        if late {
            bail!("waited {} s in vain for {what}", timeout.as_secs());
        }
        thread::sleep(INTERVAL);
    }
}
