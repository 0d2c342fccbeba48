//! Which instance types can share a launch template.

use std::collections::BTreeMap;

use api::aws::Ami;
use api::labels::LabelSets;
use api::names::labels::aws;
use api::names::resources;
use api::names::values::capacity_type;
use cluster::instance_types::{InstanceType, Offering};

use super::content::{self, Kind, Reservation};
use super::{Launch, Template, TemplateError, name_of};
use crate::ami::Mapping;
use crate::instance_type::Discovered;
use crate::kubelet::Resolved;
use crate::port::NewLaunchTemplate;

/// The templates for the instance types of a launch: one for all types that need the same.
///
/// Offerings that cannot be used for the launch are expected to be gone from the types.
pub fn templates<'a>(
    launch: &Launch<'_>,
    types: &'a [InstanceType],
    discovered: &Discovered,
    reserved_interfaces: i64,
    sets: &LabelSets,
) -> Result<Vec<Template<'a>>, TemplateError> {
    let status = launch.class.status;
    if status.security_groups.is_empty() {
        return Err(TemplateError::NoSecurityGroups);
    }
    let groups = groups(launch, types, discovered, reserved_interfaces, sets)?;
    groups
        .into_iter()
        .map(|(kind, types)| {
            let data = content::data(launch, &kind)?;
            let name = name_of(&data, launch.tags);
            let request = NewLaunchTemplate { name, tags: launch.tags.clone(), data };
            Ok(Template { request, types, reservation: kind.reservation.map(|each| each.id) })
        })
        .collect()
}

type Groups<'a> = BTreeMap<Kind, Vec<&'a InstanceType>>;

fn groups<'a>(
    launch: &Launch<'_>,
    types: &'a [InstanceType],
    discovered: &Discovered,
    reserved_interfaces: i64,
    sets: &LabelSets,
) -> Result<Groups<'a>, TemplateError> {
    let images = &launch.class.status.amis;
    if images.is_empty() {
        return Err(TemplateError::NoImages);
    }
    let wants_fabric = launch.claim.spec.resources.requests.contains_key(resources::AWS_EFA);
    let mut mapping = Mapping::new(images, sets);
    let mut groups = Groups::new();
    for each in types {
        let Some(image) = mapping.image_for(&each.requirements) else { continue };
        let resolved = match discovered.get(&each.name) {
            Some(info) => Resolved::of(launch.class, info, reserved_interfaces)?,
            None => Resolved::default(),
        };
        let kind = Kind {
            image: image.id.clone(),
            fabric: if wants_fabric { each.capacity.amount(resources::AWS_EFA).value() } else { 0 },
            pods: each.capacity.amount(resources::PODS).value(),
            resolved,
            reservation: None,
        };
        if launch.capacity_type == capacity_type::RESERVED {
            for reservation in each.offerings.iter().filter_map(reservation) {
                groups.entry(Kind { reservation: Some(reservation), ..kind.clone() }).or_default().push(each);
            }
        } else {
            groups.entry(kind).or_default().push(each);
        }
    }
    if groups.is_empty() {
        let ids: Vec<&str> = images.iter().map(|image: &Ami| image.id.as_str()).collect();
        return Err(TemplateError::NoTypes(ids.join(", ")));
    }
    Ok(groups)
}

fn reservation(offering: &Offering) -> Option<Reservation> {
    let id = offering.value(aws::CAPACITY_RESERVATION_ID).filter(|_| offering.is_launchable())?;
    Some(Reservation {
        id: id.to_owned(),
        is_block: offering.value(aws::CAPACITY_RESERVATION_TYPE) == Some("capacity-block"),
        is_interruptible: offering.value(aws::CAPACITY_RESERVATION_INTERRUPTIBLE) == Some("true"),
    })
}
