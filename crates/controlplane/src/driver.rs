//! The event loop: what is seen goes into the cache, what depends on it is looked at, what is decided is done.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use clock::Clock;
use futures::FutureExt;
use futures::stream::{BoxStream, FuturesUnordered, SelectAll, StreamExt};
use jiff::Timestamp;
use kube::Client;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::SeedableRng;
use tokio::time::Instant;

use crate::action::{Action, Outcome};
use crate::cache::{Cache, Change, Seen};
use crate::component::Component;
use crate::controllers::{Controller, Dependents, Item, decide, kinds};
use crate::execute::{Done, perform};
use crate::notes::Notes;
use crate::object::{Key, Kind};
use crate::options::Options;
use crate::queue::Queue;
use crate::{Error, watch};

/// How many items are looked at before new events are taken in.
const BATCH: usize = 64;

/// A request under way: whose it is, what a component wants to hear if it fails, and what comes of it.
type Running = Pin<Box<dyn Future<Output = (Item, Option<Action>, Done)> + Send>>;

/// Actions of an item that are waiting or under way.
struct Work {
    left: usize,
    failed: bool,
    again: Option<Timestamp>,
}

pub(crate) struct Driver {
    client: Client,
    clock: Clock,
    options: Options,
    cache: Cache,
    queue: Queue<Item>,
    components: Vec<Box<dyn Component>>,
    watches: SelectAll<BoxStream<'static, Seen>>,
    work: BTreeMap<Item, Work>,
    pending: VecDeque<(Item, Action)>,
    running: FuturesUnordered<Running>,
    number: u64,
    notes: Notes,
}

impl Driver {
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        options: Options,
        components: Vec<Box<dyn Component>>,
    ) -> Self {
        let kinds = kinds(&options);
        Self {
            watches: watch::all(&client, &kinds),
            cache: Cache::awaiting(&kinds),
            queue: Queue::new(Pcg32::seed_from_u64(options.seed)),
            client,
            clock,
            options,
            components,
            work: BTreeMap::new(),
            pending: VecDeque::new(),
            running: FuturesUnordered::new(),
            number: 0,
            notes: Notes::default(),
        }
    }

    pub(crate) async fn run(mut self) -> Result<Infallible, Error> {
        let sleep = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(sleep);
        let mut set_for = None;
        loop {
            let synced = self.cache.is_synced();
            let timer = self.queue.next_timer().filter(|_| synced);
            // Setting a timer costs more than most events, so it is set only when it changes.
            if timer.is_some() && timer != set_for {
                let wait = timer.map_or(Duration::ZERO, |when| self.clock.until(when));
                sleep.as_mut().reset(Instant::now() + wait);
                set_for = timer;
            }
            let ready = synced && !self.queue.is_idle() && self.has_room();
            tokio::select! {
                biased;
                Some((item, action, done)) = self.running.next() => self.finish(&item, action, done),
                seen = self.watches.next() => match seen {
                    Some(seen) => self.observe(seen),
                    None => return Err(Error::WatchesEnded),
                },
                () = &mut sleep, if timer.is_some() => {
                    set_for = None;
                    self.queue.fire(self.clock.now());
                }
                // Others get their turn before the rest of the queue.
                () = tokio::task::yield_now(), if ready => {}
            }
            // What has arrived already is taken in before anything is decided.
            while let Some(Some(seen)) = self.watches.next().now_or_never() {
                self.observe(seen);
            }
            if self.cache.is_synced() {
                self.look();
            }
        }
    }

    fn observe(&mut self, seen: Seen) {
        let now = self.clock.now();
        for change in self.cache.observe(seen, now) {
            self.changed(&change, now);
        }
    }

    fn changed(&mut self, change: &Change, now: Timestamp) {
        let Self { cache, options, queue, .. } = self;
        Dependents { cache, options, queue, now }.of(change);
        // Leases are renewed all the time and concern nobody but the controllers of nodes.
        if change.object().kind() == Kind::Lease {
            return;
        }
        for (number, component) in self.components.iter_mut().enumerate() {
            component.observe(&self.cache, change);
            self.queue.add(Item::new(Controller::Component(number), Key::default()));
        }
    }

    /// Looks at what is queued, while there is room for more writes.
    fn look(&mut self) {
        for _ in 0..BATCH {
            if !self.has_room() {
                break;
            }
            let Some(item) = self.queue.pop() else { break };
            let now = self.clock.now();
            let mut outcome = match item.controller {
                Controller::Component(number) => match self.components.get_mut(number) {
                    Some(component) => component.decide(&self.cache, now),
                    None => Outcome::default(),
                },
                _ => decide(&item, &self.cache, &self.options, now),
            };
            let events = self.options.events;
            outcome.actions.retain(|action| match action {
                Action::Note(note) => events && self.notes.is_new(note, now),
                _ => true,
            });
            if outcome.actions.is_empty() {
                self.queue.done(&item, outcome.again);
                continue;
            }
            let work = Work { left: outcome.actions.len(), failed: false, again: outcome.again };
            self.work.insert(item.clone(), work);
            self.pending.extend(outcome.actions.into_iter().map(|action| (item.clone(), action)));
            self.start();
        }
        self.start();
    }

    /// Whether more writes may be decided on; those that wait go first.
    fn has_room(&self) -> bool {
        self.pending.len() < self.options.concurrency
    }

    fn start(&mut self) {
        while self.running.len() < self.options.concurrency {
            let Some((item, action)) = self.pending.pop_front() else { break };
            self.number += 1;
            let told = matches!(item.controller, Controller::Component(_)).then(|| action.clone());
            let request = perform(self.client.clone(), action, self.clock.now(), self.number);
            self.running.push(Box::pin(async move { (item, told, request.await) }));
        }
    }

    fn finish(&mut self, item: &Item, action: Option<Action>, done: Done) {
        let now = self.clock.now();
        let mut failed = false;
        let change = match done {
            Done::Object(object) => self.cache.answer(object, now),
            Done::Deleting(kind, key, uid, left) => {
                let answered = left.and_then(|object| self.cache.answer(object, now));
                answered.or_else(|| self.cache.doom(kind, &key, &uid, now))
            }
            Done::Gone(kind, key, uid) => self.cache.gone(kind, &key, uid.as_deref(), now),
            Done::Nothing => None,
            Done::Refused(note) => {
                failed = true;
                if let (Some(note), Some(work)) =
                    (note.filter(|_| self.options.events), self.work.get_mut(item))
                {
                    work.left += 1;
                    self.pending.push_back((item.clone(), Action::Note(note)));
                }
                None
            }
            Done::Failed => {
                failed = true;
                if let (Controller::Component(number), Some(action)) = (item.controller, action)
                    && let Some(component) = self.components.get_mut(number)
                {
                    component.failed(&action);
                }
                None
            }
        };
        if let Some(change) = change {
            self.changed(&change, now);
        }
        let Some(work) = self.work.get_mut(item) else { return };
        work.left -= 1;
        work.failed |= failed;
        if work.left > 0 {
            return;
        }
        let Some(work) = self.work.remove(item) else { return };
        if work.failed {
            self.queue.failed(item, now);
        } else {
            self.queue.done(item, work.again);
        }
    }
}
