//! That a machine is being deleted by this process, so that nobody asks Azure for it twice.

use std::sync::Arc;

use super::Inner;

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

impl Drop for Deletion {
    fn drop(&mut self) {
        self.inner.deleting.lock().remove(&self.name);
    }
}
