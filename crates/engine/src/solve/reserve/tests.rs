//! Tests of what claims can hold of reservations.

use std::sync::Arc;

use super::*;
use crate::model::{Catalogue, InstanceType, Offering, Overlaid};
use crate::resources::{Amounts, ResourceTable};

/// Reservations with so many launches left, each an offering of one type, and what asks about them.
struct Desk {
    reservations: Reservations,
    compiled: Compiled,
    universe: Universe,
}

const R: [ReservationId; 3] = [ReservationId(0), ReservationId(1), ReservationId(2)];

impl Desk {
    fn new(left: &[u32]) -> Self {
        let mut universe = Universe::default();
        let key = universe.key("node.kubernetes.io/instance-type");
        let offering = |(position, left): (usize, &u32)| Offering {
            requirements: SetId::EMPTY,
            price: 1.0,
            available: true,
            reservation: Some((R[position], *left)),
            capacity_override: Vec::new(),
            overhead_override: Vec::new(),
        };
        let type_ = InstanceType {
            name: universe.value(key, "one"),
            requirements: SetId::EMPTY,
            offerings: left.iter().enumerate().map(offering).collect(),
            capacity: Amounts::default(),
            without: Vec::new(),
            overhead: Amounts::default(),
            volume_limits: Vec::new(),
            overlaid: Overlaid::default(),
        };
        let catalogue = Arc::new(Catalogue { types: vec![type_] });
        let snapshot = Snapshot { catalogues: vec![Arc::clone(&catalogue)], ..Snapshot::default() };
        Self {
            reservations: Reservations::new(&snapshot),
            compiled: Compiled::new(catalogue, &universe, &ResourceTable::default()),
            universe,
        }
    }

    /// What a claim that holds something already can hold.
    fn holdable(&mut self, held: &[ReservationId]) -> Result<Held, ReservedFailure> {
        let (compiled, universe) = (&self.compiled, &mut self.universe);
        self.reservations.holdable(Reserved::Strict, held, SetId::EMPTY, &Mask::full(1), compiled, universe)
    }

    fn left(&self) -> Vec<u32> {
        R.iter().filter_map(|id| self.reservations.left.get(id).copied()).collect()
    }
}

/// 27.13-05
#[test]
fn what_has_launches_left_can_be_held() {
    assert_eq!(Desk::new(&[1, 2]).holdable(&[]), Ok(vec![R[0], R[1]]));
}

/// 27.13-05
#[test]
fn what_has_none_left_can_be_kept_but_not_taken() {
    let mut desk = Desk::new(&[1]);
    desk.reservations.exchange(&[], &[R[0]]);
    assert_eq!(desk.left(), [0]);
    assert_eq!(desk.holdable(&[]), Err(ReservedFailure::Taken));
    assert_eq!(desk.holdable(&[R[0]]), Ok(vec![R[0]]));
}

/// 27.13-05
#[test]
fn holding_takes_one_launch_and_holding_on_takes_none() {
    let mut desk = Desk::new(&[3, 1]);
    desk.reservations.exchange(&[], &[R[0], R[1]]);
    assert_eq!(desk.left(), [2, 0]);
    desk.reservations.exchange(&[R[0], R[1]], &[R[0], R[1]]);
    assert_eq!(desk.left(), [2, 0]);
    desk.reservations.exchange(&[], &[R[0]]);
    assert_eq!(desk.left(), [1, 0]);
}

/// 27.13-05
#[test]
fn what_is_given_up_is_left_again() {
    let mut desk = Desk::new(&[1, 1, 1]);
    desk.reservations.exchange(&[], &R);
    desk.reservations.exchange(&R, &[R[1]]);
    assert_eq!(desk.left(), [1, 0, 1]);
    for _ in 0..3 {
        desk.reservations.exchange(&[R[1]], &[]);
        assert_eq!(desk.left(), [1, 1, 1]);
        desk.reservations.exchange(&[], &[R[1]]);
        assert_eq!(desk.left(), [1, 0, 1]);
    }
}

/// 27.13-05
#[test]
fn what_nobody_offers_changes_nothing() {
    let mut desk = Desk::new(&[1]);
    desk.reservations.exchange(&[R[2]], &[]);
    desk.reservations.exchange(&[], &[R[2]]);
    assert_eq!(desk.left(), [1]);
    assert_eq!(desk.holdable(&[]), Ok(vec![R[0]]));
}

/// 27.13-05
#[test]
fn a_claim_keeps_what_it_holds_while_another_takes_the_rest() {
    let mut desk = Desk::new(&[2, 1]);
    desk.reservations.exchange(&[], &[R[0], R[1]]);
    assert_eq!(desk.holdable(&[]), Ok(vec![R[0]]));
    desk.reservations.exchange(&[], &[R[0]]);
    assert_eq!(desk.holdable(&[]), Err(ReservedFailure::Taken));
    assert_eq!(desk.holdable(&[R[0], R[1]]), Ok(vec![R[0], R[1]]));
    desk.reservations.exchange(&[R[0], R[1]], &[R[0]]);
    assert_eq!(desk.holdable(&[R[0]]), Ok(vec![R[0], R[1]]));
    assert_eq!(desk.left(), [0, 1]);
}
