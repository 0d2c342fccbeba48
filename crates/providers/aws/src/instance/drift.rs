//! Whether an instance is still what its NodeClass asks for.
//!
//! First what needs no instance is compared ([`of_claim`]), then the rest ([`of_machine`]).

use std::collections::{BTreeMap, BTreeSet};

use api::labels::LabelSets;
use api::names::annotations::aws as annotations;
use api::names::labels::{self, aws};
use api::names::reasons::aws as reasons;
use api::nodeclaim::NodeClaim;
use cluster::instance_types::InstanceType;

use super::machine::Machine;
use crate::ami::Mapping;
use crate::node_class::Class;

/// Why nobody knows whether an instance is what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The type of the claim is not among those of its NodePool.
    #[error("finding node instance type {0:?}")]
    InstanceType(String),
    /// The NodeClass has no images.
    #[error("no amis exist given constraints")]
    NoImages,
    /// The claim does not say which image it has.
    #[error("the nodeclaim has no imageID in its status")]
    NoImageId,
    /// The NodeClass has no security groups.
    #[error("no security groups are present in the status")]
    NoSecurityGroups,
    /// The NodeClass has no subnets.
    #[error("no subnets are discovered")]
    NoSubnets,
}

type Annotations = BTreeMap<String, String>;

/// What can be said without the instance: whether the NodeClass changed, or another image would be taken.
pub fn of_claim(
    class: &Class<'_>,
    class_annotations: Option<&Annotations>,
    claim: &NodeClaim,
    types: &[InstanceType],
    sets: &LabelSets,
) -> Result<Option<&'static str>, Unknown> {
    if has_changed(class_annotations, claim.metadata.annotations.as_ref()) {
        return Ok(Some(reasons::NODE_CLASS_DRIFT));
    }
    let name = claim.metadata.labels.as_ref().and_then(|all| all.get(labels::INSTANCE_TYPE));
    let name = name.map_or("", String::as_str);
    let instance_type = types.iter().find(|each| each.name == name);
    let instance_type = instance_type.ok_or_else(|| Unknown::InstanceType(name.to_owned()))?;
    if class.status.amis.is_empty() {
        return Err(Unknown::NoImages);
    }
    let image = claim.status.as_ref().map(|status| status.image_id.as_str()).filter(|id| !id.is_empty());
    let image = image.ok_or(Unknown::NoImageId)?;
    let chosen = Mapping::new(&class.status.amis, sets).image_for(&instance_type.requirements);
    Ok(chosen.is_none_or(|chosen| chosen.id != image).then_some(reasons::AMI_DRIFT))
}

/// Whether the hash of a NodeClass is another one than when the claim was launched, by the same algorithm.
fn has_changed(class: Option<&Annotations>, claim: Option<&Annotations>) -> bool {
    let both = |key: &str| Some((class?.get(key)?, claim?.get(key)?));
    let (Some(hashes), Some(versions)) =
        (both(annotations::NODE_CLASS_HASH), both(annotations::NODE_CLASS_HASH_VERSION))
    else {
        return false;
    };
    versions.0 == versions.1 && hashes.0 != hashes.1
}

/// What the instance says, the first of several reasons. Reservations are to be asked about once more before
/// that counts: an instance may have fallen back to being paid by use.
pub fn of_machine(
    class: &Class<'_>,
    claim: &NodeClaim,
    machine: &Machine,
) -> Result<Option<&'static str>, Unknown> {
    let status = class.status;
    if status.security_groups.is_empty() {
        return Err(Unknown::NoSecurityGroups);
    }
    if status.subnets.is_empty() {
        return Err(Unknown::NoSubnets);
    }
    let wanted: BTreeSet<&str> = status.security_groups.iter().map(|group| group.id.as_str()).collect();
    let has: BTreeSet<&str> = machine.security_groups.iter().map(String::as_str).collect();
    let is_reservation_gone = machine
        .reservation
        .as_ref()
        .is_some_and(|mine| !status.capacity_reservations.iter().any(|each| each.id == mine.id));
    let group = claim.metadata.labels.as_ref().and_then(|all| all.get(aws::PLACEMENT_GROUP_ID));
    let has_moved = group.map(String::as_str) != class.placement_group.map(|group| group.id.as_str());
    let reasons = [
        (wanted != has, reasons::SECURITY_GROUP_DRIFT),
        (!status.subnets.iter().any(|subnet| subnet.id == machine.subnet_id), reasons::SUBNET_DRIFT),
        (is_reservation_gone, reasons::CAPACITY_RESERVATION_DRIFT),
        (has_moved, reasons::PLACEMENT_GROUP_DRIFT),
    ];
    Ok(reasons.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason))
}
