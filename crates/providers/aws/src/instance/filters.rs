//! Which of the instance types that a claim allows are tried, and of which offerings: one step after the other.

use std::collections::BTreeMap;

use api::names::labels::{self, aws};
use api::names::resources;
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;
use cloud::Error;
use cluster::instance_types::{InstanceType, Offering, Wanted, single};
use units::Resources;

use crate::requirements::within;

/// Resources that only special machines have. They are not wasted on pods that did not ask for them.
const EXOTIC: [&str; 5] = [
    resources::AWS_NEURON,
    resources::AWS_NEURON_CORE,
    resources::AMD_GPU,
    resources::NVIDIA_GPU,
    resources::HABANA_GAUDI,
];

/// The types and offerings that are tried for a claim.
pub fn filter(
    claim: &NodeClaim,
    wanted: &mut Wanted<'_>,
    types: &[InstanceType],
) -> Result<Vec<InstanceType>, Error> {
    let requests: Resources =
        claim.spec.resources.requests.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
    let has_min_values = claim.spec.requirements.iter().any(|each| each.min_values.is_some());
    let allows =
        |wanted: &mut Wanted<'_>, kind: &str| wanted.admits(&[within(labels::CAPACITY_TYPE, [kind])]);
    let mut left: Vec<InstanceType> =
        types.iter().filter(|each| can_be_had(each, wanted, &requests)).cloned().collect();
    if allows(wanted, capacity_type::RESERVED) {
        left = one_reservation_type(left, wanted);
        left = one_capacity_block(left, wanted);
        left = one_reservation_in_each_zone(left, wanted);
    }
    if !has_min_values {
        left = without_exotic(left);
        if allows(wanted, capacity_type::SPOT) && allows(wanted, capacity_type::ON_DEMAND) {
            left = without_expensive_spot(left, wanted);
        }
    }
    if left.is_empty() {
        let message = "all requested instance types were unavailable during launch";
        return Err(Error::InsufficientCapacity(message.to_owned()));
    }
    Ok(left)
}

/// Whether some offering can be launched now that satisfies the claim and has room for what it requests.
fn can_be_had(each: &InstanceType, wanted: &mut Wanted<'_>, requests: &Resources) -> bool {
    wanted.admits(&each.requirements)
        && each.offerings.iter().any(|offering| {
            offering.is_launchable()
                && wanted.admits(&offering.requirements)
                && requests.fits(&each.allocatable_of(offering))
        })
}

pub(super) fn is_kind(offering: &Offering, kind: &str) -> bool {
    offering.value(labels::CAPACITY_TYPE) == Some(kind)
}

fn is_usable(offering: &Offering, kind: &str, wanted: &mut Wanted<'_>) -> bool {
    is_kind(offering, kind) && offering.is_launchable() && wanted.admits(&offering.requirements)
}

/// Which kinds of reservations cannot be mixed in a launch, the best first where they cost the same.
const RESERVATION_KINDS: [(&str, &str); 3] =
    [("default", "false"), ("capacity-block", "false"), ("default", "true")];

fn reservation_kind(offering: &Offering) -> Option<usize> {
    let kind = offering.value(aws::CAPACITY_RESERVATION_TYPE)?;
    let interruptible = offering.value(aws::CAPACITY_RESERVATION_INTERRUPTIBLE)?;
    RESERVATION_KINDS.iter().position(|known| *known == (kind, interruptible))
}

/// Reservations of one kind only: the one with the cheapest offering.
fn one_reservation_type(types: Vec<InstanceType>, wanted: &mut Wanted<'_>) -> Vec<InstanceType> {
    let mut cheapest: BTreeMap<usize, f64> = BTreeMap::new();
    for offering in types.iter().flat_map(|each| &each.offerings) {
        if is_usable(offering, capacity_type::RESERVED, wanted)
            && let Some(kind) = reservation_kind(offering)
        {
            let least = cheapest.entry(kind).or_insert(f64::INFINITY);
            *least = least.min(offering.price);
        }
    }
    let best = cheapest.into_iter().min_by(|(_, left), (_, right)| left.total_cmp(right));
    let Some((best, _)) = best else { return types };
    with_offerings(types, |offering| {
        is_kind(offering, capacity_type::RESERVED)
            && reservation_kind(offering) == Some(best)
            && is_usable(offering, capacity_type::RESERVED, wanted)
    })
}

