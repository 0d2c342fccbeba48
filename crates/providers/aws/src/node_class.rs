//! An EC2NodeClass as everything else wants to see it: read once, with the zones of its subnets.

use api::aws::{
    AmiFamily, CapacityReservation, EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus, InterfaceType,
};

use api::names::conditions::READY;
use api::names::reasons::aws as reasons;
use api::shared::ConditionStatus;
use cloud::Error;

use crate::family::Family;
use crate::kubelet::{Expressions, Invalid, Kubelet};
use crate::port::PlacementGroup;

/// A zone that has subnets of a NodeClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its ID, the same in every account; empty if not known.
    pub id: &'a str,
    /// Its subnets, those with most free addresses first.
    pub subnets: Vec<&'a str>,
}

/// An EC2NodeClass, ready for use.
#[derive(Debug)]
pub struct Class<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it asks for.
    pub spec: &'a EC2NodeClassSpec,
    /// What was found of that.
    pub status: &'a EC2NodeClassStatus,
    /// Its image family.
    pub family: AmiFamily,
    /// The kubelet's settings.
    pub kubelet: Kubelet,
    /// The expressions in them; nothing if they are switched off.
    pub expressions: Option<Expressions>,
    /// The zones of its subnets.
    pub zones: Vec<Zone<'a>>,
    /// Its placement group.
    pub placement_group: Option<&'a PlacementGroup>,
}

impl<'a> Class<'a> {
    /// Reads an EC2NodeClass; without `expressions`, those of the kubelet's settings count as not written.
    pub fn new(
        object: &'a EC2NodeClass,
        placement_group: Option<&'a PlacementGroup>,
        expressions: bool,
    ) -> Result<Self, Invalid> {
        static NOTHING_FOUND: std::sync::LazyLock<EC2NodeClassStatus> =
            std::sync::LazyLock::new(EC2NodeClassStatus::default);
        let status = object.status.as_ref().unwrap_or(&NOTHING_FOUND);
        let kubelet = Kubelet::decode(object.spec.kubelet.as_ref())?;
        let expressions = if expressions { Some(Expressions::compile(&kubelet)?) } else { None };
        Ok(Self {
            name: object.metadata.name.as_deref().unwrap_or_default(),
            spec: &object.spec,
            status,
            family: object.spec.resolved_ami_family(),
            kubelet,
            expressions,
            zones: zones(status),
            placement_group,
        })
    }

    /// What its image family is like.
    pub const fn family(&self) -> &'static Family {
        Family::of(self.family)
    }

    /// The zone with a name, if it has subnets there.
    pub fn zone(&self, name: &str) -> Option<&Zone<'a>> {
        self.zones.iter().find(|zone| zone.name == name)
    }

    /// Its reservations for an instance type.
    pub fn reservations(&self, instance_type: &str) -> impl Iterator<Item = &'a CapacityReservation> {
        let instance_type = instance_type.to_owned();
        self.status.capacity_reservations.iter().filter(move |each| each.instance_type == instance_type)
    }

    /// How many of its network interfaces are only for the fabric; nothing if it names none at all.
    pub fn fabric_interfaces(&self) -> Option<i64> {
        let interfaces = self.spec.network_interfaces.as_ref()?;
        let fabric = interfaces.iter().filter(|each| each.interface_type == InterfaceType::EfaOnly);
        Some(i64::try_from(fabric.count()).unwrap_or(i64::MAX))
    }

    /// How many of those are on the first network card.
    pub fn fabric_interfaces_on_first_card(&self) -> i64 {
        let interfaces = self.spec.network_interfaces.iter().flatten();
        let fabric = interfaces
            .filter(|each| each.interface_type == InterfaceType::EfaOnly && each.network_card_index == 0);
        i64::try_from(fabric.count()).unwrap_or(i64::MAX)
    }
}

