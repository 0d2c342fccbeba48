//! How instances for a claim are bought.

use std::collections::BTreeSet;

use api::names::labels::{self, aws};
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;
use cluster::instance_types::{InstanceType, Wanted};
use runtime::settings::MinValuesPolicy;

use crate::node_class::Class;
use crate::requirements::within;

/// How many types are tried in a launch.
const MOST_TYPES: usize = 60;

/// How instances for a claim are bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPlan {
    /// Their capacity type.
    pub capacity_type: &'static str,
    /// Whether their hardware is shared.
    pub tenancy: &'static str,
    /// The partition of the placement group, if one is asked for.
    pub partition: Option<String>,
}

/// A claim wants more choice than what is tried has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("minValues requirement is not met for label(s) (label(s)=[{0}])")]
pub struct TooFewTypes(String);

/// The types that are tried: the cheapest. Fails if they have less choice than the claim wants, unless that is
/// only a wish.
pub fn truncate(
    claim: &NodeClaim,
    wanted: &mut Wanted<'_>,
    types: Vec<InstanceType>,
    policy: MinValuesPolicy,
) -> Result<Vec<InstanceType>, TooFewTypes> {
    let mut priced: Vec<(f64, InstanceType)> = types
        .into_iter()
        .map(|each| {
            let usable = each.offerings.iter().filter(|offering| offering.is_launchable());
            let usable = usable.filter(|offering| wanted.admits(&offering.requirements));
            let price = usable.map(|offering| offering.price).min_by(f64::total_cmp);
            (price.unwrap_or(f64::INFINITY), each)
        })
        .collect();
    priced.sort_by(|(left, a), (right, b)| left.total_cmp(right).then_with(|| a.name.cmp(&b.name)));
    priced.truncate(MOST_TYPES);
    let kept: Vec<InstanceType> = priced.into_iter().map(|(_, each)| each).collect();
    let lacking: BTreeSet<&str> = claim
        .spec
        .requirements
        .iter()
        .filter(|requirement| {
            let least = requirement.min_values.and_then(|least| usize::try_from(least).ok()).unwrap_or(0);
            least > 0 && values(&kept, &requirement.key).len() < least
        })
        .map(|requirement| requirement.key.as_str())
        .collect();
    if lacking.is_empty() || policy == MinValuesPolicy::BestEffort {
        Ok(kept)
    } else {
        Err(TooFewTypes(lacking.into_iter().collect::<Vec<_>>().join(" ")))
    }
}

fn values<'a>(types: &'a [InstanceType], key: &str) -> BTreeSet<&'a str> {
    let labels = types.iter().flat_map(|each| &each.requirements);
    labels.filter(|label| label.key == key).flat_map(|label| &label.values).map(String::as_str).collect()
}

/// How instances are bought: reserved before spot before on demand.
pub fn plan(class: &Class<'_>, wanted: &mut Wanted<'_>, types: &[InstanceType]) -> LaunchPlan {
    let mut can_have = |kind: &str| {
        types.iter().flat_map(|each| &each.offerings).any(|offering| {
            super::filters::is_kind(offering, kind)
                && offering.is_launchable()
                && wanted.admits(&offering.requirements)
        })
    };
    let kinds = [capacity_type::RESERVED, capacity_type::SPOT];
    let capacity_type = kinds.into_iter().find(|kind| can_have(kind)).unwrap_or(capacity_type::ON_DEMAND);
    let mut allows = |tenancy: &str| wanted.admits(&[within(aws::INSTANCE_TENANCY, [tenancy])]);
    let tenancy = if allows("default") { "default" } else { "dedicated" };
    LaunchPlan { capacity_type, tenancy, partition: partition(class, wanted) }
}

/// The partition that the claim asks for: the first of those that it allows, if it does not allow all.
fn partition(class: &Class<'_>, wanted: &mut Wanted<'_>) -> Option<String> {
    let group = class.placement_group?;
    let numbers = || group.partitions().map(|number| number.to_string());
    let allowed: Vec<String> = numbers()
        .filter(|number| wanted.admits(&[within(aws::PLACEMENT_GROUP_PARTITION, [number.as_str()])]))
        .collect();
    // EC2 spreads instances over partitions by itself if it may.
    if allowed.len() == numbers().count() { None } else { allowed.into_iter().next() }
}

/// Whether a claim that could have had spot gets so few types by use that it is worth a warning.
pub fn lacks_flexibility(wanted: &mut Wanted<'_>, plan: &LaunchPlan, types: &[InstanceType]) -> bool {
    /// Fewer types than this are seldom all there.
    const FLEXIBLE: usize = 5;
    plan.capacity_type == capacity_type::ON_DEMAND
        && types.len() < FLEXIBLE
        && wanted.admits(&[within(labels::CAPACITY_TYPE, [capacity_type::SPOT])])
}
