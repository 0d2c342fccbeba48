//! Events: what users see of decisions, on the objects that they are about.
//!
//! ```text
//!   publish ── said lately? too many? ──► channel ──► write: series and spam ──► API server
//! ```

mod series;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ::cluster::state::{Kind, Meta, Watched};
use api::names::events::{Event, EventKind};
use api::provider::Provider;
use clock::Clock;
use kube::Client;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::limit::Limiter;

/// How many events may wait to be written. More are dropped: nobody waits for events.
const WAITING: usize = 1000;
/// How many events are remembered.
const REMEMBERED: usize = 1000;
/// How often what is no longer needed to tell repetitions is forgotten.
const SWEEP: Duration = Duration::from_mins(1);

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// The kind of the object.
    pub kind: Kind,
    /// Its namespace; empty for cluster-wide kinds.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its UID.
    pub uid: Box<str>,
}

impl About {
    /// An event about an object.
    pub fn object<K: Watched>(object: &K) -> Self {
        let meta: &dyn Meta = object.meta();
        let key = meta.key();
        Self { kind: K::KIND, namespace: key.namespace, name: key.name, uid: meta.uid().into() }
    }
}

/// An event that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// What it is about.
    pub about: About,
    /// Whether it is worth a look.
    pub kind: EventKind,
    /// The reason, as one word.
    pub reason: Box<str>,
    /// What it says.
    pub message: String,
}

/// Publishes events. Clones share what was published before.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    provider: Provider,
    memory: Mutex<Memory>,
    sender: mpsc::Sender<Published>,
    /// Until somebody writes events.
    receiver: Mutex<Option<mpsc::Receiver<Published>>>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Until when an event is not repeated.
    silent: BTreeMap<String, Instant>,
    swept: Option<Instant>,
    limiters: BTreeMap<&'static str, Limiter>,
    published: VecDeque<Published>,
}

impl Recorder {
    /// A recorder that has published nothing.
    pub fn new(provider: Provider) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let receiver = Mutex::new(Some(receiver));
        Self(Arc::new(Inner { provider, memory: Mutex::default(), sender, receiver }))
    }

    /// The cloud, which decides what NodeClasses are called.
    pub fn provider(&self) -> Provider {
        self.0.provider
    }

    /// Publishes an event, unless one with the same reason and the same `dedupe` values was published a short
    /// while ago. It never waits.
    pub fn publish(&self, event: &'static Event, about: About, message: impl Into<String>, dedupe: &[&str]) {
        let now = Instant::now();
        let mut memory = self.0.memory.lock();
        if !dedupe.is_empty() && !memory.is_new(event, dedupe, now) {
            return;
        }
        // An event that is one too many counts as said nevertheless.
        if !memory.is_allowed(event) {
            return;
        }
        let (kind, reason) = (event.kind, event.reason.into());
        self.send(&mut memory, Published { about, kind, reason, message: message.into() });
    }

    /// Publishes that a condition has changed; its type is the reason.
    pub fn publish_transition(&self, condition: &str, about: About, message: impl Into<String>) {
        let (kind, reason) = (EventKind::Normal, condition.into());
        let mut memory = self.0.memory.lock();
        self.send(&mut memory, Published { about, kind, reason, message: message.into() });
    }

    fn send(&self, memory: &mut Memory, event: Published) {
        if memory.published.len() == REMEMBERED {
            memory.published.pop_front();
        }
        memory.published.push_back(event.clone());
        if self.0.sender.try_send(event).is_err() && self.0.receiver.lock().is_none() {
            tracing::debug!("too many events wait to be written, dropping one");
        }
    }

    /// The latest events, the oldest first.
    pub fn published(&self) -> Vec<Published> {
        self.0.memory.lock().published.iter().cloned().collect()
    }

    /// Writes what is published to the API server, for ever.
    pub async fn write(self, client: Client, clock: Clock) {
        let receiver = self.0.receiver.lock().take();
        if let Some(receiver) = receiver {
            write::run(receiver, client, clock, self.0.provider).await;
        }
    }
}

impl Memory {
    /// Whether the same was not said lately; then it is said now. What it is about does not matter.
    fn is_new(&mut self, event: &Event, dedupe: &[&str], now: Instant) -> bool {
        if self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP) {
            self.swept = Some(now);
            self.silent.retain(|_, until| *until > now);
        }
        let key = format!("{}-{}", event.reason.to_lowercase(), dedupe.join("-"));
        if self.silent.get(&key).is_some_and(|until| *until > now) {
            return false;
        }
        self.silent.insert(key, now + event.dedupe);
        true
    }

    fn is_allowed(&mut self, event: &'static Event) -> bool {
        event.limit.is_none_or(|limit| {
            let new = || Limiter::new(f64::from(limit.per_second), limit.burst);
            self.limiters.entry(event.reason).or_insert_with(new).try_acquire()
        })
    }
}

#[cfg(test)]
mod tests {
    use api::names::events;

    use super::*;

    fn about(name: &str) -> About {
        About { kind: Kind::Node, namespace: "".into(), name: name.into(), uid: name.into() }
    }

    fn messages(recorder: &Recorder) -> Vec<String> {
        recorder.published().into_iter().map(|event| event.message).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_is_not_said_again_for_two_minutes_whatever_it_is_about() {
        let recorder = Recorder::new(Provider::Kwok);
        recorder.publish(&events::EVICTED, about("a"), "first", &["x"]);
        recorder.publish(&events::EVICTED, about("b"), "same", &["x"]);
        recorder.publish(&events::EVICTED, about("b"), "other", &["y"]);
        recorder.publish(&events::DISRUPTED, about("b"), "other reason", &["x"]);
        tokio::time::advance(Duration::from_mins(2)).await;
        recorder.publish(&events::EVICTED, about("a"), "later", &["x"]);
        assert_eq!(messages(&recorder), ["first", "other", "other reason", "later"]);
    }

    #[tokio::test(start_paused = true)]
    async fn some_events_are_kept_silent_longer() {
        let recorder = Recorder::new(Provider::Kwok);
        for minutes in [0, 5, 10] {
            tokio::time::advance(Duration::from_mins(minutes)).await;
            recorder.publish(&events::UNCONSOLIDATABLE, about("a"), minutes.to_string(), &["x"]);
        }
        assert_eq!(messages(&recorder), ["0", "10"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_was_one_too_many_stays_silent() {
        let recorder = Recorder::new(Provider::Kwok);
        for pod in 0..12 {
            recorder.publish(&events::NOMINATED, about("a"), pod.to_string(), &[&pod.to_string()]);
        }
        assert_eq!(recorder.published().len(), 10);
        tokio::time::advance(Duration::from_mins(1)).await;
        recorder.publish(&events::NOMINATED, about("a"), "11 again", &["11"]);
        recorder.publish(&events::NOMINATED, about("a"), "12", &["12"]);
        assert_eq!(messages(&recorder).last().unwrap(), "12");
        assert_eq!(recorder.published().len(), 11);
    }

    #[tokio::test(start_paused = true)]
    async fn without_values_everything_is_said() {
        let recorder = Recorder::new(Provider::Kwok);
        for _ in 0..3 {
            recorder.publish(&events::FINALIZED, about("a"), "Finalized karpenter.sh/termination", &[]);
            recorder.publish_transition("Ready", about("a"), "Status condition transitioned");
        }
        assert_eq!(recorder.published().len(), 6);
        // Nobody writes, and nobody waits.
        (0..2 * WAITING).for_each(|_| recorder.publish_transition("Ready", about("a"), "again"));
        assert_eq!(recorder.published().len(), REMEMBERED);
    }
}
