//! Capacity reservations: how many launches each has left, and which claims hold them.

use crate::compiled::Compiled;
use crate::mask::Mask;
use crate::model::{ReservationId, Snapshot};
use crate::options::Reserved;
use crate::solve::failure::ReservedFailure;
use crate::universe::{FastMap, SetId, Undefined, Universe};

/// Launches left in each reservation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservations {
    left: FastMap<ReservationId, u32>,
    /// A reservation that has one more launch than its offerings say.
    credited: Option<ReservationId>,
}

/// What a claim is to hold from now on.
pub(crate) type Held = Vec<ReservationId>;

impl Reservations {
    /// Pools may disagree about what is left; the smallest number counts.
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let mut left = FastMap::default();
        let offerings = snapshot.catalogues.iter().flat_map(|c| &c.types).flat_map(|it| &it.offerings);
        for (id, capacity) in offerings.filter_map(|offering| offering.reservation) {
            left.entry(id).and_modify(|known: &mut u32| *known = capacity.min(*known)).or_insert(capacity);
        }
        Self { left, credited: None }
    }

    /// Assumes that a reservation gets one launch back.
    pub(crate) fn credit(&mut self, id: ReservationId) {
        if let Some(left) = self.left.get_mut(&id) {
            *left += 1;
            self.credited = Some(id);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Which reservations a claim with these requirements and types can hold.
    pub(crate) fn holdable(
        &self,
        mode: Reserved,
        held: &[ReservationId],
        set: SetId,
        rows: &Mask,
        compiled: &Compiled,
        universe: &mut Universe,
    ) -> Result<Held, ReservedFailure> {
        let (mut with_capacity, mut full, mut fallback) = (false, false, false);
        let mut holdable: Held = Vec::new();
        for type_ in compiled.types_of(rows) {
            for offering in compiled.types()[type_].offerings.iter().filter(|offering| offering.available) {
                if !universe.is_compatible(set, offering.requirements, Undefined::WellKnown) {
                    continue;
                }
                match offering.reservation {
                    None => fallback = true,
                    Some((id, 0)) if self.credited != Some(id) => full = true,
                    Some((id, _)) => {
                        with_capacity = true;
                        let free = self.left.get(&id).is_some_and(|left| *left > 0);
                        if (free || held.contains(&id)) && !holdable.contains(&id) {
                            holdable.push(id);
                        }
                    }
                }
            }
        }
        let strict = mode == Reserved::Strict;
        if strict && with_capacity && holdable.is_empty() {
            return Err(ReservedFailure::Taken);
        }
        if full && !with_capacity && !fallback {
            return Err(if strict { ReservedFailure::Full } else { ReservedFailure::FallsThrough });
        }
        if strict && !held.is_empty() && holdable.is_empty() {
            return Err(ReservedFailure::WouldLose);
        }
        holdable.sort_unstable();
        Ok(holdable)
    }

    /// Exchanges what a claim holds.
    pub(crate) fn exchange(&mut self, before: &[ReservationId], after: &[ReservationId]) {
        for id in before.iter().filter(|id| !after.contains(id)) {
            self.left.entry(*id).and_modify(|left| *left += 1);
        }
        for id in after.iter().filter(|id| !before.contains(id)) {
            self.left.entry(*id).and_modify(|left| *left = left.saturating_sub(1));
        }
    }
}

#[cfg(test)]
mod tests;
