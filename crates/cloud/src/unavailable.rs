//! What a cloud did not have when it was asked: not asked for again for a while.
//!
//! ```text
//!   launch failed ──► mark ──► generation rises ──► catalogues are made again, without the offering
//!                                  ▲
//!   time passes ─────► sweep ──────┘
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Clock;
use jiff::Timestamp;
use parking_lot::Mutex;

/// For how long an offering is not asked for again, unless the cloud says more.
pub const KEPT: Duration = Duration::from_mins(3);

/// What is not to be had. The more is left out, the more it covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// The instance type; any when empty.
    pub instance_type: Box<str>,
    /// The zone; any when empty.
    pub zone: Box<str>,
    /// The capacity type; any when empty.
    pub capacity_type: Box<str>,
}

impl Scope {
    /// One offering.
    pub fn offering(instance_type: &str, zone: &str, capacity_type: &str) -> Self {
        Self { instance_type: instance_type.into(), zone: zone.into(), capacity_type: capacity_type.into() }
    }

    /// Everything of a capacity type.
    pub fn capacity_type(capacity_type: &str) -> Self {
        Self::offering("", "", capacity_type)
    }

    /// Everything in a zone.
    pub fn zone(zone: &str) -> Self {
        Self::offering("", zone, "")
    }
}

/// Offerings that are not asked for at present.
#[derive(Debug)]
pub struct UnavailableOfferings {
    clock: Clock,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    until: BTreeMap<Scope, Timestamp>,
    generation: u64,
}

impl UnavailableOfferings {
    /// Nothing is known to be unavailable.
    pub fn new(clock: Clock) -> Self {
        Self { clock, inner: Mutex::default() }
    }

    /// Notes that something cannot be had, for [`KEPT`] from now. Why is for the log.
    pub fn mark(&self, scope: Scope, why: &str) {
        self.mark_for(scope, KEPT, why);
    }

    /// Notes that something cannot be had for a while. A longer note that is known already stays.
    pub fn mark_for(&self, scope: Scope, kept: Duration, why: &str) {
        tracing::debug!(
            reason = why,
            "instance-type" = &*scope.instance_type,
            zone = &*scope.zone,
            "capacity-type" = &*scope.capacity_type,
            ttl = ?kept,
            "removing offering from offerings"
        );
        let until = self.clock.now().saturating_add(kept).unwrap_or(Timestamp::MAX);
        let mut inner = self.inner.lock();
        let known = inner.until.entry(scope).or_insert(Timestamp::MIN);
        // Only what was not known makes catalogues wrong; a note that lasts longer does not.
        let is_new = *known <= self.clock.now();
        *known = until.max(*known);
        if is_new {
            inner.generation += 1;
        }
    }

    /// Whether an offering is not to be asked for.
    pub fn contains(&self, instance_type: &str, zone: &str, capacity_type: &str) -> bool {
        let now = self.clock.now();
        let inner = self.inner.lock();
        if inner.until.is_empty() {
            return false;
        }
        // Each part is named or left out.
        (0..8_u8).any(|named| {
            let part = |bit: u8, text: &str| if named & bit == 0 { "" } else { text }.into();
            let scope = Scope {
                instance_type: part(1, instance_type),
                zone: part(2, zone),
                capacity_type: part(4, capacity_type),
            };
            inner.until.get(&scope).is_some_and(|until| *until > now)
        })
    }

    /// Changes whenever the answers do: a catalogue that was made with another number is out of date.
    pub fn generation(&self) -> u64 {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        let known = inner.until.len();
        inner.until.retain(|_, until| *until > now);
        if inner.until.len() < known {
            inner.generation += 1;
        }
        inner.generation
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut inner = self.inner.lock();
        if !std::mem::take(&mut inner.until).is_empty() {
            inner.generation += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> UnavailableOfferings {
        UnavailableOfferings::new(Clock::starting_at(Timestamp::UNIX_EPOCH))
    }

    #[tokio::test(start_paused = true)]
    async fn an_offering_is_unavailable_for_three_minutes_and_others_are_not() {
        let marked = nothing();
        marked.mark(Scope::offering("large", "a", "spot"), "no capacity");
        assert!(marked.contains("large", "a", "spot"));
        for (kind, zone, capacity) in
            [("small", "a", "spot"), ("large", "b", "spot"), ("large", "a", "on-demand")]
        {
            assert!(!marked.contains(kind, zone, capacity));
        }
        tokio::time::advance(Duration::from_secs(179)).await;
        assert!(marked.contains("large", "a", "spot"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!marked.contains("large", "a", "spot"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_out_covers_everything() {
        let marked = nothing();
        marked.mark(Scope::capacity_type("spot"), "not allowed");
        marked.mark(Scope::zone("b"), "shifted");
        assert!(marked.contains("any", "a", "spot") && marked.contains("any", "b", "on-demand"));
        assert!(!marked.contains("any", "a", "on-demand"));
        marked.clear();
        assert!(!marked.contains("any", "b", "spot"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_generation_changes_with_the_answers_only() {
        let marked = nothing();
        let mut last = marked.generation();
        let mut changed = |marked: &UnavailableOfferings| {
            let now = marked.generation();
            std::mem::replace(&mut last, now) != now
        };
        assert!(!changed(&marked));
        marked.mark(Scope::zone("a"), "");
        assert!(changed(&marked));
        tokio::time::advance(Duration::from_mins(2)).await;
        // It is known already, and is now known for longer.
        marked.mark(Scope::zone("a"), "");
        assert!(!changed(&marked));
        tokio::time::advance(Duration::from_mins(2)).await;
        assert!(!changed(&marked) && marked.contains("x", "a", "spot"));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert!(changed(&marked));
        marked.mark(Scope::zone("a"), "");
        marked.clear();
        assert!(changed(&marked) && !changed(&marked));
    }
}
