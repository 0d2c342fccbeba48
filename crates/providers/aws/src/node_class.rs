//! An EC2NodeClass as everything else wants to see it: read once, with the zones of its subnets.

use api::aws::{
    AmiFamily, CapacityReservation, EC2NodeClass, EC2NodeClassSpec, EC2NodeClassStatus, InterfaceType,
};

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
