//! What Azure did not have, or did not allow, when it was asked: not asked for again for a while.
//!
//! A size that cannot be had in a zone says something about its family: larger sizes cannot be had either, smaller ones
//! perhaps. Each note has its own end, so that a long one about a large size does not keep a small one away.

use std::collections::BTreeMap;
use std::time::Duration;

use api::names::values::capacity_type;
use jiff::Timestamp;

use crate::sku::Sku;

/// For how long something is not asked for again, unless more is known.
pub const KEPT: Duration = Duration::from_mins(3);

/// What is to be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The size.
    pub name: &'a str,
    /// The family that its quota is counted by; empty if not known.
    pub family: &'a str,
    /// How many processors it has.
    pub vcpus: i64,
    /// The zone, as labels name it.
    pub zone: &'a str,
    /// The capacity type.
    pub capacity_type: &'a str,
}

impl<'a> Asked<'a> {
    /// A machine of a size.
    pub fn of(sku: &'a Sku, zone: &'a str, capacity_type: &'a str) -> Self {
        Self { name: &sku.name, family: &sku.family, vcpus: sku.vcpus, zone, capacity_type }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Note {
    /// Everything on the spot market.
    Spot,
    /// One size.
    Size { name: String, zone: String, capacity_type: String },
    /// All sizes of a family with at least so many processors.
    Family { family: String, zone: String, capacity_type: String, vcpus: i64 },
}

impl Note {
    fn size(asked: &Asked<'_>) -> Self {
        Self::Size {
            name: asked.name.to_owned(),
            zone: asked.zone.to_owned(),
            capacity_type: asked.capacity_type.to_owned(),
        }
    }

    fn family(asked: &Asked<'_>, vcpus: i64) -> Self {
        Self::Family {
            family: asked.family.to_ascii_lowercase(),
            zone: asked.zone.to_owned(),
            capacity_type: asked.capacity_type.to_owned(),
            vcpus,
        }
    }
}

/// What is not asked for at present.
#[derive(Clone, Debug, Default)]
pub struct Unavailable {
    notes: BTreeMap<Note, Timestamp>,
    sequence: u64,
}

impl Unavailable {
    /// Notes that machines of a size cannot be had, nor larger ones of its family.
    pub fn mark(&mut self, asked: &Asked<'_>, kept: Duration, now: Timestamp) {
        let has_family = !asked.family.is_empty();
        let known = if has_family { self.family_until(asked, now) } else { self.size_until(asked, now) };
        let is_new = known.is_none();
        self.note(Note::size(asked), kept, now);
        if has_family {
            self.note(Note::family(asked, asked.vcpus), kept, now);
        }
        self.sequence += u64::from(is_new);
    }

    /// Notes that nothing can be had on the spot market.
    pub fn mark_spot(&mut self, kept: Duration, now: Timestamp) {
        let is_new = self.note_until(&Note::Spot, now).is_none();
        self.note(Note::Spot, kept, now);
        self.sequence += u64::from(is_new);
    }

    /// A later note never shortens an earlier one.
    fn note(&mut self, note: Note, kept: Duration, now: Timestamp) {
        let until = now.saturating_add(kept).unwrap_or(Timestamp::MAX);
        let known = self.notes.entry(note).or_insert(until);
        *known = until.max(*known);
    }

    /// Until when something is not asked for; none if it can be.
    pub fn until(&self, asked: &Asked<'_>, now: Timestamp) -> Option<Timestamp> {
        if self.notes.is_empty() {
            return None;
        }
        let spot = (asked.capacity_type == capacity_type::SPOT).then(|| self.note_until(&Note::Spot, now));
        [spot.flatten(), self.size_until(asked, now), self.family_until(asked, now)]
            .into_iter()
            .flatten()
            .max()
    }

    fn note_until(&self, note: &Note, now: Timestamp) -> Option<Timestamp> {
        self.notes.get(note).copied().filter(|until| *until > now)
    }

    fn size_until(&self, asked: &Asked<'_>, now: Timestamp) -> Option<Timestamp> {
        self.note_until(&Note::size(asked), now)
    }

    fn family_until(&self, asked: &Asked<'_>, now: Timestamp) -> Option<Timestamp> {
        let smaller = Note::family(asked, i64::MIN)..=Note::family(asked, asked.vcpus);
        self.notes.range(smaller).map(|(_, until)| *until).filter(|until| *until > now).max()
    }

    /// Changes whenever answers do: a list that was made with another number is out of date.
    pub fn sequence(&mut self, now: Timestamp) -> u64 {
        let gone = self.notes.extract_if(.., |_, until| *until <= now).count();
        self.sequence += u64::from(gone > 0);
        self.sequence
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.notes.clear();
        self.sequence += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;
    const HOUR: Duration = Duration::from_hours(1);

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60).unwrap()
    }

    fn asked(name: &'static str, vcpus: i64, zone: &'static str, kind: &'static str) -> Asked<'static> {
        Asked { name, family: "standardDSv3Family", vcpus, zone, capacity_type: kind }
    }

    fn d(vcpus: i64) -> Asked<'static> {
        let name = match vcpus {
            2 => "Standard_D2s_v3",
            4 => "Standard_D4s_v3",
            8 => "Standard_D8s_v3",
            _ => "Standard_D64s_v3",
        };
        asked(name, vcpus, "westus2-1", "on-demand")
    }

    // azure.md 8.1
    #[test]
    fn a_note_is_about_its_zone_and_capacity_type_and_ends() {
        let mut all = Unavailable::default();
        all.mark(&d(4), KEPT, START);
        assert_eq!(all.until(&d(4), START), Some(at(3)));
        for other in [
            asked("Standard_D4s_v3", 4, "westus2-2", "on-demand"),
            asked("Standard_D4s_v3", 4, "0", "on-demand"),
            asked("Standard_D4s_v3", 4, "westus2-1", "spot"),
            Asked { family: "standardEv3Family", name: "Standard_E4_v3", ..d(4) },
        ] {
            assert_eq!(all.until(&other, START), None, "{other:?}");
        }
        assert_eq!(all.until(&d(4), at(3)), None);
    }

    // azure.md 25.4
    #[test]
    fn larger_sizes_of_the_family_are_covered_and_smaller_ones_are_not() {
        let mut all = Unavailable::default();
        all.mark(&d(4), HOUR, START);
        assert!(all.until(&d(8), START).is_some() && all.until(&d(64), START).is_some());
        assert_eq!(all.until(&d(2), START), None);
        let upper = Asked { family: "STANDARDDSV3FAMILY", ..d(8) };
        assert!(all.until(&upper, START).is_some(), "families have no case");
    }

    // azure.md 25.4
    #[test]
    fn repeated_notes_keep_the_smallest_size() {
        for order in [[8, 4], [4, 8]] {
            let mut all = Unavailable::default();
            for vcpus in order {
                all.mark(&d(vcpus), HOUR, START);
            }
            assert!(all.until(&d(4), START).is_some() && all.until(&d(2), START).is_none());
        }
    }

    #[test]
    fn a_long_note_about_a_large_size_does_not_keep_a_small_one_away() {
        let mut all = Unavailable::default();
        all.mark(&d(4), HOUR, START);
        all.mark(&d(64), Duration::from_hours(23), START);
        assert_eq!(all.until(&d(4), at(60)), None);
        assert_eq!(all.until(&d(8), at(60)), None);
        assert_eq!(all.until(&d(64), at(60)), Some(at(23 * 60)));
    }

    #[test]
    fn a_later_note_never_shortens_an_earlier_one() {
        let mut all = Unavailable::default();
        all.mark(&d(4), HOUR, START);
        all.mark(&d(4), KEPT, START);
        assert_eq!(all.until(&d(4), START), Some(at(60)));
    }

    // azure.md 8.1
    #[test]
    fn a_size_without_a_family_is_noted_alone() {
        let mut all = Unavailable::default();
        let alone = Asked { family: "", ..d(4) };
        all.mark(&alone, HOUR, START);
        assert!(all.until(&alone, START).is_some());
        assert_eq!(all.until(&Asked { family: "", ..d(8) }, START), None);
    }

    // azure.md 8.1
    #[test]
    fn the_spot_market_can_be_closed() {
        let mut all = Unavailable::default();
        all.mark_spot(HOUR, START);
        assert!(all.until(&asked("Standard_E4_v3", 4, "0", "spot"), START).is_some());
        assert_eq!(all.until(&d(4), START), None);
    }

    // azure.md 8.1, 25.4
    #[test]
    fn the_sequence_changes_only_when_answers_do() {
        let mut all = Unavailable::default();
        let mut last = all.sequence(START);
        let mut changed = |all: &mut Unavailable, now| {
            let is = all.sequence(now);
            std::mem::replace(&mut last, is) != is
        };
        assert!(!changed(&mut all, START));
        all.mark(&d(4), HOUR, START);
        assert!(changed(&mut all, START));
        all.mark(&d(4), HOUR, at(1));
        assert!(!changed(&mut all, at(1)), "it only lasts longer");
        assert!(!changed(&mut all, at(60)));
        assert!(changed(&mut all, at(61)), "it is over");
        all.mark_spot(HOUR, at(61));
        assert!(changed(&mut all, at(61)));
        all.mark_spot(HOUR, at(62));
        assert!(!changed(&mut all, at(62)));
        all.clear();
        assert!(changed(&mut all, at(62)) && all.until(&asked("x", 2, "0", "spot"), at(62)).is_none());
    }
}
