//! Capacity reservations and placement groups.

use aws::port::{CapacityReservation, PlacementGroup, PlacementStrategy};
use aws_sdk_ec2::types;

use super::common::count;
use crate::time::timestamp;

pub(super) fn reservation(described: types::CapacityReservation) -> Option<CapacityReservation> {
    Some(CapacityReservation {
        id: described.capacity_reservation_id?,
        zone: described.availability_zone.unwrap_or_default(),
        instance_type: described.instance_type.unwrap_or_default(),
        owner_id: described.owner_id.unwrap_or_default(),
        match_criteria: described
            .instance_match_criteria
            .map_or_else(String::new, |all| all.as_str().to_owned()),
        reservation_type: described
            .reservation_type
            .map_or_else(String::new, |kind| kind.as_str().to_owned()),
        interruptible: described.interruptible.unwrap_or_default(),
        ends: described.end_date.as_ref().and_then(timestamp),
        available: count(described.available_instance_count),
    })
}

/// A placement group; one that places instances in a way nobody here knows is not usable.
pub(super) fn placement_group(described: types::PlacementGroup) -> Option<PlacementGroup> {
    let strategy = match described.strategy? {
        types::PlacementStrategy::Cluster => PlacementStrategy::Cluster,
        types::PlacementStrategy::Partition => PlacementStrategy::Partition,
        types::PlacementStrategy::Spread => PlacementStrategy::Spread,
        _ => return None,
    };
    Some(PlacementGroup {
        id: described.group_id?,
        name: described.group_name.unwrap_or_default(),
        strategy,
        partitions: count(described.partition_count),
        spread_level: described.spread_level.map(|level| level.as_str().to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::primitives::DateTime;

    use super::*;

    #[test]
    fn a_reservation_that_says_little_has_nothing_left_and_no_end() {
        let described = types::CapacityReservation::builder().capacity_reservation_id("cr-1").build();
        let expected = CapacityReservation { id: "cr-1".to_owned(), ..CapacityReservation::default() };
        assert_eq!(reservation(described), Some(expected));
        assert_eq!(reservation(types::CapacityReservation::builder().build()), None);
    }

    #[test]
    fn a_reservation_says_when_it_ends_and_what_is_left() {
        let described = types::CapacityReservation::builder()
            .capacity_reservation_id("cr-1")
            .instance_match_criteria(types::InstanceMatchCriteria::Targeted)
            .reservation_type(types::CapacityReservationType::CapacityBlock)
            .available_instance_count(3)
            .end_date(DateTime::from_secs(60))
            .build();
        let read = reservation(described).unwrap();
        assert_eq!(
            (read.match_criteria.as_str(), read.reservation_type.as_str()),
            ("targeted", "capacity-block")
        );
        assert_eq!((read.available, read.ends.map(jiff::Timestamp::as_second)), (3, Some(60)));
    }

    #[test]
    fn placement_groups_of_an_unknown_strategy_are_left_out() {
        let group = |strategy: &str| {
            let builder = types::PlacementGroup::builder().group_id("pg-1").partition_count(7);
            placement_group(builder.strategy(types::PlacementStrategy::from(strategy)).build())
        };
        assert_eq!(group("partition").map(|group| group.partitions), Some(7));
        assert_eq!(group("precision-time"), None);
    }
}
