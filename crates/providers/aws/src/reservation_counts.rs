//! How many instances can still be launched into reservations, between two answers of EC2.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::port::CapacityReservation;

/// How many instances can still be launched into reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationCounts(BTreeMap<String, Count>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    left: u32,
    /// When EC2 said so.
    synced: Timestamp,
}

impl ReservationCounts {
    /// What EC2 said at some time.
    pub fn sync(&mut self, reservations: &[CapacityReservation], at: Timestamp) {
        for each in reservations {
            self.0.insert(each.id.clone(), Count { left: each.available, synced: at });
        }
    }

    /// An instance was launched into a reservation; what EC2 said later knows of it already.
    pub fn launched(&mut self, id: &str, at: Timestamp) {
        if let Some(count) = self.0.get_mut(id).filter(|count| count.synced <= at) {
            count.left = count.left.saturating_sub(1);
        }
    }

    /// An instance of a reservation is gone.
    pub fn terminated(&mut self, id: &str) {
        if let Some(count) = self.0.get_mut(id) {
            count.left = count.left.saturating_add(1);
        }
    }

    /// A reservation turned out to be full, or is taken back.
    pub fn exhausted(&mut self, id: &str) {
        if let Some(count) = self.0.get_mut(id) {
            count.left = 0;
        }
    }

    /// How many instances can still be launched, by reservation.
    pub fn left(&self) -> BTreeMap<String, u32> {
        self.0.iter().map(|(id, count)| (id.clone(), count.left)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::constant(seconds, 0)
    }

    fn synced(available: u32) -> ReservationCounts {
        let mut counts = ReservationCounts::default();
        let each = CapacityReservation { id: "cr-1".to_owned(), available, ..CapacityReservation::default() };
        counts.sync(&[each], at(10));
        counts
    }

    #[test]
    fn launches_and_terminations_are_counted_until_ec2_is_asked_again() {
        let mut counts = synced(2);
        counts.launched("cr-1", at(11));
        assert_eq!(counts.left()["cr-1"], 1);
        counts.launched("cr-1", at(12));
        counts.launched("cr-1", at(13));
        assert_eq!(counts.left()["cr-1"], 0, "there are never fewer than none");
        counts.terminated("cr-1");
        assert_eq!(counts.left()["cr-1"], 1);
        counts.exhausted("cr-1");
        assert_eq!(counts.left()["cr-1"], 0);
    }

    #[test]
    fn a_launch_that_ec2_knows_of_is_not_counted_twice() {
        let mut counts = synced(2);
        counts.launched("cr-1", at(9));
        assert_eq!(counts.left()["cr-1"], 2);
    }

    #[test]
    fn reservations_that_nobody_knows_do_not_matter() {
        let mut counts = synced(2);
        counts.launched("cr-2", at(11));
        counts.terminated("cr-2");
        counts.exhausted("cr-2");
        assert_eq!(counts, synced(2));
    }
}
