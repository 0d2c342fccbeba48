//! An instance, as far as we care.

use api::names::resources;
use api::names::values::capacity_type;
use api::nodeclaim::NodeClaim;
use cluster::instance_types::InstanceType;
use jiff::Timestamp;

use super::plan::LaunchPlan;
use crate::node_class::Class;
use crate::port::{FleetInstance, Instance, InstanceState, Tags};

/// An instance, as far as we care.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its ID.
    pub id: String,
    /// Its type.
    pub instance_type: String,
    /// What it is doing.
    pub state: InstanceState,
    /// Its zone.
    pub zone: String,
    /// The ID of its zone; empty if not known.
    pub zone_id: String,
    /// Its image.
    pub image_id: String,
    /// Its subnet.
    pub subnet_id: String,
    /// Its security groups; not known of one that was just launched.
    pub security_groups: Vec<String>,
    /// Its tags.
    pub tags: Tags,
    /// When it was launched.
    pub launched: Option<Timestamp>,
    /// How it was bought.
    pub capacity_type: &'static str,
    /// The reservation that it runs in, if it was launched for it.
    pub reservation: Option<Reservation>,
    /// Whether its hardware is shared.
    pub tenancy: String,
    /// How many fabric adapters it has.
    pub fabric: i64,
    /// Its partition of a placement group.
    pub partition: Option<u32>,
}

/// A reservation that an instance runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Its ID.
    pub id: String,
    /// Whether it is a capacity block.
    pub is_block: bool,
    /// Whether its owner can take it back.
    pub is_interruptible: bool,
}

impl Machine {
    /// An instance that EC2 described. Without `reserved_capacity`, nobody launches into reservations.
    pub fn described(instance: Instance, reserved_capacity: bool) -> Self {
        let lifecycle = instance.lifecycle.as_deref();
        // An instance that found an open reservation by chance was still bought by use.
        let was_meant = instance.reservation_preference.as_deref() == Some("capacity-reservations-only");
        let reservation = instance.reservation_id.filter(|_| reserved_capacity && was_meant);
        let is_spot = instance.spot_request_id.is_some() || lifecycle == Some("spot");
        let is_fabric = |kind: &&String| ["efa", "efa-only"].contains(&kind.as_str());
        Self {
            capacity_type: match (is_spot, &reservation) {
                (true, _) => capacity_type::SPOT,
                (false, Some(_)) => capacity_type::RESERVED,
                (false, None) => capacity_type::ON_DEMAND,
            },
            reservation: reservation.filter(|_| !is_spot).map(|id| Reservation {
                id,
                is_block: lifecycle == Some("capacity-block"),
                is_interruptible: lifecycle == Some("interruptible-capacity-reservation"),
            }),
            tenancy: if instance.tenancy.is_empty() { "default".to_owned() } else { instance.tenancy },
            fabric: i64::try_from(instance.interface_types.iter().filter(is_fabric).count())
                .unwrap_or(i64::MAX),
            partition: Some(instance.partition).filter(|number| *number != 0),
            id: instance.id,
            instance_type: instance.instance_type,
            state: instance.state,
            zone: instance.zone,
            zone_id: instance.zone_id,
            image_id: instance.image_id,
            subnet_id: instance.subnet_id,
            security_groups: instance.security_groups,
            tags: instance.tags,
            launched: instance.launched,
        }
    }

    /// An instance that was just launched; none if EC2 did not tell where.
    pub fn launched(
        fleet: &FleetInstance,
        class: &Class<'_>,
        claim: &NodeClaim,
        plan: &LaunchPlan,
        types: &[InstanceType],
        tags: Tags,
        now: Timestamp,
    ) -> Option<Self> {
        let zone = fleet.place.zone.clone()?;
        let instance_type = fleet.instance_type.clone();
        let wants_fabric = claim.spec.resources.requests.contains_key(resources::AWS_EFA)
            || class.spec.network_interfaces.is_some();
        let known = types.iter().find(|each| each.name == instance_type);
        let fabric = known.map_or(0, |each| each.capacity.amount(resources::AWS_EFA).value());
        let reservation = class
            .reservations(&instance_type)
            .filter(|each| each.availability_zone == zone && plan.capacity_type == capacity_type::RESERVED)
            // Filters have left one in each zone.
            .find(|each| known.is_none_or(|known| offers(known, &each.id)))
            .map(|each| Reservation {
                id: each.id.clone(),
                is_block: each.reservation_type == api::aws::ReservationType::CapacityBlock,
                is_interruptible: each.interruptible,
            });
        Some(Self {
            id: fleet.ids.first()?.clone(),
            state: InstanceState::Pending,
            zone_id: class.zone(&zone).map(|zone| zone.id.to_owned()).unwrap_or_default(),
            image_id: fleet.place.image_id.clone().unwrap_or_default(),
            subnet_id: fleet.place.subnet_id.clone().unwrap_or_default(),
            security_groups: Vec::new(),
            tags,
            launched: Some(now),
            capacity_type: plan.capacity_type,
            reservation,
            tenancy: plan.tenancy.to_owned(),
            fabric: if wants_fabric { fabric } else { 0 },
            partition: plan.partition.as_ref().and_then(|number| number.parse().ok()),
            instance_type,
            zone,
        })
    }
}

fn offers(known: &InstanceType, reservation: &str) -> bool {
    let key = api::names::labels::aws::CAPACITY_RESERVATION_ID;
    known.offerings.iter().any(|offering| offering.value(key) == Some(reservation))
}
