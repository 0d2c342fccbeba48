//! All objects of one resource with their recent history.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use super::object::{Key, Object, Objects};
use super::watchers::Watchers;

/// How much memory former states in the history of a collection take at most: clients that come back within a minute
/// find what they missed, the leases of a hundred nodes included, and a thousand pods that start do not fill the
/// memory.
const MOST: usize = 640 * 1024;

/// About what a state takes beside its text.
const BESIDE: usize = 512;

/// One change of a collection.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The state before; nothing when the object is new.
    pub(crate) before: Option<Arc<Object>>,
    /// The state after; for a removal the last state with the revision of the removal.
    pub(crate) after: Arc<Object>,
    pub(crate) removed: bool,
}

impl Change {
    pub(crate) fn revision(&self) -> u64 {
        self.after.revision
    }

    /// How much is kept for nothing but the history.
    fn size(&self) -> usize {
        let size = |object: &Arc<Object>| object.json.len() + BESIDE;
        let last = if self.removed { size(&self.after) } else { 0 };
        last + self.before.as_ref().map_or(0, size)
    }
}

#[derive(Debug)]
pub(crate) struct Collection {
    objects: Objects,
    log: VecDeque<Change>,
    /// The size of all changes of the log.
    size: usize,
    /// The log holds every change after this revision.
    compacted: u64,
    pub(super) watchers: Watchers,
}

impl Collection {
    /// An empty collection: it had no changes, so its history reaches back to the start.
    pub(super) fn new() -> Self {
        Self {
            objects: Objects::new(),
            log: VecDeque::new(),
            size: 0,
            compacted: 0,
            watchers: Watchers::default(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.objects.get(key)
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The objects as they were at `revision`; nothing when the history does not reach back that far.
    pub(crate) fn at(&self, revision: u64) -> Option<Cow<'_, Objects>> {
        if self.log.back().is_none_or(|last| last.revision() <= revision) {
            return (revision >= self.compacted).then_some(Cow::Borrowed(&self.objects));
        }
        if revision < self.compacted {
            return None;
        }
        let mut objects = self.objects.clone();
        for change in self.log.iter().rev().take_while(|change| change.revision() > revision) {
            match &change.before {
                Some(before) => objects.insert(before.key.clone(), before.clone()),
                None => objects.remove(&change.after.key),
            };
        }
        Some(Cow::Owned(objects))
    }

    /// The changes after `revision`; nothing when some of them are forgotten.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Change>> {
        let start = self.log.partition_point(|change| change.revision() <= revision);
        (revision >= self.compacted).then(|| self.log.range(start..))
    }

    /// The revision before which nothing is known.
    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// How many watches run.
    pub(crate) fn watchers(&self) -> usize {
        self.watchers.len()
    }

    pub(super) fn put(&mut self, object: Arc<Object>, history: usize) {
        let before = self.objects.insert(object.key.clone(), object.clone());
        self.record(Change { before, after: object, removed: false }, history);
    }

    pub(super) fn remove(&mut self, last: Arc<Object>, history: usize) {
        let before = self.objects.remove(&last.key);
        self.record(Change { before, after: last, removed: true }, history);
    }

    fn record(&mut self, change: Change, history: usize) {
        self.watchers.tell(&change);
        self.size += change.size();
        self.log.push_back(change);
        // The last change stays, however large its object is.
        while (self.log.len() > history || (self.size > MOST && self.log.len() > 1))
            && let Some(forgotten) = self.log.pop_front()
        {
            self.size -= forgotten.size();
            self.compacted = forgotten.revision();
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.log.clear();
        self.size = 0;
        self.compacted = revision;
    }
}
