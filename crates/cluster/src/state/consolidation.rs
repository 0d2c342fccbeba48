//! Whether there may be something to consolidate that was not there the last time somebody looked.

use api::conditions::HasConditions;
use api::names::conditions::READY;
use jiff::{SignedDuration, Timestamp};

use super::kind::Object;
use super::{Change, State};

/// After this time there is another look even if nothing seems to have changed.
const REFRESH: SignedDuration = SignedDuration::from_mins(5);

/// What the cluster was like when somebody found nothing to consolidate in it.
///
/// It is taken together with the snapshot that is looked at, and kept if nothing was found:
///
/// ```text
/// let seen = state.consolidated_at(now);      // and the snapshot
/// …nothing found: self.last = Some(seen);
/// next time: skip if state.is_consolidated(self.last, now)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consolidated {
    revision: u64,
    at: Timestamp,
}

impl State {
    /// What the cluster is like now, as far as consolidation is concerned.
    pub fn consolidated_at(&self, now: Timestamp) -> Consolidated {
        Consolidated { revision: self.revision, at: now }
    }

    /// Whether nothing that matters to consolidation has happened since, and it is not long ago.
    ///
    /// What matters: nodes and claims that come, go, become initialised or are marked for deletion (as seen when
    /// one of the objects changes), nodes whose taints change, pods that are bound, done or deleted, NodePools that
    /// are new, changed, or become ready or not, and [`State::mark_unconsolidated`].
    pub fn is_consolidated(&self, since: Consolidated, now: Timestamp) -> bool {
        since.revision == self.revision && now.duration_since(since.at) < REFRESH
    }

    /// Notes that there may be something to consolidate.
    pub fn mark_unconsolidated(&mut self) {
        self.revision += 1;
    }

    /// A NodePool has changed.
    pub(super) fn note_pool(&mut self, change: &Change) {
        let usable = |object: &Option<Object>| match object {
            Some(Object::NodePool(pool)) => Some((pool.metadata.generation, pool.is_true(READY))),
            _ => None,
        };
        if change.new.is_some() && usable(&change.old) != usable(&change.new) {
            self.mark_unconsolidated();
        }
    }
}
