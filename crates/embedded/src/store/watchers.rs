//! Who is told about changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{Change, CollectionId, Object};
use crate::selector::Selection;

/// How far a watcher may fall behind before it is cut off and has to start again.
const BACKLOG: usize = 16_384;

/// A running watch.
#[derive(Clone, Debug)]
pub(crate) struct WatchId {
    pub(super) collection: CollectionId,
    pub(super) number: u64,
}

/// What is told to one watcher about one change.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) kind: NoticeKind,
    pub(crate) object: Arc<Object>,
}

/// How the change looks through the watcher's selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoticeKind {
    Added,
    Modified,
    Deleted,
}

impl NoticeKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The sending side of a watch.
#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) selection: Selection,
    sender: mpsc::Sender<Notice>,
}

/// The receiving side of a watch.
pub(crate) type Subscription = mpsc::Receiver<Notice>;

impl Watcher {
    pub(crate) fn new(selection: Selection) -> (Self, Subscription) {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        (Self { selection, sender }, receiver)
    }
}

/// What a change means to someone who sees only a selection.
pub(crate) fn notice(selection: &Selection, change: &Change) -> Option<Notice> {
    let before = change.before.as_ref().filter(|before| selection.matches(before));
    let after = !change.removed && selection.matches(&change.after);
    let after_object = || change.after.clone();
    let (kind, object) = match (before, after) {
        (None, true) => (NoticeKind::Added, after_object()),
        (Some(_), true) => (NoticeKind::Modified, after_object()),
        (Some(_), false) if change.removed => (NoticeKind::Deleted, after_object()),
        // It is still there but no longer selected: the watcher sees the last state that was.
        (Some(before), false) => (NoticeKind::Deleted, Arc::new(before.with_revision(change.revision()))),
        (None, false) => return None,
    };
    Some(Notice { kind, object })
}

/// The watchers of one collection, those of a single namespace apart.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    everywhere: BTreeMap<u64, Watcher>,
    by_namespace: BTreeMap<Arc<str>, BTreeMap<u64, Watcher>>,
}

impl Watchers {
    pub(super) fn add(&mut self, number: u64, watcher: Watcher) {
        match watcher.selection.namespace.clone() {
            Some(namespace) => self.by_namespace.entry(namespace).or_default().insert(number, watcher),
            None => self.everywhere.insert(number, watcher),
        };
    }

    pub(super) fn remove(&mut self, number: u64) {
        self.everywhere.remove(&number);
        self.by_namespace.retain(|_, watchers| {
            watchers.remove(&number);
            !watchers.is_empty()
        });
    }

    pub(super) fn len(&self) -> usize {
        self.everywhere.len() + self.by_namespace.values().map(BTreeMap::len).sum::<usize>()
    }

    pub(super) fn clear(&mut self) {
        self.everywhere.clear();
        self.by_namespace.clear();
    }

    pub(super) fn tell(&mut self, change: &Change) {
        tell(&mut self.everywhere, change);
        if let Some(watchers) = self.by_namespace.get_mut(&change.after.key.namespace) {
            tell(watchers, change);
        }
    }
}

fn tell(watchers: &mut BTreeMap<u64, Watcher>, change: &Change) {
    watchers.retain(|_, watcher| match notice(&watcher.selection, change) {
        None => true,
        // One that has fallen too far behind is cut off: it starts again with a list and misses nothing.
        Some(notice) => {
            !matches!(watcher.sender.try_send(notice), Err(TrySendError::Full(_) | TrySendError::Closed(_)))
        }
    });
}