/// Whether instances can be launched with a NodeClass, and what the claim is told if not.
pub fn readiness(object: &EC2NodeClass) -> Result<(), Error> {
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions.into_iter().find(|condition| condition.type_ == READY);
    match ready.map(|condition| (condition.status, condition)) {
        Some((ConditionStatus::False, condition)) => Err(Error::NodeClassNotReady(condition.message.clone())),
        Some((ConditionStatus::True, condition))
            if object.metadata.generation.unwrap_or_default() != condition.observed_generation =>
        {
            Err(Error::NodeClassNotReady(
                "the conditions of the EC2NodeClass are about an older generation".to_owned(),
            ))
        }
        Some((ConditionStatus::True, _)) => Ok(()),
        Some((ConditionStatus::Unknown, _)) | None => Err(Error::Create {
            reason: reasons::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
            message: "whether the EC2NodeClass is ready is not known yet".to_owned(),
        }),
    }
}

/// What was found for a NodeClass, to be compared or hashed: without what was said about it, and with lists whose
/// order means nothing sorted. Subnets change places with each address that is taken; images are in the order in
/// which they are chosen.
pub(crate) fn found(object: &EC2NodeClass) -> EC2NodeClassStatus {
    let mut status = object.status.clone().unwrap_or_default();
    status.conditions.clear();
    status.subnets.sort_by(|left, right| left.id.cmp(&right.id));
    status.security_groups.sort_by(|left, right| left.id.cmp(&right.id));
    status.capacity_reservations.sort_by(|left, right| left.id.cmp(&right.id));
    status
}

/// The zones of the subnets, in the order of their first subnet.
fn zones(status: &EC2NodeClassStatus) -> Vec<Zone<'_>> {
    let mut zones: Vec<Zone<'_>> = Vec::new();
    for subnet in &status.subnets {
        match zones.iter_mut().find(|zone| zone.name == subnet.zone) {
            Some(zone) => zone.subnets.push(&subnet.id),
            None => zones.push(Zone { name: &subnet.zone, id: &subnet.zone_id, subnets: vec![&subnet.id] }),
        }
    }
    zones
}

#[cfg(test)]
mod tests {
    use api::aws::Subnet;

    use super::*;

    #[test]
    fn a_class_must_be_ready_at_its_present_generation() {
        let result = |status: &str, generation: i64| {
            let object: EC2NodeClass = serde_json::from_value(serde_json::json!({
                "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
                "metadata": {"name": "a", "generation": 2},
                "spec": {"amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": []},
                "status": {"conditions": [{
                    "type": "Ready", "status": status, "reason": "r", "message": "AMIsReady=False",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
                }]},
            }))
            .unwrap();
            readiness(&object)
        };
        assert_eq!(result("True", 2), Ok(()));
        assert!(matches!(result("True", 1), Err(Error::NodeClassNotReady(_))));
        assert_eq!(result("False", 2), Err(Error::NodeClassNotReady("AMIsReady=False".to_owned())));
        let Err(Error::Create { reason, .. }) = result("Unknown", 2) else { panic!("no reason") };
        assert_eq!(reason, "NodeClassReadinessUnknown");
        assert!(matches!(readiness(&EC2NodeClass::default()), Err(Error::Create { .. })));
    }

    #[test]
    fn subnets_are_grouped_by_zone_even_if_the_ids_of_zones_are_not_known() {
        let subnet = |id: &str, zone: &str, zone_id: &str| Subnet {
            id: id.to_owned(),
            zone: zone.to_owned(),
            zone_id: zone_id.to_owned(),
        };
        let status = EC2NodeClassStatus {
            subnets: vec![subnet("3", "b", ""), subnet("1", "a", "use1-az1"), subnet("2", "b", "")],
            ..EC2NodeClassStatus::default()
        };
        assert_eq!(
            zones(&status),
            [
                Zone { name: "b", id: "", subnets: vec!["3", "2"] },
                Zone { name: "a", id: "use1-az1", subnets: vec!["1"] },
            ]
        );
    }
}
