//! Where a part that keeps state of its own, such as the scheduler, joins the event loop.

use jiff::Timestamp;

use crate::action::{Action, Outcome};
use crate::cache::{Cache, Change};

/// A part of the control plane that is told of every change and decides for the whole cluster at once.
///
/// Controllers that decide for one object are functions instead; see the crate's documentation.
pub trait Component: Send {
    /// Takes note of a change, except to a lease; the cache contains it already.
    fn observe(&mut self, cache: &Cache, change: &Change);

    /// Decides what to do now. It is called after changes, when its time to look again has come, and when the
    /// actions of the last call have ended; never while they are under way.
    fn decide(&mut self, cache: &Cache, now: Timestamp) -> Outcome;

    /// An action failed; the next call to `decide` comes after a while.
    fn failed(&mut self, action: &Action);
}
