//! How an EC2NodeClass finds what already exists: from selector terms to questions, and from answers to the
//! status.

use std::collections::{BTreeMap, BTreeSet};

use api::aws::{
    CapacityReservation as Found, CapacityReservationSelectorTerm, InstanceMatchCriteria,
    PlacementGroupSelector, ReservationState, ReservationType, SecurityGroup as FoundGroup,
    SecurityGroupSelectorTerm, Subnet as FoundSubnet, SubnetSelectorTerm,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::port::{CapacityReservation, Filter, PlacementGroupQuery, SecurityGroup, Subnet};

/// How long before its end a capacity block is no longer used: EC2 takes instances away half an hour before.
const BLOCK_ENDS_EARLY: SignedDuration = SignedDuration::from_mins(40);

/// What is asked to find subnets; each question is an alternative, its filters hold together.
pub fn subnet_queries(terms: &[SubnetSelectorTerm]) -> Vec<Vec<Filter>> {
    let ids: BTreeSet<&str> = terms.iter().filter_map(|term| term.id.as_deref()).collect();
    let tags = terms.iter().filter(|term| term.id.is_none()).filter_map(|term| tag_query(term.tags.as_ref()));
    pooled("subnet-id", ids).into_iter().chain(tags).collect()
}

/// What is asked to find security groups.
pub fn security_group_queries(terms: &[SecurityGroupSelectorTerm]) -> Vec<Vec<Filter>> {
    let ids: BTreeSet<&str> = terms.iter().filter_map(|term| term.id.as_deref()).collect();
    let others = || terms.iter().filter(|term| term.id.is_none());
    let names: BTreeSet<&str> = others().filter_map(|term| term.name.as_deref()).collect();
    let tags = others().filter(|term| term.name.is_none()).filter_map(|term| tag_query(term.tags.as_ref()));
    pooled("group-id", ids).into_iter().chain(pooled("group-name", names)).chain(tags).collect()
}

/// What is asked to find a capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReservationQuery {
    /// The one with an ID, or any.
    pub ids: Vec<String>,
    /// What it must be like.
    pub filters: Vec<Filter>,
}

/// What is asked to find capacity reservations, one question for each term. That one is not there is no error.
pub fn reservation_queries(terms: &[CapacityReservationSelectorTerm]) -> Vec<ReservationQuery> {
    let active = || Filter::new("state", ["active"]);
    let query = |term: &CapacityReservationSelectorTerm| {
        if let Some(id) = &term.id {
            return Some(ReservationQuery { ids: vec![id.clone()], filters: vec![active()] });
        }
        if term.tags.as_ref().is_none_or(BTreeMap::is_empty) && term.instance_match_criteria.is_none() {
            // An owner alone is nothing to search by.
            return None;
        }
        let mut filters = vec![active()];
        filters.extend(term.owner_id.as_ref().map(|owner| Filter::new("owner-id", [owner.as_str()])));
        filters.extend(term.tags.iter().flatten().map(|(key, value)| Filter::tag(key, value)));
        let criteria = term.instance_match_criteria.map(InstanceMatchCriteria::as_str);
        filters.extend(criteria.map(|criteria| Filter::new("instance-match-criteria", [criteria])));
        Some(ReservationQuery { ids: Vec::new(), filters })
    };
    terms.iter().filter_map(query).collect()
}

/// What is asked to find a placement group; nothing if none is selected.
pub fn placement_group_query(selector: Option<&PlacementGroupSelector>) -> Option<PlacementGroupQuery> {
    let PlacementGroupSelector { name, id } = selector?;
    let by_id = id.clone().map(PlacementGroupQuery::Id);
    by_id.or_else(|| name.clone().map(PlacementGroupQuery::Name))
}

fn pooled(name: &str, values: BTreeSet<&str>) -> Option<Vec<Filter>> {
    (!values.is_empty()).then(|| vec![Filter::new(name, values)])
}

fn tag_query(tags: Option<&BTreeMap<String, String>>) -> Option<Vec<Filter>> {
    let tags = tags.filter(|tags| !tags.is_empty())?;
    Some(tags.iter().map(|(key, value)| Filter::tag(key, value)).collect())
}

/// Subnets as the status lists them: those with most free addresses first.
pub fn subnets(found: Vec<Subnet>) -> Vec<FoundSubnet> {
    let mut by_id: Vec<Subnet> = found;
    by_id.sort_by(|left, right| {
        right.available_addresses.cmp(&left.available_addresses).then_with(|| left.id.cmp(&right.id))
    });
    let mut seen = BTreeSet::new();
    by_id
        .into_iter()
        .filter(|subnet| seen.insert(subnet.id.clone()))
        .map(|Subnet { id, zone, zone_id, .. }| FoundSubnet { id, zone, zone_id })
        .collect()
}

/// Security groups as the status lists them.
pub fn security_groups(found: Vec<SecurityGroup>) -> Vec<FoundGroup> {
    let by_id: BTreeMap<String, String> = found.into_iter().map(|group| (group.id, group.name)).collect();
    by_id.into_iter().map(|(id, name)| FoundGroup { id, name }).collect()
}

/// Capacity reservations as the status lists them, without those that are over. Those that EC2 describes in
/// words that we do not know are left out, and returned beside with why.
pub fn reservations(found: Vec<CapacityReservation>, now: Timestamp) -> (Vec<Found>, Vec<String>) {
    let mut all: BTreeMap<String, Found> = BTreeMap::new();
    let mut unknown = Vec::new();
    for each in found.into_iter().filter(|each| each.ends.is_none_or(|ends| ends > now)) {
        match reservation(each, now) {
            Ok(found) => {
                all.insert(found.id.clone(), found);
            }
            Err(why) => unknown.push(why),
        }
    }
    (all.into_values().collect(), unknown)
}

fn reservation(each: CapacityReservation, now: Timestamp) -> Result<Found, String> {
    let CapacityReservation {
        id,
        zone,
        instance_type,
        owner_id,
        match_criteria,
        reservation_type,
        interruptible,
        ends,
        available: _,
    } = each;
    let instance_match_criteria = match match_criteria.as_str() {
        "open" => InstanceMatchCriteria::Open,
        "targeted" => InstanceMatchCriteria::Targeted,
        other => {
            return Err(format!("capacity reservation {id} has unknown instance match criteria {other:?}"));
        }
    };
    let reservation_type = match reservation_type.as_str() {
        "" | "default" => ReservationType::Default,
        "capacity-block" => ReservationType::CapacityBlock,
        other => return Err(format!("capacity reservation {id} has unknown type {other:?}")),
    };
    let is_expiring = reservation_type == ReservationType::CapacityBlock
        && ends.is_some_and(|ends| ends.duration_since(now) <= BLOCK_ENDS_EARLY);
    Ok(Found {
        availability_zone: zone,
        end_time: ends.map(Time),
        id,
        instance_match_criteria,
        instance_type,
        interruptible,
        owner_id,
        reservation_type,
        state: if is_expiring { ReservationState::Expiring } else { ReservationState::Active },
    })
}

#[cfg(test)]
mod tests;
