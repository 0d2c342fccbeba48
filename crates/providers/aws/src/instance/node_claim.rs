//! An instance as the core wants to see it.

use std::collections::BTreeMap;

use api::hash::{EC2_NODE_CLASS_HASH_VERSION, ec2_node_class_hash};
use api::names::annotations::aws as annotations;
use api::names::labels::{self, aws};
use api::names::resources;
use api::names::tags::aws as tags;
use api::nodeclaim::{NodeClaim, NodeClaimSpec, NodeClaimStatus};
use api::shared::ResourceList;
use cluster::instance_types::{InstanceType, single};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use units::Resources;

use super::machine::Machine;
use super::provider_id;
use super::relabel::OF_RESERVATIONS;
use crate::node_class::Class;
use crate::port::PlacementStrategy;

/// What a claim is told about the NodeClass that its instance was launched with.
pub fn launch_annotations(class: &Class<'_>, ca_bundle: Option<&str>) -> BTreeMap<String, String> {
    [
        (annotations::NODE_CLASS_HASH, ec2_node_class_hash(class.spec, ca_bundle)),
        (annotations::NODE_CLASS_HASH_VERSION, EC2_NODE_CLASS_HASH_VERSION.to_owned()),
        (annotations::INSTANCE_PROFILE_NAME, class.status.instance_profile.clone()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// An instance as a NodeClaim. What is not known of its type and NodeClass is left out.
pub fn node_claim(
    machine: &Machine,
    instance_type: Option<&InstanceType>,
    class: Option<&Class<'_>>,
    now: Timestamp,
) -> NodeClaim {
    let amounts = |all: &Resources| amounts(all, machine.fabric > 0);
    let status = NodeClaimStatus {
        provider_id: provider_id::of(&machine.zone, &machine.id),
        image_id: machine.image_id.clone(),
        capacity: instance_type.map(|each| amounts(&each.capacity)).unwrap_or_default(),
        allocatable: instance_type.map(|each| amounts(&each.allocatable())).unwrap_or_default(),
        ..NodeClaimStatus::default()
    };
    let metadata = ObjectMeta {
        labels: Some(node_labels(machine, instance_type, class)),
        creation_timestamp: machine.launched.map(Time),
        deletion_timestamp: machine.state.is_ending().then_some(Time(now)),
        ..ObjectMeta::default()
    };
    NodeClaim { metadata, spec: NodeClaimSpec::default(), status: Some(status) }
}

fn node_labels(
    machine: &Machine,
    instance_type: Option<&InstanceType>,
    class: Option<&Class<'_>>,
) -> BTreeMap<String, String> {
    // A type may have several reservations, an instance has its own.
    let of_type = instance_type.into_iter().flat_map(|each| &each.requirements);
    let mut all: BTreeMap<String, String> = of_type
        .filter(|label| !OF_RESERVATIONS.contains(&label.key.as_str()))
        .filter_map(|label| Some((label.key.clone(), single(label)?.to_owned())))
        .collect();
    let mut set = |key: &str, value: &str| all.insert(key.to_owned(), value.to_owned());
    set(labels::ZONE, &machine.zone);
    let of_class = class.and_then(|class| class.zone(&machine.zone)).map(|zone| zone.id);
    if let Some(id) = of_class.or(Some(machine.zone_id.as_str())).filter(|id| !id.is_empty()) {
        set(aws::ZONE_ID, id);
    }
    set(labels::CAPACITY_TYPE, machine.capacity_type);
    set(aws::INSTANCE_TENANCY, &machine.tenancy);
    if let Some(reservation) = &machine.reservation {
        set(aws::CAPACITY_RESERVATION_ID, &reservation.id);
        let kind = if reservation.is_block { "capacity-block" } else { "default" };
        set(aws::CAPACITY_RESERVATION_TYPE, kind);
        set(aws::CAPACITY_RESERVATION_INTERRUPTIBLE, &reservation.is_interruptible.to_string());
    }
    if let Some(group) = class.and_then(|class| class.placement_group) {
        set(aws::PLACEMENT_GROUP_ID, &group.id);
        if group.strategy == PlacementStrategy::Partition {
            // Empty until EC2 says which one it took.
            let partition = machine.partition.map(|number| number.to_string()).unwrap_or_default();
            set(aws::PLACEMENT_GROUP_PARTITION, &partition);
        }
    }
    if let Some(pool) = machine.tags.get(tags::NODEPOOL) {
        set(labels::NODEPOOL, pool);
    }
    all
}

/// Amounts without those of nothing, and without fabric adapters that the instance did not get.
fn amounts(all: &Resources, has_fabric: bool) -> ResourceList {
    all.iter()
        .filter(|(name, amount)| !amount.is_zero() && (has_fabric || name.as_str() != resources::AWS_EFA))
        .map(|(name, amount)| (name.as_str().to_owned(), *amount))
        .collect()
}
