//! Staleness: kinds whose watch has failed, so that what is known of them may be old.
//!
//! Nothing that is known is forgotten for it. Whoever would end something because an object is *not* known asks here
//! first.

use jiff::Timestamp;

use super::{Kind, State};

/// Since when the watch of a kind has failed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// Since when.
    pub since: Timestamp,
    /// What the API server said last, or that it said nothing.
    pub why: String,
}

impl State {
    /// Notes that the watch of a kind has failed. The first failure says since when, the last one why.
    pub fn set_stale(&mut self, kind: Kind, why: String, now: Timestamp) {
        let since = self.stale.get(&kind).map_or(now, |stale| stale.since);
        self.stale.insert(kind, Staleness { since, why });
    }

    /// Notes that the watch of a kind works again, and since when it had not.
    pub fn set_fresh(&mut self, kind: Kind) -> Option<Staleness> {
        self.stale.remove(&kind)
    }

    /// Kinds whose watch has failed, and why.
    pub fn stale(&self) -> impl ExactSizeIterator<Item = (Kind, &Staleness)> {
        self.stale.iter().map(|(kind, staleness)| (*kind, staleness))
    }

    /// Whether nodes may be disrupted on what is known: it is complete, and no watch has failed. A pod that nobody has
    /// heard of may be on any node. New nodes are launched for pending pods all the same.
    pub fn is_current(&self, now: Timestamp) -> bool {
        self.stale.is_empty() && self.is_synced(now)
    }

    /// Why it proves nothing that an object of these kinds is not found; nothing if it does.
    pub fn doubt(&self, kinds: &[Kind]) -> Option<String> {
        kinds.iter().find_map(|kind| {
            if self.waiting.contains(kind) {
                return Some(format!("{} have not been listed", kind.name()));
            }
            if let Some(Staleness { since, why }) = self.stale.get(kind) {
                return Some(format!("the watch of {} has failed since {since:.0}: {why}", kind.name()));
            }
            let (_, key, unreadable) = self.unreadable().find(|(known, ..)| known == kind)?;
            Some(format!("{} {key} cannot be read: {}", kind.name(), unreadable.why))
        })
    }
}
