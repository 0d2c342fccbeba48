//! Watches: the changes of a collection as they happen.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use serde_json::Value;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::field_error::FieldError;
use crate::form::{self, Writer};
use crate::list;
use crate::refusal::Refusal;
use crate::request::{ObjectPath, Query, Request};
use crate::resources::Resource;
use crate::selector::Selection;
use crate::state::State;
use crate::store::{Change, Notice, Subscription, WatchId, Watcher, notice};

/// How often a quiet watch is told the current revision.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// How long a watch lasts when the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);

/// Starts a watch.
pub(crate) fn watch(
    shared: &Arc<Mutex<State>>,
    request: &Request,
    resource: &Arc<Resource>,
    path: &ObjectPath,
) -> Result<Answer, Refusal> {
    let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let query = &request.query;
    let selection = list::selection(query, resource, path)?;
    let initial = check_initial_events(query)?;
    let asked = list::parse_revision(query.text("resourceVersion"))?;
    let current = state.store.revision();
    if asked > current {
        return Err(list::too_large(asked, current));
    }
    let writer = Writer::new(request, resource, state.clock.now());
    let mut first = true;
    let mut ready: VecDeque<Bytes> = VecDeque::new();
    // Without a revision, a watch begins with what is there.
    let from_now = initial.unwrap_or(asked == 0);
    if from_now {
        let objects = state.store.collection(resource.collection).objects();
        for object in objects.values().filter(|object| selection.matches(object)) {
            ready.push_back(writer.event("ADDED", object, std::mem::take(&mut first)));
        }
        // Clients from before there was a question for it ask with a version of zero.
        let marked = initial == Some(true) || query.text("resourceVersion") == "0";
        if marked && query.flag("allowWatchBookmarks") {
            ready.push_back(writer.bookmark(current, true));
        }
    } else if asked != 0 {
        let Some(notices) = missed(&state, resource, &selection, asked) else {
            // The stream begins, and its one event says that it cannot go on.
            let compacted = state.store.collection(resource.collection).compacted();
            let gone = Refusal::expired(format!("too old resource version: {asked} ({compacted})"));
            let event = form::line("ERROR", &gone.status());
            return Ok(Answer::chunks(Box::pin(stream::iter([event]))));
        };
        for notice in &notices {
            ready.push_back(writer.event(notice.kind.name(), &notice.object, std::mem::take(&mut first)));
        }
    }
    let (watcher, subscription) = Watcher::new(selection);
    let id = state.store.subscribe(resource.collection, watcher);
    drop(state);
    let seconds = query.text("timeoutSeconds").parse::<u64>().ok().filter(|seconds| *seconds > 0);
    let running = Running {
        shared: shared.clone(),
        id,
        subscription,
        writer,
        ready,
        first,
        bookmarks: query.flag("allowWatchBookmarks"),
        next_bookmark: Instant::now() + BOOKMARK_INTERVAL,
        end: Instant::now() + seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs),
    };
    let chunks = stream::unfold(running, |mut running| async move {
        let chunk = running.next().await?;
        Some((chunk, running))
    });
    Ok(Answer::chunks(Box::pin(chunks)))
}

/// What happened since a revision, as the selection shows it; nothing when that is forgotten.
fn missed(state: &State, resource: &Resource, selection: &Selection, since: u64) -> Option<Vec<Notice>> {
    let changes = state.store.collection(resource.collection).since(since)?;
    Some(changes.filter_map(|change: &Change| notice(selection, change)).collect())
}

/// Whether the watch begins with all objects; nothing when the client does not say.
fn check_initial_events(query: &Query) -> Result<Option<bool>, Refusal> {
    let matching = query.text("resourceVersionMatch");
    let refuse = |field: &str, detail: &str| {
        let error = FieldError::forbidden(field, detail);
        Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &[error]))
    };
    if !query.has("sendInitialEvents") {
        if !matching.is_empty() {
            return refuse(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        return Ok(None);
    }
    if matching.is_empty() {
        return refuse(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
    }
    if matching != "NotOlderThan" {
        let errors = [
            FieldError::forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ),
            FieldError::not_supported("resourceVersionMatch", &Value::from(matching), &["NotOlderThan"]),
        ];
        return Err(Refusal::invalid("meta.k8s.io", "ListOptions", "", &errors));
    }
    Ok(Some(query.flag("sendInitialEvents")))
}

/// A watch that a client listens to.
struct Running {
    shared: Arc<Mutex<State>>,
    id: WatchId,
    subscription: Subscription,
    writer: Writer,
    ready: VecDeque<Bytes>,
    /// Whether nothing was sent yet.
    first: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    end: Instant,
}

impl Running {
    /// The next line, or nothing when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(line) = self.ready.pop_front() {
            return Some(line);
        }
        let wake = if self.bookmarks { self.next_bookmark.min(self.end) } else { self.end };
        tokio::select! {
            biased;
            notice = self.subscription.recv() => {
                let notice = notice?;
                let first = std::mem::take(&mut self.first);
                Some(self.writer.event(notice.kind.name(), &notice.object, first))
            }
            () = tokio::time::sleep_until(wake) => {
                if Instant::now() >= self.end {
                    return None;
                }
                self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                self.bookmark();
                self.ready.pop_front()
            }
        }
    }

    /// Queues a bookmark behind every change it covers.
    fn bookmark(&mut self) {
        // Changes are told under the lock, so all up to this revision have arrived.
        let revision = self.shared.lock().unwrap_or_else(PoisonError::into_inner).store.revision();
        while let Ok(notice) = self.subscription.try_recv() {
            let first = std::mem::take(&mut self.first);
            self.ready.push_back(self.writer.event(notice.kind.name(), &notice.object, first));
        }
        self.ready.push_back(self.writer.bookmark(revision, false));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        state.store.unsubscribe(&self.id);
    }
}
