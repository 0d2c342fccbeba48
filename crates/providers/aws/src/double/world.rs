//! What there is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use crate::port::{
    CallerIdentity, CapacityReservation, Cluster, Decision, Image, Instance, InstanceProfile, InstanceStatus,
    InstanceTypeInfo, Message, NewLaunchTemplate, PlacementGroup, QueueAttributes, Quota, SecurityGroup,
    SpotPrice, Subnet, Tags, TypeInZone, ZonalShifts,
};
use crate::prices::Prices;

/// Something with tags.
#[derive(Clone, Debug, Default)]
pub struct Stored<T> {
    /// What it is.
    pub item: T,
    /// Its tags.
    pub tags: Tags,
}

/// Requests that are allowed: EC2 has a bucket of them for lists, which fills again by and by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    most: f64,
    per_second: f64,
    left: f64,
    at: Option<Timestamp>,
}

impl Bucket {
    /// A full bucket.
    pub fn new(most: u32, per_second: u32) -> Self {
        let most = f64::from(most);
        Self { most, per_second: f64::from(per_second), left: most, at: None }
    }

    /// Takes a request out; whether there was one.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        let passed = self.at.map_or(0.0, |at| now.duration_since(at).as_secs_f64().max(0.0));
        self.at = Some(now);
        self.left = (self.left + passed * self.per_second).min(self.most);
        let is_allowed = self.left >= 1.0;
        if is_allowed {
            self.left -= 1.0;
        }
        is_allowed
    }
}

/// What there is. Everything can be changed by tests.
#[derive(Debug)]
pub struct World {
    /// How long an answer takes.
    pub latency: Duration,
    /// How often lists of EC2 may be asked for; without it, as often as anybody wants.
    pub describe_bucket: Option<Bucket>,
    /// The instance types.
    pub types: Vec<InstanceTypeInfo>,
    /// Where they are.
    pub places: Vec<TypeInZone>,
    /// What EC2 really charges by use.
    pub prices: Prices,
    /// The spot prices.
    pub spot_prices: Vec<SpotPrice>,
    /// Products of the price list: shared machines, then bare metal.
    pub products: [Vec<String>; 2],
    /// The subnets; launches take addresses.
    pub subnets: Vec<Stored<Subnet>>,
    /// The security groups.
    pub security_groups: Vec<Stored<SecurityGroup>>,
    /// The images; an owner of `self` and `amazon` alike.
    pub images: Vec<Stored<Image>>,
    /// Published values.
    pub parameters: BTreeMap<String, String>,
    /// Published values that policies do not let us see.
    pub secret_parameters: BTreeSet<String>,
    /// The capacity reservations; launches fill them.
    pub reservations: Vec<Stored<CapacityReservation>>,
    /// The placement groups.
    pub placement_groups: Vec<PlacementGroup>,
    /// The launch templates, by ID.
    pub templates: BTreeMap<String, NewLaunchTemplate>,
    /// The instances, by ID.
    pub instances: BTreeMap<String, Instance>,
    /// How often each instance is still not described although it is there.
    pub hidden: BTreeMap<String, u32>,
    /// How often instances that will be launched are not described at first.
    pub hide_new_instances: u32,
    /// What there is no capacity of, with the code: instance type, zone and capacity type.
    pub insufficient: BTreeMap<(String, String, String), String>,
    /// Instance types that a zone has and that EC2 still refuses to run there, if only tried: type and zone.
    pub refused: BTreeSet<(String, String)>,
    /// Whether errors of launches do not say what they are about.
    pub vague: bool,
    /// How instances are.
    pub statuses: Vec<InstanceStatus>,
    /// The roles.
    pub roles: BTreeSet<String>,
    /// The instance profiles, by name.
    pub profiles: BTreeMap<String, InstanceProfile>,
    /// The tags of instance profiles that were created, by name.
    pub profile_tags: BTreeMap<String, Tags>,
    /// The queue, if there is one.
    pub queue: Option<VecDeque<Message>>,
    /// Until when messages that somebody received are not shown again, by receipt.
    pub invisible: BTreeMap<String, Timestamp>,
    /// What the queue is like; how many messages there are is counted.
    pub queue_attributes: QueueAttributes,
    /// Who asks.
    pub identity: CallerIdentity,
    /// What policies do not allow, by action, for those who ask beforehand.
    pub decisions: BTreeMap<String, Decision>,
    /// How much the account may have.
    pub quotas: Vec<Quota>,
    /// The cluster.
    pub cluster: Cluster,
    /// Zones that are avoided.
    pub shifts: Vec<ZonalShifts>,
    /// Numbers what is created.
    pub(super) created: u64,
    /// When each instance was asked to be booted again.
    pub reboots: Vec<(String, Timestamp)>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            describe_bucket: None,
            types: Vec::new(),
            places: Vec::new(),
            prices: Prices::of_region("us-east-1"),
            spot_prices: Vec::new(),
            products: [Vec::new(), Vec::new()],
            subnets: Vec::new(),
            security_groups: Vec::new(),
            images: Vec::new(),
            parameters: BTreeMap::new(),
            secret_parameters: BTreeSet::new(),
            reservations: Vec::new(),
            placement_groups: Vec::new(),
            templates: BTreeMap::new(),
            instances: BTreeMap::new(),
            hidden: BTreeMap::new(),
            hide_new_instances: 0,
            insufficient: BTreeMap::new(),
            refused: BTreeSet::new(),
            vague: false,
            statuses: Vec::new(),
            roles: BTreeSet::new(),
            profiles: BTreeMap::new(),
            profile_tags: BTreeMap::new(),
            queue: None,
            invisible: BTreeMap::new(),
            queue_attributes: QueueAttributes::default(),
            identity: CallerIdentity {
                account: "111122223333".to_owned(),
                arn: "arn:aws:sts::111122223333:assumed-role/controller/session".to_owned(),
            },
            decisions: BTreeMap::new(),
            quotas: Vec::new(),
            cluster: Cluster::default(),
            shifts: Vec::new(),
            created: 0,
            reboots: Vec::new(),
        }
    }
}

