//! That a machine is being deleted by this process, so that nobody asks Azure for it twice.

use std::sync::Arc;
use std::time::Duration;

use super::Inner;
use crate::arm::{Error, Running};

/// How long the end of a deletion is waited for. Whoever asks again after that looks at the machine anew.
const LONGEST: Duration = Duration::from_mins(30);

/// That a machine is being deleted, until this is dropped: also where whoever began it goes away, or panics.
pub(super) struct Deletion {
    inner: Arc<Inner>,
    name: String,
}

impl Deletion {
    /// Begins to delete a machine; nothing if that has begun already.
    pub(super) fn begin(inner: &Arc<Inner>, name: &str) -> Option<Self> {
        let is_first = inner.deleting.lock().insert(name.to_owned());
        is_first.then(|| Self { inner: Arc::clone(inner), name: name.to_owned() })
    }
}

/// Waits for the end of a deletion.
pub(super) async fn end<T>(running: Running<T>) -> Result<(), Error> {
    let end = tokio::time::timeout(LONGEST, running.done()).await;
    end.unwrap_or_else(|_| {
        let minutes = LONGEST.as_secs() / 60;
        Err(Error::new("deleting a machine", "", &format!("it did not end within {minutes} minutes")))
    })
}

impl Drop for Deletion {
    fn drop(&mut self) {
        self.inner.deleting.lock().remove(&self.name);
    }
}
