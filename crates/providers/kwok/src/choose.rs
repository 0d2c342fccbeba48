//! Which instance is launched for a claim: the cheapest that satisfies it.

use api::labels::LabelSets;
use api::names::labels;
use api::nodeclaim::NodeClaim;
use api::shared::Operator;
use cloud::Error;
use cluster::instance_types::{InstanceType, Offering, Wanted};
use rand::{Rng, RngExt as _};
use units::Resources;

/// What is launched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice<'a> {
    /// The instance type.
    pub instance_type: &'a InstanceType,
    /// How it is bought.
    pub offering: &'a Offering,
}

/// The cheapest offering that satisfies the claim; chance decides between equal ones of a type.
///
/// A claim that lists types gets one of these, whatever its requests, because whoever made the list has looked
/// at them. A claim that lists none gets any type that is large enough.
pub fn choose<'a>(
    claim: &NodeClaim,
    wanted: &mut Wanted<'_>,
    types: &'a [InstanceType],
    random: &mut impl Rng,
) -> Result<Choice<'a>, Error> {
    let listed = listed(claim);
    for name in listed.into_iter().flatten() {
        if !types.iter().any(|each| each.name == *name) {
            return Err(Error::Other(format!("instance type not found (instance-type={name})")));
        }
    }
    let requests: Resources =
        claim.spec.resources.requests.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
    let mut cheapest: Vec<Choice<'a>> = Vec::new();
    for instance_type in types {
        let fits = listed.is_some() || requests.fits(&instance_type.allocatable());
        if !fits || !wanted.admits(&instance_type.requirements) {
            continue;
        }
        let before = cheapest.first().map_or(f64::INFINITY, |choice| choice.offering.price);
        let mut least = before;
        for offering in instance_type.offerings.iter().filter(|offering| offering.is_launchable()) {
            let price = offering.price;
            // Of several types with the same price, the first counts.
            let is_cheaper = price < least || price <= least && least < before;
            if !is_cheaper || !wanted.admits(&offering.requirements) {
                continue;
            }
            if price < least {
                cheapest.clear();
                least = price;
            }
            cheapest.push(Choice { instance_type, offering });
        }
    }
    if cheapest.is_empty() {
        let message = "no offering of the requested instance types satisfies the nodeclaim";
        return Err(Error::InsufficientCapacity(message.to_owned()));
    }
    Ok(cheapest[random.random_range(0..cheapest.len())])
}

/// The types that the claim lists, if it does.
fn listed(claim: &NodeClaim) -> Option<&[String]> {
    let mut requirements = claim.spec.requirements.iter();
    let listed = requirements.find(|each| each.key == labels::INSTANCE_TYPE && each.operator == Operator::In);
    listed.map(|requirement| requirement.values.as_slice())
}

/// What a claim asks for.
pub fn wanted<'a>(claim: &NodeClaim, sets: &'a LabelSets) -> Result<Wanted<'a>, Error> {
    Wanted::new(&claim.spec.requirements, sets).map_err(|reason| Error::Other(reason.to_string()))
}

#[cfg(test)]
mod tests;