impl World {
    /// A new ID.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.created += 1;
        format!("{prefix}-{:017x}", self.created)
    }

    /// There is no capacity of a type in a zone.
    pub fn lacks(&mut self, instance_type: &str, zone: &str, capacity_type: &str) {
        let place = (instance_type.to_owned(), zone.to_owned(), capacity_type.to_owned());
        self.insufficient.insert(place, "InsufficientInstanceCapacity".to_owned());
    }

    /// Published values whose names begin so are taken back.
    pub fn vanish(&mut self, prefix: &str) {
        self.parameters.retain(|name, _| !name.starts_with(prefix));
    }

    /// Whether EC2 would run an instance of a type in a zone.
    pub(super) fn runs(&self, instance_type: &str, zone: &str) -> bool {
        let has = |place: &TypeInZone| place.instance_type == instance_type && place.zone == zone;
        self.places.iter().any(has) && !self.refused.contains(&(instance_type.to_owned(), zone.to_owned()))
    }

    /// A subnet with free addresses in a zone whose ID follows from its last letter.
    pub fn add_subnet(&mut self, id: &str, zone: &str, free: i64, tags: Tags) {
        let item = Subnet {
            id: id.to_owned(),
            zone: zone.to_owned(),
            zone_id: format!("{zone}-id"),
            available_addresses: free,
        };
        self.subnets.push(Stored { item, tags });
    }

    /// The launch template with a name.
    pub fn template(&self, name: &str) -> Option<&NewLaunchTemplate> {
        self.templates.values().find(|template| template.name == name)
    }

    /// The instances that are not on their way out.
    pub fn running(&self) -> impl Iterator<Item = &Instance> {
        self.instances.values().filter(|instance| !instance.state.is_ending())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_again_by_and_by_and_never_above_its_size() {
        let mut bucket = Bucket::new(3, 1);
        let at = |second: i64| Timestamp::constant(second, 0);
        let mut taken = |second: i64| (0..5).filter(|_| bucket.take(at(second))).count();
        assert_eq!((taken(0), taken(0), taken(2), taken(100)), (3, 0, 2, 3));
    }
}
