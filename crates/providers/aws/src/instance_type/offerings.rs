//! Where and how an instance type can be bought, for how much, and whether at present.

use std::collections::{BTreeMap, BTreeSet};

use api::aws::{CapacityReservation, ReservationState};
use api::names::labels::{self, aws};
use api::names::values::capacity_type;
use api::shared::Requirement;
use cloud::UnavailableOfferings;
use cloud::unavailable::Asked;
use cluster::instance_types::Offering;

use super::labels::capacity_types;
use super::{Discovered, incompatibility};
use crate::node_class::{Class, Zone};
use crate::port::{InstanceTypeInfo, PlacementGroup};
use crate::prices::Prices;
use crate::requirements::{absent, within};

/// What a reservation costs is paid already; so that reservations are still compared with each other, a share
/// of the price by use remains.
const RESERVED_PRICE_DIVISOR: f64 = 10_000_000.0;

/// What changes from minute to minute.
#[derive(Clone, Copy, Debug)]
pub struct Market<'a> {
    /// What instances cost.
    pub prices: &'a Prices,
    /// What NodeOverlays say types cost for which AWS has no price.
    pub overlay_prices: &'a BTreeMap<String, f64>,
    /// What was not to be had when it was last asked for.
    pub unavailable: &'a UnavailableOfferings,
    /// The IDs of zones that are avoided.
    pub shifted_zones: &'a BTreeSet<String>,
    /// How many instances can still be launched into reservations, by their ID.
    pub reservation_counts: &'a BTreeMap<String, u32>,
    /// Whether reservations are used at all.
    pub reserved_capacity: bool,
}

impl Market<'_> {
    fn price(&self, instance_type: &str, zone: &str, kind: &str) -> Option<f64> {
        let known = match kind {
            capacity_type::SPOT => self.prices.spot(instance_type, zone),
            _ => self.prices.on_demand(instance_type),
        };
        known.or_else(|| self.overlay_prices.get(instance_type).copied())
    }

    fn is_shifted(&self, zone: Option<&Zone<'_>>) -> bool {
        zone.is_some_and(|zone| self.shifted_zones.contains(zone.id))
    }
}

/// Everywhere and every way a type can be bought in the region, with whether it can be had at present.
pub fn offerings(
    class: &Class<'_>,
    info: &InstanceTypeInfo,
    discovered: &Discovered,
    market: &Market<'_>,
) -> Vec<Offering> {
    let is_compatible = incompatibility(class, info).is_none();
    let places = discovered.zones_of(&info.name);
    let mut all = Vec::new();
    for zone in discovered.all_zones() {
        for kind in capacity_types(info) {
            let known = class.zone(zone);
            let price = market.price(&info.name, zone, kind);
            let available = is_compatible
                && price.is_some()
                && known.is_some()
                && places.contains(zone)
                && !market.is_shifted(known);
            let offering = Offering {
                requirements: requirements(kind, zone, known, None),
                price: price.unwrap_or_default(),
                available,
                ..Offering::default()
            };
            let asked = |place: &str| {
                !market.unavailable.contains_asked(&Asked {
                    instance_type: &info.name,
                    zone,
                    capacity_type: kind,
                    place,
                    subnets: known.map_or(&[], |zone| &zone.subnets),
                })
            };
            expand(&mut all, class.placement_group, &offering, |place| available && asked(place));
        }
    }
    if market.reserved_capacity {
        for reservation in class.reservations(&info.name) {
            let offering = reserved(class, reservation, is_compatible, places, market);
            expand(&mut all, class.placement_group, &offering, |_| offering.available);
        }
    }
    all
}

/// A reservation that is full is still there: it is available, and there is nothing left of it.
fn reserved(
    class: &Class<'_>,
    reservation: &CapacityReservation,
    is_compatible: bool,
    places: &BTreeSet<String>,
    market: &Market<'_>,
) -> Offering {
    let zone = &reservation.availability_zone;
    let known = class.zone(zone);
    let price = market.price(&reservation.instance_type, zone, capacity_type::ON_DEMAND);
    Offering {
        requirements: requirements(capacity_type::RESERVED, zone, known, Some(reservation)),
        price: price.unwrap_or_default() / RESERVED_PRICE_DIVISOR,
        available: is_compatible
            && known.is_some()
            && places.contains(zone)
            && reservation.state != ReservationState::Expiring
            && !market.is_shifted(known),
        reservation_capacity: market.reservation_counts.get(&reservation.id).copied().unwrap_or_default(),
        ..Offering::default()
    }
}

fn requirements(
    kind: &str,
    zone: &str,
    known: Option<&Zone<'_>>,
    reservation: Option<&CapacityReservation>,
) -> Vec<Requirement> {
    let mut all = vec![within(labels::CAPACITY_TYPE, [kind]), within(labels::ZONE, [zone])];
    match reservation {
        Some(reservation) => all.extend([
            within(aws::CAPACITY_RESERVATION_ID, [reservation.id.as_str()]),
            within(aws::CAPACITY_RESERVATION_TYPE, [reservation.reservation_type.as_str()]),
            within(aws::CAPACITY_RESERVATION_INTERRUPTIBLE, [reservation.interruptible.to_string()]),
        ]),
        None => all.extend([
            absent(aws::CAPACITY_RESERVATION_ID),
            absent(aws::CAPACITY_RESERVATION_TYPE),
            absent(aws::CAPACITY_RESERVATION_INTERRUPTIBLE),
        ]),
    }
    if let Some(id) = known.map(|zone| zone.id).filter(|id| !id.is_empty()) {
        all.push(within(aws::ZONE_ID, [id]));
    }
    all
}

/// One offering for each partition of a placement group, if it has any. `available` is asked about the place as
/// [`place`] names it.
fn expand(
    all: &mut Vec<Offering>,
    group: Option<&PlacementGroup>,
    offering: &Offering,
    available: impl Fn(&str) -> bool,
) {
    let Some(group) = group else {
        all.push(Offering { available: available(""), ..offering.clone() });
        return;
    };
    if group.partitions().is_empty() {
        all.push(Offering { available: available(&place(&group.id, None)), ..offering.clone() });
    }
    for partition in group.partitions() {
        let mut one = offering.clone();
        let name = partition.to_string();
        one.available = available(&place(&group.id, Some(&name)));
        one.requirements.push(within(aws::PLACEMENT_GROUP_PARTITION, [name]));
        all.push(one);
    }
}

/// How a placement group, or one partition of it, is named among what cannot be had.
pub(crate) fn place(group: &str, partition: Option<&str>) -> String {
    partition.map_or_else(|| group.to_owned(), |partition| format!("{group}/{partition}"))
}
