//! Which subnet of a zone instances are launched into: the one with most addresses left, as far as is known.

use std::collections::BTreeMap;

use api::names::labels;
use api::names::resources;
use cluster::instance_types::{InstanceType, Wanted};

use crate::node_class::Class;
use crate::port::Subnet;

/// A subnet that a launch uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenSubnet {
    /// Its ID.
    pub id: String,
    /// Its zone.
    pub zone: String,
    /// The ID of the zone.
    pub zone_id: String,
    /// How many addresses the launch is expected to take.
    pub predicted: i64,
    /// How many EC2 said there are when it was chosen.
    known: Option<i64>,
}

/// How many addresses subnets have left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetAddresses {
    /// What EC2 said.
    known: BTreeMap<String, i64>,
    /// What is expected to be left, with launches under way.
    expected: BTreeMap<String, i64>,
}

impl SubnetAddresses {
    /// What EC2 says, which has launches in it that it knows of.
    pub fn refresh(&mut self, subnets: &[Subnet]) {
        for subnet in subnets {
            self.known.insert(subnet.id.clone(), subnet.available_addresses);
            self.expected.remove(&subnet.id);
        }
    }

    /// A launch found a subnet full.
    pub fn exhausted(&mut self, subnet: &str) {
        self.known.insert(subnet.to_owned(), 0);
        self.expected.remove(subnet);
    }

    fn left(&self, subnet: &str) -> i64 {
        self.expected.get(subnet).or_else(|| self.known.get(subnet)).copied().unwrap_or_default()
    }

    /// Chooses a subnet in each zone, and expects the launch to take addresses there: as many as the smallest
    /// node that is possible there has pods.
    pub fn choose(
        &mut self,
        class: &Class<'_>,
        types: &[InstanceType],
        wanted: &mut Wanted<'_>,
        capacity_type: &str,
    ) -> Vec<ChosenSubnet> {
        self.choose_predicting(class, |zone| fewest_pods(types, wanted, zone, capacity_type))
    }

    /// As [`SubnetAddresses::choose`], with what a launch is expected to take in a zone.
    pub fn choose_predicting(
        &mut self,
        class: &Class<'_>,
        mut predict: impl FnMut(&str) -> i64,
    ) -> Vec<ChosenSubnet> {
        let mut chosen = Vec::new();
        for zone in &class.zones {
            let mut best: Option<&str> = None;
            for subnet in &zone.subnets {
                if best.is_none_or(|best| self.left(subnet) > self.left(best)) {
                    best = Some(subnet);
                }
            }
            let Some(id) = best else { continue };
            let predicted = predict(zone.name);
            let left = self.left(id) - predicted;
            self.expected.insert(id.to_owned(), left);
            chosen.push(ChosenSubnet {
                id: id.to_owned(),
                zone: zone.name.to_owned(),
                zone_id: zone.id.to_owned(),
                predicted,
                known: self.known.get(id).copied(),
            });
        }
        chosen
    }

    /// A launch is over: subnets that it did not use get their addresses back, unless EC2 was asked meanwhile.
    pub fn release(&mut self, chosen: &[ChosenSubnet], used: &[&str]) {
        for subnet in chosen.iter().filter(|subnet| !used.contains(&subnet.id.as_str())) {
            if self.known.get(&subnet.id).copied() == subnet.known
                && let Some(left) = self.expected.get_mut(&subnet.id)
            {
                *left += subnet.predicted;
            }
        }
    }
}

/// How many pods the smallest node has that is possible in a zone.
pub(crate) fn fewest_pods(types: &[InstanceType], wanted: &mut Wanted<'_>, zone: &str, kind: &str) -> i64 {
    let mut fits = |each: &InstanceType| {
        each.offerings.iter().any(|offering| {
            offering.is_launchable()
                && super::filters::is_kind(offering, kind)
                && offering.value(labels::ZONE) == Some(zone)
                && wanted.admits(&offering.requirements)
        })
    };
    let pods = |each: &InstanceType| each.capacity.amount(resources::PODS).value();
    types.iter().filter(|each| fits(each)).map(pods).min().unwrap_or_default()
}
