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
    /// Where exactly, in words of the cloud, such as a subnet or a placement group; anywhere when empty.
    /// `a/b` is a part of `a`.
    pub place: Box<str>,
}

impl Scope {
    /// One offering.
    pub fn offering(instance_type: &str, zone: &str, capacity_type: &str) -> Self {
        Self {
            instance_type: instance_type.into(),
            zone: zone.into(),
            capacity_type: capacity_type.into(),
            place: "".into(),
        }
    }

    /// The same, in one place only.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { place: place.into(), ..self }
    }

    /// Everything in a subnet.
    pub fn subnet(subnet: &str) -> Self {
        Self::default().within(subnet)
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

/// What is to be asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The instance type.
    pub instance_type: &'a str,
    /// The zone.
    pub zone: &'a str,
    /// The capacity type.
    pub capacity_type: &'a str,
    /// Where exactly, as [`Scope::place`]; empty if it does not matter.
    pub place: &'a str,
    /// The subnets that would do; one of them must be left.
    pub subnets: &'a [&'a str],
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
    /// How often something changed for a single instance type; without a name, for all.
    generations: BTreeMap<Box<str>, u64>,
}

impl Inner {
    fn changed(&mut self, instance_type: &str) {
        self.generation += 1;
        match self.generations.get_mut(instance_type) {
            Some(count) => *count += 1,
            None => {
                self.generations.insert(instance_type.into(), 1);
            }
        }
    }

    fn sweep(&mut self, now: Timestamp) {
        let gone: Vec<Box<str>> = self
            .until
            .extract_if(.., |_, until| *until <= now)
            .map(|(scope, _)| scope.instance_type)
            .collect();
        for instance_type in gone {
            self.changed(&instance_type);
        }
    }

    /// Where notes say that something like this is missing. Notes are in the order of instance types.
    fn places<'a>(&'a self, now: Timestamp, asked: &'a Asked<'_>) -> impl Iterator<Item = &'a str> {
        let about = |name: &'a str| {
            let first = Scope { instance_type: name.into(), ..Scope::default() };
            self.until.range(first..).take_while(move |(scope, _)| &*scope.instance_type == name)
        };
        let is_any_or = |part: &str, wanted: &str| part.is_empty() || part == wanted;
        about("")
            .chain(about(asked.instance_type))
            .filter(move |(scope, until)| {
                **until > now
                    && is_any_or(&scope.zone, asked.zone)
                    && is_any_or(&scope.capacity_type, asked.capacity_type)
            })
            .map(|(scope, _)| &*scope.place)
    }
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
            place = &*scope.place,
            ttl = ?kept,
            "removing offering from offerings"
        );
        let until = self.clock.now().saturating_add(kept).unwrap_or(Timestamp::MAX);
        let mut inner = self.inner.lock();
        let instance_type = scope.instance_type.clone();
        let known = inner.until.entry(scope).or_insert(Timestamp::MIN);
        // Only what was not known makes catalogues wrong; a note that lasts longer does not.
        let is_new = *known <= self.clock.now();
        *known = until.max(*known);
        if is_new {
            inner.changed(&instance_type);
        }
    }

    /// Whether an offering is not to be asked for.
    pub fn contains(&self, instance_type: &str, zone: &str, capacity_type: &str) -> bool {
        self.contains_asked(&Asked { instance_type, zone, capacity_type, ..Asked::default() })
    }

    /// Whether an offering is not to be asked for in some place, or in any of some subnets.
    pub fn contains_asked(&self, asked: &Asked<'_>) -> bool {
        let now = self.clock.now();
        let inner = self.inner.lock();
        if inner.until.is_empty() {
            return false;
        }
        let is_here = |place: &str| {
            place.is_empty()
                || asked
                    .place
                    .strip_prefix(place)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_full = |subnet: &&str| inner.places(now, asked).any(|place| place == *subnet);
        inner.places(now, asked).any(is_here)
            || (!asked.subnets.is_empty() && asked.subnets.iter().all(is_full))
    }

    /// Changes whenever the answers do: a catalogue that was made with another number is out of date.
    pub fn generation(&self) -> u64 {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        inner.sweep(now);
        inner.generation
    }

    /// Changes whenever the answers about one instance type do, and seldom without.
    pub fn generation_of(&self, instance_type: &str) -> u64 {
        let now = self.clock.now();
        let mut inner = self.inner.lock();
        inner.sweep(now);
        let of = |name: &str| inner.generations.get(name).copied().unwrap_or_default();
        of(instance_type) + of("")
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut inner = self.inner.lock();
        if !std::mem::take(&mut inner.until).is_empty() {
            inner.changed("");
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

    #[tokio::test(start_paused = true)]
    async fn a_subnet_counts_when_no_other_is_left() {
        let marked = nothing();
        let asked = |subnets| {
            let asked =
                Asked { instance_type: "large", zone: "a", capacity_type: "spot", subnets, place: "" };
            marked.contains_asked(&asked)
        };
        marked.mark(Scope::subnet("one"), "full");
        assert!(asked(&["one"]) && !asked(&["one", "two"]) && !asked(&["two"]) && !asked(&[]));
        marked.mark(Scope::subnet("two"), "full");
        assert!(asked(&["one", "two"]));
        assert!(!marked.contains("large", "a", "spot"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_missing_in_a_place_is_missing_in_its_parts_and_nowhere_else() {
        let marked = nothing();
        let asked = |place| {
            let asked =
                Asked { instance_type: "large", zone: "a", capacity_type: "spot", place, subnets: &[] };
            marked.contains_asked(&asked)
        };
        let scope = || Scope::offering("large", "a", "spot");
        marked.mark(scope().within("group/1"), "full");
        assert!(asked("group/1") && !asked("group/2") && !asked("group") && !asked(""));
        marked.mark(scope().within("group"), "full");
        assert!(asked("group/2") && asked("group") && !asked("other") && !asked(""));
        marked.mark(scope(), "full");
        assert!(asked("other/1") && asked(""));
    }

    #[tokio::test(start_paused = true)]
    async fn the_generation_of_a_type_changes_with_what_concerns_it() {
        let marked = nothing();
        let before = (marked.generation_of("large"), marked.generation_of("small"));
        marked.mark(Scope::offering("large", "a", "spot"), "");
        assert_ne!(marked.generation_of("large"), before.0);
        assert_eq!(marked.generation_of("small"), before.1);
        marked.mark(Scope::capacity_type("spot"), "");
        assert_ne!(marked.generation_of("small"), before.1);
        let before = (marked.generation_of("large"), marked.generation());
        tokio::time::advance(Duration::from_mins(3)).await;
        assert_ne!((marked.generation_of("large"), marked.generation()), before);
    }
}