/// A capacity block is launched alone: EC2 takes one at a time.
fn one_capacity_block(types: Vec<InstanceType>, wanted: &mut Wanted<'_>) -> Vec<InstanceType> {
    let is_block =
        |offering: &Offering| offering.value(aws::CAPACITY_RESERVATION_TYPE) == Some("capacity-block");
    let reserved = types.iter().flat_map(|each| &each.offerings);
    let mut reserved = reserved.filter(|offering| is_kind(offering, capacity_type::RESERVED));
    if !reserved.next().is_some_and(is_block) {
        return types;
    }
    let mut best: Option<InstanceType> = None;
    for each in types {
        for offering in &each.offerings {
            let is_better = best.as_ref().is_none_or(|best| offering.price < best.offerings[0].price);
            if is_better && is_block(offering) && is_usable(offering, capacity_type::RESERVED, wanted) {
                best = Some(InstanceType { offerings: vec![offering.clone()], ..each.clone() });
            }
        }
    }
    best.into_iter().collect()
}

/// Of several reservations of a type in a zone, the one with most left.
fn one_reservation_in_each_zone(types: Vec<InstanceType>, wanted: &mut Wanted<'_>) -> Vec<InstanceType> {
    let mut kept = Vec::new();
    for each in &types {
        let mut by_zone: BTreeMap<&str, &Offering> = BTreeMap::new();
        for offering in &each.offerings {
            let Some(zone) = offering.value(labels::ZONE) else { continue };
            let is_better = by_zone
                .get(zone)
                .is_none_or(|known| known.reservation_capacity < offering.reservation_capacity);
            if is_better && is_usable(offering, capacity_type::RESERVED, wanted) {
                by_zone.insert(zone, offering);
            }
        }
        if !by_zone.is_empty() {
            let offerings = by_zone.into_values().cloned().collect();
            kept.push(InstanceType { offerings, ..each.clone() });
        }
    }
    if kept.is_empty() { types } else { kept }
}

/// No bare metal and no special devices, unless there is nothing else.
fn without_exotic(types: Vec<InstanceType>) -> Vec<InstanceType> {
    let is_exotic = |each: &InstanceType| {
        let size = each.requirements.iter().find(|label| label.key == aws::INSTANCE_SIZE).and_then(single);
        size.is_some_and(|size| size.contains("metal"))
            || EXOTIC.iter().any(|resource| !each.capacity.amount(resource).is_zero())
    };
    if types.iter().all(is_exotic) {
        return types;
    }
    types.into_iter().filter(|each| !is_exotic(each)).collect()
}

/// No spot that costs more than what is paid by use.
fn without_expensive_spot(types: Vec<InstanceType>, wanted: &mut Wanted<'_>) -> Vec<InstanceType> {
    let mut cheapest = |kind: &str| {
        let usable =
            types.iter().flat_map(|each| &each.offerings).filter(|each| is_usable(each, kind, wanted));
        usable.map(|offering| offering.price).min_by(f64::total_cmp)
    };
    let (Some(on_demand), Some(_)) = (cheapest(capacity_type::ON_DEMAND), cheapest(capacity_type::SPOT))
    else {
        return types;
    };
    with_offerings(types, |offering| !is_kind(offering, capacity_type::SPOT) || offering.price <= on_demand)
}

/// Types with some of their offerings; those without any are gone.
fn with_offerings(types: Vec<InstanceType>, mut keep: impl FnMut(&Offering) -> bool) -> Vec<InstanceType> {
    let mut types = types;
    for each in &mut types {
        each.offerings.retain(&mut keep);
    }
    types.retain(|each| !each.offerings.is_empty());
    types
}
