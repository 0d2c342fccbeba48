//! The request that launches instances.

use std::collections::BTreeSet;

use api::names::annotations;
use api::names::labels::{self, aws};
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;
use cluster::instance_types::{Offering, Wanted};

use super::filters::is_kind;
use super::plan::LaunchPlan;
use super::subnets::ChosenSubnet;
use crate::hash::Hasher;
use crate::launch_template::Template;
use crate::node_class::Class;
use crate::port::{FleetOverride, FleetPurchase, FleetRequest, FleetTemplate, Tags};

/// Nothing is left that could be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no capacity offerings are currently available given the constraints")]
pub struct NoOverrides;

/// The request that launches an instance for a claim.
pub fn request(
    class: &Class<'_>,
    claim: &NodeClaim,
    plan: &LaunchPlan,
    templates: &[Template<'_>],
    subnets: &[ChosenSubnet],
    wanted: &mut Wanted<'_>,
    tags: Tags,
) -> Result<FleetRequest, NoOverrides> {
    let mut used: Vec<&Offering> = Vec::new();
    let mut listed = Vec::new();
    for template in templates {
        let mut seen = BTreeSet::new();
        let mut overrides = Vec::new();
        for each in &template.types {
            for offering in &each.offerings {
                let Some(subnet) = subnet(offering, subnets) else { continue };
                let is_wanted = offering.is_launchable()
                    && is_kind(offering, plan.capacity_type)
                    && is_of(offering, template.reservation.as_deref())
                    && wanted.admits(&offering.requirements);
                if is_wanted && seen.insert((&each.name, &subnet.zone)) {
                    used.push(offering);
                    overrides.push(FleetOverride {
                        instance_type: each.name.clone(),
                        subnet_id: subnet.id.clone(),
                        image_id: Some(template.request.data.image_id.clone()),
                        zone: subnet.zone.clone(),
                        priority: Some(offering.price),
                    });
                }
            }
        }
        if !overrides.is_empty() {
            listed.push(FleetTemplate { name: template.request.name.clone(), overrides });
        }
    }
    let Some(first) = used.first() else { return Err(NoOverrides) };
    Ok(FleetRequest {
        dry_run: false,
        context: class.spec.context.clone().filter(|_| !has(claim, annotations::MIN_VALUES_RELAXED)),
        templates: listed,
        purchase: purchase(plan.capacity_type, claim, first),
        count: 1,
        tags,
    })
}

fn subnet<'a>(offering: &Offering, subnets: &'a [ChosenSubnet]) -> Option<&'a ChosenSubnet> {
    let zone = offering.value(labels::ZONE)?;
    subnets.iter().find(|subnet| subnet.zone == zone)
}

fn is_of(offering: &Offering, reservation: Option<&str>) -> bool {
    reservation.is_none() || offering.value(aws::CAPACITY_RESERVATION_ID) == reservation
}

fn has(claim: &NodeClaim, annotation: &str) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(annotation)).is_some_and(|value| value == "true")
}

/// Prices that were corrected are told to EC2 as priorities, since it knows only its own.
fn purchase(kind: &str, claim: &NodeClaim, offering: &Offering) -> FleetPurchase {
    let annotations = claim.metadata.annotations.as_ref();
    let prioritized = annotations.is_some_and(|all| all.contains_key(annotations::PRICE_OVERLAY_APPLIED));
    let is_block = offering.value(aws::CAPACITY_RESERVATION_TYPE) == Some("capacity-block");
    let is_interruptible = offering.value(aws::CAPACITY_RESERVATION_INTERRUPTIBLE) == Some("true");
    match kind {
        capacity_type::SPOT => FleetPurchase::Spot { prioritized },
        capacity_type::RESERVED if is_block => FleetPurchase::CapacityBlock,
        capacity_type::RESERVED if is_interruptible => FleetPurchase::InterruptibleReservation,
        _ => FleetPurchase::OnDemand { prioritized },
    }
}

/// Requests with the same key ask for the same, in whatever order, and can be sent as one.
pub fn batch_key(request: &FleetRequest) -> u64 {
    let FleetRequest { dry_run, context, templates, purchase, count, tags } = request;
    let mut hasher = Hasher::default();
    hasher.flag(*dry_run).maybe(context.as_deref()).number(u64::from(*count));
    hasher.text(purchase.target()).maybe(purchase.strategy());
    hasher.texts(tags.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]));
    let of_override = |each: &FleetOverride| {
        let FleetOverride { instance_type, subnet_id, image_id, zone, priority } = each;
        let mut hasher = Hasher::default();
        hasher.text(instance_type).text(subnet_id).maybe(image_id.as_deref()).text(zone);
        hasher.flag(priority.is_some()).number(priority.unwrap_or_default().to_bits());
        hasher.finish()
    };
    let of_template = |each: &FleetTemplate| {
        let mut overrides: Vec<u64> = each.overrides.iter().map(of_override).collect();
        overrides.sort_unstable();
        let mut hasher = Hasher::default();
        hasher.text(&each.name);
        for each in overrides {
            hasher.number(each);
        }
        hasher.finish()
    };
    let mut templates: Vec<u64> = templates.iter().map(of_template).collect();
    templates.sort_unstable();
    for each in templates {
        hasher.number(each);
    }
    hasher.finish()
}
