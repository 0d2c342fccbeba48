//! Long computations, away from the threads that answer.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Computes something. On a runtime of one thread it is done at once, so that virtual time stays deterministic.
pub async fn compute<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
