//! Zones that are avoided for a while.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::port::ZonalShifts;

/// Zones that are avoided for a while, by their ID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShiftedZones(BTreeMap<String, Timestamp>);

impl ShiftedZones {
    /// Takes over what AWS says; what it does not say any more was cancelled.
    pub fn replace(&mut self, shifts: Vec<ZonalShifts>) {
        let mut all: BTreeMap<String, Timestamp> = BTreeMap::new();
        for shift in shifts.into_iter().filter(|shift| shift.applied) {
            let until = all.entry(shift.zone_id).or_insert(shift.until);
            *until = shift.until.max(*until);
        }
        self.0 = all;
    }

    /// The IDs of zones that are avoided at a time.
    pub fn at(&self, now: Timestamp) -> BTreeSet<String> {
        self.0.iter().filter(|(_, until)| **until > now).map(|(zone, _)| zone.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(zone: &str, until: i64, applied: bool) -> ZonalShifts {
        ZonalShifts { zone_id: zone.to_owned(), until: Timestamp::constant(until, 0), applied }
    }

    fn zones(shifts: &ShiftedZones, now: i64) -> Vec<String> {
        shifts.at(Timestamp::constant(now, 0)).into_iter().collect()
    }

    #[test]
    fn a_zone_is_avoided_until_the_shift_ends() {
        let mut shifted = ShiftedZones::default();
        shifted.replace(vec![shift("az1", 100, true), shift("az2", 200, true), shift("az3", 200, false)]);
        assert_eq!(zones(&shifted, 99), ["az1", "az2"]);
        assert_eq!(zones(&shifted, 100), ["az2"]);
    }

    #[test]
    fn of_several_shifts_the_longest_counts_and_one_that_was_cancelled_does_not() {
        let mut shifted = ShiftedZones::default();
        shifted.replace(vec![shift("az1", 300, true), shift("az1", 100, true), shift("az2", 300, true)]);
        assert_eq!(zones(&shifted, 200), ["az1", "az2"]);
        shifted.replace(vec![shift("az2", 300, true)]);
        assert_eq!(zones(&shifted, 200), ["az2"]);
        shifted.replace(vec![]);
        assert_eq!(zones(&shifted, 200), Vec::<String>::new());
    }
}
