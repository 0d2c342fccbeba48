//! The state of the cluster, shared: one place where it is written, any number of readers.

use std::fmt;
use std::sync::Arc;

use ::cluster::state::{Change, Key, Kind, Seen, State, Watched};
use clock::Clock;
use jiff::SignedDuration;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tokio::sync::watch;

/// Is told of every change, in order, with the state that results from it.
///
/// It is called while the state is locked: it may put keys into queues, and must not ask for the state.
pub type Listener = Box<dyn Fn(&Change, &State) + Send + Sync>;

/// The state of the cluster. Clones share it.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    clock: Clock,
    state: RwLock<State>,
    listeners: Mutex<Vec<Listener>>,
    listed: watch::Sender<bool>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Shares a state.
    pub fn new(state: State, clock: Clock) -> Self {
        let listed = watch::Sender::new(state.is_listed());
        Self(Arc::new(Inner { clock, state: RwLock::new(state), listeners: Mutex::default(), listed }))
    }

    /// The state as it is now. Nothing changes while it is held, so it is not held across an `await`.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.state.read()
    }

    /// Calls a listener for every change from now on.
    pub fn listen(&self, listener: Listener) {
        self.0.listeners.lock().push(listener);
    }

    /// Waits until every kind has been listed once.
    pub async fn listed(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.listed.subscribe().wait_for(|listed| *listed).await;
    }

    /// Whether every kind has been listed once.
    pub fn is_listed(&self) -> bool {
        *self.0.listed.borrow()
    }

    /// Changes what only this process knows, such as nominations.
    pub fn update<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.state.write())
    }

    /// Takes in what a watch says.
    pub fn observe(&self, seen: Seen) {
        self.change(|state| state.observe(seen));
    }

    /// Takes in the answer to one of our own writes.
    pub fn answer<K: Watched>(&self, object: K) -> Arc<K> {
        let object = Arc::new(object);
        self.change(|state| state.answer(Arc::clone(&object).wrap()));
        object
    }

    /// Notes that the server accepted the deletion of an object.
    pub fn doom(&self, kind: Kind, key: &Key, uid: &str) {
        let now = self.0.clock.now();
        self.change(|state| state.doom(kind, key, uid, now));
    }

    /// Notes that the server does not know an object any more; with `uid`, that very one.
    pub fn gone(&self, kind: Kind, key: &Key, uid: Option<&str>) {
        self.change(|state| state.gone(kind, key, uid));
    }

    /// Notes that the watch of a kind has failed. What is known of it stays.
    pub fn set_stale(&self, kind: Kind, why: String) {
        let now = self.0.clock.now();
        self.update(|state| state.set_stale(kind, why, now));
    }

    /// Notes that the watch of a kind works again, and for how long it had not.
    pub fn set_fresh(&self, kind: Kind) -> Option<SignedDuration> {
        let staleness = self.update(|state| state.set_fresh(kind))?;
        Some(self.0.clock.now().duration_since(staleness.since))
    }

    fn change<C: IntoIterator<Item = Change>>(&self, change: impl FnOnce(&mut State) -> C) {
        let mut state = self.0.state.write();
        let changes = change(&mut state);
        let listeners = self.0.listeners.lock();
        for change in changes {
            for listener in listeners.iter() {
                listener(&change, &state);
            }
        }
        let is_listed = state.is_listed();
        drop((listeners, state));
        self.0.listed.send_if_modified(|listed| std::mem::replace(listed, is_listed) != is_listed);
    }
}
