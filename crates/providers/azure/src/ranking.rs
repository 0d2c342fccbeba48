//! Which machine is asked for: the cheapest one that can be had, and why the others were not chosen.
//!
//! Nothing is asked for that would be refused: what Azure did not have a moment ago and what the subscription may not
//! use is left out, and said.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::names::labels::{self, azure};
use api::names::values::capacity_type;
use api::shared::Requirement;
use cloud::Error;
use cluster::instance_types::{InstanceType, Offering, Wanted};
use units::Resources;

use crate::instance_type::{Market, Obstacle, obstacle};
use crate::requirements::within;
use crate::sku::Catalogue;
use crate::zone::{REGIONAL, Scope};

/// How many reasons a text names.
const NAMED_REASONS: usize = 5;

/// What a claim asks for.
#[derive(Debug)]
pub struct Request<'a, 'w> {
    /// Its requirements.
    pub wanted: &'a mut Wanted<'w>,
    /// What its pods request.
    pub requests: &'a Resources,
    /// Decides between zones that are equally good: the same number always decides alike.
    pub seed: u64,
}

/// Why something was not chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The claim does not allow it.
    #[error("the requirements of the claim do not allow it")]
    Requirements,
    /// It has no room for the pods.
    #[error("it has no room for what the pods request")]
    TooSmall,
    /// It cannot be had at present.
    #[error(transparent)]
    Obstacle(#[from] Obstacle),
    /// It could not be had when the list was made.
    #[error("it was not offered when the list of instance types was made")]
    NotOffered,
}

/// Something that was not chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped<'a> {
    /// The instance type.
    pub instance_type: &'a str,
    /// The zone and the capacity type; none if it is about the whole type.
    pub offering: Option<(&'a str, &'a str)>,
    /// Why.
    pub reason: Reason,
}

/// A type with those of its offerings that can be asked for, the best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate<'a> {
    /// The type.
    pub instance_type: &'a InstanceType,
    /// The offerings; there is at least one.
    pub offerings: Vec<&'a Offering>,
}

/// What can be asked for, the best first, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking<'a> {
    /// What can be asked for.
    pub candidates: Vec<Candidate<'a>>,
    /// What was left out.
    pub skipped: Vec<Skipped<'a>>,
}

impl<'a> Ranking<'a> {
    /// The machine that is asked for.
    pub fn best(&self) -> Result<(&'a InstanceType, &'a Offering), Error> {
        let first =
            self.candidates.first().and_then(|each| Some((each.instance_type, *each.offerings.first()?)));
        first.ok_or_else(|| Error::InsufficientCapacity(self.refusal()))
    }

    /// What the claim is told if there is nothing to ask for.
    fn refusal(&self) -> String {
        let mut text = "all requested instance types were unavailable during launch".to_owned();
        let why = self.why();
        if !why.is_empty() {
            let _ = write!(text, ": {why}");
        }
        text
    }

    /// Why something was left out that the claim would have allowed, in a few words. What concerns most types first.
    pub fn why(&self) -> String {
        let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for Skipped { instance_type, reason, .. } in &self.skipped {
            if *reason != Reason::Requirements {
                let names = by_reason.entry(reason.to_string()).or_default();
                if !names.contains(instance_type) {
                    names.push(instance_type);
                }
            }
        }
        let mut groups: Vec<(String, Vec<&str>)> = by_reason.into_iter().collect();
        groups.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
        let others = groups.len().saturating_sub(NAMED_REASONS);
        let mut texts: Vec<String> = groups.iter().take(NAMED_REASONS).map(group).collect();
        if others > 0 {
            texts.push(format!("{others} more reasons"));
        }
        texts.join("; ")
    }
}

fn group((reason, names): &(String, Vec<&str>)) -> String {
    match names.as_slice() {
        [first] => format!("{first}: {reason}"),
        [first, rest @ ..] => format!("{first} and {} more: {reason}", rest.len()),
        [] => reason.clone(),
    }
}

/// Everything that can be asked for, the best first: the cheapest, spot before what is paid by use, zones before the
/// region.
pub fn rank<'a>(
    types: &'a [InstanceType],
    request: &mut Request<'_, '_>,
    catalogue: &Catalogue,
    market: &Market<'_>,
) -> Ranking<'a> {
    let mut all = Ranking::default();
    for each in types {
        let offerings = usable(each, request, catalogue, market, &mut all.skipped);
        if !offerings.is_empty() {
            all.candidates.push(Candidate { instance_type: each, offerings });
        }
    }
    all.candidates.sort_by(|left, right| {
        compare(left.offerings[0], right.offerings[0])
            .then_with(|| left.instance_type.name.cmp(&right.instance_type.name))
    });
    all
}

/// The offerings of a type that can be asked for, the best first.
fn usable<'a>(
    each: &'a InstanceType,
    request: &mut Request<'_, '_>,
    catalogue: &Catalogue,
    market: &Market<'_>,
    skipped: &mut Vec<Skipped<'a>>,
) -> Vec<&'a Offering> {
    let mut skip = |offering, reason| skipped.push(Skipped { instance_type: &each.name, offering, reason });
    // A claim names the types it was planned for, which are a few of many: others need no closer look.
    let name = each.requirements.iter().find(|label| label.key == labels::INSTANCE_TYPE);
    let is_named = name.is_none_or(|name| request.wanted.admits(std::slice::from_ref(name)));
    // Some labels of a type follow from what could be had: about those, the offerings say more.
    if !is_named
        || (!request.wanted.admits(&each.requirements) && !request.wanted.admits(&of_the_type_alone(each)))
    {
        skip(None, Reason::Requirements);
        return Vec::new();
    }
    let mut left: Vec<&Offering> = Vec::new();
    for offering in &each.offerings {
        let zone = offering.value(labels::ZONE).unwrap_or_default();
        let kind = offering.value(labels::CAPACITY_TYPE).unwrap_or_default();
        let reason = if request.wanted.admits(&offering.requirements) {
            why_not(each, offering, (zone, kind), request.requests, catalogue, market)
        } else {
            Some(Reason::Requirements)
        };
        match reason {
            None => left.push(offering),
            Some(reason) => skip(Some((zone, kind)), reason),
        }
    }
    let seed = request.seed;
    left.sort_by(|left, right| compare(left, right).then_with(|| dice(seed, left).cmp(&dice(seed, right))));
    left
}

/// The labels of a type that its offerings do not have.
fn of_the_type_alone(each: &InstanceType) -> Vec<Requirement> {
    let of_offerings = each.offerings.first().map_or(&[][..], |offering| &offering.requirements);
    let is_alone = |label: &&Requirement| of_offerings.iter().all(|other| other.key != label.key);
    each.requirements.iter().filter(is_alone).cloned().collect()
}

/// Why an offering that the claim allows cannot be asked for.
fn why_not(
    each: &InstanceType,
    offering: &Offering,
    (zone, kind): (&str, &str),
    requests: &Resources,
    catalogue: &Catalogue,
    market: &Market<'_>,
) -> Option<Reason> {
    if !requests.fits(&each.allocatable_of(offering)) {
        return Some(Reason::TooSmall);
    }
    // What is known now counts, not what was known when the list was made.
    if let Some(sku) = catalogue.get(&each.name)
        && let Some(obstacle) = obstacle(sku, zone, kind, market)
    {
        return Some(Reason::Obstacle(obstacle));
    }
    (!offering.available).then_some(Reason::NotOffered)
}

fn compare(left: &Offering, right: &Offering) -> Ordering {
    let is_on_demand = |each: &Offering| each.value(labels::CAPACITY_TYPE) != Some(capacity_type::SPOT);
    let scope = |each: &Offering| Scope::of(each.value(labels::ZONE).unwrap_or(REGIONAL));
    let price = left.price.total_cmp(&right.price);
    price.then_with(|| (is_on_demand(left), scope(left)).cmp(&(is_on_demand(right), scope(right))))
}

/// A throw of the dice for a zone, so that machines spread over zones that are equally good.
fn dice(seed: u64, offering: &Offering) -> u64 {
    let zone = offering.value(labels::ZONE).unwrap_or_default();
    zone.bytes().fold(scatter(seed), |sum, byte| scatter(sum ^ u64::from(byte)))
}

/// Numbers that are alike become numbers that are not: the finishing step of SplitMix64.
const fn scatter(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Whether a claim asks for ultra disks: it allows them and nothing else.
pub fn wants_ultra_ssd(wanted: &mut Wanted<'_>) -> bool {
    let mut allows = |value: &str| wanted.admits(&[within(azure::SKU_STORAGE_ULTRA_SSD, [value])]);
    allows("true") && !allows("false")
}
